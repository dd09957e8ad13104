/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meaning - what the labels and values of stored samples mean: the one place that says it, for all
 * that answer questions (store/engine.h).
 *
 * Threads: no state.
 */
#ifndef KILN_STORE_MEANING_H
#define KILN_STORE_MEANING_H

#include "core/series.h"

/* ---- labels ---- */

/*
 * The value of a label where the series decides it: one of those that every series has
 * (kiln_pseudo_label), or one of its own.  False: the attributes decide.
 */
bool kiln_meaning_of_series(const struct kiln_series *series, struct kiln_str name,
                            struct kiln_str *ret_value);

/* The names of labels that every series has, one after the other; NULL behind the last. */
const char *kiln_pseudo_label(uint32_t i);

/* The text of an attribute's value: numbers and booleans as people write them, in `scratch`; what
 * has no text (bytes, arrays, maps) is empty. */
enum { KILN_MEANING_SCRATCH = 32 };
struct kiln_str kiln_meaning_text(const struct kiln_batch *batch, const struct kiln_value *value,
                                  char scratch[KILN_MEANING_SCRATCH]);

/* 1, 0, or an error of the expression. */
KILN_CHECK int kiln_meaning_match(const struct kiln_matcher *matcher, struct kiln_str value);

/*
 * Appends what tells one process of a series from another: of the resource's attributes pid, start
 * and host, or all where there is no pid.
 */
void kiln_meaning_process(const struct kiln_batch *batch, uint32_t resource_attrs,
                          struct kiln_buf *out);

/* ---- values ---- */

struct kiln_weight {
    int64_t scale; /* values times this are in the unit of the type */
    double unit;   /* value of one observation, before scaling; 0: each value is one */
};

/*
 * Of a profile in a series of this type (five-part id).  What else came with the profile does not
 * matter: it may be elsewhere by now.
 */
struct kiln_weight kiln_weight_of(const struct kiln_batch *batch,
                                  const struct kiln_profile *profile, struct kiln_str type);

/* How many observations a value stands for, as far as that can be known. */
static inline double kiln_weight_count(const struct kiln_weight *weight, bool has_time, int64_t raw)
{
    if (has_time || weight->unit == 0)
        return 1;
    return (raw < 0 ? -(double)raw : (double)raw) / weight->unit;
}

#endif /* KILN_STORE_MEANING_H */
