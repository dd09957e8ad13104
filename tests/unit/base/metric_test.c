/* SPDX-License-Identifier: Apache-2.0 */
#include "base/metric.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "test.h"

static struct kiln_metrics *fresh(void)
{
    struct kiln_metrics *metrics;

    CHECK_OK(kiln_metrics_new(&metrics));
    return metrics;
}

/* The text without the metric about metrics, which is always there. */
static void check_shown(struct kiln_metrics *metrics, const char *expected)
{
    struct kiln_buf out;
    char *start, *end;

    kiln_buf_init(&out, 1 << 20);
    kiln_metrics_format(metrics, &out);
    kiln_buf_putc(&out, '\0');
    CHECK_EQ(out.error, 0);
    start = strstr(out.ptr, "# HELP kiln_metrics_overflow_total");
    CHECK(start != NULL);
    end = strstr(start, "\nkiln_metrics_overflow_total 0\n");
    CHECK(end != NULL);
    end += strlen("\nkiln_metrics_overflow_total 0\n");
    memmove(start, end, strlen(end) + 1);
    CHECK_TEXT(out.ptr, expected);
    kiln_buf_done(&out);
}

static bool shows(struct kiln_metrics *metrics, const char *line)
{
    struct kiln_buf out;
    bool found;

    kiln_buf_init(&out, 8 << 20);
    kiln_metrics_format(metrics, &out);
    kiln_buf_putc(&out, '\0');
    found = strstr(out.ptr, line) != NULL;
    kiln_buf_done(&out);
    return found;
}

TEST(metric, families_are_sorted_and_have_help_and_type_once)
{
    struct kiln_metrics *metrics = fresh();

    kiln_metric_add(
        kiln_metric_get(metrics, KILN_COUNTER, "b_total", "Things.", KILN_LABELS("reason", "old")),
        2);
    kiln_metric_set(kiln_metric_get(metrics, KILN_GAUGE, "a", "A level.", NULL), 0.25);
    kiln_metric_add(kiln_metric_get(metrics, KILN_COUNTER, "b_total", "Things.",
                                    KILN_LABELS("reason", "large", "tenant", "x")),
                    5);
    check_shown(metrics, "# HELP a A level.\n# TYPE a gauge\na 0.25\n"
                         "# HELP b_total Things.\n# TYPE b_total counter\n"
                         "b_total{reason=\"large\",tenant=\"x\"} 5\n"
                         "b_total{reason=\"old\"} 2\n");
    kiln_metrics_free(metrics);
}

TEST(metric, texts_of_strangers_are_escaped)
{
    struct kiln_metrics *metrics = fresh();

    kiln_metric_add(kiln_metric_get(metrics, KILN_COUNTER, "x_total", "One \\ two\nthree \"four\".",
                                    KILN_LABELS("t", "a\"b\\c\nd\xff")),
                    1);
    check_shown(metrics, "# HELP x_total One \\\\ two\\nthree \"four\".\n# TYPE x_total counter\n"
                         "x_total{t=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\"} 1\n");
    kiln_metrics_free(metrics);
}

TEST(metric, asking_twice_gives_the_same_one)
{
    struct kiln_metrics *metrics = fresh();
    struct kiln_metric *a =
        kiln_metric_get(metrics, KILN_COUNTER, "a_total", "A.", KILN_LABELS("x", "1"));

    CHECK(a == kiln_metric_get(metrics, KILN_COUNTER, "a_total", "A.", KILN_LABELS("x", "1")));
    CHECK(a != kiln_metric_get(metrics, KILN_COUNTER, "a_total", "A.", KILN_LABELS("x", "2")));
    CHECK(a != kiln_metric_get(metrics, KILN_COUNTER, "a_total", "A.", NULL));
    kiln_metric_add(a, 3);
    CHECK_EQ(kiln_metric_value(a), 3);
    kiln_metrics_free(metrics);
}

TEST(metric, a_gauge_goes_up_and_down)
{
    struct kiln_metrics *metrics = fresh();
    struct kiln_metric *gauge = kiln_metric_get(metrics, KILN_GAUGE, "g", "G.", NULL);

    kiln_metric_set(gauge, 1.5);
    kiln_metric_add(gauge, -2);
    CHECK(kiln_metric_value(gauge) == -0.5);
    kiln_metric_set(gauge, INFINITY);
    CHECK(shows(metrics, "\ng +Inf\n"));
    kiln_metric_set(gauge, NAN);
    CHECK(shows(metrics, "\ng NaN\n"));
    kiln_metric_set(gauge, 1e300);
    CHECK(shows(metrics, "\ng 1e+300\n"));
    kiln_metrics_free(metrics);
}

TEST(metric, a_histogram_counts_into_buckets_that_add_up)
{
    struct kiln_metrics *metrics = fresh();
    struct kiln_metric *h =
        kiln_metric_get(metrics, KILN_HISTOGRAM, "h_seconds", "H.", KILN_LABELS("op", "sync"));

    kiln_metric_observe(h, 0.0000625);
    kiln_metric_observe(h, 0.0001);
    kiln_metric_observe(h, 1.0);
    kiln_metric_observe(h, 100);
    kiln_metric_observe(h, -1);
    CHECK(shows(metrics, "# TYPE h_seconds histogram\n"));
    CHECK(shows(metrics, "\nh_seconds_bucket{op=\"sync\",le=\"6.25e-05\"} 2\n"));
    CHECK(shows(metrics, "\nh_seconds_bucket{op=\"sync\",le=\"0.000125\"} 3\n"));
    CHECK(shows(metrics, "\nh_seconds_bucket{op=\"sync\",le=\"65.536\"} 4\n"));
    CHECK(shows(metrics, "\nh_seconds_bucket{op=\"sync\",le=\"+Inf\"} 5\n"));
    CHECK(shows(metrics, "\nh_seconds_sum{op=\"sync\"} 101.0001625\n"));
    CHECK(shows(metrics, "\nh_seconds_count{op=\"sync\"} 5\n"));
    CHECK_EQ(kiln_metric_value(h), 5);
    kiln_metrics_free(metrics);
}

TEST(metric, histograms_of_counts_and_bytes_have_buckets_of_their_own)
{
    struct kiln_metrics *metrics = fresh();
    struct kiln_metric *items = kiln_metric_get(metrics, KILN_HISTOGRAM_ITEMS, "i", "I.", NULL);
    struct kiln_metric *bytes = kiln_metric_get(metrics, KILN_HISTOGRAM_BYTES, "b", "B.", NULL);

    kiln_metric_observe(items, 10);
    kiln_metric_observe(items, 70000);
    kiln_metric_observe(items, 1e6);
    kiln_metric_observe(bytes, 129);
    kiln_metric_observe(bytes, 16777216);
    CHECK(shows(metrics, "# TYPE i histogram\ni_bucket{le=\"10\"} 1\ni_bucket{le=\"25\"} 1\n"));
    CHECK(shows(metrics, "\ni_bucket{le=\"50000\"} 1\ni_bucket{le=\"100000\"} 2\n"
                         "i_bucket{le=\"+Inf\"} 3\ni_sum 1070010\ni_count 3\n"));
    CHECK(shows(metrics, "\nb_bucket{le=\"128\"} 0\nb_bucket{le=\"256\"} 1\n"));
    CHECK(shows(metrics, "\nb_bucket{le=\"8388608\"} 1\nb_bucket{le=\"16777216\"} 2\n"
                         "b_bucket{le=\"+Inf\"} 2\nb_sum 16777345\nb_count 2\n"));
    kiln_metrics_free(metrics);
}

TEST(metric, details_are_kept_where_they_are_wanted)
{
    struct kiln_metrics *metrics = fresh();
    struct kiln_metric *detail = kiln_metric_detail(metrics, KILN_COUNTER, "d", "D.", NULL);

    kiln_metric_add(detail, 1);
    CHECK(!kiln_metric_is_kept(detail));
    CHECK(!shows(metrics, "\nd "));
    kiln_metrics_want_details(metrics, true);
    detail = kiln_metric_detail(metrics, KILN_COUNTER, "d", "D.", NULL);
    kiln_metric_add(detail, 1);
    CHECK(kiln_metric_is_kept(detail));
    CHECK(shows(metrics, "\nd 1\n"));
    CHECK(!kiln_metric_is_kept(kiln_metric_detail(NULL, KILN_COUNTER, "d", "D.", NULL)));
    kiln_metrics_free(metrics);
}

TEST(metric, a_counter_that_is_kept_elsewhere_may_have_decimals)
{
    struct kiln_metrics *metrics = fresh();

    kiln_metric_set(kiln_metric_get(metrics, KILN_COUNTER, "cpu_seconds_total", "C.", NULL), 1.25);
    CHECK(shows(metrics, "# TYPE cpu_seconds_total counter\ncpu_seconds_total 1.25\n"));
    kiln_metrics_free(metrics);
}

static void collect(void *context)
{
    kiln_metric_add(context, 1);
}

TEST(metric, collectors_run_before_the_text_is_made)
{
    struct kiln_metrics *metrics = fresh();

    kiln_metrics_on_collect(metrics, collect,
                            kiln_metric_get(metrics, KILN_GAUGE, "g", "G.", NULL));
    CHECK(shows(metrics, "\ng 1\n"));
    CHECK(shows(metrics, "\ng 2\n"));
    kiln_metrics_free(metrics);
}

TEST(metric, whoever_is_not_measured_may_count_all_the_same)
{
    struct kiln_metric *metric =
        kiln_metric_get(NULL, KILN_HISTOGRAM, "x", "X.", KILN_LABELS("a", "b"));

    CHECK(metric != NULL);
    kiln_metric_add(metric, 1);
    kiln_metric_set(metric, 1);
    kiln_metric_observe(metric, 1);
    kiln_metric_add(NULL, 1);
    kiln_metric_set(NULL, 1);
    kiln_metric_observe(NULL, 1);
    CHECK(kiln_metric_value(NULL) == 0);
    kiln_metrics_on_collect(NULL, collect, NULL);
    kiln_metrics_format(NULL, NULL);
    kiln_metrics_free(NULL);
}

TEST(metric, past_the_limit_one_metric_takes_all_and_says_so)
{
    struct kiln_metrics *metrics = fresh();
    char number[16];

    for (int i = 0; i < 10010; i++) {
        snprintf(number, sizeof(number), "%d", i);
        kiln_metric_add(
            kiln_metric_get(metrics, KILN_COUNTER, "x_total", "X.", KILN_LABELS("n", number)), 1);
    }
    CHECK(shows(metrics, "\nx_total{n=\"9998\"} 1\n"));
    CHECK(!shows(metrics, "\nx_total{n=\"9999\"} "));
    CHECK(shows(metrics, "\nkiln_metrics_overflow_total 11\n"));
    kiln_metrics_free(metrics);
}

TEST(metric, another_kind_of_the_same_name_is_not_shown)
{
    struct kiln_metrics *metrics = fresh();

    kiln_metric_add(kiln_metric_get(metrics, KILN_COUNTER, "x_total", "X.", NULL), 1);
    kiln_metric_set(kiln_metric_get(metrics, KILN_GAUGE, "x_total", "X.", NULL), 7);
    CHECK(shows(metrics, "\nx_total 1\n"));
    CHECK(shows(metrics, "\nkiln_metrics_overflow_total 1\n"));
    kiln_metrics_free(metrics);
}

TEST(metric, asking_does_without_memory)
{
    struct kiln_metrics *metrics = fresh();

    for (uint64_t n = 1;; n++) {
        kiln_mem_fail_at(n);
        kiln_metric_observe(
            kiln_metric_get(metrics, KILN_HISTOGRAM, "h", "H.", KILN_LABELS("a", "b")), 1);
        if (!kiln_mem_failed())
            break;
    }
    kiln_mem_fail_at(0);
    kiln_metrics_free(metrics);
}

enum { THREADS = 4, ROUNDS = 2000 };

static void *count(void *arg)
{
    struct kiln_metrics *metrics = arg;
    char number[16];

    for (int i = 0; i < ROUNDS; i++) {
        snprintf(number, sizeof(number), "%d", i % 50);
        kiln_metric_add(
            kiln_metric_get(metrics, KILN_COUNTER, "a_total", "A.", KILN_LABELS("n", number)), 1);
        kiln_metric_add(kiln_metric_get(metrics, KILN_GAUGE, "g", "G.", NULL), 1);
        kiln_metric_observe(kiln_metric_get(metrics, KILN_HISTOGRAM, "h", "H.", NULL), 0.001);
        if (i % 500 == 0)
            shows(metrics, "x");
    }
    return NULL;
}

TEST(metric, nothing_is_lost_among_threads)
{
    struct kiln_metrics *metrics = fresh();
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        CHECK_OK(pthread_create(&threads[i], NULL, count, metrics));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK(shows(metrics, "\na_total{n=\"7\"} 160\n"));
    CHECK(shows(metrics, "\ng 8000\n"));
    CHECK(shows(metrics, "\nh_count 8000\n"));
    kiln_metrics_free(metrics);
}

struct pair {
    struct kiln_metrics *metrics;
    struct kiln_metric *in, *left;
    _Atomic bool stop;
};

static void *move(void *arg)
{
    struct pair *pair = arg;

    while (!atomic_load(&pair->stop))
        kiln_metrics_change(pair->metrics,
                            (struct kiln_metric_change[]){{pair->in, 1}, {pair->left, -1}}, 2);
    return NULL;
}

static void add_up(void *context, const struct kiln_metric_shown *metric)
{
    if (kiln_str_eq(metric->name, KILN_STR("in_total")) ||
        kiln_str_eq(metric->name, KILN_STR("left")))
        *(double *)context += metric->value;
}

TEST(metric, what_is_changed_in_one_step_always_adds_up)
{
    struct pair pair = {.metrics = fresh()};
    pthread_t threads[2];

    pair.in = kiln_metric_counter(pair.metrics, "in_total", "In.");
    pair.left = kiln_metric_gauge(pair.metrics, "left", "Left.");
    kiln_metric_set(pair.left, 1 << 30);
    for (int i = 0; i < 2; i++)
        CHECK_OK(pthread_create(&threads[i], NULL, move, &pair));
    for (int i = 0; i < 2000; i++) {
        double sum = 0;

        kiln_metrics_each(pair.metrics, add_up, &sum);
        CHECK_EQ(sum, 1 << 30);
    }
    atomic_store(&pair.stop, true);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    kiln_metrics_free(pair.metrics);
}

/* ---- visiting ---- */

struct visited {
    int n;
    double sum;
    char labels[64];
};

static void visit(void *context, const struct kiln_metric_shown *metric)
{
    struct visited *visited = context;

    if (!kiln_str_eq(metric->name, KILN_STR("v_total")))
        return;
    visited->n++;
    visited->sum += metric->value;
    snprintf(visited->labels, sizeof(visited->labels), "%.*s", KILN_STR_ARG(metric->labels));
}

static void set_to_seven(void *context)
{
    kiln_metric_set(kiln_metric_get(context, KILN_COUNTER, "v_total", "V.", KILN_LABELS("a", "b")),
                    7);
}

TEST(metric, all_can_be_visited_and_brought_up_to_date_before)
{
    struct kiln_metrics *metrics = fresh();
    struct visited visited = {0};

    kiln_metrics_on_collect(metrics, set_to_seven, metrics);
    kiln_metrics_each(metrics, visit, &visited);
    CHECK_EQ(visited.n, 0);
    kiln_metrics_collect(metrics);
    kiln_metrics_each(metrics, visit, &visited);
    CHECK_EQ(visited.n, 1);
    CHECK(visited.sum == 7);
    CHECK_TEXT(visited.labels, "a=\"b\"");
    kiln_metrics_collect(NULL);
    kiln_metrics_each(NULL, visit, &visited);
    CHECK_EQ(visited.n, 1);
    kiln_metrics_free(metrics);
}
