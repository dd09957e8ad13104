/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept - small things that people set and that must outlive a restart: settings of a page,
 * annotations, recording rules.  Each has a tenant, a kind, a name, and a text (JSON), and is
 * durable when the call is back.  One file a tenant and kind, kept/TENANT/KIND.json, replaced as a
 * whole.
 *
 * Threads: everything from anywhere.
 */
#ifndef KILN_API_KEPT_H
#define KILN_API_KEPT_H

#include "base/err.h"
#include "base/str.h"
#include "store/io.h"

enum { KILN_KEPT_TEXT_MAX = 1 << 20, KILN_KEPT_ITEMS_MAX = 10000 };

struct kiln_kept;

struct kiln_kept_item {
    struct kiln_str name, text;
    uint64_t modified_ns; /* Unix time */
};

KILN_CHECK int kiln_kept_open(struct kiln_io *io, struct kiln_kept **ret_kept,
                              struct kiln_err *err);
void kiln_kept_close(struct kiln_kept *kept);

/* Calls `each` for every item, by name; what it is given is borrowed until it returns. */
KILN_CHECK int kiln_kept_each(struct kiln_kept *kept, struct kiln_str tenant, const char *kind,
                              int (*each)(void *context, const struct kiln_kept_item *item),
                              void *context, struct kiln_err *err);
/* KILN_E_LIMIT; -EEXIST where there is one of this name with a later time; errors of I/O. */
KILN_CHECK int kiln_kept_set(struct kiln_kept *kept, struct kiln_str tenant, const char *kind,
                             const struct kiln_kept_item *item, struct kiln_err *err);
/* Returns 1, or 0 where it was not there. */
KILN_CHECK int kiln_kept_delete(struct kiln_kept *kept, struct kiln_str tenant, const char *kind,
                                struct kiln_str name, struct kiln_err *err);

#endif /* KILN_API_KEPT_H */
