/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/mem.h"
#include "drawn.h"
#include "test.h"

/* The ids of all profiles of a drawn batch, one a line. */
static const char *ids(const struct kiln_drawn *drawn, uint32_t n)
{
    static char text[2048];
    struct kiln_batch *batch = kiln_test_batch(drawn, n);
    struct kiln_type *types;
    struct kiln_buf out;

    CHECK_OK(kiln_types_of_batch(batch, false, &types));
    kiln_buf_init(&out, sizeof(text) - 1);
    for (uint32_t i = 0; i < n; i++) {
        kiln_type_id(&types[i], &out);
        kiln_buf_printf(&out, " *%lld%s\n", (long long)types[i].scale,
                        types[i].level ? " level" : "");
    }
    CHECK_OK(out.error);
    memcpy(text, out.ptr, out.len);
    text[out.len] = '\0';
    kiln_buf_done(&out);
    kiln_free(types);
    kiln_batch_unref(batch);
    return text;
}

#define CHECK_ID(expected, ...) CHECK_TEXT(ids(&(struct kiln_drawn){__VA_ARGS__}, 1), expected)

TEST(type, counted_cpu_samples_are_cpu_time)
{
    CHECK_ID("process_cpu:cpu:nanoseconds:cpu:nanoseconds *10000000\n", .type = "samples",
             .unit = "count", .period_type = "cpu", .period_unit = "nanoseconds",
             .period = 10000000);
}

TEST(type, counted_cpu_samples_beside_cpu_time_stay_a_count)
{
    const struct kiln_drawn drawn[] = {
        {.type = "samples",
         .unit = "count",
         .period_type = "cpu",
         .period_unit = "nanoseconds",
         .period = 10},
        {.type = "cpu",
         .unit = "nanoseconds",
         .period_type = "cpu",
         .period_unit = "nanoseconds",
         .period = 10},
        {.type = "samples",
         .unit = "count",
         .period_type = "cpu",
         .period_unit = "nanoseconds",
         .period = 20,
         .scope = "another"},
    };

    CHECK_TEXT(ids(drawn, 3), "process_cpu:samples:count:cpu:nanoseconds *1\n"
                              "process_cpu:cpu:nanoseconds:cpu:nanoseconds *1\n"
                              "process_cpu:cpu:nanoseconds:cpu:nanoseconds *20\n");
}

TEST(type, counted_cpu_samples_without_a_period_stay_a_count)
{
    CHECK_ID("process_cpu:samples:count:cpu:nanoseconds *1\n", .type = "samples", .unit = "count",
             .period_type = "cpu", .period_unit = "nanoseconds");
    CHECK_ID("process_cpu:samples:count:cpu:nanoseconds *1\n", .type = "samples", .unit = "count",
             .period_type = "cpu", .period_unit = "nanoseconds", .period = -5);
}

TEST(type, every_family_is_known)
{
    CHECK_ID("process_cpu:cpu:nanoseconds:cpu:nanoseconds *1\n", .type = "cpu",
             .unit = "nanoseconds");
    CHECK_ID("wall:wall:nanoseconds:wall:nanoseconds *1\n", .type = "wall", .unit = "nanoseconds");
    CHECK_ID("off_cpu:off_cpu:nanoseconds:: *1\n", .type = "off_cpu", .unit = "nanoseconds");
    CHECK_ID("memory:alloc_objects:count:space:bytes *1\n", .type = "alloc_objects",
             .unit = "count");
    CHECK_ID("memory:alloc_space:bytes:space:bytes *1\n", .type = "alloc_space", .unit = "bytes",
             .period_type = "space", .period_unit = "bytes", .period = 524288);
    CHECK_ID("memory:inuse_objects:count:space:bytes *1 level\n", .type = "inuse_objects",
             .unit = "count");
    CHECK_ID("memory:inuse_space:bytes:space:bytes *1 level\n", .type = "inuse_space",
             .unit = "bytes");
    CHECK_ID("goroutines:goroutine:count:goroutine:count *1 level\n", .type = "goroutine",
             .unit = "count");
    CHECK_ID("threads:threads:count:: *1 level\n", .type = "threads", .unit = "count");
    CHECK_ID("event_loop:lag:nanoseconds:: *1\n", .type = "lag", .unit = "nanoseconds");
}

TEST(type, contentions_are_of_locks_unless_the_profile_says_block)
{
    CHECK_ID("mutex:contentions:count:contentions:count *1\n", .type = "contentions",
             .unit = "count");
    CHECK_ID("mutex:delay:nanoseconds:contentions:count *1\n", .type = "delay",
             .unit = "nanoseconds");
    CHECK_ID("block:delay:nanoseconds:contentions:count *1\n", .type = "delay",
             .unit = "nanoseconds", .attrs = "profile.type=block");
    CHECK_ID("block:contentions:count:contentions:count *1\n", .type = "contentions",
             .unit = "count", .scope_attrs = "profile.type=block");
    CHECK_ID("block:contentions:count:contentions:count *1\n", .type = "contentions",
             .unit = "count", .scope = "block");
}

TEST(type, a_profile_may_name_its_family)
{
    CHECK_ID("goroutine:goroutine:count:goroutine:count *1 level\n", .type = "goroutine",
             .unit = "count", .attrs = "profile.type=goroutine");
    CHECK_ID("process_cpu:alloc_size:bytes:cpu:nanoseconds *1\n", .type = "alloc_size",
             .unit = "bytes", .period_type = "cpu", .period_unit = "nanoseconds",
             .attrs = "profile.type=process_cpu", .scope_attrs = "profile.type=memory");
    CHECK_ID("cpu_2:cpu:nanoseconds:cpu:nanoseconds *1\n", .type = "cpu", .unit = "nanoseconds",
             .scope_attrs = "profile.type=cpu_2");
    CHECK_ID("process_cpu:cpu:nanoseconds:cpu:nanoseconds *1\n", .type = "cpu",
             .unit = "nanoseconds", .attrs = "profile.type=a:b");
}

TEST(type, what_nobody_knows_is_a_family_of_its_own)
{
    CHECK_ID("exceptions:exceptions:count:: *1\n", .type = "exceptions", .unit = "count");
    CHECK_ID("memory:alloc_sample_bytes:bytes:: *1\n", .type = "alloc_sample_bytes",
             .unit = "bytes");
    CHECK_ID("memory:live_objects:count:: *1 level\n", .type = "live_objects", .unit = "count");
    CHECK_ID("wall:sample:count:wall:nanoseconds *1\n", .type = "sample", .unit = "count",
             .period_type = "wall", .period_unit = "nanoseconds", .period = 7);
    CHECK_ID("exception:exception:count:cpu:nanoseconds *1\n", .type = "exception", .unit = "count",
             .period_type = "cpu", .period_unit = "nanoseconds", .period = 1);
    CHECK_ID("memory:alloc_size:bytes:cpu:nanoseconds *1\n", .type = "alloc_size", .unit = "bytes",
             .period_type = "cpu", .period_unit = "nanoseconds", .period = 1);
    CHECK_ID("mutex:lock_time:nanoseconds:: *1\n", .type = "lock_time", .unit = "nanoseconds");
    CHECK_ID("memory:space:bytes:space:bytes *1 level\n", .type = "space", .unit = "bytes",
             .period_type = "space", .period_unit = "bytes", .period = 1);
    CHECK_ID("unknown:::: *1\n", .type = "", .unit = "");
}

TEST(type, a_type_is_found_by_its_name_its_unit_and_its_id)
{
    const struct kiln_type cpu = {
        .name = KILN_STR("process_cpu"),
        .type = KILN_STR("cpu"),
        .unit = KILN_STR("nanoseconds"),
        .period_type = KILN_STR("cpu"),
        .period_unit = KILN_STR("nanoseconds"),
    };

    CHECK(kiln_type_matches(&cpu, KILN_STR("cpu")));
    CHECK(kiln_type_matches(&cpu, KILN_STR("cpu:nanoseconds")));
    CHECK(kiln_type_matches(&cpu, KILN_STR("process_cpu:cpu:nanoseconds")));
    CHECK(kiln_type_matches(&cpu, KILN_STR("process_cpu:cpu:nanoseconds:cpu:nanoseconds")));
    CHECK(!kiln_type_matches(&cpu, KILN_STR("")));
    CHECK(!kiln_type_matches(&cpu, KILN_STR("process_cpu")));
    CHECK(!kiln_type_matches(&cpu, KILN_STR("cpu:count")));
    CHECK(!kiln_type_matches(&cpu, KILN_STR("wall:cpu:nanoseconds")));
    CHECK(!kiln_type_matches(&cpu, KILN_STR("process_cpu:cpu:nanoseconds:cpu")));
    CHECK(!kiln_type_matches(&cpu, KILN_STR("process_cpu:cpu:nanoseconds:cpu:count")));
    CHECK(!kiln_type_matches(&cpu, KILN_STR("process_cpu:cpu:nanoseconds:cpu:nanoseconds:")));
}

/* ---- the default ---- */

/* Of a batch that is the callee's from then on. */
static uint32_t default_of_batch(struct kiln_batch *batch)
{
    struct kiln_type *types;
    uint32_t index;

    CHECK_OK(kiln_types_of_batch(batch, false, &types));
    index = kiln_type_default(batch, types);
    kiln_free(types);
    kiln_batch_unref(batch);
    return index;
}

static uint32_t default_of(const struct kiln_drawn *drawn, uint32_t n)
{
    return default_of_batch(kiln_test_batch(drawn, n));
}

TEST(type, the_default_is_the_one_that_pprof_names)
{
    const struct kiln_drawn drawn[] = {
        {.type = "cpu",
         .unit = "nanoseconds",
         .scope_attrs = "pprof.scope.default_sample_type=alloc_space"},
        {.type = "alloc_space", .unit = "bytes"},
    };

    CHECK_EQ(default_of(drawn, 2), 1);
}

TEST(type, the_default_is_cpu_time_or_else_the_first)
{
    const struct kiln_drawn drawn[] = {
        {.type = "alloc_space", .unit = "bytes"},
        {.type = "wall", .unit = "nanoseconds"},
        {.type = "cpu", .unit = "nanoseconds"},
    };

    CHECK_EQ(default_of(drawn, 3), 2);
    CHECK_EQ(default_of(drawn, 2), 0);
}

/* A scope of two profiles, cpu 1 and delay `value`, that lists its types as pprof ordered them. */
static struct kiln_batch *ordered(bool by_name, int64_t value)
{
    struct kiln_batch *batch;
    struct kiln_builder *b;
    struct kiln_value order[2] = {kiln_value_int(0), kiln_value_int(1)};
    struct kiln_profile profile = {0};
    uint32_t attr;

    CHECK_OK(kiln_builder_new(NULL, &b));
    if (by_name) {
        order[0] = kiln_value_string(kiln_builder_string(b, KILN_STR("cpu")));
        order[1] = kiln_value_string(kiln_builder_string(b, KILN_STR("delay")));
    }
    attr = kiln_builder_attr(b, kiln_builder_string(b, KILN_STR("pprof.scope.sample_type_order")),
                             kiln_builder_array(b, order, 2), 0);
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){.attrs = kiln_builder_set(b, &attr, 1, NULL)});
    profile.sample_type.unit = kiln_builder_string(b, KILN_STR("nanoseconds"));
    profile.sample_type.type = kiln_builder_string(b, KILN_STR("cpu"));
    kiln_builder_add_value(b, kiln_builder_add_profile(b, &profile), 0, 0, 1);
    profile.sample_type.type = kiln_builder_string(b, KILN_STR("delay"));
    kiln_builder_add_value(b, kiln_builder_add_profile(b, &profile), 0, 0, value);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    return batch;
}

TEST(type, the_default_is_the_last_of_pprof_unless_it_is_empty)
{
    CHECK_EQ(default_of_batch(ordered(false, 7)), 1);
    CHECK_EQ(default_of_batch(ordered(true, 7)), 1);
    CHECK_EQ(default_of_batch(ordered(false, 0)), 0);
}

/* ---- numbers ---- */

static const char *value_text(double value, const char *unit)
{
    static char text[64];
    struct kiln_buf out;

    kiln_buf_init(&out, sizeof(text) - 1);
    kiln_format_value(&out, value, kiln_str_of(unit));
    snprintf(text, sizeof(text), "%.*s", KILN_STR_ARG(kiln_buf_str(&out)));
    kiln_buf_done(&out);
    return text;
}

TEST(format, times_have_three_digits_and_the_largest_unit_that_fits)
{
    CHECK_TEXT(value_text(0, "nanoseconds"), "0");
    CHECK_TEXT(value_text(1, "nanoseconds"), "1ns");
    CHECK_TEXT(value_text(1500, "nanoseconds"), "1.5us");
    CHECK_TEXT(value_text(340e6, "nanoseconds"), "340ms");
    CHECK_TEXT(value_text(1.25e9, "nanoseconds"), "1.25s");
    CHECK_TEXT(value_text(1.2549e9, "nanoseconds"), "1.25s");
    CHECK_TEXT(value_text(59.96e9, "nanoseconds"), "1min");
    CHECK_TEXT(value_text(999.9e6, "nanoseconds"), "1s");
    CHECK_TEXT(value_text(5400e9, "nanoseconds"), "1.5h");
    CHECK_TEXT(value_text(86400e9 * 12, "nanoseconds"), "12d");
    CHECK_TEXT(value_text(-340e6, "nanoseconds"), "-340ms");
    CHECK_TEXT(value_text(2500, "milliseconds"), "2.5s");
    CHECK_TEXT(value_text(0.5, "nanoseconds"), "0.5ns");
}

TEST(format, bytes_are_binary)
{
    CHECK_TEXT(value_text(512, "bytes"), "512B");
    CHECK_TEXT(value_text(1023, "bytes"), "1023B");
    CHECK_TEXT(value_text(1024, "bytes"), "1kB");
    CHECK_TEXT(value_text(1536.0 * 1024 * 1024, "bytes"), "1.5GB");
    CHECK_TEXT(value_text((double)INT64_MAX, "bytes"), "8192PB");
}

TEST(format, counts_are_grouped_and_large_ones_shortened)
{
    CHECK_TEXT(value_text(7, "count"), "7");
    CHECK_TEXT(value_text(12345, "count"), "12,345");
    CHECK_TEXT(value_text(-1234567, "count"), "-1,234,567");
    CHECK_TEXT(value_text(12345678, "count"), "12.3M");
    CHECK_TEXT(value_text(2.4449, "count"), "2.44");
    CHECK_TEXT(value_text((double)INT64_MAX, "count"), "9.22E");
    CHECK_TEXT(value_text(3, "widgets"), "3 widgets");
    CHECK_TEXT(value_text(0, "widgets"), "0 widgets");
    CHECK_TEXT(value_text(NAN, "count"), "?");
    CHECK_TEXT(value_text(INFINITY, "bytes"), "?");
}

static const char *rate_text(double value, const char *name, const char *unit, double seconds,
                             bool level)
{
    static char text[64];
    const struct kiln_type type = {
        .name = kiln_str_of(name), .unit = kiln_str_of(unit), .level = level};
    struct kiln_buf out;

    kiln_buf_init(&out, sizeof(text) - 1);
    kiln_format_rate(&out, value, &type, (uint64_t)(seconds * 1e9));
    snprintf(text, sizeof(text), "%.*s", KILN_STR_ARG(kiln_buf_str(&out)));
    kiln_buf_done(&out);
    return text;
}

TEST(format, cpu_time_over_time_is_cores)
{
    CHECK_TEXT(rate_text(24.4e9, "process_cpu", "nanoseconds", 10, false), "2.44 cores");
    CHECK_TEXT(rate_text(10e9, "process_cpu", "nanoseconds", 10, false), "1 core");
    CHECK_TEXT(rate_text(10e6, "process_cpu", "nanoseconds", 10, false), "0.001 cores");
    CHECK_TEXT(rate_text(10e6, "process_cpu", "microseconds", 10, false), "1 core");
    CHECK_TEXT(rate_text(34e9, "wall", "nanoseconds", 10, false), "3.4 threads");
    CHECK_TEXT(rate_text(10e9, "off_cpu", "nanoseconds", 10, false), "1 thread");
    CHECK_TEXT(rate_text(3.4e9, "mutex", "nanoseconds", 10, false), "340ms/s");
}

TEST(format, bytes_and_counts_have_rates_of_their_own)
{
    CHECK_TEXT(rate_text(70.0 * 1024 * 1024, "memory", "bytes", 10, false), "420 MB/min");
    CHECK_TEXT(rate_text(120, "memory", "count", 10, false), "12/s");
    CHECK_TEXT(rate_text(2, "exceptions", "count", 10, false), "12/min");
    CHECK_TEXT(rate_text(1, "exceptions", "count", 600, false), "6/h");
}

TEST(format, a_level_or_an_unknown_time_has_no_rate)
{
    CHECK_TEXT(rate_text(70, "memory", "bytes", 10, true), "");
    CHECK_TEXT(rate_text(70, "memory", "bytes", 0, false), "");
}
