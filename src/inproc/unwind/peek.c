/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_vm_readv() copies what is there in one step, so that nothing can go away between a look
 * and a read.  Where it must not be used helpers read a file instead, which hooks cannot open.
 * rt_sigprocmask() with an operation that does not exist tells whether its argument can be read:
 * the kernel copies it before it refuses.
 *
 * Most containers have a filter of system calls that lets this one pass; some end the process for
 * it.  What was there when we started is tried once, in a child that only does this.  A filter that
 * comes later is one of the program's own, and none of those is tried.
 */
#include "inproc/unwind/peek.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inproc/thread/line.h"
#include "inproc/thread/sandbox.h"
#include "inproc/thread/status.h"

enum { NO_SUCH_OPERATION = 0x4b69, KERNEL_MASK = 8 };

static _Atomic bool is_cautious;

static void *pointer(uint64_t at)
{
    return (void *)(uintptr_t)at; /* NOLINT(performance-no-int-to-ptr) */
}

bool kiln_in_peek_is_there(uint64_t at)
{
    return syscall(SYS_rt_sigprocmask, NO_SUCH_OPERATION, pointer(at), NULL, KERNEL_MASK) < 0 &&
           errno == EINVAL;
}

/* ---- reading ---- */

/* -errno: it must not be used here. */
static long copy(uint64_t at, void *to, size_t n)
{
    size_t first = (size_t)(KILN_IN_PAGE - (at & (KILN_IN_PAGE - 1)));
    struct iovec there[2] = {{pointer(at), n < first ? n : first}, {pointer(at + first), 0}};
    struct iovec here = {to, n};
    long got;

    if (n > first)
        there[1].iov_len = n - first;
    /* By the thread's own number: the first thread may have ended. */
    got = syscall(SYS_process_vm_readv, syscall(SYS_gettid), &here, 1L, there, n > first ? 2L : 1L,
                  0L);
    if (got >= 0)
        return got;
    return errno == EFAULT ? 0 : -errno;
}

/* Helpers alone, who have descriptors of their own. */
static size_t copy_from_file(uint64_t at, void *to, size_t n)
{
    int fd = at > INT64_MAX ? -1 : open("/proc/thread-self/mem", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : pread(fd, to, n, (off_t)at);

    if (fd >= 0)
        close(fd);
    return got > 0 ? (size_t)got : 0;
}

size_t kiln_in_peek(uint64_t at, void *to, size_t n)
{
    if (at + n < at)
        return 0;
    if (!kiln_in_peek_is_cautious()) {
        long got = copy(at, to, n);

        if (got >= 0)
            return (size_t)got;
        kiln_in_peek_be_cautious();
    }
    return kiln_in_peek_is_allowed() ? copy_from_file(at, to, n) : 0;
}

bool kiln_in_peek_is_allowed(void)
{
    return !kiln_in_peek_is_cautious() || !kiln_in_line.thread;
}

bool kiln_in_peek_is_cautious(void)
{
    return atomic_load_explicit(&is_cautious, memory_order_relaxed);
}

void kiln_in_peek_be_cautious(void)
{
    atomic_store_explicit(&is_cautious, true, memory_order_relaxed);
}

/* ---- filters of system calls ---- */

/* Where Linux does not count them (before 5.9) the first is the last that is seen. */
static long filters(void)
{
    long mode = kiln_in_status("Seccomp");

    return mode <= 0 ? 0 : kiln_in_status("Seccomp_filters");
}

/* A child that nobody hears of: no handlers of a fork run, no signal comes, wait() finds none. */
static bool is_harmless(void)
{
    uint64_t word = 1, copied = 0;
    long child = syscall(SYS_clone, 0L, 0L, 0L, 0L, 0L);
    int status = -1;

    if (child == 0) {
        syscall(SYS_prctl, PR_SET_DUMPABLE, 0L, 0L, 0L, 0L); /* no core is written */
        syscall(SYS_exit_group,
                copy((uintptr_t)&word, &copied, sizeof(word)) == sizeof(word) ? 0 : 1);
    }
    while (child > 0 && syscall(SYS_wait4, child, &status, (long)__WCLONE, NULL) < 0)
        if (errno != EINTR)
            return false;
    return child > 0 && status == 0;
}

void kiln_in_peek_look_around(void)
{
    static long known; /* how many filters there were */
    static bool has_looked;
    long now;

    if (kiln_in_peek_is_cautious())
        return;
    now = filters();
    if (has_looked && now != known)
        kiln_in_sandbox_begin();
    else if (!has_looked && (now < 0 || (now > 0 && !is_harmless())))
        kiln_in_peek_be_cautious();
    known = now;
    has_looked = true;
}
