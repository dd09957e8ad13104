/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/mem.h"
#include "codec/layout.h"
#include "random_batch.h"
#include "starved.h"
#include "test.h"

#define BOXES_MAX 60
#define EDGES_MAX 200

struct graph {
    struct kiln_layout_box boxes[BOXES_MAX];
    struct kiln_layout_edge edges[EDGES_MAX];
    struct kiln_layout l;
};

static void lay_out(struct graph *g)
{
    for (uint32_t i = 0; i < g->l.n_boxes; i++) {
        g->boxes[i].w = g->boxes[i].w > 0 ? g->boxes[i].w : 100;
        g->boxes[i].h = 40;
    }
    for (uint32_t i = 0; i < g->l.n_edges; i++)
        g->edges[i].weight = g->edges[i].weight > 0 ? g->edges[i].weight : 1;
    g->l.boxes = g->boxes;
    g->l.edges = g->edges;
    g->l.gap_x = 10;
    g->l.gap_y = 50;
    CHECK_OK(kiln_layout_run(&g->l));
}

/* Edges drawn as "ab bc": box a calls box b. */
static void draw_graph(struct graph *g, const char *edges)
{
    *g = (struct graph){0};
    for (; edges[0] && edges[1]; edges += edges[2] ? 3 : 2) {
        struct kiln_layout_edge *e = &g->edges[g->l.n_edges++];

        e->from = (uint32_t)(edges[0] - 'a');
        e->to = (uint32_t)(edges[1] - 'a');
        g->l.n_boxes = e->from >= g->l.n_boxes ? e->from + 1 : g->l.n_boxes;
        g->l.n_boxes = e->to >= g->l.n_boxes ? e->to + 1 : g->l.n_boxes;
    }
    lay_out(g);
}

static void check_apart(const struct graph *g)
{
    for (uint32_t i = 0; i < g->l.n_boxes; i++) {
        const struct kiln_layout_box *a = &g->boxes[i];

        CHECK(a->x - a->w / 2 >= -1e-6 && a->x + a->w / 2 <= g->l.width + 1e-6);
        CHECK(a->y - a->h / 2 >= -1e-6 && a->y + a->h / 2 <= g->l.height + 1e-6);
        for (uint32_t k = 0; k < i; k++) {
            const struct kiln_layout_box *b = &g->boxes[k];

            CHECK(fabs(a->x - b->x) >= (a->w + b->w) / 2 - 1e-6 ||
                  fabs(a->y - b->y) >= (a->h + b->h) / 2 - 1e-6);
        }
    }
}

/* Every edge runs down from the lower side of one box to the upper side of the other. */
static void check_edges(const struct graph *g)
{
    for (uint32_t i = 0; i < g->l.n_edges; i++) {
        const struct kiln_layout_edge *e = &g->edges[i];
        const struct kiln_layout_box *upper = &g->boxes[e->upwards ? e->to : e->from];
        const struct kiln_layout_box *lower = &g->boxes[e->upwards ? e->from : e->to];
        const struct kiln_point *p = g->l.points + e->first;

        CHECK(e->n >= 2);
        CHECK(fabs(p[0].y - (upper->y + upper->h / 2)) < 1e-6);
        CHECK(fabs(p[0].x - upper->x) <= upper->w / 2);
        CHECK(fabs(p[e->n - 1].y - (lower->y - lower->h / 2)) < 1e-6);
        CHECK(fabs(p[e->n - 1].x - lower->x) <= lower->w / 2);
        for (uint32_t k = 1; k < e->n; k++)
            CHECK(p[k].y > p[k - 1].y);
    }
}

TEST(layout, callees_are_below_all_of_their_callers)
{
    struct graph g;

    draw_graph(&g, "ab bc ac cd");
    CHECK(g.boxes[0].y < g.boxes[1].y);
    CHECK(g.boxes[1].y < g.boxes[2].y);
    CHECK(g.boxes[2].y < g.boxes[3].y);
    CHECK_EQ(g.edges[2].n, 3); /* around b */
    check_apart(&g);
    check_edges(&g);
    kiln_layout_done(&g.l);
}

TEST(layout, a_chain_is_straight)
{
    struct graph g;

    draw_graph(&g, "ab bc cd");
    CHECK(fabs(g.boxes[0].x - g.boxes[3].x) < 1e-6);
    kiln_layout_done(&g.l);
}

TEST(layout, a_cycle_has_an_edge_that_runs_upwards)
{
    struct graph g;

    draw_graph(&g, "ab bc ca");
    CHECK(!g.edges[0].upwards && !g.edges[1].upwards && g.edges[2].upwards);
    check_edges(&g);
    kiln_layout_done(&g.l);
}

TEST(layout, two_edges_that_cross_are_untangled)
{
    struct graph g;

    draw_graph(&g, "ad bc");
    CHECK((g.boxes[0].x < g.boxes[1].x) == (g.boxes[3].x < g.boxes[2].x));
    kiln_layout_done(&g.l);
}

TEST(layout, nothing_takes_no_room)
{
    struct graph g = {0};

    lay_out(&g);
    CHECK(g.l.width == 0 && g.l.height == 0);
    kiln_layout_done(&g.l);
}

static void random_graph(struct graph *g, uint64_t seed)
{
    struct dice dice = {seed};

    *g = (struct graph){.l = {.n_boxes = 1 + (uint32_t)dice_roll(&dice, BOXES_MAX)}};
    for (uint32_t i = 0; i < g->l.n_boxes; i++)
        g->boxes[i].w = 20 + (double)dice_roll(&dice, 200);
    for (uint64_t n = dice_roll(&dice, EDGES_MAX); n && g->l.n_boxes > 1; n--) {
        uint32_t from = (uint32_t)dice_roll(&dice, g->l.n_boxes);
        uint32_t to = (uint32_t)dice_roll(&dice, g->l.n_boxes);

        if (from != to)
            g->edges[g->l.n_edges++] = (struct kiln_layout_edge){
                .from = from, .to = to, .weight = 0.01 + (double)dice_roll(&dice, 100)};
    }
}

TEST(layout, boxes_of_any_graph_are_apart)
{
    struct graph g;

    for (uint64_t seed = 1; seed <= 200; seed++) {
        random_graph(&g, seed);
        lay_out(&g);
        check_apart(&g);
        check_edges(&g);
        kiln_layout_done(&g.l);
    }
}

TEST(layout, running_out_of_memory_leaks_nothing)
{
    struct kiln_starved s = {0};
    struct graph g;

    random_graph(&g, 5);
    g.l.boxes = g.boxes;
    g.l.edges = g.edges;
    while (kiln_test_starve(&s))
        s.r = kiln_layout_run(&g.l);
    CHECK(s.n > 10);
    kiln_layout_done(&g.l);
    CHECK_EQ(kiln_mem_live(), s.live);
}
