/* SPDX-License-Identifier: Apache-2.0 */
/* What processes do, as the kernel that runs tells it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

#include "host/sideband.h"

enum { KEPT_MAX = 4096 };

/* One line an event of the process that is watched, stamped with its time. */
struct kept {
    uint64_t time_ns;
    char text[160];
};
static struct kept kept[KEPT_MAX];
static uint32_t n_kept;
static uint32_t watched;
static uint64_t lost, build_ids, bad_times, bad_order, last_ns;
static uint32_t forks, exits;

static void keep(void *context, const struct kiln_event *event)
{
    (void)context;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    bad_times += event->time_ns == 0 || event->time_ns > now_ns;
    lost += event->kind == KILN_EVENT_LOST ? event->n : 0;
    bool is_child = event->kind == KILN_EVENT_FORK && event->ppid == (uint32_t)getpid();
    forks += is_child && event->pid != event->ppid;
    exits += event->kind == KILN_EVENT_EXIT;
    if (event->pid != watched || n_kept == KEPT_MAX)
        return;
    bad_order += event->time_ns < last_ns;
    last_ns = event->time_ns;
    struct kept *to = &kept[n_kept++];
    to->time_ns = event->time_ns;
    const char *name = event->name ? strrchr(event->name, '/') : NULL;
    name = name ? name + 1 : event->name;
    if (event->kind == KILN_EVENT_MAP)
        snprintf(to->text, sizeof(to->text), "map %.100s", name);
    else if (event->kind == KILN_EVENT_COMM)
        snprintf(to->text, sizeof(to->text), "%s %s", event->exec ? "exec" : "comm", event->name);
    else if (event->kind == KILN_EVENT_FORK)
        snprintf(to->text, sizeof(to->text), event->pid == event->ppid ? "thread" : "fork");
    else
        snprintf(to->text, sizeof(to->text), event->tid == event->pid ? "exit" : "end");
    build_ids += event->build_id_len == 20;
}

static struct kiln_sideband *open_or_skip(uint32_t pages)
{
    struct kiln_sideband *sideband = NULL;
    struct kiln_err err = {0};
    int rc = kiln_sideband_open(pages, &sideband, &err);
    if (rc == -EPERM || rc == -EACCES || rc == -ENOSYS) {
        printf("%s\n", err.text);
        exit(77);
    }
    if (rc)
        fail_msg("%s", err.text);
    n_kept = forks = exits = 0;
    lost = build_ids = bad_times = bad_order = last_ns = 0;
    return sideband;
}

/* All that there is before a time. */
static uint32_t drain(struct kiln_sideband *sideband, uint64_t before_ns)
{
    CHECK_OK(kiln_sideband_look(sideband));
    return kiln_sideband_drain(sideband, before_ns, keep, NULL);
}

/* The number of the first event from `from` on that begins so; fails if there is none. */
static uint32_t find(uint32_t from, const char *text)
{
    for (uint32_t i = from; i < n_kept; i++) {
        if (strncmp(kept[i].text, text, strlen(text)) == 0)
            return i;
    }
    for (uint32_t i = 0; i < n_kept; i++)
        printf("%s\n", kept[i].text);
    fail_msg("no \"%s\"", text);
    return 0;
}

static void *nothing(void *arg)
{
    return arg;
}

static pid_t start_child(int go[2])
{
    CHECK_OK(pipe(go));
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        if (read(go[0], &byte, 1) != 1)
            _exit(1);
        void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(code, 4096, PROT_READ | PROT_EXEC);
        pthread_t thread;
        if (pthread_create(&thread, NULL, nothing, NULL) == 0)
            pthread_join(thread, NULL);
        execl("/bin/sh", "sh", "-c", ":", (char *)NULL);
        _exit(1);
    }
    return pid;
}

TEST(sideband, the_life_of_a_child_is_told_in_order)
{
    int go[2];
    char shell[PATH_MAX], program[300];
    CHECK(realpath("/bin/sh", shell) != NULL);
    snprintf(program, sizeof(program), "map %.200s", strrchr(shell, '/') + 1);
    struct kiln_sideband *sideband = open_or_skip(0);
    pid_t pid = start_child(go);
    watched = (uint32_t)pid;
    CHECK_EQ(write(go[1], "x", 1), 1);
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    CHECK(drain(sideband, UINT64_MAX) > 0);
    CHECK_EQ(bad_order, 0);
    uint32_t at = find(0, "fork");
    at = find(at, "map anon"); /* made executable */
    at = find(at, "thread");
    at = find(at, "end");
    at = find(at, "exec sh");
    find(at, "map [vdso]");
    at = find(at, program);
    find(at, "map libc");
    at = find(at, "exit");
    CHECK_EQ(at, n_kept - 1);
    CHECK(build_ids >= 2);
    CHECK_EQ(lost, 0);
    CHECK_EQ(bad_times, 0);
    kiln_sideband_close(sideband);
    close(go[0]);
    close(go[1]);
}

/* The next processor that this process may run on. */
static int next_processor(const cpu_set_t *allowed, int cpu)
{
    do
        cpu = (cpu + 1) % CPU_SETSIZE;
    while (!CPU_ISSET(cpu, allowed));
    return cpu;
}

TEST(sideband, what_is_done_on_several_processors_is_told_in_order)
{
    enum { TURNS = 64 };
    struct kiln_sideband *sideband = open_or_skip(0);
    cpu_set_t allowed, one;
    int cpu = -1;
    watched = (uint32_t)getpid();
    CHECK_OK(sched_getaffinity(0, sizeof(allowed), &allowed));
    for (int i = 0; i < TURNS; i++) {
        cpu = next_processor(&allowed, cpu);
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        CHECK_OK(sched_setaffinity(0, sizeof(one), &one));
        munmap(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
    }
    CHECK_OK(sched_setaffinity(0, sizeof(allowed), &allowed));
    drain(sideband, UINT64_MAX);
    CHECK_EQ(lost ? TURNS : n_kept, TURNS);
    CHECK_EQ(bad_order, 0);
    kiln_sideband_close(sideband);
}

TEST(sideband, a_name_is_whatever_bytes_a_process_chose)
{
    char folder[] = "/tmp/kiln-sideband-XXXXXX", path[300];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/a\nb\033[31m (deleted) \xff", folder);
    int fd = open(path, O_RDWR | O_CREAT, 0700);
    CHECK(fd >= 0);
    CHECK_OK(ftruncate(fd, 4096));
    struct kiln_sideband *sideband = open_or_skip(0);
    watched = (uint32_t)getpid();
    void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    CHECK(code != MAP_FAILED);
    CHECK(drain(sideband, UINT64_MAX) > 0);
    find(0, "map a\nb\033[31m (deleted) \xff");
    munmap(code, 4096);
    close(fd);
    unlink(path);
    rmdir(folder);
    kiln_sideband_close(sideband);
}

static void fork_one(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
}

/* More than fits several times over, drained on the way: records go around the end of the ring. */
static void fork_and_drain(int children)
{
    struct kiln_sideband *sideband = open_or_skip(16);
    for (int i = 0; i < children; i++) {
        fork_one();
        if (i % 16 == 0)
            drain(sideband, UINT64_MAX);
    }
    drain(sideband, UINT64_MAX);
    CHECK_EQ(bad_times, 0);
    kiln_sideband_close(sideband);
}

/* All that others on this machine do comes through the same ring: where they do much, once more. */
TEST(sideband, nothing_is_lost_while_the_buffer_is_drained)
{
    enum { CHILDREN = 1500, TRIES = 10 };
    watched = UINT32_MAX;
    for (int i = 0; i < TRIES && (i == 0 || lost > 0); i++)
        fork_and_drain(CHILDREN);
    CHECK_EQ(lost, 0);
    CHECK_EQ(forks, CHILDREN);
    CHECK(exits >= CHILDREN);
}

TEST(sideband, what_is_younger_waits)
{
    struct kiln_sideband *sideband = open_or_skip(0);
    struct timespec between;
    fork_one();
    clock_gettime(CLOCK_MONOTONIC, &between);
    fork_one();
    drain(sideband, (uint64_t)between.tv_sec * 1000000000 + (uint64_t)between.tv_nsec);
    CHECK_EQ(forks, 1);
    drain(sideband, UINT64_MAX);
    CHECK_EQ(forks, 2);
    CHECK_EQ(drain(sideband, 1), 0);
    kiln_sideband_close(sideband);
}

TEST(sideband, what_was_lost_is_told)
{
    enum { CHILDREN = 3000 };
    struct kiln_sideband *sideband = open_or_skip(4);
    for (int i = 0; i < CHILDREN; i++) {
        fork_one();
    }
    CHECK(drain(sideband, UINT64_MAX) > 0);
    fork_one(); /* the kernel tells with the next record that fits */
    CHECK(drain(sideband, UINT64_MAX) > 0);
    CHECK(lost > 0);
    kiln_sideband_close(sideband);
}
