/* SPDX-License-Identifier: Apache-2.0 */
/* Perf-maps of processes that live and of those that are gone; /tmp belongs to everybody. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "host/process.h"
#include "test.h"

static void write_map(const char *path, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    CHECK(fd >= 0);
    CHECK_EQ(write(fd, "1000 10 f\n", 10), 10);
    CHECK_OK(fchmod(fd, mode));
    close(fd);
}

/* Whether the map of such a process is opened. */
static bool opens(const struct kiln_identity *identity)
{
    int fd;

    if (kiln_process_open_perf_map(identity, &fd) < 0)
        return false;
    close(fd);
    return true;
}

/* The pid of a process that is gone; nobody else has it as long as nobody waits for it. */
static pid_t dead_child(void)
{
    siginfo_t info;
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0)
        _exit(0);
    CHECK_OK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
    return pid;
}

TEST(perf_map, of_a_process_that_lives_is_opened_beneath_its_root)
{
    struct kiln_identity own = {
        .pid = (uint32_t)getpid(), .ns_pid = (uint32_t)getpid(), .uid = getuid()};
    char path[64];

    snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
    write_map(path, 0644);
    CHECK(opens(&own));
    own.uid = getuid() + 1;
    CHECK(getuid() == 0 || !opens(&own));
    own.uid = getuid();
    own.start_unix_ns = kiln_clock_unix_ns() - KILN_NS_PER_S / 100;
    CHECK(opens(&own));
    own.start_unix_ns = kiln_clock_unix_ns() + 60 * KILN_NS_PER_S; /* somebody had its pid before */
    CHECK(!opens(&own));
    own.start_unix_ns = 0;
    write_map(path, 0666);
    CHECK(!opens(&own));
    CHECK_OK(unlink(path));
    CHECK_OK(symlink("/etc/passwd", path));
    CHECK(!opens(&own));
    unlink(path);
    CHECK(!opens(&own));
}

TEST(perf_map, of_a_process_that_is_gone_is_found_if_it_was_written_in_its_time)
{
    struct kiln_identity gone = {.uid = getuid()};
    pid_t pid = dead_child();
    char path[64];

    gone.pid = gone.ns_pid = (uint32_t)pid;
    gone.start_unix_ns = kiln_clock_unix_ns() - KILN_NS_PER_S;
    waitpid(pid, NULL, 0);
    snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
    write_map(path, 0644);
    CHECK(opens(&gone));
    gone.ns_pid = gone.pid + 1; /* it had a namespace of its own: whose map is this? */
    CHECK(!opens(&gone));
    gone.ns_pid = gone.pid;
    gone.start_unix_ns = kiln_clock_unix_ns() + 3600 * KILN_NS_PER_S;
    CHECK(!opens(&gone));
    gone.start_unix_ns = 0;
    CHECK(!opens(&gone));
    unlink(path);
}
