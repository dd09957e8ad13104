/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sample costs in the kernel: a child burns below FRAMES frames of recursion and is the only
 * one that is sampled, its tables are loaded as the agent loads them, and then the kernel measures
 * the program (bpf_stats).  What looking at all others takes, only to find that they are not
 * wanted, is measured first and taken off.
 *
 * usage: bench_sample FRAMES SECONDS, and prints: nanoseconds a sample, user frames a sample, share
 * of complete stacks, nanoseconds of one that is filtered, instructions for the verifier.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "host/kernel.h"
#include "host/rewind.h"

enum { HZ = 997 };

struct bench {
    struct kiln_kernel *kernel;
    struct kiln_processes *processes;
    struct kiln_tables *tables;
    uint64_t n, frames, complete;
};

static volatile uint64_t sink;

__attribute__((noinline)) static void descend(int frames)
{
    if (frames > 1)
        descend(frames - 1);
    else
        while (sink < UINT64_MAX)
            sink++;
    sink++; /* so that there is something to come back for */
}

static pid_t start_child(int frames)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, "kiln-burns");
        descend(frames);
    }
    return pid;
}

static void die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void open_all(struct bench *bench, const char *comm)
{
    struct kiln_host_filter filter = {.comms = &comm, .n_comms = 1};
    struct kiln_kernel_opts opts = {.hz = HZ, .table_bytes = 16 << 20, .filter = &filter};
    struct kiln_processes_opts processes_opts = {0};
    struct kiln_err err = {0};
    *bench = (struct bench){0};
    if (kiln_kernel_open(&opts, &bench->kernel, &err) < 0)
        die("kernel", err.text);
    if (kiln_processes_new(&processes_opts, &bench->processes) < 0 ||
        kiln_tables_new(kiln_kernel_tables(bench->kernel), NULL, &bench->tables) < 0)
        die("tables", "no memory");
}

static void close_all(struct bench *bench)
{
    kiln_tables_free(bench->tables);
    kiln_processes_free(bench->processes);
    kiln_kernel_close(bench->kernel);
}

static void on_record(void *context, const struct kiln_record *record)
{
    static struct kiln_walked walked;
    struct bench *bench = context;
    struct kiln_process *process = kiln_processes_of(bench->processes, record);
    if (process)
        kiln_rewind(bench->tables, bench->processes, process, record, &walked);
    bench->n++;
    bench->frames += record->n_user;
    bench->complete += record->end == KILN_END_COMPLETE;
}

static void watch(struct bench *bench, double seconds)
{
    uint64_t until = kiln_clock_mono_ns() + (uint64_t)(seconds * 1e9);
    while (kiln_clock_mono_ns() < until) {
        usleep(20000);
        if (kiln_kernel_drain(bench->kernel, on_record, bench) < 0)
            die("kernel", "records cannot be read");
    }
}

/* Nanoseconds of one that nobody wants. */
static double measure_filtered(double seconds)
{
    struct bench bench;
    struct kiln_kernel_stats stats;
    open_all(&bench, "nobody-has-this");
    if (kiln_kernel_measure(bench.kernel) < 0)
        die("bpf_stats", "the kernel does not measure programs");
    watch(&bench, seconds);
    kiln_kernel_stats(bench.kernel, &stats);
    close_all(&bench);
    return (double)stats.run_ns / (double)(stats.runs ? stats.runs : 1);
}

int main(int argc, char **argv)
{
    int frames = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 26;
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 2;
    struct bench bench;
    struct kiln_kernel_stats before, after;
    pid_t pid = start_child(frames);
    double filtered_ns = measure_filtered(seconds / 4);
    open_all(&bench, "kiln-burns");
    watch(&bench, 0.3); /* the tables are loaded */
    if (kiln_kernel_measure(bench.kernel) < 0)
        die("bpf_stats", "the kernel does not measure programs");
    kiln_kernel_stats(bench.kernel, &before);
    bench.n = bench.frames = bench.complete = 0;
    watch(&bench, seconds);
    kiln_kernel_stats(bench.kernel, &after);
    uint64_t runs = after.runs - before.runs;
    uint64_t samples = after.counts[KILN_COUNT_SAMPLES] - before.counts[KILN_COUNT_SAMPLES];
    double ns = (double)(after.run_ns - before.run_ns) - filtered_ns * (double)(runs - samples);
    printf("%.0f %.1f %.4f %.0f %u\n", ns / (double)(samples ? samples : 1),
           (double)bench.frames / (double)(bench.n ? bench.n : 1),
           (double)bench.complete / (double)(bench.n ? bench.n : 1), filtered_ns, after.verified);
    close_all(&bench);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return 0;
}
