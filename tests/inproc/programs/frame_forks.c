/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forks, by the way that its argument names:
 *
 *   lives   a child that goes on allocating for a while, and ends as programs do
 *   storm   300 children of fork, vfork and posix_spawn while four threads allocate, lock and end
 *   daemon  the parent ends at once, the child's child works
 *   switch  no fork at all: the operator's file comes and goes, and the library with it
 *
 * Says "well" where all children ended well.
 */
#include <kiln.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
static _Atomic int stops;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) static void *child_allocates(void)
{
    void *volatile block = malloc(64 << 10);

    memset(block, 1, 64);
    return block;
}

/* At least half a second, so that the library believes that it stays. */
static void go_on(void)
{
    struct timespec nap = {.tv_nsec = 1000000};

    for (unsigned i = 0; i < 500; i++) {
        for (unsigned n = 0; n < 8; n++)
            free(child_allocates());
        nanosleep(&nap, NULL);
    }
}

static int wait_for(pid_t child)
{
    int status = -1;

    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

static int lives(void)
{
    pid_t child = fork();

    if (child == 0) {
        go_on();
        exit(0);
    }
    return wait_for(child);
}

static int daemonizes(void)
{
    pid_t child = fork();

    if (child)
        return wait_for(child);
    if (fork())
        _exit(0);
    go_on();
    exit(0);
}

static void *turn(void *arg)
{
    for (unsigned i = 0; i < 100; i++) {
        pthread_mutex_lock(&lock);
        free(child_allocates());
        pthread_mutex_unlock(&lock);
    }
    return arg;
}

static void *churn(void *arg)
{
    while (!stops) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, turn, NULL) == 0)
            pthread_join(thread, NULL);
    }
    return arg;
}

static int one(unsigned i)
{
    char *const arguments[] = {"true", NULL};
    pid_t child;

    if (i % 3 == 2)
        return posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) ? -1
                                                                                : wait_for(child);
    if (i % 3 == 1) {
        child = vfork();
        if (child == 0) {
            execv("/bin/true", arguments);
            _exit(1);
        }
        return wait_for(child);
    }
    child = fork();
    if (child == 0) {
        for (unsigned n = 0; n < 100; n++)
            free(child_allocates());
        if (i % 2)
            exit(0);
        _exit(0);
    }
    return wait_for(child);
}

#pragma weak kiln_is_enabled

static void wait_until(bool enabled)
{
    struct timespec nap = {.tv_nsec = 10000000};

    while (kiln_is_enabled() != enabled)
        nanosleep(&nap, NULL);
}

static int switches(void)
{
    const char *path = getenv("KILN_OFF_FILE");
    FILE *file;

    wait_until(true);
    file = fopen(path, "we");
    if (!file || fclose(file) != 0)
        return 1;
    wait_until(false);
    unlink(path);
    wait_until(true);
    return 0;
}

static int storm(void)
{
    pthread_t threads[4];
    int failed = 0;

    for (unsigned i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, churn, NULL);
    for (unsigned i = 0; i < 300; i++)
        failed |= one(i);
    stops = 1;
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return failed;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    int failed = strcmp(way, "lives") == 0    ? lives()
                 : strcmp(way, "storm") == 0  ? storm()
                 : strcmp(way, "daemon") == 0 ? daemonizes()
                 : strcmp(way, "switch") == 0 ? switches()
                                              : 1;

    puts(failed ? "badly" : "well");
    return failed != 0;
}
