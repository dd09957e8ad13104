/* SPDX-License-Identifier: Apache-2.0 */
/*
 *   {..., "series": {..., "series": [{"labels": {"service_name": "shop", "process.pid": "4711",
 * ...}, "sum": 999999982, ...}, ...]}, ...}
 */
#include <errno.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/json.h"
#include "cli/live_source.h"
#include "core/builder.h"

const char *const kiln_live_answer_labels[] = {
    "service_name", "process.pid", "process.executable.name", "host.name", "thread.state", NULL};

#define LABEL_BYTES_MAX 512u

enum { SERVICE, PID, EXECUTABLE, HOST, STATE, LABELS };

struct reading {
    struct kiln_json r;
    struct kiln_builder *b;
    bool waits;
    char labels[LABELS][LABEL_BYTES_MAX];
};

/* A builder's strings are copies, but those of a reader live until its next call. */
static int read_labels(struct reading *reading)
{
    struct kiln_json *r = &reading->r;
    struct kiln_str name, value;
    int n = kiln_json_object(r);

    while (n == 0 && (n = kiln_json_member(r, &name)) > 0) {
        uint32_t i = 0;

        while (kiln_live_answer_labels[i] &&
               !kiln_str_eq(name, kiln_str_of(kiln_live_answer_labels[i])))
            i++;
        n = kiln_json_string(r, &value);
        if (n == 0 && i < LABELS)
            snprintf(reading->labels[i], LABEL_BYTES_MAX, "%.*s",
                     (int)(value.len < LABEL_BYTES_MAX ? value.len : LABEL_BYTES_MAX - 1),
                     value.ptr);
    }
    return n;
}

static void add_resource(struct reading *reading)
{
    static const char *const names[] = {"service.name", "", "process.executable.name", "host.name"};
    struct kiln_builder *b = reading->b;
    struct kiln_resource resource = {0};
    uint32_t attrs[LABELS], n = 0;
    int64_t pid = 0;

    for (uint32_t i = 0; i < STATE; i++)
        if (i != PID && reading->labels[i][0])
            attrs[n++] =
                kiln_builder_text_attr(b, kiln_str_of(names[i]), kiln_str_of(reading->labels[i]));
    if (kiln_str_parse_i64(kiln_str_of(reading->labels[PID]), &pid) == 0)
        attrs[n++] = kiln_builder_attr(b, kiln_builder_string(b, KILN_STR("process.pid")),
                                       kiln_value_int(pid), 0);
    resource.attrs = kiln_builder_set(b, attrs, n, NULL);
    kiln_builder_add_resource(b, &resource);
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
}

static void add_process(struct reading *reading, int64_t sum)
{
    struct kiln_builder *b = reading->b;
    uint32_t unit = kiln_builder_string(b, KILN_STR("nanoseconds")), attrs = 0, profile, state;
    struct kiln_profile head = {.sample_type = {.unit = unit}};

    add_resource(reading);
    head.sample_type.type =
        kiln_builder_string(b, reading->waits ? KILN_STR("off_cpu") : KILN_STR("cpu"));
    profile = kiln_builder_add_profile(b, &head);
    if (reading->labels[STATE][0]) {
        state = kiln_builder_text_attr(b, KILN_STR("thread.state"),
                                       kiln_str_of(reading->labels[STATE]));
        attrs = kiln_builder_set(b, &state, 1, NULL);
    }
    kiln_builder_add_sample(b, profile, 0, attrs, 0, &sum, NULL, 1);
}

static int read_row(struct reading *reading)
{
    struct kiln_json *r = &reading->r;
    struct kiln_str name;
    double sum = 0;
    int n = kiln_json_object(r);

    memset(reading->labels, 0, sizeof(reading->labels));
    while (n == 0 && (n = kiln_json_member(r, &name)) > 0) {
        if (kiln_str_eq(name, KILN_STR("labels")))
            n = read_labels(reading);
        else if (kiln_str_eq(name, KILN_STR("sum")))
            n = kiln_json_double(r, &sum);
        else
            n = kiln_json_skip(r);
    }
    if (n == 0 && sum >= 1 && sum < 1e18)
        add_process(reading, (int64_t)sum);
    return n;
}

static int read_rows(struct reading *reading)
{
    int n = kiln_json_array(&reading->r);

    while (n == 0 && (n = kiln_json_element(&reading->r)) > 0)
        n = read_row(reading);
    return n;
}

/* The member "series" of an object by a function of its value; all else is passed over. */
static int read_series(struct reading *reading, int (*read)(struct reading *))
{
    struct kiln_str name;
    int n = kiln_json_object(&reading->r);

    while (n == 0 && (n = kiln_json_member(&reading->r, &name)) > 0)
        n = kiln_str_eq(name, KILN_STR("series")) ? read(reading) : kiln_json_skip(&reading->r);
    return n;
}

static int read_part(struct reading *reading)
{
    return read_series(reading, read_rows);
}

int kiln_live_answer_read(struct kiln_str json, bool waits, struct kiln_batch **ret_batch,
                          struct kiln_err *err)
{
    struct reading *reading = kiln_calloc(1, sizeof(*reading));
    int r = reading ? kiln_builder_new(NULL, &reading->b) : -ENOMEM;

    if (r == 0) {
        reading->waits = waits;
        kiln_json_init(&reading->r, json, err);
        r = read_series(reading, read_part);
        kiln_json_done(&reading->r);
        if (r < 0)
            kiln_builder_free(reading->b);
        else
            r = kiln_builder_finish(reading->b, ret_batch, err);
    }
    kiln_free(reading);
    return r;
}
