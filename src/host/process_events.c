/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events change the table in the order in which they happened.
 *
 * An exec is told by COMM, then come the mappings of the new program: the executable itself, the
 * interpreter (ld.so), the vDSO.  A fork is told before the child runs.  The end of a process is
 * that of its last thread, which need not be the first one; threads are counted from the fork or
 * exec on, and where that was not seen, /proc is asked when the count comes to nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/sysmacros.h>

#include "base/err.h"
#include "host/process_int.h"

static struct kiln_proc *find_or_new(struct kiln_processes *all, uint32_t pid)
{
    struct kiln_proc *p = kiln_proc_find(all, pid);

    return p ? p : kiln_proc_new(all, pid);
}

static void set_comm(struct kiln_proc *p, const char *name)
{
    snprintf(p->comm, sizeof(p->comm), "%s", name ? name : "");
}

/* ---- MAP ---- */

static int map_of(struct kiln_processes *all, const struct kiln_event *event,
                  struct kiln_map *ret_map)
{
    struct kiln_str name = kiln_str_of(event->name ? event->name : "");
    uint64_t end = event->start + event->length;

    *ret_map = (struct kiln_map){
        .start = event->start,
        .end = end < event->start ? UINT64_MAX : end,
        .offset = event->offset,
        .kind = kiln_map_kind_of(name),
        .device = makedev(event->major, event->minor),
        .inode = event->inode,
    };
    if (event->build_id_len && event->build_id_len <= KILN_BUILD_ID_MAX) {
        memcpy(ret_map->build_id, event->build_id, event->build_id_len);
        ret_map->build_id_len = event->build_id_len;
    }
    if (ret_map->kind == KILN_MAP_ANONYMOUS)
        name = KILN_STR("");
    ret_map->path = kiln_paths_get(&all->shelf.paths, kiln_procfs_undelete(name));
    return ret_map->path ? 0 : -ENOMEM;
}

static void on_map(struct kiln_processes *all, const struct kiln_event *event)
{
    struct kiln_proc *p = find_or_new(all, event->pid);
    struct kiln_map map;
    int r;

    if (!p)
        return;
    r = map_of(all, event, &map);
    if (r == 0) {
        if (p->wants_exe && map.kind == KILN_MAP_FILE) {
            p->exe = kiln_path_ref(map.path);
            p->wants_exe = false;
        }
        if (p->pub.installed_version && p->set && kiln_map_set_clashes(p->set, &map))
            kiln_proc_void(all, p);
        r = kiln_map_set_add(&all->shelf, &p->set, &map);
    }
    if (r == KILN_E_LIMIT)
        kiln_proc_make_room(all, p);
    if (r < 0)
        kiln_proc_forget_maps(all, p);
    kiln_proc_sync(p);
}

/* ---- COMM ---- */

static void on_comm(struct kiln_processes *all, const struct kiln_event *event)
{
    struct kiln_proc *p =
        event->exec ? find_or_new(all, event->pid) : kiln_proc_find(all, event->pid);

    if (!p)
        return;
    if (event->exec) {
        if (p->pub.gone)
            kiln_proc_back(all, p);
        kiln_proc_renew(all, p);
        p->unread = false; /* its mappings follow */
        p->wants_exe = true;
        p->exec_told = true;
        p->leader_gone = false;
        p->threads = 1;
        p->counted = all->lost + 1;
        p->lost = all->lost;
    }
    if (event->exec || event->pid == event->tid)
        set_comm(p, event->name);
}

/* ---- FORK ---- */

/* The child has what the parent has, until one of them changes it. */
static void inherit(struct kiln_processes *all, struct kiln_proc *child, struct kiln_proc *parent)
{
    memcpy(child->comm, parent->comm, sizeof(child->comm));
    child->image = parent->image;
    child->exe = parent->exe ? kiln_path_ref(parent->exe) : NULL;
    child->wants_exe = parent->wants_exe;
    child->cgroup = parent->cgroup;
    child->lost = parent->lost;
    child->unread = parent->unread;
    if (!parent->set)
        return;
    if (kiln_map_set_settle(&all->shelf, parent->set) < 0) {
        child->unread = true;
        return;
    }
    child->set = parent->set;
    child->set->refs++;
    kiln_proc_sync(parent);
    kiln_proc_sync(child);
}

static void on_fork(struct kiln_processes *all, const struct kiln_event *event)
{
    struct kiln_proc *parent, *child;

    if (event->pid == event->ppid) {
        child = kiln_proc_find(all, event->pid);
        if (child && !child->pub.gone)
            child->threads++;
        return;
    }
    child = kiln_proc_new(all, event->pid);
    if (!child)
        return;
    parent = kiln_proc_find(all, event->ppid);
    child->parent_pid = event->ppid;
    child->counted = all->lost + 1;
    if (parent)
        inherit(all, child, parent);
}

/* ---- EXIT ---- */

static bool is_over(struct kiln_processes *all, struct kiln_proc *p)
{
    struct kiln_procfs_stat stat;

    if (p->counted == all->lost + 1 || kiln_proc_stat(all, p->pub.pid, &stat) < 0)
        return true;
    if ((stat.state == 'Z' || stat.state == 'X') && stat.threads <= 1)
        return true;
    p->threads = stat.threads > 1 ? stat.threads - 1 : 1;
    return false;
}

static void on_exit_of(struct kiln_processes *all, const struct kiln_event *event)
{
    struct kiln_proc *p = kiln_proc_find(all, event->pid);

    if (!p || p->pub.gone)
        return;
    if (p->threads)
        p->threads--;
    if (event->tid == event->pid)
        p->leader_gone = true;
    if (p->leader_gone && !p->threads && is_over(all, p))
        kiln_proc_gone(all, p);
}

void kiln_processes_apply(struct kiln_processes *all, const struct kiln_event *event)
{
    bool someone = event->pid && event->pid <= INT32_MAX; /* of this PID namespace */

    if (event->kind == KILN_EVENT_LOST) {
        all->lost++;
        all->unproven = all->n;
    } else if (someone && event->kind == KILN_EVENT_MAP) {
        on_map(all, event);
    } else if (someone && event->kind == KILN_EVENT_COMM) {
        on_comm(all, event);
    } else if (someone && event->kind == KILN_EVENT_FORK) {
        on_fork(all, event);
    } else if (someone && event->kind == KILN_EVENT_EXIT) {
        on_exit_of(all, event);
    }
}
