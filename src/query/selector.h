/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selector - which series, in the words of PromQL:
 *
 *   process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="shop/cart", pod=~"a|b", env!="test"}
 *
 * A name before the braces is a profile type, of five parts, or of three that one type fits.
 * Operators are =, !=, =~ and !~; expressions match the whole value.  Values stand in double,
 * single or back quotes, with Go's escapes; names that are no words in quotes too
 * ({"k8s/pod"="x"}; dots need none).  A comma may be last; {} and nothing at all choose everything.
 *
 * An expression of a stranger may take more steps than a match may have: it then gives up for good
 * (base/regex.h), and kiln_selector_gave_up() names it.
 *
 * Threads: one owner at a time (expressions write while they match).
 */
#ifndef KILN_QUERY_SELECTOR_H
#define KILN_QUERY_SELECTOR_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "core/series.h"

enum { KILN_SELECTOR_BYTES_MAX = 65536, KILN_SELECTOR_MATCHERS_MAX = 256 };

struct kiln_selector {
    struct kiln_str type; /* as written before the braces; empty: none was */
    struct kiln_matcher *matchers;
    uint32_t n_matchers, cap;
    struct kiln_budget budget;
    struct kiln_arena arena;
};

/* Zero is empty.  Adds the matchers of `text`; a second type is an error.  KILN_E_MALFORMED,
 * KILN_E_PATTERN or KILN_E_LIMIT; `err` names line and column: "1:15: parse error: ...".  What was
 * added before the error stays. */
KILN_CHECK int kiln_selector_add(struct kiln_selector *selector, struct kiln_str text,
                                 struct kiln_err *err);
/* The matcher whose expression took too many steps; NULL: none did. */
const struct kiln_matcher *kiln_selector_gave_up(const struct kiln_selector *selector);
void kiln_selector_done(struct kiln_selector *selector);

/* Appends a text in quotes, as a name or a value of a selector. */
void kiln_selector_quote(struct kiln_str text, struct kiln_buf *out);

#endif /* KILN_QUERY_SELECTOR_H */
