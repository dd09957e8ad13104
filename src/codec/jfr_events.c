/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events become samples:
 *
 *   event                              sample types                         value
 *   jdk.ExecutionSample                cpu/nanoseconds                      the interval
 *   jdk.CPUTimeSample                  cpu/nanoseconds                      samplingPeriod
 *   jdk.NativeMethodSample             native/nanoseconds                   the interval
 *   profiler.WallClockSample           wall/nanoseconds                     samples * the interval
 *   jdk.ObjectAllocationInNewTLAB      alloc_in_new_tlab_objects/count, _bytes/bytes    tlabSize
 *   jdk.ObjectAllocationOutsideTLAB    alloc_outside_tlab_objects/count, _bytes/bytes
 * allocationSize jdk.ObjectAllocationSample         alloc_objects/count, alloc_space/bytes weight
 *   profiler.LiveObject                inuse_objects/count, inuse_space/bytes allocationSize
 *   jdk.OldObjectSample                inuse_objects/count, inuse_space/bytes           objectSize
 *   profiler.Malloc                    malloc_objects/count, malloc_bytes/bytes         size
 *   jdk.JavaMonitorEnter               contentions/count, delay/nanoseconds (mutex)     duration
 *   profiler.NativeLock                the same
 *   jdk.ThreadPark                     contentions/count, delay/nanoseconds (block)     duration
 *
 * Allocations beside a TLAB have the names Pyroscope knows them by; a new TLAB stands for all that
 * was allocated in it.  The interval comes from jdk.ActiveSetting: async-profiler's interval and
 * wall, the JDK's period.  Where it is not known, or jdk.CPUTimeSample already gives the CPU time,
 * execution samples are only counted: samples/count.
 *
 * async-profiler also writes its other engines as jdk.ExecutionSample.  With event=wall all of them
 * are wall-clock samples, and those of threads that do not sleep are CPU time too; beside CPU
 * sampling, wall-clock samples are those with a thread state.  Of hardware events (cache-misses)
 * the sample type is the event, the value the interval.  jdk.NativeMethodSample is no CPU time:
 * the JVM cannot tell whether native code runs or waits.
 *
 * Samples are added up by stack, thread, class, thread state and span.  Their times are dropped:
 * with them a recording would be as large as before.  They are read in two passes over the chunk,
 * because settings may stand behind the samples they are about.
 */
#include <errno.h>
#include <stdio.h>

#include "base/hash.h"
#include "codec/jfr_int.h"

#define CHUNK_HEADER_BYTES 68u

enum family {
    EXECUTION,
    CPU_TIME,
    HARDWARE,
    WALL,
    NATIVE,
    IN_TLAB,
    OUTSIDE_TLAB,
    ALLOC,
    LIVE,
    MALLOC,
    MUTEX,
    BLOCK,
    FAMILIES,
    NO_FAMILY = FAMILIES
};

enum event {
    NO_EVENT,
    EXECUTION_SAMPLE,
    CPU_TIME_SAMPLE,
    NATIVE_SAMPLE,
    WALL_SAMPLE,
    SETTING,
    JVM_INFORMATION,
    WEIGHED, /* and all after it: counted once, with a weight */
};

static const struct {
    struct kiln_str type;
    uint8_t event;
    uint8_t family;
    uint8_t weight; /* slot */
} events[] = {
#define EVENT(name, event, family, weight)                                                         \
    {                                                                                              \
        {name, sizeof(name) - 1}, event, family, weight                                            \
    }
    EVENT("", NO_EVENT, NO_FAMILY, 0),
    EVENT("jdk.ExecutionSample", EXECUTION_SAMPLE, EXECUTION, 0),
    EVENT("jdk.CPUTimeSample", CPU_TIME_SAMPLE, CPU_TIME, KILN_JFR_SAMPLING_PERIOD),
    EVENT("jdk.NativeMethodSample", NATIVE_SAMPLE, NATIVE, 0),
    EVENT("profiler.WallClockSample", WALL_SAMPLE, WALL, KILN_JFR_SAMPLES),
    EVENT("jdk.ActiveSetting", SETTING, NO_FAMILY, 0),
    EVENT("jdk.JVMInformation", JVM_INFORMATION, NO_FAMILY, 0),
    EVENT("jdk.ObjectAllocationInNewTLAB", WEIGHED, IN_TLAB, KILN_JFR_TLAB_SIZE),
    EVENT("jdk.ObjectAllocationOutsideTLAB", WEIGHED, OUTSIDE_TLAB, KILN_JFR_ALLOCATION_SIZE),
    EVENT("jdk.ObjectAllocationSample", WEIGHED, ALLOC, KILN_JFR_WEIGHT),
    EVENT("profiler.LiveObject", WEIGHED, LIVE, KILN_JFR_ALLOCATION_SIZE),
    EVENT("jdk.OldObjectSample", WEIGHED, LIVE, KILN_JFR_OBJECT_SIZE),
    EVENT("profiler.Malloc", WEIGHED, MALLOC, KILN_JFR_SIZE),
    EVENT("jdk.JavaMonitorEnter", WEIGHED, MUTEX, KILN_JFR_DURATION),
    EVENT("profiler.NativeLock", WEIGHED, MUTEX, KILN_JFR_DURATION),
    EVENT("jdk.ThreadPark", WEIGHED, BLOCK, KILN_JFR_DURATION),
#undef EVENT
};

/* The profiles of a family; of its two sums, `value` is the one the profile shows. */
struct row {
    uint8_t family;
    uint8_t value;
    struct kiln_str type, unit, period_type, period_unit;
};

#define S(literal)                                                                                 \
    {                                                                                              \
        literal, sizeof(literal) - 1                                                               \
    }
static const struct row rows[] = {
    {EXECUTION, 0, S("cpu"), S("nanoseconds"), S("cpu"), S("nanoseconds")},
    {CPU_TIME, 0, S("cpu"), S("nanoseconds"), S("cpu"), S("nanoseconds")},
    {EXECUTION, 1, S("samples"), S("count"), S(""), S("")},
    {HARDWARE, 0, S(""), S("count"), S(""), S("count")},
    {WALL, 0, S("wall"), S("nanoseconds"), S("wall"), S("nanoseconds")},
    {NATIVE, 0, S("native"), S("nanoseconds"), S("wall"), S("nanoseconds")},
    {NATIVE, 1, S("native"), S("count"), S(""), S("")},
    {IN_TLAB, 0, S("alloc_in_new_tlab_objects"), S("count"), S("space"), S("bytes")},
    {IN_TLAB, 1, S("alloc_in_new_tlab_bytes"), S("bytes"), S("space"), S("bytes")},
    {OUTSIDE_TLAB, 0, S("alloc_outside_tlab_objects"), S("count"), S("space"), S("bytes")},
    {OUTSIDE_TLAB, 1, S("alloc_outside_tlab_bytes"), S("bytes"), S("space"), S("bytes")},
    {ALLOC, 0, S("alloc_objects"), S("count"), S("space"), S("bytes")},
    {ALLOC, 1, S("alloc_space"), S("bytes"), S("space"), S("bytes")},
    {LIVE, 0, S("inuse_objects"), S("count"), S("space"), S("bytes")},
    {LIVE, 1, S("inuse_space"), S("bytes"), S("space"), S("bytes")},
    {MALLOC, 0, S("malloc_objects"), S("count"), S("space"), S("bytes")},
    {MALLOC, 1, S("malloc_bytes"), S("bytes"), S("space"), S("bytes")},
    {MUTEX, 0, S("contentions"), S("count"), S("contentions"), S("count")},
    {MUTEX, 1, S("delay"), S("nanoseconds"), S("contentions"), S("count")},
    {BLOCK, 0, S("contentions"), S("count"), S("contentions"), S("count")},
    {BLOCK, 1, S("delay"), S("nanoseconds"), S("contentions"), S("count")},
};

enum state { STATE_OTHER, STATE_DEFAULT, STATE_RUNNABLE, STATE_SLEEPING };

/* What makes two events one sample; compared as bytes. */
struct key {
    uint64_t span_id, context_id;
    uint32_t stack;
    uint32_t threads; /* attribute set */
    uint32_t class;   /* attribute */
    uint16_t family;
    uint16_t state; /* of wall-clock samples */
};
_Static_assert(sizeof(struct key) == 32, "a key has no padding");

struct sample {
    struct key key;
    int64_t values[2];
};

struct kiln_jfr_samples {
    struct kiln_intern index;
    struct sample *at;
    uint32_t n, cap;
    int64_t period[FAMILIES]; /* the last one seen */
    bool seen[FAMILIES];
    bool weighed[FAMILIES]; /* any second value is not 0 */
    bool interval_unknown;
};

uint8_t kiln_jfr_event_named(struct kiln_str type)
{
    for (size_t i = 1; i < KILN_ARRAY_LEN(events); i++) {
        if (kiln_str_eq(events[i].type, type))
            return (uint8_t)i;
    }
    return 0;
}

int kiln_jfr_samples_new(struct kiln_jfr *j)
{
    j->samples = kiln_calloc(1, sizeof(*j->samples));
    return j->samples ? 0 : -ENOMEM;
}

void kiln_jfr_samples_free(struct kiln_jfr *j)
{
    struct kiln_jfr_samples *s = j->samples;

    if (!s)
        return;
    kiln_intern_done(&s->index, &j->budget);
    kiln_array_free(&j->budget, (void **)&s->at, &s->cap, sizeof(*s->at));
    kiln_free(s);
}

/* ---- adding up ---- */

static int64_t add_sat(int64_t a, int64_t b)
{
    int64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* A size or duration as it was read: never negative. */
static int64_t amount(uint64_t number)
{
    return (int64_t)number < 0 ? 0 : (int64_t)number;
}

static int add_sample(struct kiln_jfr *j, const struct key *key, int64_t first, int64_t second)
{
    struct kiln_jfr_samples *s = j->samples;
    uint64_t hash = kiln_hash(key, sizeof(*key));
    struct sample *sample = NULL;
    int r;

    for (struct kiln_probe p = kiln_intern_probe(&s->index, hash);
         !sample && kiln_intern_next(&s->index, &p);) {
        if (memcmp(&s->at[p.entry].key, key, sizeof(*key)) == 0)
            sample = &s->at[p.entry];
    }
    if (!sample) {
        r = kiln_grow(&j->budget, (void **)&s->at, &s->cap, (uint64_t)s->n + 1, sizeof(*s->at),
                      kiln_builder_limits(j->b)->table_count);
        if (r == 0)
            r = kiln_intern_add(&s->index, &j->budget, hash, s->n);
        if (r < 0)
            return r;
        sample = &s->at[s->n++];
        *sample = (struct sample){.key = *key};
    }
    s->seen[key->family] = true;
    s->weighed[key->family] |= second != 0;
    sample->values[0] = add_sat(sample->values[0], first);
    sample->values[1] = add_sat(sample->values[1], second);
    return 0;
}

static int make_key(struct kiln_jfr *j, const struct kiln_jfr_record *r, struct key *ret,
                    struct kiln_err *err)
{
    static const uint8_t classes[] = {KILN_JFR_OBJECT_CLASS, KILN_JFR_MONITOR_CLASS,
                                      KILN_JFR_PARKED_CLASS};
    bool sampled = r->numbers >> KILN_JFR_SAMPLED_THREAD & 1;

    *ret = (struct key){
        .span_id = kiln_jfr_number(r, KILN_JFR_SPAN_ID),
        .context_id = kiln_jfr_number(r, KILN_JFR_CONTEXT_ID),
        .threads = kiln_jfr_thread_set(
            j, kiln_jfr_number(r, sampled ? KILN_JFR_SAMPLED_THREAD : KILN_JFR_THREAD)),
    };
    for (size_t i = 0; i < KILN_ARRAY_LEN(classes) && !ret->class; i++) {
        if (r->numbers >> classes[i] & 1)
            ret->class = kiln_jfr_class_attr(j, r->number[classes[i]]);
    }
    return kiln_jfr_stack(j, kiln_jfr_number(r, KILN_JFR_STACK), &ret->stack, err);
}

static enum state state_of(const struct kiln_jfr *j, const struct kiln_jfr_record *r)
{
    struct kiln_jfr_name *state =
        kiln_jfr_find(&j->chunk, KILN_JFR_STATES, kiln_jfr_number(r, KILN_JFR_STATE));
    char text[KILN_JFR_TEXT_MAX];
    struct kiln_str s = {text, 0};

    if (!state)
        return STATE_OTHER;
    if (!state->memo) {
        s.len = kiln_jfr_text_get(&j->chunk, state->text, text);
        state->memo = 1 + (kiln_str_eq(s, KILN_STR("STATE_DEFAULT"))    ? STATE_DEFAULT
                           : kiln_str_eq(s, KILN_STR("STATE_RUNNABLE")) ? STATE_RUNNABLE
                           : kiln_str_eq(s, KILN_STR("STATE_SLEEPING")) ? STATE_SLEEPING
                                                                        : STATE_OTHER);
    }
    return state->memo - 1;
}

/* Adds ticks of a clock or a counter, of which each stands for `worth`. */
static int add_ticks(struct kiln_jfr *j, struct key key, enum family family, int64_t ticks,
                     int64_t worth)
{
    int64_t value;

    key.family = (uint16_t)family;
    if (worth)
        j->samples->period[family] = worth;
    if (__builtin_mul_overflow(ticks, worth, &value))
        value = INT64_MAX;
    return add_sample(j, &key, value, ticks);
}

/* Execution samples and wall-clock samples: both may be both. */
static int add_clock(struct kiln_jfr *j, struct key *key, const struct kiln_jfr_record *r,
                     bool is_wall)
{
    const struct kiln_jfr_settings *s = &j->settings;
    enum state state = state_of(j, r);
    int64_t ticks = is_wall ? amount(kiln_jfr_number(r, KILN_JFR_SAMPLES)) : 1;
    struct key wall = *key;
    int e = 0;

    wall.state = (uint16_t)state;
    if (!is_wall && s->wall_beside)
        is_wall = state == STATE_RUNNABLE || state == STATE_SLEEPING;
    if (is_wall || s->wall_only)
        e = add_ticks(j, wall, WALL, ticks, s->wall_worth);
    if (e < 0 || state == STATE_SLEEPING || (is_wall && !s->wall_only))
        return e;
    j->samples->interval_unknown |= s->execution_worth == 0;
    return add_ticks(j, *key, s->is_clock ? EXECUTION : HARDWARE, ticks, s->execution_worth);
}

static int add_event(struct kiln_jfr *j, uint8_t event, const struct kiln_jfr_record *r,
                     struct kiln_err *err)
{
    struct key key;
    int64_t weight = amount(kiln_jfr_number(r, events[event].weight));
    int e = make_key(j, r, &key, err);

    if (e < 0)
        return e;
    key.family = events[event].family;
    switch (events[event].event) {
    case EXECUTION_SAMPLE:
    case WALL_SAMPLE:
        return add_clock(j, &key, r, events[event].event == WALL_SAMPLE);
    case CPU_TIME_SAMPLE:
        return add_ticks(j, key, CPU_TIME, 1, weight);
    case NATIVE_SAMPLE:
        return add_ticks(j, key, NATIVE, 1, amount((uint64_t)j->settings.native_period_ns));
    default:
        return add_sample(j, &key, 1, weight);
    }
}

/* ---- walking a chunk ---- */

static bool is_setting(uint8_t event)
{
    return events[event].event == SETTING || events[event].event == JVM_INFORMATION;
}

static int read_event(struct kiln_jfr *j, struct kiln_jfr_in *in, struct kiln_jfr_type *type,
                      struct kiln_err *err)
{
    struct kiln_jfr_record record;
    int r = kiln_jfr_compile(&j->chunk, type);

    if (r < 0)
        return r;
    kiln_jfr_run(&j->chunk, in, type, &record);
    if (in->error)
        return in->error;
    if (events[type->event].event == SETTING)
        kiln_jfr_read_setting(j, &record);
    else if (events[type->event].event == JVM_INFORMATION)
        kiln_jfr_read_jvm(j, &record);
    else
        r = add_event(j, type->event, &record, err);
    return r ? r : kiln_builder_error(j->b);
}

/* One pass over all events of the chunk, for the settings or for the samples. */
static int walk(struct kiln_jfr *j, bool settings, struct kiln_err *err)
{
    const struct kiln_jfr_chunk *c = &j->chunk;
    struct kiln_jfr_in in = {c->base + CHUNK_HEADER_BYTES, c->base + c->size, 0};

    while (in.at < in.end) {
        const uint8_t *start = in.at;
        uint64_t size = kiln_jfr_varint(&in);
        uint64_t id = kiln_jfr_varint(&in);
        struct kiln_jfr_type *type = kiln_jfr_find_type(c, id);
        struct kiln_jfr_in event = {in.at, in.end, 0};
        int r = in.error;

        if (r == 0 && (size > (uint64_t)(in.end - start) || size < (uint64_t)(in.at - start)))
            r = KILN_E_MALFORMED;
        if (r == 0)
            event.end = start + size;
        if (r == 0 && type && type->event && is_setting(type->event) == settings)
            r = read_event(j, &event, type, err);
        if (r < 0) {
            kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
            kiln_err_within(err, "event at 0x%zx", c->offset + (size_t)(start - c->base));
            return r;
        }
        in.at = start + size;
    }
    return 0;
}

int kiln_jfr_read_events(struct kiln_jfr *j, struct kiln_err *err)
{
    int r = walk(j, true, err);

    if (r < 0)
        return r;
    kiln_jfr_settings_conclude(j);
    return walk(j, false, err);
}

/* ---- profiles ---- */

/*
 * Ticks are shown as time, or as a count where that is unknown or, for execution samples, known
 * better.  Of other families, sizes are left out where no event had one: older JVMs weigh nothing.
 */
static bool is_wanted(const struct kiln_jfr_samples *s, const struct row *row)
{
    if (!s->seen[row->family])
        return false;
    if (row->family == EXECUTION)
        return row->value == (s->interval_unknown || s->seen[CPU_TIME]);
    if (row->family == NATIVE)
        return row->value == (s->period[NATIVE] == 0);
    return row->value == 0 || s->weighed[row->family];
}

/* Waiting for a lock and being parked have the same types; profile.type tells them apart. */
static uint32_t profile_attrs(struct kiln_jfr *j, uint8_t family)
{
    uint32_t attrs[2], n = 0;

    if (family == BLOCK)
        attrs[n++] = kiln_builder_text_attr(j->b, KILN_STR("profile.type"), KILN_STR("block"));
    if (j->incomplete[0])
        attrs[n++] =
            kiln_builder_text_attr(j->b, KILN_STR("jfr.incomplete"), kiln_str_of(j->incomplete));
    return kiln_builder_set(j->b, attrs, n, NULL);
}

static uint32_t add_profile(struct kiln_jfr *j, const struct row *row)
{
    struct kiln_str type = row->family == HARDWARE ? kiln_str_of(j->settings.event) : row->type;
    struct kiln_str period_type = row->family == HARDWARE ? type : row->period_type;

    return kiln_builder_add_profile(
        j->b,
        &(struct kiln_profile){
            .sample_type = {kiln_builder_string(j->b, type), kiln_builder_string(j->b, row->unit)},
            .period_type = {kiln_builder_string(j->b, period_type),
                            kiln_builder_string(j->b, row->period_unit)},
            .period = row->period_type.len || row->family == HARDWARE
                          ? j->samples->period[row->family]
                          : 0,
            .time_ns = j->start_ns,
            .duration_ns = j->end_ns - j->start_ns,
            .attrs = profile_attrs(j, row->family),
        });
}

static uint32_t add_hex_attr(struct kiln_jfr *j, struct kiln_str key, uint64_t value)
{
    char text[17];

    snprintf(text, sizeof(text), "%016llx", (unsigned long long)value);
    return kiln_builder_text_attr(j->b, key, kiln_str_of(text));
}

static uint32_t sample_attrs(struct kiln_jfr *j, const struct key *key)
{
    static const char *const states[] = {
        [STATE_RUNNABLE] = "runnable", [STATE_SLEEPING] = "sleeping"};
    const struct kiln_dict *d = &kiln_builder_peek(j->b)->dict;
    struct kiln_range threads = d->sets[key->threads];
    uint32_t attrs[8], n = 0;

    for (; n < threads.n && n < 2; n++)
        attrs[n] = d->members[threads.first + n];
    if (key->class)
        attrs[n++] = key->class;
    if (key->state >= STATE_RUNNABLE)
        attrs[n++] =
            kiln_builder_text_attr(j->b, KILN_STR("thread.state"), kiln_str_of(states[key->state]));
    if (key->span_id)
        attrs[n++] = add_hex_attr(j, KILN_STR("span_id"), key->span_id);
    if (key->context_id)
        attrs[n++] = kiln_builder_attr(j->b, kiln_builder_string(j->b, KILN_STR("jfr.context_id")),
                                       kiln_value_int((int64_t)key->context_id), 0);
    return kiln_builder_set(j->b, attrs, n, NULL);
}

void kiln_jfr_add_profiles(struct kiln_jfr *j)
{
    struct kiln_jfr_samples *s = j->samples;
    uint32_t profiles[FAMILIES][2];
    bool wanted[FAMILIES][2] = {0};

    s->period[IN_TLAB] = s->period[OUTSIDE_TLAB] = s->period[LIVE] =
        amount((uint64_t)j->settings.alloc_bytes);
    s->period[MALLOC] = amount((uint64_t)j->settings.malloc_bytes);
    for (size_t i = 0; i < KILN_ARRAY_LEN(rows); i++) {
        if (!is_wanted(s, &rows[i]))
            continue;
        wanted[rows[i].family][rows[i].value] = true;
        profiles[rows[i].family][rows[i].value] = add_profile(j, &rows[i]);
    }
    for (uint32_t i = 0; i < s->n && !kiln_builder_error(j->b); i++) {
        const struct sample *sample = &s->at[i];
        uint32_t set = sample_attrs(j, &sample->key);

        for (unsigned v = 0; v < 2; v++) {
            if (wanted[sample->key.family][v])
                kiln_builder_add_value(j->b, profiles[sample->key.family][v], sample->key.stack,
                                       set, sample->values[v]);
        }
    }
}
