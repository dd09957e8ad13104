/* SPDX-License-Identifier: Apache-2.0 */
/* Each is tried in a process of its own, which cannot go back. */
#include "base/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/capability.h"
#include "test.h"

static const uint32_t few[] = {SYS_exit_group, SYS_getuid, SYS_openat, SYS_close};

/* What a process ended with that did this: its signal, or -1 - its exit code. */
static int end_of(int (*attempt)(void))
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        syscall(SYS_exit_group, attempt());
    CHECK(pid > 0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -1 - WEXITSTATUS(status);
}

static int confine(const struct kiln_call_filter *filter)
{
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return kiln_calls_confine(filter);
}

static int errno_of(long result)
{
    return result < 0 ? errno : 0;
}

static int call_another(void)
{
    const struct kiln_call_filter filter = {.calls = few, .n_calls = KILN_ARRAY_LEN(few)};

    return confine(&filter) < 0 ? 99 : (int)syscall(SYS_getppid);
}

static int call_another_with_an_answer(void)
{
    const struct kiln_call_filter filter = {
        .calls = few, .n_calls = KILN_ARRAY_LEN(few), .refused_errno = ENOSYS};

    return confine(&filter) < 0 ? 99 : errno_of(syscall(SYS_getppid));
}

static int call_one_of_the_list(void)
{
    const struct kiln_call_filter filter = {.calls = few, .n_calls = KILN_ARRAY_LEN(few)};

    return confine(&filter) < 0 ? 99 : errno_of(syscall(SYS_getuid));
}

static int call_one_that_is_refused(void)
{
    const struct kiln_call_filter filter = {
        .calls = few + 1, .n_calls = 1, .all_but = true, .refused_errno = EPERM};

    if (confine(&filter) < 0 || errno_of(syscall(SYS_getppid)))
        return 99;
    return errno_of(syscall(SYS_getuid));
}

/* By rule, the argument of umask: 1 passes, what has bit 2 or 4 does not, 8 does not. */
static int call_by_rule(uint32_t argument)
{
    static const struct kiln_call_rule is = {SYS_umask, 0, KILN_CALL_IF_IS, 1},
                                       none = {SYS_umask, 0, KILN_CALL_IF_NONE, 6},
                                       unless = {SYS_umask, 0, KILN_CALL_UNLESS_IS, 8};
    const uint32_t calls[] = {SYS_exit_group, SYS_umask};
    const struct kiln_call_rule rules[3] = {unless, argument & 1 ? is : none};
    const struct kiln_call_filter filter = {
        .calls = calls, .n_calls = 2, .rules = rules, .n_rules = 2, .refused_errno = EPERM};

    return confine(&filter) < 0 ? 99 : errno_of(syscall(SYS_umask, argument));
}

static int rule_is(void)
{
    return call_by_rule(1);
}

static int rule_is_not(void)
{
    return call_by_rule(3);
}

static int rule_none(void)
{
    return call_by_rule(0x10);
}

static int rule_some(void)
{
    return call_by_rule(0x12);
}

static int rule_unless(void)
{
    return call_by_rule(8);
}

static int read_from, write_to; /* a pipe that another thread waits at */

static void *call_later(void *context)
{
    char byte;

    if (read(read_from, &byte, 1) == 1)
        *(int *)context = errno_of(syscall(SYS_getuid));
    return NULL;
}

static int call_on_a_thread_that_was_there(void)
{
    const struct kiln_call_filter filter = {.calls = few + 1,
                                            .n_calls = 1,
                                            .all_but = true,
                                            .all_threads = true,
                                            .refused_errno = EPERM};
    int pipes[2], found = 99;
    pthread_t thread;

    if (pipe(pipes) < 0)
        return 98;
    read_from = pipes[0];
    write_to = pipes[1];
    if (pthread_create(&thread, NULL, call_later, &found) != 0 || confine(&filter) < 0 ||
        write(write_to, "", 1) != 1)
        return 97;
    pthread_join(thread, NULL);
    return found;
}

TEST(calls, that_are_not_on_the_list_end_the_process)
{
    CHECK_EQ(end_of(call_another), SIGSYS);
    CHECK_EQ(end_of(call_one_of_the_list), -1);
}

TEST(calls, that_are_refused_can_have_an_answer)
{
    CHECK_EQ(end_of(call_another_with_an_answer), -1 - ENOSYS);
    CHECK_EQ(end_of(call_one_that_is_refused), -1 - EPERM);
}

TEST(calls, pass_by_what_an_argument_is)
{
    CHECK_EQ(end_of(rule_is), -1);
    CHECK_EQ(end_of(rule_is_not), -1 - EPERM);
    CHECK_EQ(end_of(rule_none), -1);
    CHECK_EQ(end_of(rule_some), -1 - EPERM);
    CHECK_EQ(end_of(rule_unless), -1 - EPERM);
}

TEST(calls, are_refused_on_threads_that_were_there_before)
{
    CHECK_EQ(end_of(call_on_a_thread_that_was_there), -1 - EPERM);
}

TEST(calls, are_no_more_than_fit)
{
    const struct kiln_call_filter filter = {.calls = few, .n_calls = KILN_CALLS_MAX + 1};

    CHECK_EQ(kiln_calls_confine(&filter), -EINVAL);
}

/* ---- capabilities ---- */

static int keep_one(void)
{
    const uint64_t before = kiln_capabilities();
    const uint64_t kept = KILN_CAP(CAP_SYSLOG) & before;

    if (kiln_capabilities_keep(KILN_CAP(CAP_SYSLOG)) < 0 || kiln_capabilities() != kept)
        return 1;
    if (before & KILN_CAP(CAP_SETPCAP) && prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) != 0)
        return 2;
    return kiln_capabilities_keep(UINT64_MAX) < 0 || kiln_capabilities() != kept ? 3 : 0;
}

TEST(capabilities, that_are_given_up_do_not_come_back)
{
    CHECK_EQ(end_of(keep_one), -1);
}
