/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the waits is told, and why they were. */
#include "inproc/sample/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/wait_reason.h"
#include "inproc/sample/files.h"
#include "inproc/start.h"
#include "inproc/thread/line.h"
#include "inproc/thread/thread.h"
#include "test.h"

#define MS UINT64_C(1000000)

static void begin(uint64_t rate_ns)
{
    struct kiln_in_record record;

    kiln_in_settings.wait_rate_ns = rate_ns;
    kiln_in_settings.lag_ns = 20 * MS;
    kiln_in_settings.seed = 7;
    kiln_in_settings.depth = 16;
    CHECK_OK(kiln_in_threads_init(7));
    atomic_store(&kiln_in_on, 1);
    atomic_store(&kiln_in_measures, KILN_IN_WAITS);
    if (kiln_in_line.thread)
        while (kiln_in_ring_take(&kiln_in_line.thread->ring, &record))
            continue;
}

struct sum {
    double count, value;
    int records;
};

static void drain(struct sum *sum)
{
    struct kiln_in_record record;

    while (kiln_in_line.thread && kiln_in_ring_take(&kiln_in_line.thread->ring, &record)) {
        CHECK_EQ(record.kind, KILN_IN_WAIT);
        sum->count += record.count;
        sum->value += record.value;
        sum->records++;
    }
}

TEST(wait, short_ones_are_told_by_chance_and_add_up)
{
    enum { N = 20000 };
    double p = 0.1, sigma = sqrt(N * p * (1 - p)) / p;
    struct sum sum = {0};

    begin(10 * MS);
    for (int i = 0; i < N; i++) {
        kiln_in_wait_took(1 * MS, KILN_IN_REASON_SLEEP);
        drain(&sum);
    }
    CHECK(fabs(sum.count - N) < 5 * sigma);
    CHECK(fabs(sum.value - N * (double)MS) < 5 * sigma * (double)MS);
    CHECK(sum.records < N / 5);
}

TEST(wait, long_ones_are_all_told_as_long_as_they_were)
{
    struct sum sum = {0};

    begin(10 * MS);
    for (int i = 0; i < 20; i++)
        kiln_in_wait_took(25 * MS, KILN_IN_REASON_POLL);
    drain(&sum);
    CHECK_EQ(sum.records, 20);
    CHECK(sum.count == 20);
    CHECK(sum.value == 20.0 * 25 * (double)MS);
}

TEST(wait, the_end_of_one_keeps_errno)
{
    begin(1);
    errno = EOWNERDEAD;
    kiln_in_wait_end(kiln_in_now_ns() - MS, KILN_IN_REASON_SLEEP);
    CHECK_EQ(errno, EOWNERDEAD);
}

TEST(wait, nothing_is_measured_inside_of_the_library_or_when_it_is_off)
{
    begin(1);
    kiln_in_hush();
    CHECK_EQ(kiln_in_wait_begin(), 0);
    kiln_in_unhush();
    CHECK(kiln_in_wait_begin() > 0);
    atomic_store(&kiln_in_measures, 0);
    CHECK_EQ(kiln_in_wait_begin(), 0);
}

TEST(wait, reasons_are_called_as_the_host_profiler_calls_them)
{
    CHECK_EQ((int)KILN_IN_REASONS, (int)KILN_REASONS);
    for (int i = 0; i < KILN_IN_REASONS; i++)
        CHECK_TEXT(kiln_in_reason_word((enum kiln_in_reason)i),
                   kiln_reason_word((enum kiln_wait_reason)i));
}

TEST(files, that_may_sleep_are_told_from_those_that_do_not)
{
    int fds[2], file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    CHECK_OK(pipe(fds));
    CHECK_EQ(kiln_in_file_reason(fds[0]), KILN_IN_REASON_PIPE);
    CHECK_EQ(kiln_in_file_reason(fds[0]), KILN_IN_REASON_PIPE);
    CHECK_EQ(kiln_in_file_reason(file), -1);
    CHECK_EQ(kiln_in_file_reason(-1), -1);
    CHECK_EQ(kiln_in_file_reason(1 << 20), -1);
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    CHECK_EQ(kiln_in_file_reason(fds[0]), KILN_IN_REASON_PIPE); /* for a second at most */
    kiln_in_files_age();
    CHECK_EQ(kiln_in_file_reason(fds[0]), -1);
    close(fds[0]);
    close(fds[1]);
    close(file);
}

TEST(files, are_forgotten_when_they_are_closed)
{
    int fds[2], sockets[2];

    CHECK_OK(pipe(fds));
    CHECK_EQ(kiln_in_file_reason(fds[0]), KILN_IN_REASON_PIPE);
    kiln_in_file_forget(fds[0]);
    close(fds[0]);
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
    CHECK_EQ(sockets[0], fds[0]);
    CHECK_EQ(kiln_in_file_reason(sockets[0]), KILN_IN_REASON_SOCKET);
    close(sockets[0]);
    close(sockets[1]);
    close(fds[1]);
}

TEST(files, keep_errno_when_they_are_looked_at)
{
    errno = EOWNERDEAD;
    CHECK_EQ(kiln_in_file_reason(4000), -1);
    CHECK_EQ(errno, EOWNERDEAD);
}
