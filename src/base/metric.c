/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A metric is found by its series: name{label="value",...}, as it is shown, through a table of
 * chains.  It never moves and is never removed, so that whoever asked for it keeps a pointer.  The
 * lock is held to ask and to show; adding takes none.
 *
 * The text is Prometheus' 0.0.4: for each name a line of HELP and of TYPE, then its series.
 */
#include "base/metric.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"

enum {
    CHAINS = 1024,
    METRICS_MAX = 10000,
    SERIES_MAX = 4096, /* bytes of a name and its labels */
    BUCKETS_MAX = 22,  /* and then +Inf */
};

static const double second_bounds[] = {
    0.0000625, 0.000125, 0.00025, 0.0005, 0.001, 0.002, 0.004, 0.008,  0.016,  0.032, 0.064,
    0.128,     0.256,    0.512,   1.024,  2.048, 4.096, 8.192, 16.384, 32.768, 65.536};
static const double item_bounds[] = {10,   25,   50,   75,   100,  250,  500, 750, 1000, 2000, 3000,
                                     4000, 5000, 6000, 7000, 8000, 9000, 1e4, 2e4, 3e4,  5e4,  1e5};
static const double byte_bounds[] = {128,    256,     512,     1024,    2048,    4096,
                                     8192,   16384,   32768,   65536,   131072,  262144,
                                     524288, 1048576, 2097152, 4194304, 8388608, 16777216};

static const struct scale {
    const double *bounds;
    uint32_t n;
    double most, parts; /* of one that is added to the sum, which is kept in so many parts */
} scales[] = {
    [KILN_HISTOGRAM] = {second_bounds, KILN_ARRAY_LEN(second_bounds), 1e6, 1e9},
    [KILN_HISTOGRAM_ITEMS] = {item_bounds, KILN_ARRAY_LEN(item_bounds), 1e15, 1},
    [KILN_HISTOGRAM_BYTES] = {byte_bounds, KILN_ARRAY_LEN(byte_bounds), 1e15, 1},
};

struct histogram {
    _Atomic uint64_t buckets[BUCKETS_MAX + 1];
    _Atomic int64_t sum;
};

struct kiln_metric {
    struct kiln_metric *next; /* in the chain */
    enum kiln_metric_kind kind;
    const char *help; /* all texts stand behind the structure */
    struct kiln_str name;
    struct kiln_str labels; /* escaped, without the braces */
    _Atomic int64_t count;  /* counter: what was added */
    _Atomic double level;   /* what was set; of a gauge also what was added */
    struct histogram *histogram;
};

struct collector {
    struct collector *next;
    void (*collect)(void *context);
    void *context;
};

struct kiln_metrics {
    pthread_mutex_t lock;
    struct kiln_metric *chains[CHAINS];
    struct kiln_metric **list;
    uint32_t n, cap;
    bool sorted;
    _Atomic bool details;
    struct kiln_budget budget; /* of the list, which METRICS_MAX bounds */
    struct kiln_metric *overflow;
    struct collector *_Atomic collectors; /* only ever grows at its head */
};

/* Not shown, for whoever is not measured. */
static struct kiln_metric nobody = {.help = "", .kind = KILN_COUNTER};

int kiln_metrics_new(struct kiln_metrics **ret_metrics)
{
    struct kiln_metrics *metrics = kiln_calloc(1, sizeof(*metrics));

    if (!metrics)
        return -ENOMEM;
    pthread_mutex_init(&metrics->lock, NULL);
    metrics->budget.limit = SIZE_MAX;
    metrics->overflow = &nobody;
    metrics->overflow = kiln_metric_get(metrics, KILN_COUNTER, "kiln_metrics_overflow_total",
                                        "Askings for a metric that is not shown: too many of them, "
                                        "or no memory.",
                                        NULL);
    if (metrics->overflow == &nobody) {
        kiln_metrics_free(metrics);
        return -ENOMEM;
    }
    *ret_metrics = metrics;
    return 0;
}

void kiln_metrics_free(struct kiln_metrics *metrics)
{
    if (!metrics)
        return;
    for (uint32_t i = 0; i < metrics->n; i++) {
        kiln_free(metrics->list[i]->histogram);
        kiln_free(metrics->list[i]);
    }
    kiln_array_free(&metrics->budget, (void **)&metrics->list, &metrics->cap,
                    sizeof(*metrics->list));
    for (struct collector *c = metrics->collectors, *next; c; c = next) {
        next = c->next;
        kiln_free(c);
    }
    pthread_mutex_destroy(&metrics->lock);
    kiln_free(metrics);
}

/* ---- asking ---- */

static void add_escaped(struct kiln_buf *out, const char *text, bool quotes)
{
    for (const char *at = text;; at++) {
        if (*at && *at != '\\' && *at != '\n' && !(quotes && *at == '"'))
            continue;
        kiln_buf_add_utf8(out, (struct kiln_str){text, (size_t)(at - text)});
        if (!*at)
            return;
        kiln_buf_putc(out, '\\');
        kiln_buf_putc(out, *at == '\n' ? 'n' : *at);
        text = at + 1;
    }
}

static void add_labels(struct kiln_buf *out, const char *const *labels)
{
    for (const char *const *l = labels; l && l[0]; l += 2) {
        if (l != labels)
            kiln_buf_putc(out, ',');
        kiln_buf_printf(out, "%s=\"", l[0]);
        add_escaped(out, l[1] ? l[1] : "", true);
        kiln_buf_putc(out, '"');
        if (!l[1]) /* where the value is missing the list ends as well */
            return;
    }
}

/* `series` is the name and then the labels; the first `name_len` bytes of it are the name. */
static struct kiln_metric *make(enum kiln_metric_kind kind, struct kiln_str series, size_t name_len,
                                const char *help)
{
    size_t help_len = strlen(help);
    struct kiln_metric *metric = kiln_calloc(1, sizeof(*metric) + series.len + help_len + 1);
    char *text;

    if (!metric)
        return NULL;
    text = (char *)(metric + 1);
    memcpy(text, series.ptr, series.len);
    memcpy(text + series.len, help, help_len + 1);
    metric->kind = kind;
    metric->name = (struct kiln_str){text, name_len};
    metric->labels = (struct kiln_str){text + name_len, series.len - name_len};
    metric->help = text + series.len;
    if (kind < KILN_HISTOGRAM)
        return metric;
    metric->histogram = kiln_calloc(1, sizeof(*metric->histogram));
    if (!metric->histogram) {
        kiln_free(metric);
        return NULL;
    }
    return metric;
}

static bool is(const struct kiln_metric *metric, struct kiln_str series, size_t name_len)
{
    return metric->name.len == name_len && metric->name.len + metric->labels.len == series.len &&
           memcmp(metric->name.ptr, series.ptr, series.len) == 0;
}

/* Under the lock.  NULL: no memory, too many, or another kind of the same name. */
static struct kiln_metric *find_or_make(struct kiln_metrics *metrics, enum kiln_metric_kind kind,
                                        struct kiln_str series, size_t name_len, const char *help)
{
    struct kiln_metric **chain = &metrics->chains[kiln_hash(series.ptr, series.len) % CHAINS];
    struct kiln_metric *metric;

    for (metric = *chain; metric; metric = metric->next) {
        if (is(metric, series, name_len))
            return metric->kind == kind ? metric : NULL;
    }
    if (kiln_grow(&metrics->budget, (void **)&metrics->list, &metrics->cap,
                  (uint64_t)metrics->n + 1, sizeof(struct kiln_metric *), METRICS_MAX) < 0)
        return NULL;
    metric = make(kind, series, name_len, help);
    if (!metric)
        return NULL;
    metric->next = *chain;
    *chain = metric;
    metrics->list[metrics->n++] = metric;
    metrics->sorted = false;
    return metric;
}

struct kiln_metric *kiln_metric_get(struct kiln_metrics *metrics, enum kiln_metric_kind kind,
                                    const char *name, const char *help, const char *const *labels)
{
    struct kiln_metric *metric = NULL;
    struct kiln_buf series;

    if (!metrics)
        return &nobody;
    kiln_buf_init(&series, SERIES_MAX);
    kiln_buf_puts(&series, name);
    add_labels(&series, labels);
    if (!series.error) {
        pthread_mutex_lock(&metrics->lock);
        metric = find_or_make(metrics, kind, kiln_buf_str(&series), strlen(name), help);
        pthread_mutex_unlock(&metrics->lock);
    }
    kiln_buf_done(&series);
    if (!metric)
        kiln_metric_add(metrics->overflow, 1);
    return metric ? metric : &nobody;
}

struct kiln_metric *kiln_metric_detail(struct kiln_metrics *metrics, enum kiln_metric_kind kind,
                                       const char *name, const char *help,
                                       const char *const *labels)
{
    return metrics && atomic_load(&metrics->details)
               ? kiln_metric_get(metrics, kind, name, help, labels)
               : &nobody;
}

void kiln_metrics_want_details(struct kiln_metrics *metrics, bool wanted)
{
    if (metrics)
        atomic_store(&metrics->details, wanted);
}

bool kiln_metric_is_kept(const struct kiln_metric *metric)
{
    return metric && metric != &nobody;
}

/* ---- counting ---- */

void kiln_metric_add(struct kiln_metric *metric, int64_t n)
{
    double level;

    if (!metric || metric == &nobody)
        return;
    if (metric->kind == KILN_COUNTER) {
        atomic_fetch_add_explicit(&metric->count, n, memory_order_relaxed);
    } else if (metric->kind == KILN_GAUGE) {
        level = atomic_load_explicit(&metric->level, memory_order_relaxed);
        while (!atomic_compare_exchange_weak_explicit(&metric->level, &level, level + (double)n,
                                                      memory_order_relaxed, memory_order_relaxed))
            ;
    }
}

void kiln_metrics_change(struct kiln_metrics *metrics, const struct kiln_metric_change *changes,
                         uint32_t n)
{
    if (!metrics)
        return;
    pthread_mutex_lock(&metrics->lock);
    for (uint32_t i = 0; i < n; i++)
        kiln_metric_add(changes[i].metric, changes[i].n);
    pthread_mutex_unlock(&metrics->lock);
}

void kiln_metric_set(struct kiln_metric *metric, double value)
{
    if (metric && metric != &nobody && metric->kind < KILN_HISTOGRAM)
        atomic_store_explicit(&metric->level, value, memory_order_relaxed);
}

void kiln_metric_observe(struct kiln_metric *metric, double value)
{
    struct histogram *h = metric ? metric->histogram : NULL;
    const struct scale *scale = h ? &scales[metric->kind] : NULL;
    uint32_t i = 0;

    if (!h)
        return;
    if (!(value > 0))
        value = 0;
    while (i < scale->n && value > scale->bounds[i])
        i++;
    atomic_fetch_add_explicit(&h->buckets[i], 1, memory_order_relaxed);
    if (value > scale->most)
        value = scale->most; /* so that the sum stays a number for thousands of them */
    atomic_fetch_add_explicit(&h->sum, (int64_t)(value * scale->parts), memory_order_relaxed);
}

static uint64_t observations(const struct histogram *h)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i <= BUCKETS_MAX; i++)
        n += atomic_load_explicit(&h->buckets[i], memory_order_relaxed);
    return n;
}

double kiln_metric_value(const struct kiln_metric *metric)
{
    if (!metric)
        return 0;
    if (metric->histogram)
        return (double)observations(metric->histogram);
    return (double)atomic_load_explicit(&metric->count, memory_order_relaxed) +
           atomic_load_explicit(&metric->level, memory_order_relaxed);
}

void kiln_metrics_on_collect(struct kiln_metrics *metrics, void (*collect)(void *context),
                             void *context)
{
    struct collector *c = metrics ? kiln_malloc(sizeof(*c)) : NULL;

    if (!c)
        return;
    *c = (struct collector){atomic_load(&metrics->collectors), collect, context};
    while (!atomic_compare_exchange_weak(&metrics->collectors, &c->next, c))
        ;
}

/* ---- showing ---- */

/* Whole numbers as such, others with as many digits as tell them apart. */
static void add_number(struct kiln_buf *out, double value)
{
    char text[32];

    if (isnan(value)) {
        kiln_buf_puts(out, "NaN");
    } else if (isinf(value)) {
        kiln_buf_puts(out, value > 0 ? "+Inf" : "-Inf");
    } else if (value == floor(value) && fabs(value) < 1e15) {
        kiln_buf_add_i64(out, (int64_t)value);
    } else {
        snprintf(text, sizeof(text), "%.15g", value);
        if (strtod(text, NULL) != value)
            snprintf(text, sizeof(text), "%.17g", value);
        kiln_buf_puts(out, text);
    }
}

static void add_series(struct kiln_buf *out, const struct kiln_metric *m, const char *suffix,
                       const char *bound)
{
    bool comma = bound && m->labels.len > 0;

    kiln_buf_add_str(out, m->name);
    kiln_buf_puts(out, suffix);
    if (m->labels.len > 0 || bound) {
        kiln_buf_putc(out, '{');
        kiln_buf_add_str(out, m->labels);
        if (bound)
            kiln_buf_printf(out, "%sle=\"%s\"", comma ? "," : "", bound);
        kiln_buf_putc(out, '}');
    }
    kiln_buf_putc(out, ' ');
}

static void add_histogram(struct kiln_buf *out, const struct kiln_metric *m)
{
    const struct scale *scale = &scales[m->kind];
    uint64_t n = 0;
    char text[32] = "+Inf";

    for (uint32_t i = 0; i <= scale->n; i++) {
        if (i < scale->n)
            snprintf(text, sizeof(text), "%.8g", scale->bounds[i]);
        n += atomic_load_explicit(&m->histogram->buckets[i], memory_order_relaxed);
        add_series(out, m, "_bucket", i < scale->n ? text : "+Inf");
        kiln_buf_printf(out, "%llu\n", (unsigned long long)n);
    }
    add_series(out, m, "_sum", NULL);
    add_number(out, (double)atomic_load(&m->histogram->sum) / scale->parts);
    kiln_buf_putc(out, '\n');
    add_series(out, m, "_count", NULL);
    kiln_buf_printf(out, "%llu\n", (unsigned long long)n);
}

static void add_head(struct kiln_buf *out, struct kiln_str name, const char *help, const char *type)
{
    kiln_buf_printf(out, "# HELP %.*s ", KILN_STR_ARG(name));
    add_escaped(out, help, false);
    kiln_buf_printf(out, "\n# TYPE %.*s %s\n", KILN_STR_ARG(name), type);
}

static void add_metric(struct kiln_buf *out, const struct kiln_metric *m)
{
    if (m->histogram) {
        add_histogram(out, m);
        return;
    }
    add_series(out, m, "", NULL);
    add_number(out, kiln_metric_value(m));
    kiln_buf_putc(out, '\n');
}

static int by_name(const void *a, const void *b)
{
    const struct kiln_metric *x = *(struct kiln_metric *const *)a;
    const struct kiln_metric *y = *(struct kiln_metric *const *)b;
    int r = kiln_str_cmp(x->name, y->name);

    return r ? r : kiln_str_cmp(x->labels, y->labels);
}

void kiln_metrics_collect(struct kiln_metrics *metrics)
{
    if (!metrics)
        return;
    for (struct collector *c = atomic_load(&metrics->collectors); c; c = c->next)
        c->collect(c->context);
}

void kiln_metrics_each(struct kiln_metrics *metrics,
                       void (*each)(void *context, const struct kiln_metric_shown *metric),
                       void *context)
{
    if (!metrics)
        return;
    pthread_mutex_lock(&metrics->lock);
    for (uint32_t i = 0; i < metrics->n; i++) {
        const struct kiln_metric *m = metrics->list[i];

        each(context, &(struct kiln_metric_shown){.name = m->name,
                                                  .labels = m->labels,
                                                  .kind = m->kind,
                                                  .value = kiln_metric_value(m)});
    }
    pthread_mutex_unlock(&metrics->lock);
}

void kiln_metrics_format(struct kiln_metrics *metrics, struct kiln_buf *out)
{
    static const char *const types[] = {"counter", "gauge", "histogram", "histogram", "histogram"};
    const struct kiln_metric *last = NULL;

    if (!metrics)
        return;
    kiln_metrics_collect(metrics);
    pthread_mutex_lock(&metrics->lock);
    if (!metrics->sorted && metrics->n > 0)
        qsort(metrics->list, metrics->n, sizeof(struct kiln_metric *), by_name);
    metrics->sorted = true;
    for (uint32_t i = 0; i < metrics->n; i++) {
        const struct kiln_metric *m = metrics->list[i];

        if (!last || !kiln_str_eq(last->name, m->name))
            add_head(out, m->name, m->help, types[m->kind]);
        add_metric(out, m);
        last = m;
    }
    pthread_mutex_unlock(&metrics->lock);
}
