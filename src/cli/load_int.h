/* SPDX-License-Identifier: Apache-2.0 */
/* load_int - the inside of a load: its base, seen as programs with stacks, and what was sent. */
#ifndef KILN_CLI_LOAD_INT_H
#define KILN_CLI_LOAD_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "cli/load.h"
#include "core/builder.h"
#include "core/remap.h"

/* ---- numbers that look random and are not ---- */

struct kiln_dice {
    uint64_t state;
};

/* SplitMix64. */
static inline uint64_t kiln_dice_next(struct kiln_dice *dice)
{
    uint64_t z = dice->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline struct kiln_dice kiln_dice_of(uint64_t seed, uint64_t number)
{
    struct kiln_dice dice = {seed ^ number * UINT64_C(0xd1342543de82ef95)};

    kiln_dice_next(&dice);
    return dice;
}

/* Below `n`, each as often; 0 for n = 0. */
static inline uint32_t kiln_dice_below(struct kiln_dice *dice, uint32_t n)
{
    return (uint32_t)((kiln_dice_next(dice) >> 32) * n >> 32);
}

/* Below `n`, the small ones more often: a quarter of all draws are in the first sixteenth. */
static inline uint32_t kiln_dice_skewed(struct kiln_dice *dice, uint32_t n)
{
    uint64_t u = kiln_dice_next(dice) >> 32;

    return (uint32_t)((u * u >> 32) * n >> 32);
}

/* True with this chance (0 to 1). */
static inline bool kiln_dice_chance(struct kiln_dice *dice, double chance)
{
    return (double)(kiln_dice_next(dice) >> 11) * 0x1p-53 < chance;
}

/* ---- what was sent ---- */

/* A set of 64-bit hashes; 0 is never in it. */
struct kiln_load_set {
    uint64_t *slots;
    uint32_t cap; /* a power of two */
    uint64_t n;
};

/* ---- the base ---- */

/* One sample of the base: what a process of this program may be seen doing. */
struct kiln_load_entry {
    uint32_t stack;
    uint32_t thread; /* string: thread.name; 0: none */
};

struct kiln_load_program {
    struct kiln_str name, path; /* of the executable */
    uint32_t first, n;          /* entries */
};

struct kiln_load {
    struct kiln_load_opts opts;
    uint64_t start_ns, step_ns; /* 0: requests tell of now */
    struct kiln_batch *base;    /* a reference */
    struct kiln_budget budget;
    struct kiln_load_program *programs;
    struct kiln_load_entry *entries;
    uint32_t n_programs, cap_programs, n_entries, cap_entries;
    struct kiln_load_set known; /* stacks of the base */
    /* For each service and stack of the base: how many frames from the root are in `nodes`. */
    _Atomic uint16_t *counted;
    pthread_mutex_t lock;
    struct kiln_load_set nodes; /* under `lock`: paths from the root, stacks that were grafted */
    _Atomic uint64_t n_stacks, n_nodes;
};

/* An invented base. */
KILN_CHECK int kiln_load_invent(const struct kiln_load_opts *opts, struct kiln_batch **ret_base,
                                struct kiln_err *err);

/* The n-th name of a service; `ret` has 64 bytes. */
void kiln_load_service_name(uint32_t n, char ret[64]);

/*
 * A service sends the first `depth` frames (from the root) of a stack of the base: all of it, or
 * what is left of it above a new frame.
 */
void kiln_load_note_base(struct kiln_load *load, uint32_t service, uint32_t stack, uint32_t depth);
/* `n` nodes that nobody else can have sent, and the stack they are of. */
void kiln_load_note_new(struct kiln_load *load, uint32_t n);
/* Whether the base has a stack of these locations, leaf first; after kiln_load_learn_base(). */
KILN_CHECK int kiln_load_learn_base(struct kiln_load *load);
bool kiln_load_in_base(const struct kiln_load *load, const uint32_t *locations, uint32_t n);
/* A stack put together from locations of the base, leaf first. */
void kiln_load_note_stack(struct kiln_load *load, uint32_t service, const uint32_t *locations,
                          uint32_t n);

#endif /* KILN_CLI_LOAD_INT_H */
