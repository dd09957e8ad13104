/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world - a store made of dice, and questions to it: the same seed, the same store and questions.
 *
 * Several tenants, services, versions, hosts and processes; flows and levels, counts that are time
 * and counts that are not; attributes at every level, that hide each other; links; samples with
 * times and without; profiles that come late.  Some of it is in blocks, some merged, some in the
 * head, and the store was closed in between.  Everything comes from small pools, so that questions
 * find something and things meet.
 */
#ifndef KILN_TESTS_SUPPORT_WORLD_H
#define KILN_TESTS_SUPPORT_WORLD_H

#include "base/regex.h"
#include "random_batch.h"
#include "store_kit.h"

enum { WORLD_BATCHES = 20, WORLD_TENANTS = 2, WORLD_MATCHERS = 3, WORLD_WINDOWS = 3 };
enum { WORLD_BUILDS = 3, WORLD_ADDRESSES = 6 }; /* of programs whose names come later */

extern const struct kiln_str world_tenants[WORLD_TENANTS];

struct world {
    struct store_kit kit;
    struct dice dice;
    struct kiln_batch *batches[WORLD_BATCHES]; /* everything that was appended */
    uint32_t tenants[WORLD_BATCHES];
    uint32_t n;
    uint64_t serial;
    int64_t n_alone; /* samples that are like no other */
    bool no_times;   /* no sample has one */
    bool rolls;      /* much is merged, and most questions are about all samples of a series */
    bool names;      /* programs have build ids, and names come later: world_names.c */
    bool named[WORLD_TENANTS][WORLD_BUILDS][WORLD_ADDRESSES]; /* what has a symbol now */
};

void world_init(struct world *w, uint64_t seed);
void world_done(struct world *w);

/* Something more comes in, or what is there is moved about. */
void world_step(struct world *w);

/* What was appended of a type in a time (0, 0: all), to the unit. */
int64_t world_total(const struct world *w, uint32_t tenant, struct kiln_str type, uint64_t start_ns,
                    uint64_t end_ns);

/* A question, with what it points to. */
struct world_question {
    struct kiln_question q;
    struct kiln_leash leash;
    struct kiln_str tenants[WORLD_TENANTS];
    struct kiln_window windows[WORLD_WINDOWS];
    struct kiln_matcher matchers[WORLD_MATCHERS];
    uint8_t trace_ids[2][16], profile_ids[2][16], span_ids[2][8];
    struct kiln_str names[3][2];
};
void world_ask(struct world *w, struct world_question *question);
void world_asked(struct world_question *question);

/* ---- names that come later ---- */

/* A mapping with a build id, and an address in it; `file` as all of them. */
uint32_t world_mapping(struct world *w, struct kiln_builder *b, uint64_t *ret_address);
/* Some names come, or go. */
void world_name(struct world *w);
/* Holds what a selection of a tenant has, and what is said to be without a name, against what
 * came. */
void world_check_names(struct world *w, uint32_t tenant);

/* A label that something may have. */
struct kiln_str world_label(struct world *w);
/* A time within what there is. */
uint64_t world_time(struct world *w);
struct kiln_str world_type(struct world *w);

static inline uint32_t world_roll(struct world *w, uint32_t sides)
{
    return (uint32_t)dice_roll(&w->dice, sides);
}

#endif /* KILN_TESTS_SUPPORT_WORLD_H */
