/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks that are not where one expects them: coroutines on 16 KiB of heap, handlers on alternate
 * stacks of the smallest size, alternate stacks that are smaller still, deep recursion, a thread on
 * a stack of its own making.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { COROUTINES = 40, STACK = 16 << 10, TURNS = 200 };

static ucontext_t scheduler, coroutines[COROUTINES];
static long sum;

static void churn(int n)
{
    for (int i = 0; i < n; i++)
        free(strdup("a text that is copied"));
}

static void burn(int n)
{
    volatile long x = 0;

    for (int i = 0; i < n; i++)
        x += i;
    sum += x & 1;
}

static void coroutine(int i)
{
    for (int turn = 0; turn < TURNS; turn++) {
        churn(5);
        burn(2000);
        sum += i;
        swapcontext(&coroutines[i], &scheduler);
    }
}

static void run_coroutines(void)
{
    for (int i = 0; i < COROUTINES; i++) {
        getcontext(&coroutines[i]);
        coroutines[i].uc_stack.ss_sp = malloc(STACK);
        coroutines[i].uc_stack.ss_size = STACK;
        coroutines[i].uc_link = &scheduler;
        makecontext(&coroutines[i], (void (*)(void))coroutine, 1, i);
    }
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < COROUTINES; i++)
            swapcontext(&scheduler, &coroutines[i]);
    for (int i = 0; i < COROUTINES; i++)
        free(coroutines[i].uc_stack.ss_sp);
}

static volatile sig_atomic_t handled;

static void on_signal(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)info, (void)context;
    burn(100000); /* long enough for a tick to fall into it */
    handled = handled + 1;
}

static void on_alternate_stack(void)
{
    size_t size = getauxval(AT_MINSIGSTKSZ);
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_ONSTACK | SA_SIGINFO};
    stack_t stack = {0}, old;

    /* What the kernel needs for two frames, and 4 KiB for the handler itself. */
    stack.ss_size = 2 * (size ? size : (size_t)MINSIGSTKSZ) + 4096;
    stack.ss_sp = malloc(stack.ss_size);
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < 200; i++)
        raise(SIGUSR1);
    sigaltstack(NULL, &old);
    printf("handled %d, stack is %s\n", (int)handled,
           old.ss_sp == stack.ss_sp && old.ss_size == stack.ss_size ? "mine" : "another's");
}

/* Of sizes that are still allowed, with nothing below them.  They are there for faults alone. */
static void on_small_alternate_stacks(void)
{
    const size_t sizes[] = {MINSIGSTKSZ, getauxval(AT_MINSIGSTKSZ) + 512, 4096, SIGSTKSZ};
    char *memory = mmap(NULL, 64 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t none = {.ss_flags = SS_DISABLE};
    int well = 0;

    mprotect(memory, 32 << 10, PROT_NONE);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        stack_t stack = {.ss_sp = memory + (32 << 10), .ss_size = sizes[i]};

        well += sizes[i] >= MINSIGSTKSZ ? sigaltstack(&stack, NULL) == 0 : 1;
        churn(100);
        burn(60000000);
        sigaltstack(&none, NULL);
    }
    munmap(memory, 64 << 10);
    printf("small stacks %d\n", well);
}

static void on_crash(int signo)
{
    volatile char text[1536];

    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)signo;
    burn(20000000); /* as long as a report of a crash takes */
    handled = handled + text[signo] / signo;
}

/* Room for the kernel's frame and a handler that uses it, and for nothing else; twice, because the
 * stack may be there before the handler or after it. */
static void on_tight_alternate_stack(void)
{
    size_t size = getauxval(AT_MINSIGSTKSZ), room = (size ? size : (size_t)MINSIGSTKSZ) + 4096;
    char *memory = mmap(NULL, 64 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK}, old;
    stack_t stack = {.ss_sp = memory + (32 << 10), .ss_size = room},
            none = {.ss_flags = SS_DISABLE};

    mprotect(memory, 32 << 10, PROT_NONE);
    handled = 0;
    sigaction(SIGUSR1, &action, NULL);
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR2, &action, NULL);
    for (int i = 0; i < 10; i++) {
        raise(SIGUSR1);
        raise(SIGUSR2);
    }
    sigaction(SIGUSR1, NULL, &old);
    printf("crashes %d, mask %d", (int)handled, sigismember(&old.sa_mask, SIGPROF));
    sigaction(SIGUSR2, &(struct sigaction){.sa_handler = SIG_DFL}, &old);
    printf(" %d\n", sigismember(&old.sa_mask, SIGPROF));
    sigaltstack(&none, NULL);
    munmap(memory, 64 << 10);
}

static __attribute__((noinline)) int deep(int n)
{
    char *block = malloc(100);
    int below = n ? deep(n - 1) : 0;

    free(block);
    return below + 1;
}

static void *work(void *arg)
{
    churn(1000);
    burn(30000000);
    return arg;
}

static void on_own_stack(void)
{
    size_t size = 256 << 10;
    char *memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    pthread_attr_t attr;
    pthread_t thread;
    void *result = NULL;

    mprotect(memory, 4096, PROT_NONE);
    pthread_attr_init(&attr);
    pthread_attr_setstack(&attr, memory + 4096, size - 4096);
    pthread_create(&thread, &attr, work, &result);
    pthread_join(thread, &result);
    munmap(memory, size);
    printf("own stack %s\n", result == &result ? "well" : "lost");
}

int main(void)
{
    run_coroutines();
    printf("coroutines %ld\n", sum > 0 ? (long)COROUTINES : 0);
    on_alternate_stack();
    on_small_alternate_stacks();
    on_tight_alternate_stack();
    printf("deep %d\n", deep(20000));
    on_own_stack();
    return 0;
}
