/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens /tmp/perf-PID.map beneath the root of a process.  Anybody may write to /tmp: the file is
 * reached without links, is regular, has one name, is not huge, and belongs to the user of the
 * process or to root; nobody else may write to it.  It was written after the process began: one
 * that had the same pid may have left its own.
 *
 * A process that is gone has no root any more, and what was last sampled of it is published only
 * then.  If it was in no PID namespace of its own, it is looked for where the first process of the
 * host lives, or the agent itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/clock.h"
#include "host/process.h"
#include "host/procfs.h"

enum { PERF_MAP_MAX = 64 << 20 };
#define SLACK_NS KILN_NS_PER_S /* of file systems that round times */

/* Whether the process that is there is the one that is meant. */
static bool is_it(int dir, const struct kiln_identity *identity)
{
    struct kiln_procfs_stat stat;

    return kiln_procfs_stat(dir, &stat) == 0 && kiln_procfs_began(&stat, identity->start_ns);
}

static bool is_safe(const struct stat *st, const struct kiln_identity *identity)
{
    if (kiln_timespec_ns(st->st_mtim) + SLACK_NS < identity->start_unix_ns)
        return false;
    return (st->st_uid == identity->uid || st->st_uid == 0) && st->st_nlink == 1 &&
           !(st->st_mode & S_IWOTH) && st->st_size <= PERF_MAP_MAX;
}

static int open_in(int dir, const struct kiln_identity *identity, int *ret_fd)
{
    int root = openat(dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC), fd;
    struct stat st;
    char name[48];

    if (root < 0)
        return -errno;
    snprintf(name, sizeof(name), "tmp/perf-%u.map", identity->ns_pid);
    fd = kiln_open_beneath(root, name, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS, &st);
    close(root);
    if (fd < 0)
        return fd;
    if (!is_safe(&st, identity)) {
        close(fd);
        return -EPERM;
    }
    *ret_fd = fd;
    return 0;
}

static int open_of(const char *process, const struct kiln_identity *identity, bool gone,
                   int *ret_fd)
{
    int dir = open(process, O_PATH | O_DIRECTORY | O_CLOEXEC), r;

    if (dir < 0)
        return errno == ENOENT ? -ESRCH : -errno;
    r = gone || is_it(dir, identity) ? open_in(dir, identity, ret_fd) : -ESRCH;
    close(dir);
    return r;
}

int kiln_process_open_perf_map(const struct kiln_identity *identity, int *ret_fd)
{
    char process[24];
    int r;

    if (identity->is_kernel || !identity->pid)
        return -ENOENT;
    snprintf(process, sizeof(process), "/proc/%u", identity->pid);
    r = open_of(process, identity, false, ret_fd);
    if (r != -ESRCH || identity->ns_pid != identity->pid || !identity->start_unix_ns)
        return r;
    r = open_of("/proc/1", identity, true, ret_fd);
    return r == -EACCES ? open_of("/proc/self", identity, true, ret_fd) : r;
}
