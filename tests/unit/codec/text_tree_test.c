/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees are compared with the files tests/golden/text_tree_*.txt; KILN_UPDATE_GOLDEN=1 writes them
 * anew instead.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/text_tree.h"
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

static char *text_of(const struct kiln_view *view, const struct kiln_text_tree_opts *opts)
{
    struct kiln_buf out;

    kiln_buf_init(&out, 64u << 20);
    CHECK_OK(kiln_text_tree_encode_view(view, opts, &out, NULL));
    return take_text(&out);
}

/* Compares with a golden file, or writes it. */
static void check_golden(const char *name, char *text)
{
    char path[4096], *wanted;
    size_t len;

    snprintf(path, sizeof(path), "%s/tests/golden/text_tree_%s.txt", KILN_SOURCE_DIR, name);
    if (getenv("KILN_UPDATE_GOLDEN")) {
        FILE *file = fopen(path, "w");

        CHECK(file != NULL);
        fputs(text, file);
        fclose(file);
    }
    wanted = kiln_test_read(path, &len);
    CHECK(wanted != NULL);
    CHECK_TEXT(text, wanted);
    free(wanted);
    kiln_free(text);
}

#define STACKS                                                                                     \
    "main;handleRequest;parseJSON;decodeUTF8 2500000000\n"                                         \
    "main;handleRequest;parseJSON 700000000\n"                                                     \
    "main;handleRequest;validateInput 600000000\n"                                                 \
    "main;handleRequest;writeResponse 400000000\n"                                                 \
    "main;handleRequest;log 30000000\n"                                                            \
    "main;idle;poll@poll.c:12 5000000000\n"                                                        \
    "runtime.gc 770000000\n"

TEST(text_tree, a_tree_is_drawn_with_lines_and_bars)
{
    struct kiln_view *view = cpu_view(STACKS);

    check_golden("plain", text_of(view, &(struct kiln_text_tree_opts){.title = "checkout"}));
    kiln_view_free(view);
}

TEST(text_tree, small_and_deep_frames_are_left_out_and_counted)
{
    struct kiln_view *view = cpu_view(STACKS);

    check_golden("cut",
                 text_of(view, &(struct kiln_text_tree_opts){.depth_max = 2, .min_share = 0.1}));
    kiln_view_free(view);
}

TEST(text_tree, it_can_do_without_box_drawing)
{
    struct kiln_view *view = cpu_view(STACKS);

    check_golden("ascii", text_of(view, &(struct kiln_text_tree_opts){.ascii = true}));
    kiln_view_free(view);
}

TEST(text_tree, a_terminal_gets_colours)
{
    struct kiln_view *view = cpu_view(STACKS);

    check_golden("colour", text_of(view, &(struct kiln_text_tree_opts){.colour = true}));
    kiln_view_free(view);
}

TEST(text_tree, a_diff_shows_what_grew_and_shrank)
{
    struct kiln_view *a = cpu_view(STACKS);
    struct kiln_view *b = cpu_view("main;handleRequest;parseJSON;decodeUTF8 5200000000\n"
                                   "main;handleRequest;parseJSON 710000000\n"
                                   "main;handleRequest;compress 300000000\n"
                                   "main;idle;poll@poll.c:12 3000000000\n"
                                   "runtime.gc 770000000\n");
    struct kiln_tree *tree;
    struct kiln_buf out;

    for (uint32_t i = 0; i < a->n_rows; i++)
        a->rows[i].count = (double)a->rows[i].value / 1e7;
    for (uint32_t i = 0; i < b->n_rows; i++)
        b->rows[i].count = (double)b->rows[i].value / 1e7;
    CHECK_OK(kiln_tree_new_diff(a, b, 1, &(struct kiln_tree_opts){0}, &tree, NULL));
    kiln_buf_init(&out, 1u << 20);
    CHECK_OK(kiln_text_tree_encode(b, tree, NULL, &out, NULL));
    check_golden("diff", take_text(&out));
    kiln_tree_free(tree);
    kiln_view_free(a);
    kiln_view_free(b);
}

TEST(text_tree, in_a_narrow_place_names_lose_their_package_first)
{
    struct kiln_view *view =
        cpu_view("main 1\nmain;encoding/json.(*decodeState).object 2\nmain;encoding/json.read 1\n");
    char *text = text_of(view, &(struct kiln_text_tree_opts){.name_chars = 32, .fit = true});

    CHECK(strstr(text, "├─ json.(*decodeState).object\n"));
    CHECK(strstr(text, "└─ encoding/json.read\n"));
    kiln_free(text);
    kiln_view_free(view);
}

TEST(text_tree, hostile_names_reach_no_terminal)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct kiln_view *view = kiln_test_hostile_view(seed);
        char *text = text_of(view, &(struct kiln_text_tree_opts){.min_share = -1});

        CHECK(kiln_utf8_valid(kiln_str_of(text)));
        for (const char *c = text; *c; c++)
            CHECK(*c == '\n' || (unsigned char)*c >= ' ');
        kiln_free(text);
        kiln_view_free(view);
    }
}

TEST(text_tree, running_out_of_memory_is_an_error)
{
    struct kiln_view *view = cpu_view(STACKS);
    struct kiln_starved s = {0};
    struct kiln_buf out;

    while (kiln_test_starve(&s)) {
        kiln_buf_init(&out, 1u << 20);
        s.r = kiln_text_tree_encode_view(view, NULL, &out, NULL);
        kiln_buf_done(&out);
    }
    CHECK(s.n > 5);
    kiln_view_free(view);
}
