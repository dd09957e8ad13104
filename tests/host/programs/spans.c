/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads (the second argument, 2) that work for spans, one in the other, and for none: which one
 * is said by the function that burns.  The id of a span is the number of the thread and how deep it
 * is. A third argument `fork` makes a child do the same, forked within a span; `late` waits half of
 * the time before anything is published.  With LOADED the library is loaded at run time, from
 * beside.
 */
#include <dlfcn.h>
#include <kiln.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "burn.h"

static uint64_t each_ns;

#ifdef LOADED
static __typeof__(kiln_context_publish) *publish;
static __typeof__(kiln_span_enter) *enter;
static __typeof__(kiln_span_leave) *leave;

static int load(void)
{
    void *library = dlopen(LOADED, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return -1;
    *(void **)&publish = dlsym(library, "kiln_context_publish");
    *(void **)&enter = dlsym(library, "kiln_span_enter");
    *(void **)&leave = dlsym(library, "kiln_span_leave");
    return publish && enter && leave ? 0 : -1;
}
#else
#define publish kiln_context_publish
#define enter   kiln_span_enter
#define leave   kiln_span_leave

static int load(void)
{
    return 0;
}
#endif

KEPT void burn_outside(void)
{
    spin(TURN);
}

KEPT void burn_outer(void)
{
    spin(TURN);
}

KEPT void burn_inner(void)
{
    spin(TURN);
}

KEPT void wait_inner(void)
{
    usleep(200);
    STAY;
}

KEPT void wait_outside(void)
{
    usleep(200);
    STAY;
}

static void begin(struct kiln_span *span, uint32_t depth)
{
    uint32_t tid = (uint32_t)syscall(SYS_gettid);
    uint8_t trace[16] = "kiln spans", id[8];
    for (int i = 0; i < 4; i++) {
        id[i] = (uint8_t)(tid >> (24 - 8 * i));
        id[4 + i] = (uint8_t)(depth >> (24 - 8 * i));
    }
    memcpy(trace + 12, id, 4);
    enter(span, trace, id, 1);
}

KEPT void work(void)
{
    struct kiln_span outer, inner;
    burn_outside();
    wait_outside();
    begin(&outer, 1);
    burn_outer();
    begin(&inner, 2);
    burn_inner();
    wait_inner();
    leave(&inner);
    burn_outer();
    leave(&outer);
}

KEPT void *thread_main(void *context)
{
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < each_ns)
        work();
    return context;
}

static int fork_within(void)
{
    struct kiln_span span;
    pid_t child;
    begin(&span, 1);
    child = fork();
    leave(&span);
    if (child)
        return 0;
    thread_main(NULL);
    _exit(0);
}

int main(int argc, char **argv)
{
    struct kiln_attribute resource[] = {{"service.name", "spans"}, {"service.version", "1"}};
    int n = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 2;
    const char *mode = argc > 3 ? argv[3] : "";
    pthread_t threads[64];
    n = n > 64 ? 64 : n;
    each_ns = span_ns(argc, argv) / (uint64_t)(n ? n : 1);
    while (strcmp(mode, "late") == 0 && cpu_ns() < span_ns(argc, argv) / 2)
        burn_outside();
    if (load() != 0 || publish(resource, 2) != 0)
        return 1;
    if (strcmp(mode, "fork") == 0)
        fork_within();
    for (int i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, thread_main, NULL);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    while (wait(NULL) > 0)
        ;
    return 0;
}
