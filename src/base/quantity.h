/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantity - sizes and durations as people write them, and the word they meant.
 *
 * Threads: no state.
 */
#ifndef KILN_BASE_QUANTITY_H
#define KILN_BASE_QUANTITY_H

#include "base/str.h"

/*
 * Bytes: "512", "64K", "64k", "64KB", "64KiB" (all of them 65,536), then M, G, T.
 * Returns 0, KILN_E_MALFORMED or -ERANGE.
 */
KILN_CHECK int kiln_size_parse(struct kiln_str text, uint64_t *ret_bytes);

/*
 * A time span: whole numbers or decimals with ns, us, ms, s, m, h, d, w, one after the other:
 * "10s", "1h30m", "1.5s", ".5s", "14d"; "0" needs no unit.  Returns 0, KILN_E_MALFORMED or -ERANGE.
 */
KILN_CHECK int kiln_duration_parse(struct kiln_str text, uint64_t *ret_ns);

/* The nearest of the candidates to a mistyped word, or NULL if none is near. */
const char *kiln_nearest(const char *word, const char *const *candidates, uint32_t n);

#endif /* KILN_BASE_QUANTITY_H */
