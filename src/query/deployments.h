/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deployments - when which version of a service began to run.
 *
 * Found: a series with another service.version (or version), git.commit, or deployment.id (or
 * deployment_id) than before is another deployment; it begins with the first profile of the first
 * such series.  Told: by people, with a time; one of the same service and version stands for a
 * found one.  A diff names two of them.
 *
 * Threads: a list is immutable once made.
 */
#ifndef KILN_QUERY_DEPLOYMENTS_H
#define KILN_QUERY_DEPLOYMENTS_H

#include "query/query.h"

struct kiln_deployment {
    struct kiln_str id; /* of a found one made of service and version; stable */
    struct kiln_str service;
    struct kiln_str version; /* the first there is of version, commit and deployment id */
    struct kiln_str label;   /* whose value `version` is; "" where no profile has it */
    struct kiln_str commit, deployment_id; /* or "" */
    struct kiln_str id_label;   /* of the deployment id: deployment.id or deployment_id */
    struct kiln_str name, text; /* what was told, or "" */
    uint64_t at_ns;             /* told, or when it was first seen */
    uint64_t until_ns;          /* when the next of its service began; 0: it is the last */
    uint64_t first_ns, last_ns; /* of its profiles; 0, 0: none were seen */
    uint64_t n_profiles;
    bool told;
};

enum { KILN_DEPLOYMENTS_MAX = 10000 };

struct kiln_deployments {
    struct kiln_deployment *rows; /* newest first, then by service and version */
    uint32_t n, cap;
    bool truncated; /* there are more */
    struct kiln_budget budget;
    struct kiln_arena arena;
};

struct kiln_deployments_query {
    const struct kiln_str *tenants;
    uint32_t n_tenants;
    struct kiln_str service;            /* empty: of all */
    const struct kiln_deployment *told; /* id, service, version, name, text, at_ns */
    uint32_t n_told;
};

KILN_CHECK int kiln_deployments_find(struct kiln_engine *engine,
                                     const struct kiln_deployments_query *query,
                                     struct kiln_deployments **ret_deployments,
                                     struct kiln_err *err);
void kiln_deployments_free(struct kiln_deployments *deployments);

/*
 * Whether a deployment ran in a window: `end_ns` 0: without end.
 */
bool kiln_deployment_ran(const struct kiln_deployment *deployment, uint64_t start_ns,
                         uint64_t end_ns);

/* What a question about one deployment has to say. */
struct kiln_deployment_choice {
    const struct kiln_deployment *deployment; /* the newest that fits */
    struct kiln_str selector;                 /* service, and the label that tells it; borrowed */
    struct kiln_window window;
};

/*
 * The deployment that someone means: an id, a name, a version, a commit, or a number from the end
 * (-1: the last, -2: the one before).  Several of one service with one version (other commits) are
 * taken together.  `service` may be empty where it is clear.  KILN_E_NOMATCH or KILN_E_AMBIGUOUS
 * (several services): `err` lists what there is.
 */
KILN_CHECK int kiln_deployments_choose(struct kiln_deployments *deployments,
                                       struct kiln_str service, struct kiln_str wanted,
                                       struct kiln_deployment_choice *ret_choice,
                                       struct kiln_err *err);

#endif /* KILN_QUERY_DEPLOYMENTS_H */
