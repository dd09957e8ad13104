/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/codec.h"
#include "codec/svg.h"
#include "codec/svg_plan.h"
#include "core/builder.h"
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

/* The drawing of a view as a C string; the caller frees it with kiln_free(). */
static char *drawing_of(const struct kiln_view *view, const struct kiln_svg_opts *opts)
{
    struct kiln_buf out;
    char *text;
    size_t len;

    kiln_buf_init(&out, 64u << 20);
    CHECK_OK(kiln_svg_encode_view(view, opts, &out, NULL));
    kiln_buf_putc(&out, '\0');
    kiln_buf_take(&out, &text, &len);
    CHECK_EQ(strlen(text), len - 1);
    return text;
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;

    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

/* The frames, as "name depth x w", in shares. */
static const char *plan_text(const struct kiln_tree *tree, const struct kiln_svg_plan_opts *opts)
{
    static char text[2048];
    struct kiln_svg_plan plan;
    size_t n = 0;

    CHECK_OK(kiln_svg_plan_init(tree, opts, &plan));
    text[0] = '\0';
    for (uint32_t i = 0; i < plan.n_places; i++) {
        const struct kiln_svg_place *p = &plan.places[i];
        uint32_t frame = tree->nodes[p->node].frame;

        if (p->folded)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "(%u)", p->folded);
        else
            n += (size_t)snprintf(
                text + n, sizeof(text) - n, "%.*s",
                KILN_STR_ARG(frame < tree->n_frames ? tree->frames[frame].name : KILN_STR("all")));
        n += (size_t)snprintf(text + n, sizeof(text) - n, " %u %g %g\n", p->depth, p->x, p->w);
    }
    kiln_svg_plan_done(&plan);
    return text;
}

static struct kiln_tree *tree_of(const struct kiln_view *view)
{
    struct kiln_tree *tree;

    CHECK_OK(kiln_tree_new(view, &(struct kiln_tree_opts){0}, &tree, NULL));
    return tree;
}

#define NARROW "main;a;x 50\nmain;b 25\nmain;c 13\nmain;d 12\n"

TEST(svg_plan, callees_stand_side_by_side_below_their_caller)
{
    struct kiln_view *view = cpu_view(NARROW);
    struct kiln_tree *tree = tree_of(view);
    struct kiln_svg_plan_opts opts = {.frames_max = 100, .depth_max = 100};

    CHECK_TEXT(plan_text(tree, &opts), "all 0 0 1\n"
                                       "main 1 0 1\n"
                                       "a 2 0 0.5\n"
                                       "x 3 0 0.5\n"
                                       "b 2 0.5 0.25\n"
                                       "c 2 0.75 0.13\n"
                                       "d 2 0.88 0.12\n");
    kiln_tree_free(tree);
    kiln_view_free(view);
}

TEST(svg_plan, narrow_frames_are_folded_into_one)
{
    struct kiln_view *view = cpu_view(NARROW);
    struct kiln_tree *tree = tree_of(view);
    struct kiln_svg_plan_opts by_share = {.frames_max = 100, .depth_max = 100, .min_share = 0.2};
    struct kiln_svg_plan_opts by_count = {.frames_max = 4, .depth_max = 100};
    struct kiln_svg_plan_opts by_depth = {.frames_max = 100, .depth_max = 1};

    CHECK_TEXT(plan_text(tree, &by_share), "all 0 0 1\n"
                                           "main 1 0 1\n"
                                           "a 2 0 0.5\n"
                                           "x 3 0 0.5\n"
                                           "b 2 0.5 0.25\n"
                                           "(2) 2 0.75 0.25\n");
    CHECK_TEXT(plan_text(tree, &by_count), plan_text(tree, &by_share));
    CHECK_TEXT(plan_text(tree, &by_depth), "all 0 0 1\n"
                                           "main 1 0 1\n"
                                           "(5) 2 0 1\n");
    kiln_tree_free(tree);
    kiln_view_free(view);
}

TEST(svg_plan, of_a_diff_the_width_is_both_sides)
{
    struct kiln_view *a = cpu_view("gone 4\nsame 3\n"), *b = cpu_view("same 3\nnew 2\n");
    struct kiln_svg_plan_opts opts = {.frames_max = 100, .depth_max = 100};
    struct kiln_tree *tree;

    CHECK_OK(kiln_tree_new_diff(a, b, 1, &(struct kiln_tree_opts){.order = KILN_TREE_BY_NAME},
                                &tree, NULL));
    CHECK_TEXT(plan_text(tree, &opts), "all 0 0 1\n"
                                       "gone 1 0 0.333333\n"
                                       "new 1 0.333333 0.166667\n"
                                       "same 1 0.5 0.5\n");
    kiln_tree_free(tree);
    kiln_view_free(a);
    kiln_view_free(b);
}

TEST(svg, the_sentence_comes_first)
{
    struct kiln_view *view = cpu_view("main;parse 20000000000\nmain 5000000000\n");
    char *svg = drawing_of(view, &(struct kiln_svg_opts){.title = "checkout"});

    CHECK(strstr(svg, "CPU time of checkout: 2.5 cores (25s in 10s)</text>"));
    CHECK(strstr(svg, "parse itself takes 80.0 %"));
    CHECK(strstr(svg, "· 2 frames</text>"));
    kiln_free(svg);
    kiln_view_free(view);
}

TEST(svg, what_stands_out_is_said_with_who_asked_for_it)
{
    struct kiln_view *view = cpu_view("main;save;runtime.lock;futex@libc/usr/lib/x.c:1 40\n"
                                      "main;load;futex@libc/usr/lib/x.c:1 20\nmain;parse 30\n");
    char *svg = drawing_of(view, NULL);

    CHECK(strstr(svg, "futex itself takes 66.7 %, most of it below save</text>"));
    kiln_free(svg);
    kiln_view_free(view);
}

TEST(svg, what_was_folded_is_said)
{
    struct kiln_view *view = cpu_view(NARROW);
    char *svg = drawing_of(view, &(struct kiln_svg_opts){.min_share = 0.2});

    CHECK(strstr(svg, "4 of 6 frames drawn"));
    CHECK(strstr(svg, "data-folded=\"2\""));
    kiln_free(svg);
    kiln_view_free(view);
}

TEST(svg, totals_in_the_file_are_those_of_the_tree)
{
    struct kiln_view *view = cpu_view("main;a;x 50\nmain;b 9007199254740993\nmain;c 13\n");
    struct kiln_tree *tree = tree_of(view);
    char *svg = drawing_of(view, &(struct kiln_svg_opts){.min_share = 1e-30});
    const char *at = svg;

    for (uint32_t i = 0; i < tree->n_nodes; i++) {
        at = strstr(at, "data-v=\"");
        CHECK(at != NULL);
        at += strlen("data-v=\"");
        CHECK_EQ(strtoll(at, NULL, 10), tree->nodes[i].total_b);
    }
    CHECK(strstr(at, "data-v=\"") == NULL);
    kiln_free(svg);
    kiln_tree_free(tree);
    kiln_view_free(view);
}

TEST(svg, a_diff_says_what_grew)
{
    struct kiln_view *a = cpu_view("main;parse 1000000000\nmain;draw 5000000000\n");
    struct kiln_view *b = cpu_view("main;parse 9000000000\nmain;draw 5000000000\n");
    struct kiln_tree *tree;
    struct kiln_buf out;

    for (uint32_t i = 0; i < a->n_rows; i++)
        a->rows[i].count = b->rows[i].count = 1000;
    CHECK_OK(kiln_tree_new_diff(a, b, 1, &(struct kiln_tree_opts){0}, &tree, NULL));
    kiln_buf_init(&out, 1u << 20);
    CHECK_OK(kiln_svg_encode(b, tree, &(struct kiln_svg_opts){.normalized = KILN_NORMALIZE_TIME},
                             &out, NULL));
    kiln_buf_putc(&out, '\0');
    CHECK(strstr(out.ptr, "CPU time grew by 133 %: 0.6 cores → 1.4 cores"));
    CHECK(strstr(out.ptr, "parse grew by 0.8 cores"));
    CHECK(strstr(out.ptr, "data-a=\"1000000000\""));
    kiln_buf_done(&out);
    kiln_tree_free(tree);
    kiln_view_free(a);
    kiln_view_free(b);
}

TEST(svg, hostile_names_add_no_markup)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct kiln_view *view = kiln_test_hostile_view(seed);
        char *svg = drawing_of(view, &(struct kiln_svg_opts){.title = "</title><script>]]>"});

        CHECK(kiln_utf8_valid(kiln_str_of(svg)));
        CHECK_EQ(count(svg, "<script"), 1);
        CHECK_EQ(count(svg, "]]>"), 2);
        CHECK_EQ(count(svg, "<!--"), 0);
        CHECK_EQ(count(svg, "<title>"), count(svg, "</title>"));
        kiln_free(svg);
        kiln_view_free(view);
    }
}

TEST(svg, an_empty_profile_is_drawn_too)
{
    struct kiln_view *view = cpu_view("");
    char *svg = drawing_of(view, NULL);

    CHECK(strstr(svg, "CPU time: 0 cores"));
    CHECK_EQ(count(svg, "data-v="), 1);
    kiln_free(svg);
    kiln_view_free(view);
}

/* One sample of f called by f called by f, so many times. */
static struct kiln_view *recursive_view(uint32_t depth)
{
    uint32_t *stack = malloc(depth * sizeof(*stack));
    struct kiln_function f = {0};
    struct kiln_line line = {0};
    struct kiln_batch *batch;
    struct kiln_builder *b;

    CHECK_OK(kiln_builder_new(NULL, &b));
    f.name = kiln_builder_string(b, KILN_STR("f"));
    line.function = kiln_builder_function(b, &f);
    for (uint32_t i = 0; i < depth; i++)
        stack[i] = kiln_builder_location(b, &(struct kiln_location){0}, &line, 1);
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    kiln_builder_add_profile(b, &(struct kiln_profile){0});
    kiln_builder_add_value(b, 0, kiln_builder_stack(b, stack, depth), 0, 7);
    free(stack);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    return kiln_test_view(batch, NULL);
}

TEST(svg, a_very_deep_stack_is_cut_and_said)
{
    struct kiln_view *view = recursive_view(50000);
    char *svg = drawing_of(view, NULL);

    CHECK_EQ(count(svg, "data-v="), 257);
    CHECK(strstr(svg, "data-folded=\"49744\""));
    kiln_free(svg);
    kiln_view_free(view);
}

static struct kiln_view *captured(const char *name)
{
    struct kiln_batch *batch;
    size_t len;
    char *data = kiln_test_read(kiln_test_data(name), &len);

    if (!data)
        return NULL;
    CHECK_OK(kiln_decode((struct kiln_str){data, len}, NULL, &batch, NULL, NULL));
    free(data);
    return kiln_test_view(batch, NULL);
}

CAPTURE_TEST(svg, a_large_profile_stays_below_two_megabytes)
{
    struct kiln_view *view = captured("pprof/large.cpu.pb.gz");
    char *svg;

    if (!view)
        SKIP("no captures here");
    svg = drawing_of(view, NULL);
    CHECK(strlen(svg) < 2000000);
    kiln_free(svg);
    kiln_view_free(view);
}

TEST(svg, running_out_of_memory_is_an_error)
{
    struct kiln_view *view = cpu_view(NARROW);
    struct kiln_starved s = {0};
    struct kiln_buf out;

    while (kiln_test_starve(&s)) {
        kiln_buf_init(&out, 1u << 20);
        s.r = kiln_svg_encode_view(view, NULL, &out, NULL);
        kiln_buf_done(&out);
    }
    CHECK(s.n > 5);
    kiln_buf_init(&out, 1000);
    CHECK_EQ(kiln_svg_encode_view(view, NULL, &out, NULL), KILN_E_LIMIT);
    kiln_buf_done(&out);
    kiln_view_free(view);
}
