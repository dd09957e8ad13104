/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What locks cost, alone or with a library preloaded.
 *
 *   lock pair [thread [waited]]    ns of lock and unlock where nobody else wants it, and of a mutex
 *                                  of each of the two; with a second thread, which sleeps, and
 *                                  after a thread has once waited for a mutex
 *   lock convoy THREADS NS S       critical sections a second, of NS nanoseconds each, and CPU ns
 *                                  of one, where THREADS want it all the time for S seconds
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 9, PAIRS = 1000000, THREADS_MAX = 64, ROW = 256, ROW_ROUNDS = 40000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spinlock;
static sem_t sem;

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- pairs ---- */

static void mutex_pair(void)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

static void recursive_pair(void)
{
    pthread_mutex_lock(&recursive);
    pthread_mutex_unlock(&recursive);
}

static void read_pair(void)
{
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
}

static void write_pair(void)
{
    pthread_rwlock_wrlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
}

static void spin_pair(void)
{
    pthread_spin_lock(&spinlock);
    pthread_spin_unlock(&spinlock);
}

static void sem_pair(void)
{
    sem_wait(&sem);
    sem_post(&sem);
}

static double best_ns(void (*pair)(void))
{
    double best = 1e9;

    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t since = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        double ns;

        for (unsigned i = 0; i < PAIRS; i++)
            pair();
        ns = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - since) / PAIRS;
        best = ns < best ? ns : best;
    }
    return best;
}

/* Each of the two by itself: all of a row of mutexes are locked, and then unlocked. */
static void show_row(void)
{
    static pthread_mutex_t row[ROW];
    uint64_t best[2] = {UINT64_MAX, UINT64_MAX};

    for (unsigned round = 0; round < ROW_ROUNDS; round++) {
        uint64_t at[3];

        at[0] = clock_ns(CLOCK_MONOTONIC);
        for (unsigned i = 0; i < ROW; i++)
            pthread_mutex_lock(&row[i]);
        at[1] = clock_ns(CLOCK_MONOTONIC);
        for (unsigned i = 0; i < ROW; i++)
            pthread_mutex_unlock(&row[i]);
        at[2] = clock_ns(CLOCK_MONOTONIC);
        for (unsigned i = 0; i < 2; i++)
            best[i] = at[i + 1] - at[i] < best[i] ? at[i + 1] - at[i] : best[i];
    }
    printf("lock %.2f\nunlock %.2f\n", (double)best[0] / ROW, (double)best[1] / ROW);
}

static int run_pairs(void)
{
    static const struct {
        const char *name;
        void (*pair)(void);
    } kinds[] = {{"mutex", mutex_pair}, {"recursive", recursive_pair}, {"read", read_pair},
                 {"write", write_pair}, {"spin", spin_pair},           {"semaphore", sem_pair}};

    pthread_spin_init(&spinlock, 0);
    sem_init(&sem, 0, 1);
    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        printf("%s %.2f\n", kinds[i].name, best_ns(kinds[i].pair));
    pthread_mutex_lock(&recursive);
    printf("again %.2f\n", best_ns(recursive_pair));
    pthread_mutex_unlock(&recursive);
    show_row();
    return 0;
}

/* ---- a convoy ---- */

static atomic_bool over;
static uint64_t held_ns;
static uint64_t sections; /* under the mutex */

static void *queue_up(void *arg)
{
    (void)arg;
    while (!atomic_load_explicit(&over, memory_order_relaxed)) {
        uint64_t until;

        pthread_mutex_lock(&mutex);
        sections++;
        for (until = clock_ns(CLOCK_MONOTONIC) + held_ns; clock_ns(CLOCK_MONOTONIC) < until;)
            continue;
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static int run_convoy(unsigned threads, uint64_t ns, double seconds)
{
    pthread_t ids[THREADS_MAX];
    uint64_t since, cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    double took_s;

    held_ns = ns;
    since = clock_ns(CLOCK_MONOTONIC);
    for (unsigned i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, queue_up, NULL);
    nanosleep(&pause, NULL);
    atomic_store(&over, true);
    for (unsigned i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    took_s = (double)(clock_ns(CLOCK_MONOTONIC) - since) / 1e9;
    cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
    printf("%.0f %.0f\n", (double)sections / took_s, (double)cpu_ns / (double)sections);
    return 0;
}

static void *sleep_on(void *arg)
{
    for (;;)
        pause();
    return arg;
}

static void *lock_once(void *arg)
{
    mutex_pair();
    return arg;
}

static void let_one_wait(void)
{
    pthread_t other;

    pthread_mutex_lock(&mutex);
    pthread_create(&other, NULL, lock_once, NULL);
    usleep(50000);
    pthread_mutex_unlock(&mutex);
    pthread_join(other, NULL);
}

int main(int argc, char **argv)
{
    pthread_t other;
    unsigned threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 4;

    if (argc >= 2 && strcmp(argv[1], "pair") == 0) {
        if (argc > 2 && pthread_create(&other, NULL, sleep_on, NULL) != 0)
            return 1;
        if (argc > 3)
            let_one_wait();
        return run_pairs();
    }
    if (argc == 5 && strcmp(argv[1], "convoy") == 0 && threads > 0 && threads <= THREADS_MAX)
        return run_convoy(threads, strtoull(argv[3], NULL, 10), strtod(argv[4], NULL));
    fprintf(stderr, "usage: lock pair [thread [waited]] | convoy THREADS NS SECONDS\n");
    return 2;
}
