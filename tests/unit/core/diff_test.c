/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/mem.h"
#include "drawn.h"
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
