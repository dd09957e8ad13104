/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "core/graph.h"
#include "drawn.h"
#include "starved.h"
#include "test.h"

/* The nodes as "name self/total", the edges as "a->b value", indirect ones as "a..>b value". */
static const char *graph_text(const char *stacks, const struct kiln_call_graph_opts *opts)
{
    static char text[4096];
    struct kiln_view *view = kiln_test_view(kiln_test_stacks(stacks), NULL);
    struct kiln_call_graph *graph;
    size_t n = 0;

    CHECK_OK(kiln_call_graph_new(view, opts, &graph));
    text[0] = '\0';
    for (uint32_t i = 0; i < graph->n_nodes; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%.*s %lld/%lld\n",
                              KILN_STR_ARG(view->frames[graph->nodes[i].frame].name),
                              (long long)graph->nodes[i].self, (long long)graph->nodes[i].total);
    for (uint32_t i = 0; i < graph->n_edges; i++) {
        const struct kiln_call_graph_edge *e = &graph->edges[i];

        n += (size_t)snprintf(text + n, sizeof(text) - n, "%.*s%s%.*s %lld\n",
                              KILN_STR_ARG(view->frames[graph->nodes[e->from].frame].name),
                              e->indirect ? "..>" : "->",
                              KILN_STR_ARG(view->frames[graph->nodes[e->to].frame].name),
                              (long long)e->value);
    }
    if (graph->dropped_nodes || graph->dropped_edges)
        snprintf(text + n, sizeof(text) - n, "dropped %u, %u\n", graph->dropped_nodes,
                 graph->dropped_edges);
    kiln_call_graph_free(graph);
    kiln_view_free(view);
    return text;
}

TEST(graph, every_frame_is_one_node_with_all_its_calls)
{
    CHECK_TEXT(graph_text("main;parse;read 3\nmain;draw;read 2\nmain 1\n", NULL), "main 1/6\n"
                                                                                  "read 5/5\n"
                                                                                  "parse 0/3\n"
                                                                                  "draw 0/2\n"
                                                                                  "main->parse 3\n"
                                                                                  "parse->read 3\n"
                                                                                  "main->draw 2\n"
                                                                                  "draw->read 2\n");
}

TEST(graph, recursion_counts_once)
{
    CHECK_TEXT(graph_text("f;g;f;g;f 4\nh;h 1\n", NULL), "f 4/4\n"
                                                         "g 0/4\n"
                                                         "h 1/1\n"
                                                         "f->g 4\n"
                                                         "g->f 4\n"
                                                         "h->h 1\n");
}

TEST(graph, light_frames_are_bridged_and_counted)
{
    struct kiln_call_graph_opts two = {.nodes_max = 3};

    CHECK_TEXT(graph_text("main;a;read 2\nmain;b;read 3\nmain;c;d;read 1\n", &two),
               "main 0/6\n"
               "read 6/6\n"
               "b 0/3\n"
               "main->b 3\n"
               "b->read 3\n"
               "dropped 3, 1\n");
}

TEST(graph, an_indirect_edge_stays_where_it_is_the_only_way)
{
    struct kiln_call_graph_opts two = {.nodes_max = 2};

    CHECK_TEXT(graph_text("main;a;read 2\nmain;b;read 3\n", &two), "main 0/5\n"
                                                                   "read 5/5\n"
                                                                   "main..>read 5\n"
                                                                   "dropped 2, 0\n");
}

TEST(graph, a_light_edge_is_dropped_unless_it_is_the_heaviest_to_its_callee)
{
    struct kiln_call_graph_opts opts = {.node_share = -1, .edge_share = 0.1};

    CHECK_TEXT(graph_text("main;a;x 80\nmain;b;x 2\nmain;c 1\n", &opts), "main 0/83\n"
                                                                         "x 82/82\n"
                                                                         "a 0/80\n"
                                                                         "b 0/2\n"
                                                                         "c 1/1\n"
                                                                         "main->a 80\n"
                                                                         "a->x 80\n"
                                                                         "main->b 2\n"
                                                                         "main->c 1\n"
                                                                         "dropped 0, 1\n");
}

TEST(graph, nothing_gives_an_empty_graph)
{
    CHECK_TEXT(graph_text("", NULL), "");
    CHECK_TEXT(graph_text("- 3\n", NULL), "");
}

TEST(graph, running_out_of_memory_anywhere_leaks_nothing)
{
    struct kiln_view *view = kiln_test_view(kiln_test_stacks("a;b;c 3\na;c 1\n"), NULL);
    struct kiln_call_graph *graph = NULL;
    struct kiln_starved s = {0};

    while (kiln_test_starve(&s))
        s.r = kiln_call_graph_new(view, NULL, &graph);
    CHECK(s.n > 4);
    kiln_call_graph_free(graph);
    CHECK_EQ(kiln_mem_live(), s.live);
    kiln_view_free(view);
}
