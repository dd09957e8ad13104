/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is read of a process in /proc: its mappings.  Lines of /proc/PID/maps: host/procfs.c.
 *
 * The folder of a process is opened first and everything is read beneath it: a descriptor of
 * /proc/PID stays with its process, and errs with ESRCH when that is gone, so that a pid used again
 * meanwhile is not taken for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "host/process_int.h"

enum { MAPS_TEXT_MAX = 64 << 20, FOREBEARS_MAX = 8 };

static bool starts(struct kiln_str s, const char *prefix)
{
    return kiln_str_starts(s, kiln_str_of(prefix));
}

enum kiln_map_kind kiln_map_kind_of(struct kiln_str name)
{
    static const char *const made[] = {"//anon", "/dev/zero", "/SYSV", "/[", "/anon_hugepage"};

    if (kiln_str_eq(name, KILN_STR("[vdso]")))
        return KILN_MAP_VDSO;
    if (kiln_str_eq(name, KILN_STR("[vsyscall]")))
        return KILN_MAP_VSYSCALL;
    if (!name.len || *name.ptr != '/')
        return KILN_MAP_ANONYMOUS;
    for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++)
        if (starts(name, made[i]))
            return KILN_MAP_ANONYMOUS;
    return KILN_MAP_FILE;
}

/* ---- mappings ---- */

struct reading {
    struct kiln_map_shelf *shelf;
    struct kiln_map_set *set;
    uint64_t end; /* of the last mapping: they must rise */
    int r;
};

static bool add_line(void *context, struct kiln_str line)
{
    struct reading *reading = context;
    struct kiln_procfs_map in;
    struct kiln_map map = {0};
    char path[KILN_PROCFS_PATH_MAX + 1];

    if (kiln_procfs_parse_map(line, &in) < 0)
        return true;
    if (!reading->set->context && kiln_process_context_is(in.path))
        reading->set->context = in.start;
    if (!in.executable || in.start < reading->end)
        return true;
    reading->end = in.end;
    map.start = in.start;
    map.end = in.end;
    map.offset = in.offset;
    map.inode = in.inode;
    map.device = makedev(in.major, in.minor);
    map.kind = kiln_map_kind_of(in.path);
    if (map.kind == KILN_MAP_ANONYMOUS || !kiln_procfs_unescape(in.path, path, sizeof(path)))
        path[0] = '\0';
    map.path = kiln_paths_get(&reading->shelf->paths, kiln_procfs_undelete(kiln_str_of(path)));
    reading->r = map.path ? kiln_map_set_add(reading->shelf, &reading->set, &map) : -ENOMEM;
    if (reading->r == KILN_E_LIMIT && reading->set->n >= KILN_MAPS_MAX) {
        reading->r = 0;
        return false;
    }
    return reading->r == 0;
}

int kiln_map_set_read(struct kiln_map_shelf *shelf, int dir, struct kiln_map_set **ret_set)
{
    struct reading reading = {.shelf = shelf, .set = kiln_map_set_new(shelf)};
    int r = -ENOMEM;

    if (reading.set)
        r = kiln_procfs_lines(dir, "maps", MAPS_TEXT_MAX, add_line, &reading);
    if (r == KILN_E_LIMIT)
        r = 0; /* what was read is better than nothing */
    if (r == 0)
        r = reading.r;
    if (r < 0) {
        kiln_map_set_unref(shelf, reading.set);
        return r;
    }
    *ret_set = reading.set;
    return 0;
}

/* ---- its folder ---- */

static int open_folder(struct kiln_processes *all, uint32_t pid)
{
    char name[16];

    snprintf(name, sizeof(name), "%u", pid);
    return openat(all->proc, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int kiln_proc_stat(struct kiln_processes *all, uint32_t pid, struct kiln_procfs_stat *ret_stat)
{
    int dir = open_folder(all, pid), r;

    if (dir < 0)
        return -errno;
    r = kiln_procfs_stat(dir, ret_stat);
    close(dir);
    return r;
}

/* Where the first thread has ended, only the others still have memory, a root, an executable. */
static int folder_of_thread(int dir, uint32_t tid)
{
    char name[24];
    int thread;

    snprintf(name, sizeof(name), "task/%u", tid);
    thread = openat(dir, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    close(dir);
    return thread;
}

void kiln_proc_shut(struct kiln_processes *all)
{
    if (all->opened)
        close(all->folder);
    all->opened = NULL;
}

/*
 * Whether events tell all that the kernel could: they say when a process begins and ends, within a
 * second, in which its pid is not used again.
 */
static bool is_told(const struct kiln_processes *all, const struct kiln_proc *p)
{
    return p->counted == all->lost + 1 && p->parent_pid && !p->leader_gone;
}

static int find_folder(struct kiln_processes *all, struct kiln_proc *p, int *ret_dir)
{
    struct kiln_procfs_stat stat;
    int dir = p->pub.gone ? -1 : open_folder(all, p->pub.pid);

    if (dir < 0)
        return !p->pub.gone && (errno == EMFILE || errno == ENFILE) ? -errno : -ESRCH;
    if (is_told(all, p)) {
        *ret_dir = dir;
        return 0;
    }
    if (kiln_procfs_stat(dir, &stat) < 0 || !kiln_procfs_began(&stat, p->pub.start_ns)) {
        close(dir);
        return -ESRCH;
    }
    if (stat.state == 'Z' && stat.threads > 1 && p->tid)
        dir = folder_of_thread(dir, p->tid);
    if (dir < 0)
        return -ESRCH;
    if (!p->parent_pid)
        p->parent_pid = stat.parent_pid;
    *ret_dir = dir;
    return 0;
}

int kiln_proc_open(struct kiln_processes *all, struct kiln_proc *p, int *ret_dir)
{
    int r;

    if (all->opened != p || p->pub.gone) {
        kiln_proc_shut(all);
        r = find_folder(all, p, &all->folder);
        if (r < 0)
            return r;
        all->opened = p;
    }
    *ret_dir = all->folder;
    return 0;
}

struct kiln_proc *kiln_proc_twin(struct kiln_processes *all, const struct kiln_proc *p)
{
    uint32_t pid = p->parent_pid;

    for (int i = 0; i < FOREBEARS_MAX && pid; i++) {
        struct kiln_proc *parent = kiln_proc_find(all, pid);

        if (!parent || parent->image != p->image)
            return NULL;
        if (!parent->pub.gone)
            return parent;
        pid = parent->parent_pid;
    }
    return NULL;
}

/* Reads a process' own; what is known of mappings that are still there is kept. */
static int read_own(struct kiln_processes *all, struct kiln_proc *p, struct kiln_map_set **ret_set)
{
    struct kiln_map_set *fresh;
    int dir, r = kiln_proc_open(all, p, &dir);

    if (r < 0)
        return r;
    r = kiln_map_set_read(&all->shelf, dir, &fresh);
    if (r == KILN_E_LIMIT) {
        kiln_proc_make_room(all, p);
        r = kiln_map_set_read(&all->shelf, dir, &fresh);
    }
    if (r < 0)
        return r;
    kiln_metric_add(all->metric_reads, 1);
    *ret_set = fresh;
    return 0;
}

static void replace(struct kiln_processes *all, struct kiln_proc *p, struct kiln_map_set *fresh)
{
    if (p->set && !p->set->n_pending && kiln_map_set_inherit(fresh, p->set))
        fresh->version = p->set->version;
    else
        kiln_proc_void(all, p);
    kiln_map_set_unref(&all->shelf, p->set);
    p->set = fresh;
}

static int64_t exe_of(struct kiln_processes *all, uint32_t pid, char *to, size_t size)
{
    char name[24];

    snprintf(name, sizeof(name), "%u/exe", pid);
    return kiln_procfs_link(all->proc, name, to, size);
}

void kiln_proc_learn_exe(struct kiln_processes *all, struct kiln_proc *p)
{
    struct kiln_proc *twin = p->exe ? NULL : kiln_proc_twin(all, p);
    char path[KILN_PROCFS_PATH_MAX + 1];

    if (twin && twin->exe)
        p->exe = kiln_path_ref(twin->exe);
    else if (twin && exe_of(all, twin->pub.pid, path, sizeof(path)) > 0)
        p->exe = kiln_paths_get(&all->shelf.paths, kiln_procfs_undelete(kiln_str_of(path)));
}

/* A child may have run another program since the sample was taken: its parent seldom has. */
static bool has_moved_on(struct kiln_processes *all, const struct kiln_proc *p,
                         const struct kiln_proc *twin)
{
    char mine[KILN_PROCFS_PATH_MAX + 1], other[KILN_PROCFS_PATH_MAX + 1];

    return exe_of(all, p->pub.pid, mine, sizeof(mine)) > 0 &&
           exe_of(all, twin->pub.pid, other, sizeof(other)) > 0 && strcmp(mine, other) != 0;
}

/* What the one has that it was forked from, and over that what events told of itself. */
static void take_from(struct kiln_processes *all, struct kiln_proc *p, struct kiln_proc *twin)
{
    struct kiln_map_set *own = p->set, *fresh;
    int r = 0;

    if (twin->unread && read_own(all, twin, &fresh) == 0) {
        replace(all, twin, fresh);
        twin->unread = false;
    }
    if (twin->unread || !twin->set || kiln_map_set_settle(&all->shelf, twin->set) < 0)
        return;
    kiln_proc_sync(twin);
    p->set = twin->set;
    p->set->refs++;
    for (uint32_t i = 0; own && r == 0 && i < own->n + own->n_pending; i++) {
        struct kiln_map map = own->maps[i];

        map.object = NULL;
        map.tried = false;
        kiln_path_ref(map.path);
        r = kiln_map_set_add(&all->shelf, &p->set, &map);
    }
    kiln_map_set_unref(&all->shelf, own);
}

static bool may_work_later(int r)
{
    return r == -ENOMEM || r == -EMFILE || r == -ENFILE || r == KILN_E_LIMIT;
}

void kiln_proc_read_maps(struct kiln_processes *all, struct kiln_proc *p)
{
    struct kiln_proc *twin = p->unread ? kiln_proc_twin(all, p) : NULL;
    struct kiln_map_set *fresh = NULL;
    int r = read_own(all, p, &fresh);

    p->read_ns = kiln_clock_mono_ns();
    p->lost = all->lost;
    if (may_work_later(r))
        return;
    if (twin && (r < 0 || has_moved_on(all, p, twin))) {
        kiln_map_set_unref(&all->shelf, fresh);
        take_from(all, p, twin);
    } else if (r == 0) {
        replace(all, p, fresh);
    }
    p->no_files = r < 0;
    p->unread = false; /* else there is no more to learn */
}
