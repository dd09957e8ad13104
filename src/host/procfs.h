/* SPDX-License-Identifier: Apache-2.0 */
/*
 * procfs - texts of /proc: reading them with a limit, and what their lines say.
 *
 * Processes write parts of these texts themselves (their names, paths of files, their environment):
 * the parsers take any bytes.
 *
 * Threads: no state.
 */
#ifndef KILN_HOST_PROCFS_H
#define KILN_HOST_PROCFS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/str.h"

enum {
    KILN_PROCFS_PATH_MAX = 4096, /* longer paths are none */
    KILN_PROCFS_TEXT_MAX = 8192, /* of stat, status, cgroup */
};

/* A line of /proc/PID/maps. */
struct kiln_procfs_map {
    uint64_t start, end, offset, inode;
    uint32_t major, minor;
    bool executable;
    struct kiln_str path; /* as it stands there: "\012" for a newline; empty: no file */
};
/* KILN_E_MALFORMED: no such line. */
KILN_CHECK int kiln_procfs_parse_map(struct kiln_str line, struct kiln_procfs_map *ret_map);
/* The path as the file system has it, with NUL.  False: it does not fit. */
bool kiln_procfs_unescape(struct kiln_str path, char *to, size_t size);
/* A line of /proc/PID/mountinfo. */
struct kiln_procfs_mount {
    struct kiln_str point; /* as it stands there: "\040" for a space */
    struct kiln_str type;  /* ext4, fuse.sshfs */
};
KILN_CHECK int kiln_procfs_parse_mount(struct kiln_str line, struct kiln_procfs_mount *ret_mount);
/* Without " (deleted)" at its end. */
struct kiln_str kiln_procfs_undelete(struct kiln_str path);

struct kiln_procfs_stat {
    char state; /* 'R', 'Z' */
    uint32_t parent_pid;
    uint32_t threads;
    uint64_t start_ticks; /* since the machine was started */
};
KILN_CHECK int kiln_procfs_parse_stat(struct kiln_str text, struct kiln_procfs_stat *ret_stat);
/* That of the process whose folder `dir` is. */
KILN_CHECK int kiln_procfs_stat(int dir, struct kiln_procfs_stat *ret_stat);
/* Whether it began at this time of CLOCK_BOOTTIME, as far as ticks tell; 0: at any. */
bool kiln_procfs_began(const struct kiln_procfs_stat *stat, uint64_t start_ns);

struct kiln_procfs_status {
    uint32_t parent_pid;
    uint32_t uid;    /* effective; UINT32_MAX: not said */
    uint32_t ns_pid; /* in the innermost PID namespace; 0: not said */
};
void kiln_procfs_parse_status(struct kiln_str text, struct kiln_procfs_status *ret_status);

/*
 * The control group: that of the unified hierarchy, or where that is the root, the longest of the
 * others.  Empty: none.
 */
struct kiln_str kiln_procfs_parse_cgroup(struct kiln_str text);

/* The next "NAME=value" of an environment whose name is one of `names`; ptr NULL: no more. */
struct kiln_str kiln_procfs_next_env(struct kiln_str *rest, const char *const *names, uint32_t n);

/*
 * Reads at most `size` bytes of a file beneath a directory, one that the kernel shows in one piece
 * (not maps).  Returns how many, or -errno.
 */
KILN_CHECK int64_t kiln_procfs_read(int dir, const char *name, void *to, size_t size);
/* What a link says, with NUL; -errno, -ENAMETOOLONG. */
KILN_CHECK int64_t kiln_procfs_link(int dir, const char *name, char *to, size_t size);

/*
 * Shows the lines of a file one after the other, without reading more than `max` bytes; a line that
 * does not fit into 20 KiB is left out.  Ends early where `visit` is false.
 */
KILN_CHECK int kiln_procfs_lines(int dir, const char *name, uint64_t max,
                                 bool (*visit)(void *context, struct kiln_str line), void *context);

/* The number behind the line "KEY:" of a file, of base 10 or 16.  -ENOENT: there is none. */
KILN_CHECK int kiln_procfs_number(const char *path, const char *key, int base, uint64_t *ret);

#endif /* KILN_HOST_PROCFS_H */
