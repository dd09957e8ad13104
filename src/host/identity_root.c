/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The root of a process: files are looked for as it sees them.
 *
 * A process that is gone has none any more, and what was last sampled of it is published only then.
 * If it was in no PID namespace of its own, the root is taken to be that of the first process of
 * the host, or of the agent itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "host/process.h"
#include "host/procfs.h"

/* Whether the process that is there is the one that is meant. */
static bool is_it(int dir, const struct kiln_identity *identity)
{
    struct kiln_procfs_stat stat;

    return kiln_procfs_stat(dir, &stat) == 0 && kiln_procfs_began(&stat, identity->start_ns);
}

/* `identity` is NULL where any process will do. */
static int open_of(const char *process, const struct kiln_identity *identity, int *ret_root)
{
    int dir = open(process, O_PATH | O_DIRECTORY | O_CLOEXEC), root, r = 0;

    if (dir < 0)
        return errno == ENOENT ? -ESRCH : -errno;
    if (identity && !is_it(dir, identity)) {
        close(dir);
        return -ESRCH;
    }
    root = openat(dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    r = root < 0 ? -errno : 0;
    close(dir);
    if (r == 0)
        *ret_root = root;
    return r;
}

int kiln_process_open_host_root(int *ret_root)
{
    int r = open_of("/proc/1", NULL, ret_root);

    return r == -EACCES ? open_of("/proc/self", NULL, ret_root) : r;
}

int kiln_process_open_root(const struct kiln_identity *identity, int *ret_root)
{
    char process[24];
    int r;

    if (identity->is_kernel || !identity->pid)
        return -ENOENT;
    snprintf(process, sizeof(process), "/proc/%u", identity->pid);
    r = open_of(process, identity, ret_root);
    if (r != -ESRCH || identity->ns_pid != identity->pid || !identity->start_unix_ns)
        return r;
    return kiln_process_open_host_root(ret_root);
}
