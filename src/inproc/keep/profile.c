/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds of records and the profiles they become.  A kind belongs to a group, a group is a scope
 * with one or two profiles: one for each number that records carry and people ask for.
 *
 *   process_cpu  samples/count (pprof's alone), cpu/nanoseconds      CPU
 *   memory       alloc_objects/count, alloc_space/bytes              ALLOC
 *                inuse_objects/count, inuse_space/bytes              the live table
 *   off_cpu      off_cpu/nanoseconds                                 WAIT
 *   mutex        contentions/count, delay/nanoseconds                MUTEX and HOLDER
 *   block        the same                                            BLOCK
 *   event_loop   lag/nanoseconds                                     LOOP
 *   threads      threads/count                                       where threads are now
 *                threadcreate/count (pprof's alone)                  CREATE
 *   memory       alloc_mmap_objects/count, alloc_mmap_space/bytes    MMAP
 *                inuse_mmap_objects/count, inuse_mmap_space/bytes    sampled mappings
 *
 * Sums are fractions, values are whole numbers.  Between snapshots, values are differences of
 * rounded sums, so that they add up; of a window, what rounding left over goes into the next row,
 * and from the last row into the next window.
 */
#include <math.h>

#include "inproc/clock.h"
#include "inproc/keep/keep_int.h"
#include "inproc/keep/making.h"
#include "inproc/keep/mappings.h"
#include "inproc/keep/pace.h"
#include "inproc/sample/cpu.h"
#include "inproc/sample/live.h"
#include "inproc/sample/lock.h"
#include "inproc/sample/region.h"
#include "inproc/sample/wait.h"
#include "inproc/start.h"
#include "inproc/thread/thread.h"

enum group { CPU, ALLOC, WAIT, MUTEX, BLOCK, LOOP, CREATE, MMAP, GROUPS };

static const struct {
    const char *family; /* where its types do not say it */
    struct kiln_in_type of_count, of_value;
    bool pprof_only; /* the count */
} groups[GROUPS] = {
    [CPU] = {.of_count = {"samples", "count", "cpu", "nanoseconds", 0},
             .of_value = {"cpu", "nanoseconds", "cpu", "nanoseconds", 0},
             .pprof_only = true},
    [ALLOC] = {.of_count = {"alloc_objects", "count", "space", "bytes", 0},
               .of_value = {"alloc_space", "bytes", "space", "bytes", 0}},
    [WAIT] = {.of_value = {"off_cpu", "nanoseconds", NULL, NULL, 0}},
    [MUTEX] = {.of_count = {"contentions", "count", "contentions", "count", 1},
               .of_value = {"delay", "nanoseconds", "contentions", "count", 1}},
    [BLOCK] = {.family = "block",
               .of_count = {"contentions", "count", "contentions", "count", 1},
               .of_value = {"delay", "nanoseconds", "contentions", "count", 1}},
    [LOOP] = {.of_value = {"lag", "nanoseconds", NULL, NULL, 0}},
    [CREATE] = {.of_count = {"threadcreate", "count", "threadcreate", "count", 1},
                .pprof_only = true},
    [MMAP] = {.of_count = {"alloc_mmap_objects", "count", "space", "bytes", 0},
              .of_value = {"alloc_mmap_space", "bytes", "space", "bytes", 0}},
};

static const uint8_t group_of[KILN_IN_KINDS] = {
    [KILN_IN_CPU] = CPU,     [KILN_IN_ALLOC] = ALLOC,   [KILN_IN_WAIT] = WAIT,
    [KILN_IN_MUTEX] = MUTEX, [KILN_IN_HOLDER] = MUTEX,  [KILN_IN_BLOCK] = BLOCK,
    [KILN_IN_LOOP] = LOOP,   [KILN_IN_CREATE] = CREATE, [KILN_IN_MMAP] = MMAP,
};

/* What rounding has left over: of counts and of values. */
struct carry {
    double count, value;
};

static struct carry carries[KILN_IN_KINDS]; /* under the lock of the mappings */

/* ---- rows ---- */

static int64_t whole(double x, double *carry)
{
    double sum = x + *carry, rounded = round(sum);

    *carry = sum - rounded;
    return (int64_t)rounded;
}

static uint32_t attrs_of(struct kiln_in_making *m, const struct kiln_in_key *key)
{
    bool lock = group_of[key->kind] == MUTEX, named = lock || key->kind == KILN_IN_BLOCK;
    bool waits = key->kind == KILN_IN_WAIT;
    const char *role = key->kind == KILN_IN_HOLDER ? "holder" : "waiter";
    struct kiln_in_label more[] = {
        {"kiln.lock.role", lock ? role : NULL},
        {"kiln.lock.kind", named ? kiln_in_stay_word(key->reason) : NULL},
        {"thread.state", waits ? "blocked" : NULL},
        {"wait.reason", waits ? kiln_in_reason_word(key->reason) : NULL},
    };

    return kiln_in_making_attrs(m, key->labels, more, 4);
}

/* Two numbers of one row, into the profiles of its group; UINT32_MAX: there is no such profile. */
struct pair {
    uint32_t of_count, of_value;
};

static void add(struct kiln_in_making *m, struct pair profiles, const struct kiln_in_key *key,
                int64_t count, int64_t value)
{
    uint32_t stack = kiln_in_making_stack(m, key->stack);
    uint32_t attrs = attrs_of(m, key), link = kiln_in_making_link(m, key);

    if (profiles.of_count != UINT32_MAX && (count || value))
        kiln_builder_add_sample(m->b, profiles.of_count, stack, attrs, link, &count, NULL, 1);
    if (profiles.of_value != UINT32_MAX && (count || value))
        kiln_builder_add_sample(m->b, profiles.of_value, stack, attrs, link, &value, NULL, 1);
}

static int64_t period_of(enum group group)
{
    if (group == CPU)
        return (int64_t)kiln_in_cpu_period_ns();
    return group == ALLOC || group == MMAP ? (int64_t)kiln_in_settings.alloc_bytes : 1;
}

static uint32_t open_profile(struct kiln_in_making *m, enum group group,
                             const struct kiln_in_type *type)
{
    struct kiln_in_type own = *type;

    if (!own.type)
        return UINT32_MAX;
    if (own.period_type && own.period == 0)
        own.period = period_of(group);
    return kiln_in_making_profile(m, &own);
}

static struct pair open_group(struct kiln_in_making *m, enum group group, bool pprof)
{
    bool counts = pprof || !groups[group].pprof_only;
    struct pair pair = {UINT32_MAX, UINT32_MAX};

    kiln_in_making_scope(m, groups[group].family);
    if (counts)
        pair.of_count = open_profile(m, group, &groups[group].of_count);
    pair.of_value = open_profile(m, group, &groups[group].of_value);
    return pair;
}

/* ---- snapshots ---- */

static int64_t between(double from, double to)
{
    return (int64_t)(round(to) - round(from));
}

/* Of kinds in `types`. */
static void add_counts(struct kiln_in_making *m, struct pair profiles, uint32_t types,
                       const struct kiln_in_counts *from, const struct kiln_in_counts *to)
{
    static const struct kiln_in_row none;

    for (uint32_t i = 0; i < to->n; i++) {
        const struct kiln_in_row *now = &to->rows[i];
        const struct kiln_in_row *then = from && i < from->n ? &from->rows[i] : &none;

        if (types >> now->key.kind & 1)
            add(m, profiles, &now->key, between(then->count, now->count),
                between(then->value, now->value));
    }
}

static uint32_t kinds_of(enum group group)
{
    uint32_t kinds = 0;

    for (unsigned kind = 0; kind < KILN_IN_KINDS; kind++)
        kinds |= group_of[kind] == group ? 1u << kind : 0;
    return kinds;
}

int kiln_in_keep_profile(const struct kiln_in_counts *from, const struct kiln_in_counts *to,
                         uint32_t types, struct kiln_batch **ret_batch, struct kiln_err *err)
{
    struct kiln_in_making m;
    int r = kiln_in_making_init(&m, from ? from->unix_ns : kiln_in_keep_since(), to->unix_ns);

    if (r < 0)
        return r;
    for (unsigned group = 0; group < GROUPS; group++) {
        if (types & kinds_of(group))
            add_counts(&m, open_group(&m, group, true), types & kinds_of(group), from, to);
    }
    return kiln_in_making_done(&m, ret_batch, err);
}

/* ---- what is in use ---- */

struct in_use {
    struct kiln_in_table table;
    uint8_t kind; /* of what made it: enum kiln_in_kind */
};

static void see_live(const struct kiln_in_live *block, void *arg)
{
    struct in_use *in_use = arg;
    struct kiln_in_key key = {.stack = block->stack, .kind = in_use->kind};

    key.labels = block->labels;
    if (kiln_in_table_add(&in_use->table, &key, block->count, block->count * (double)block->size,
                          KILN_IN_COUNTS_MAX) < 0)
        kiln_in_lost_anywhere(KILN_IN_LOST_COUNTS, 1);
}

static void add_in_use(struct kiln_in_making *m, enum group group, struct in_use *in_use)
{
    bool maps = group == MMAP;
    struct kiln_in_type objects = {maps ? "inuse_mmap_objects" : "inuse_objects", "count", "space",
                                   "bytes", 0};
    struct kiln_in_type space = {maps ? "inuse_mmap_space" : "inuse_space", "bytes", "space",
                                 "bytes", 0};
    struct pair profiles = {open_profile(m, group, &objects), open_profile(m, group, &space)};
    struct carry carry = {0};

    for (uint32_t i = 0; i < in_use->table.n; i++) {
        const struct kiln_in_row *row = &in_use->table.rows[i];

        add(m, profiles, &row->key, whole(row->count, &carry.count),
            whole(row->value, &carry.value));
    }
    kiln_in_table_done(&in_use->table);
}

static void add_live(struct kiln_in_making *m)
{
    struct in_use blocks = {.kind = KILN_IN_ALLOC};

    kiln_in_live_each(see_live, &blocks);
    add_in_use(m, ALLOC, &blocks);
}

static void add_regions(struct kiln_in_making *m)
{
    struct in_use regions = {.kind = KILN_IN_MMAP};

    kiln_in_region_each(see_live, &regions);
    add_in_use(m, MMAP, &regions);
}

int kiln_in_keep_heap(const struct kiln_in_counts *from, struct kiln_batch **ret_batch,
                      struct kiln_err *err)
{
    struct kiln_in_counts *to;
    struct kiln_in_making m;
    int r = kiln_in_keep_counts(&to);

    if (r < 0)
        return r;
    r = kiln_in_making_init(&m, from ? from->unix_ns : kiln_in_keep_since(), to->unix_ns);
    if (r == 0) {
        add_counts(&m, open_group(&m, ALLOC, true), KILN_IN_TYPE(ALLOC), from, to);
        add_live(&m);
        r = kiln_in_making_done(&m, ret_batch, err);
    }
    kiln_in_counts_free(to);
    return r;
}

/* ---- the window ---- */

static bool has_rows(const struct kiln_in_row *rows, uint32_t n, enum group group)
{
    for (uint32_t i = 0; i < n; i++) {
        if (group_of[rows[i].key.kind] == group)
            return true;
    }
    return false;
}

static void add_rows(struct kiln_in_making *m, const struct kiln_in_row *rows, uint32_t n,
                     enum group group)
{
    struct pair profiles = open_group(m, group, false);

    for (uint32_t i = 0; i < n; i++) {
        struct carry *carry = &carries[rows[i].key.kind];

        if (group_of[rows[i].key.kind] == group)
            add(m, profiles, &rows[i].key, whole(rows[i].count, &carry->count),
                whole(rows[i].value, &carry->value));
    }
}

/* The part of the window that profiles of a group are of. */
static void narrow(struct kiln_in_making *m, enum group group, uint64_t since_ns, uint64_t until_ns)
{
    m->since_ns = since_ns;
    m->until_ns = until_ns;
    if (group == CPU || group == WAIT)
        kiln_in_pace_narrow(group == CPU ? KILN_PROFILE_CPU : KILN_PROFILE_WALL, &m->since_ns,
                            &m->until_ns);
}

int kiln_in_keep_window(bool levels, struct kiln_batch **ret_batch, struct kiln_err *err)
{
    bool live = levels && kiln_in_wants(KILN_PROFILE_HEAP);
    bool maps = levels && kiln_in_wants(KILN_PROFILE_MMAP);
    struct kiln_in_thread_list threads = {0};
    struct kiln_in_making m;
    uint64_t since_ns, until_ns;
    uint32_t n;
    struct kiln_in_row *rows = kiln_in_keep_take(&n, &since_ns, &until_ns);
    int r;

    if (levels && kiln_in_wants(KILN_PROFILE_THREADS))
        kiln_in_threads_copy(&threads);
    r = kiln_in_making_init(&m, since_ns, until_ns);
    for (unsigned group = 0; r == 0 && group < GROUPS; group++) {
        if (group == CREATE)
            continue;
        narrow(&m, group, since_ns, until_ns);
        if (has_rows(rows, n, group) || (group == ALLOC && live) || (group == MMAP && maps))
            add_rows(&m, rows, n, group);
        if (group == ALLOC && live)
            add_live(&m);
        if (group == MMAP && maps)
            add_regions(&m);
    }
    if (r == 0 && threads.n)
        kiln_in_threads_add(&m, &threads);
    kiln_free(threads.threads);
    kiln_free(rows);
    return r < 0 ? r : kiln_in_making_done(&m, ret_batch, err);
}
