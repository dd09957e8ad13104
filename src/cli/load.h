/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load - profiles of fleets that do not exist: services on hosts, with stacks that mostly repeat.
 *
 * Request number i of a seed is always the same, whoever makes it and in whatever order.  What is
 * made is drawn from a base: a real capture (a template), or one that is invented from the seed.
 *
 *   host    what a host profiler sends every five seconds: a resource for each process, samples of
 *           CPU time with timestamps at 19 Hz on every CPU, some processes that were never seen
 *   pprof   what one process sends: the base with other values, or one scope of it after the other
 *
 * A share of the samples of every request (the churn) has a stack that was never sent before:
 *
 *   address   one frame has another address, so that all below it is new
 *   graft     the callees are those of another stack
 *   frames    the callees are drawn frame by frame
 *
 * Threads: a load is shared; a maker has one owner at a time.
 */
#ifndef KILN_CLI_LOAD_H
#define KILN_CLI_LOAD_H

#include "base/err.h"
#include "core/batch.h"

enum kiln_load_shape { KILN_LOAD_HOST, KILN_LOAD_PPROF };
enum kiln_load_churn { KILN_CHURN_ADDRESS, KILN_CHURN_GRAFT, KILN_CHURN_FRAMES };

/* enum suffix, name on the command line */
#define KILN_LOAD_TYPE_MAP(X)                                                                      \
    X(CPU, "cpu")                                                                                  \
    X(OFF_CPU, "off_cpu")                                                                          \
    X(WALL, "wall")                                                                                \
    X(HEAP, "heap")                                                                                \
    X(MUTEX, "mutex")                                                                              \
    X(BLOCK, "block")                                                                              \
    X(GOROUTINE, "goroutine")

enum kiln_load_type {
#define X(suffix, name) KILN_LOAD_##suffix,
    KILN_LOAD_TYPE_MAP(X)
#undef X
        KILN_LOAD_TYPES
};

struct kiln_load_opts {
    enum kiln_load_shape shape;
    enum kiln_load_churn how;
    double churn;   /* 0 to 1: share of samples with a new stack */
    double spans;   /* 0 to 1: share of samples that belong to a span */
    uint32_t types; /* bits 1 << enum kiln_load_type; of an invented base */
    uint32_t services, hosts;
    double host_churn;  /* 0 to 1: share of hosts that a new one replaces in every round */
    uint32_t tenants;   /* each host belongs to one of them; 0: requests name no tenant */
    uint32_t processes; /* of a host batch */
    uint32_t samples;   /* of a host batch; of an invented base's profiles */
    uint64_t seed;
    bool ids;                /* every profile has an id: KILN_LOAD_ID_BYTES says how */
    struct kiln_batch *base; /* borrowed; NULL: invent one */
};

struct kiln_load;

KILN_CHECK int kiln_load_new(const struct kiln_load_opts *opts, struct kiln_load **ret_load,
                             struct kiln_err *err);
void kiln_load_free(struct kiln_load *load);

/* How many requests tell of one step of time: hosts, or processes and types. */
uint32_t kiln_load_round(const struct kiln_load *load);
/* The step that is usual for the shape. */
uint64_t kiln_load_step_ns(const struct kiln_load *load);

/*
 * Before anything is made: Unix time of the first round, and from one to the next.  By default a
 * request tells of what has just been, whenever it is made.
 */
void kiln_load_set_times(struct kiln_load *load, uint64_t start_ns, uint64_t step_ns);

/* What was made so far, by all makers: distinct stacks of services, and nodes of their trees. */
void kiln_load_counts(struct kiln_load *load, uint64_t *ret_stacks, uint64_t *ret_nodes);

/* ---- requests ---- */

/* A profile's id: seed (4 bytes), request (8), profile in the request (4), all big-endian. */
enum { KILN_LOAD_ID_BYTES = 16 };

struct kiln_load_request {
    uint64_t number;
    uint64_t time_ns;
    uint32_t profiles, samples;
    char service[64]; /* of a host batch: the first process's */
    char host[32];
    char tenant[32]; /* empty without tenants */
};

struct kiln_load_maker;

KILN_CHECK int kiln_load_maker_new(struct kiln_load *load, struct kiln_load_maker **ret_maker);
void kiln_load_maker_free(struct kiln_load_maker *maker);

KILN_CHECK int kiln_load_make(struct kiln_load_maker *maker, uint64_t number,
                              struct kiln_batch **ret_batch, struct kiln_load_request *ret_request,
                              struct kiln_err *err);

#endif /* KILN_CLI_LOAD_H */
