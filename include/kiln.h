/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kiln - tells whoever profiles this process which service it is, and which span each thread works
 * for, so that samples are linked to traces.
 *
 *   kiln_context_publish((struct kiln_attribute[]){{"service.name", "shop"}}, 1);
 *   ...
 *   struct kiln_span span;
 *   kiln_span_enter(&span, trace_id, span_id, flags);
 *   serve(request);
 *   kiln_span_leave(&span);
 *
 * Nothing is sent and nobody is called: an agent on the same host (Kiln's, or any that reads
 * OpenTelemetry's process context, OTEP 4719, and thread context, OTEP 4947) looks at this memory
 * when it takes a sample.  Entering and leaving a span are a few stores each.
 *
 * Link with libkiln.so or libkiln.a.  A static executable exports the variable that agents look
 * for with -Wl,--export-dynamic-symbol=otel_thread_ctx_v1, or keeps its symbol table.
 *
 * Threads: the process' context from anywhere; spans belong to the thread that enters them, and may
 * be entered in handlers of signals too.
 */
#ifndef KILN_H
#define KILN_H

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

#ifdef __cplusplus
}
#endif

#endif /* KILN_H */
