/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/processors/limiter.h"

#include <errno.h>
#include <malloc.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/meminfo.h"

#define MIB (1u << 20)

struct limiter {
    struct kiln_consumer consumer; /* first */
    struct kiln_limiter_opts opts;
    struct kiln_processor_counts counts;
    struct kiln_metric *duration;
    struct kiln_metric *refused;
    _Atomic uint64_t looks_ns; /* when somebody looks again */
    _Atomic bool refuses;
};

static uint64_t in_use(const struct limiter *limiter)
{
    uint64_t used = kiln_meminfo_used();
    uint64_t given = limiter->opts.pool ? atomic_load(&limiter->opts.pool->used) : 0;

    return given > used ? given : used;
}

static void say(const struct limiter *limiter, bool refuses, uint64_t used)
{
    kiln_log(limiter->opts.processor.log, KILN_LOG_WARN,
             refuses ? "memory is above the soft limit: refusing data"
                     : "memory is below the soft limit again: taking data",
             "processor", "%s", limiter->opts.processor.id, "used_mib", "%llu",
             (unsigned long long)used / MIB, "soft_limit_mib", "%llu",
             (unsigned long long)limiter->opts.soft_bytes / MIB, NULL);
}

static void look(struct limiter *limiter)
{
    uint64_t used = in_use(limiter);
    bool refuses;

    if (used >= limiter->opts.hard_bytes) {
        malloc_trim(0);
        used = in_use(limiter);
    }
    refuses = used >= limiter->opts.soft_bytes;
    if (atomic_exchange(&limiter->refuses, refuses) != refuses)
        say(limiter, refuses, used);
}

/* The first who comes when it is time looks; the others go by what was seen before. */
static bool is_time(struct limiter *limiter)
{
    uint64_t now = kiln_clock_mono_ns(), due = atomic_load(&limiter->looks_ns);

    return now >= due && atomic_compare_exchange_strong(&limiter->looks_ns, &due,
                                                        now + limiter->opts.interval_ns);
}

static void refuse(struct limiter *limiter, struct kiln_delivery *delivery)
{
    struct kiln_outcome outcome = {.code = -EAGAIN, .retry_after_s = 1};

    kiln_processor_count(limiter->refused, delivery);
    kiln_err_set(&outcome.err, -EAGAIN, NULL, "data refused due to high memory usage");
    kiln_delivery_end(delivery, &outcome);
}

static void consume(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct limiter *limiter = (struct limiter *)consumer;
    struct kiln_consumer *next = limiter->opts.processor.next;
    uint64_t since_ns = kiln_clock_mono_ns();

    kiln_processor_count(limiter->counts.incoming, delivery);
    if (is_time(limiter))
        look(limiter);
    kiln_processor_took(limiter->duration, since_ns);
    if (atomic_load(&limiter->refuses)) {
        refuse(limiter, delivery);
        return;
    }
    kiln_processor_count(limiter->counts.outgoing, delivery);
    kiln_hand_on(next, delivery);
}

static bool is_light(struct kiln_consumer *consumer, const struct kiln_delivery *delivery)
{
    return kiln_is_light(((struct limiter *)consumer)->opts.processor.next, delivery);
}

int kiln_limiter_new(const struct kiln_limiter_opts *opts, struct kiln_consumer **ret_limiter)
{
    struct limiter *limiter = kiln_calloc(1, sizeof(*limiter));

    if (!limiter)
        return -ENOMEM;
    limiter->consumer = (struct kiln_consumer){consume, opts->processor.next->takes_sealed,
                                               is_light, opts->processor.next->takes_json,
                                               opts->processor.next->takes_unchecked};
    limiter->opts = *opts;
    limiter->counts = kiln_processor_counts(&opts->processor);
    limiter->duration = kiln_processor_duration(&opts->processor);
    limiter->refused = kiln_metric_get(opts->processor.metrics, KILN_COUNTER,
                                       "otelcol_processor_refused_profile_samples",
                                       "Samples that were refused because memory was short.",
                                       KILN_LABELS("processor", opts->processor.id));
    *ret_limiter = &limiter->consumer;
    return 0;
}

void kiln_limiter_free(struct kiln_consumer *limiter)
{
    kiln_free(limiter);
}
