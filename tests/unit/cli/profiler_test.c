/* SPDX-License-Identifier: Apache-2.0 */
/* What the server and the profiler's process say to each other; tests/host/two_processes_test.py
 * has the processes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "cli/profiler_int.h"
#include "test.h"

enum { LARGE = 3 << 20 };

static void make_pair(int pair[2])
{
    CHECK_OK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
}

static void close_pair(const int pair[2])
{
    close(pair[0]);
    close(pair[1]);
}

TEST(profiler, messages_arrive_whole_and_in_order)
{
    const struct kiln_profiler_head batch = {KILN_PROFILER_BATCH, -7, 12, 34},
                                    ack = {KILN_PROFILER_ACK, 0, 12, 0};
    char *large = calloc(1, LARGE);
    struct kiln_profiler_head head;
    struct kiln_buf data;
    int pair[2];

    assert_non_null(large);
    large[LARGE - 1] = 'x';
    make_pair(pair);
    kiln_buf_init(&data, LARGE);
    CHECK_OK(kiln_profiler_send(pair[0], &batch, (struct kiln_str){large, LARGE}));
    CHECK_OK(kiln_profiler_send(pair[0], &ack, KILN_STR_NONE));
    CHECK_OK(kiln_profiler_receive(pair[1], &head, &data));
    CHECK_EQ(head.kind, KILN_PROFILER_BATCH);
    CHECK_EQ(head.code, -7);
    CHECK_EQ(head.number, 12);
    CHECK_EQ(head.value, 34);
    CHECK_EQ(data.len, LARGE);
    CHECK(memcmp(data.ptr, large, LARGE) == 0);
    CHECK_OK(kiln_profiler_receive(pair[1], &head, &data));
    CHECK_EQ(head.kind, KILN_PROFILER_ACK);
    CHECK_EQ(data.len, 0);
    kiln_buf_done(&data);
    close_pair(pair);
    free(large);
}

TEST(profiler, a_message_above_the_limit_is_refused)
{
    const struct kiln_profiler_head orders = {.kind = KILN_PROFILER_ORDERS};
    struct kiln_profiler_head head;
    struct kiln_buf data;
    int pair[2];

    make_pair(pair);
    kiln_buf_init(&data, 3);
    CHECK_OK(kiln_profiler_send(pair[0], &orders, KILN_STR("1234")));
    CHECK_OK(kiln_profiler_send(pair[0], &orders, KILN_STR("123")));
    CHECK_EQ(kiln_profiler_receive(pair[1], &head, &data), -EBADMSG);
    CHECK_OK(kiln_profiler_receive(pair[1], &head, &data));
    kiln_buf_done(&data);
    close_pair(pair);
}

/* A server that somebody took over passes what it likes. */
TEST(profiler, only_memory_files_are_read)
{
    struct kiln_profiler_head head;
    struct kiln_buf data;
    int pair[2], pipes[2], short_file = memfd_create("short", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    make_pair(pair);
    kiln_buf_init(&data, 100);
    CHECK_OK(pipe2(pipes, O_CLOEXEC)); /* nobody writes: a read would last for ever */
    CHECK_OK(kiln_descriptor_send(pair[0], pipes[0]));
    CHECK_EQ(kiln_profiler_receive(pair[1], &head, &data), -EBADMSG);
    CHECK_OK(kiln_descriptor_send(pair[0], short_file));
    CHECK_EQ(kiln_profiler_receive(pair[1], &head, &data), -EBADMSG);
    CHECK_OK(kiln_descriptor_send(pair[0], -EIO));
    CHECK_EQ(kiln_profiler_receive(pair[1], &head, &data), -EIO);
    close(pair[0]);
    CHECK_EQ(kiln_profiler_receive(pair[1], &head, &data), -EPIPE);
    kiln_buf_done(&data);
    close(pair[1]);
    close(pipes[0]);
    close(pipes[1]);
    close(short_file);
}
