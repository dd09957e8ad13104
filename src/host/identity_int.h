/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity_int - what the files of identity share: what is known of a process before it is one.
 *
 *   identity.c           reads /proc, and makes an identity of all of it
 *   identity_resource.c  the attributes of its resource, by how much is to be believed
 *   identity_env.c       what variables say
 *   identity_runtime.c   which language runs it, at which version
 *   identity_rules.c     what the operator says otherwise
 *   identity_owner.c     names of users
 *   identity_place.c     control groups
 *   identity_root.c      the root of a process; identity_perf_map.c a file beneath it
 *
 * Threads: the reader's alone.
 */
#ifndef KILN_HOST_IDENTITY_INT_H
#define KILN_HOST_IDENTITY_INT_H

#include "host/attrs.h"
#include "host/containers.h"
#include "host/identity_rules.h"
#include "host/process_int.h"

enum { KILN_COMMAND_MAX = 256 };

struct kiln_facts {
    struct kiln_procfs_status status;
    char path[KILN_PROCFS_PATH_MAX + 1];
    char command[KILN_COMMAND_MAX + 1];
    char owner[33];
    char cgroup[KILN_PROCFS_PATH_MAX + 1];
    struct kiln_str name; /* of the executable; never empty */
    struct kiln_place place;
    struct kiln_buf env; /* pairs, each ended by NUL */
    uint32_t n_env;
    const char *const *shown; /* names of variables that become attributes themselves */
    uint32_t n_shown;
    const struct kiln_process_context *context; /* NULL: it publishes nothing */
    const struct kiln_object *executable;       /* NULL: not known */
    const struct kiln_container *container;     /* NULL: none */
    int dir;                                    /* its folder in /proc; -1: it is gone */
    struct kiln_aside *aside; /* who reads what is beside the executable, which may not answer */
    struct kiln_attrs attrs;  /* the result */
};

/* Fills attrs, by all the rest.  service.name is always among them. */
void kiln_facts_describe(struct kiln_facts *facts, const struct kiln_identity_rules *rules);

/* ---- variables ---- */

/* The value of a variable that was read; empty: none. */
struct kiln_str kiln_facts_env(const struct kiln_facts *facts, const char *name);
/* What a process says of itself in its variables: OpenTelemetry's own, over what it publishes. */
void kiln_facts_put_otel(struct kiln_facts *facts);
/* And in those that tell of versions and deployments, where nobody has said it. */
void kiln_facts_put_env(struct kiln_facts *facts);
/* Names that are allowed unless the operator says otherwise; NULL: no more. */
const char *kiln_env_usual(uint32_t i);

/* Lays the rules over what is known. */
void kiln_facts_apply(struct kiln_facts *facts, const struct kiln_identity_rules *rules);

/* Runtime and its version. */
void kiln_facts_put_runtime(struct kiln_facts *facts);

/* ---- where it runs: `cgroups` as struct kiln_who has it; 0: not known ---- */

/* What is kept of these control groups: `cgroup` and `place` of the facts.  False: nothing. */
bool kiln_places_get(struct kiln_places *places, uint64_t cgroups, struct kiln_facts *facts);
/*
 * The same from /proc/PID, of which `dir` is the folder.  Kept where that still tells of the
 * control groups of the sample: a process may have been moved since.
 */
struct kiln_whereabouts {
    uint64_t cgroups; /* 0: not to be kept */
    uint64_t unified; /* its group in the unified hierarchy, by inode */
};
void kiln_places_read(struct kiln_places *places, int dir, const struct kiln_whereabouts *sampled,
                      struct kiln_facts *facts);

/* Whether a process may say this of itself: nothing that could hold arguments or variables. */
bool kiln_facts_may_say(struct kiln_str key);

#endif /* KILN_HOST_IDENTITY_INT_H */
