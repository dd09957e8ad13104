/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter is the kernel's to apply (host/bpf/filter.h), thread by thread and by numbers; here
 * the same is read from /proc, for the process as a whole.
 */
#include "cli/host_sampled.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host/procfs.h"

enum { ANCESTORS_MAX = 256 };

static int open_process(pid_t pid)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static pid_t parent_of(pid_t pid)
{
    struct kiln_procfs_stat stat = {0};
    int dir = open_process(pid);

    if (dir < 0)
        return 0;
    if (kiln_procfs_stat(dir, &stat) < 0)
        stat.parent_pid = 0;
    close(dir);
    return (pid_t)stat.parent_pid;
}

static bool is_descendant(const struct kiln_host_filter *filter, pid_t pid)
{
    for (int level = 0; pid > 0 && level < ANCESTORS_MAX; level++) {
        for (uint32_t i = 0; i < filter->n_pids; i++)
            if (filter->pids[i] == (uint32_t)pid)
                return true;
        pid = parent_of(pid);
    }
    return false;
}

static struct kiln_str text_of(pid_t pid, const char *name, char *room, size_t size)
{
    int dir = open_process(pid);
    int64_t n = dir < 0 ? -1 : kiln_procfs_read(dir, name, room, size);

    if (dir >= 0)
        close(dir);
    return (struct kiln_str){room, n > 0 ? (size_t)n : 0};
}

/* "/sys/fs/cgroup/a/", "a": "a" */
static struct kiln_str plain_cgroup(struct kiln_str path)
{
    static const char *const mounts[] = {"/sys/fs/cgroup/unified", "/sys/fs/cgroup"};

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(mounts); i++) {
        struct kiln_str mount = kiln_str_of(mounts[i]);

        if (kiln_str_starts(path, mount)) {
            path = (struct kiln_str){path.ptr + mount.len, path.len - mount.len};
            break;
        }
    }
    for (; path.len && path.ptr[0] == '/'; path.len--)
        path.ptr++;
    while (path.len && path.ptr[path.len - 1] == '/')
        path.len--;
    return path;
}

static bool is_in_cgroup(const struct kiln_host_filter *filter, pid_t pid)
{
    char room[KILN_PROCFS_TEXT_MAX];
    struct kiln_str own;

    if (filter->n_cgroups == 0)
        return false;
    own = plain_cgroup(kiln_procfs_parse_cgroup(text_of(pid, "cgroup", room, sizeof(room))));
    for (uint32_t i = 0; i < filter->n_cgroups; i++) {
        struct kiln_str wanted = plain_cgroup(kiln_str_of(filter->cgroups[i]));

        if (wanted.len == 0 ||
            (kiln_str_starts(own, wanted) && (own.len == wanted.len || own.ptr[wanted.len] == '/')))
            return true;
    }
    return false;
}

static bool has_name(const struct kiln_host_filter *filter, pid_t pid)
{
    char room[64];
    struct kiln_str name = text_of(pid, "comm", room, sizeof(room));

    if (name.len && name.ptr[name.len - 1] == '\n')
        name.len--;
    for (uint32_t i = 0; i < filter->n_comms; i++)
        if (kiln_str_eq(name, kiln_str_of(filter->comms[i])))
            return true;
    return false;
}

bool kiln_host_is_sampled(const struct kiln_host_filter *filter, pid_t pid)
{
    if (pid <= 0)
        return false;
    if (!filter)
        return true;
    return (is_descendant(filter, pid) || is_in_cgroup(filter, pid) || has_name(filter, pid)) !=
           filter->exclude;
}

void kiln_host_sampled_put(struct kiln_json_out *w, const struct kiln_host_opts *opts, pid_t pid)
{
    bool sampled = opts && kiln_host_is_sampled(opts->filter, pid);

    kiln_json_put_name(w, "sampled");
    kiln_json_put_object(w);
    kiln_json_put_name(w, "pid");
    kiln_json_put_i64(w, pid);
    kiln_json_put_name(w, "cpu");
    kiln_json_put_bool(w, sampled && !opts->waits_only);
    kiln_json_put_name(w, "off_cpu");
    kiln_json_put_bool(w, sampled && (opts->off_cpu || opts->waits_only));
    kiln_json_end_object(w);
}
