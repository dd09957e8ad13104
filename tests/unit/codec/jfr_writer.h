/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jfr_writer - writes small recordings for tests: metadata, one checkpoint, events.
 *
 * Stacks are drawn, root first: "A.main:3;A.run".  Frames that start with `!` are native ones of
 * async-profiler.  What an event holds is written by the names of the fields in `types`.
 */
#ifndef KILN_TESTS_JFR_WRITER_H
#define KILN_TESTS_JFR_WRITER_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct jfr_bytes {
    uint8_t at[1 << 16];
    size_t len;
};

enum {
    T_BOOLEAN = 4,
    T_INT = 10,
    T_LONG = 11,
    T_FLOAT = 12,
    T_STRING = 20,
    T_CLASS = 21,
    T_THREAD = 22,
    T_SYMBOL = 23,
    T_FRAME_TYPE = 24,
    T_STATE = 25,
    T_STACK = 26,
    T_FRAME = 27,
    T_METHOD = 28,
    T_TIMESPAN = 29,
    T_SPACE = 30,
    T_EXECUTION = 101,
    T_WALL = 102,
    T_TLAB = 103,
    T_OUTSIDE = 104,
    T_ALLOC = 105,
    T_MONITOR = 106,
    T_PARK = 107,
    T_LIVE = 108,
    T_SETTING = 109,
    T_CPU_TIME = 110,
    T_NATIVE = 111,
    T_JVM = 112,
    T_OTHER = 113,
    T_RECORDING = 114,
};

struct jfr_field {
    const char *name;
    int type;
    bool pooled, array;
    const char *timespan;
};

struct jfr_type {
    int id;
    const char *name;
    struct jfr_field fields[8];
};

/* In place; the id of a pool's entry; an array in place; a time span. */
#define VALUE(name, type)                                                                          \
    {                                                                                              \
        name, type, false, false, NULL                                                             \
    }
#define ID(name, type)                                                                             \
    {                                                                                              \
        name, type, true, false, NULL                                                              \
    }
#define ARRAY(name, type)                                                                          \
    {                                                                                              \
        name, type, false, true, NULL                                                              \
    }
#define SPAN(name, type, unit)                                                                     \
    {                                                                                              \
        name, type, false, false, unit                                                             \
    }
#define NOTHING VALUE(NULL, 0)
#define SAMPLED                                                                                    \
    VALUE("startTime", T_LONG), ID("sampledThread", T_THREAD), ID("stackTrace", T_STACK),          \
        ID("state", T_STATE)
#define CAUSED VALUE("startTime", T_LONG), ID("eventThread", T_THREAD), ID("stackTrace", T_STACK)
static const struct jfr_type jfr_types[] = {
    {T_BOOLEAN, "boolean", {NOTHING}},
    {T_INT, "int", {NOTHING}},
    {T_LONG, "long", {NOTHING}},
    {T_FLOAT, "float", {NOTHING}},
    {T_STRING, "java.lang.String", {NOTHING}},
    {T_TIMESPAN, "jdk.jfr.Timespan", {VALUE("value", T_STRING)}},
    {T_CLASS, "java.lang.Class", {VALUE("loader", T_LONG), ID("name", T_SYMBOL)}},
    {T_THREAD,
     "java.lang.Thread",
     {VALUE("osName", T_STRING), VALUE("osThreadId", T_LONG), VALUE("javaName", T_STRING),
      VALUE("javaThreadId", T_LONG)}},
    {T_SYMBOL, "jdk.types.Symbol", {VALUE("string", T_STRING)}},
    {T_FRAME_TYPE, "jdk.types.FrameType", {VALUE("description", T_STRING)}},
    {T_STATE, "jdk.types.ThreadState", {VALUE("name", T_STRING)}},
    {T_STACK, "jdk.types.StackTrace", {VALUE("truncated", T_BOOLEAN), ARRAY("frames", T_FRAME)}},
    {T_FRAME,
     "jdk.types.StackFrame",
     {ID("method", T_METHOD), VALUE("lineNumber", T_INT), VALUE("bytecodeIndex", T_INT),
      ID("type", T_FRAME_TYPE)}},
    {T_METHOD,
     "jdk.types.Method",
     {ID("type", T_CLASS), ID("name", T_SYMBOL), ID("descriptor", T_SYMBOL),
      VALUE("hidden", T_BOOLEAN)}},
    {T_SPACE,
     "test.Space",
     {VALUE("start", T_LONG), VALUE("share", T_FLOAT), VALUE("text", T_STRING)}},
    {T_EXECUTION,
     "jdk.ExecutionSample",
     {SAMPLED, VALUE("spanId", T_LONG), VALUE("contextId", T_LONG)}},
    {T_WALL, "profiler.WallClockSample", {SAMPLED, VALUE("samples", T_INT)}},
    {T_NATIVE, "jdk.NativeMethodSample", {SAMPLED}},
    {T_CPU_TIME, "jdk.CPUTimeSample", {CAUSED, SPAN("samplingPeriod", T_LONG, "MILLISECONDS")}},
    {T_TLAB,
     "jdk.ObjectAllocationInNewTLAB",
     {CAUSED, ID("objectClass", T_CLASS), VALUE("tlabSize", T_LONG)}},
    {T_OUTSIDE,
     "jdk.ObjectAllocationOutsideTLAB",
     {CAUSED, ID("objectClass", T_CLASS), VALUE("allocationSize", T_LONG)}},
    {T_ALLOC, "jdk.ObjectAllocationSample", {CAUSED, VALUE("weight", T_LONG)}},
    {T_LIVE, "profiler.LiveObject", {CAUSED, VALUE("allocationSize", T_LONG)}},
    {T_MONITOR, "jdk.JavaMonitorEnter", {CAUSED, SPAN("duration", T_LONG, "TICKS")}},
    {T_PARK, "jdk.ThreadPark", {CAUSED, SPAN("duration", T_LONG, "TICKS")}},
    {T_SETTING,
     "jdk.ActiveSetting",
     {VALUE("id", T_LONG), VALUE("name", T_STRING), VALUE("value", T_STRING)}},
    {T_JVM,
     "jdk.JVMInformation",
     {VALUE("jvmName", T_STRING), VALUE("jvmVersion", T_STRING), VALUE("pid", T_LONG)}},
    {T_RECORDING, "jdk.ActiveRecording", {NOTHING}},
    {T_OTHER, "test.Other", {VALUE("space", T_SPACE), ARRAY("spaces", T_SPACE)}},
};

struct jfr_event {
    int type;
    const char *stack, *thread, *state, *class;
    const char *name, *value; /* of a setting; of a JVM its name and version */
    uint64_t about;           /* id of the type a setting is about */
    uint64_t number;          /* any size, duration or count */
    uint64_t span, context;
};

struct jfr_writer {
    struct jfr_bytes out;
    struct jfr_bytes metadata, pools, events; /* bodies of a chunk */
    const struct jfr_type *types;
    size_t n_types;
    bool backwards; /* the fields of each type in reverse order */
    char strings[256][64];
    size_t n_strings;
    char names[64][64]; /* symbols */
    size_t n_names;
    char stacks[32][128];
    size_t n_stacks;
    char threads[8][32];
    size_t n_threads;
};

static const char *const jfr_states[] = {"STATE_DEFAULT", "STATE_RUNNABLE", "STATE_SLEEPING"};
static const char *const jfr_frame_types[] = {"JIT compiled", "Native", "Kernel"};

static inline void jfr_byte(struct jfr_bytes *b, unsigned byte)
{
    assert(b->len < sizeof(b->at));
    b->at[b->len++] = (uint8_t)byte;
}

static inline void jfr_put(struct jfr_bytes *b, const void *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        jfr_byte(b, ((const uint8_t *)data)[i]);
}

static inline void jfr_int(struct jfr_bytes *b, uint64_t v)
{
    for (int i = 0; i < 8 && v >= 0x80; i++, v >>= 7)
        jfr_byte(b, (unsigned)(v & 0x7f) | 0x80);
    jfr_byte(b, (unsigned)v);
}

static inline void jfr_text(struct jfr_bytes *b, const char *text)
{
    if (!text) {
        jfr_byte(b, 0);
        return;
    }
    jfr_byte(b, 3);
    jfr_int(b, strlen(text));
    jfr_put(b, text, strlen(text));
}

/* The position of a text in a table, added where it is new. */
static inline size_t jfr_index(char *table, size_t width, size_t *n, const char *text)
{
    size_t i = 0;

    while (i < *n && strcmp(table + i * width, text) != 0)
        i++;
    if (i == *n)
        snprintf(table + (*n)++ * width, width, "%s", text);
    return i;
}
#define JFR_INDEX(w, table, text)                                                                  \
    jfr_index((w)->table[0], sizeof((w)->table[0]), &(w)->n_##table, (text))

/* An event of a body: its size, in four bytes, and the body. */
static inline void jfr_put_event(struct jfr_bytes *out, const struct jfr_bytes *body)
{
    size_t size = body->len + 4;

    for (int i = 0; i < 3; i++, size >>= 7)
        jfr_byte(out, (unsigned)(size & 0x7f) | 0x80);
    jfr_byte(out, (unsigned)size);
    jfr_put(out, body->at, body->len);
}

/* ---- metadata ---- */

static inline void jfr_tag(struct jfr_writer *w, const char *tag, int n_attributes)
{
    jfr_int(&w->metadata, JFR_INDEX(w, strings, tag));
    jfr_int(&w->metadata, (uint64_t)n_attributes);
}

static inline void jfr_attribute(struct jfr_writer *w, const char *key, const char *value)
{
    jfr_int(&w->metadata, JFR_INDEX(w, strings, key));
    jfr_int(&w->metadata, JFR_INDEX(w, strings, value));
}

static inline void jfr_attribute_int(struct jfr_writer *w, const char *key, int value)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", value);
    jfr_attribute(w, key, text);
}

static inline void jfr_put_field(struct jfr_writer *w, const struct jfr_field *field)
{
    jfr_tag(w, "field", 2 + field->pooled + field->array);
    jfr_attribute(w, "name", field->name);
    jfr_attribute_int(w, "class", field->type);
    if (field->pooled)
        jfr_attribute(w, "constantPool", "true");
    if (field->array)
        jfr_attribute(w, "dimension", "1");
    jfr_int(&w->metadata, field->timespan != NULL);
    if (field->timespan) {
        jfr_tag(w, "annotation", 2);
        jfr_attribute_int(w, "class", T_TIMESPAN);
        jfr_attribute(w, "value", field->timespan);
        jfr_int(&w->metadata, 0);
    }
}

static inline size_t jfr_n_fields(const struct jfr_type *type)
{
    size_t n = 0;

    while (n < 8 && type->fields[n].name)
        n++;
    return n;
}

static inline const struct jfr_field *jfr_field(const struct jfr_writer *w,
                                                const struct jfr_type *type, size_t i)
{
    return &type->fields[w->backwards ? jfr_n_fields(type) - 1 - i : i];
}

static inline void jfr_put_type(struct jfr_writer *w, const struct jfr_type *type)
{
    jfr_tag(w, "class", 2);
    jfr_attribute(w, "name", type->name);
    jfr_attribute_int(w, "id", type->id);
    jfr_int(&w->metadata, jfr_n_fields(type));
    for (size_t i = 0; i < jfr_n_fields(type); i++)
        jfr_put_field(w, jfr_field(w, type, i));
}

static inline void jfr_put_metadata(struct jfr_writer *w)
{
    static struct jfr_bytes body;

    w->metadata.len = w->n_strings = body.len = 0;
    jfr_tag(w, "root", 0);
    jfr_int(&w->metadata, 1);
    jfr_tag(w, "metadata", 0);
    jfr_int(&w->metadata, w->n_types);
    for (size_t i = 0; i < w->n_types; i++)
        jfr_put_type(w, &w->types[i]);
    for (int i = 0; i < 4; i++) /* type, start, duration, id */
        jfr_int(&body, 0);
    jfr_int(&body, w->n_strings);
    for (size_t i = 0; i < w->n_strings; i++)
        jfr_text(&body, w->strings[i]);
    jfr_put(&body, w->metadata.at, w->metadata.len);
    jfr_put_event(&w->out, &body);
}

/* ---- values ---- */

/* A frame of a stack: class, method, line, whether it is native. */
struct jfr_frame {
    char class[64], method[64];
    int line;
    bool native;
};

static inline struct jfr_frame jfr_parse_frame(const char *text)
{
    struct jfr_frame frame = {.native = text[0] == '!'};
    const char *dot = strrchr(text, '.');
    const char *colon = strrchr(text, ':');

    assert(dot);
    snprintf(frame.class, sizeof(frame.class), "%.*s", (int)(dot - text) - frame.native,
             text + frame.native);
    snprintf(frame.method, sizeof(frame.method), "%.*s",
             colon ? (int)(colon - dot - 1) : (int)strlen(dot + 1), dot + 1);
    sscanf(colon ? colon : ":0", ":%d", &frame.line);
    return frame;
}

/* Every class and method is two symbols; the class has the number of the first. */
static inline size_t jfr_method(struct jfr_writer *w, struct jfr_frame frame)
{
    char text[64];

    snprintf(text, sizeof(text), "%c%.30s.%.30s", frame.native ? '!' : ' ', frame.class,
             frame.method);
    return JFR_INDEX(w, names, text) + 1;
}

static inline void jfr_put_stack(struct jfr_writer *w, const char *stack)
{
    char copy[128], *frames[16], *rest = NULL;
    size_t n = 0;

    snprintf(copy, sizeof(copy), "%s", stack);
    for (char *frame = strtok_r(copy, ";", &rest); frame; frame = strtok_r(NULL, ";", &rest))
        frames[n++] = frame;
    jfr_int(&w->pools, n);
    while (n--) {
        struct jfr_frame frame = jfr_parse_frame(frames[n]);
        uint64_t values[] = {jfr_method(w, frame), (uint64_t)frame.line, 0, frame.native};

        for (int i = 0; i < 4; i++)
            jfr_int(&w->pools, values[w->backwards ? 3 - i : i]);
    }
}

static inline uint64_t jfr_state(const char *name)
{
    for (size_t i = 0; name && i < 3; i++) {
        if (strcmp(jfr_states[i], name) == 0)
            return i + 1;
    }
    return 0;
}

static inline void jfr_put_value(struct jfr_writer *w, const struct jfr_field *field,
                                 const struct jfr_event *e)
{
    struct jfr_bytes *b = &w->events;
    struct jfr_frame frame = {0};

    if (strstr(field->name, "Thread"))
        jfr_int(b, e->thread ? JFR_INDEX(w, threads, e->thread) + 1 : 0);
    else if (strcmp(field->name, "stackTrace") == 0)
        jfr_int(b, e->stack ? JFR_INDEX(w, stacks, e->stack) + 1 : 0);
    else if (strcmp(field->name, "state") == 0)
        jfr_int(b, jfr_state(e->state));
    else if (strcmp(field->name, "objectClass") == 0) {
        snprintf(frame.class, sizeof(frame.class), "%s", e->class ? e->class : "Thing");
        jfr_int(b, jfr_method(w, frame));
    } else if (strcmp(field->name, "name") == 0 || strcmp(field->name, "jvmName") == 0)
        jfr_text(b, e->name);
    else if (strcmp(field->name, "value") == 0 || strcmp(field->name, "jvmVersion") == 0)
        jfr_text(b, e->value);
    else if (strcmp(field->name, "id") == 0)
        jfr_int(b, e->about);
    else if (strcmp(field->name, "spanId") == 0)
        jfr_int(b, e->span);
    else if (strcmp(field->name, "contextId") == 0)
        jfr_int(b, e->context);
    else if (strcmp(field->name, "space") == 0)
        jfr_put(b,
                "\x01"
                "abcd"
                "\x01",
                6);
    else if (strcmp(field->name, "spaces") == 0)
        jfr_put(b,
                "\x02"
                "\x01"
                "abcd"
                "\x01"
                "\x01"
                "abcd"
                "\x01",
                13);
    else
        jfr_int(b, strcmp(field->name, "startTime") == 0 ? 77 : e->number);
}

static inline void jfr_add(struct jfr_writer *w, const struct jfr_event *e)
{
    static struct jfr_bytes all;
    const struct jfr_type *type = NULL;

    for (size_t i = 0; i < w->n_types; i++)
        type = w->types[i].id == e->type ? &w->types[i] : type;
    assert(type);
    all = w->events;
    w->events.len = 0;
    jfr_int(&w->events, (uint64_t)e->type);
    for (size_t i = 0; i < jfr_n_fields(type); i++)
        jfr_put_value(w, jfr_field(w, type, i), e);
    jfr_put_event(&all, &w->events);
    w->events = all;
}

/* ---- pools and chunks ---- */

static inline void jfr_pool(struct jfr_writer *w, int type, size_t n)
{
    jfr_int(&w->pools, (uint64_t)type);
    jfr_int(&w->pools, n);
}

static inline void jfr_put_names(struct jfr_writer *w)
{
    struct jfr_bytes *b = &w->pools;

    jfr_pool(w, T_METHOD, w->n_names);
    for (size_t i = 0; i < w->n_names; i++) {
        uint64_t values[] = {i + 1, 2 * i + 2, w->names[i][0] == '!' ? 1001 : 1002};

        jfr_int(b, i + 1);
        if (w->backwards)
            jfr_byte(b, 0);
        for (int k = 0; k < 3; k++)
            jfr_int(b, values[w->backwards ? 2 - k : k]);
        if (!w->backwards)
            jfr_byte(b, 0);
    }
    jfr_pool(w, T_CLASS, w->n_names);
    for (size_t i = 0; i < w->n_names; i++) {
        jfr_int(b, i + 1);
        jfr_int(b, w->backwards ? 2 * i + 1 : 9);
        jfr_int(b, w->backwards ? 9 : 2 * i + 1);
    }
    jfr_pool(w, T_SYMBOL, 2 * w->n_names + 2);
    for (size_t i = 0; i < w->n_names; i++) {
        char class[64];
        const char *dot = strrchr(w->names[i], '.');

        snprintf(class, sizeof(class), "%.*s", (int)(dot - w->names[i]) - 1, w->names[i] + 1);
        jfr_int(b, 2 * i + 1);
        jfr_text(b, class);
        jfr_int(b, 2 * i + 2);
        jfr_text(b, dot + 1);
    }
    jfr_int(b, 1001);
    jfr_text(b, "()L;");
    jfr_int(b, 1002);
    jfr_text(b, "(Ljava/lang/Object;)V");
}

/* The name of a thread that starts with `@` is written as the id of a string. */
static inline void jfr_put_thread_name(struct jfr_writer *w, size_t i)
{
    if (w->threads[i][0] != '@') {
        jfr_text(&w->pools, w->threads[i]);
        return;
    }
    jfr_byte(&w->pools, 2);
    jfr_int(&w->pools, 500 + i);
}

static inline void jfr_put_strings(struct jfr_writer *w)
{
    jfr_pool(w, T_STRING, w->n_threads);
    for (size_t i = 0; i < w->n_threads; i++) {
        jfr_int(&w->pools, 500 + i);
        jfr_text(&w->pools, w->threads[i] + 1);
    }
}

static inline void jfr_put_threads(struct jfr_writer *w)
{
    jfr_pool(w, T_THREAD, w->n_threads);
    for (size_t i = 0; i < w->n_threads; i++) {
        jfr_int(&w->pools, i + 1);
        for (int k = 0; k < 4; k++) {
            switch (w->backwards ? 3 - k : k) {
            case 0:
                jfr_text(&w->pools, "os");
                break;
            case 2:
                jfr_put_thread_name(w, i);
                break;
            default:
                jfr_int(&w->pools, 1000 + i);
            }
        }
    }
}

static inline void jfr_put_texts(struct jfr_writer *w, int type, const char *const texts[],
                                 size_t first)
{
    jfr_pool(w, type, 3);
    for (size_t i = 0; i < 3; i++) {
        jfr_int(&w->pools, first + i);
        jfr_text(&w->pools, texts[i]);
    }
}

static inline void jfr_put_pools(struct jfr_writer *w)
{
    w->pools.len = 0;
    for (int i = 0; i < 4; i++) /* type, start, duration, distance */
        jfr_int(&w->pools, i == 0);
    jfr_byte(&w->pools, 0);
    jfr_int(&w->pools, 8);
    jfr_pool(w, T_STACK, w->n_stacks);
    for (size_t i = 0; i < w->n_stacks; i++) {
        jfr_int(&w->pools, i + 1);
        if (!w->backwards)
            jfr_byte(&w->pools, 0);
        jfr_put_stack(w, w->stacks[i]);
        if (w->backwards)
            jfr_byte(&w->pools, 0);
    }
    jfr_put_names(w);
    jfr_put_threads(w);
    jfr_put_strings(w);
    jfr_put_texts(w, T_FRAME_TYPE, jfr_frame_types, 0);
    jfr_put_texts(w, T_STATE, jfr_states, 1);
    jfr_put_event(&w->out, &w->pools);
}

static inline void jfr_put_be64(uint8_t *at, uint64_t v)
{
    for (int i = 7; i >= 0; i--, v >>= 8)
        at[i] = (uint8_t)v;
}

static inline void jfr_writer_init(struct jfr_writer *w)
{
    w->out.len = w->events.len = 0;
    w->types = jfr_types;
    w->n_types = sizeof(jfr_types) / sizeof(jfr_types[0]);
    w->backwards = false;
    w->n_names = w->n_stacks = w->n_threads = 0;
}

/* Ends the chunk: header, events so far, pools, metadata.  It starts at `second` of 1970. */
static inline void jfr_end_chunk(struct jfr_writer *w, uint64_t second)
{
    size_t start = w->out.len, pools, metadata;
    uint8_t header[68] = {'F', 'L', 'R', 0, 0, 2, 0, 1};

    jfr_put(&w->out, header, sizeof(header));
    jfr_put(&w->out, w->events.at, w->events.len);
    pools = w->out.len - start;
    jfr_put_pools(w);
    metadata = w->out.len - start;
    jfr_put_metadata(w);
    jfr_put_be64(&w->out.at[start + 8], w->out.len - start);
    jfr_put_be64(&w->out.at[start + 16], pools);
    jfr_put_be64(&w->out.at[start + 24], metadata);
    jfr_put_be64(&w->out.at[start + 32], second * 1000000000);
    jfr_put_be64(&w->out.at[start + 40], 5000000000); /* lasts five seconds */
    jfr_put_be64(&w->out.at[start + 56], 1000000);    /* a tick is a microsecond */
    w->out.at[start + 67] = 1;
    w->events.len = 0;
    w->n_names = w->n_stacks = w->n_threads = 0;
}

#endif /* KILN_TESTS_JFR_WRITER_H */
