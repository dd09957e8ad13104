/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tests do to the simulated disk: cut its power, fill it, fail it, look at it.
 */
#include <stdlib.h>

#include "sim_int.h"

struct kiln_io *kiln_sim_new(void)
{
    struct sim *sim = calloc(1, sizeof(*sim));

    if (!sim)
        abort();
    sim->table = sim_table;
    pthread_mutex_init(&sim->lock, NULL);
    sim->changes_end = &sim->changes;
    sim->next_fd = 1000;
    sim->limit = UINT64_MAX;
    return &sim->table;
}

static void drop_changes(struct sim *sim)
{
    while (sim->changes) {
        struct sim_change *change = sim->changes;

        sim->changes = change->next;
        free(change);
    }
    sim->changes_end = &sim->changes;
}

static void drop_descriptors(struct sim *sim)
{
    while (sim->descriptors) {
        struct sim_descriptor *d = sim->descriptors;

        d->file->open--;
        sim->descriptors = d->next;
        free(d);
    }
}

void kiln_sim_free(struct kiln_io *io)
{
    struct sim *sim = sim_of(io);

    drop_changes(sim);
    drop_descriptors(sim);
    sim->now.n = sim->durable.n = 0;
    sim_collect(sim);
    free(sim->now.names);
    free(sim->durable.names);
    pthread_mutex_destroy(&sim->lock);
    free(sim);
}

/* What becomes of names and of content: all, none, one without the other, or each by chance. */
static void draw_fates(uint64_t *random, enum sim_fate *ret_names, enum sim_fate *ret_content)
{
    static const enum sim_fate fates[8][2] = {
        {SIM_KEEP, SIM_KEEP}, {SIM_LOSE, SIM_LOSE}, {SIM_KEEP, SIM_LOSE}, {SIM_LOSE, SIM_KEEP},
        {SIM_KEEP, SIM_MIX},  {SIM_MIX, SIM_MIX},   {SIM_MIX, SIM_MIX},   {SIM_MIX, SIM_MIX},
    };
    uint64_t i = kiln_sim_random(random) % 8;

    *ret_names = fates[i][0];
    *ret_content = fates[i][1];
}

static void settle_names(struct sim *sim, enum sim_fate fate, uint64_t *random)
{
    for (struct sim_change *change = sim->changes; change; change = change->next) {
        bool lost = fate == SIM_LOSE || (fate == SIM_MIX && kiln_sim_random(random) % 2);

        change->lost = lost || (change->needs && change->needs->lost);
        if (!change->lost)
            sim_tree_apply(&sim->durable, change);
    }
    drop_changes(sim);
    sim_tree_prune(&sim->durable);
    sim_tree_copy(&sim->now, &sim->durable);
}

void kiln_sim_cut(struct kiln_io *io, uint64_t seed)
{
    struct sim *sim = sim_of(io);
    enum sim_fate names;
    enum sim_fate content;

    pthread_mutex_lock(&sim->lock);
    draw_fates(&seed, &names, &content);
    drop_descriptors(sim);
    settle_names(sim, names, &seed);
    sim_collect(sim);
    for (struct sim_file *file = sim->files; file; file = file->next) {
        sim_file_settle(file, content, &seed);
        sim_file_forget(file);
    }
    sim->dead = false;
    sim->cut_at = 0;
    sim->random = seed;
    pthread_mutex_unlock(&sim->lock);
}

/* A setting, under the lock. */
#define SET(io, field, value)                                                                      \
    do {                                                                                           \
        pthread_mutex_lock(&sim_of(io)->lock);                                                     \
        sim_of(io)->field = (value);                                                               \
        pthread_mutex_unlock(&sim_of(io)->lock);                                                   \
    } while (0)

void kiln_sim_cut_at(struct kiln_io *io, uint64_t n)
{
    SET(io, cut_at, n);
}

void kiln_sim_fail_at(struct kiln_io *io, uint64_t n, int code)
{
    SET(io, fail_code, code);
    SET(io, fail_at, n);
}

const char *kiln_sim_last_failure(struct kiln_io *io)
{
    return sim_of(io)->last_failure;
}

void kiln_sim_fail_syncs(struct kiln_io *io, uint32_t n, int code)
{
    SET(io, sync_code, code);
    SET(io, fail_syncs, n);
}

void kiln_sim_fail_truncate(struct kiln_io *io, int code)
{
    SET(io, truncate_code, code);
}

void kiln_sim_lie(struct kiln_io *io, bool lie)
{
    SET(io, lie, lie);
}

void kiln_sim_limit(struct kiln_io *io, uint64_t bytes)
{
    SET(io, limit, bytes);
}

/* Reads a value, under the lock. */
#define GET(io, type, value)                                                                       \
    do {                                                                                           \
        type got;                                                                                  \
        pthread_mutex_lock(&sim_of(io)->lock);                                                     \
        got = (value);                                                                             \
        pthread_mutex_unlock(&sim_of(io)->lock);                                                   \
        return got;                                                                                \
    } while (0)

bool kiln_sim_is_dead(struct kiln_io *io)
{
    GET(io, bool, sim_of(io)->dead);
}

uint64_t kiln_sim_operations(struct kiln_io *io)
{
    GET(io, uint64_t, sim_of(io)->operations);
}

uint64_t kiln_sim_calls(struct kiln_io *io)
{
    GET(io, uint64_t, sim_of(io)->calls);
}

uint64_t kiln_sim_used(struct kiln_io *io)
{
    GET(io, uint64_t, sim_used_bytes(sim_of(io)));
}

bool kiln_sim_flip(struct kiln_io *io, const char *path, uint64_t offset, int bit)
{
    struct sim *sim = sim_of(io);
    struct sim_name *name;
    bool done;

    pthread_mutex_lock(&sim->lock);
    name = sim_tree_find(&sim->now, path);
    done = name && name->file && offset < name->file->now.n && offset < name->file->durable.n;
    if (done) {
        name->file->now.ptr[offset] ^= (uint8_t)(1 << bit);
        name->file->durable.ptr[offset] ^= (uint8_t)(1 << bit);
    }
    pthread_mutex_unlock(&sim->lock);
    return done;
}
