/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_told - what people told of a service: a deployment or an annotation, kept as JSON.
 *
 * Threads: as native_int.h.
 */
#ifndef KILN_API_NATIVE_TOLD_H
#define KILN_API_NATIVE_TOLD_H

#include "api/native_int.h"

enum { KILN_TOLD_TAGS_MAX = 32 };

/* Texts live in the call. */
struct kiln_told {
    struct kiln_str id, service, version, name, text;
    uint64_t at_ns, until_ns;
    struct kiln_str *tags; /* NULL, or room for KILN_TOLD_TAGS_MAX */
    uint32_t n_tags;
};

struct kiln_told_list {
    struct kiln_told *items;
    uint32_t n, cap;
};

/* All of a kind ("annotations", "deployments") of the caller's tenants, in no order. */
KILN_CHECK int kiln_told_read(struct kiln_native_call *call, const char *kind,
                              struct kiln_told_list *list);
void kiln_told_done(struct kiln_native_call *call, struct kiln_told_list *list);
/* Keeps a new one; fills in its id. */
KILN_CHECK int kiln_told_keep(struct kiln_native_call *call, const char *kind,
                              struct kiln_told *told);
/* Forgets the one that the path names; the answer is 204. */
KILN_CHECK int kiln_told_forget(struct kiln_native_call *call, const char *kind);

KILN_CHECK int kiln_told_tag(struct kiln_native_call *call, struct kiln_told *told,
                             struct kiln_str tag);
/* Whether it touches the range that was asked for, and is of the service. */
bool kiln_told_wanted(const struct kiln_native_call *call, const struct kiln_told *told);
/* Newest first. */
void kiln_told_sort(struct kiln_told_list *list);

#endif /* KILN_API_NATIVE_TOLD_H */
