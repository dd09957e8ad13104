/* SPDX-License-Identifier: Apache-2.0 */
/* host_int - what the files of host share: the two threads and what goes between them. */
#ifndef KILN_HOST_HOST_INT_H
#define KILN_HOST_HOST_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/log.h"
#include "host/begun.h"
#include "host/contexts.h"
#include "host/gather.h"
#include "host/host.h"
#include "host/merge.h"
#include "host/publish.h"
#include "host/rewind.h"
#include "host/sideband.h"
#include "host/steer.h"
#include "host/wait_control.h"
#include "symbol/resolver.h"

enum {
    QUEUE_MAX = 4,  /* gatherings that wait for the publisher */
    FLIGHT_MAX = 3, /* batches that the consumer has not ended yet */
    FRAMES_MAX = KILN_KERNEL_FRAMES_MAX + KILN_USER_FRAMES_MAX,
};

/* Which part of the memory for all that grows each has: a third, a quarter... */
enum { PROCESSES_PART = 3, NAMES_PART = 4, MERGE_PART = 4, GATHER_PART = 6 };
_Static_assert(12 / PROCESSES_PART + 12 / NAMES_PART + 12 / MERGE_PART + 12 / GATHER_PART == 12,
               "together they are all of it");
/* The ring is memory of the kernel's, beside. */
enum { RING_PART = 8 };

/* What is used, and what was done by that. */
struct host_watch {
    struct kiln_watchdog dog;
    uint64_t own_bytes, next_pss_ns;
    uint64_t process_bytes; /* all of it, but for maps of the kernel */
    uint32_t lowered;
    bool stopped;
    uint64_t throttled[KILN_WATCH_MEMORY + 1], trimmed;
};

/* Of the reader's thread. */
struct host_reader {
    struct kiln_kernel *kernel;
    struct kiln_sideband *sideband;
    struct kiln_merge *merge;
    struct kiln_processes *processes;
    struct kiln_tables *tables;
    struct kiln_contexts contexts;
    uint64_t linked; /* samples that have a span */
    struct kiln_gather *gather;
    struct kiln_steer *steer;
    struct host_watch watch;
    uint32_t hz;          /* just now: of processes without an order */
    uint32_t clock_hz;    /* just now: of the clocks */
    uint64_t began_ns;    /* monotonic: all of it was sampled since */
    uint64_t horizon_ns;  /* everything before was shown */
    uint64_t next_cut_ns; /* when a batch is due */
    uint64_t next_tell_ns, next_sweep_ns;
    uint64_t window_began_ns;
    struct kiln_end_tally ends; /* `lost`: here, not in the kernel */
    uint64_t samples, processes_seen;
    struct kiln_wait_control waits;
    struct kiln_begun *begun; /* where waits come in two records; else NULL */
    bool has_waits;           /* that were wanted and that this kernel has */
    uint64_t every_ns;        /* between two batches */
    uint64_t waits_began_ns;  /* waits of the next batch stand for all since then */
    uint64_t waits_there_ns;  /* how long the hook had been there at the last batch */
    uint64_t waits_from_ns;   /* those that began before are not of this recording */
    uint64_t paused; /* samples of processes that an order leaves alone; not in the kernel */
    struct kiln_walked walked;
    struct kiln_gframe frames[FRAMES_MAX];
};

struct host_metrics;

/* On their way to the reader. */
struct host_orders {
    struct kiln_order *list;
    uint32_t n;
    bool is_new;
};

struct kiln_host {
    struct kiln_host_opts opts;
    struct kiln_host_facts facts;
    struct host_reader reader;
    struct kiln_publisher *publisher;
    struct kiln_resolver *resolver;
    struct host_metrics *metrics;
    pthread_t reading, publishing;
    int wake;      /* eventfd: of the reader */
    int sleep;     /* epoll: all that wakes it */
    bool finished; /* the threads are gone */
    _Atomic bool stopping;
    _Atomic uint64_t complained; /* about a consumer: kiln_log_every() */
    _Atomic uint32_t want_hz;
    _Atomic bool watched;
    _Atomic uint64_t names_cpu_ns, child_bytes, names_bytes; /* what finding names costs */

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t turn;
    struct kiln_gathering *queue[QUEUE_MAX];
    uint32_t n_queue;
    bool closed; /* nothing will be queued any more */
    uint32_t in_flight;
    uint64_t dropped; /* samples that the publisher did not get to */
    struct host_orders orders;
    struct kiln_host_status status;
};

/* Where the reader sees what the kernel wrote, in order of time. */
KILN_CHECK int host_merge_new(struct kiln_host *host);

/* ---- host_orders.c ---- */

KILN_CHECK int host_orders_new(struct kiln_host *host);
void host_orders_free(struct kiln_host *host);
/* Takes new orders, and ends what is over. */
void host_orders_step(struct kiln_host *host, uint64_t now_ns);
/* Whether a record counts; what does not is counted as such. */
bool host_orders_want(struct host_reader *reader, const struct kiln_record *record,
                      const struct kiln_identity *identity);
void host_orders_event(struct host_reader *reader, const struct kiln_event *event);

/* ---- host_watch.c ---- */

void host_watch_begin(struct kiln_host *host);
/* About once a second: what is used is looked at, and told. */
void host_watch_look(struct kiln_host *host, struct kiln_host_status *status);

/* The reader looks at everything soon. */
void host_wake_reader(struct kiln_host *host);
/* What it sleeps with is made before its thread. */
KILN_CHECK int host_sleep_open(struct kiln_host *host);

/* The threads. */
void *host_read(void *host);
void *host_publish(void *host);

/* Hands a gathering to the publisher; where it is behind, the oldest is dropped. */
void host_queue(struct kiln_host *host, struct kiln_gathering *gathering);
/* No more will come. */
void host_queue_close(struct kiln_host *host);

/* ---- waits: all from the reader's thread, but the first, before there is one ---- */

/* From the next instruction on, where it is wanted. */
KILN_CHECK int host_wait_begin(struct kiln_host *host);
/* The clocks run at another rate now; 0: they stand. */
void host_wait_rate(struct kiln_host *host, uint32_t hz);
/* The hook comes or goes, where that is due. */
void host_wait_turn(struct kiln_host *host);
/* A batch ends: since when its waits count. */
uint64_t host_wait_cut(struct kiln_host *host, uint64_t end_ns);
/* Once a second: what it costs is looked at. */
void host_wait_look(struct kiln_host *host, const struct kiln_kernel_stats *kernel,
                    uint64_t cpu_ns);
/* Whether all of it was in the time that this looks at. */
bool host_wait_counts(const struct host_reader *reader, const struct kiln_record *record);
/* Its time in each state, or, where it has only begun, nothing yet. */
KILN_CHECK int host_wait_add(struct host_reader *reader, struct kiln_gather_sample *sample,
                             const struct kiln_record *record);
/* The second record of a wait that came in two. */
void host_wait_end(struct host_reader *reader, const struct kiln_record *record);

/* Brings status and metrics up to date: from the reader's thread. */
void host_tell(struct kiln_host *host);

/* ---- host_read.c ---- */

/* Whether nothing is sampled now since nothing shall be (--window). */
bool host_between_windows(const struct kiln_host *host, uint64_t now_ns);
KILN_CHECK int host_metrics_new(struct kiln_metrics *metrics, struct host_metrics **ret_metrics);
void host_metrics_free(struct host_metrics *metrics);
void host_metrics_batch(struct host_metrics *metrics, double seconds);

#endif /* KILN_HOST_HOST_INT_H */
