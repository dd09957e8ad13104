/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the process stays below its limit.
 *
 *   limit ┬─ 1/8 + 16 MiB   never given out: code, stacks, and what comes between two looks
 *         └─ all             own   at most   (in fortieths of all)
 *             ├─ ingest       5      18      batches on their way in, and
 *             │   └─ bodies   -       9      what they are made from
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
 * do not fit the next taker), and libraries ask nobody.  So what the kernel says is compared with
 * what is known, and the difference is taken out of `all` as well: where memory is lost to holes,
 * less is given out.  `own` parts, and the common part without what is lost, and what is lost stay
 * below a line; the eighth above it is for what comes between two looks.
 *
 * Holes are made by giving back and filled by taking, and a busy server does either a hundred
 * megabytes a second: a thread that looks twenty times a second sees too little of it, and on a
 * busy machine none.  So besides that thread whoever takes looks, each time another 32nd of the
 * limit was taken.  Where what is known and what is lost together pass the line, and holes are a
 * reason, free memory goes back to the kernel before anything is given out.
 *
 * What is known: of what pools gave out, what was allocated by now.  The rest is not there yet and
 * comes without another taking.
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
#define SQUEEZED_MS 200        /* and so often where pools would have to give way to it; */
#define IDLE_MS     30000      /* so often what nobody uses goes back anyway, */
#define IDLE_BYTES  (64 * MIB) /* from this much on */
#define STEPS       32         /* a step of this many is taken, or lost, before it is looked at */
#define BLOCKS      512        /* blocks from this part of the limit on leave no holes */

static uint64_t in_use(const struct kiln_memory *memory)
{
    return atomic_load(&memory->ingest.used) + atomic_load(&memory->store.used) +
           atomic_load(&memory->query.used);
}

static bool take_free(struct kiln_pool *pool, size_t bytes)
{
    return kiln_pool_has(pool, bytes) && kiln_pool_take(pool, bytes) == 0;
}

/* What is used beside what the pools know of. */
static uint64_t lost(const struct kiln_memory *memory, uint64_t rss)
{
    uint64_t known = in_use(memory), live = kiln_mem_live_bytes();

    if (live < known)
        known = live;
    return rss > known ? rss - known : 0;
}

static bool is_over(const struct kiln_memory *memory, uint64_t lost_bytes)
{
    return in_use(memory) + lost_bytes > memory->limit - memory->limit / 8;
}

/*
 * Makes the ballast what is lost beyond the slack, or as near as the pools allow.  It grows only
 * where free memory has just gone back to the kernel, or there is hardly any left: what a question
 * gave back a moment ago does not leave the process before, and the next one can have it.
 */
static void balance(struct kiln_memory *memory, uint64_t lost_bytes, bool trimmed)
{
    size_t want = lost_bytes > SLACK ? (size_t)(lost_bytes - SLACK) : 0;

    if (want < memory->ballast) {
        kiln_pool_give(&memory->beside, memory->ballast - want);
        memory->ballast = want;
    }
    if (want == memory->ballast || (!trimmed && !is_over(memory, lost_bytes)))
        return;
    if (trimmed)
        kiln_pool_reclaim(&memory->beside, want - memory->ballast);
    /* All there is, if it is not enough: then nothing is given out until less is used. */
    for (size_t more = want - memory->ballast; more >= LEAST; more /= 2) {
        while (want - memory->ballast >= more && take_free(&memory->beside, more))
            memory->ballast += more;
    }
}

static bool should_trim(const struct kiln_memory *memory, uint64_t rss, uint64_t lost_bytes,
                        uint64_t since_ns)
{
    uint64_t every_ms = rss > memory->limit / 4 * 3         ? TRIM_MS
                        : rss > in_use(memory) + IDLE_BYTES ? IDLE_MS
                                                            : UINT64_MAX;

    if (is_over(memory, lost_bytes)) {
        if (lost_bytes > memory->stays + memory->meter.every)
            return true;
        if (lost_bytes > SLACK)
            every_ms = SQUEEZED_MS;
    }
    return since_ns / KILN_NS_PER_MS > every_ms;
}

/* What of the process the limit is for. */
static uint64_t own_rss(const struct kiln_memory *memory)
{
    uint64_t rss = kiln_process_rss(), aside = atomic_load(&memory->aside);

    return rss > aside ? rss - aside : 0;
}

/* Under the lock.  Returns how long to wait for the next look. */
static uint32_t look(struct kiln_memory *memory)
{
    uint64_t rss, lost_bytes, now = kiln_clock_mono_ns();
    bool trimmed;

    atomic_store(&memory->meter.taken, 0);
    rss = own_rss(memory);
    lost_bytes = lost(memory, rss);
    trimmed = should_trim(memory, rss, lost_bytes, now - memory->trimmed_ns);
    if (trimmed) {
        malloc_trim(0);
        memory->trimmed_ns = now;
        rss = own_rss(memory);
        lost_bytes = lost(memory, rss);
    }
    if (trimmed || lost_bytes < memory->stays)
        memory->stays = lost_bytes;
    balance(memory, lost_bytes, trimmed);
    return rss > memory->limit / 4 ? BUSY_MS : CALM_MS;
}

/* Of whoever takes: all who take wait until it was looked at. */
static void look_now(void *context)
{
    struct kiln_memory *memory = context;

    pthread_mutex_lock(&memory->lock);
    if (!memory->stop && atomic_load(&memory->meter.taken) >= memory->meter.every)
        look(memory);
    pthread_mutex_unlock(&memory->lock);
}

static void init_share(struct kiln_memory *memory, struct kiln_pool *pool, const char *name,
                       size_t own, size_t most)
{
    struct kiln_pool *all = &memory->all;

    kiln_pool_init(pool, name, all->limit / 40 * most, all);
    kiln_pool_set_meter(pool, &memory->meter);
    (void)!kiln_pool_own(pool, all->limit / 40 * own); /* all is empty: it cannot fail */
}

void kiln_memory_init(struct kiln_memory *memory, uint64_t limit)
{
    size_t all = (size_t)(limit - limit / 8 - SLACK);

    *memory = (struct kiln_memory){
        .limit = limit,
        .meter = {.every = (size_t)(limit / STEPS), .look = look_now, .context = memory}};
    kiln_pool_init(&memory->all, "all", all, NULL);
    init_share(memory, &memory->ingest, "ingest", 5, 18);
    kiln_pool_init(&memory->bodies, "bodies", memory->ingest.limit / 2, &memory->ingest);
    init_share(memory, &memory->store, "store", 13, 22);
    init_share(memory, &memory->query, "query", 6, 22);
    kiln_pool_init(&memory->beside, "beside", all, &memory->all);
    pthread_mutex_init(&memory->lock, NULL);
    pthread_cond_init(&memory->wake, NULL);
    /* One more arena than the main one: each keeps its own holes. */
    mallopt(M_ARENA_MAX, 2);
    kiln_mem_keep((size_t)(limit / 16), (size_t)(limit / BLOCKS));
}

static void *watch(void *arg)
{
    struct kiln_memory *memory = arg;

    pthread_mutex_lock(&memory->lock);
    while (!memory->stop) {
        struct timespec until;
        uint64_t ms = look(memory);

        if (memory->beat)
            memory->beat(memory->beat_context);
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

/* The lock stays: the store takes and gives until it is closed. */
void kiln_memory_done(struct kiln_memory *memory)
{
    pthread_mutex_lock(&memory->lock);
    memory->stop = true;
    pthread_cond_signal(&memory->wake);
    pthread_mutex_unlock(&memory->lock);
    if (memory->running)
        pthread_join(memory->thread, NULL);
    kiln_pool_give(&memory->beside, memory->ballast);
    memory->ballast = 0;
    pthread_cond_destroy(&memory->wake);
}
