/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What does it cost to follow the processes of a host?
 *
 *   bench_process
 *
 * Applies events of processes that come and go (fork, exec, mappings, exit), of a parent with ten
 * thousand mappings that forks, and of mappings at falling addresses; prints the CPU time an event
 * takes, and the memory of a process that was told of and never sampled.
 */
#include <malloc.h>

#include "../bench.h"
#include "host/process.h"

enum { LIVES = 20000, MANY = 10000, FORKS = 20000, KNOWN = 5000, LOADED = 6 };

static struct kiln_processes *processes;
static uint64_t n_events;

static void apply(struct kiln_event event)
{
    static uint64_t time_ns;

    event.time_ns = ++time_ns;
    n_events++;
    kiln_processes_apply(processes, &event);
}

static void map(uint32_t pid, uint64_t start, const char *name)
{
    apply((struct kiln_event){.kind = KILN_EVENT_MAP,
                              .pid = pid,
                              .tid = pid,
                              .start = start,
                              .length = 0x1000,
                              .name = name,
                              .build_id = "id",
                              .build_id_len = 20});
}

static void begin(void)
{
    if (kiln_processes_new(&(struct kiln_processes_opts){0}, &processes) < 0)
        bench_die("bench_process", "no memory");
    n_events = 0;
}

static void end(const char *what, double began_s)
{
    printf("%-44s %8llu events  %6.0f ns each\n", what, (unsigned long long)n_events,
           (bench_cpu_s() - began_s) * 1e9 / (double)n_events);
    kiln_processes_free(processes);
}

/* As the kernel tells of a small program: its own code, ld.so, the vDSO, some libraries. */
static void start_program(uint32_t parent, uint32_t pid)
{
    static const char *const files[LOADED] = {"/usr/bin/app",     "/usr/lib/ld.so",
                                              "[vdso]",           "/usr/lib/libc.so.6",
                                              "/usr/lib/libm.so", "/usr/lib/libz.so"};

    apply((struct kiln_event){.kind = KILN_EVENT_FORK, .pid = pid, .tid = pid, .ppid = parent});
    apply((struct kiln_event){
        .kind = KILN_EVENT_COMM, .pid = pid, .tid = pid, .exec = true, .name = "app"});
    for (uint32_t i = 0; i < LOADED; i++)
        map(pid, i ? 0x7f0000000000 - i * 0x10000 : 0x550000000000, files[i]);
}

static void lives(void)
{
    double began_s = bench_cpu_s();

    begin();
    for (uint32_t i = 0; i < LIVES; i++) {
        start_program(1, 100 + i % 30000);
        apply((struct kiln_event){
            .kind = KILN_EVENT_EXIT, .pid = 100 + i % 30000, .tid = 100 + i % 30000});
        if (i % 1000 == 0)
            kiln_processes_sweep(processes);
    }
    end("processes that come and go", began_s);
}

static void forks(void)
{
    double began_s;

    begin();
    start_program(1, 7);
    for (uint32_t i = 0; i < MANY; i++)
        map(7, 0x10000000 + i * 0x2000, "/usr/lib/plugin.so");
    n_events = 0;
    began_s = bench_cpu_s();
    for (uint32_t i = 0; i < FORKS; i++) {
        uint32_t pid = 100 + i;

        apply((struct kiln_event){.kind = KILN_EVENT_FORK, .pid = pid, .tid = pid, .ppid = 7});
        apply((struct kiln_event){.kind = KILN_EVENT_EXIT, .pid = pid, .tid = pid});
        if (i % 1000 == 0)
            kiln_processes_sweep(processes);
    }
    end("forks of a process with 10,000 mappings", began_s);
}

static void falling(void)
{
    double began_s;

    begin();
    start_program(1, 7);
    n_events = 0;
    began_s = bench_cpu_s();
    for (uint32_t i = 0; i < 60000; i++)
        map(7, 0x7e0000000000 - i * 0x2000, "/usr/lib/plugin.so");
    end("60,000 mappings at falling addresses", began_s);
}

static void memory(void)
{
    size_t before;

    begin();
    start_program(1, 7);
    before = mallinfo2().uordblks;
    for (uint32_t i = 0; i < KNOWN; i++)
        start_program(1, 100 + i);
    printf("%-44s %8zu bytes a process\n", "known, with 6 mappings, never sampled",
           (mallinfo2().uordblks - before) / KNOWN);
    kiln_processes_free(processes);
}

int main(void)
{
    lives();
    forks();
    falling();
    memory();
    return 0;
}
