/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A convoy: one thread writes a journal with the lock in its hands, and all others, who need the
 * lock for next to nothing, queue up behind it.
 *
 *   lock_convoy SECTIONS [rwlock]
 *
 * until the journal was written SECTIONS times.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static bool with_rwlock;
static atomic_bool over;
static volatile unsigned balance;

static void lock(void)
{
    if (with_rwlock)
        pthread_rwlock_wrlock(&rwlock);
    else
        pthread_mutex_lock(&mutex);
}

static void unlock(void)
{
    if (with_rwlock)
        pthread_rwlock_unlock(&rwlock);
    else
        pthread_mutex_unlock(&mutex);
}

static void pause_ns(long ns)
{
    struct timespec t = {.tv_nsec = ns};

    nanosleep(&t, NULL);
}

__attribute__((noinline)) void write_journal(void)
{
    lock();
    pause_ns(5000000);
    unlock();
    pause_ns(100000);
}

__attribute__((noinline)) void read_balance(void)
{
    lock();
    balance++;
    unlock();
    pause_ns(100000);
}

static void *serve(void *arg)
{
    (void)arg;
    while (!atomic_load(&over))
        read_balance();
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t clerks[4];
    int sections = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 100;

    with_rwlock = argc > 2 && strcmp(argv[2], "rwlock") == 0;
    for (int i = 0; i < 4; i++)
        pthread_create(&clerks[i], NULL, serve, NULL);
    for (int i = 0; i < sections; i++)
        write_journal();
    atomic_store(&over, true);
    for (int i = 0; i < 4; i++)
        pthread_join(clerks[i], NULL);
    return 0;
}
