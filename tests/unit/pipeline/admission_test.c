/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/mem.h"
#include "net/server_int.h"
#include "pipeline/receivers/admission.h"
#include "test.h"

enum { REQUESTS = 5, POOL = 10 << 20, PATIENCE = 1000 };

#define MIB    ((size_t)1 << 20)
#define SECOND KILN_NS_PER_S

/* An admission whose thread does not run, so that the test says when to look. */
static struct {
    struct kiln_admission admission;
    struct kiln_pool pool;
    struct kiln_exchange x[REQUESTS];
    struct kiln_metrics *metrics;
    size_t room;
    uint64_t now_ns;
    _Atomic uint32_t n_again;
} f;

static bool has_room(void *context, size_t bytes)
{
    (void)context;
    return bytes <= f.room;
}

static void again(struct kiln_request *request)
{
    (void)request;
    atomic_fetch_add(&f.n_again, 1);
}

static void start(uint32_t max)
{
    memset(&f, 0, sizeof(f));
    f.room = SIZE_MAX;
    f.now_ns = kiln_clock_mono_ns();
    CHECK_OK(kiln_metrics_new(&f.metrics));
    kiln_pool_init(&f.pool, "ingest", POOL, NULL);
    kiln_admission_init(&f.admission,
                        &(struct kiln_admission_opts){.pool = &f.pool,
                                                      .has_room = has_room,
                                                      .again = again,
                                                      .patience_ns = PATIENCE * SECOND,
                                                      .max = max,
                                                      .metrics = f.metrics});
    f.admission.running = true;
}

static void stop(void)
{
    f.admission.running = false;
    CHECK_EQ(f.admission.n, 0);
    kiln_admission_done(&f.admission);
    kiln_metrics_free(f.metrics);
    CHECK_EQ(kiln_mem_live(), 0);
}

static void give_back(void *context, size_t bytes)
{
    kiln_pool_give(context, bytes);
}

static bool waits(uint32_t i, size_t memory, size_t store)
{
    return kiln_admission_wait(&f.admission, &f.x[i].request, (struct kiln_lack){memory, store});
}

static bool may_try(uint32_t i)
{
    return kiln_admission_may_try(&f.admission, &f.x[i].request);
}

/* Which request has its turn so many seconds after the start; -1: none. */
static int next(uint32_t seconds)
{
    struct kiln_request *request = kiln_admission_next(&f.admission, f.now_ns + seconds * SECOND);

    return request ? (int)((struct kiln_exchange *)request - f.x) : -1;
}

TEST(admission, a_large_request_is_not_overtaken_by_small_ones)
{
    start(REQUESTS);
    CHECK_OK(kiln_pool_take(&f.pool, 9 * MIB));
    CHECK(may_try(0));
    CHECK(waits(0, 5 * MIB, 0));
    CHECK(waits(1, MIB, 0));
    CHECK(!may_try(2));
    CHECK(waits(2, 0, 0));
    CHECK_EQ(next(0), -1); /* there is room for the second, not for the first */
    kiln_pool_give(&f.pool, 3 * MIB);
    CHECK_EQ(next(0), -1);
    kiln_pool_give(&f.pool, MIB);
    CHECK_EQ(next(0), 0);
    CHECK_EQ(next(0), -1); /* until the first has begun */
    CHECK(may_try(0));
    CHECK_EQ(next(0), 1);
    CHECK(may_try(1));
    CHECK_EQ(next(0), 2);
    CHECK(may_try(2));
    CHECK(may_try(3));
    stop();
}

TEST(admission, a_request_that_fails_again_keeps_its_place)
{
    start(REQUESTS);
    CHECK_OK(kiln_pool_take(&f.pool, 9 * MIB));
    for (uint32_t i = 0; i < 3; i++)
        CHECK(waits(i, MIB, 0));
    CHECK_EQ(next(0), 0);
    CHECK(may_try(0));
    CHECK(waits(0, MIB, 0));
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(next(0), i);
        CHECK(may_try((uint32_t)i));
    }
    stop();
}

TEST(admission, a_request_waits_for_the_store_too)
{
    start(REQUESTS);
    f.room = 3 * MIB;
    CHECK(waits(0, MIB, 4 * MIB));
    CHECK_EQ(next(0), -1);
    f.room = 4 * MIB;
    CHECK_EQ(next(0), 0);
    stop();
}

TEST(admission, a_client_that_left_frees_its_place)
{
    start(2);
    CHECK_OK(kiln_pool_take(&f.pool, POOL));
    CHECK(waits(0, MIB, 0));
    CHECK(waits(1, MIB, 0));
    CHECK(!waits(2, MIB, 0));
    CHECK_EQ(kiln_metric_value(f.admission.full), 1);
    atomic_store(&f.x[1].gone, true);
    CHECK_EQ(next(0), 1);
    CHECK_EQ(next(0), -1);
    CHECK_EQ(kiln_metric_value(f.admission.waiting), 1);
    CHECK(waits(3, MIB, 0));
    atomic_store(&f.x[0].gone, true);
    atomic_store(&f.x[3].gone, true);
    CHECK_EQ(next(0), 0);
    CHECK_EQ(next(0), 3);
    stop();
}

TEST(admission, a_client_that_left_when_it_was_called_holds_nobody_up)
{
    start(REQUESTS);
    CHECK(waits(0, MIB, 0));
    CHECK(waits(1, MIB, 0));
    CHECK_EQ(next(0), 0); /* and never begins */
    CHECK_EQ(next(0), -1);
    CHECK_EQ(next(1), 1);
    stop();
}

TEST(admission, the_last_turn_comes_when_the_time_is_over)
{
    start(REQUESTS);
    CHECK_OK(kiln_pool_take(&f.pool, POOL));
    CHECK(waits(0, MIB, 0));
    CHECK_EQ(next(0), -1);
    CHECK_EQ(next(3 * PATIENCE), 0);
    CHECK(may_try(0));
    f.x[0].request.turn.since_ns -= PATIENCE * SECOND; /* that it has waited */
    CHECK(!waits(0, MIB, 0));
    CHECK_EQ(kiln_metric_value(f.admission.late), 1);
    stop();
}

TEST(admission, a_cache_gives_way_to_a_request_that_waits)
{
    struct kiln_pool cache;

    start(REQUESTS);
    kiln_pool_init(&cache, "query", POOL, &f.pool);
    CHECK_OK(kiln_pool_take(&cache, POOL));
    CHECK(waits(0, MIB, 0));
    CHECK_EQ(next(0), -1);
    kiln_pool_on_short(&cache, give_back, &cache);
    CHECK_EQ(next(0), 0);
    CHECK_EQ(cache.used, POOL - MIB);
    stop();
}

TEST(admission, stopping_wakes_everybody)
{
    start(REQUESTS);
    f.admission.running = false;
    CHECK_OK(kiln_pool_take(&f.pool, POOL));
    CHECK_OK(kiln_admission_start(&f.admission));
    for (uint32_t i = 0; i < 3; i++)
        CHECK(waits(i, MIB, 0));
    kiln_admission_stop(&f.admission);
    CHECK_EQ(atomic_load(&f.n_again), 3);
    CHECK(may_try(3));
    CHECK(!waits(3, MIB, 0)); /* no thread would call it again */
    stop();
}
