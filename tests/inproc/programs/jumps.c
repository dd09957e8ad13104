/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jumps allocations|ticks: a program whose handler jumps out of whatever libkiln is doing at the
 * moment: functions that sample allocations and frees, or, by longjmp(), which would leave signals
 * blocked, a tick of the CPU clock.  Then it allocates and computes without a jump, and prints how
 * often it has jumped and what it did afterwards.
 */
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum {
    JUMPS = 2000,
    TURNS_MAX = 2000000,
    TICK_JUMPS = 20,
    TICK_TURNS_MAX = 1000, /* milliseconds */
    AFTER = 300,
    AFTER_BYTES = 5000,
    BURN_MS = 300
};

static uintptr_t low, high; /* the library's code */
static sigjmp_buf back;
static jmp_buf back_plainly;
static volatile sig_atomic_t jumps, plainly;

static int find_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size, (void)arg;
    if (!strstr(info->dlpi_name, "libkiln"))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

        if (segment->p_type == PT_LOAD && segment->p_flags & PF_X) {
            low = info->dlpi_addr + segment->p_vaddr;
            high = low + segment->p_memsz;
        }
    }
    return 1;
}

static void jump(int sig, siginfo_t *info, void *context)
{
    uintptr_t pc = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

    (void)sig, (void)info;
    if (pc < low || pc >= high)
        return; /* not out of the C library, which would not survive it */
    jumps = jumps + 1;
    if (plainly)
        longjmp(back_plainly, 1);
    siglongjmp(back, 1);
}

static void interrupt_every(int us)
{
    struct itimerval often = {{0, us}, {0, us}};

    setitimer(ITIMER_REAL, &often, NULL);
}

/* What was allocated when it jumped is lost to it. */
static void work(int turn)
{
    void *blocks[8];

    for (int i = 0; i < 8; i++)
        blocks[i] = malloc((size_t)(turn % 50 + 1) * 20);
    for (int i = 0; i < 8; i++)
        free(blocks[i]);
}

static void jump_out_of_allocations(void)
{
    volatile int turn = 0;

    (void)sigsetjmp(back, 1);
    while (jumps < JUMPS && turn < TURNS_MAX) {
        turn = turn + 1;
        work(turn);
    }
}

static uint64_t cpu_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static volatile uint64_t sink;

static __attribute__((noinline)) void burn(int ms)
{
    uint64_t end = cpu_ms() + (uint64_t)ms;

    while (cpu_ms() < end)
        for (int i = 0; i < 20000; i++)
            sink = sink + (uint64_t)i;
}

static void jump_out_of_ticks(void)
{
    volatile int turn = 0;

    plainly = 1;
    (void)setjmp(back_plainly);
    while (jumps < TICK_JUMPS && turn < TICK_TURNS_MAX) {
        turn = turn + 1;
        burn(1);
    }
}

static __attribute__((noinline)) void keep_after(void)
{
    static void *volatile kept[AFTER];

    for (int i = 0; i < AFTER; i++) {
        kept[i] = malloc(AFTER_BYTES);
        usleep(2000);
    }
}

static __attribute__((noinline)) void burn_after(void)
{
    burn(BURN_MS);
    sink = sink + 1; /* so that this frame is there meanwhile */
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_sigaction = jump, .sa_flags = SA_SIGINFO | SA_NODEFER};

    dl_iterate_phdr(find_library, NULL);
    sigaction(SIGALRM, &action, NULL);
    interrupt_every(50);
    if (argc > 1 && strcmp(argv[1], "ticks") == 0)
        jump_out_of_ticks();
    else
        jump_out_of_allocations();
    interrupt_every(0);
    keep_after();
    burn_after();
    printf("{\"jumps\": %d, \"kept\": %d, \"burnt_ms\": %d}\n", (int)jumps, AFTER, BURN_MS);
    return 0;
}
