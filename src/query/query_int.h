/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_int - what the files of query/ share.
 */
#ifndef KILN_QUERY_QUERY_INT_H
#define KILN_QUERY_QUERY_INT_H

#include "query/query.h"

enum { KILN_QUERY_TENANTS_MAX = 64, KILN_QUERY_WINDOWS_MAX = 100000 };

struct kiln_querier {
    struct kiln_engine *engine;
    struct kiln_pool *pool;
    struct kiln_pool own_pool;
    struct kiln_query_limits limits;
    const struct kiln_query_tenant *tenants;
    uint32_t n_tenants;
    struct kiln_metric *outcomes[KILN_ASK_OUTCOMES];
    struct kiln_metric *seconds, *bytes;
    _Atomic uint64_t asked_ns; /* of what is new, monotonic */
};

/* With defaults where nothing was said. */
struct kiln_query_limits kiln_query_limits_filled(struct kiln_query_limits limits, size_t memory);

/* Makes ask->windows out of the query's, sorted and joined. */
KILN_CHECK int kiln_ask_set_windows(struct kiln_ask *ask, const struct kiln_query *query,
                                    struct kiln_err *err);

/* Decides the type of ask->question, and takes matchers that say it out of them. */
KILN_CHECK int kiln_ask_set_type(struct kiln_ask *ask, const struct kiln_query *query,
                                 struct kiln_err *err);

/* A label of the services and tenants in question: its values. */
struct kiln_listing {
    struct kiln_str name;
    struct kiln_str type; /* that they have; empty: any */
    bool ever;            /* not only at the times in question */
};
KILN_CHECK int kiln_ask_list(struct kiln_ask *ask, const struct kiln_listing *listing,
                             struct kiln_labels **ret_labels, struct kiln_err *err);

/* ---- types made of others (core/type.h) ---- */

#define KILN_TYPE_LABEL KILN_STR("__profile_type__")

/* Where the type of the question is such a one: says of what, and whose it is not. */
KILN_CHECK int kiln_ask_set_parts(struct kiln_ask *ask, struct kiln_err *err);
/*
 * Adds the combinations that the parts make, each where all of them are there and it is not itself;
 * or puts them in the place of the parts, where the question was about the whole.
 */
KILN_CHECK int kiln_labels_add_made(struct kiln_labels *labels, const struct kiln_str *names,
                                    uint32_t n, bool whole);

#endif /* KILN_QUERY_QUERY_INT_H */
