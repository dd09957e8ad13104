/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kiln - profiles a program from inside: what it allocates and keeps, where it computes and waits,
 * for which locks, and for which span.
 *
 *   kiln_start(&(struct kiln_options){.service_name = "shop"});
 *   ...
 *   struct kiln_span span;
 *   kiln_span_enter(&span, trace_id, span_id, flags);
 *   serve(request);
 *   kiln_span_leave(&span);
 *
 * Without a change to a program: LD_PRELOAD=libkiln.so, and variables for options (below). Profiles
 * go to an OTLP receiver, to a Kiln on the same host, into files, or to whoever asks at
 * /debug/pprof.
 *
 * A program that never calls kiln_start() still tells whoever profiles it who it is and which span
 * each thread works for: nothing is sent then and nobody is called, an agent on the same host
 * (Kiln's, or any that reads OpenTelemetry's process context, OTEP 4719, and thread context, OTEP
 * 4947) looks at this memory when it takes a sample.  Entering and leaving a span are a few stores
 * each.
 *
 * Link with libkiln.so, or with libkiln.a, -pthread and -lm.  A static executable has a libc of its
 * own, in front of which nothing can be put: it links with libkiln-context.a, which has the context
 * and the spans alone, and exports the variable that agents look for with
 * -Wl,--export-dynamic-symbol=otel_thread_ctx_v1, or keeps its symbol table.
 *
 * Threads: everything from anywhere; spans and labels belong to the thread that enters or sets
 * them, and spans may be entered in handlers of signals too.
 */
#ifndef KILN_H
#define KILN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KILN_API __attribute__((visibility("default")))

/* An attribute of the resource: "service.name", "shop". */
struct kiln_attribute {
    const char *key, *value;
};

/*
 * Publishes who this process is, and that its threads tell their spans; once more: something else.
 * A child that this process forks publishes the same.  0, or a negative errno: -E2BIG where the
 * attributes take more than 16 KiB.
 */
KILN_API int kiln_context_publish(const struct kiln_attribute *resource, size_t n);
/* As if it had never been published. */
KILN_API void kiln_context_withdraw(void);

/* Memory of the caller's for one span that is entered; all of it is private. */
struct kiln_span {
    union {
        uint8_t bytes[28];
        uint16_t align;
    } record;
    struct kiln_span *outer;
};

/*
 * The thread works for this span until it leaves it; spans nest.  Ids are in the order of bytes
 * that W3C's trace context has; where one of them is all zeroes the thread works for none.
 */
KILN_API void kiln_span_enter(struct kiln_span *span, const uint8_t trace_id[16],
                              const uint8_t span_id[8], uint8_t flags);
/* On the same thread; not necessarily in order. */
KILN_API void kiln_span_leave(struct kiln_span *span);

/*
 * For those who know at each moment which span a thread works for, as bridges to SDKs do: the
 * thread works for this one from now on, whatever it was before.  On a thread either set and clear
 * or enter and leave.
 */
KILN_API void kiln_span_set(const uint8_t trace_id[16], const uint8_t span_id[8], uint8_t flags);
KILN_API void kiln_span_clear(void);

/*
 * For coroutines and pools of threads, which go on with a piece of work elsewhere: takes all spans
 * that the thread works for off it (NULL: none), and later puts them onto any thread.  What that
 * thread worked for until then is returned, to be attached again afterwards.
 */
KILN_API struct kiln_span *kiln_span_detach(void);
KILN_API struct kiln_span *kiln_span_attach(struct kiln_span *spans);

/* ---- labels ---- */

/*
 * Samples of this thread carry the label from now on; texts are copied.  Nothing is kept where
 * nobody samples: before kiln_start(), and during a pause.  0, or a negative errno: -ENOSPC where
 * there are more than 16 on a thread, or too many different sets of them in the process; -EINVAL
 * where a text is empty or has more than 255 bytes.
 */
KILN_API int kiln_label_set(const char *key, const char *value);
/* NULL: all of them. */
KILN_API void kiln_label_clear(const char *key);

/* ---- profiles ---- */

/* What is sampled. */
#define KILN_PROFILE_CPU     (1u << 0)
#define KILN_PROFILE_ALLOC   (1u << 1) /* what is allocated */
#define KILN_PROFILE_HEAP    (1u << 2) /* what of it is still in use */
#define KILN_PROFILE_LOCK    (1u << 3) /* waits for locks, conditions, semaphores */
#define KILN_PROFILE_WALL    (1u << 4) /* waits of any kind; with CPU, all of the time */
#define KILN_PROFILE_THREADS (1u << 5) /* how many there are, and where they were made */
#define KILN_PROFILE_LOOP    (1u << 6) /* long turns of event loops */
#define KILN_PROFILE_MMAP    (1u << 7) /* anonymous mappings */
#define KILN_PROFILE_DEFAULT 0x7fu     /* all but MMAP */
#define KILN_PROFILE_NONE    (1u << 31)

/* Whatever is 0 or NULL is as the comment says.  A variable that is set has the last word. */
struct kiln_options {
    const char *service_name;              /* OTEL_SERVICE_NAME; the program's name */
    const struct kiln_attribute *resource; /* more of its attributes: OTEL_RESOURCE_ATTRIBUTES */
    size_t n_resource;

    uint32_t profiles;               /* KILN_PROFILES=cpu,alloc,...: KILN_PROFILE_DEFAULT */
    uint32_t cpu_hz;                 /* KILN_CPU_HZ: 100 samples a second of processor time */
    uint64_t alloc_bytes;            /* KILN_ALLOC_BYTES: one sample in 512 KiB on average */
    uint64_t lock_rate_ns;           /* KILN_LOCK_NS: one sample in 10 us of waiting on average */
    uint64_t wait_rate_ns;           /* KILN_WAIT_NS: one sample in 10 ms of waiting on average */
    uint64_t lag_ns;                 /* KILN_LAG_NS: turns of 20 ms and longer */
    uint32_t max_stack_depth;        /* KILN_MAX_STACK_DEPTH: 128 frames */
    uint32_t max_samples_per_export; /* KILN_MAX_SAMPLES: 10,000 */

    uint32_t export_interval_ms;  /* KILN_EXPORT_INTERVAL_MS: 15 s */
    uint32_t cpu_window_ms;       /* KILN_CPU_WINDOW_MS: CPU is sampled for this long ... */
    uint32_t cpu_every_ms;        /* KILN_CPU_EVERY_MS: ... every so often; always */
    uint32_t heap_every_ms;       /* KILN_HEAP_EVERY_MS: what is in use; with each export */
    uint32_t cpu_backoff_percent; /* KILN_CPU_BACKOFF: of the processors it may run on, above which
                                     CPU time and waits are not sampled; never */

    const char *endpoint; /* OTEL_EXPORTER_OTLP_ENDPOINT and its like: nowhere */
    const char *protocol; /* OTEL_EXPORTER_OTLP_PROTOCOL: grpc at port 4317, else http/protobuf */
    const char *headers;  /* OTEL_EXPORTER_OTLP_HEADERS: "key=value,key=value" */
    const char *socket;   /* KILN_SOCKET: /run/kiln/kiln.sock where that is */
    const char *out_dir;  /* KILN_OUT_DIR: files of profiles go there; no files */
    const char *pprof_listen; /* KILN_PPROF_LISTEN: "127.0.0.1:6060", "unix:/path"; nowhere */
    const char *redact;       /* KILN_REDACT: what must not leave: "path:/home,*secret*"; nothing */
    uint64_t reserved[15];
};

/*
 * Starts profiling; `options` may be NULL.  Where a preload has started it already, it starts anew
 * with these options.  0, or a negative errno: -EALREADY; -EPERM where profiling is forbidden
 * (KILN_ENABLED=0) or would do harm (a sanitizer, a setuid program); -EAGAIN where there is a limit
 * of threads, and one line has said so.
 *
 * It costs a thread or two, which block all signals.  A child that this process forks goes on by
 * itself if it lives for long enough.
 */
KILN_API int kiln_start(const struct kiln_options *options);
/* What was sampled is sent, within a second; then nothing runs any more. */
KILN_API void kiln_stop(void);
/* Sends what was sampled so far, and waits for it as long.  0, or a negative errno. */
KILN_API int kiln_flush(uint32_t timeout_ms);
/*
 * Pauses and goes on, without forgetting anything.  ENABLE_PROFILING=false is a pause from the
 * start.
 */
KILN_API void kiln_set_enabled(bool enabled);
KILN_API bool kiln_is_enabled(void);

#ifdef __cplusplus
}
#endif

#endif /* KILN_H */
