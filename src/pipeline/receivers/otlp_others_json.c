/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same count as that of protobuf, of OTLP in JSON:
 *
 *   {"resourceSpans": [{"scopeSpans": [{"spans": [{}, {}]}]}]}
 *   {"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"sum": {"dataPoints": [{}]}}]}]}]}
 *
 * All of it must be JSON; names that do not lead to items are passed over, as the specification
 * wants it.  Names may be in snake_case, as the Collector reads them too.
 */
#include <ctype.h>

#include "base/json.h"
#include "pipeline/receivers/otlp_int.h"

enum { STEPS = 5 };

/* The way to the items: an array of each name, or, where it is one of several, NULL. */
static const char *const ways[KILN_SIGNALS][STEPS] = {
    [KILN_SIGNAL_TRACES] = {"resourceSpans", "scopeSpans", "spans"},
    [KILN_SIGNAL_METRICS] = {"resourceMetrics", "scopeMetrics", "metrics", NULL, "dataPoints"},
    [KILN_SIGNAL_LOGS] = {"resourceLogs", "scopeLogs", "logRecords"},
};
static const char *const points[] = {"gauge", "sum", "histogram", "exponentialHistogram",
                                     "summary"};
static const uint32_t n_steps[KILN_SIGNALS] = {
    [KILN_SIGNAL_TRACES] = 3, [KILN_SIGNAL_METRICS] = 5, [KILN_SIGNAL_LOGS] = 3};

struct count {
    struct kiln_json r;
    enum kiln_signal signal;
    uint64_t items;
};

static bool is_named(struct kiln_str name, const char *camel)
{
    size_t i = 0;

    for (; *camel; camel++, i++) {
        char c = *camel;

        if (isupper((unsigned char)c) && i + 1 < name.len && name.ptr[i] == '_') {
            c = (char)tolower((unsigned char)c);
            i++;
        }
        if (i >= name.len || name.ptr[i] != c)
            return false;
    }
    return i == name.len;
}

static bool leads_on(const struct count *c, uint32_t step, struct kiln_str name)
{
    if (ways[c->signal][step])
        return is_named(name, ways[c->signal][step]);
    for (size_t i = 0; i < KILN_ARRAY_LEN(points); i++)
        if (is_named(name, points[i]))
            return true;
    return false;
}

/* An object, in which the next step is looked for; after the last it is an item. */
static int count_in(struct count *c, uint32_t step);

static int count_list(struct count *c, uint32_t step)
{
    int n = kiln_json_array(&c->r);

    while (n == 0 && (n = kiln_json_element(&c->r)) > 0)
        n = count_in(c, step + 1);
    return n;
}

static int count_member(struct count *c, uint32_t step, struct kiln_str name)
{
    int n;

    if (!leads_on(c, step, name))
        return kiln_json_skip(&c->r);
    n = kiln_json_null(&c->r);
    if (n != 0)
        return n < 0 ? n : 0;
    return ways[c->signal][step] ? count_list(c, step) : count_in(c, step + 1);
}

static int count_in(struct count *c, uint32_t step)
{
    struct kiln_str name;
    int n;

    if (step == n_steps[c->signal]) {
        c->items++;
        return kiln_json_skip(&c->r);
    }
    n = kiln_json_object(&c->r);
    while (n == 0 && (n = kiln_json_member(&c->r, &name)) > 0)
        n = count_member(c, step, name);
    return n;
}

int kiln_otlp_count_json_items(enum kiln_signal signal, struct kiln_str message,
                               uint64_t *ret_items, struct kiln_err *err)
{
    struct count c = {.signal = signal};
    int r;

    kiln_json_init(&c.r, message, err);
    r = count_in(&c, 0);
    if (r == 0) {
        r = kiln_json_more(&c.r);
        if (r > 0)
            r = kiln_json_fail(&c.r, KILN_E_MALFORMED, "more follows the message");
    }
    kiln_json_done(&c.r);
    if (r == 0)
        *ret_items = c.items;
    return r;
}
