/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything at once: mutexes of all kinds, locks of readers and writers, conditions, semaphores,
 * spin locks, threads that come and go and are cancelled, handlers of signals, forks.
 *
 *   lock_storm TURNS [SEED]
 *
 * What is counted under each lock must come out; prints "all counted", or what did not.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS = 6, KINDS = 4 };

static pthread_mutex_t mutexes[KINDS];
static uint64_t under_mutex[KINDS];
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static uint64_t under_rwlock[2]; /* always equal to readers */
static pthread_spinlock_t spinlock;
static uint64_t under_spin;
static sem_t tickets;
static _Atomic int inside_sem;
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_changed = PTHREAD_COND_INITIALIZER;
static uint64_t queued, taken;
static _Atomic uint64_t added[KINDS + 3];
static _Atomic unsigned wrong, cancelled, children;
static unsigned turns;

static void expect(bool holds)
{
    if (!holds)
        atomic_fetch_add(&wrong, 1);
}

static struct timespec soon(long ns)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += ns;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

static void with_mutex(unsigned *seed)
{
    unsigned kind = rand_r(seed) % KINDS;
    struct timespec until = soon(100000);
    int answer = rand_r(seed) % 4 ? pthread_mutex_lock(&mutexes[kind])
                                  : pthread_mutex_timedlock(&mutexes[kind], &until);

    if (answer == ETIMEDOUT)
        return;
    expect(answer == 0);
    if (kind == 1 && rand_r(seed) % 2) {
        expect(pthread_mutex_lock(&mutexes[kind]) == 0);
        expect(pthread_mutex_unlock(&mutexes[kind]) == 0);
    }
    under_mutex[kind]++;
    expect(pthread_mutex_unlock(&mutexes[kind]) == 0);
    atomic_fetch_add(&added[kind], 1);
}

static void with_rwlock(unsigned *seed)
{
    if (rand_r(seed) % 3) {
        expect(pthread_rwlock_rdlock(&rwlock) == 0);
        expect(under_rwlock[0] == under_rwlock[1]);
    } else {
        expect(pthread_rwlock_wrlock(&rwlock) == 0);
        under_rwlock[0]++;
        under_rwlock[1]++;
        atomic_fetch_add(&added[KINDS], 1);
    }
    expect(pthread_rwlock_unlock(&rwlock) == 0);
}

static void with_spin(void)
{
    expect(pthread_spin_lock(&spinlock) == 0);
    under_spin++;
    expect(pthread_spin_unlock(&spinlock) == 0);
    atomic_fetch_add(&added[KINDS + 1], 1);
}

static void with_sem(unsigned *seed)
{
    struct timespec until = soon(50000);
    int answer = rand_r(seed) % 2 ? sem_wait(&tickets) : sem_timedwait(&tickets, &until);

    if (answer < 0) {
        expect(errno == ETIMEDOUT || errno == EINTR);
        return;
    }
    expect(atomic_fetch_add(&inside_sem, 1) < 2);
    atomic_fetch_sub(&inside_sem, 1);
    expect(sem_post(&tickets) == 0);
}

static void unlock_queue(void *arg)
{
    (void)arg;
    atomic_fetch_add(&cancelled, 1);
    expect(pthread_mutex_unlock(&queue_lock) == 0);
}

/* Is cancelled in the end, while it waits. */
static void *take_from_queue(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&queue_lock);
    pthread_cleanup_push(unlock_queue, NULL);
    for (;;) {
        while (taken == queued)
            pthread_cond_wait(&queue_changed, &queue_lock);
        taken++;
    }
    pthread_cleanup_pop(1);
    return NULL;
}

static void with_queue(void)
{
    pthread_mutex_lock(&queue_lock);
    queued++;
    pthread_cond_signal(&queue_changed);
    pthread_mutex_unlock(&queue_lock);
    atomic_fetch_add(&added[KINDS + 2], 1);
}

static void *be_short(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;

    with_mutex(&seed);
    return arg;
}

static void with_thread(unsigned *seed)
{
    void *arg = (void *)(uintptr_t)(rand_r(seed) | 1u), *ret = NULL;
    pthread_t thread;

    if (pthread_create(&thread, NULL, be_short, arg) != 0)
        return;
    if (rand_r(seed) % 2)
        pthread_detach(thread);
    else
        expect(pthread_join(thread, &ret) == 0 && ret == arg);
}

/* The child has locks of its own to contend for. */
static void with_child(void)
{
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    pid_t child = fork();
    int status = -1;

    if (child == 0) {
        for (int i = 0; i < 100; i++) {
            pthread_mutex_lock(&own);
            pthread_mutex_unlock(&own);
        }
        _exit(0);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    expect(status == 0);
    atomic_fetch_add(&children, 1);
}

static void *work(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;

    for (unsigned i = 0; i < turns; i++) {
        switch (rand_r(&seed) % 16) {
        case 0:
            with_queue();
            break;
        case 1:
        case 2:
            with_sem(&seed);
            break;
        case 3:
        case 4:
            with_spin();
            break;
        case 5:
        case 6:
        case 7:
            with_rwlock(&seed);
            break;
        case 8:
            if (i % 64 == 0)
                with_thread(&seed);
            break;
        default:
            with_mutex(&seed);
        }
        if (i % 4096 == 4095 && (uintptr_t)arg % WORKERS == 0)
            with_child();
    }
    return NULL;
}

static pthread_mutex_t of_handler[64];
static _Atomic unsigned next_of_handler;

/* Each run of it has a lock that nobody else holds just then. */
static void handle(int sig)
{
    pthread_mutex_t *own = &of_handler[atomic_fetch_add(&next_of_handler, 1) % 64];
    int kept = errno;

    (void)sig;
    if (pthread_mutex_trylock(own) == 0)
        pthread_mutex_unlock(own);
    errno = kept;
}

static void begin(void)
{
    static const int types[KINDS] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
                                     PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};

    for (unsigned i = 0; i < KINDS; i++) {
        pthread_mutexattr_t attributes;

        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_settype(&attributes, types[i]);
        if (i == 2)
            pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
        pthread_mutex_init(&mutexes[i], &attributes);
    }
    for (unsigned i = 0; i < 64; i++)
        pthread_mutex_init(&of_handler[i], NULL);
    pthread_spin_init(&spinlock, 0);
    sem_init(&tickets, 0, 2);
    sigaction(SIGUSR1, &action, NULL);
}

static bool is_counted(void)
{
    bool good = under_rwlock[0] == added[KINDS] && under_spin == added[KINDS + 1] &&
                queued == added[KINDS + 2] && taken <= queued;

    for (unsigned i = 0; i < KINDS; i++)
        good = good && under_mutex[i] == added[i];
    return good;
}

int main(int argc, char **argv)
{
    pthread_t workers[WORKERS], takers[2];
    unsigned seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;

    turns = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 10000;
    begin();
    for (unsigned i = 0; i < 2; i++)
        pthread_create(&takers[i], NULL, take_from_queue, NULL);
    for (unsigned i = 0; i < WORKERS; i++)
        pthread_create(&workers[i], NULL, work, (void *)(uintptr_t)(seed * WORKERS + i));
    for (unsigned i = 0; i < 200; i++) {
        pthread_kill(takers[i % 2], SIGUSR1);
        sched_yield();
    }
    for (unsigned i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    for (unsigned i = 0; i < 2; i++) {
        void *ret = NULL;

        pthread_cancel(takers[i]);
        pthread_join(takers[i], &ret);
        expect(ret == PTHREAD_CANCELED);
    }
    /* Detached ones may still be at it. */
    for (unsigned i = 0; i < 1000 && !is_counted(); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    printf("%s\n", is_counted() && wrong == 0 && cancelled == 2 ? "all counted" : "wrong");
    return !is_counted() || wrong || cancelled != 2;
}
