/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_int - the inside of a merge, shared by merge.c (what becomes one) and merge_fill.c (laying
 * the result out).
 */
#ifndef KILN_CORE_MERGE_INT_H
#define KILN_CORE_MERGE_INT_H

#include "core/builder_int.h"
#include "core/code.h"
#include "core/heads.h"
#include "core/merge.h"

#define KILN_NONE UINT32_MAX

/* A place in the tree of the result; children hang in a chain, in the order of arrival. */
struct kiln_merge_node {
    uint32_t first_child, last_child, next;
};

struct kiln_merge_resource {
    struct kiln_merge_node node;
    struct kiln_resource head; /* its entity references are in its key */
};

struct kiln_merge_scope {
    struct kiln_merge_node node;
    struct kiln_scope head;
};

struct kiln_merge_profile {
    struct kiln_merge_node node;
    struct kiln_profile head;
    uint32_t n_samples;
    uint32_t n_parts;
    uint32_t place; /* its index in the result */
    bool has_times;
};

/* The window of one source profile. */
struct kiln_merge_window {
    uint32_t profile;
    uint64_t start_ns, end_ns;
};

struct kiln_merge {
    struct kiln_builder *b;
    const struct kiln_merge_opts *opts;
    struct kiln_keys resource_keys, scope_keys, profile_keys;
    struct kiln_merge_resource *resources;
    struct kiln_merge_scope *scopes;
    struct kiln_merge_profile *profiles;
    struct kiln_merge_window *windows;
    struct kiln_intern sample_index;
    struct kiln_code code;
    uint32_t *targets; /* for each source sample, in order: its sample of the result */
    uint32_t n_resources, n_scopes, n_profiles, n_windows, n_targets;
    uint32_t cap_resources, cap_scopes, cap_profiles, cap_windows, cap_targets;
    uint32_t next_sample; /* where the next sample of a source probably belongs */
};

/* Writes everything that was gathered into the builder's batch; failures stick in the builder. */
void kiln_merge_lay_out(struct kiln_merge *m, struct kiln_batch *const *batches, uint32_t n);

#endif /* KILN_CORE_MERGE_INT_H */
