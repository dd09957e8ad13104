/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle_int - the facts that a question is about: every observation that passes, with its profile
 * and the batch that this is in.
 */
#ifndef KILN_TESTS_SUPPORT_ORACLE_INT_H
#define KILN_TESTS_SUPPORT_ORACLE_INT_H

#include "core/intern.h"
#include "oracle.h"
#include "store/meaning.h"

/* ---- texts, each once ---- */

struct kiln_texts {
    struct kiln_budget budget;
    struct kiln_arena arena;
    struct kiln_intern index;
    struct kiln_str *all;
    uint32_t n, cap;
};

void kiln_texts_init(struct kiln_texts *texts);
void kiln_texts_done(struct kiln_texts *texts);
/* The number of a text, new or old. */
KILN_CHECK int kiln_texts_add(struct kiln_texts *texts, struct kiln_str text, uint32_t *ret_number);

/* ---- names of stacks ---- */

/* The names of a stack's functions, root first, as flames have them. */
struct kiln_stack_names {
    struct kiln_str *names;
    struct kiln_range *stacks; /* parallel to the batch's: into names */
    struct kiln_view *view;    /* whose texts they are */
};

KILN_CHECK int kiln_stack_names_init(struct kiln_stack_names *names, const struct kiln_batch *batch,
                                     struct kiln_err *err);
void kiln_stack_names_done(struct kiln_stack_names *names);
/* 1, 0, or an error of an expression. */
KILN_CHECK int kiln_stack_chosen(const struct kiln_stack_names *names, uint32_t stack,
                                 const struct kiln_stack_choice *choice);

/* ---- facts ---- */

/* One series of one tenant, with the profiles of the time. */
struct kiln_fact_source {
    struct kiln_str tenant;
    struct kiln_series_found found;
    struct kiln_series series; /* of found.key */
    struct kiln_batch *batch;
    int8_t *stacks; /* parallel to the batch's: 1 chosen, 0 not; NULL: all are */
};

struct kiln_fact_profile {
    uint32_t source, resource, scope, profile;
    uint32_t process; /* number */
    bool considered;  /* in the time, and no label says otherwise */
    struct kiln_weight weight;
};

/* An observation that passes. */
struct kiln_fact {
    uint32_t profile; /* into profiles */
    uint32_t sample;  /* of the batch */
    uint64_t time_ns;
    int64_t value;
    double count;
};

struct kiln_facts {
    const struct kiln_question *question;
    struct kiln_budget budget;
    struct kiln_arena arena; /* keys */
    struct kiln_fact_source *sources;
    struct kiln_fact_profile *profiles; /* by source */
    struct kiln_fact *facts;            /* by profile */
    struct kiln_texts processes;
    struct kiln_texts label_names; /* of all series of the tenant at hand */
    uint32_t n_sources, n_profiles, n_facts, cap_sources, cap_profiles, cap_facts;
};

KILN_CHECK int kiln_facts_init(struct kiln_facts *facts, struct kiln_engine *engine,
                               const struct kiln_question *question, struct kiln_err *err);
void kiln_facts_done(struct kiln_facts *facts);

/* The value of a label; `attrs` of a sample, 0: of none.  In `scratch`, or borrowed. */
struct kiln_str kiln_fact_label(const struct kiln_facts *facts, uint32_t profile, uint32_t attrs,
                                struct kiln_str name, char scratch[KILN_MEANING_SCRATCH]);
bool kiln_fact_in_time(const struct kiln_question *question, uint64_t time_ns);
KILN_CHECK int kiln_fact_basis(const struct kiln_facts *facts, struct kiln_basis *ret_basis);

static inline const struct kiln_batch *kiln_fact_batch(const struct kiln_facts *facts,
                                                       uint32_t profile)
{
    return facts->sources[facts->profiles[profile].source].batch;
}

static inline const struct kiln_profile *kiln_fact_head(const struct kiln_facts *facts,
                                                        uint32_t profile)
{
    return &kiln_fact_batch(facts, profile)->profiles[facts->profiles[profile].profile];
}

static inline const struct kiln_sample *kiln_fact_sample(const struct kiln_facts *facts,
                                                         const struct kiln_fact *fact)
{
    return &kiln_fact_batch(facts, fact->profile)->samples[fact->sample];
}

static inline const struct kiln_link *kiln_fact_link(const struct kiln_facts *facts,
                                                     const struct kiln_fact *fact)
{
    return &kiln_fact_batch(facts, fact->profile)->dict.links[kiln_fact_sample(facts, fact)->link];
}

static inline const struct kiln_fact_source *kiln_fact_source(const struct kiln_facts *facts,
                                                              const struct kiln_fact *fact)
{
    return &facts->sources[facts->profiles[fact->profile].source];
}

#endif /* KILN_TESTS_SUPPORT_ORACLE_INT_H */
