/* SPDX-License-Identifier: Apache-2.0 */
/* Forests of stacks that are given as numbers, printed as what each stack shares and has. */
#include "store/forest.h"

#include "base/buf.h"
#include "starved.h"
#include "test.h"

/* Stacks by letters: "ab abc b"; 'a' is name 0. */
struct drawn {
    uint32_t names[256], starts[64];
    uint32_t n;
};

static struct drawn draw(const char *text)
{
    struct drawn d = {0};
    uint32_t at = 0;

    for (d.n = 1; *text; text++) {
        if (*text == ' ')
            d.starts[d.n++] = at;
        else
            d.names[at++] = (uint32_t)(*text - 'a');
    }
    d.starts[d.n] = at;
    return d;
}

static int make(const struct drawn *d, struct kiln_forest **ret_forest)
{
    struct kiln_forest_maker maker;
    int r = kiln_forest_maker_init(&maker, SIZE_MAX);

    if (r < 0)
        return r;
    maker.forest->namer.n_names = 26; /* nobody asks what they are */
    return kiln_forest_of_names(&maker, d->names, d->starts, d->n, ret_forest);
}

/* "shared+own" of each stack in order, a capital where the name recurs; then ranks. */
static const char *text_of(const struct kiln_forest *f, uint32_t n)
{
    static char text[1024];
    struct kiln_buf out;

    kiln_buf_init(&out, sizeof(text) - 1);
    for (uint32_t i = 0; i < f->n_stacks; i++) {
        kiln_buf_printf(&out, "%s%u+", i ? " " : "", f->stacks[i].shared);
        for (uint32_t k = f->first[i]; k < f->first[i + 1]; k++)
            kiln_buf_putc(&out, (char)((f->own[k] & KILN_FOREST_AGAIN ? 'A' : 'a') +
                                       (f->own[k] & KILN_FOREST_NAME)));
    }
    kiln_buf_puts(&out, " |");
    for (uint32_t i = 0; i < n; i++)
        kiln_buf_printf(&out, " %u", f->rank[i]);
    snprintf(text, sizeof(text), "%.*s", KILN_STR_ARG(kiln_buf_str(&out)));
    kiln_buf_done(&out);
    return text;
}

static const char *forest_text(const char *stacks)
{
    struct drawn d = draw(stacks);
    struct kiln_forest *forest;
    const char *text;

    CHECK_OK(make(&d, &forest));
    text = text_of(forest, d.n);
    forest->namer.n_names = 0;
    kiln_forest_unref(forest);
    return text;
}

TEST(forest, stacks_are_sorted_and_have_what_they_do_not_share)
{
    CHECK_TEXT(forest_text("abc a b abd ab"), "0+a 1+b 2+c 2+d 0+b | 2 0 4 3 1");
}

TEST(forest, equal_stacks_are_one)
{
    CHECK_TEXT(forest_text("ab ab a ab"), "0+a 1+b | 1 1 0 1");
}

TEST(forest, an_empty_stack_comes_first)
{
    CHECK_TEXT(forest_text("b "), "0+ 0+b | 1 0");
}

TEST(forest, a_name_that_is_on_the_path_already_is_marked)
{
    CHECK_TEXT(forest_text("aba abb ba"), "0+abA 2+B 0+ba | 0 1 2");
}

TEST(forest, siblings_and_ends_are_found_by_jumping)
{
    struct drawn d = draw("a ab abc abd ac b");
    struct kiln_forest *f;

    CHECK_OK(make(&d, &f));
    CHECK_EQ(f->n_stacks, 6);
    CHECK_EQ(f->stacks[0].next, 5); /* a: up to b */
    CHECK_EQ(f->stacks[1].next, 4); /* ab: its sibling is ac */
    CHECK_EQ(f->stacks[1].below, 5);
    CHECK_EQ(f->stacks[2].next, 3);
    CHECK_EQ(f->stacks[2].below, 4);
    CHECK_EQ(f->stacks[5].next, 6);
    CHECK_EQ(kiln_forest_length(f, 3), 3);
    kiln_forest_unref(f);
}

TEST(forest, many_random_stacks_come_back)
{
    uint64_t dice = 1;

    for (uint32_t round = 0; round < 200; round++) {
        struct drawn d = {0};
        struct kiln_forest *f;
        uint32_t at = 0;

        for (d.n = 0; d.n < 40; d.n++) {
            uint32_t length = (uint32_t)((dice = dice * 6364136223846793005u + 1) >> 33) % 6;

            d.starts[d.n] = at;
            for (uint32_t k = 0; k < length; k++)
                d.names[at++] = (uint32_t)((dice = dice * 6364136223846793005u + 1) >> 33) % 3;
        }
        d.starts[d.n] = at;
        CHECK_OK(make(&d, &f));
        for (uint32_t i = 0; i < d.n; i++) {
            uint32_t rank = f->rank[i], length = d.starts[i + 1] - d.starts[i];
            uint32_t holder = rank;

            CHECK_EQ(kiln_forest_length(f, rank), length);
            for (uint32_t k = length; k-- > 0;) {
                while (f->stacks[holder].shared > k)
                    holder--;
                CHECK_EQ(kiln_forest_name(f, holder, k), d.names[d.starts[i] + k]);
            }
        }
        kiln_forest_unref(f);
    }
}

TEST(forest, running_out_of_memory_leaves_nothing_behind)
{
    struct drawn d = draw("abcabcabc ab abd aaaaaaaa b ba bc d efg");
    struct kiln_starved s = {0};
    struct kiln_forest *f = NULL;

    while (kiln_test_starve(&s))
        s.r = make(&d, &f);
    CHECK(s.n > 4);
    kiln_forest_unref(f);
}
