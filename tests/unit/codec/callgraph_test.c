/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "codec/callgraph.h"
#include "codec/dot.h"
#include "drawn.h"
#include "hostile.h"
#include "starved.h"
#include "test.h"

static struct kiln_view *cpu_view(const char *stacks)
{
    struct kiln_drawn drawn = {
        .stacks = stacks, .type = "cpu", .unit = "nanoseconds", .duration_ns = 10000000000u};

    return kiln_test_view(kiln_test_batch(&drawn, 1), NULL);
}

static char *take_text(struct kiln_buf *out)
{
    char *text;
    size_t len;

    kiln_buf_putc(out, '\0');
    kiln_buf_take(out, &text, &len);
    CHECK_EQ(strlen(text), len - 1);
    return text;
}

static char *svg_of(const struct kiln_view *view)
{
    struct kiln_buf out;

    kiln_buf_init(&out, 64u << 20);
    CHECK_OK(kiln_callgraph_encode(view, NULL, &out, NULL));
    return take_text(&out);
}

static char *dot_of(const struct kiln_view *view, const struct kiln_dot_opts *opts)
{
    struct kiln_buf out;

    kiln_buf_init(&out, 64u << 20);
    CHECK_OK(kiln_dot_encode(view, opts, &out, NULL));
    return take_text(&out);
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;

    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

#define STACKS "main;parse;read 6000000000\nmain;draw;read 3000000000\nmain;main 1000000000\n"

TEST(callgraph, has_a_box_a_function_and_a_line_a_call)
{
    struct kiln_view *view = cpu_view(STACKS);
    char *svg = svg_of(view);

    CHECK_EQ(count(svg, "<g data-n="), 4);
    CHECK_EQ(count(svg, "<g data-e="), 4);
    CHECK_EQ(count(svg, "↻"), 1);
    CHECK(strstr(svg, "CPU time: 1 core (10s in 10s)</text>"));
    CHECK(strstr(svg, "4 of 4 functions and 5 of 5 calls between them drawn"));
    CHECK(strstr(svg, "90.0 % · self 90.0 %"));
    kiln_free(svg);
    kiln_view_free(view);
}

TEST(callgraph, hostile_names_add_no_markup)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct kiln_view *view = kiln_test_hostile_view(seed);
        char *svg = svg_of(view);

        CHECK(kiln_utf8_valid(kiln_str_of(svg)));
        CHECK_EQ(count(svg, "<script"), 1);
        CHECK_EQ(count(svg, "]]>"), 2);
        CHECK_EQ(count(svg, "\"nan") + count(svg, "-nan") + count(svg, " nan"), 0);
        kiln_free(svg);
        kiln_view_free(view);
    }
}

TEST(callgraph, an_empty_profile_is_drawn_too)
{
    struct kiln_view *view = cpu_view("");
    char *svg = svg_of(view);

    CHECK(strstr(svg, "0 of 0 functions"));
    kiln_free(svg);
    kiln_view_free(view);
}

TEST(callgraph, running_out_of_memory_is_an_error)
{
    struct kiln_view *view = cpu_view(STACKS);
    struct kiln_starved s = {0};
    struct kiln_buf out;

    while (kiln_test_starve(&s)) {
        kiln_buf_init(&out, 1u << 20);
        s.r = kiln_callgraph_encode(view, NULL, &out, NULL);
        kiln_buf_done(&out);
    }
    CHECK(s.n > 20);
    kiln_view_free(view);
}

TEST(dot, nodes_and_edges_carry_their_costs)
{
    struct kiln_view *view = cpu_view(STACKS);
    char *dot = dot_of(view, &(struct kiln_dot_opts){.title = "checkout"});

    CHECK(strstr(dot, "label=\"read\\nself 0.9 cores (90.0 %)\\nof 0.9 cores (90.0 %)\""));
    CHECK(strstr(dot, "label=\" 0.6 cores\""));
    CHECK(strstr(dot, "CPU time of checkout: 1 core (10s in 10s)\\l"));
    CHECK(strstr(dot, "4 of 4 functions and 5 of 5 calls"));
    kiln_free(dot);
    kiln_view_free(view);
}

TEST(dot, what_was_dropped_is_said)
{
    struct kiln_view *view = cpu_view(STACKS);
    char *dot = dot_of(view, &(struct kiln_dot_opts){.graph.nodes_max = 2});

    CHECK(strstr(dot, "2 of 4 functions"));
    kiln_free(dot);
    kiln_view_free(view);
}

/* Feeds a text to a program; its exit status. */
static int feed(const char *command, const char *text)
{
    FILE *pipe = popen(command, "w");

    CHECK(pipe != NULL);
    fputs(text, pipe);
    return pclose(pipe);
}

TEST(dot, graphviz_reads_hostile_names)
{
    if (access("/usr/bin/dot", X_OK) < 0)
        SKIP("no Graphviz here");
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct kiln_view *view = kiln_test_hostile_view(seed);
        char *dot = dot_of(view, &(struct kiln_dot_opts){.title = "\" }\\"});

        CHECK(kiln_utf8_valid(kiln_str_of(dot)));
        CHECK_EQ(feed("dot -Tplain >/dev/null", dot), 0);
        kiln_free(dot);
        kiln_view_free(view);
    }
}
