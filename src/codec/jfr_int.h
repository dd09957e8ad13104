/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jfr_int - what the parts of the JFR reader share.
 *
 *   jfr_read.h     integers and strings
 *   jfr.c          chunk headers, the loop over chunks, the resource
 *   jfr_meta.c     metadata: types and fields, compiled into flat programs that read a value
 *   jfr_pool.c     constant pools: id -> symbol, class, method, thread, stack trace
 *   jfr_text.c     strings in their five encodings -> UTF-8; names of generated classes
 *   jfr_stack.c    pool entries -> functions, locations, stacks, attributes of the batch
 *   jfr_settings.c what the recorder was told to do
 *   jfr_events.c   events -> samples, samples -> profiles
 *
 * Errors inside a chunk are set without the chunk's number; jfr.c puts it before them.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_CODEC_JFR_INT_H
#define KILN_CODEC_JFR_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "codec/jfr_read.h"
#include "core/builder.h"
#include "core/intern.h"

/* ---- metadata ---- */

/* Fields of any type that anyone asks for, by name: slot, name of the field. */
#define KILN_JFR_SLOT_MAP(X)                                                                       \
    X(STACK, "stackTrace")                                                                         \
    X(THREAD, "eventThread")                                                                       \
    X(SAMPLED_THREAD, "sampledThread")                                                             \
    X(STATE, "state")                                                                              \
    X(OBJECT_CLASS, "objectClass")                                                                 \
    X(MONITOR_CLASS, "monitorClass")                                                               \
    X(PARKED_CLASS, "parkedClass")                                                                 \
    X(TLAB_SIZE, "tlabSize")                                                                       \
    X(ALLOCATION_SIZE, "allocationSize")                                                           \
    X(OBJECT_SIZE, "objectSize")                                                                   \
    X(SIZE, "size")                                                                                \
    X(WEIGHT, "weight")                                                                            \
    X(DURATION, "duration")                                                                        \
    X(SAMPLING_PERIOD, "samplingPeriod")                                                           \
    X(SAMPLES, "samples")                                                                          \
    X(SPAN_ID, "spanId")                                                                           \
    X(CONTEXT_ID, "contextId")                                                                     \
    X(ID, "id")                                                                                    \
    X(NAME, "name")                                                                                \
    X(VALUE, "value")                                                                              \
    X(PID, "pid")                                                                                  \
    X(JVM_NAME, "jvmName")                                                                         \
    X(JVM_VERSION, "jvmVersion")                                                                   \
    X(STRING, "string")                                                                            \
    X(DESCRIPTION, "description")                                                                  \
    X(DESCRIPTOR, "descriptor")                                                                    \
    X(TYPE, "type")                                                                                \
    X(FRAMES, "frames")                                                                            \
    X(METHOD, "method")                                                                            \
    X(LINE, "lineNumber")                                                                          \
    X(OS_NAME, "osName")                                                                           \
    X(OS_ID, "osThreadId")                                                                         \
    X(JAVA_NAME, "javaName")                                                                       \
    X(JAVA_ID, "javaThreadId")

enum kiln_jfr_slot {
    KILN_JFR_NO_SLOT,
#define X(slot, field) KILN_JFR_##slot,
    KILN_JFR_SLOT_MAP(X)
#undef X
        KILN_JFR_SLOT_COUNT
};

/* The fields of one value of a type, as far as somebody asks for them. */
struct kiln_jfr_record {
    uint64_t numbers; /* a bit for each slot that holds a number, a text, the place of an array */
    uint64_t texts;
    uint64_t arrays;
    uint64_t number[KILN_JFR_SLOT_COUNT];
    struct kiln_jfr_text text[KILN_JFR_SLOT_COUNT];
    const uint8_t *array[KILN_JFR_SLOT_COUNT];
};

static inline uint64_t kiln_jfr_number(const struct kiln_jfr_record *r, enum kiln_jfr_slot slot)
{
    return r->numbers >> slot & 1 ? r->number[slot] : 0;
}

static inline struct kiln_jfr_text kiln_jfr_text(const struct kiln_jfr_record *r,
                                                 enum kiln_jfr_slot slot)
{
    return r->texts >> slot & 1 ? r->text[slot] : (struct kiln_jfr_text){0};
}

struct kiln_jfr_field {
    struct kiln_str name;
    struct kiln_str timespan; /* value of the annotation jdk.jfr.Timespan: "TICKS", ... */
    uint64_t type_id;
    uint32_t type; /* resolved */
    bool pooled;   /* an id into the pool of its type */
    bool array;
};

/* One step of reading a value; see jfr_meta.c. */
struct kiln_jfr_op {
    uint8_t kind;
    uint8_t slot;
    uint8_t element; /* of an array: the kind of op each element takes */
    uint8_t unit;    /* of a time span: how the number becomes nanoseconds */
    uint32_t arg;
};

struct kiln_jfr_type {
    uint64_t id;
    struct kiln_str name;
    uint32_t first_field, n_fields;
    uint32_t first_op, n_ops; /* once compiled */
    uint32_t numbers;         /* how many integers a value is; 0: it is not only integers */
    uint8_t leaf;             /* the kind of op of a basic type; 0: it has fields */
    bool compiled;
    uint8_t event; /* what jfr_events.c does with it; 0: nothing */
    uint8_t pool;  /* enum kiln_jfr_pool_kind + 1; 0: not kept */
};

/* ---- constant pools ---- */

enum kiln_jfr_pool_kind {
    KILN_JFR_SYMBOLS,
    KILN_JFR_STRINGS,
    KILN_JFR_FRAME_TYPES,
    KILN_JFR_STATES,
    KILN_JFR_CLASSES,
    KILN_JFR_METHODS,
    KILN_JFR_THREADS,
    KILN_JFR_STACKS,
    KILN_JFR_POOL_COUNT
};

/* Every entry starts with its id; `memo` is 1 + what it became in the batch, or 0. */
struct kiln_jfr_name {
    uint64_t id;
    struct kiln_jfr_text text;
    uint32_t memo;
};

struct kiln_jfr_class {
    uint64_t id, name;
    uint32_t memo; /* attribute */
};

struct kiln_jfr_method {
    uint64_t id, class, name, descriptor;
    uint64_t class_name; /* once it is a function */
    uint32_t memo;       /* function */
    bool native;         /* code of a library or the kernel, not of the JVM */
    uint8_t kind;        /* the frame met last: what it was, where, its location */
    int32_t line;
    uint32_t location; /* 0: none yet */
};

struct kiln_jfr_thread {
    uint64_t id, os_id, java_id;
    struct kiln_jfr_text os_name, java_name;
    uint32_t memo; /* attribute set */
};

struct kiln_jfr_stack {
    uint64_t id;
    const uint8_t *frames; /* where the array of frames starts */
    uint32_t memo;         /* stack */
};

struct kiln_jfr_pool {
    struct kiln_intern index;
    void *entries;
    uint32_t n, cap;
};

/* ---- a chunk ---- */

struct kiln_jfr_chunk {
    const uint8_t *base;
    size_t size;
    size_t offset; /* in the file */
    uint64_t pool_offset, meta_offset;
    uint64_t start_ns, duration_ns, ticks_per_second;
    struct kiln_budget *budget;
    struct kiln_arena arena; /* texts of the metadata */
    struct kiln_intern type_index;
    struct kiln_jfr_type *types;
    struct kiln_jfr_field *fields;
    struct kiln_jfr_op *ops;
    uint32_t n_types, n_fields, n_ops, cap_types, cap_fields, cap_ops;
    uint32_t compile_steps;
    uint32_t frame_type; /* the type of a stack frame; UINT32_MAX: none */
    struct kiln_jfr_pool pools[KILN_JFR_POOL_COUNT];
    struct kiln_intern functions; /* methods that became functions, by the ids of their names */
};

/* jfr_meta.c: reads the metadata event.  Type names get their event and pool numbers. */
KILN_CHECK int kiln_jfr_read_metadata(struct kiln_jfr_chunk *c, struct kiln_err *err);

/* The type with this id, or NULL. */
struct kiln_jfr_type *kiln_jfr_find_type(const struct kiln_jfr_chunk *c, uint64_t id);

/* Makes the program of a type, unless it has one.  Returns 0, KILN_E_LIMIT or -ENOMEM. */
KILN_CHECK int kiln_jfr_compile(struct kiln_jfr_chunk *c, struct kiln_jfr_type *type);

/* Reads one value of a compiled type; `record` NULL: skips it. */
void kiln_jfr_run(struct kiln_jfr_chunk *c, struct kiln_jfr_in *in,
                  const struct kiln_jfr_type *type, struct kiln_jfr_record *record);

/* jfr_pool.c: reads all constant pools of the chunk. */
KILN_CHECK int kiln_jfr_read_pools(struct kiln_jfr_chunk *c, struct kiln_err *err);
enum kiln_jfr_pool_kind kiln_jfr_pool_named(struct kiln_str type); /* POOL_COUNT: none */

/* The entry with this id, or NULL. */
void *kiln_jfr_find(const struct kiln_jfr_chunk *c, enum kiln_jfr_pool_kind kind, uint64_t id);

/* The entry of a text that is a reference, or NULL. */
struct kiln_jfr_name *kiln_jfr_text_entry(const struct kiln_jfr_chunk *c,
                                          struct kiln_jfr_text text);

/* UTF-8 of any text, also of a reference, into out[KILN_JFR_TEXT_MAX].  Returns its length. */
size_t kiln_jfr_text_get(const struct kiln_jfr_chunk *c, struct kiln_jfr_text text, char *out);

void kiln_jfr_chunk_done(struct kiln_jfr_chunk *c);

/* ---- a recording ---- */

enum kiln_jfr_frame_kind {
    KILN_JFR_FRAME_JVM,
    KILN_JFR_FRAME_NATIVE,
    KILN_JFR_FRAME_KERNEL,
    KILN_JFR_FRAME_KINDS
};

/* What the recorder was told to do. */
struct kiln_jfr_settings {
    char event[64];        /* of async-profiler: cpu, wall, itimer, cache-misses, ... */
    int64_t interval;      /* of async-profiler; -1: not said, here and below */
    int64_t wall_interval; /* of its wall clock beside another engine */
    int64_t period_ns;     /* of the JDK's jdk.ExecutionSample */
    int64_t native_period_ns;
    int64_t alloc_bytes, malloc_bytes;

    /* what follows from it */
    bool is_clock;           /* execution samples are ticks of a clock, not of a counter */
    bool wall_only;          /* all of them are of the wall clock */
    bool wall_beside;        /* those with a thread state are */
    int64_t execution_worth; /* what an execution sample stands for; 0: nobody knows */
    int64_t wall_worth;
};

struct kiln_jfr_samples; /* jfr_events.c */

struct kiln_jfr {
    struct kiln_builder *b;
    struct kiln_budget budget; /* all that is not the batch */
    struct kiln_jfr_chunk chunk;
    struct kiln_jfr_settings settings;
    struct kiln_jfr_samples *samples;
    uint32_t frame_sets[KILN_JFR_FRAME_KINDS]; /* attribute sets of locations */
    uint32_t *frames;                          /* scratch: the stack being made */
    uint32_t cap_frames;
    uint64_t start_ns, end_ns;
    uint64_t pid;
    char jvm_name[128], jvm_version[128], profiler_version[32];
    char incomplete[320]; /* why the file was not read to its end; "" if it was */
};

/* jfr_stack.c: what an id means, as indexes of the batch.  Unknown ids give 0. */
KILN_CHECK int kiln_jfr_stack(struct kiln_jfr *j, uint64_t id, uint32_t *ret_stack,
                              struct kiln_err *err);
uint32_t kiln_jfr_thread_set(struct kiln_jfr *j, uint64_t id);
uint32_t kiln_jfr_class_attr(struct kiln_jfr *j, uint64_t id);

/* jfr_settings.c: reads jdk.ActiveSetting, jdk.JVMInformation; what follows from the settings. */
void kiln_jfr_read_setting(struct kiln_jfr *j, const struct kiln_jfr_record *r);
void kiln_jfr_read_jvm(struct kiln_jfr *j, const struct kiln_jfr_record *r);
void kiln_jfr_settings_conclude(struct kiln_jfr *j);

/* jfr_events.c: which number an event type has; the samples of a chunk; the profiles at the end. */
uint8_t kiln_jfr_event_named(struct kiln_str type);
KILN_CHECK int kiln_jfr_samples_new(struct kiln_jfr *j);
void kiln_jfr_samples_free(struct kiln_jfr *j);
KILN_CHECK int kiln_jfr_read_events(struct kiln_jfr *j, struct kiln_err *err);
void kiln_jfr_add_profiles(struct kiln_jfr *j);

#endif /* KILN_CODEC_JFR_INT_H */
