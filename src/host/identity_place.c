/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a process runs, by /proc/PID/cgroup.  What one process says there is true of all that are
 * in the same control groups, which samples tell (host/bpf/who.h): it is kept for a minute, for a
 * control group may be given another name.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/hash.h"
#include "host/identity_int.h"

enum { KEPT = 64, ROOT = 1 /* inode of the unified hierarchy's root: nobody is anywhere else */ };
#define KEEP_NS (60 * KILN_NS_PER_S)

struct kept {
    uint64_t cgroups, until_ns;
    bool is_sure;
    struct kiln_place place;
    char path[];
};

struct kiln_places {
    struct kept *kept[KEPT];
};

int kiln_places_new(struct kiln_places **ret_places)
{
    *ret_places = kiln_calloc(1, sizeof(**ret_places));
    return *ret_places ? 0 : -ENOMEM;
}

void kiln_places_free(struct kiln_places *places)
{
    for (int i = 0; places && i < KEPT; i++)
        kiln_free(places->kept[i]);
    kiln_free(places);
}

static struct kept **slot_of(struct kiln_places *places, uint64_t cgroups)
{
    return &places->kept[kiln_hash_mix(cgroups, 0) % KEPT];
}

bool kiln_places_get(struct kiln_places *places, uint64_t cgroups, struct kiln_facts *facts)
{
    const struct kept *kept = *slot_of(places, cgroups);

    if (!cgroups || !kept || !kept->is_sure || kept->cgroups != cgroups ||
        kiln_clock_mono_ns() >= kept->until_ns)
        return false;
    facts->place = kept->place;
    memcpy(facts->cgroup, kept->path, strlen(kept->path) + 1);
    return true;
}

/* Whether the folder of a path of the unified hierarchy is that group's. */
static bool is_of(const char *path, uint64_t inode)
{
    static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    char full[KILN_PROCFS_PATH_MAX + 32];
    struct stat st;

    for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
        snprintf(full, sizeof(full), "%s%s", mounts[i], path);
        if (stat(full, &st) == 0 && st.st_ino == inode)
            return true;
    }
    return false;
}

/* Without the unified hierarchy, two processes that say the same are believed. */
static bool is_said_again(const struct kept *kept, uint64_t cgroups, const char *path)
{
    return kept && kept->cgroups == cgroups && strcmp(kept->path, path) == 0;
}

/* Without memory it is only not kept. */
static void keep(struct kiln_places *places, const struct kiln_whereabouts *sampled,
                 const struct kiln_facts *facts)
{
    struct kept **slot = slot_of(places, sampled->cgroups), *kept;
    size_t size = strlen(facts->cgroup) + 1;

    kept = kiln_malloc(sizeof(*kept) + size);
    if (!kept)
        return;
    kept->cgroups = sampled->cgroups;
    kept->until_ns = kiln_clock_mono_ns() + KEEP_NS;
    kept->is_sure =
        is_of(facts->cgroup, sampled->unified) ||
        (sampled->unified == ROOT && is_said_again(*slot, sampled->cgroups, facts->cgroup));
    kept->place = facts->place;
    memcpy(kept->path, facts->cgroup, size);
    kiln_free(*slot);
    *slot = kept;
}

void kiln_places_read(struct kiln_places *places, int dir, const struct kiln_whereabouts *sampled,
                      struct kiln_facts *facts)
{
    char text[KILN_PROCFS_TEXT_MAX];
    int64_t n = kiln_procfs_read(dir, "cgroup", text, sizeof(text));
    struct kiln_str all = {text, n > 0 ? (size_t)n : 0}, path = kiln_procfs_parse_cgroup(all);

    if (path.len < sizeof(facts->cgroup) && path.len)
        memcpy(facts->cgroup, path.ptr, path.len);
    kiln_place_parse(all, &facts->place);
    if (n > 0 && sampled->cgroups)
        keep(places, sampled, facts);
}
