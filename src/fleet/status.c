/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/status.h"

#include <math.h>
#include <stdio.h>

#include "fleet/orders.h"

static const char *const states[] = {"running", "paused", "failed", "waiting", "stopped"};

void kiln_agent_add_count(struct kiln_agent_count *list, uint32_t *n, uint32_t max,
                          const char *reason, uint64_t count)
{
    if (!count || *n == max)
        return;
    list[*n].count = count;
    snprintf(list[(*n)++].reason, sizeof(list->reason), "%s", reason);
}

/* Those that there was no room for were never samples here; all others were, also those that an
 * earlier run left to be sent. */
void kiln_agent_loss(const struct kiln_agent_status *status, uint64_t *ret_lost, uint64_t *ret_all)
{
    uint64_t lost = 0, all = status->samples;

    for (uint32_t i = 0; i < status->n_drops; i++) {
        lost += status->drops[i].count;
        if (strcmp(status->drops[i].reason, "lost") == 0)
            all += status->drops[i].count;
    }
    *ret_lost = lost;
    *ret_all = all > lost ? all : lost;
}

const char *kiln_agent_state_word(enum kiln_agent_state state)
{
    return states[state];
}

/* ---- writing ---- */

static void put_text(struct kiln_json_out *w, const char *name, const char *text)
{
    kiln_json_put_name(w, name);
    kiln_json_put_str(w, kiln_str_of(text));
}

static void put_u64(struct kiln_json_out *w, const char *name, uint64_t number)
{
    kiln_json_put_name(w, name);
    kiln_json_put_u64(w, number);
}

static void put_double(struct kiln_json_out *w, const char *name, double number)
{
    kiln_json_put_name(w, name);
    kiln_json_put_double(w, number);
}

static void put_counts(struct kiln_json_out *w, const char *name,
                       const struct kiln_agent_count *counts, uint32_t n)
{
    kiln_json_put_name(w, name);
    kiln_json_put_array(w);
    for (uint32_t i = 0; i < n; i++) {
        kiln_json_put_object(w);
        put_text(w, "reason", counts[i].reason);
        put_u64(w, "count", counts[i].count);
        kiln_json_end_object(w);
    }
    kiln_json_end_array(w);
}

static void put_unwind(struct kiln_json_out *w, const struct kiln_agent_status *status)
{
    kiln_json_put_name(w, "unwind");
    kiln_json_put_object(w);
    put_u64(w, "complete", status->complete);
    put_u64(w, "all", status->all);
    kiln_json_put_name(w, "share");
    if (status->all)
        kiln_json_put_double(w, round((double)status->complete / (double)status->all * 1e6) / 1e6);
    else
        kiln_json_put_null(w);
    put_counts(w, "ends", status->ends, status->n_ends);
    kiln_json_end_object(w);
}

void kiln_agent_status_put(struct kiln_json_out *w, const struct kiln_agent_status *status)
{
    kiln_json_put_object(w);
    put_text(w, "id", status->id);
    put_text(w, "host", status->host);
    put_text(w, "version", status->version);
    put_text(w, "kernel", status->kernel);
    kiln_fleet_put_time(w, "started", status->started_ns);
    kiln_fleet_put_time(w, "last_seen", status->last_seen_ns);
    kiln_json_put_name(w, "local");
    kiln_json_put_bool(w, status->local);
    put_text(w, "state", kiln_agent_state_word(status->state));
    kiln_fleet_put_said(w, "problem", status->problem);
    put_u64(w, "hz", status->hz);
    put_double(w, "samples_per_second", status->samples_per_s);
    put_u64(w, "samples", status->samples);
    put_u64(w, "processes", status->processes);
    put_counts(w, "drops", status->drops, status->n_drops);
    put_counts(w, "missed", status->missed, status->n_missed);
    put_unwind(w, status);
    put_double(w, "cpu_cores", status->cpu_cores);
    put_u64(w, "memory_bytes", status->memory_bytes);
    kiln_json_put_name(w, "orders");
    kiln_json_put_array(w);
    for (uint32_t i = 0; i < status->n_orders; i++)
        kiln_json_put_str(w, kiln_str_of(status->orders[i]));
    kiln_json_end_array(w);
    kiln_json_end_object(w);
}

/* ---- reading ---- */

static int read_count(struct kiln_json *r, struct kiln_agent_count *count)
{
    struct kiln_str name;
    int code = kiln_json_object(r);

    while (code == 0 && (code = kiln_json_member(r, &name)) > 0) {
        if (kiln_str_eq(name, KILN_STR("reason")))
            code = kiln_fleet_read_text(r, count->reason, sizeof(count->reason));
        else if (kiln_str_eq(name, KILN_STR("count")))
            code = kiln_json_u64(r, &count->count);
        else
            code = kiln_json_skip(r);
    }
    return code;
}

static int read_counts(struct kiln_json *r, struct kiln_agent_count *counts, uint32_t *ret_n,
                       uint32_t max)
{
    uint32_t n = 0;
    int code = kiln_json_array(r);

    while (code == 0 && (code = kiln_json_element(r)) > 0) {
        struct kiln_agent_count count = {0};

        code = read_count(r, &count);
        if (code == 0 && n < max)
            counts[n++] = count;
    }
    if (code == 0)
        *ret_n = n;
    return code;
}

static int read_unwind(struct kiln_json *r, struct kiln_agent_status *status)
{
    struct kiln_str name;
    int code = kiln_json_object(r);

    while (code == 0 && (code = kiln_json_member(r, &name)) > 0) {
        if (kiln_str_eq(name, KILN_STR("complete")))
            code = kiln_json_u64(r, &status->complete);
        else if (kiln_str_eq(name, KILN_STR("all")))
            code = kiln_json_u64(r, &status->all);
        else if (kiln_str_eq(name, KILN_STR("ends")))
            code = read_counts(r, status->ends, &status->n_ends, KILN_AGENT_ENDS);
        else
            code = kiln_json_skip(r);
    }
    if (code == 0 && status->complete > status->all)
        code = kiln_json_fail(r, KILN_E_MALFORMED, "more stacks are complete than there are");
    return code;
}

/* A word that a newer agent says means that it runs: it does report. */
static int read_state(struct kiln_json *r, enum kiln_agent_state *ret_state)
{
    struct kiln_str word;
    int code = kiln_json_string(r, &word);

    for (uint32_t i = 0; code == 0 && i < KILN_ARRAY_LEN(states); i++) {
        if (kiln_str_eq(word, kiln_str_of(states[i]))) {
            *ret_state = (enum kiln_agent_state)i;
            return 0;
        }
    }
    *ret_state = KILN_AGENT_RUNNING;
    return code;
}

static int read_orders(struct kiln_json *r, struct kiln_agent_status *status)
{
    int code = kiln_json_array(r);

    status->n_orders = 0;
    while (code == 0 && (code = kiln_json_element(r)) > 0) {
        if (status->n_orders == KILN_AGENT_ORDERS)
            return kiln_json_fail(r, KILN_E_LIMIT, "more than %d orders", KILN_AGENT_ORDERS);
        code = kiln_fleet_read_text(r, status->orders[status->n_orders], KILN_ORDER_ID_BYTES);
        status->n_orders += code == 0;
    }
    return code;
}

static int read_amount(struct kiln_json *r, double *ret)
{
    double amount;
    int code = kiln_json_double(r, &amount);

    if (code == 0 && !(amount >= 0 && amount < 1e15))
        code = kiln_json_fail(r, KILN_E_MALFORMED, "not an amount");
    if (code == 0)
        *ret = amount;
    return code;
}

static int read_hz(struct kiln_json *r, uint32_t *ret_hz)
{
    uint64_t hz;
    int code = kiln_json_u64(r, &hz);

    if (code == 0 && hz > KILN_ORDER_HZ_MAX)
        code = kiln_json_fail(r, KILN_E_MALFORMED, "not a rate");
    if (code == 0)
        *ret_hz = (uint32_t)hz;
    return code;
}

static int read_member(struct kiln_json *r, struct kiln_str name, struct kiln_agent_status *s)
{
    const struct {
        const char *name;
        char *text;
        size_t size;
    } texts[] = {{"id", s->id, sizeof(s->id)},
                 {"host", s->host, sizeof(s->host)},
                 {"version", s->version, sizeof(s->version)},
                 {"kernel", s->kernel, sizeof(s->kernel)},
                 {"problem", s->problem, sizeof(s->problem)}};
    const struct {
        const char *name;
        uint64_t *number;
    } numbers[] = {
        {"samples", &s->samples}, {"processes", &s->processes}, {"memory_bytes", &s->memory_bytes}};

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(texts); i++)
        if (kiln_str_eq(name, kiln_str_of(texts[i].name)))
            return kiln_fleet_read_text(r, texts[i].text, texts[i].size);
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(numbers); i++)
        if (kiln_str_eq(name, kiln_str_of(numbers[i].name)))
            return kiln_json_u64(r, numbers[i].number);
    if (kiln_str_eq(name, KILN_STR("started")))
        return kiln_fleet_read_time(r, &s->started_ns);
    if (kiln_str_eq(name, KILN_STR("last_seen")))
        return kiln_fleet_read_time(r, &s->last_seen_ns);
    if (kiln_str_eq(name, KILN_STR("local")))
        return kiln_json_bool(r, &s->local);
    if (kiln_str_eq(name, KILN_STR("state")))
        return read_state(r, &s->state);
    if (kiln_str_eq(name, KILN_STR("hz")))
        return read_hz(r, &s->hz);
    if (kiln_str_eq(name, KILN_STR("samples_per_second")))
        return read_amount(r, &s->samples_per_s);
    if (kiln_str_eq(name, KILN_STR("cpu_cores")))
        return read_amount(r, &s->cpu_cores);
    if (kiln_str_eq(name, KILN_STR("drops")))
        return read_counts(r, s->drops, &s->n_drops, KILN_AGENT_DROPS);
    if (kiln_str_eq(name, KILN_STR("missed")))
        return read_counts(r, s->missed, &s->n_missed, KILN_AGENT_MISSED);
    if (kiln_str_eq(name, KILN_STR("unwind")))
        return read_unwind(r, s);
    if (kiln_str_eq(name, KILN_STR("orders")))
        return read_orders(r, s);
    return kiln_json_skip(r);
}

int kiln_agent_status_read(struct kiln_json *r, struct kiln_agent_status *ret_status)
{
    struct kiln_agent_status status = {0};
    struct kiln_str name;
    int code = kiln_json_object(r);

    while (code == 0 && (code = kiln_json_member(r, &name)) > 0)
        code = read_member(r, name, &status);
    if (code == 0)
        *ret_status = status;
    return code;
}
