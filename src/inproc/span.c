/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The context of threads (OTEP 4947): a variable of each thread, found by its name, that points to
 * a record or nowhere.
 *
 *   bytes  0-15  id of the trace
 *         16-23  id of the span
 *            24  1: valid
 *            25  flags of the trace
 *         26-27  bytes of attributes that follow: none
 *
 * Whoever reads has interrupted the thread, perhaps between any two instructions: the record is
 * whole before the pointer shows it, and not touched while the pointer does.  A compiler's fence is
 * enough for that.
 */
#include <kiln.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

enum { TRACE_BYTES = 16, SPAN_BYTES = 8, VALID_AT = 24, FLAGS_AT = 25 };

extern KILN_API __thread void *volatile otel_thread_ctx_v1;
__thread void *volatile otel_thread_ctx_v1;

static __thread struct kiln_span *innermost;
/* Of kiln_span_set(): one is shown while the other is written. */
static __thread struct kiln_span turns[2];
static __thread unsigned turn;

static bool is_zero(const uint8_t *id, size_t n)
{
    uint8_t any = 0;

    for (size_t i = 0; i < n; i++)
        any |= id[i];
    return any == 0;
}

static void show(struct kiln_span *span)
{
    atomic_signal_fence(memory_order_seq_cst);
    otel_thread_ctx_v1 = span && span->record.bytes[VALID_AT] ? &span->record : NULL;
    atomic_signal_fence(memory_order_seq_cst);
}

static void fill(struct kiln_span *span, const uint8_t *trace_id, const uint8_t *span_id,
                 uint8_t flags)
{
    uint8_t *bytes = span->record.bytes;

    memset(bytes, 0, sizeof(span->record.bytes));
    memcpy(bytes, trace_id, TRACE_BYTES);
    memcpy(bytes + TRACE_BYTES, span_id, SPAN_BYTES);
    bytes[VALID_AT] = !is_zero(trace_id, TRACE_BYTES) && !is_zero(span_id, SPAN_BYTES);
    bytes[FLAGS_AT] = flags;
}

void kiln_span_enter(struct kiln_span *span, const uint8_t trace_id[16], const uint8_t span_id[8],
                     uint8_t flags)
{
    fill(span, trace_id, span_id, flags);
    span->outer = innermost;
    innermost = span;
    show(span);
}

void kiln_span_leave(struct kiln_span *span)
{
    struct kiln_span **at = &innermost;

    while (*at && *at != span)
        at = &(*at)->outer;
    if (!*at)
        return;
    *at = span->outer;
    show(innermost);
}

void kiln_span_set(const uint8_t trace_id[16], const uint8_t span_id[8], uint8_t flags)
{
    struct kiln_span *span = &turns[turn ^= 1];

    fill(span, trace_id, span_id, flags);
    show(span);
}

void kiln_span_clear(void)
{
    show(NULL);
}

struct kiln_span *kiln_span_attach(struct kiln_span *spans)
{
    struct kiln_span *before = innermost;

    innermost = spans;
    show(spans);
    return before;
}

struct kiln_span *kiln_span_detach(void)
{
    return kiln_span_attach(NULL);
}
