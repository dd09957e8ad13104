/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A compiler that writes a jitdump maps its first page as code, so that `perf record` sees where it
 * is: in /tmp, in the current folder, in ~/.debug.  Here, too, that mapping tells which file it is,
 * and it is opened as any that is mapped (process_files.c): it is the one that the process has,
 * whoever may write where it lies.
 */
#include <string.h>

#include "host/process_int.h"

/* ".../jit-1234.dump" */
static bool is_dump(const struct kiln_map *map)
{
    const char *slash = map->kind == KILN_MAP_FILE ? strrchr(map->path, '/') : NULL;

    return slash && strncmp(slash, "/jit-", 5) == 0 &&
           kiln_str_ends(kiln_str_of(slash), KILN_STR(".dump"));
}

static uint64_t find_dump(const struct kiln_map_set *set)
{
    for (uint32_t i = 0; i < set->n; i++) {
        if (is_dump(&set->maps[i]))
            return set->maps[i].start;
    }
    return 0;
}

struct kiln_object *kiln_process_jitdump(struct kiln_processes *all, struct kiln_process *process)
{
    struct kiln_proc *p = kiln_proc_of(process);
    struct kiln_map *map;

    if (!p->set)
        return NULL;
    if (p->dump_version != p->set->version) {
        p->dump_start = find_dump(p->set);
        p->dump_version = p->set->version;
    }
    map = p->dump_start ? kiln_map_set_find(p->set, p->dump_start) : NULL;
    if (!map)
        return NULL;
    kiln_proc_open_map(all, p, map);
    map = kiln_map_set_find(p->set, p->dump_start);
    kiln_proc_sync(p);
    return map && map->object && map->object->kind == KILN_OBJECT_OTHER ? map->object : NULL;
}
