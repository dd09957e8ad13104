/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the hook for waits costs a context switch: two processes on one processor hand a byte to and
 * fro through pipes, with and without the hook by turns.  A turn is many bursts, each shorter than
 * a slice of time; of each kind the fastest tenth counts: others may have the processor in between,
 * but never make it faster.
 *
 * usage: bench_switch TURNS [switch], the hook of older kernels, and prints: nanoseconds a round
 * trip without, nanoseconds that the hook adds to a switch (two a round trip), the same as far as
 * the kernel measures it (bpf_stats), waits that were taken.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "host/kernel.h"

enum { TRIPS = 100, WARM_UP = 50, BURSTS = 40, TURNS = 50 };

static int there[2], back[2];

static void die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static pid_t start_echo(void)
{
    char byte;
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
        ;
    _exit(0);
}

static void trips(int n)
{
    char byte = 0;
    for (int i = 0; i < n; i++)
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
            die("pipe", "it broke");
}

static double trip_ns(void)
{
    uint64_t began = kiln_clock_mono_ns();
    trips(TRIPS);
    return (double)(kiln_clock_mono_ns() - began) / TRIPS;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double fast(double *ns, int n)
{
    qsort(ns, (size_t)n, sizeof(*ns), compare);
    return ns[n / 10];
}

static void ignore(void *context, const struct kiln_record *record)
{
    (void)context, (void)record;
}

static void turn(struct kiln_kernel *kernel, bool hook, double ret_ns[BURSTS])
{
    if (kiln_kernel_wait_attach(kernel, hook) < 0)
        die("hook", "it cannot be attached");
    trips(WARM_UP);
    for (int i = 0; i < BURSTS; i++)
        ret_ns[i] = trip_ns();
    if (kiln_kernel_drain(kernel, ignore, NULL) < 0)
        die("kernel", "records cannot be read");
}

/* As far as the kernel sees it: without the way into the program. */
static double measured_ns(struct kiln_kernel *kernel)
{
    struct kiln_kernel_stats before, after;
    double ns[BURSTS];
    if (kiln_kernel_measure(kernel) < 0)
        return 0;
    kiln_kernel_stats(kernel, &before);
    turn(kernel, true, ns);
    kiln_kernel_stats(kernel, &after);
    uint64_t runs = after.wait.runs - before.wait.runs;
    return runs ? (double)(after.wait.run_ns - before.wait.run_ns) / (double)runs : 0;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? (int)strtol(argv[1], NULL, 10) : TURNS;
    double *with = calloc((size_t)n * BURSTS, sizeof(*with));
    double *without = calloc((size_t)n * BURSTS, sizeof(*without));
    struct kiln_kernel_opts opts = {
        .hz = 19, .table_bytes = 1 << 20, .paused = true, .off_cpu = true};
    if (argc > 2)
        opts.wait_way = KILN_WAIT_WAY_SWITCH;
    struct kiln_kernel *kernel;
    struct kiln_kernel_stats stats;
    struct kiln_err err = {0};
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((int)sysconf(_SC_NPROCESSORS_ONLN) - 1, &one);
    if (n < 1 || !with || !without || sched_setaffinity(0, sizeof(one), &one) != 0 ||
        pipe(there) != 0 || pipe(back) != 0)
        die("start", "one processor, two pipes and some memory are needed");
    if (kiln_kernel_open(&opts, &kernel, &err) < 0)
        die("kernel", err.text);
    pid_t echo = start_echo();
    for (int i = 0; i < n; i++) {
        turn(kernel, false, without + (size_t)i * BURSTS);
        turn(kernel, true, with + (size_t)i * BURSTS);
    }
    double bare = fast(without, n * BURSTS), hooked = fast(with, n * BURSTS);
    double measured = measured_ns(kernel);
    kiln_kernel_stats(kernel, &stats);
    printf("%.0f %.0f %.0f %llu\n", bare, (hooked - bare) / 2, measured,
           (unsigned long long)stats.counts[KILN_COUNT_WAITS]);
    kiln_kernel_close(kernel);
    kill(echo, SIGKILL);
    waitpid(echo, NULL, 0);
    free(with);
    free(without);
    return 0;
}
