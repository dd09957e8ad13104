/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the files that are mapped.
 *
 * /proc/PID/map_files/START-END is the mapped file itself, deleted, replaced, or never named
 * (memfd).  It needs a privilege, and the mapping just so; else the path is opened beneath the root
 * of the process, without leaving it by links, and is only taken if its build id or inode is the
 * one that the kernel told of.  Where the process is gone, or dead and not yet waited for, the same
 * is tried among the objects that are known, beneath the root of its parent, and the agent's own.
 *
 * None of that is done for a path and a build id that were found before beneath the same root,
 * where samples tell which that is (struct kiln_who): most of what short processes map.  Beneath
 * another root a file of this path and build id may be another's forgery.
 *
 * Files that another program or machine serves (host/mounts.h) are opened, read and closed by
 * others (host/aside.h): what does not answer in time is not known, and nobody waits for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <unistd.h>

#include "base/beneath.h"
#include "host/aside.h"
#include "host/mounts.h"
#include "host/process_int.h"
#include "symbol/elf.h"

/* ---- taking ---- */

enum via { VIA_MAPPING, VIA_ROOT, VIA_OTHER_ROOT };

#define OWN_ROOT 1u /* what samples tell of roots is never that */

/* The link that stands for the mapping names its path: for file systems with several numbers. */
static bool link_agrees(int dir, const char *name, const struct kiln_map *map)
{
    char path[KILN_PROCFS_PATH_MAX + 1];

    return kiln_procfs_link(dir, name, path, sizeof(path)) >= 0 &&
           kiln_str_eq(kiln_procfs_undelete(kiln_str_of(path)), kiln_str_of(map->path));
}

static struct kiln_object_hint hint_of(const struct kiln_map *map)
{
    return (struct kiln_object_hint){map->path, map->build_id, map->build_id_len, map->inode};
}

/* A file that was found. */
struct reached {
    int at;      /* only named yet; open, where it is served */
    bool served; /* by somebody who may not answer */
    struct stat st;
};

/*
 * Finds a file from `from` on, which is mapped under a path, by a process whose folder in /proc is
 * `dir` and that has this root.  Negative: it is not there.
 */
static int reach(struct kiln_processes *all, const struct kiln_map *map, int dir, uint64_t root,
                 int from, const char *name, uint64_t resolve, struct reached *ret)
{
    ret->served = kiln_mounts_served(all->mounts, dir, root, map->path);
    if (ret->served)
        ret->at = kiln_aside_open(all->aside, from, name, resolve, &ret->st);
    else
        ret->at = kiln_reach_beneath(from, name, resolve, &ret->st);
    return ret->at;
}

/* The object of a file that was reached; most are open already.  Lets go of what was reached. */
static struct kiln_object *object_of(struct kiln_processes *all, const char *path,
                                     const struct reached *file)
{
    struct kiln_object *object;
    int fd;

    if (file->served)
        return kiln_objects_take_aside(all->objects, all->aside, file->at, path, &file->st,
                                       &object) < 0
                   ? NULL
                   : object;
    object = kiln_objects_get(all->objects, &file->st);
    if (object) {
        close(file->at);
        return object;
    }
    fd = kiln_open_reached(file->at);
    return fd < 0 || kiln_objects_take(all->objects, fd, path, &object) < 0 ? NULL : object;
}

/* The object of a file that was reached, if that is what is mapped; lets go of the file. */
static struct kiln_object *take(struct kiln_processes *all, const struct kiln_map *map,
                                const struct reached *file, enum via via)
{
    struct kiln_object_hint hint = hint_of(map);
    struct kiln_object *object = object_of(all, map->path, file);

    if (!object)
        return NULL;
    if (kiln_object_agrees(object, &hint)) {
        if (via != VIA_OTHER_ROOT || map->build_id_len || map->device == file->st.st_dev)
            return object;
    } else if (via == VIA_MAPPING && !map->build_id_len) {
        return object; /* the caller looks at the link */
    }
    kiln_object_unref(object);
    return NULL;
}

static struct kiln_object *by_mapping(struct kiln_processes *all, int dir, uint64_t root,
                                      const struct kiln_map *map)
{
    struct kiln_object_hint hint = hint_of(map);
    struct kiln_object *object;
    struct reached file;
    char name[64];

    snprintf(name, sizeof(name), "map_files/%llx-%llx", (unsigned long long)map->start,
             (unsigned long long)map->end);
    object = reach(all, map, dir, root, dir, name, 0, &file) < 0
                 ? NULL
                 : take(all, map, &file, VIA_MAPPING);
    if (!object || kiln_object_agrees(object, &hint) || link_agrees(dir, name, map))
        return object;
    kiln_object_unref(object);
    return NULL;
}

static struct kiln_object *by_root(struct kiln_processes *all, int dir, uint64_t root_id,
                                   const struct kiln_map *map, enum via via)
{
    const uint64_t resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
    int root = openat(dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC), at;
    struct reached file;

    if (root < 0)
        return NULL;
    at = reach(all, map, dir, root_id, root, map->path, resolve, &file);
    close(root);
    return at < 0 ? NULL : take(all, map, &file, via);
}

/* Of a process that has no root any more: where its parent lives, and where the agent does. */
static struct kiln_object *by_others(struct kiln_processes *all, const struct kiln_proc *p,
                                     const struct kiln_map *map)
{
    const struct kiln_proc *parent = kiln_proc_find(all, p->parent_pid);
    const uint64_t roots[] = {parent ? parent->who.root : 0, OWN_ROOT};
    struct kiln_object *object = NULL;
    char name[16];

    snprintf(name, sizeof(name), "%u", p->parent_pid);
    for (int i = 0; i < 2 && !object; i++) {
        int dir = openat(all->proc, i ? "self" : name, O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (dir < 0)
            continue;
        object = by_root(all, dir, roots[i], map, VIA_OTHER_ROOT);
        close(dir);
    }
    return object;
}

/* Of a process that is there. */
static struct kiln_object *by_process(struct kiln_processes *all, const struct kiln_proc *p,
                                      int dir, const struct kiln_map *map)
{
    struct kiln_object *object = by_mapping(all, dir, p->who.root, map);

    if (!object)
        object = by_root(all, dir, p->who.root, map, VIA_ROOT);
    if (object)
        object->root = p->who.root;
    return object;
}

static struct kiln_object *find_object(struct kiln_processes *all, struct kiln_proc *p, int dir,
                                       const struct kiln_map *map)
{
    struct kiln_object_hint hint = hint_of(map);
    struct kiln_object *object = dir >= 0 ? by_process(all, p, dir, map) : NULL;

    if (!object)
        object = kiln_objects_known(all->objects, &hint);
    if (!object)
        object = by_others(all, p, map);
    return object;
}

/* ---- of a mapping ---- */

/* Where no segment with code has the offset, one without may: a loader of its own. */
static int address_of(const struct kiln_object *object, uint64_t offset, uint64_t *ret_address)
{
    const struct kiln_elf *elf = object->elf;

    if (!elf) {
        *ret_address = offset;
        return 0;
    }
    if (kiln_object_address(object, offset, ret_address) == 0)
        return 0;
    for (uint32_t i = 0; i < elf->n_segments; i++) {
        const struct kiln_elf_segment *s = &elf->segments[i];

        if (s->type == 1 /* PT_LOAD */ && offset >= s->offset &&
            offset - s->offset < s->file_size) {
            *ret_address = s->address + (offset - s->offset);
            return 0;
        }
    }
    return -ENOENT;
}

/* What was found before where this one looks, without looking; NULL. */
static struct kiln_object *found_before(struct kiln_processes *all, const struct kiln_proc *p,
                                        const struct kiln_map *map)
{
    struct kiln_object_hint hint = hint_of(map);

    return map->kind == KILN_MAP_FILE ? kiln_objects_beneath(all->objects, &hint, p->who.root)
                                      : NULL;
}

/* Gives the mapping its object; takes it. */
static void attach(struct kiln_processes *all, struct kiln_map_set *set, struct kiln_map *map,
                   struct kiln_object *object)
{
    uint64_t address;

    if (object->kind == KILN_OBJECT_OTHER && strncmp(map->path, "/memfd:", 7) == 0) {
        map->kind = KILN_MAP_ANONYMOUS;
        kiln_object_unref(object);
    } else if (address_of(object, map->offset, &address) < 0) {
        kiln_object_unref(object);
    } else {
        map->object = object;
        map->bias = map->start - address;
    }
    set->version = ++all->shelf.versions;
}

/* The file was closed meanwhile: any process that maps it may open it again. */
static void open_again(struct kiln_processes *all, struct kiln_proc *p, const struct kiln_map *map)
{
    struct kiln_object *object;
    int dir;

    if (kiln_proc_open(all, p, &dir) < 0)
        return;
    object = find_object(all, p, dir, map);
    kiln_object_unref(object);
}

void kiln_proc_open_map(struct kiln_processes *all, struct kiln_proc *p, struct kiln_map *map)
{
    struct kiln_object *object;
    uint64_t start = map->start;
    int dir = -1;

    if (map->object) {
        if (!kiln_objects_use(all->objects, map->object))
            open_again(all, p, map);
        return;
    }
    if (map->tried || map->kind == KILN_MAP_ANONYMOUS || map->kind == KILN_MAP_VSYSCALL)
        return;
    object = found_before(all, p, map);
    if (object) {
        map->tried = true;
        attach(all, p->set, map, object);
        return;
    }
    if (!p->no_files && kiln_proc_open(all, p, &dir) < 0)
        p->no_files = true;
    /* That it cannot be had here shall not be said of those that share the mappings. */
    if (p->no_files && kiln_map_set_own(&all->shelf, &p->set) == 0)
        map = kiln_map_set_find(p->set, start);
    object = map->kind == KILN_MAP_VDSO ? kiln_objects_vdso(all->objects)
                                        : find_object(all, p, dir, map);
    map->tried = true;
    if (object)
        attach(all, p->set, map, object);
    else
        kiln_metric_add(all->metric_unopened, 1);
}
