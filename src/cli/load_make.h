/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load_make - what making a host batch and making a pprof have in common.
 *
 * Threads: a maker has one owner at a time.
 */
#ifndef KILN_CLI_LOAD_MAKE_H
#define KILN_CLI_LOAD_MAKE_H

#include "cli/load_int.h"

enum { KILN_LOAD_DEPTH_MAX = 1024, KILN_LOAD_SPANS = 16 };

struct kiln_load_maker {
    struct kiln_load *load;
    struct kiln_remap *remap; /* of the base, moved from builder to builder */
    struct kiln_builder *b;   /* of the request at hand */
    struct kiln_dice dice;
    uint32_t spans[KILN_LOAD_SPANS]; /* links of the request at hand */
    uint32_t frames[KILN_LOAD_DEPTH_MAX], other[KILN_LOAD_DEPTH_MAX];
    uint32_t n_profiles, n_samples;
    uint64_t number;
    /* Of the request at hand: in a host batch who was seen when, else what a row of it is. */
    struct kiln_load_row {
        uint64_t time_ns;
        int64_t value;
        uint32_t process, cpu;
        uint32_t stack, attrs, link; /* of the request */
    } * rows;
    uint32_t *order; /* of rows, by process */
    uint64_t *times; /* room for as many */
    int64_t *values;
};

void kiln_load_make_host(struct kiln_load_maker *m, struct kiln_load_request *request);
void kiln_load_make_pprof(struct kiln_load_maker *m, struct kiln_load_request *request);

/* Names the host and its tenant; `host` is a number below the number of hosts. */
void kiln_load_name_host(const struct kiln_load *load, uint32_t host,
                         struct kiln_load_request *request);

/* A stack of the base as one of the request, or with the chance of the churn, a new one. */
uint32_t kiln_load_stack(struct kiln_load_maker *m, uint32_t service, uint32_t stack);

/* The link of a sample: of a span, or none. */
uint32_t kiln_load_span(struct kiln_load_maker *m);

/* The id of the next profile of the request, if they shall have one. */
void kiln_load_id(struct kiln_load_maker *m, struct kiln_profile *profile);

#endif /* KILN_CLI_LOAD_MAKE_H */
