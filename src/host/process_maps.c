/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set is one array: sorted mappings, then those that came since.  Settling is a merge sort of the
 * latter whose merge lays the newer half over the older one, and then lays the result over the
 * sorted ones: n log n whatever the addresses are, also where everything lies over everything.
 *
 * Anonymous neighbours become one mapping, as they would in the kernel: a JIT compiler makes pages
 * executable one after the other, and each time an event says so.
 */
#include <errno.h>

#include "host/process_int.h"

enum { FIRST_MAPS = 6, SETTLE_MIN = 64 };

struct kiln_map_set *kiln_map_set_new(struct kiln_map_shelf *shelf)
{
    struct kiln_map_set *set = kiln_calloc(1, sizeof(*set));

    if (!set)
        return NULL;
    set->refs = 1;
    set->version = ++shelf->versions;
    return set;
}

static void release(struct kiln_map_shelf *shelf, struct kiln_map *map)
{
    if (map->object)
        kiln_object_unref(map->object);
    kiln_paths_unref(&shelf->paths, map->path);
}

static void hold(struct kiln_map *map)
{
    if (map->object)
        kiln_object_ref(map->object);
    kiln_path_ref(map->path);
}

static void free_maps(struct kiln_map_shelf *shelf, struct kiln_map_set *set)
{
    kiln_array_free(&shelf->budget, (void **)&set->maps, &set->cap, sizeof(*set->maps));
}

void kiln_map_set_unref(struct kiln_map_shelf *shelf, struct kiln_map_set *set)
{
    if (!set || --set->refs)
        return;
    for (uint32_t i = 0; i < set->n + set->n_pending; i++)
        release(shelf, &set->maps[i]);
    free_maps(shelf, set);
    kiln_free(set);
}

static int reserve(struct kiln_map_shelf *shelf, struct kiln_map_set *set, uint32_t need)
{
    if (need > set->cap && need < FIRST_MAPS)
        return kiln_reserve(&shelf->budget, (void **)&set->maps, &set->cap, FIRST_MAPS,
                            sizeof(*set->maps), KILN_MAPS_MAX);
    return kiln_grow(&shelf->budget, (void **)&set->maps, &set->cap, need, sizeof(*set->maps),
                     KILN_MAPS_MAX);
}

int kiln_map_set_own(struct kiln_map_shelf *shelf, struct kiln_map_set **set)
{
    uint32_t n = *set ? (*set)->n + (*set)->n_pending : 0;
    struct kiln_map_set *mine;
    int r;

    if (*set && (*set)->refs == 1)
        return 0;
    mine = kiln_map_set_new(shelf);
    if (!mine)
        return -ENOMEM;
    r = n ? reserve(shelf, mine, n + 1 < KILN_MAPS_MAX ? n + 1 : n) : 0;
    if (r < 0) {
        kiln_map_set_unref(shelf, mine);
        return r;
    }
    if (n) {
        memcpy(mine->maps, (*set)->maps, n * sizeof(*mine->maps));
        mine->n = (*set)->n;
        mine->n_pending = (*set)->n_pending;
        mine->version = (*set)->version;
    }
    for (uint32_t i = 0; i < n; i++)
        hold(&mine->maps[i]);
    kiln_map_set_unref(shelf, *set);
    *set = mine;
    return 0;
}

/* The first sorted mapping that ends behind the address; n: none does. */
static uint32_t first_behind(const struct kiln_map_set *set, uint64_t address)
{
    uint32_t low = 0, high = set->n;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (set->maps[middle].end > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

struct kiln_map *kiln_map_set_find(const struct kiln_map_set *set, uint64_t address)
{
    uint32_t i = set ? first_behind(set, address) : 0;

    return set && i < set->n && set->maps[i].start <= address ? &set->maps[i] : NULL;
}

static bool anonymous(const struct kiln_map *map)
{
    return map->kind == KILN_MAP_ANONYMOUS && !map->object;
}

/* Whether both are, as far as is known, of the same file's same bytes at the same addresses. */
static bool same_code(const struct kiln_map *old, const struct kiln_map *new)
{
    const struct kiln_object *object = old->object;

    if (old->kind != KILN_MAP_FILE || new->kind != KILN_MAP_FILE)
        return old->kind == new->kind && old->start - old->offset == new->start - new->offset;
    if (old->path != new->path || old->start - old->offset != new->start - new->offset)
        return false;
    if (new->build_id_len && old->build_id_len)
        return old->build_id_len ==
               new->build_id_len &&memcmp(old->build_id, new->build_id, new->build_id_len) == 0;
    if (new->inode && old->inode)
        return old->inode == new->inode && old->device == new->device;
    if (!object)
        return false;
    return new->build_id_len ? new->build_id_len ==
                                   object->build_id_len &&memcmp(new->build_id, object->build_id,
                                                                 new->build_id_len) == 0
                             : new->inode == object->inode;
}

bool kiln_map_set_clashes(const struct kiln_map_set *set, const struct kiln_map *map)
{
    for (uint32_t i = first_behind(set, map->start); i < set->n; i++) {
        const struct kiln_map *old = &set->maps[i];

        if (old->start >= map->end)
            break;
        if (!(anonymous(old) && anonymous(map)) && !same_code(old, map))
            return true;
    }
    return false;
}

/* ---- settling ---- */

struct run {
    struct kiln_map *maps;
    uint32_t n;
};

/* Puts a piece at the end of `out`, into its last mapping where both are one. */
static void emit(struct kiln_map_shelf *shelf, struct run *out, const struct kiln_map *piece)
{
    struct kiln_map *last = out->n ? &out->maps[out->n - 1] : NULL;

    if (last && last->end == piece->start &&
        (last->id == piece->id || (anonymous(last) && anonymous(piece)))) {
        last->end = piece->end;
        release(shelf, &(struct kiln_map){.object = piece->object, .path = piece->path});
        return;
    }
    out->maps[out->n++] = *piece;
}

/* Shows the part [from, to) of an old mapping, which holds what it holds once more. */
static void emit_part(struct kiln_map_shelf *shelf, struct run *out, const struct kiln_map *map,
                      uint64_t from, uint64_t to)
{
    struct kiln_map piece = *map;

    piece.offset += from - map->start;
    piece.start = from;
    piece.end = to;
    hold(&piece);
    emit(shelf, out, &piece);
}

/* Lays the mappings of `over` over those of `under`; takes what both hold. */
static void overlay(struct kiln_map_shelf *shelf, struct run under, struct run over,
                    struct run *out)
{
    uint32_t k = 0;

    for (uint32_t i = 0; i < under.n; i++) {
        struct kiln_map *map = &under.maps[i];
        uint64_t at = map->start;

        while (k < over.n && over.maps[k].start < map->end) {
            if (over.maps[k].start > at)
                emit_part(shelf, out, map, at, over.maps[k].start);
            if (over.maps[k].end > at)
                at = over.maps[k].end;
            if (over.maps[k].end > map->end)
                break; /* it goes on over the next ones */
            emit(shelf, out, &over.maps[k++]);
        }
        if (at < map->end)
            emit_part(shelf, out, map, at, map->end);
        release(shelf, map);
        if (k < over.n && at > map->end && (i + 1 == under.n || under.maps[i + 1].start >= at))
            emit(shelf, out, &over.maps[k++]);
    }
    while (k < over.n)
        emit(shelf, out, &over.maps[k++]);
}

/* Settles `items` into `out`, which has room for twice as many, as has `spare`. */
static void settle(struct kiln_map_shelf *shelf, struct run items, struct run *out,
                   struct kiln_map *spare)
{
    uint32_t half = items.n / 2;
    struct run older = {spare, 0}, newer = {spare + (size_t)half * 2, 0};

    out->n = 0;
    if (items.n == 1) {
        out->maps[out->n++] = items.maps[0];
        return;
    }
    settle(shelf, (struct run){items.maps, half}, &older, out->maps);
    settle(shelf, (struct run){items.maps + half, items.n - half}, &newer, out->maps);
    overlay(shelf, older, newer, out);
}

int kiln_map_set_settle(struct kiln_map_shelf *shelf, struct kiln_map_set *set)
{
    uint32_t room = set->n + 2 * set->n_pending, cap = 0;
    struct kiln_map *spare, *fresh = NULL;
    struct run sorted, pending, out;
    int r;

    if (!set->n_pending)
        return 0;
    sorted = (struct run){set->maps, set->n};
    pending = (struct run){set->maps + set->n, set->n_pending};
    r = kiln_reserve(&shelf->budget, (void **)&fresh, &cap, room, sizeof(*fresh), UINT32_MAX);
    if (r < 0)
        return r;
    spare = kiln_malloc((size_t)set->n_pending * 4 * sizeof(*spare));
    if (!spare) {
        kiln_array_free(&shelf->budget, (void **)&fresh, &cap, sizeof(*fresh));
        return -ENOMEM;
    }
    out = (struct run){spare, 0};
    settle(shelf, pending, &out, spare + (size_t)set->n_pending * 2);
    pending = out;
    out = (struct run){fresh, 0};
    overlay(shelf, sorted, pending, &out);
    kiln_free(spare);
    free_maps(shelf, set);
    set->maps = fresh;
    set->cap = cap;
    set->n = out.n;
    set->n_pending = 0;
    set->version = ++shelf->versions;
    return 0;
}

/* Whether the set has all of it already.  What the event knows more is kept. */
static bool has_already(struct kiln_map_set *set, const struct kiln_map *map)
{
    struct kiln_map *old = kiln_map_set_find(set, map->start);

    if (set->n_pending || !old || old->end < map->end)
        return false;
    if (anonymous(old) && anonymous(map))
        return true;
    if (!same_code(old, map))
        return false;
    if (!old->build_id_len && map->build_id_len) {
        memcpy(old->build_id, map->build_id, map->build_id_len);
        old->build_id_len = map->build_id_len;
    }
    return true;
}

/* Puts it behind the others, or among the sorted ones where that is there. */
static void append(struct kiln_map_shelf *shelf, struct kiln_map_set *set, struct kiln_map *map)
{
    struct run out = {set->maps, set->n};

    map->id = ++shelf->ids;
    if (set->n_pending || (set->n && set->maps[set->n - 1].end > map->start)) {
        set->maps[set->n + set->n_pending++] = *map;
        return;
    }
    emit(shelf, &out, map);
    set->n = out.n;
    set->version = ++shelf->versions;
}

int kiln_map_set_add(struct kiln_map_shelf *shelf, struct kiln_map_set **set, struct kiln_map *map)
{
    int r = 0;

    if (map->start >= map->end || (*set && has_already(*set, map))) {
        release(shelf, map);
        return 0;
    }
    r = kiln_map_set_own(shelf, set);
    if (r == 0 && (*set)->n_pending >= SETTLE_MIN && (*set)->n_pending >= (*set)->n / 2)
        r = kiln_map_set_settle(shelf, *set);
    if (r == 0)
        r = reserve(shelf, *set, (*set)->n + (*set)->n_pending + 1);
    if (r < 0)
        release(shelf, map);
    else
        append(shelf, *set, map);
    return r;
}

/* ---- reading again ---- */

static void take_over(struct kiln_map *fresh, const struct kiln_map *old)
{
    fresh->id = old->id;
    fresh->tried = old->tried && old->object;
    fresh->kind = old->kind;
    if (old->build_id_len) {
        memcpy(fresh->build_id, old->build_id, old->build_id_len);
        fresh->build_id_len = old->build_id_len;
    }
    if (old->object) {
        fresh->object = kiln_object_ref(old->object);
        fresh->bias = old->bias;
    }
}

bool kiln_map_set_inherit(struct kiln_map_set *fresh, const struct kiln_map_set *old)
{
    bool same = fresh->n == old->n;

    for (uint32_t i = 0; i < fresh->n; i++) {
        struct kiln_map *map = &fresh->maps[i];
        const struct kiln_map *was = kiln_map_set_find(old, map->start);

        if (was && ((anonymous(was) && anonymous(map)) || same_code(was, map)))
            take_over(map, was);
        else
            was = NULL;
        same = same && was && was->start == map->start && was->end == map->end;
    }
    return same;
}
