/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host - the host profiler, put together: `kiln agent`, `kiln record` and the all-in-one start it.
 *
 *   kernel (records) ──┐                    ┌─ processes ◀─ /proc, files
 *                      ├─▶ merge (by time) ─┤     ▲
 *   sideband (events) ─┘                    └─ rewind ─▶ tables (rows, mappings) ─▶ kernel
 *                                                 │
 *                                              gather ═══▶ publish ─▶ consumer (store, OTLP, file)
 *                                                             │
 *                                                          resolver (a confined child)
 *
 * Two threads: kiln-host reads and gathers, kiln-publish names and hands on, so that neither a slow
 * disk nor a slow receiver makes samples get lost.
 *
 * Threads: started, finished and stopped by one; the rest from anywhere.
 */
#ifndef KILN_HOST_HOST_H
#define KILN_HOST_HOST_H

#include "base/clock.h"
#include "base/err.h"
#include "fleet/order.h"
#include "host/kernel.h"
#include "host/reason.h"
#include "host/watchdog.h"
#include "pipeline/pipeline.h"

struct kiln_identity_rules;
struct kiln_log;

/* What 0 stands for. */
#define KILN_HOST_HZ                 19u
#define KILN_HOST_EVERY_NS           (5 * KILN_NS_PER_S)
#define KILN_AGENT_EVERY_NS          (60 * KILN_NS_PER_S) /* where batches travel */
#define KILN_HOST_UNWIND_BYTES       (UINT64_C(16) << 20)
#define KILN_HOST_MEMORY_BYTES       (UINT64_C(96) << 20)
#define KILN_HOST_SYMBOL_CACHE_BYTES (UINT64_C(256) << 20)

/* What it points at is borrowed until the host is stopped. */
struct kiln_host_opts {
    uint32_t hz;                           /* 0: 19 */
    bool off_cpu;                          /* waits too */
    bool waits_only;                       /* no samples of the processors */
    enum kiln_wait_way wait_way;           /* NONE: the best that this kernel has */
    double cpu_budget;                     /* share of one processor's time; 0: no limit */
    bool alone;                            /* in its process: all that uses is watched */
    uint64_t memory_limit;                 /* of all but the tables; 0: it is not watched */
    uint64_t every_ns;                     /* between two batches; 0: 5 s */
    uint64_t window_ns, window_every_ns;   /* sample so long, so often; 0: all the time */
    uint64_t unwind_bytes;                 /* 0: 16 MiB */
    uint64_t memory_bytes;                 /* of all else that grows; 0: 96 MiB */
    const struct kiln_host_filter *filter; /* NULL: everybody */
    const char *const *env_names;          /* see host/process.h */
    uint32_t n_env_names;
    const struct kiln_identity_rules *rules; /* see host/identity_rules.h; may be NULL */
    const struct kiln_str *resource;         /* see host/publish.h */
    uint32_t n_resource;
    bool no_names;             /* addresses alone */
    bool by_container, lean;   /* see host/publish.h */
    uint64_t names_wait_ns;    /* for lines and inlines, with each batch; 0: they come later */
    bool measure;              /* what the programs in the kernel cost, for as long as this runs */
    const char *names_program; /* see symbol/resolver.h; NULL: this very program */
    bool paused;               /* begin with kiln_host_set_rate() */
    const char *symbol_cache;  /* names on disk, see symbol/shelf.h; NULL: none */
    uint64_t symbol_cache_bytes; /* 0: 256 MiB */
    const char *tenant;          /* of deliveries; NULL: the default one */
    struct kiln_consumer *consumer;
    struct kiln_metrics *metrics; /* may be NULL */
    struct kiln_log *log;         /* may be NULL */
};

struct kiln_host;

/* Like kiln_kernel_open() where the host or the user cannot: err is the sentence to show. */
KILN_CHECK int kiln_host_start(const struct kiln_host_opts *opts, struct kiln_host **ret_host,
                               struct kiln_err *err);
/*
 * Takes no more samples, publishes what is left, and waits for the consumer to be done with it.
 * The status, which is final then, may still be asked for.
 */
void kiln_host_finish(struct kiln_host *host);
/* Finishes, and frees. */
void kiln_host_stop(struct kiln_host *host);

/* Samples a second and processor, from now on; 0: none. */
KILN_CHECK int kiln_host_set_rate(struct kiln_host *host, uint32_t hz);

/* Whether somebody waits for what is new: then batches come every KILN_HOST_EVERY_NS at least. */
void kiln_host_set_watched(struct kiln_host *host, bool watched);

/*
 * Orders that hold from now on, and no others: who is sampled more often for a while, and who not
 * at all.  Copied; those that are for other hosts are passed over.
 */
KILN_CHECK int kiln_host_set_orders(struct kiln_host *host, const struct kiln_order *orders,
                                    uint32_t n);

/* What the watchdog sees and does (host/watchdog.h). */
struct kiln_host_watch {
    enum kiln_watch_why why; /* rates are lowered, or nothing is sampled */
    uint32_t lowered;        /* so many times */
    bool stopped;
    double cpu_used, cpu_budget;         /* shares of one processor; of late */
    uint64_t memory_bytes, memory_limit; /* of all but the tables and what finds names */
    uint64_t throttled_cpu, throttled_memory, trimmed; /* how often so far */
};

struct kiln_host_status {
    uint64_t samples;           /* gathered so far */
    uint64_t processes;         /* of which samples came, in the last interval */
    struct kiln_end_tally ends; /* `lost` counts also what did not fit */
    uint64_t batches, batches_failed;
    struct kiln_kernel_stats kernel;
    uint64_t unwind_bytes, unwind_used_bytes;
    uint64_t names_asked, names_missing; /* distinct places that have no name */
    uint32_t hz;                         /* just now, of processes without an order */
    uint32_t clock_hz;                   /* just now, of those with the highest rate */
    uint32_t orders, boosted, paused;    /* that are followed; processes that they are for */
    bool all_paused, between_windows;
    uint64_t paused_samples; /* that were not taken, by order */
    /* What all of it costs, with the kernel's programs, their maps, and what finds names: of the
     * whole process where it is alone in it, else of its own threads and tables. */
    uint64_t cpu_ns, memory_bytes;
    uint64_t dropped; /* of those lost: gathered, but not published in time */
    struct kiln_host_watch watch;
};
/* What is profiled: names of the host; the kernel's release.  Constant. */
struct kiln_host_facts {
    char name[256], id[64], kernel[128];
};
void kiln_host_find_facts(struct kiln_host_facts *ret_facts);
void kiln_host_status(struct kiln_host *host, struct kiln_host_status *ret_status);

#endif /* KILN_HOST_HOST_H */
