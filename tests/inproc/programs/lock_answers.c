/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What functions of threads answer, in cases where a careless hook would change it: one line each.
 * The same must come out whatever is preloaded.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void say(const char *what, int answer)
{
    printf("%s: %s\n", what, answer == 0 ? "0" : answer < 0 ? "-1" : strerrorname_np(answer));
}

static struct timespec at(clockid_t clock, long ms)
{
    struct timespec t;

    clock_gettime(clock, &t);
    t.tv_nsec += ms * 1000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

static const struct timespec wrong = {.tv_nsec = -1};

static void *run_in_thread(void *(*run)(void *), void *arg)
{
    pthread_t thread;
    void *ret = NULL;

    pthread_create(&thread, NULL, run, arg);
    pthread_join(thread, &ret);
    return ret;
}

/* ---- mutexes ---- */

static pthread_mutex_t make_mutex(int type, int robust, int protocol)
{
    pthread_mutex_t lock;
    pthread_mutexattr_t attributes;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, type);
    pthread_mutexattr_setrobust(&attributes, robust);
    pthread_mutexattr_setprotocol(&attributes, protocol);
    pthread_mutex_init(&lock, &attributes);
    return lock;
}

static void *try_from_elsewhere(void *arg)
{
    pthread_mutex_t *lock = arg;
    struct timespec soon = at(CLOCK_REALTIME, 5), soon_too = at(CLOCK_MONOTONIC, 5);

    say("  trylock elsewhere", pthread_mutex_trylock(lock));
    say("  timedlock elsewhere", pthread_mutex_timedlock(lock, &soon));
    say("  clocklock elsewhere", pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, &soon_too));
    say("  timedlock until nonsense", pthread_mutex_timedlock(lock, &wrong));
    say("  clocklock by a clock that is none", pthread_mutex_clocklock(lock, 77, &soon));
    say("  unlock elsewhere", pthread_mutex_unlock(lock));
    return NULL;
}

static void *die_with_it(void *lock)
{
    pthread_mutex_lock(lock);
    return NULL;
}

static void mutex_of(const char *name, int type, int protocol)
{
    pthread_mutex_t lock = make_mutex(type, PTHREAD_MUTEX_STALLED, protocol);
    struct timespec past = at(CLOCK_REALTIME, -5);

    printf("mutex, %s\n", name);
    say("  lock", pthread_mutex_lock(&lock));
    if (type != PTHREAD_MUTEX_NORMAL) {
        say("  lock again", pthread_mutex_lock(&lock));
        say("  timedlock again", pthread_mutex_timedlock(&lock, &past));
        run_in_thread(try_from_elsewhere, &lock);
    }
    for (int i = 0; i < (type == PTHREAD_MUTEX_NORMAL ? 1 : 4); i++)
        say("  unlock", pthread_mutex_unlock(&lock));
    say("  timedlock of a free one, in the past", pthread_mutex_timedlock(&lock, &past));
    say("  unlock", pthread_mutex_unlock(&lock));
    say("  destroy", pthread_mutex_destroy(&lock));
}

static void *lock_elsewhere(void *arg)
{
    pthread_mutex_t *lock = arg;
    int answer = pthread_mutex_lock(lock);

    if (answer == EOWNERDEAD)
        pthread_mutex_consistent(lock);
    pthread_mutex_unlock(lock);
    return (void *)(intptr_t)answer;
}

/* The other one waits by then, most likely; what comes out is the same if not. */
static pthread_t waiter_for(pthread_mutex_t *lock)
{
    pthread_t waiter;

    pthread_create(&waiter, NULL, lock_elsewhere, lock);
    usleep(2000);
    return waiter;
}

static void say_of(const char *what, pthread_t waiter)
{
    void *answer;

    pthread_join(waiter, &answer);
    say(what, (int)(intptr_t)answer);
}

static void waited_mutex_of(const char *name, int type, int protocol)
{
    pthread_mutex_t lock = make_mutex(type, PTHREAD_MUTEX_STALLED, protocol);
    bool again = type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK;
    pthread_t waiter;

    printf("mutex that is waited for, %s\n", name);
    pthread_mutex_lock(&lock);
    waiter = waiter_for(&lock);
    if (again)
        say("  lock again", pthread_mutex_lock(&lock));
    say("  unlock", pthread_mutex_unlock(&lock));
    if (type == PTHREAD_MUTEX_RECURSIVE)
        say("  unlock", pthread_mutex_unlock(&lock));
    say("  lock, maybe before the other", pthread_mutex_lock(&lock));
    say("  unlock", pthread_mutex_unlock(&lock));
    say_of("  lock elsewhere", waiter);
    say("  destroy", pthread_mutex_destroy(&lock));
}

static void *die_while_it_is_waited_for(void *lock)
{
    pthread_t *waiter = malloc(sizeof(*waiter));

    pthread_mutex_lock(lock);
    *waiter = waiter_for(lock);
    return waiter;
}

static void waited_robust_of(const char *name, int protocol)
{
    pthread_mutex_t lock = make_mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, protocol);
    pthread_t *waiter;

    printf("mutex that is waited for, robust, %s\n", name);
    waiter = run_in_thread(die_while_it_is_waited_for, &lock);
    say_of("  lock elsewhere, of a dead owner's", *waiter);
    free(waiter);
    say("  lock", pthread_mutex_lock(&lock));
    say("  unlock", pthread_mutex_unlock(&lock));
}

static void robust_of(const char *name, int type, int protocol)
{
    pthread_mutex_t lock = make_mutex(type, PTHREAD_MUTEX_ROBUST, protocol);

    printf("mutex, robust, %s\n", name);
    run_in_thread(die_with_it, &lock);
    say("  lock of a dead owner's", pthread_mutex_lock(&lock));
    say("  consistent", pthread_mutex_consistent(&lock));
    say("  unlock", pthread_mutex_unlock(&lock));
    say("  lock", pthread_mutex_lock(&lock));
    say("  unlock", pthread_mutex_unlock(&lock));
    run_in_thread(die_with_it, &lock);
    say("  lock of a dead owner's", pthread_mutex_lock(&lock));
    say("  unlock without repair", pthread_mutex_unlock(&lock));
    say("  lock of a lost one", pthread_mutex_lock(&lock));
    say("  trylock of a lost one", pthread_mutex_trylock(&lock));
}

static void mutex_of_two_processes(void)
{
    struct shared {
        pthread_mutex_t lock;
        int n;
    } *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t attributes;
    pid_t child;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->lock, &attributes);
    child = fork();
    for (int i = 0; i < 5000; i++) {
        pthread_mutex_lock(&shared->lock);
        shared->n++;
        pthread_mutex_unlock(&shared->lock);
    }
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    printf("mutex of two processes: %d\n", shared->n);
}

/* ---- locks of readers and writers ---- */

static void *try_both(void *arg)
{
    pthread_rwlock_t *lock = arg;
    struct timespec soon = at(CLOCK_REALTIME, 5), soon_too = at(CLOCK_MONOTONIC, 5);
    int answer = pthread_rwlock_timedrdlock(lock, &soon);

    say("  timedrdlock elsewhere", answer);
    if (answer == 0)
        pthread_rwlock_unlock(lock);
    answer = pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, &soon_too);
    say("  clockrdlock elsewhere", answer);
    if (answer == 0)
        pthread_rwlock_unlock(lock);
    soon = at(CLOCK_REALTIME, 5);
    soon_too = at(CLOCK_MONOTONIC, 5);
    say("  timedwrlock elsewhere", pthread_rwlock_timedwrlock(lock, &soon));
    say("  clockwrlock elsewhere", pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &soon_too));
    say("  timedwrlock until nonsense", pthread_rwlock_timedwrlock(lock, &wrong));
    return NULL;
}

static void rwlock_of(const char *name, int kind)
{
    pthread_rwlock_t lock;
    pthread_rwlockattr_t attributes;

    printf("rwlock, %s\n", name);
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, kind);
    pthread_rwlock_init(&lock, &attributes);
    say("  rdlock", pthread_rwlock_rdlock(&lock));
    say("  rdlock again", pthread_rwlock_rdlock(&lock));
    run_in_thread(try_both, &lock);
    say("  unlock", pthread_rwlock_unlock(&lock));
    say("  unlock", pthread_rwlock_unlock(&lock));
    say("  wrlock", pthread_rwlock_wrlock(&lock));
    say("  wrlock again", pthread_rwlock_wrlock(&lock));
    say("  rdlock of the writer", pthread_rwlock_rdlock(&lock));
    run_in_thread(try_both, &lock);
    say("  unlock", pthread_rwlock_unlock(&lock));
    say("  timedrdlock of a free one until nonsense", pthread_rwlock_timedrdlock(&lock, &wrong));
    say("  destroy", pthread_rwlock_destroy(&lock));
}

/* ---- conditions ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool waits, goes_on;

static void unlock_and_say(void *which)
{
    printf("  cleaned up, %s\n", (const char *)which);
    pthread_mutex_unlock(&lock);
}

static void *wait_for_ever(void *which)
{
    struct timespec late = at(CLOCK_REALTIME, 3600000);

    pthread_mutex_lock(&lock);
    pthread_cleanup_push(unlock_and_say, which);
    waits = true;
    while (!goes_on) {
        if (strcmp(which, "wait") == 0)
            pthread_cond_wait(&cond, &lock);
        else
            pthread_cond_timedwait(&cond, &lock, &late);
    }
    pthread_cleanup_pop(1);
    return "went on";
}

static pthread_t waiting_thread(const char *which)
{
    pthread_t thread;

    waits = goes_on = false;
    pthread_create(&thread, NULL, wait_for_ever, (void *)which);
    for (bool is = false; !is;) {
        pthread_mutex_lock(&lock);
        is = waits;
        pthread_mutex_unlock(&lock);
    }
    return thread;
}

static void end_of(const char *which, pthread_t thread)
{
    void *ret = NULL;

    pthread_join(thread, &ret);
    printf("  %s: %s\n", which, ret == PTHREAD_CANCELED ? "cancelled" : (const char *)ret);
}

static void conditions(void)
{
    static const char *const ways[] = {"wait", "timedwait"};
    pthread_mutex_t checked =
        make_mutex(PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);
    struct timespec soon = at(CLOCK_REALTIME, 5), soon_too = at(CLOCK_MONOTONIC, 5);

    printf("conditions\n");
    for (unsigned i = 0; i < 2; i++) {
        pthread_t thread = waiting_thread(ways[i]);

        pthread_cancel(thread);
        end_of(ways[i], thread);
        thread = waiting_thread(ways[i]);
        pthread_mutex_lock(&lock);
        goes_on = true;
        pthread_cond_broadcast(&cond);
        pthread_mutex_unlock(&lock);
        end_of(ways[i], thread);
    }
    pthread_mutex_lock(&lock);
    say("  timedwait", pthread_cond_timedwait(&cond, &lock, &soon));
    say("  clockwait", pthread_cond_clockwait(&cond, &lock, CLOCK_MONOTONIC, &soon_too));
    say("  timedwait until nonsense", pthread_cond_timedwait(&cond, &lock, &wrong));
    pthread_mutex_unlock(&lock);
    say("  wait without the mutex", pthread_cond_wait(&cond, &checked));
}

/* ---- semaphores ---- */

static sem_t sem;
static atomic_bool is_over;

static void nothing(int sig)
{
    (void)sig;
}

static void *wait_and_tell(void *arg)
{
    (void)arg;
    errno = 0;
    printf("  sem_wait with a signal: %d", sem_wait(&sem));
    printf(" %s\n", strerrorname_np(errno));
    atomic_store(&is_over, true);
    return NULL;
}

static void *cancel_oneself(void *with_a_value)
{
    if (with_a_value)
        sem_post(&sem);
    pthread_cancel(pthread_self());
    sem_wait(&sem);
    return "went on";
}

static void semaphores(void)
{
    struct sigaction action = {.sa_handler = nothing};
    struct timespec soon = at(CLOCK_REALTIME, 5), soon_too = at(CLOCK_MONOTONIC, 5);
    pthread_t thread;

    printf("semaphores\n");
    sem_init(&sem, 0, 1);
    say("  sem_wait", sem_wait(&sem));
    say("  sem_timedwait", sem_timedwait(&sem, &soon));
    say("  its errno", errno);
    say("  sem_clockwait", sem_clockwait(&sem, CLOCK_MONOTONIC, &soon_too));
    say("  its errno", errno);
    say("  sem_timedwait until nonsense", sem_timedwait(&sem, &wrong));
    say("  its errno", errno);
    sigaction(SIGUSR1, &action, NULL);
    pthread_create(&thread, NULL, wait_and_tell, NULL);
    while (!atomic_load(&is_over))
        pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
    for (uintptr_t i = 0; i < 2; i++) {
        pthread_create(&thread, NULL, cancel_oneself, (void *)i);
        end_of(i ? "sem_wait of a free one" : "sem_wait", thread);
    }
}

/* ---- threads ---- */

static void *leave(void *arg)
{
    pthread_exit(arg);
}

static void *join_other(void *other)
{
    pthread_join(*(pthread_t *)other, NULL);
    return "went on";
}

static void *wait_for_lock(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return "went on";
}

static void *where(void *arg)
{
    pthread_attr_t attributes;
    void *low;
    size_t size;
    bool in;

    (void)arg;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &low, &size);
    in = (char *)&low > (char *)low && (char *)&low < (char *)low + size;
    pthread_attr_destroy(&attributes);
    return in ? "in its stack" : "elsewhere";
}

static pthread_key_t key;

static void tell_value(void *value)
{
    printf("  destructor: %s\n", (const char *)value);
}

static void *have_value(void *arg)
{
    pthread_setspecific(key, arg);
    return "had one";
}

static void threads(void)
{
    pthread_attr_t small;
    pthread_t thread, other;
    struct timespec soon = at(CLOCK_REALTIME, 5), soon_too = at(CLOCK_MONOTONIC, 5);

    printf("threads\n");
    printf("  %s\n", (char *)run_in_thread(leave, "left early"));
    say("  join of oneself", pthread_join(pthread_self(), NULL));
    pthread_mutex_lock(&lock);
    pthread_create(&thread, NULL, wait_for_lock, NULL);
    say("  timedjoin", pthread_timedjoin_np(thread, NULL, &soon));
    say("  clockjoin", pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &soon_too));
    pthread_create(&other, NULL, join_other, &thread);
    pthread_cancel(other);
    end_of("join", other);
    pthread_mutex_unlock(&lock);
    end_of("thread that was not joined", thread);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
    say("  create with a small stack", pthread_create(&thread, &small, where, NULL));
    end_of("its stack", thread);
    pthread_key_create(&key, tell_value);
    printf("  %s\n", (char *)run_in_thread(have_value, "a value of the thread"));
    pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
    atomic_store(&is_over, false);
    pthread_mutex_lock(&lock);
    pthread_create(&thread, &small, wait_for_lock, NULL);
    say("  join of a detached one", pthread_join(thread, NULL));
    pthread_mutex_unlock(&lock);
}

/* ---- all of them ---- */

static pthread_spinlock_t spinlock;
static unsigned counted;

static void *count_with_spin(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20000; i++) {
        pthread_spin_lock(&spinlock);
        counted++;
        pthread_spin_unlock(&spinlock);
    }
    return NULL;
}

static void *keep_errno(void *arg)
{
    (void)arg;
    errno = 123;
    for (int i = 0; i < 5000; i++) {
        pthread_mutex_lock(&lock);
        counted++;
        pthread_mutex_unlock(&lock);
    }
    return errno == 123 ? "kept" : "lost";
}

static void crowds(void)
{
    pthread_t crowd[4];

    pthread_spin_init(&spinlock, 0);
    for (int i = 0; i < 4; i++)
        pthread_create(&crowd[i], NULL, count_with_spin, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(crowd[i], NULL);
    printf("spin lock: %u\n", counted);
    for (int i = 0; i < 4; i++)
        pthread_create(&crowd[i], NULL, keep_errno, NULL);
    for (int i = 0; i < 4; i++)
        end_of("errno", crowd[i]);
    printf("mutex: %u\n", counted);
}

/* A handler that takes a lock, while the thread waits for another one. */
static pthread_mutex_t of_handler = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint handled;

static void take_another(int sig)
{
    (void)sig;
    pthread_mutex_lock(&of_handler);
    atomic_fetch_add(&handled, 1);
    pthread_mutex_unlock(&of_handler);
}

static void handlers(void)
{
    struct sigaction action = {.sa_handler = take_another};
    pthread_t thread;

    sigaction(SIGUSR2, &action, NULL);
    pthread_mutex_lock(&lock);
    pthread_create(&thread, NULL, wait_for_lock, NULL);
    for (unsigned i = 0; i < 100; i++) {
        pthread_mutex_lock(&of_handler);
        pthread_kill(thread, SIGUSR2);
        pthread_mutex_unlock(&of_handler);
        while (atomic_load(&handled) <= i)
            sched_yield();
    }
    pthread_mutex_unlock(&lock);
    end_of("interrupted a hundred times", thread);
}

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    mutex_of("normal", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE);
    mutex_of("error checking", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_NONE);
    mutex_of("recursive", PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE);
    mutex_of("normal, inheriting", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT);
    mutex_of("error checking, inheriting", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_INHERIT);
    mutex_of("recursive, inheriting", PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_INHERIT);
    waited_mutex_of("normal", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE);
    waited_mutex_of("adaptive", PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_PRIO_NONE);
    waited_mutex_of("error checking", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_NONE);
    waited_mutex_of("recursive", PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE);
    waited_mutex_of("normal, inheriting", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT);
    waited_mutex_of("recursive, inheriting", PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_INHERIT);
    waited_robust_of("normal", PTHREAD_PRIO_NONE);
    waited_robust_of("inheriting", PTHREAD_PRIO_INHERIT);
    robust_of("normal", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE);
    robust_of("inheriting", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_INHERIT);
    mutex_of_two_processes();
    rwlock_of("readers first", PTHREAD_RWLOCK_PREFER_READER_NP);
    rwlock_of("writers first", PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    conditions();
    semaphores();
    threads();
    crowds();
    handlers();
    return 0;
}
