/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread waited for, by its system call and the file that it was about. */
#include <sys/stat.h>
#include <sys/syscall.h>

#include "host/wait_reason.h"
#include "test.h"

static struct kiln_str reason(long call, unsigned mode, enum kiln_wait_state state)
{
    struct kiln_record record = {.kind = KILN_KIND_WAIT,
                                 .wait_state = (uint8_t)state,
                                 .syscall = (uint16_t)(call + 1),
                                 .wait_file = mode >> 12};

    return kiln_str_of(kiln_reason_word(kiln_wait_reason_of(&record)));
}

TEST(wait_reason, a_call_that_waits_for_one_thing_says_it)
{
    CHECK_STR(reason(SYS_futex, 0, KILN_WAIT_SLEEP), "futex");
    CHECK_STR(reason(SYS_epoll_wait, 0, KILN_WAIT_SLEEP), "poll");
    CHECK_STR(reason(SYS_ppoll, 0, KILN_WAIT_SLEEP), "poll");
    CHECK_STR(reason(SYS_clock_nanosleep, 0, KILN_WAIT_SLEEP), "sleep");
    CHECK_STR(reason(SYS_wait4, 0, KILN_WAIT_SLEEP), "child");
    CHECK_STR(reason(SYS_rt_sigsuspend, 0, KILN_WAIT_SLEEP), "signal");
    CHECK_STR(reason(SYS_accept4, 0, KILN_WAIT_SLEEP), "socket");
    CHECK_STR(reason(SYS_fsync, S_IFREG, KILN_WAIT_DISK), "disk");
    CHECK_STR(reason(SYS_flock, S_IFREG, KILN_WAIT_SLEEP), "lock");
    CHECK_STR(reason(SYS_semop, 0, KILN_WAIT_SLEEP), "ipc");
    CHECK_STR(reason(SYS_io_uring_enter, 0, KILN_WAIT_SLEEP), "io");
    CHECK_STR(reason(SYS_munmap, 0, KILN_WAIT_DISK), "memory");
}

TEST(wait_reason, a_call_for_every_kind_of_file_is_told_by_the_file)
{
    CHECK_STR(reason(SYS_read, S_IFIFO, KILN_WAIT_SLEEP), "pipe");
    CHECK_STR(reason(SYS_write, S_IFSOCK, KILN_WAIT_SLEEP), "socket");
    CHECK_STR(reason(SYS_pread64, S_IFREG, KILN_WAIT_DISK), "disk");
    CHECK_STR(reason(SYS_read, S_IFBLK, KILN_WAIT_DISK), "disk");
    CHECK_STR(reason(SYS_read, S_IFCHR, KILN_WAIT_SLEEP), "io");
    CHECK_STR(reason(SYS_read, 0, KILN_WAIT_SLEEP), "io");
}

TEST(wait_reason, whatever_cannot_be_woken_in_another_call_waits_for_a_file_system)
{
    CHECK_STR(reason(SYS_openat, 0, KILN_WAIT_DISK), "disk");
    CHECK_STR(reason(SYS_openat, 0, KILN_WAIT_SLEEP), "other");
    CHECK_STR(reason(60000, 0, KILN_WAIT_SLEEP), "other");
}

TEST(wait_reason, outside_of_any_call_memory_is_brought)
{
    CHECK_STR(reason(-1, 0, KILN_WAIT_DISK), "page_fault");
}

TEST(wait_reason, every_reason_has_a_word_of_its_own)
{
    for (int i = 0; i < KILN_REASONS; i++)
        for (int j = 0; j < i; j++)
            CHECK(strcmp(kiln_reason_word((enum kiln_wait_reason)i),
                         kiln_reason_word((enum kiln_wait_reason)j)) != 0);
    CHECK_STR(kiln_str_of(kiln_state_word(KILN_STATE_BLOCKED)), "blocked");
    CHECK_STR(kiln_str_of(kiln_state_word(KILN_STATE_RUNNABLE)), "runnable");
}
