/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file is one object:
 *
 *   {"$schema": "https://www.speedscope.app/file-format-schema.json", "exporter": "...",
 *    "shared": {"frames": [{"name": "main", "file": "a.c", "line": 3, "col": 1}, ...]},
 *    "profiles": [
 *      {"type": "sampled", "name": "...", "unit": "milliseconds", "startValue": 0, "endValue": 9,
 *       "samples": [[0, 1], ...], "weights": [5, ...]},        frames by index, root first
 *      {"type": "evented", ..., "events": [{"type": "O", "at": 0, "frame": 0}, ...]}]}
 *
 * in any order; so a first pass notes where the parts start, of the file and of each profile.
 * Samples and weights stand in two arrays and are read side by side by two readers.  Events are
 * handed to codec/speedscope_events.c.
 */
#include <errno.h>
#include <math.h>

#include "base/json.h"
#include "codec/speedscope.h"
#include "codec/speedscope_int.h"

/* ---- numbers ---- */

static const struct unit {
    struct kiln_str name;
    int64_t factor; /* to what is kept */
    struct kiln_str type, kept;
} units[] = {
    {{"none", 4}, 1, {"samples", 7}, {"count", 5}}, /* also for units that are not known */
    {{"nanoseconds", 11}, 1, {"time", 4}, {"nanoseconds", 11}},
    {{"microseconds", 12}, 1000, {"time", 4}, {"nanoseconds", 11}},
    {{"milliseconds", 12}, 1000000, {"time", 4}, {"nanoseconds", 11}},
    {{"seconds", 7}, 1000000000, {"time", 4}, {"nanoseconds", 11}},
    {{"bytes", 5}, 1, {"space", 5}, {"bytes", 5}},
};

static const struct unit *unit_named(struct kiln_str name)
{
    for (size_t i = 1; i < KILN_ARRAY_LEN(units); i++) {
        if (kiln_str_eq(units[i].name, name))
            return &units[i];
    }
    return &units[0];
}

/* A number times the factor, exact for integers, else rounded. */
static int read_scaled(struct kiln_json *r, int64_t factor, int64_t *ret)
{
    struct kiln_str text;
    double value;
    int n = kiln_json_number(r, &text);

    if (n < 0)
        return n;
    if (kiln_json_parse_i64(text, ret) == 0 && !__builtin_mul_overflow(*ret, factor, ret))
        return 0;
    if (kiln_json_parse_double(text, &value) < 0 || !(fabs(value * (double)factor) < 0x1p63))
        return kiln_json_fail(r, -ERANGE, "the number is out of range");
    *ret = llround(value * (double)factor);
    return 0;
}

/* A line or column: what is no positive number is unknown. */
static int read_position(struct kiln_json *r, int64_t *ret)
{
    int64_t value;
    int n = kiln_json_null(r);

    if (n != 0)
        return n < 0 ? n : 0;
    n = read_scaled(r, 1, &value);
    if (n == 0)
        *ret = value > 0 ? value : 0;
    return n;
}

static int read_text(struct speedscope *d, uint32_t *ret)
{
    struct kiln_str text;
    int n = kiln_json_null(&d->r);

    if (n != 0)
        return n < 0 ? n : 0;
    n = kiln_json_string(&d->r, &text);
    if (n == 0)
        *ret = kiln_builder_string(d->b, text);
    return n;
}

/* ---- frames ---- */

static int read_frame(struct speedscope *d)
{
    struct kiln_function function = {.name = kiln_builder_string(d->b, KILN_STR("(anonymous)"))};
    struct kiln_line line = {0};
    struct kiln_str name;
    int n = kiln_json_object(&d->r);

    while (n == 0 && (n = kiln_json_member(&d->r, &name)) > 0) {
        if (kiln_str_eq(name, KILN_STR("name")))
            n = read_text(d, &function.name);
        else if (kiln_str_eq(name, KILN_STR("file")))
            n = read_text(d, &function.filename);
        else if (kiln_str_eq(name, KILN_STR("line")))
            n = read_position(&d->r, &line.line);
        else if (kiln_str_eq(name, KILN_STR("col")))
            n = read_position(&d->r, &line.column);
        else
            n = kiln_json_skip(&d->r);
    }
    if (n < 0)
        return n;
    n = kiln_grow(&d->budget, (void **)&d->frames, &d->cap_frames, (uint64_t)d->n_frames + 1,
                  sizeof(*d->frames), kiln_builder_limits(d->b)->table_count);
    if (n < 0)
        return n;
    line.function = kiln_builder_function(d->b, &function);
    d->frames[d->n_frames++] = kiln_builder_location(d->b, &(struct kiln_location){0}, &line, 1);
    return kiln_builder_error(d->b);
}

static int read_frames(struct speedscope *d)
{
    int n = kiln_json_array(&d->r);

    while (n == 0 && (n = kiln_json_element(&d->r)) > 0) {
        n = read_frame(d);
        if (n < 0)
            kiln_err_within(d->err, "shared.frames[%u]", d->n_frames);
    }
    return n;
}

static int read_shared(struct speedscope *d)
{
    struct kiln_str name;
    int n = kiln_json_object(&d->r);

    while (n == 0 && (n = kiln_json_member(&d->r, &name)) > 0)
        n = kiln_str_eq(name, KILN_STR("frames")) ? read_frames(d) : kiln_json_skip(&d->r);
    return n;
}

int speedscope_frame(struct speedscope *d, uint32_t *ret)
{
    int64_t index;
    int n = kiln_json_i64(&d->r, &index);

    if (n < 0)
        return n;
    if (index < 0 || index >= d->n_frames)
        return kiln_json_fail(&d->r, KILN_E_RANGE, "%lld is outside the %u shared frames",
                              (long long)index, d->n_frames);
    *ret = d->frames[index];
    return 0;
}

/* ---- sampled profiles ---- */

/* What the first pass keeps of a profile: where its parts start (0: absent), and its short ones. */
struct head {
    size_t samples, weights, events, start_value, end_value;
    const struct unit *unit;
    uint32_t name;
};

static int read_stack(struct speedscope *d, uint32_t *ret)
{
    uint32_t frame;
    int n = kiln_json_array(&d->r);

    while (n == 0 && (n = kiln_json_element(&d->r)) > 0) {
        n = speedscope_frame(d, &frame);
        if (n == 0)
            n = kiln_textstack_add_location(&d->stack, frame);
        if (n == KILN_E_LIMIT)
            n = kiln_json_fail(&d->r, n, "a stack of more than %u frames",
                               kiln_builder_limits(d->b)->stack_depth);
    }
    if (n == 0)
        *ret = kiln_textstack_take(&d->stack, true);
    return n;
}

/* The weight of the next sample; 1 where a profile has no weights. */
static int read_weight(struct kiln_json *weights, const struct head *head, int64_t *ret)
{
    int n;

    *ret = 1;
    if (!head->weights)
        return 0;
    n = kiln_json_element(weights);
    if (n == 0)
        return kiln_json_fail(weights, KILN_E_MALFORMED, "fewer weights than samples");
    return n < 0 ? n : read_scaled(weights, head->unit->factor, ret);
}

static int read_samples(struct speedscope *d, struct kiln_json *weights, const struct head *head,
                        uint32_t *i)
{
    int64_t weight = 0;
    uint32_t stack = 0;
    int n = kiln_json_array(&d->r);

    if (n == 0 && head->weights)
        n = kiln_json_array(weights);
    while (n == 0 && (n = kiln_json_element(&d->r)) > 0) {
        n = read_stack(d, &stack);
        if (n == 0)
            n = read_weight(weights, head, &weight);
        if (n == 0) {
            kiln_builder_add_value(d->b, d->profile, stack, d->attrs, weight);
            n = kiln_builder_error(d->b);
        }
        *i += n == 0;
    }
    if (n == 0 && head->weights && (n = kiln_json_element(weights)) > 0)
        n = kiln_json_fail(weights, KILN_E_MALFORMED, "more weights than samples");
    return n;
}

static int read_sampled(struct speedscope *d, const struct head *head)
{
    struct kiln_json weights;
    uint32_t i = 0;
    int n;

    kiln_json_init(&weights, d->text, d->err);
    kiln_json_seek(&weights, head->weights);
    kiln_json_seek(&d->r, head->samples);
    n = read_samples(d, &weights, head, &i);
    if (n < 0)
        kiln_err_within(d->err, "samples[%u]", i);
    kiln_json_done(&weights);
    return n;
}

/* ---- profiles ---- */

static int read_unit(struct speedscope *d, const struct unit **ret)
{
    struct kiln_str text;
    int n = kiln_json_string(&d->r, &text);

    if (n == 0)
        *ret = unit_named(text);
    return n;
}

static int read_head(struct speedscope *d, struct head *head)
{
    const struct {
        struct kiln_str name;
        size_t *position;
    } parts[] = {
        {KILN_STR("samples"), &head->samples},    {KILN_STR("weights"), &head->weights},
        {KILN_STR("events"), &head->events},      {KILN_STR("startValue"), &head->start_value},
        {KILN_STR("endValue"), &head->end_value},
    };
    struct kiln_str name;
    int n = kiln_json_object(&d->r);

    while (n == 0 && (n = kiln_json_member(&d->r, &name)) > 0) {
        for (size_t i = 0; i < KILN_ARRAY_LEN(parts); i++) {
            if (kiln_str_eq(name, parts[i].name) && kiln_json_peek(&d->r) != KILN_JSON_NULL)
                *parts[i].position = kiln_json_tell(&d->r);
        }
        if (kiln_str_eq(name, KILN_STR("name")))
            n = read_text(d, &head->name);
        else if (kiln_str_eq(name, KILN_STR("unit")))
            n = read_unit(d, &head->unit);
        else
            n = kiln_json_skip(&d->r);
    }
    return n;
}

/* The value at a position, 0 where it is absent. */
static int value_at(struct speedscope *d, size_t position, int64_t factor, int64_t *ret)
{
    *ret = 0;
    if (!position)
        return 0;
    kiln_json_seek(&d->r, position);
    return read_scaled(&d->r, factor, ret);
}

static int open_profile(struct speedscope *d, const struct head *head, int64_t start, int64_t end)
{
    struct kiln_profile profile = {
        .sample_type = {kiln_builder_string(d->b, head->unit->type),
                        kiln_builder_string(d->b, head->unit->kept)},
    };
    uint32_t attr;

    if (d->is_ours && head->name)
        profile.sample_type.type = head->name;
    else if (kiln_str_eq(head->unit->kept, KILN_STR("nanoseconds")) && end > start)
        profile.duration_ns = (uint64_t)end - (uint64_t)start;
    d->attrs = 0;
    if (d->n_profiles > 1 && head->name) {
        attr = kiln_builder_attr(d->b, kiln_builder_string(d->b, KILN_STR("thread.name")),
                                 kiln_value_string(head->name), 0);
        d->attrs = kiln_builder_set(d->b, &attr, 1, NULL);
    }
    d->profile = kiln_builder_add_profile(d->b, &profile);
    return kiln_builder_error(d->b);
}

static int read_profile(struct speedscope *d, const struct head *head)
{
    int64_t start, end;
    int n = value_at(d, head->start_value, head->unit->factor, &start);

    if (n == 0)
        n = value_at(d, head->end_value, head->unit->factor, &end);
    if (n == 0)
        n = open_profile(d, head, start, end);
    if (n == 0 && head->samples)
        n = read_sampled(d, head);
    if (n == 0 && head->events) {
        kiln_json_seek(&d->r, head->events);
        n = speedscope_events(d, (double)head->unit->factor, (double)end);
    }
    return n;
}

/* ---- the file ---- */

/* The profiles found so far. */
struct heads {
    struct head *list;
    uint32_t n, cap;
};

static int add_head(struct speedscope *d, struct heads *heads)
{
    struct head head = {.unit = &units[0]};
    int n = read_head(d, &head);

    if (n == 0)
        n = kiln_grow(&d->budget, (void **)&heads->list, &heads->cap, (uint64_t)heads->n + 1,
                      sizeof(head), kiln_builder_limits(d->b)->table_count);
    if (n == 0)
        heads->list[heads->n++] = head;
    return n;
}

static int find_profiles(struct speedscope *d, struct heads *heads)
{
    int n = kiln_json_array(&d->r);

    while (n == 0 && (n = kiln_json_element(&d->r)) > 0) {
        n = add_head(d, heads);
        if (n < 0)
            kiln_err_within(d->err, "profiles[%u]", heads->n);
    }
    return n;
}

static int read_exporter(struct speedscope *d)
{
    struct kiln_str text;

    if (kiln_json_peek(&d->r) != KILN_JSON_STRING)
        return kiln_json_skip(&d->r);
    if (kiln_json_string(&d->r, &text) == 0)
        d->is_ours = kiln_str_starts(text, KILN_STR("kiln "));
    return d->r.error;
}

/* The first pass: reads the frames and finds the profiles. */
static int read_outline(struct speedscope *d, struct heads *heads)
{
    bool has_profiles = false;
    struct kiln_str name;
    int n = kiln_json_object(&d->r);

    while (n == 0 && (n = kiln_json_member(&d->r, &name)) > 0) {
        if (kiln_str_eq(name, KILN_STR("shared"))) {
            n = read_shared(d);
        } else if (kiln_str_eq(name, KILN_STR("profiles"))) {
            has_profiles = true;
            n = find_profiles(d, heads);
        } else {
            n = kiln_str_eq(name, KILN_STR("exporter")) ? read_exporter(d) : kiln_json_skip(&d->r);
        }
    }
    if (n == 0 && kiln_json_more(&d->r) != 0)
        n = kiln_json_fail(&d->r, KILN_E_MALFORMED, "something stands behind the file's object");
    if (n == 0 && !has_profiles)
        n = kiln_json_fail(&d->r, KILN_E_MALFORMED, "a file without profiles");
    return n;
}

static int read_file(struct speedscope *d)
{
    struct heads heads = {0};
    int n = read_outline(d, &heads);

    d->n_profiles = heads.n;
    for (uint32_t i = 0; n == 0 && i < heads.n; i++) {
        n = read_profile(d, &heads.list[i]);
        if (n < 0)
            kiln_err_within(d->err, "profiles[%u]", i);
    }
    kiln_array_free(&d->budget, (void **)&heads.list, &heads.cap, sizeof(*heads.list));
    return n;
}

int kiln_speedscope_decode(struct kiln_str text, struct kiln_builder *b, struct kiln_err *err)
{
    struct speedscope d = {
        .b = b,
        .err = err,
        .text = text,
        .budget.limit = kiln_builder_limits(b)->memory_bytes,
    };
    int r;

    kiln_json_init(&d.r, text, err);
    kiln_textstack_init(&d.stack, b);
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    r = kiln_builder_error(b);
    if (r == 0)
        r = read_file(&d);
    if (r < 0)
        kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    kiln_array_free(&d.budget, (void **)&d.frames, &d.cap_frames, sizeof(*d.frames));
    kiln_textstack_done(&d.stack);
    kiln_json_done(&d.r);
    return r;
}

/* ---- detection ---- */

static bool is_schema(struct kiln_json *r)
{
    struct kiln_str text;

    return kiln_json_peek(r) == KILN_JSON_STRING && kiln_json_string(r, &text) == 0 &&
           kiln_str_contains(text, KILN_STR("speedscope"));
}

static bool has_frames(struct kiln_json *r)
{
    struct kiln_str name;

    return kiln_json_peek(r) == KILN_JSON_OBJECT && kiln_json_object(r) == 0 &&
           kiln_json_member(r, &name) > 0 && kiln_str_eq(name, KILN_STR("frames"));
}

bool kiln_speedscope_detect(struct kiln_str text)
{
    struct kiln_str name;
    struct kiln_json r;
    bool found = false;

    kiln_json_init(&r, text, NULL);
    if (kiln_json_peek(&r) == KILN_JSON_OBJECT && kiln_json_object(&r) == 0) {
        while (!found && kiln_json_member(&r, &name) > 0) {
            if (kiln_str_eq(name, KILN_STR("$schema")))
                found = is_schema(&r);
            else if (kiln_str_eq(name, KILN_STR("shared")))
                found = has_frames(&r);
            else if (kiln_json_skip(&r) < 0)
                break;
        }
    }
    kiln_json_done(&r);
    return found;
}
