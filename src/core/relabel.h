/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relabel - paths of another machine, as they are here.
 *
 * A rule replaces the beginning of a path: "/build/app=/home/me/app" turns /build/app/main.c into
 * /home/me/app/main.c.  Without a "to" the beginning goes, with the slash behind it: "/build/app"
 * and
 * "/build/app=" leave main.c.  Only whole folder names match: /build/app2/x.c stays.
 *
 * Threads: no state; batches are only read.
 */
#ifndef KILN_CORE_RELABEL_H
#define KILN_CORE_RELABEL_H

#include "base/err.h"
#include "core/builder.h"

struct kiln_relabel_rule {
    struct kiln_str from; /* not empty */
    struct kiln_str to;   /* empty: trim */
};

/* Reads "from=to", "from=" or "from"; the rule borrows from the text.  KILN_E_MALFORMED if empty.
 */
KILN_CHECK int kiln_relabel_parse(struct kiln_str text, struct kiln_relabel_rule *ret_rule,
                                  struct kiln_err *err);

/* Applies to every file name of functions and mappings the first rule that fits it. */
KILN_CHECK int kiln_relabel(const struct kiln_batch *batch, const struct kiln_relabel_rule *rules,
                            uint32_t n, struct kiln_batch **ret_batch, struct kiln_err *err);

#endif /* KILN_CORE_RELABEL_H */
