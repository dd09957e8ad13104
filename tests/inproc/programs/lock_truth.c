/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits whose lengths are known: one thread holds something for some time, another waits for it and
 * looks at the clock before and after.
 *
 *   lock_truth mutex|c11|read|write|semaphore|condition|c11_condition ROUNDS RATE_NS SEED
 *
 * prints what was waited for, and the variance that sampling with this rate has:
 *
 *   {"waits": N, "waited_ns": T, "held_ns": what of it the lock was held for, "giving_ns": how long
 *    it took to give it back, which on a busy machine may be long, and is held in part,
 *    "preempted_ns": what of T is of waits in which the thread lost its processor, perhaps before
 *    it came to wait, "preempted": how many those are,
 *    "variance_ns": of T's estimate, "variance_waits": of N's}
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <threads.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static mtx_t mtx;
static cnd_t cnd;
static bool given;
static sem_t sem;

static atomic_uint held, waited; /* rounds */
static _Atomic uint64_t released_ns;
static uint64_t giving_ns; /* the holder's */
static unsigned rounds, seed;

static struct truth {
    uint64_t waits, waited_ns, held_ns, preempted, preempted_ns;
    double variance_ns, variance_waits, rate_ns;
} truth;
static uint64_t since_ns;
static long preemptions;

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static long count_preemptions(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}

static void begin_wait(void)
{
    preemptions = count_preemptions();
    since_ns = now_ns();
}

static void end_wait(void)
{
    uint64_t until_ns = now_ns();
    double ns = (double)(until_ns - since_ns);

    truth.waits++;
    truth.waited_ns += until_ns - since_ns;
    if (count_preemptions() != preemptions) {
        truth.preempted++;
        truth.preempted_ns += until_ns - since_ns;
    }
    truth.held_ns += released_ns > since_ns ? released_ns - since_ns : 0;
    if (ns < truth.rate_ns) {
        truth.variance_ns += ns * (truth.rate_ns - ns);
        truth.variance_waits += truth.rate_ns / ns - 1;
    }
}

/* ---- the kinds: how to hold, to give back, and to wait unless it can be had at once ---- */

static void hold_mutex(void)
{
    pthread_mutex_lock(&mutex);
}

static void give_mutex(void)
{
    pthread_mutex_unlock(&mutex);
}

static void wait_mutex(void)
{
    if (pthread_mutex_trylock(&mutex) != 0) {
        begin_wait();
        pthread_mutex_lock(&mutex);
        end_wait();
    }
    pthread_mutex_unlock(&mutex);
}

static void hold_c11(void)
{
    mtx_lock(&mtx);
}

static void give_c11(void)
{
    mtx_unlock(&mtx);
}

static void wait_c11(void)
{
    if (mtx_trylock(&mtx) != thrd_success) {
        begin_wait();
        mtx_lock(&mtx);
        end_wait();
    }
    mtx_unlock(&mtx);
}

static void hold_rwlock(void)
{
    pthread_rwlock_wrlock(&rwlock);
}

static void give_rwlock(void)
{
    pthread_rwlock_unlock(&rwlock);
}

static void wait_read(void)
{
    if (pthread_rwlock_tryrdlock(&rwlock) != 0) {
        begin_wait();
        pthread_rwlock_rdlock(&rwlock);
        end_wait();
    }
    pthread_rwlock_unlock(&rwlock);
}

static void wait_write(void)
{
    if (pthread_rwlock_trywrlock(&rwlock) != 0) {
        begin_wait();
        pthread_rwlock_wrlock(&rwlock);
        end_wait();
    }
    pthread_rwlock_unlock(&rwlock);
}

static void hold_nothing(void)
{
}

static void give_semaphore(void)
{
    sem_post(&sem);
}

static void wait_semaphore(void)
{
    if (sem_trywait(&sem) == 0)
        return;
    begin_wait();
    sem_wait(&sem);
    end_wait();
}

static void give_condition(void)
{
    pthread_mutex_lock(&mutex);
    given = true;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

static void wait_condition(void)
{
    pthread_mutex_lock(&mutex);
    while (!given) {
        begin_wait();
        pthread_cond_wait(&changed, &mutex);
        end_wait();
    }
    given = false;
    pthread_mutex_unlock(&mutex);
}

static void give_c11_condition(void)
{
    mtx_lock(&mtx);
    given = true;
    cnd_signal(&cnd);
    mtx_unlock(&mtx);
}

static void wait_c11_condition(void)
{
    mtx_lock(&mtx);
    while (!given) {
        begin_wait();
        cnd_wait(&cnd, &mtx);
        end_wait();
    }
    given = false;
    mtx_unlock(&mtx);
}

static const struct kind {
    const char *name;
    void (*hold)(void), (*give)(void), (*wait)(void);
} kinds[] = {
    {"mutex", hold_mutex, give_mutex, wait_mutex},
    {"c11", hold_c11, give_c11, wait_c11},
    {"read", hold_rwlock, give_rwlock, wait_read},
    {"write", hold_rwlock, give_rwlock, wait_write},
    {"semaphore", hold_nothing, give_semaphore, wait_semaphore},
    {"condition", hold_nothing, give_condition, wait_condition},
    {"c11_condition", hold_nothing, give_c11_condition, wait_c11_condition},
};
static const struct kind *kind;

/* ---- the two threads ---- */

/* Mostly short, some longer than any rate: 20 us to 2 ms. */
static void pause_a_while(void)
{
    struct timespec t = {.tv_nsec = 20000L << (rand_r(&seed) % 7)};

    t.tv_nsec += rand_r(&seed) % t.tv_nsec;
    nanosleep(&t, NULL);
}

static void *hold_rounds(void *arg)
{
    (void)arg;
    for (unsigned round = 1; round <= rounds; round++) {
        kind->hold();
        atomic_store(&held, round);
        pause_a_while();
        atomic_store(&released_ns, now_ns());
        kind->give();
        giving_ns += now_ns() - released_ns;
        while (atomic_load(&waited) < round)
            sched_yield();
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t holder;

    for (unsigned i = 0; argc == 5 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(argv[1], kinds[i].name) == 0)
            kind = &kinds[i];
    }
    if (!kind)
        return 2;
    rounds = (unsigned)strtoul(argv[2], NULL, 10);
    truth.rate_ns = strtod(argv[3], NULL);
    seed = (unsigned)strtoul(argv[4], NULL, 10);
    sem_init(&sem, 0, 0);
    mtx_init(&mtx, mtx_plain);
    cnd_init(&cnd);
    pthread_create(&holder, NULL, hold_rounds, NULL);
    for (unsigned round = 1; round <= rounds; round++) {
        while (atomic_load(&held) < round)
            continue;
        kind->wait();
        atomic_store(&waited, round);
    }
    pthread_join(holder, NULL);
    printf(
        "{\"waits\": %lu, \"waited_ns\": %lu, \"held_ns\": %lu, \"giving_ns\": %lu, "
        "\"preempted\": %lu, \"preempted_ns\": %lu, \"variance_ns\": %g, \"variance_waits\": %g}\n",
        truth.waits, truth.waited_ns, truth.held_ns, giving_ns, truth.preempted, truth.preempted_ns,
        truth.variance_ns, truth.variance_waits);
    return 0;
}
