/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "base/clock.h"
#include "base/leash.h"
#include "test.h"

TEST(leash, without_limits_holds_nothing_back)
{
    struct kiln_leash leash = {0};

    CHECK_OK(kiln_leash_check(&leash));
    CHECK_OK(kiln_leash_read(&leash, UINT64_MAX / 2));
    CHECK_OK(kiln_leash_reserve(&leash, (size_t)1 << 40, NULL));
    kiln_leash_give(&leash, (size_t)1 << 40);
    CHECK_EQ(leash.memory, 0);
    CHECK_EQ(leash.memory_peak, (size_t)1 << 40);
}

TEST(leash, says_when_nobody_waits_and_when_it_is_too_late)
{
    _Atomic bool gone = false;
    struct kiln_leash leash = {.gone = &gone,
                               .deadline_mono_ns = kiln_clock_mono_ns() + 3600 * KILN_NS_PER_S};

    CHECK_OK(kiln_leash_check(&leash));
    atomic_store(&gone, true);
    CHECK_EQ(kiln_leash_check(&leash), -ECANCELED);
    atomic_store(&gone, false);
    leash.deadline_mono_ns = 1;
    CHECK_EQ(kiln_leash_check(&leash), -ETIMEDOUT);
    CHECK_EQ(kiln_leash_reserve(&leash, 1, NULL), -ETIMEDOUT);
}

TEST(leash, reads_so_many_bytes_and_no_more)
{
    struct kiln_leash leash = {.bytes_max = 100};

    CHECK_OK(kiln_leash_read(&leash, 60));
    CHECK_EQ(kiln_leash_read(&leash, 41), KILN_E_LIMIT);
    CHECK_EQ(kiln_leash_read(&leash, UINT64_MAX), KILN_E_LIMIT);
    CHECK_OK(kiln_leash_read(&leash, 40));
    CHECK_EQ(leash.bytes_read, 100);
}

TEST(leash, what_can_never_fit_is_refused_at_once_and_says_how_much_it_was)
{
    struct kiln_pool all, part;
    struct kiln_leash leash = {.pool = &part, .memory_max = (size_t)90 << 20};
    struct kiln_err err = {0};

    kiln_pool_init(&all, "all", (size_t)50 << 20, NULL);
    kiln_pool_init(&part, "part", (size_t)80 << 20, &all);
    CHECK_EQ(kiln_leash_reserve(&leash, (size_t)51 << 20, &err), KILN_E_LIMIT);
    CHECK(strstr(err.text, "needs 51 MiB of memory and may use 50 MiB"));
    leash.memory_max = (size_t)10 << 20;
    CHECK_EQ(kiln_leash_reserve(&leash, (size_t)11 << 20, NULL), KILN_E_LIMIT);
    CHECK_OK(kiln_leash_reserve(&leash, (size_t)6 << 20, NULL));
    CHECK_EQ(kiln_leash_take(&leash, (size_t)5 << 20), KILN_E_LIMIT);
    CHECK_OK(kiln_leash_take(&leash, (size_t)4 << 20));
    CHECK_EQ(part.used, (size_t)10 << 20);
    kiln_leash_give(&leash, (size_t)10 << 20);
    CHECK_EQ(all.used, 0);
    CHECK_EQ(part.refused, 0);
}

TEST(leash, who_has_some_does_not_wait_for_more)
{
    struct kiln_pool pool;
    struct kiln_leash one = {.pool = &pool}, other = {.pool = &pool};

    kiln_pool_init(&pool, "pool", 100, NULL);
    CHECK_OK(kiln_leash_reserve(&one, 50, NULL));
    CHECK_OK(kiln_leash_reserve(&other, 40, NULL));
    CHECK_EQ(kiln_leash_reserve(&one, 20, NULL), KILN_E_LIMIT);
    CHECK_OK(kiln_leash_reserve(&one, 10, NULL));
    kiln_leash_give(&one, 60);
    kiln_leash_give(&other, 40);
}

/* ---- turns ---- */

struct asker {
    pthread_t thread;
    struct kiln_leash leash;
    size_t bytes;
    int result;
    _Atomic bool asks;
};

static void *ask(void *arg)
{
    struct asker *a = arg;

    atomic_store(&a->asks, true);
    a->result = kiln_leash_reserve(&a->leash, a->bytes, NULL);
    if (a->result == 0)
        kiln_leash_give(&a->leash, a->bytes);
    return NULL;
}

static void start(struct asker *a, struct kiln_pool *pool, size_t bytes)
{
    a->leash.pool = pool;
    a->bytes = bytes;
    CHECK_OK(pthread_create(&a->thread, NULL, ask, a));
    while (!atomic_load(&a->asks))
        sched_yield();
}

TEST(leash, a_question_waits_for_another_to_give_back)
{
    struct kiln_pool pool;
    struct kiln_leash first = {.pool = &pool};
    struct asker second = {0};

    kiln_pool_init(&pool, "pool", 100, NULL);
    CHECK_OK(kiln_leash_reserve(&first, 80, NULL));
    start(&second, &pool, 60);
    kiln_leash_give(&first, 80);
    pthread_join(second.thread, NULL);
    CHECK_OK(second.result);
    CHECK_EQ(pool.used, 0);
}

TEST(leash, memory_that_somebody_else_gives_back_is_seen_too)
{
    struct kiln_pool all, part, beside;
    struct asker a = {0};

    kiln_pool_init(&all, "all", 100, NULL);
    kiln_pool_init(&part, "part", 100, &all);
    kiln_pool_init(&beside, "beside", 100, &all);
    CHECK_OK(kiln_pool_take(&beside, 90));
    start(&a, &part, 60);
    kiln_pool_give(&beside, 90);
    pthread_join(a.thread, NULL);
    CHECK_OK(a.result);
}

TEST(leash, who_waits_leaves_when_its_client_does_or_its_time_is_over)
{
    struct kiln_pool pool;
    struct kiln_leash holder = {.pool = &pool};
    _Atomic bool gone = false;
    struct asker left = {.leash.gone = &gone};
    struct asker late = {.leash.deadline_mono_ns = kiln_clock_mono_ns() + 20 * KILN_NS_PER_MS};

    kiln_pool_init(&pool, "pool", 100, NULL);
    CHECK_OK(kiln_leash_reserve(&holder, 80, NULL));
    start(&left, &pool, 60);
    start(&late, &pool, 60);
    atomic_store(&gone, true);
    pthread_join(left.thread, NULL);
    pthread_join(late.thread, NULL);
    CHECK_EQ(left.result, -ECANCELED);
    CHECK_EQ(late.result, -ETIMEDOUT);
    CHECK_EQ(pool.used, 80);
    kiln_leash_give(&holder, 80);
}

TEST(leash, a_small_question_does_not_overtake_a_large_one_that_waits)
{
    struct kiln_pool pool;
    struct kiln_leash holder = {.pool = &pool};
    struct kiln_leash late = {.pool = &pool};
    struct asker large = {0};

    kiln_pool_init(&pool, "pool", 100, NULL);
    CHECK_OK(kiln_leash_reserve(&holder, 50, NULL));
    start(&large, &pool, 80);
    /* From the moment that the large one stands in line, a small one does not fit any more. */
    for (;;) {
        late.deadline_mono_ns = kiln_clock_mono_ns() + KILN_NS_PER_MS;
        if (kiln_leash_reserve(&late, 10, NULL) == -ETIMEDOUT)
            break;
        kiln_leash_give(&late, 10);
    }
    kiln_leash_give(&holder, 50);
    pthread_join(large.thread, NULL);
    CHECK_OK(large.result);
}

TEST(leash, reserves_more_where_those_before_were_mistaken)
{
    const size_t mib = (size_t)1 << 20;
    struct kiln_pool pool;
    struct kiln_leash first = {.pool = &pool}, next = {.pool = &pool};
    struct kiln_leash exact = {.pool = &pool, .exact = true};

    kiln_pool_init(&pool, "pool", 100 * mib, NULL);
    CHECK_OK(kiln_leash_reserve(&first, 10 * mib, NULL));
    CHECK_EQ(pool.used, 10 * mib);
    CHECK_OK(kiln_leash_take(&first, 5 * mib));
    kiln_leash_give(&first, 15 * mib);
    kiln_leash_spend(&first);
    CHECK_EQ(pool.used, 0);
    CHECK_OK(kiln_leash_reserve(&next, 20 * mib, NULL));
    CHECK(pool.used > 29 * mib && pool.used <= 30 * mib);
    CHECK_EQ(next.memory, 20 * mib);
    kiln_leash_give(&next, 20 * mib);
    kiln_leash_spend(&next);
    CHECK_EQ(pool.leashed, 0);
    CHECK_OK(kiln_leash_reserve(&exact, 20 * mib, NULL));
    CHECK_EQ(pool.used, 20 * mib);
    kiln_leash_give(&exact, 20 * mib);
    CHECK_EQ(pool.used, 0);
}

static void drop_all(void *context, size_t bytes)
{
    struct kiln_pool *pool = context;

    (void)bytes;
    kiln_pool_give(pool, 60);
}

TEST(leash, a_cache_gives_way_only_where_no_question_could_end_instead)
{
    struct kiln_pool pool;
    struct kiln_leash runs = {.pool = &pool};
    struct kiln_leash late = {.pool = &pool,
                              .deadline_mono_ns = kiln_clock_mono_ns() + 20 * KILN_NS_PER_MS};

    kiln_pool_init(&pool, "pool", 100, NULL);
    CHECK_OK(kiln_pool_take(&pool, 60)); /* the cache's */
    kiln_pool_on_short(&pool, drop_all, &pool);
    CHECK_OK(kiln_leash_reserve(&runs, 30, NULL));
    CHECK_EQ(kiln_leash_reserve(&late, 30, NULL), -ETIMEDOUT);
    CHECK_EQ(pool.used, 90);
    kiln_leash_give(&runs, 30);
    late.deadline_mono_ns = 0;
    CHECK_OK(kiln_leash_reserve(&late, 50, NULL));
    CHECK_EQ(pool.used, 50);
}

enum { CROWD = 8, ROUNDS = 200 };

struct crowd {
    struct kiln_pool *pool;
    _Atomic size_t *held;
    size_t most;
    uint32_t seed;
};

static void *crowd_main(void *arg)
{
    struct crowd *c = arg;

    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct kiln_leash leash = {.pool = c->pool};
        size_t bytes = 1 + (c->seed = c->seed * 1103515245 + 12345) / 65536 % 100;
        size_t held;

        if (kiln_leash_reserve(&leash, bytes, NULL) < 0)
            return arg;
        held = atomic_fetch_add(c->held, bytes) + bytes;
        c->most = held > c->most ? held : c->most;
        sched_yield();
        atomic_fetch_sub(c->held, bytes);
        kiln_leash_give(&leash, bytes);
    }
    return NULL;
}

TEST(leash, a_crowd_takes_turns_and_never_more_than_there_is)
{
    struct kiln_pool pool;
    _Atomic size_t held = 0;
    pthread_t threads[CROWD];
    struct crowd crowd[CROWD];

    kiln_pool_init(&pool, "pool", 100, NULL);
    for (uint32_t i = 0; i < CROWD; i++) {
        crowd[i] = (struct crowd){&pool, &held, 0, i};
        CHECK_OK(pthread_create(&threads[i], NULL, crowd_main, &crowd[i]));
    }
    for (uint32_t i = 0; i < CROWD; i++) {
        void *failed;

        pthread_join(threads[i], &failed);
        CHECK(!failed);
        CHECK(crowd[i].most <= 100);
    }
    CHECK_EQ(pool.used, 0);
    CHECK_EQ(pool.refused, 0);
}

TEST(leash, takes_draw_on_what_was_saved_and_say_when_others_have_it)
{
    struct kiln_pool pool;
    struct kiln_leash leash = {.pool = &pool}, other = {.pool = &pool};

    kiln_pool_init(&pool, "pool", 100, NULL);
    CHECK_OK(kiln_leash_save(&leash, 60, NULL));
    CHECK_EQ(leash.memory, 0);
    CHECK_OK(kiln_leash_take(&other, 40));
    CHECK_EQ(kiln_leash_take(&other, 1), KILN_E_LIMIT);
    CHECK(other.was_short);
    CHECK_OK(kiln_leash_take(&leash, 50));
    CHECK_EQ(kiln_leash_take(&leash, 11), KILN_E_LIMIT);
    CHECK_EQ(leash.memory_peak, 50);
    kiln_leash_spend(&leash);
    CHECK_OK(kiln_leash_take(&other, 10));
    kiln_leash_give(&other, 50);
    kiln_leash_give(&leash, 50);
    CHECK_OK(kiln_leash_take(&other, 100));
    kiln_leash_give(&other, 100);
}
