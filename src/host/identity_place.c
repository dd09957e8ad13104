/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a process runs, by /proc/PID/cgroup.  What one process says there is true of all that are
 * in the same control groups, which samples tell (host/bpf/who.h): it is kept for a minute, for a
 * control group may be given another name.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/hash.h"
#include "host/identity_int.h"

enum { KEPT = 64 };
#define KEEP_NS (60 * KILN_NS_PER_S)

struct kept {
    uint64_t cgroups, until_ns;
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

    if (!cgroups || !kept || kept->cgroups != cgroups || kiln_clock_mono_ns() >= kept->until_ns)
        return false;
    facts->place = kept->place;
    memcpy(facts->cgroup, kept->path, strlen(kept->path) + 1);
    return true;
}

/* Without memory it is only not kept. */
static void keep(struct kiln_places *places, uint64_t cgroups, const struct kiln_facts *facts)
{
    struct kept **slot = slot_of(places, cgroups), *kept;
    size_t size = strlen(facts->cgroup) + 1;

    kept = cgroups ? kiln_malloc(sizeof(*kept) + size) : NULL;
    if (!kept)
        return;
    kept->cgroups = cgroups;
    kept->until_ns = kiln_clock_mono_ns() + KEEP_NS;
    kept->place = facts->place;
    memcpy(kept->path, facts->cgroup, size);
    kiln_free(*slot);
    *slot = kept;
}

void kiln_places_read(struct kiln_places *places, int dir, uint64_t cgroups,
                      struct kiln_facts *facts)
{
    char text[KILN_PROCFS_TEXT_MAX];
    int64_t n = kiln_procfs_read(dir, "cgroup", text, sizeof(text));
    struct kiln_str all = {text, n > 0 ? (size_t)n : 0}, path = kiln_procfs_parse_cgroup(all);

    if (path.len < sizeof(facts->cgroup) && path.len)
        memcpy(facts->cgroup, path.ptr, path.len);
    kiln_place_parse(all, &facts->place);
    if (n > 0)
        keep(places, cgroups, facts);
}
