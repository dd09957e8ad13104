/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "codec/jfr.h"
#include "codec/jfr_int.h"
#include "jfr_writer.h"
#include "starved.h"
#include "test.h"

static struct jfr_writer w;

/* A chunk of these events, from second 100 on. */
#define RECORD(...)                                                                                \
    do {                                                                                           \
        jfr_writer_init(&w);                                                                       \
        add_events((struct jfr_event[]){__VA_ARGS__, {0}});                                        \
        jfr_end_chunk(&w, 100);                                                                    \
    } while (0)

static void add_events(const struct jfr_event *events)
{
    for (; events->type; events++)
        jfr_add(&w, events);
}

#define INTERVAL(ns)                                                                               \
    {                                                                                              \
        T_SETTING, .about = T_EXECUTION, .name = "interval", .value = ns                           \
    }
#define EVENT(what)                                                                                \
    {                                                                                              \
        T_SETTING, .about = T_RECORDING, .name = "event", .value = what                            \
    }

static int decode_bytes(const void *data, size_t len, struct kiln_batch **ret, struct kiln_err *err)
{
    struct kiln_builder *b;
    int r = kiln_builder_new(NULL, &b);

    if (r < 0)
        return r;
    r = kiln_jfr_decode((struct kiln_str){data, len}, b, err);
    if (r == 0)
        return kiln_builder_finish(b, ret, err);
    kiln_builder_free(b);
    return r;
}

static struct kiln_batch *decode(void)
{
    struct kiln_err err = {0};
    struct kiln_batch *batch = NULL;

    if (decode_bytes(w.out.at, w.out.len, &batch, &err) < 0)
        print_error("%s: %s\n", err.where, err.text);
    CHECK(batch != NULL);
    return batch;
}

/* What a damaged recording is told, "place: text". */
static const char *refusal(const void *data, size_t len)
{
    static char text[512];
    struct kiln_err err = {0};
    struct kiln_batch *batch = NULL;

    CHECK(decode_bytes(data, len, &batch, &err) < 0);
    CHECK(err.code < 0);
    snprintf(text, sizeof(text), "%s: %s", err.where, err.text);
    return text;
}

static const struct kiln_profile *profile_of(const struct kiln_batch *batch, const char *type)
{
    for (uint32_t i = 0; i < batch->n_profiles; i++) {
        if (kiln_str_eq(kiln_batch_str(batch, batch->profiles[i].sample_type.type),
                        kiln_str_of(type)))
            return &batch->profiles[i];
    }
    return NULL;
}

static size_t draw_frame(const struct kiln_batch *batch, uint32_t location, char *out, size_t size)
{
    const struct kiln_dict *d = &batch->dict;
    const struct kiln_location *l = &d->locations[location];
    const struct kiln_line *line = &d->lines[l->first];

    if (l->n == 0)
        return (size_t)snprintf(out, size, "?");
    return (size_t)snprintf(out, size, line->line ? "%.*s:%d" : "%.*s",
                            KILN_STR_ARG(kiln_batch_str(batch, d->functions[line->function].name)),
                            (int)line->line);
}

/* The samples of a type as text, in their order: "A.main:3;A.run 20\n". */
static const char *draw(const struct kiln_batch *batch, const char *type)
{
    static char text[4096];
    const struct kiln_profile *profile = profile_of(batch, type);
    size_t len = 0;

    text[0] = '\0';
    for (uint32_t i = 0; profile && i < profile->n_samples; i++) {
        const struct kiln_sample *sample = &batch->samples[profile->first_sample + i];
        struct kiln_range stack = batch->dict.stacks[sample->stack];

        for (uint32_t k = stack.n; k-- > 0;) {
            len += draw_frame(batch, batch->dict.frames[stack.first + k], text + len,
                              sizeof(text) - len);
            text[len++] = k ? ';' : ' ';
        }
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%lld\n",
                                (long long)kiln_sample_total(batch, sample));
    }
    return text;
}

/* ---- what events become ---- */

TEST(jfr, execution_samples_are_cpu_time_of_the_interval)
{
    struct kiln_batch *batch;

    RECORD({T_EXECUTION, .stack = "A.main:3;A.run:7", .thread = "main"},
           {T_EXECUTION, .stack = "A.main:3;A.run:7", .thread = "main"},
           {T_EXECUTION, .stack = "A.main:3", .thread = "main"}, INTERVAL("5000000"));
    batch = decode();
    CHECK_EQ(batch->n_profiles, 1);
    CHECK_TEXT(draw(batch, "cpu"), "A.main:3;A.run:7 10000000\nA.main:3 5000000\n");
    CHECK_EQ(batch->profiles[0].period, 5000000);
    CHECK_STR(kiln_batch_str(batch, batch->profiles[0].sample_type.unit), "nanoseconds");
    CHECK_STR(kiln_batch_str(batch, batch->profiles[0].period_type.type), "cpu");
    CHECK_EQ(batch->profiles[0].time_ns, 100000000000);
    CHECK_EQ(batch->profiles[0].duration_ns, 5000000000);
    kiln_batch_unref(batch);
}

TEST(jfr, the_jdk_says_its_period_in_words)
{
    struct kiln_batch *batch;

    RECORD({T_EXECUTION, .stack = "A.main"},
           {T_SETTING, .about = T_EXECUTION, .name = "period", .value = "20 ms"},
           {T_NATIVE, .stack = "A.read"},
           {T_SETTING, .about = T_NATIVE, .name = "period", .value = "1 s"});
    batch = decode();
    CHECK_TEXT(draw(batch, "cpu"), "A.main 20000000\n");
    CHECK_TEXT(draw(batch, "native"), "A.read 1000000000\n");
    kiln_batch_unref(batch);
}

TEST(jfr, without_an_interval_samples_are_counted)
{
    struct kiln_batch *batch;

    RECORD({T_EXECUTION, .stack = "A.main"}, {T_EXECUTION, .stack = "A.main"},
           {T_NATIVE, .stack = "A.read"});
    batch = decode();
    CHECK_TEXT(draw(batch, "samples"), "A.main 2\n");
    CHECK_TEXT(draw(batch, "native"), "A.read 1\n");
    CHECK(profile_of(batch, "cpu") == NULL);
    kiln_batch_unref(batch);
}

TEST(jfr, cpu_time_samples_are_believed_more_than_execution_samples)
{
    struct kiln_batch *batch;

    RECORD(INTERVAL("10000000"), {T_EXECUTION, .stack = "A.main"},
           {T_CPU_TIME, .stack = "A.main;A.run", .number = 3},
           {T_CPU_TIME, .stack = "A.main;A.run", .number = 4});
    batch = decode();
    CHECK_TEXT(draw(batch, "cpu"), "A.main;A.run 7000000\n");
    CHECK_TEXT(draw(batch, "samples"), "A.main 1\n");
    kiln_batch_unref(batch);
}

TEST(jfr, a_wall_clock_recording_has_both_wall_and_cpu_time)
{
    struct kiln_batch *batch;

    RECORD(EVENT("wall"), INTERVAL("0"),
           {T_EXECUTION, .stack = "A.sleep", .state = "STATE_SLEEPING"},
           {T_EXECUTION, .stack = "A.run", .state = "STATE_RUNNABLE"},
           {T_WALL, .stack = "A.sleep", .state = "STATE_SLEEPING", .number = 3});
    batch = decode();
    CHECK_TEXT(draw(batch, "wall"), "A.sleep 200000000\nA.run 50000000\n");
    CHECK_TEXT(draw(batch, "cpu"), "A.run 50000000\n");
    CHECK_STR(kiln_set_text(batch, batch->samples[profile_of(batch, "wall")->first_sample].attrs,
                            KILN_STR("thread.state")),
              "sleeping");
    kiln_batch_unref(batch);
}

TEST(jfr, wall_clock_beside_cpu_sampling_is_told_by_the_thread_state)
{
    struct kiln_batch *batch;

    RECORD(EVENT("cpu"), INTERVAL("1000"),
           {T_SETTING, .about = T_EXECUTION, .name = "wall", .value = "7000"},
           {T_EXECUTION, .stack = "A.run", .state = "STATE_DEFAULT"},
           {T_EXECUTION, .stack = "A.run", .state = "STATE_RUNNABLE"},
           {T_WALL, .stack = "A.run", .state = "STATE_RUNNABLE", .number = 2});
    batch = decode();
    CHECK_TEXT(draw(batch, "cpu"), "A.run 1000\n");
    CHECK_TEXT(draw(batch, "wall"), "A.run 21000\n");
    kiln_batch_unref(batch);
}

TEST(jfr, a_hardware_event_names_its_sample_type)
{
    struct kiln_batch *batch;

    RECORD(EVENT("cache-misses"), INTERVAL("1000"), {T_EXECUTION, .stack = "A.run"},
           {T_EXECUTION, .stack = "A.run"});
    batch = decode();
    CHECK_TEXT(draw(batch, "cache-misses"), "A.run 2000\n");
    CHECK_STR(kiln_batch_str(batch, profile_of(batch, "cache-misses")->sample_type.unit), "count");
    kiln_batch_unref(batch);
}

TEST(jfr, allocations_have_a_count_and_bytes)
{
    struct kiln_batch *batch;

    RECORD({T_TLAB, .stack = "A.make", .number = 4096, .class = "Cat"},
           {T_TLAB, .stack = "A.make", .number = 4096, .class = "Cat"},
           {T_TLAB, .stack = "A.make", .number = 1, .class = "Dog"},
           {T_OUTSIDE, .stack = "A.make", .number = 99},
           {T_ALLOC, .stack = "A.make", .number = 1u << 20},
           {T_LIVE, .stack = "A.make", .number = 48});
    batch = decode();
    CHECK_TEXT(draw(batch, "alloc_in_new_tlab_objects"), "A.make 2\nA.make 1\n");
    CHECK_TEXT(draw(batch, "alloc_in_new_tlab_bytes"), "A.make 8192\nA.make 1\n");
    CHECK_TEXT(draw(batch, "alloc_outside_tlab_bytes"), "A.make 99\n");
    CHECK_TEXT(draw(batch, "alloc_objects"), "A.make 1\n");
    CHECK_TEXT(draw(batch, "alloc_space"), "A.make 1048576\n");
    CHECK_TEXT(draw(batch, "inuse_objects"), "A.make 1\n");
    CHECK_TEXT(draw(batch, "inuse_space"), "A.make 48\n");
    CHECK_STR(kiln_set_text(batch, batch->samples[0].attrs, KILN_STR("object.class")), "Cat");
    kiln_batch_unref(batch);
}

TEST(jfr, lock_delays_are_nanoseconds_whatever_the_clock)
{
    struct kiln_batch *batch;

    RECORD({T_MONITOR, .stack = "A.lock", .number = 5}, {T_PARK, .stack = "A.park", .number = 7});
    batch = decode();
    CHECK_EQ(batch->n_profiles, 4);
    CHECK_TEXT(draw(batch, "contentions"), "A.lock 1\n");
    CHECK_TEXT(draw(batch, "delay"), "A.lock 5000\n"); /* a tick is a microsecond */
    CHECK_STR(kiln_set_text(batch, batch->profiles[3].attrs, KILN_STR("profile.type")), "block");
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[batch->profiles[3].first_sample]), 7000);
    kiln_batch_unref(batch);
}

TEST(jfr, samples_know_their_thread_and_span)
{
    struct kiln_batch *batch;
    const struct kiln_sample *first, *second;

    RECORD(INTERVAL("1"), {T_EXECUTION, .stack = "A.run", .thread = "main", .span = 0xabc},
           {T_EXECUTION, .stack = "A.run", .thread = "worker", .context = 5});
    batch = decode();
    CHECK_EQ(batch->n_samples, 2);
    first = &batch->samples[0];
    second = &batch->samples[1];
    CHECK_STR(kiln_set_text(batch, first->attrs, KILN_STR("thread.name")), "main");
    CHECK_STR(kiln_set_text(batch, first->attrs, KILN_STR("span_id")), "0000000000000abc");
    CHECK_EQ(kiln_set_find(batch, second->attrs, KILN_STR("thread.id"))->value.i, 1001);
    CHECK_EQ(kiln_set_find(batch, second->attrs, KILN_STR("jfr.context_id"))->value.i, 5);
    CHECK_EQ(first->stack, second->stack);
    kiln_batch_unref(batch);
}

TEST(jfr, a_name_may_be_kept_in_the_pool_of_strings)
{
    struct kiln_batch *batch;

    RECORD(INTERVAL("1"), {T_EXECUTION, .stack = "A.run", .thread = "@pooled"});
    batch = decode();
    CHECK_STR(kiln_set_text(batch, batch->samples[0].attrs, KILN_STR("thread.name")), "pooled");
    kiln_batch_unref(batch);
}

TEST(jfr, frames_say_whether_they_are_java)
{
    struct kiln_batch *batch;
    const struct kiln_dict *d;
    struct kiln_range stack;

    RECORD(INTERVAL("1"), {T_EXECUTION, .stack = "A.main:1;!libc.so.6.read;!.vtable"});
    batch = decode();
    d = &batch->dict;
    CHECK_TEXT(draw(batch, "cpu"), "A.main:1;libc.so.6.read;.vtable 1\n");
    stack = d->stacks[batch->samples[0].stack];
    CHECK_STR(kiln_set_text(batch, d->locations[d->frames[stack.first]].attrs,
                            KILN_STR("profile.frame.type")),
              "native");
    CHECK_STR(kiln_set_text(batch, d->locations[d->frames[stack.first + 2]].attrs,
                            KILN_STR("profile.frame.type")),
              "jvm");
    kiln_batch_unref(batch);
}

TEST(jfr, the_resource_is_the_jvm_and_the_scope_the_recorder)
{
    struct kiln_batch *batch;

    RECORD({T_JVM, .name = "OpenJDK", .value = "OpenJDK VM (17.0.9+9) for linux", .number = 4711},
           {T_SETTING, .about = T_RECORDING, .name = "version", .value = "3.0"},
           {T_EXECUTION, .stack = "A.run"});
    batch = decode();
    CHECK_EQ(kiln_set_find(batch, batch->resources[0].attrs, KILN_STR("process.pid"))->value.i,
             4711);
    CHECK_STR(kiln_set_text(batch, batch->resources[0].attrs, KILN_STR("process.runtime.name")),
              "OpenJDK");
    CHECK_STR(kiln_set_text(batch, batch->resources[0].attrs, KILN_STR("process.runtime.version")),
              "17.0.9+9");
    CHECK_STR(kiln_batch_str(batch, batch->scopes[0].name), "async-profiler");
    CHECK_STR(kiln_batch_str(batch, batch->scopes[0].version), "3.0");
    CHECK_TEXT(draw(batch, "cpu"), "A.run 10000000\n"); /* its default interval */
    kiln_batch_unref(batch);
}

TEST(jfr, a_missing_stack_or_method_keeps_the_value)
{
    struct kiln_batch *batch;

    RECORD(INTERVAL("1"), {T_EXECUTION, .stack = NULL}, {T_EXECUTION, .stack = "A.run"});
    batch = decode();
    CHECK_TEXT(draw(batch, "cpu"), "1\nA.run 1\n");
    kiln_batch_unref(batch);
}

/* ---- how they are written ---- */

TEST(jfr, fields_are_found_by_the_metadata_and_not_by_place)
{
    struct kiln_batch *batch;

    jfr_writer_init(&w);
    w.backwards = true;
    add_events((struct jfr_event[]){{.type = T_OTHER},
                                    INTERVAL("1000"),
                                    {T_EXECUTION, .stack = "A.main:4;A.run:5", .thread = "main"},
                                    {T_MONITOR, .stack = "A.lock", .number = 5},
                                    {0}});
    jfr_end_chunk(&w, 100);
    batch = decode();
    CHECK_TEXT(draw(batch, "cpu"), "A.main:4;A.run:5 1000\n");
    CHECK_TEXT(draw(batch, "delay"), "A.lock 5000\n");
    CHECK_STR(kiln_set_text(batch, batch->samples[0].attrs, KILN_STR("thread.name")), "main");
    kiln_batch_unref(batch);
}

TEST(jfr, chunks_are_added_up)
{
    struct kiln_batch *batch;

    RECORD(INTERVAL("1000"), {T_EXECUTION, .stack = "A.x;A.run:5", .thread = "main"});
    add_events((struct jfr_event[]){INTERVAL("1"),
                                    {T_EXECUTION, .stack = "A.y", .thread = "main"},
                                    {T_EXECUTION, .stack = "A.x;A.run:5", .thread = "main"},
                                    {0}});
    jfr_end_chunk(&w, 105);
    batch = decode();
    CHECK_TEXT(draw(batch, "cpu"), "A.x;A.run:5 1001\nA.y 1\n");
    CHECK_EQ(batch->profiles[0].time_ns, 100000000000);
    CHECK_EQ(batch->profiles[0].duration_ns, 10000000000);
    kiln_batch_unref(batch);
}

TEST(jfr, integers_of_nine_bytes_are_read_whole)
{
    static const uint8_t bytes[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x85, 1};
    struct kiln_jfr_in in = {bytes, bytes + sizeof(bytes), 0};

    CHECK(kiln_jfr_varint(&in) == UINT64_MAX);
    CHECK_EQ(kiln_jfr_varint(&in), 0x85);
    CHECK_EQ(in.error, 0);
    CHECK_EQ(kiln_jfr_varint(&in), 0);
    CHECK_EQ(in.error, KILN_E_TRUNCATED);
}

static void check_text(const char *bytes, size_t len, const char *expected)
{
    struct kiln_jfr_in in = {(const uint8_t *)bytes, (const uint8_t *)bytes + len, 0};
    char out[KILN_JFR_TEXT_MAX];
    struct kiln_jfr_text text = kiln_jfr_read_text(&in);

    CHECK_EQ(in.error, 0);
    CHECK_EQ(kiln_jfr_in_left(&in), 0);
    CHECK_STR(((struct kiln_str){out, kiln_jfr_text_format(text, out)}), expected);
}

TEST(jfr, texts_of_every_encoding_become_utf8)
{
#define TEXT(bytes, expected) check_text(bytes, sizeof(bytes) - 1, expected)
    TEXT("\x00", "");
    TEXT("\x01", "");
    TEXT("\x03\x03"
         "abc",
         "abc");
    TEXT("\x05\x03"
         "a\xe9"
         "c",
         "a\xc3\xa9"
         "c");
    TEXT("\x04\x02\xe9\x01z", "\xc3\xa9z");
    /* a pair of surrogates, as two units and as two characters of three bytes */
    TEXT("\x04\x02\xbd\xb0\x03\x80\xb8\x03", "\xf0\x9f\x90\x80");
    TEXT("\x03\x06\xed\xa0\xbd\xed\xb0\x80", "\xf0\x9f\x90\x80");
    /* halves, and bytes that are nothing */
    TEXT("\x03\x04\xed\xa0\xbdx", "\xef\xbf\xbdx");
    TEXT("\x03\x02\xc3(", "\xef\xbf\xbd(");
    TEXT("\x03\x01\xff", "\xef\xbf\xbd");
#undef TEXT
}

TEST(jfr, a_long_text_is_cut_between_characters)
{
    static char bytes[3 + 2 * KILN_JFR_TEXT_MAX];
    struct kiln_jfr_text text = {(uint8_t *)bytes, sizeof(bytes), KILN_JFR_UTF8};
    char out[KILN_JFR_TEXT_MAX];

    memset(bytes, 'x', sizeof(bytes));
    CHECK_EQ(kiln_jfr_text_format(text, out), KILN_JFR_TEXT_MAX);
    for (size_t i = 1; i + 1 < sizeof(bytes); i += 2)
        memcpy(&bytes[i], "\xc3\xa9", 2);
    CHECK_EQ(kiln_jfr_text_format(text, out), KILN_JFR_TEXT_MAX - 1);
    CHECK(kiln_utf8_valid((struct kiln_str){out, KILN_JFR_TEXT_MAX - 1}));
}

TEST(jfr, names_that_differ_from_run_to_run_become_one)
{
    static const char *const names[][2] = {
        {"java/lang/String", "java/lang/String"},
        {"Shop$$Lambda$21/0x0000000800c03000", "Shop$$Lambda_"},
        {"Shop$$Lambda$21.0x0000000800c03000", "Shop$$Lambda_"},
        {"com.x.Shop$$Lambda/0x00007ffa600c4da0", "com/x/Shop$$Lambda_"},
        {"Shop$$Lambda12", "Shop$$Lambda_"},
        {"com.x.Shop$$Lambda$21+0x0000000800c03000/1285524499", "com/x/Shop$$Lambda_"},
        {"java.lang.invoke.LambdaForm$MH+0x00007f0/12", "java/lang/invoke/LambdaForm$MH_"},
        {"java/lang/invoke/LambdaForm$DMH.0x0000000801",
         "java/lang/invoke/LambdaForm$DMH.0x0000000801"},
        {"Shop$$Lambda", "Shop$$Lambda"},
        {"Shop$$LambdaX", "Shop$$LambdaX"},
        {"jdk/internal/reflect/GeneratedMethodAccessor31",
         "jdk/internal/reflect/GeneratedMethodAccessor_"},
        {"Cart$$EnhancerBySpringCGLIB$$1a2b", "Cart$$EnhancerBySpringCGLIB$$_"},
        {"/tmp/libzstd-jni-1.5.1-16931311898282279136.so (deleted)", "libzstd-jni-_.so"},
        {"libamazonCorrettoCryptoProvider109b39cf33c563eb.so",
         "libamazonCorrettoCryptoProvider_.so"},
        {"libasyncProfiler-linux-x64-17b9a1d8156277a98ccc871afa9a8f69215f92.so",
         "libasyncProfiler-_.so"},
        {"", ""},
    };
    char name[KILN_JFR_TEXT_MAX];

    for (size_t i = 0; i < KILN_ARRAY_LEN(names); i++) {
        size_t len = strlen(names[i][0]);

        memcpy(name, names[i][0], len + 1);
        CHECK_STR(((struct kiln_str){name, kiln_jfr_plain_name(name, len)}), names[i][1]);
    }
}

/* ---- damaged and hostile files ---- */

static void record_some(void)
{
    RECORD(EVENT("cpu"), INTERVAL("1000"),
           {T_EXECUTION, .stack = "A.main:3;A.run:7;!libc.so.6.read", .thread = "main"},
           {T_WALL, .stack = "A.main:3", .thread = "main", .state = "STATE_SLEEPING", .number = 2},
           {T_TLAB, .stack = "A.make", .number = 4096, .class = "Cat"},
           {T_MONITOR, .stack = "A.lock", .number = 5}, {.type = T_OTHER},
           {T_JVM, .name = "OpenJDK", .value = "17.0.9", .number = 4711});
}

TEST(jfr, a_file_cut_in_its_first_chunk_is_refused)
{
    record_some();
    CHECK_TEXT(refusal(w.out.at, w.out.len - 1),
               "chunk[0].header at 0x0: the file ends inside the chunk");
    CHECK_TEXT(refusal(w.out.at, 10),
               "chunk[0].header at 0x0: the file ends inside the chunk's header");
    CHECK_TEXT(refusal("FLY\0", 4), ": no recording of Java Flight Recorder");
}

TEST(jfr, whole_chunks_before_a_cut_are_kept_and_the_profile_says_so)
{
    struct kiln_batch *batch;
    size_t first;
    char expected[64];

    record_some();
    first = w.out.len;
    snprintf(expected, sizeof(expected), "chunk[1] at 0x%zx: the file ends inside the chunk",
             first);
    add_events((struct jfr_event[]){{T_EXECUTION, .stack = "A.main:3"}, {0}});
    jfr_end_chunk(&w, 105);
    w.out.len--;
    batch = decode();
    CHECK_TEXT(draw(batch, "cpu"), "A.main:3;A.run:7;libc.so.6.read 1000\n");
    CHECK_STR(kiln_set_text(batch, batch->profiles[0].attrs, KILN_STR("jfr.incomplete")), expected);
    kiln_batch_unref(batch);

    w.out.len = first + 20; /* a JVM that was killed leaves bytes behind its last whole chunk */
    memset(&w.out.at[first], 0xaa, 20);
    batch = decode();
    CHECK_EQ(profile_of(batch, "cpu")->n_samples, 1);
    CHECK(kiln_set_find(batch, batch->profiles[0].attrs, KILN_STR("jfr.incomplete")) != NULL);
    kiln_batch_unref(batch);
}

/* The byte at a position of the header becomes another. */
static const char *refusal_with(size_t position, uint8_t byte)
{
    record_some();
    w.out.at[position] = byte;
    return refusal(w.out.at, w.out.len);
}

TEST(jfr, a_bad_header_is_named)
{
    CHECK_TEXT(refusal_with(5, 9),
               "chunk[0].header at 0x0: version 9.1 of the format is not known");
    CHECK_TEXT(refusal_with(67, 0), "chunk[0].header at 0x0: integers are not compressed");
    CHECK_TEXT(refusal_with(16, 1),
               "chunk[0].header at 0x0: metadata or constant pools lie outside of it");
    record_some();
    memset(&w.out.at[56], 0, 8);
    CHECK_TEXT(refusal(w.out.at, w.out.len), "chunk[0].header at 0x0: its clock has no ticks");
}

TEST(jfr, errors_name_the_chunk_and_the_offset)
{
    char expected[160];
    size_t pools;

    record_some();
    pools = (size_t)w.out.at[22] << 8 | w.out.at[23];
    w.out.at[pools + 4] = 2; /* another event where the checkpoint should be */
    snprintf(expected, sizeof(expected),
             "chunk[0].constant_pool[0] at 0x%zx: the input breaks the rules of its format", pools);
    CHECK_TEXT(refusal(w.out.at, w.out.len), expected);

    record_some();
    w.out.at[68] = 0x80; /* the first event is longer than the chunk */
    w.out.at[70] = 0xff;
    w.out.at[71] = 0x7f;
    CHECK_TEXT(refusal(w.out.at, w.out.len),
               "chunk[0].event at 0x44: the input breaks the rules of its format");
}

TEST(jfr, constant_pools_that_go_round_in_circles_are_refused)
{
    size_t pools;

    record_some();
    pools = (size_t)w.out.at[22] << 8 | w.out.at[23];
    w.out.at[pools + 7] = 5; /* the one before lies behind */
    CHECK(strstr(refusal(w.out.at, w.out.len), "do not lie one behind the other") != NULL);
}

/* A recording whose metadata holds these types only; nothing else is in it but one event. */
static const char *refusal_of_types(const struct jfr_type *types, size_t n)
{
    jfr_writer_init(&w);
    w.types = types;
    w.n_types = n;
    add_events((struct jfr_event[]){{.type = T_EXECUTION}, {0}});
    jfr_end_chunk(&w, 100);
    return refusal(w.out.at, w.out.len);
}

TEST(jfr, a_type_inside_itself_is_refused)
{
    static const struct jfr_type types[] = {
        {T_LONG, "long", {NOTHING}},
        {T_STRING, "java.lang.String", {NOTHING}},
        {T_STACK,
         "jdk.types.StackTrace",
         {VALUE("x", T_STACK), VALUE("y", T_STACK), VALUE("z", T_STACK)}},
        {T_EXECUTION, "jdk.ExecutionSample", {VALUE("startTime", T_LONG)}},
    };

    CHECK(strstr(refusal_of_types(types, KILN_ARRAY_LEN(types)), "constant_pool[0]") != NULL);
    CHECK(strstr(refusal_of_types(types, KILN_ARRAY_LEN(types)), "limit") != NULL);
}

TEST(jfr, a_field_of_an_unknown_type_is_refused)
{
    static const struct jfr_type types[] = {
        {T_EXECUTION, "jdk.ExecutionSample", {VALUE("startTime", T_LONG)}},
    };

    CHECK(strstr(refusal_of_types(types, 1), "the field startTime is of the unknown type 11"));
}

TEST(jfr, no_prefix_and_no_changed_byte_does_harm)
{
    static uint8_t copy[sizeof(w.out.at)];
    struct kiln_batch *batch;
    int64_t live = kiln_mem_live();
    size_t len;

    record_some();
    len = w.out.len;
    memcpy(copy, w.out.at, len);
    for (size_t i = 0; i < len; i++) {
        static const uint8_t bytes[] = {0, 1, 0x7f, 0x80, 0xff};

        batch = NULL;
        if (decode_bytes(copy, i, &batch, NULL) == 0)
            kiln_batch_unref(batch);
        for (size_t k = 0; k < sizeof(bytes); k++) {
            copy[i] = bytes[k];
            if (decode_bytes(copy, len, &batch, NULL) == 0)
                kiln_batch_unref(batch);
        }
        copy[i] = w.out.at[i];
    }
    CHECK_EQ(kiln_mem_live(), live);
}

TEST(jfr, running_out_of_memory_anywhere_leaks_nothing)
{
    struct kiln_batch *batch = NULL;
    struct kiln_starved s = {0};

    record_some();
    while (kiln_test_starve(&s))
        s.r = decode_bytes(w.out.at, w.out.len, &batch, NULL);
    CHECK(s.n > 20);
    kiln_batch_unref(batch);
    CHECK_EQ(kiln_mem_live(), s.live);
}
