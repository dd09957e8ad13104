/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens /tmp/perf-PID.map beneath the root of a process.  Anybody may write to /tmp: the file is
 * reached without links, is regular, has one name, is not huge, and belongs to the user of the
 * process or to root; nobody else may write to it.  It was written after the process began: one
 * that had the same pid may have left its own.
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

static bool is_safe(const struct stat *st, const struct kiln_identity *identity)
{
    if (kiln_timespec_ns(st->st_mtim) + SLACK_NS < identity->start_unix_ns)
        return false;
    return (st->st_uid == identity->uid || st->st_uid == 0) && st->st_nlink == 1 &&
           !(st->st_mode & S_IWOTH) && st->st_size <= PERF_MAP_MAX;
}

static int open_in(int root, const struct kiln_identity *identity, int *ret_fd)
{
    struct stat st;
    char name[48];
    int fd;

    snprintf(name, sizeof(name), "tmp/perf-%u.map", identity->ns_pid);
    fd = kiln_open_beneath(root, name, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS, &st);
    if (fd < 0)
        return fd;
    if (!is_safe(&st, identity)) {
        close(fd);
        return -EPERM;
    }
    *ret_fd = fd;
    return 0;
}

int kiln_process_open_perf_map(const struct kiln_identity *identity, int *ret_fd)
{
    int root, r = kiln_process_open_root(identity, &root);

    if (r < 0)
        return r;
    r = open_in(root, identity, ret_fd);
    close(root);
    return r;
}
