/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process is looked through when it publishes a context, publishes another one, or has mapped
 * other code since: a library that has the variable may be loaded late, or closed.  What was not
 * found, or not ready, is looked for again after half a second, then after twice as long each time,
 * up to five minutes.  New code is not a reason within five seconds, however much the process maps,
 * as those that compile at run time do.
 */
#include "host/contexts.h"

#include <string.h>

#include "base/clock.h"
#include "host/thread_context.h"

#define WAKE_NS  (250 * KILN_NS_PER_MS) /* host/process_published.c looks again after less */
#define SOON_NS  (500 * KILN_NS_PER_MS)
#define LATER_NS (5 * KILN_NS_PER_S)
#define MOST_NS  (300 * KILN_NS_PER_S)

/* Versions of the same variable: "tlsdesc_v1_dev", "tls_v1"; others are kept elsewhere. */
static bool tells_spans(const struct kiln_process *process)
{
    const struct kiln_context_attr *schema =
        process->context
            ? kiln_process_context_attribute(process->context, "threadlocal.schema_version")
            : NULL;

    return schema && schema->text && strncmp(schema->text, "tls", 3) == 0;
}

void kiln_contexts_drop(struct kiln_contexts *contexts, struct kiln_process *process)
{
    if (process->spans.is_placed) {
        contexts->sink.drop(contexts->sink.self, process->pid, process->spans.era);
        contexts->n_placed--;
    }
    process->spans = (struct kiln_context_watch){0};
}

static void look(struct kiln_contexts *contexts, struct kiln_process *process)
{
    struct kiln_context_watch *watch = &process->spans;
    struct kiln_context_place place;
    uint64_t wait_ns = watch->wait_ns;
    int r = kiln_thread_context_find(contexts->processes, process, &place);

    if (r == 0)
        r = contexts->sink.put(contexts->sink.self, process->pid, &place);
    if (r < 0) {
        kiln_contexts_drop(contexts, process);
        contexts->n_failed++;
    } else {
        contexts->n_placed += !watch->is_placed;
        watch->is_placed = true;
        watch->era = place.era;
    }
    watch->wait_ns = r == 0 || !wait_ns ? SOON_NS : wait_ns < MOST_NS / 2 ? wait_ns * 2 : MOST_NS;
}

static bool is_due(const struct kiln_process *process, uint64_t now_ns)
{
    const struct kiln_context_watch *watch = &process->spans;
    uint64_t since_ns = now_ns > watch->looked_ns ? now_ns - watch->looked_ns : 0;

    return watch->published_ns != process->context->published_ns ||
           (!watch->is_placed && since_ns >= watch->wait_ns) ||
           (watch->version != process->version && since_ns >= LATER_NS);
}

void kiln_contexts_follow(struct kiln_contexts *contexts, struct kiln_process *process,
                          uint64_t now_ns)
{
    struct kiln_context_watch *watch = &process->spans;

    if (!process->context) {
        if (watch->published_ns)
            kiln_contexts_drop(contexts, process);
        else if (!watch->looked_ns && !contexts->wake_ns && kiln_process_may_publish_soon(process))
            contexts->wake_ns = now_ns + WAKE_NS;
        watch->looked_ns = now_ns;
        return;
    }
    if (!is_due(process, now_ns))
        return;
    if (tells_spans(process)) {
        look(contexts, process);
    } else {
        kiln_contexts_drop(contexts, process);
        watch->wait_ns = UINT64_MAX;
    }
    watch->looked_ns = now_ns;
    watch->published_ns = process->context->published_ns;
    watch->version = process->version; /* opening files has changed it */
}
