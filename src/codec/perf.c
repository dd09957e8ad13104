/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text is samples with an empty line behind each:
 *
 *   burn 17338 [001]  1846.411485:   10101010 cpu-clock:
 *           55f482112175 hot+0x2c (/bin/burn)
 *           55f4821121d4 main+0x2a (/bin/burn)
 *
 * Without call chains the one frame stands on the line of the header.  Lines that start with '#'
 * are the header of the recording; source positions follow their frame on a line of their own.  A
 * frame is therefore kept until the next line has been seen.
 */
#include <errno.h>

#include "codec/perf.h"
#include "codec/perf_int.h"

#define EVENTS_MAX   256u
#define DETECT_LINES 200

struct event {
    struct kiln_str name; /* as printed, in the text */
    uint32_t profile;
    bool has_period;
    bool period_varies;
    int64_t period;
};

struct decoder {
    struct kiln_builder *b;
    struct kiln_textstack stack;
    struct event events[EVENTS_MAX];
    uint32_t n_events;
    bool has_cpu, has_samples; /* an event took these names already */
    struct perf_header header;
    bool open; /* a sample is being read */
    struct kiln_textframe frame;
    bool has_frame; /* one is kept */
    int64_t first_ns, last_ns;
    struct kiln_str host;
};

static bool next_line(struct kiln_str *rest, struct kiln_str *line)
{
    if (rest->len == 0)
        return false;
    *line = kiln_str_cut(rest, '\n');
    if (line->len && line->ptr[line->len - 1] == '\r')
        line->len--;
    return true;
}

/* ---- events ---- */

/* The name without modifiers: "cycles:ppp" is cycles, "sched:sched_switch" stays. */
static struct kiln_str base_name(struct kiln_str event)
{
    const char *colon = event.len ? memrchr(event.ptr, ':', event.len) : NULL;

    if (!colon)
        return event;
    for (const char *p = colon + 1; p < event.ptr + event.len; p++) {
        if (!strchr("ukhGHpPSDIeW", *p))
            return event;
    }
    event.len = (size_t)(colon - event.ptr);
    return event;
}

/* The name as a type: the parts of a type id stand between colons. */
static uint32_t type_name(struct decoder *d, struct kiln_str name)
{
    char text[128];
    size_t n = name.len < sizeof(text) ? name.len : sizeof(text);

    for (size_t i = 0; i < n; i++)
        text[i] = name.ptr[i] == ':' ? '.' : name.ptr[i];
    return kiln_textstack_string(&d->stack, (struct kiln_str){text, n});
}

static struct kiln_value_type type_of(struct decoder *d, const struct event *event)
{
    struct kiln_str base = base_name(event->name);
    bool clock =
        kiln_str_eq(base, KILN_STR("cpu-clock")) || kiln_str_eq(base, KILN_STR("task-clock"));

    if (clock && event->has_period && !d->has_cpu) {
        d->has_cpu = true;
        return (struct kiln_value_type){kiln_builder_string(d->b, KILN_STR("cpu")),
                                        kiln_builder_string(d->b, KILN_STR("nanoseconds"))};
    }
    if (base.len == 0 || (!event->has_period && !d->has_samples)) {
        d->has_samples = true;
        base = KILN_STR("samples");
    }
    return (struct kiln_value_type){type_name(d, base),
                                    kiln_builder_string(d->b, clock && event->has_period
                                                                  ? KILN_STR("nanoseconds")
                                                                  : KILN_STR("count"))};
}

/* The event of the present sample, with its profile; NULL past the limit. */
static struct event *event_of(struct decoder *d)
{
    struct kiln_profile profile = {0};
    struct event *event;

    for (uint32_t i = 0; i < d->n_events; i++) {
        if (kiln_str_eq(d->events[i].name, d->header.event))
            return &d->events[i];
    }
    if (d->n_events == EVENTS_MAX)
        return NULL;
    event = &d->events[d->n_events++];
    *event = (struct event){
        .name = d->header.event,
        .has_period = d->header.period >= 0,
        .period = d->header.period,
    };
    profile.sample_type = type_of(d, event);
    if (event->has_period)
        profile.period_type = profile.sample_type;
    event->profile = kiln_builder_add_profile(d->b, &profile);
    return event;
}

/* ---- samples ---- */

static uint32_t attrs_of(struct decoder *d)
{
    const struct {
        struct kiln_str key;
        int64_t value;
    } numbers[] = {
        {KILN_STR("thread.id"), d->header.tid},
        {KILN_STR("process.pid"), d->header.pid},
        {KILN_STR("cpu.logical_number"), d->header.cpu},
    };
    uint32_t attrs[KILN_ARRAY_LEN(numbers) + 1], n = 0;

    if (d->header.comm.len)
        attrs[n++] = kiln_builder_attr(
            d->b, kiln_builder_string(d->b, KILN_STR("thread.name")),
            kiln_value_string(kiln_textstack_string(&d->stack, d->header.comm)), 0);
    for (size_t i = 0; i < KILN_ARRAY_LEN(numbers); i++) {
        if (numbers[i].value >= 0)
            attrs[n++] = kiln_builder_attr(d->b, kiln_builder_string(d->b, numbers[i].key),
                                           kiln_value_int(numbers[i].value), 0);
    }
    return kiln_builder_set(d->b, attrs, n, NULL);
}

static void note_time(struct decoder *d)
{
    int64_t time = d->header.time_ns;

    if (time < 0)
        return;
    if (d->first_ns < 0 || time < d->first_ns)
        d->first_ns = time;
    if (time > d->last_ns)
        d->last_ns = time;
}

static int flush_frame(struct decoder *d, struct kiln_err *err)
{
    int r = d->has_frame ? kiln_textstack_add(&d->stack, &d->frame) : 0;

    d->has_frame = false;
    return r < 0 ? kiln_err_set(err, r, NULL, "a stack of more than %u frames, or no memory",
                                kiln_builder_limits(d->b)->stack_depth)
                 : 0;
}

static int close_sample(struct decoder *d, struct kiln_err *err)
{
    struct event *event;
    int r;

    if (!d->open)
        return 0;
    d->open = false;
    if (!d->has_frame && perf_parse_frame(d->header.rest, true, &d->frame))
        d->has_frame = d->stack.n_locations == 0;
    r = flush_frame(d, err);
    if (r < 0)
        return r;
    event = event_of(d);
    if (!event)
        return kiln_err_set(err, KILN_E_LIMIT, NULL, "more than %u events", EVENTS_MAX);
    note_time(d);
    event->period_varies |= d->header.period != event->period;
    kiln_builder_add_value(d->b, event->profile, kiln_textstack_take(&d->stack, false), attrs_of(d),
                           event->has_period && d->header.period >= 0 ? d->header.period : 1);
    return kiln_builder_error(d->b);
}

/* ---- lines ---- */

/* "# hostname : box" */
static void read_comment(struct decoder *d, struct kiln_str line)
{
    struct kiln_str value = line, key = kiln_str_cut(&value, ':');

    if (value.ptr && kiln_str_eq(kiln_str_trim(key), KILN_STR("# hostname")))
        d->host = kiln_str_trim(value);
}

static int read_frame(struct decoder *d, const struct kiln_textframe *frame, struct kiln_err *err)
{
    int r = flush_frame(d, err);

    if (!d->open)
        d->header =
            (struct perf_header){.pid = -1, .tid = -1, .cpu = -1, .period = -1, .time_ns = -1};
    d->open = true;
    d->frame = *frame;
    d->has_frame = true;
    return r;
}

static int read_header(struct decoder *d, const struct perf_header *header, struct kiln_err *err)
{
    int r = close_sample(d, err);

    d->header = *header;
    d->open = true;
    return r;
}

static int read_line(struct decoder *d, struct kiln_str line, struct kiln_err *err)
{
    bool indented = line.ptr[0] == ' ' || line.ptr[0] == '\t';
    struct kiln_textframe frame;
    struct perf_header header;

    if (kiln_str_contains(line, KILN_STR(" PERF_RECORD_")))
        return close_sample(d, err);
    if (line.ptr[0] == '\t' && perf_parse_frame(line, false, &frame))
        return read_frame(d, &frame, err);
    if (perf_parse_header(line, &header) && (!indented || header.time_ns >= 0 || header.event.len))
        return read_header(d, &header, err);
    if (indented && perf_parse_frame(line, false, &frame))
        return read_frame(d, &frame, err);
    if (!indented || !d->open)
        return kiln_err_set(err, KILN_E_MALFORMED, NULL, "neither a sample nor a frame: %.*s",
                            line.len < 80 ? (int)line.len : 80, line.ptr);
    if (d->has_frame)
        perf_parse_source(line, &d->frame);
    return 0;
}

static int read_lines(struct decoder *d, struct kiln_str text, struct kiln_err *err)
{
    struct kiln_str line;
    size_t number = 0;
    int r = 0;

    while (r == 0 && next_line(&text, &line)) {
        number++;
        if (kiln_str_trim(line).len == 0)
            r = close_sample(d, err);
        else if (line.ptr[0] == '#')
            read_comment(d, line);
        else
            r = read_line(d, line, err);
    }
    if (r == 0)
        r = close_sample(d, err);
    if (r < 0)
        kiln_err_within(err, "line %zu", number);
    return r;
}

/* What is known only at the end: periods, duration, host. */
static void finish(struct decoder *d, uint32_t resource)
{
    for (uint32_t i = 0; i < d->n_events; i++) {
        struct kiln_profile *profile = kiln_builder_profile(d->b, d->events[i].profile);

        if (d->last_ns > d->first_ns)
            profile->duration_ns = (uint64_t)(d->last_ns - d->first_ns);
        if (d->events[i].has_period && !d->events[i].period_varies)
            profile->period = d->events[i].period;
    }
    if (d->host.len) {
        uint32_t attr =
            kiln_builder_attr(d->b, kiln_builder_string(d->b, KILN_STR("host.name")),
                              kiln_value_string(kiln_textstack_string(&d->stack, d->host)), 0);
        uint32_t set = kiln_builder_set(d->b, &attr, 1, NULL);

        kiln_builder_resource(d->b, resource)->attrs = set;
    }
}

int kiln_perf_decode(struct kiln_str text, struct kiln_builder *b, struct kiln_err *err)
{
    struct decoder *d = kiln_calloc(1, sizeof(*d));
    uint32_t resource;
    int r;

    if (!d)
        return -ENOMEM;
    d->b = b;
    d->first_ns = -1;
    kiln_textstack_init(&d->stack, b);
    resource = kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    r = kiln_builder_error(b);
    if (r == 0)
        r = read_lines(d, text, err);
    if (r == 0)
        finish(d, resource);
    if (r == 0)
        r = kiln_builder_error(b);
    kiln_textstack_done(&d->stack);
    kiln_free(d);
    return r;
}

/* ---- detection ---- */

/* The header of a sample as perf prints it unless told otherwise. */
static bool is_header(struct kiln_str line, struct perf_header *ret)
{
    return perf_parse_header(line, ret) && ret->tid >= 0 && ret->comm.len &&
           (ret->time_ns >= 0 || ret->event.len);
}

bool kiln_perf_detect(struct kiln_str text)
{
    struct perf_header header;
    struct kiln_textframe frame;
    struct kiln_str line;
    bool open = false;

    for (int n = 0; n < DETECT_LINES && next_line(&text, &line); n++) {
        if (kiln_str_trim(line).len == 0 || line.ptr[0] == '#' ||
            kiln_str_contains(line, KILN_STR(" PERF_RECORD_")))
            continue;
        if (open && line.ptr[0] == '\t')
            return perf_parse_frame(line, false, &frame);
        if (!is_header(line, &header))
            return false;
        if (header.time_ns >= 0 && header.event.len &&
            (perf_parse_frame(header.rest, true, &frame) || open))
            return true; /* a frame on the same line, or a sample without a stack */
        open = true;
    }
    return open && header.time_ns >= 0 && header.event.len;
}
