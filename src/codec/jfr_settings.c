/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a recorder was told to do, and in which process it ran.
 *
 * jdk.ActiveSetting has the id of the type that a setting is about, a name and a value, all texts.
 * async-profiler writes numbers (an interval of 0 is its default), the JDK "20 ms".
 */
#include <stdio.h>

#include "codec/jfr_int.h"

#define CPU_INTERVAL_NS  10000000 /* async-profiler's defaults */
#define WALL_INTERVAL_NS 50000000

/* "20 ms", as the JDK writes periods; 0 for "everyChunk" and the like. */
static int64_t parse_period(struct kiln_str s)
{
    static const struct {
        struct kiln_str name;
        int64_t ns;
    } units[] = {
        {{"", 0}, 1},
        {{"ns", 2}, 1},
        {{"us", 2}, 1000},
        {{"ms", 2}, 1000000},
        {{"s", 1}, 1000000000},
        {{"m", 1}, 60000000000},
        {{"h", 1}, 3600000000000},
        {{"d", 1}, 86400000000000},
    };
    struct kiln_str digits = {s.ptr, 0};
    int64_t n;

    while (digits.len < s.len && s.ptr[digits.len] >= '0' && s.ptr[digits.len] <= '9')
        digits.len++;
    if (kiln_str_parse_i64(digits, &n) < 0)
        return 0;
    s = kiln_str_trim((struct kiln_str){s.ptr + digits.len, s.len - digits.len});
    for (size_t i = 0; i < KILN_ARRAY_LEN(units); i++) {
        if (kiln_str_eq(units[i].name, s))
            return __builtin_mul_overflow(n, units[i].ns, &n) ? 0 : n;
    }
    return 0;
}

/* Cuts between characters, where it must. */
static void copy_text(char *out, size_t size, struct kiln_str s)
{
    if (s.len >= size) {
        s.len = size - 1;
        while (s.len && (s.ptr[s.len] & 0xc0) == 0x80)
            s.len--;
    }
    snprintf(out, size, "%.*s", KILN_STR_ARG(s));
}

static void apply(struct kiln_jfr *j, struct kiln_str about, struct kiln_str name,
                  struct kiln_str value)
{
    struct kiln_jfr_settings *s = &j->settings;
    struct {
        struct kiln_str about, name;
        int64_t *where;
    } numbers[] = {
        {KILN_STR("jdk.ExecutionSample"), KILN_STR("interval"), &s->interval},
        {KILN_STR("jdk.ExecutionSample"), KILN_STR("wall"), &s->wall_interval},
        {KILN_STR("jdk.ExecutionSample"), KILN_STR("period"), &s->period_ns},
        {KILN_STR("jdk.NativeMethodSample"), KILN_STR("period"), &s->native_period_ns},
        {KILN_STR("jdk.ObjectAllocationInNewTLAB"), KILN_STR("alloc"), &s->alloc_bytes},
        {KILN_STR("profiler.Malloc"), KILN_STR("nativemem"), &s->malloc_bytes},
    };

    if (kiln_str_eq(about, KILN_STR("jdk.ActiveRecording"))) {
        if (kiln_str_eq(name, KILN_STR("event")))
            copy_text(s->event, sizeof(s->event), value);
        if (kiln_str_eq(name, KILN_STR("version")))
            copy_text(j->profiler_version, sizeof(j->profiler_version), value);
    }
    for (size_t i = 0; i < KILN_ARRAY_LEN(numbers); i++) {
        if (kiln_str_eq(numbers[i].about, about) && kiln_str_eq(numbers[i].name, name))
            *numbers[i].where = parse_period(value);
    }
}

void kiln_jfr_read_setting(struct kiln_jfr *j, const struct kiln_jfr_record *r)
{
    const struct kiln_jfr_type *about =
        kiln_jfr_find_type(&j->chunk, kiln_jfr_number(r, KILN_JFR_ID));
    char name[KILN_JFR_TEXT_MAX], value[KILN_JFR_TEXT_MAX];
    struct kiln_str n = {name, 0}, v = {value, 0};

    if (!about)
        return;
    n.len = kiln_jfr_text_get(&j->chunk, kiln_jfr_text(r, KILN_JFR_NAME), name);
    v.len = kiln_jfr_text_get(&j->chunk, kiln_jfr_text(r, KILN_JFR_VALUE), value);
    if (v.len)
        apply(j, about->name, n, v);
}

void kiln_jfr_read_jvm(struct kiln_jfr *j, const struct kiln_jfr_record *r)
{
    char text[KILN_JFR_TEXT_MAX];
    struct kiln_str s = {text, 0};

    j->pid = kiln_jfr_number(r, KILN_JFR_PID);
    s.len = kiln_jfr_text_get(&j->chunk, kiln_jfr_text(r, KILN_JFR_JVM_NAME), text);
    copy_text(j->jvm_name, sizeof(j->jvm_name), s);
    s.len = kiln_jfr_text_get(&j->chunk, kiln_jfr_text(r, KILN_JFR_JVM_VERSION), text);
    copy_text(j->jvm_version, sizeof(j->jvm_version), s);
}

/* True if execution samples are ticks of a clock, and not of a hardware counter. */
static bool is_clock(const char *event)
{
    static const char *const clocks[] = {"",       "cpu",       "wall",      "itimer",
                                         "ctimer", "cpu-clock", "task-clock"};

    for (size_t i = 0; i < KILN_ARRAY_LEN(clocks); i++) {
        if (strcmp(event, clocks[i]) == 0)
            return true;
    }
    return false;
}

static int64_t execution_worth(const struct kiln_jfr *j)
{
    const struct kiln_jfr_settings *s = &j->settings;

    if (s->interval > 0)
        return s->interval;
    if (!s->is_clock)
        return 1;
    if (s->interval == 0 || j->profiler_version[0])
        return s->wall_only ? WALL_INTERVAL_NS : CPU_INTERVAL_NS;
    return s->period_ns > 0 ? s->period_ns : 0;
}

void kiln_jfr_settings_conclude(struct kiln_jfr *j)
{
    struct kiln_jfr_settings *s = &j->settings;

    s->is_clock = is_clock(s->event);
    s->wall_only = strcmp(s->event, "wall") == 0;
    s->wall_beside = s->wall_interval >= 0 && !s->wall_only;
    s->execution_worth = execution_worth(j);
    s->wall_worth = s->wall_only           ? s->execution_worth
                    : s->wall_interval > 0 ? s->wall_interval
                                           : WALL_INTERVAL_NS;
}
