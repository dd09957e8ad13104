/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the process stays below its limit.
 *
 *   limit ┬─ 1/8 + 16 MiB   never given out: code, stacks, and what comes between two looks
 *         └─ all             own   at most   (in fortieths of all)
 *             ├─ ingest       5      18      bodies, and batches on their way in
 *             ├─ store       13      22      heads, cuts, compaction
 *             ├─ query        6      22      questions, their answers; what was read of blocks
 *             ├─ (common)    16              what no share owns: first come, first served
 *             └─ beside       -       -      what the process was seen to use beyond what the pools
 *                                            know of; out of the common part
 *
 * Shares overlap, so that under a small limit one large question still has room (120 MB of 256 MiB)
 * and so has a burst of profiles.  What a share owns nobody else can take: questions that use up
 * all that is common leave the store its heads and what it needs to write them, and ingest some
 * requests at a time; a full ingest leaves questions enough to answer one after the other.
 *
 * Pools count what their users asked for.  The C library needs more than that (headers, holes that
 * do not fit the next taker), and libraries ask nobody.  So a thread compares what the kernel says
 * with what the pools say and takes the difference out of `all` as well: where memory is lost to
 * holes, less is given out.  When that happens, or the process comes near its limit, free memory
 * goes back to the kernel.
 */
#include <malloc.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "cli/daemon.h"
#include "cli/serve.h"

#define MIB         ((uint64_t)1 << 20)
#define SLACK       (16 * MIB) /* beside the eighth: code, stacks, libraries */
#define LEAST       ((size_t)4 << 10)
#define CALM_MS     1000       /* from one look to the next */
#define BUSY_MS     50         /* the same, when more than a quarter is in use */
#define TRIM_MS     1000       /* as often near the limit free memory goes back to the kernel, */
#define SQUEEZED_MS 200        /* and so often where pools would have to give way to it, */
#define SQUEEZED    (4 * MIB)  /* from this much on; */
#define IDLE_MS     30000      /* so often what nobody uses goes back anyway, */
#define IDLE_BYTES  (64 * MIB) /* from this much on */

static void init_share(struct kiln_pool *pool, const char *name, struct kiln_pool *all, size_t own,
                       size_t most)
{
    kiln_pool_init(pool, name, all->limit / 40 * most, all);
    (void)!kiln_pool_own(pool, all->limit / 40 * own); /* all is empty: it cannot fail */
}

void kiln_memory_init(struct kiln_memory *memory, uint64_t limit)
{
    size_t all = (size_t)(limit - limit / 8 - SLACK);

    *memory = (struct kiln_memory){.limit = limit};
    kiln_pool_init(&memory->all, "all", all, NULL);
    init_share(&memory->ingest, "ingest", &memory->all, 5, 18);
    init_share(&memory->store, "store", &memory->all, 13, 22);
    init_share(&memory->query, "query", &memory->all, 6, 22);
    kiln_pool_init(&memory->beside, "beside", all, &memory->all);
    pthread_mutex_init(&memory->lock, NULL);
    pthread_cond_init(&memory->wake, NULL);
    /* One more arena than the main one: each keeps its own holes. */
    mallopt(M_ARENA_MAX, 2);
    kiln_mem_keep((size_t)(limit / 8));
}

static uint64_t in_use(const struct kiln_memory *memory)
{
    return atomic_load(&memory->ingest.used) + atomic_load(&memory->store.used) +
           atomic_load(&memory->query.used);
}

static bool take_free(struct kiln_pool *pool, size_t bytes)
{
    return kiln_pool_has(pool, bytes) && kiln_pool_take(pool, bytes) == 0;
}

/* What is used beside the pools, beyond what is never given out. */
static size_t beside(const struct kiln_memory *memory, uint64_t rss)
{
    uint64_t known = in_use(memory);
    uint64_t free_of_charge = memory->limit - memory->all.limit - memory->limit / 16;

    return rss > known + free_of_charge ? (size_t)(rss - known - free_of_charge) : 0;
}

/*
 * Makes the ballast what is used beside the pools, or as near as the pools allow.  It grows only
 * where free memory has just gone back to the kernel, or there is hardly any left: what a question
 * gave back a moment ago does not leave the process before, and the next one can have it.
 */
static void balance(struct kiln_memory *memory, uint64_t rss, bool trimmed)
{
    size_t want = beside(memory, rss);

    if (want < memory->ballast) {
        kiln_pool_give(&memory->beside, memory->ballast - want);
        memory->ballast = want;
    }
    if (want == memory->ballast || (!trimmed && rss < memory->limit / 16 * 15))
        return;
    if (trimmed)
        kiln_pool_reclaim(&memory->beside, want - memory->ballast);
    /* All there is, if it is not enough: then nothing is given out until less is used. */
    for (size_t more = want - memory->ballast; more >= LEAST; more /= 2) {
        while (want - memory->ballast >= more && take_free(&memory->beside, more))
            memory->ballast += more;
    }
}

static bool should_trim(const struct kiln_memory *memory, uint64_t rss, uint64_t since_ns)
{
    uint64_t every_ms = rss > memory->limit / 4 * 3         ? TRIM_MS
                        : rss > in_use(memory) + IDLE_BYTES ? IDLE_MS
                                                            : UINT64_MAX;

    if (beside(memory, rss) > SQUEEZED)
        every_ms = SQUEEZED_MS;
    return since_ns / KILN_NS_PER_MS > every_ms;
}

/* What of the process the limit is for. */
static uint64_t own_rss(const struct kiln_memory *memory)
{
    uint64_t rss = kiln_process_rss(), aside = atomic_load(&memory->aside);

    return rss > aside ? rss - aside : 0;
}

/* Returns how long to wait for the next look. */
static uint32_t look(struct kiln_memory *memory, uint64_t *trimmed_ns)
{
    uint64_t rss = own_rss(memory), now = kiln_clock_mono_ns();
    bool trimmed = should_trim(memory, rss, now - *trimmed_ns);

    if (trimmed) {
        malloc_trim(0);
        *trimmed_ns = now;
        rss = own_rss(memory);
    }
    balance(memory, rss, trimmed);
    return rss > memory->limit / 4 ? BUSY_MS : CALM_MS;
}

static void *watch(void *arg)
{
    struct kiln_memory *memory = arg;
    uint64_t trimmed_ns = 0;

    pthread_mutex_lock(&memory->lock);
    while (!memory->stop) {
        struct timespec until;
        uint64_t ms = look(memory, &trimmed_ns);

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += (long)(ms * KILN_NS_PER_MS);
        until.tv_sec += until.tv_nsec / (long)KILN_NS_PER_S;
        until.tv_nsec %= (long)KILN_NS_PER_S;
        pthread_cond_timedwait(&memory->wake, &memory->lock, &until);
    }
    pthread_mutex_unlock(&memory->lock);
    return NULL;
}

void kiln_memory_set_aside(struct kiln_memory *memory, uint64_t bytes)
{
    atomic_store(&memory->aside, bytes);
}

int kiln_memory_start(struct kiln_memory *memory)
{
    int r = kiln_thread_start("kiln-memory", watch, memory, &memory->thread);

    memory->running = r == 0;
    return r;
}

void kiln_memory_done(struct kiln_memory *memory)
{
    if (memory->running) {
        pthread_mutex_lock(&memory->lock);
        memory->stop = true;
        pthread_cond_signal(&memory->wake);
        pthread_mutex_unlock(&memory->lock);
        pthread_join(memory->thread, NULL);
    }
    kiln_pool_give(&memory->beside, memory->ballast);
    pthread_cond_destroy(&memory->wake);
    pthread_mutex_destroy(&memory->lock);
}
