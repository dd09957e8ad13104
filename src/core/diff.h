/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff - what grew and what shrank between two views, function by function.
 *
 * Values of the base are first made comparable: scaled to the same total (share against share) or
 * to the same duration (rate against rate).  A change that sampling noise alone could explain (95
 * %, from the numbers of observations) is marked and ranked after every change that it could not.
 *
 * Threads: plain results, owned by the caller.
 */
#ifndef KILN_CORE_DIFF_H
#define KILN_CORE_DIFF_H

#include "core/view.h"

enum kiln_normalize {
    KILN_NORMALIZE_TIME,  /* by duration where both know theirs, else as they are */
    KILN_NORMALIZE_TOTAL, /* to the same total */
    KILN_NORMALIZE_NONE,
};

struct kiln_diff_row {
    struct kiln_frame frame; /* of b, or of a where b has none */
    double self_a, total_a;  /* normalised */
    int64_t self_b, total_b;
    double self_noise, total_noise; /* half-width of the 95 % interval of the difference */
    bool self_within_noise, total_within_noise;
};

struct kiln_diff {
    /*
     * Changes of self beyond noise, largest first; then changes of only the total beyond noise;
     * then the rest.  Frames are matched by name; their texts are the views'.
     */
    struct kiln_diff_row *rows;
    uint32_t n_rows;
    double scale_a; /* what values of a were multiplied by */
    double total_a; /* normalised */
    double total_b;
    double total_noise;
    enum kiln_normalize
        normalized; /* what was done: TIME becomes NONE where a duration is unknown */
};

/*
 * Both views must outlive it.  Levels (what is in use) are never normalised by time.
 * Returns 0, KILN_E_NOMATCH where the two are not of one unit, KILN_E_LIMIT or -ENOMEM.
 */
KILN_CHECK int kiln_diff_new(const struct kiln_view *a, const struct kiln_view *b,
                             enum kiln_normalize normalize, struct kiln_diff **ret_diff,
                             struct kiln_err *err);
void kiln_diff_free(struct kiln_diff *diff);

#endif /* KILN_CORE_DIFF_H */
