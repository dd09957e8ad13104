/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills the filter that the programs ask first (host/bpf/filter.h).
 *
 * A cgroup is known to the kernel by the inode of its folder in the unified hierarchy, which is
 * mounted at /sys/fs/cgroup or, beside the old ones, at /sys/fs/cgroup/unified.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "host/kernel_int.h"

static struct kiln_filter_key key_of(uint32_t kind, uint64_t id)
{
    struct kiln_filter_key key;
    memset(&key, 0, sizeof(key));
    key.kind = kind;
    key.id = id;
    return key;
}

static int put(const struct kiln_kernel *kernel, const struct kiln_filter_key *key)
{
    uint8_t value = 1;
    return bpf_map_update_elem(kernel->filters_fd, key, &value, BPF_ANY) ? -errno : 0;
}

static const char *unified_mount(void)
{
    struct statfs fs;
    if (statfs("/sys/fs/cgroup", &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
        return "/sys/fs/cgroup";
    return "/sys/fs/cgroup/unified";
}

static int find_cgroup(const char *path, uint64_t *ret_id, struct kiln_err *err)
{
    const char *mount = unified_mount();
    char full[4096];
    struct stat st;
    struct statfs fs;
    bool is_full = strncmp(path, "/sys/fs/cgroup", strlen("/sys/fs/cgroup")) == 0;
    int n = snprintf(full, sizeof(full), "%s%s%s", is_full ? "" : mount,
                     is_full || path[0] == '/' ? "" : "/", path);
    if (n < 0 || (size_t)n >= sizeof(full))
        return kiln_err_set(err, -ENAMETOOLONG, NULL, "the path of the cgroup is too long");
    if (stat(full, &st) != 0 || !S_ISDIR(st.st_mode))
        return kiln_err_set(err, -EINVAL, full, "there is no such cgroup");
    if (statfs(full, &fs) != 0 || fs.f_type != CGROUP2_SUPER_MAGIC)
        return kiln_err_set(err, -EINVAL, full,
                            "only cgroups of the unified hierarchy (version 2) can be selected");
    *ret_id = st.st_ino;
    return 0;
}

static int put_cgroups(struct kiln_kernel *kernel, const struct kiln_host_filter *filter,
                       struct kiln_err *err)
{
    for (uint32_t i = 0; i < filter->n_cgroups; i++) {
        uint64_t id;
        int rc = find_cgroup(filter->cgroups[i], &id, err);
        if (rc < 0)
            return rc;
        struct kiln_filter_key key = key_of(KILN_FILTER_CGROUP, id);
        rc = put(kernel, &key);
        if (rc < 0)
            return kiln_err_set(err, rc, NULL, "the filter is full");
    }
    return 0;
}

static int put_pids(struct kiln_kernel *kernel, const struct kiln_host_filter *filter)
{
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < filter->n_pids; i++) {
        struct kiln_filter_key key = key_of(KILN_FILTER_PID, filter->pids[i]);
        rc = put(kernel, &key);
    }
    return rc;
}

static int put_comms(struct kiln_kernel *kernel, const struct kiln_host_filter *filter)
{
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < filter->n_comms; i++) {
        struct kiln_filter_key key = key_of(KILN_FILTER_COMM, 0);
        memcpy(key.comm, filter->comms[i], strnlen(filter->comms[i], KILN_COMM_LEN - 1));
        rc = put(kernel, &key);
    }
    return rc;
}

int kiln_kernel_set_filter(struct kiln_kernel *kernel, const struct kiln_host_filter *filter,
                           struct kiln_err *err)
{
    struct kiln_settings *settings = &kernel->settings;
    if (!filter)
        return 0;
    settings->filter_exclude = filter->exclude;
    settings->filter_kinds = (filter->n_pids ? 1U << KILN_FILTER_PID : 0) |
                             (filter->n_cgroups ? 1U << KILN_FILTER_CGROUP : 0) |
                             (filter->n_comms ? 1U << KILN_FILTER_COMM : 0);
    int rc = put_pids(kernel, filter);
    if (rc == 0)
        rc = put_comms(kernel, filter);
    if (rc < 0)
        return kiln_err_set(err, rc, NULL, "no more than %d things can be selected",
                            KILN_FILTERS_MAX);
    return put_cgroups(kernel, filter, err);
}
