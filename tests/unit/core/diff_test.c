/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/mem.h"
#include "drawn.h"
#include "random_batch.h"
#include "starved.h"
#include "test.h"

static struct kiln_view *view_of(const char *stacks, uint64_t duration_ns)
{
    struct kiln_drawn drawn = {.stacks = stacks, .duration_ns = duration_ns};

    return kiln_test_view(kiln_test_batch(&drawn, 1), NULL);
}

struct compared {
    struct kiln_view *a, *b;
    struct kiln_diff *diff;
};

static struct compared compare(const char *a, uint64_t a_ns, const char *b, uint64_t b_ns,
                               enum kiln_normalize normalize)
{
    struct compared c = {view_of(a, a_ns), view_of(b, b_ns), NULL};

    CHECK_OK(kiln_diff_new(c.a, c.b, normalize, &c.diff, NULL));
    return c;
}

static void done(struct compared *c)
{
    kiln_diff_free(c->diff);
    kiln_view_free(c->a);
    kiln_view_free(c->b);
}

/* The rows as "name self_a->self_b", with ~ behind a self and ~~ behind a total within noise. */
static const char *rows_text(const struct kiln_diff *diff)
{
    static char text[4096];
    size_t n = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < diff->n_rows; i++) {
        const struct kiln_diff_row *row = &diff->rows[i];

        n += (size_t)snprintf(text + n, sizeof(text) - n, "%.*s %.6g->%lld%s%s\n",
                              KILN_STR_ARG(row->frame.name), row->self_a, (long long)row->self_b,
                              row->self_within_noise ? " ~" : "",
                              row->total_within_noise ? " ~~" : "");
    }
    return text;
}

TEST(diff, what_changed_most_comes_first_and_noise_last)
{
    struct compared c = compare("main;parse 1000\nmain;read 500\nmain;same 40\nmain;gone 100\n", 0,
                                "main;parse 1500\nmain;read 200\nmain;same 45\nmain;new 90\n", 0,
                                KILN_NORMALIZE_NONE);

    CHECK_TEXT(rows_text(c.diff), "parse 1000->1500\n"
                                  "read 500->200\n"
                                  "gone 100->0\n"
                                  "new 0->90\n"
                                  "main 0->0 ~\n"
                                  "same 40->45 ~ ~~\n");
    done(&c);
}

TEST(diff, rates_are_compared_where_both_durations_are_known)
{
    struct compared c =
        compare("main;parse 1000\n", 10, "main;parse 3000\n", 30, KILN_NORMALIZE_TIME);

    CHECK_EQ(c.diff->normalized, KILN_NORMALIZE_TIME);
    CHECK_EQ(c.diff->scale_a, 3);
    CHECK_EQ(c.diff->total_a, 3000);
    CHECK(c.diff->rows[0].self_within_noise);
    done(&c);
    c = compare("main;parse 1000\n", 10, "main;parse 3000\n", 0, KILN_NORMALIZE_TIME);
    CHECK_EQ(c.diff->normalized, KILN_NORMALIZE_NONE);
    CHECK_EQ(c.diff->scale_a, 1);
    CHECK(!c.diff->rows[0].self_within_noise);
    done(&c);
}

TEST(diff, shares_are_compared_against_the_same_total)
{
    struct compared c = compare("main;a 900\nmain;b 100\n", 0, "main;a 1800\nmain;b 200\n", 0,
                                KILN_NORMALIZE_TOTAL);

    CHECK_EQ(c.diff->scale_a, 2);
    CHECK_TEXT(rows_text(c.diff), "a 1800->1800 ~ ~~\nb 200->200 ~ ~~\nmain 0->0 ~ ~~\n");
    CHECK_EQ(c.diff->total_noise, 0);
    done(&c);
}

TEST(diff, few_observations_prove_nothing)
{
    struct compared c = compare("main;a 3\nmain;rest 1000\n", 0, "main;b 3\nmain;rest 1000\n", 0,
                                KILN_NORMALIZE_NONE);

    CHECK_TEXT(rows_text(c.diff), "a 3->0 ~ ~~\n"
                                  "b 0->3 ~ ~~\n"
                                  "main 0->0 ~ ~~\n"
                                  "rest 1000->1000 ~ ~~\n");
    done(&c);
}

TEST(diff, noise_is_poisson_by_observations)
{
    struct compared c = compare("main;a 100\n", 0, "main;a 120\n", 0, KILN_NORMALIZE_NONE);

    CHECK(fabs(c.diff->rows[0].self_noise - 1.959964 * sqrt(220)) < 1e-6);
    CHECK(fabs(c.diff->total_noise - 1.959964 * sqrt(220)) < 1e-6);
    CHECK(c.diff->rows[0].self_within_noise);
    done(&c);
}

TEST(diff, the_weight_of_an_observation_scales_its_noise)
{
    const struct kiln_drawn drawn[] = {
        {.stacks = "main;a 10000\n",
         .type = "alloc_space",
         .unit = "bytes",
         .period_type = "space",
         .period_unit = "bytes",
         .period = 1000},
        {.stacks = "main;a 14000\n",
         .type = "alloc_space",
         .unit = "bytes",
         .period_type = "space",
         .period_unit = "bytes",
         .period = 1000},
    };
    struct compared c = {kiln_test_view(kiln_test_batch(&drawn[0], 1), NULL),
                         kiln_test_view(kiln_test_batch(&drawn[1], 1), NULL), NULL};

    CHECK_OK(kiln_diff_new(c.a, c.b, KILN_NORMALIZE_TIME, &c.diff, NULL));
    CHECK(fabs(c.diff->rows[0].self_noise - 1.959964 * sqrt(24) * 1000) < 1e-3);
    CHECK(c.diff->rows[0].self_within_noise);
    done(&c);
}

TEST(diff, recursion_counts_once)
{
    struct compared c = compare("main;f;f 100\n", 0, "main;f;f 300\n", 0, KILN_NORMALIZE_NONE);

    CHECK_STR(c.diff->rows[0].frame.name, "f");
    CHECK_EQ(c.diff->rows[0].total_a, 100);
    CHECK_EQ(c.diff->rows[0].total_b, 300);
    done(&c);
}

TEST(diff, against_nothing_everything_is_new)
{
    struct compared c = compare("", 10, "main;f 300\n", 10, KILN_NORMALIZE_TOTAL);

    CHECK_EQ(c.diff->normalized, KILN_NORMALIZE_NONE);
    CHECK_TEXT(rows_text(c.diff), "f 0->300\nmain 0->0 ~\n");
    done(&c);
    c = compare("", 0, "", 0, KILN_NORMALIZE_TIME);
    CHECK_EQ(c.diff->n_rows, 0);
    CHECK_EQ(c.diff->total_noise, 0);
    done(&c);
}

TEST(diff, totals_of_opposite_signs_are_left_as_they_are)
{
    struct compared c = compare("main;freed -300\n", 0, "main;used 300\n", 0, KILN_NORMALIZE_TOTAL);

    assert_int_equal(c.diff->normalized, KILN_NORMALIZE_NONE);
    assert_true(c.diff->scale_a == 1);
    assert_true(c.diff->total_a == -300);
    done(&c);
}

TEST(diff, different_units_cannot_be_compared)
{
    const struct kiln_drawn bytes = {.stacks = "a 1\n", .type = "inuse_space", .unit = "bytes"};
    struct kiln_view *a = kiln_test_view(kiln_test_batch(&bytes, 1), NULL);
    struct kiln_view *b = view_of("a 1\n", 0);
    struct kiln_err err = {0};
    struct kiln_diff *diff;

    CHECK_EQ(kiln_diff_new(a, b, KILN_NORMALIZE_TIME, &diff, &err), KILN_E_NOMATCH);
    CHECK_TEXT(err.text, "samples:count cannot be compared with inuse_space:bytes");
    kiln_view_free(a);
    kiln_view_free(b);
}

TEST(diff, levels_are_not_normalised_by_time)
{
    const struct kiln_drawn drawn[] = {
        {.stacks = "a 10\n", .type = "inuse_space", .unit = "bytes", .duration_ns = 10},
        {.stacks = "a 10\n", .type = "inuse_space", .unit = "bytes", .duration_ns = 60},
    };
    struct compared c = {kiln_test_view(kiln_test_batch(&drawn[0], 1), NULL),
                         kiln_test_view(kiln_test_batch(&drawn[1], 1), NULL), NULL};

    CHECK_OK(kiln_diff_new(c.a, c.b, KILN_NORMALIZE_TIME, &c.diff, NULL));
    CHECK_EQ(c.diff->normalized, KILN_NORMALIZE_NONE);
    CHECK_EQ(c.diff->total_a, 10);
    done(&c);
}

TEST(diff, running_out_of_memory_leaks_nothing)
{
    struct kiln_view *a = view_of("main;a 3\n", 0), *b = view_of("main;b 4\n", 0);
    struct kiln_diff *diff = NULL;
    struct kiln_starved s = {0};

    while (kiln_test_starve(&s))
        s.r = kiln_diff_new(a, b, KILN_NORMALIZE_TOTAL, &diff, NULL);
    CHECK(s.n > 8);
    kiln_diff_free(diff);
    CHECK_EQ(kiln_mem_live(), s.live);
    kiln_view_free(a);
    kiln_view_free(b);
}

/* ---- noise that is noise ---- */

#define FUNCTIONS 400

/* `n` observations that fall on FUNCTIONS functions by chance; f0 gets `extra` more. */
static struct kiln_view *by_chance(struct dice *dice, uint32_t n, uint32_t extra)
{
    static char text[FUNCTIONS * 24];
    uint32_t hits[FUNCTIONS] = {extra};
    size_t len = 0;

    for (uint32_t i = 0; i < n; i++)
        hits[dice_roll(dice, 1 + dice_roll(dice, FUNCTIONS))]++;
    for (uint32_t i = 0; i < FUNCTIONS; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "main;f%u %u\n", i, hits[i]);
    return view_of(text, 0);
}

static uint32_t beyond_noise(const struct kiln_diff *diff)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < diff->n_rows; i++)
        n += !diff->rows[i].self_within_noise;
    return n;
}

TEST(diff, chance_alone_is_called_a_change_about_once_in_twenty)
{
    struct dice dice = {.state = 7};
    enum kiln_normalize normalize[] = {KILN_NORMALIZE_NONE, KILN_NORMALIZE_TOTAL};

    for (uint32_t i = 0; i < 20; i++) {
        struct compared c = {by_chance(&dice, 20000, 0), by_chance(&dice, 20000, 0), NULL};

        CHECK_OK(kiln_diff_new(c.a, c.b, normalize[i % 2], &c.diff, NULL));
        CHECK(beyond_noise(c.diff) < FUNCTIONS / 10);
        done(&c);
    }
}

TEST(diff, a_real_change_stands_out_of_chance)
{
    struct dice dice = {.state = 7};
    struct compared c = {by_chance(&dice, 20000, 0), by_chance(&dice, 20000, 800), NULL};

    CHECK_OK(kiln_diff_new(c.a, c.b, KILN_NORMALIZE_TOTAL, &c.diff, NULL));
    CHECK_STR(c.diff->rows[0].frame.name, "f0");
    CHECK(!c.diff->rows[0].self_within_noise);
    done(&c);
}
