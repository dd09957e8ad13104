/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks of this very program, forked and stopped: a child has its parent's addresses, so that
 * frames can be told without names.
 */
#include "host/rewind.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frozen.h"
#include "test.h"

/* ---- the child ---- */

/* A function that stays where its address says, and as it is. */
#if __has_attribute(noipa)
#define KEPT __attribute__((noipa, no_sanitize("thread")))
#else
#define KEPT __attribute__((noinline, no_sanitize("thread"))) /* its calls would be leaves */
#endif
#define STAY __asm__ volatile("" ::: "memory")

static volatile int *arrived; /* shared with the parent */

KEPT static void leaf(void)
{
    *arrived = 1;
    while (*arrived)
        STAY;
}

KEPT static void handler(int number)
{
    (void)number;
    leaf();
    STAY;
}

KEPT static void middle(int depth)
{
    if (depth > 0)
        middle(depth - 1);
    else
        leaf();
    STAY;
}

KEPT static void outer(int depth)
{
    middle(depth);
    STAY;
}

KEPT static void interrupted(int depth)
{
    static char room[65536];
    stack_t stack = {.ss_sp = room, .ss_size = sizeof(room)};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    (void)depth;
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    STAY;
}

/* Where a function's code ends is not known; these are small. */
#define IN_FIRST(n, address, function) ((address) - (uint64_t)(uintptr_t)(function) < (n))
#define IN(address, function)          IN_FIRST(512, address, function)

/* ---- the parent ---- */

struct kit {
    pid_t pid;
    struct frozen frozen;
    struct frozen_host host;
    struct kiln_walked walked, other;
    bool is_gone;
};

static void kit_init(struct kit *kit, void (*run)(int depth), int depth)
{
    arrived = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(arrived != MAP_FAILED);
    kit->pid = fork();
    if (kit->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        run(depth);
        _exit(0);
    }
    while (!*arrived)
        usleep(100);
    CHECK_OK(ptrace(PTRACE_SEIZE, kit->pid, 0, 0));
    CHECK_OK(frozen_stop(&kit->frozen, kit->pid, kit->pid));
    CHECK_OK(frozen_host_init(&kit->host, NULL));
}

static void kit_done(struct kit *kit)
{
    int status;
    frozen_host_done(&kit->host);
    if (!kit->is_gone) {
        kill(kit->pid, SIGKILL);
        waitpid(kit->pid, &status, __WALL);
    }
    munmap((void *)arrived, 4096);
}

static struct kit *kit_new(void (*run)(int depth), int depth)
{
    struct kit *kit = calloc(1, sizeof(*kit));
    CHECK(kit);
    kit_init(kit, run, depth);
    CHECK_OK(frozen_walk(&kit->host, &kit->frozen, &kit->walked));
    return kit;
}

static void kit_free(struct kit *kit)
{
    kit_done(kit);
    free(kit);
}

/* A record of the stop, with a slice of at most `slice` bytes. */
static struct kiln_record *record_of(struct kit *kit, uint32_t slice)
{
    struct kiln_record *record =
        calloc(1, sizeof(*record) + sizeof(struct kiln_registers) + slice + 8);
    CHECK(record);
    struct kiln_registers *registers = (void *)record->frames;
    *registers = kit->frozen.registers;
    uint8_t *bytes = (uint8_t *)(registers + 1);
    while (record->slice + 8 <= slice &&
           kit->frozen.memory.read(&kit->frozen, registers->r[7] + record->slice,
                                   bytes + record->slice, 8) == 0)
        record->slice += 8;
    record->size = (uint32_t)(sizeof(*record) + sizeof(*registers)) + record->slice;
    record->pid = record->tid = (uint32_t)kit->pid;
    record->era = 1;
    record->end = KILN_END_NEW_PROCESS;
    record->miss = registers->pc;
    record->flags = KILN_RECORD_USER_MODE | KILN_RECORD_RAW | KILN_RECORD_LEAF;
    return record;
}

static void rewind_record(struct kit *kit, const struct kiln_record *record)
{
    struct kiln_process *process = kiln_processes_of(kit->host.processes, record);
    CHECK(process != NULL);
    kiln_rewind(kit->host.tables, kit->host.processes, process, record, &kit->other);
}

static void check_equal(const struct kit *kit, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        CHECK_EQ(kit->other.frames[i], kit->walked.frames[i]);
}

TEST(rewind, a_stopped_process_is_walked_to_its_entry)
{
    struct kit *kit = kit_new(outer, 20);
    CHECK_EQ(kit->walked.end, KILN_END_COMPLETE);
    CHECK(kit->walked.n > 25);
    CHECK(IN(kit->walked.frames[0], leaf));
    for (int i = 1; i <= 21; i++)
        CHECK(IN(kit->walked.frames[i], middle));
    CHECK(IN(kit->walked.frames[22], outer));
    kit_free(kit);
}

TEST(rewind, five_hundred_and_twelve_frames_and_more_are_walked)
{
    struct kit *kit = kit_new(outer, 800);
    CHECK_EQ(kit->walked.end, KILN_END_COMPLETE);
    CHECK(IN(kit->walked.frames[802], outer));
    kit_free(kit);
}

TEST(rewind, a_stack_deeper_than_what_is_kept_says_so)
{
    struct kit *kit = kit_new(outer, KILN_USER_FRAMES_MAX + 10);
    CHECK_EQ(kit->walked.end, KILN_END_DEPTH);
    CHECK_EQ(kit->walked.n, KILN_USER_FRAMES_MAX);
    kit_free(kit);
}

TEST(rewind, a_handler_on_another_stack_leads_to_what_it_interrupted)
{
    struct kit *kit = kit_new(interrupted, 0);
    uint32_t i = 2;
    CHECK_EQ(kit->walked.end, KILN_END_COMPLETE);
    CHECK(IN(kit->walked.frames[0], leaf));
    CHECK(IN(kit->walked.frames[1], handler));
    while (i < kit->walked.n && !IN_FIRST(4096, kit->walked.frames[i], interrupted))
        i++;
    CHECK(i > 2 && i < kit->walked.n);
    kit_free(kit);
}

TEST(rewind, a_raw_record_is_walked_like_the_process_itself)
{
    struct kit *kit = kit_new(outer, 20);
    struct kiln_record *record = record_of(kit, KILN_SLICE_MAX);
    rewind_record(kit, record);
    CHECK_EQ(kit->other.end, KILN_END_COMPLETE);
    CHECK_EQ(kit->other.n, kit->walked.n);
    check_equal(kit, kit->walked.n);
    free(record);
    kit_free(kit);
}

TEST(rewind, a_slice_that_is_too_short_of_a_process_that_is_gone_gives_what_it_has)
{
    struct kit *kit = kit_new(outer, 100);
    struct kiln_record *record = record_of(kit, 512);
    struct kiln_process *process = kiln_processes_of(kit->host.processes, record);
    CHECK(process != NULL);
    kill(kit->pid, SIGKILL);
    CHECK_EQ(waitpid(kit->pid, NULL, __WALL), kit->pid);
    kit->is_gone = true;
    kiln_rewind(kit->host.tables, kit->host.processes, process, record, &kit->other);
    CHECK_EQ(kit->other.end, KILN_END_SLICE);
    CHECK(kit->other.n > 2 && kit->other.n < kit->walked.n);
    check_equal(kit, kit->other.n);
    free(record);
    kit_free(kit);
}

TEST(rewind, a_page_that_was_not_in_memory_is_no_end_of_a_stack)
{
    struct kit *kit = kit_new(outer, 900);
    struct kiln_record *record = record_of(kit, KILN_SLICE_MAX);
    struct kiln_process *process = kiln_processes_of(kit->host.processes, record);
    const struct kiln_registers *registers = (const void *)record->frames;
    uint8_t *bytes = (uint8_t *)record->frames + sizeof(*registers);
    uint32_t hole = 2 * 4096 - (uint32_t)(registers->r[7] & 4095); /* behind a whole page */

    CHECK(process != NULL);
    CHECK(record->slice > hole + 4096);
    memset(bytes + hole, 0, 4096);
    kill(kit->pid, SIGKILL);
    CHECK_EQ(waitpid(kit->pid, NULL, __WALL), kit->pid);
    kit->is_gone = true;
    kiln_rewind(kit->host.tables, kit->host.processes, process, record, &kit->other);
    CHECK_EQ(kit->other.end, KILN_END_SLICE);
    CHECK(kit->other.n > 2 && kit->other.n < kit->walked.n);
    free(record);
    kit_free(kit);
}

TEST(rewind, what_a_slice_does_not_have_is_read_from_a_process_that_still_stands_there)
{
    struct kit *kit = kit_new(outer, 100);
    struct kiln_record *record = record_of(kit, 512);
    rewind_record(kit, record);
    CHECK_EQ(kit->other.end, KILN_END_COMPLETE);
    CHECK_EQ(kit->other.n, kit->walked.n);
    check_equal(kit, kit->walked.n);
    free(record);
    kit_free(kit);
}

TEST(rewind, a_sample_in_the_midst_of_exec_has_no_user_stack)
{
    struct kit *kit = kit_new(outer, 1);
    struct kiln_record *record = record_of(kit, 512);
    struct kiln_registers *registers = (void *)record->frames;
    record->flags &= (uint8_t)~KILN_RECORD_USER_MODE;
    registers->pc = record->miss = 0x10000;
    rewind_record(kit, record);
    CHECK_EQ(kit->other.end, KILN_END_NO_USER);
    CHECK_EQ(kit->other.n, 0);
    free(record);
    kit_free(kit);
}

TEST(rewind, a_miss_without_registers_loads_the_page_it_names_and_those_near_by)
{
    struct kit *kit = kit_new(outer, 1);
    struct kiln_tables_stats before, after;
    frozen_host_done(&kit->host);
    CHECK_OK(frozen_host_init(&kit->host, NULL));
    struct kiln_record *record = record_of(kit, 0);
    record->flags = KILN_RECORD_USER_MODE;
    kiln_tables_stats(kit->host.tables, &before);
    rewind_record(kit, record);
    kiln_tables_stats(kit->host.tables, &after);
    CHECK_EQ(kit->other.end, KILN_END_NEW_PROCESS);
    CHECK_EQ(kit->other.n, 0);
    CHECK_EQ(before.pages, 0);
    CHECK(after.pages > 1);
    CHECK(after.pages <= 16);
    CHECK_EQ(after.processes, 1);
    free(record);
    kit_free(kit);
}

TEST(rewind, frames_of_a_record_stay_as_they_are)
{
    struct kit *kit = kit_new(outer, 1);
    struct kiln_record *record = record_of(kit, 0);
    record->flags = KILN_RECORD_USER_MODE;
    record->end = KILN_END_STUCK;
    record->n_kernel = 1;
    record->n_user = 2;
    record->frames[0] = 7;
    record->frames[1] = 8;
    record->frames[2] = 9;
    rewind_record(kit, record);
    CHECK_EQ(kit->other.end, KILN_END_STUCK);
    CHECK_EQ(kit->other.n, 2);
    CHECK_EQ(kit->other.frames[0], 8);
    CHECK_EQ(kit->other.frames[1], 9);
    free(record);
    kit_free(kit);
}

/* Of a program with a sanitizer it would be terabytes: that is left out. */
enum { CORE_MAX = 256 << 20 };

static int run_gcore(const char *folder, pid_t pid)
{
    const struct rlimit limit = {CORE_MAX, CORE_MAX};
    char name[64], number[16];
    int status = 1;
    snprintf(name, sizeof(name), "%s/core", folder);
    snprintf(number, sizeof(number), "%d", (int)pid);
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        dup2(null, 1);
        dup2(null, 2);
        setrlimit(RLIMIT_FSIZE, &limit);
        execlp("gcore", "gcore", "-o", name, number, (char *)NULL);
        _exit(127);
    }
    return waitpid(child, &status, 0) == child ? status : -1;
}

TEST(rewind, a_core_file_is_walked_like_the_process_it_was)
{
    char folder[] = "/tmp/kiln-rewind-XXXXXX", path[128];
    struct frozen core;
    struct frozen_host host;
    struct kit *kit = kit_new(outer, 20);
    CHECK(mkdtemp(folder));
    /* The debugger that writes it wants to be its only tracer. */
    kill(kit->pid, SIGSTOP);
    CHECK_OK(ptrace(PTRACE_DETACH, kit->pid, 0, 0));
    snprintf(path, sizeof(path), "%s/core.%d", folder, (int)kit->pid);
    bool written = run_gcore(folder, kit->pid) == 0 && frozen_open_core(&core, path) == 0;
    unlink(path);
    rmdir(folder);
    if (!written) {
        kit_free(kit);
        SKIP("gcore, of gdb, is not installed, or may not write such a file");
    }
    CHECK_OK(frozen_host_init(&host, core.proc));
    CHECK_OK(frozen_walk(&host, &core, &kit->other));
    frozen_host_done(&host);
    frozen_close(&core);
    CHECK_EQ(kit->other.end, KILN_END_COMPLETE);
    CHECK_EQ(kit->other.n, kit->walked.n);
    check_equal(kit, kit->walked.n);
    kit_free(kit);
}
