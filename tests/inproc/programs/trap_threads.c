/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that come and go: by return, pthread_exit, cancellation, detached; with destructors that
 * allocate after everybody else's ran, with the smallest stacks there are.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 400 };

static pthread_key_t key;
static atomic_int destroyed, detached;

static void churn(int n)
{
    for (int i = 0; i < n; i++) {
        char *text = malloc((size_t)(i % 500) + 1);

        text[0] = (char)i;
        text = realloc(text, 2000);
        free(text);
    }
}

/* Runs up to PTHREAD_DESTRUCTOR_ITERATIONS times: sets itself again, and allocates each time. */
static void destroy(void *value)
{
    int *left = value;

    churn(20);
    if (--*left > 0)
        pthread_setspecific(key, left);
    else {
        free(left);
        atomic_fetch_add(&destroyed, 1);
    }
}

static void *work(void *arg)
{
    int *left = malloc(sizeof(*left));

    *left = PTHREAD_DESTRUCTOR_ITERATIONS;
    pthread_setspecific(key, left);
    churn(50);
    if (arg)
        pthread_exit(arg);
    return &key;
}

static void *endless(void *arg)
{
    for (;;) {
        churn(10);
        pthread_testcancel();
    }
    return arg;
}

static void *count(void *arg)
{
    churn(10);
    atomic_fetch_add(&detached, 1);
    return arg;
}

static int joined(void)
{
    int good = 0;

    for (int i = 0; i < ROUNDS; i++) {
        pthread_t thread;
        void *result = NULL;

        pthread_create(&thread, NULL, work, i % 2 ? &good : NULL);
        pthread_join(thread, &result);
        good += result == (i % 2 ? (void *)&good : (void *)&key);
    }
    return good;
}

static int cancelled(void)
{
    int good = 0;

    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        void *result = NULL;

        pthread_create(&thread, NULL, endless, NULL);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        good += result == PTHREAD_CANCELED;
    }
    return good;
}

static int small(void)
{
    pthread_attr_t attr;
    int good = 0;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN);
    for (int i = 0; i < 50; i++) {
        pthread_t thread;

        good += pthread_create(&thread, &attr, work, NULL) == 0 && pthread_join(thread, NULL) == 0;
    }
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < 50; i++) {
        pthread_t thread;

        while (pthread_create(&thread, &attr, count, NULL) == EAGAIN)
            usleep(1000);
    }
    while (atomic_load(&detached) < 50)
        usleep(1000);
    return good;
}

int main(void)
{
    pthread_key_create(&key, destroy);
    printf("joined %d of %d\n", joined(), ROUNDS);
    printf("cancelled %d of 20\n", cancelled());
    printf("small %d of 50\n", small());
    printf("destroyed %d\n", atomic_load(&destroyed));
    printf("detached %d\n", atomic_load(&detached));
    return 0;
}
