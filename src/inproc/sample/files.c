/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An entry is the age it was made at, and the reason + 1, 0 for those that do not sleep.
 */
#include "inproc/sample/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inproc/sample/wait.h"
#include "inproc/thread/sandbox.h"

enum { AGE_ONE = 1 << KILN_IN_FILE_BITS };

_Static_assert((int)KILN_IN_REASONS < (int)AGE_ONE, "a reason and one fit");

_Atomic uint8_t kiln_in_files[KILN_IN_FILES];
_Atomic uint8_t kiln_in_files_now = AGE_ONE;

static int reason_of(int fd)
{
    long flags = syscall(SYS_fcntl, fd, F_GETFL);
    struct stat stat;

    if (flags < 0 || flags & O_NONBLOCK || fstat(fd, &stat) != 0)
        return -1;
    switch (stat.st_mode & S_IFMT) {
    case S_IFREG:
    case S_IFDIR:
    case S_IFBLK:
        return -1;
    case S_IFIFO:
        return KILN_IN_REASON_PIPE;
    case S_IFSOCK:
        return KILN_IN_REASON_SOCKET;
    default:
        return KILN_IN_REASON_IO;
    }
}

int kiln_in_file_learn(int fd)
{
    int kept = errno;
    int reason = kiln_in_is_sandboxed() ? KILN_IN_REASON_IO : reason_of(fd);

    atomic_store_explicit(&kiln_in_files[fd],
                          (uint8_t)(atomic_load(&kiln_in_files_now) | (reason + 1)),
                          memory_order_relaxed);
    errno = kept;
    return reason;
}

void kiln_in_files_age(void)
{
    uint8_t next = (uint8_t)(atomic_load(&kiln_in_files_now) + AGE_ONE);

    atomic_store(&kiln_in_files_now, next ? next : AGE_ONE);
}
