/* SPDX-License-Identifier: Apache-2.0 */
/*
 * svg_plan - which frames of a tree are drawn in a flame graph, and where.
 *
 * A frame is drawn if it is wide enough and not too deep; since no frame is wider than its caller,
 * what is drawn hangs together.  The callees of a frame that are not drawn become one folded frame,
 * so that nothing is lost: widths are those of the whole tree.
 *
 * The width of a frame is its total; in a diff it is the sum of both sides, so that what is gone
 * can still be seen.
 *
 * Threads: plain results, owned by the caller.
 */
#ifndef KILN_CODEC_SVG_PLAN_H
#define KILN_CODEC_SVG_PLAN_H

#include "core/tree.h"

struct kiln_svg_place {
    uint32_t node;   /* of a folded frame: its caller */
    uint32_t folded; /* frames that this one stands for; 0: it is a frame itself */
    uint32_t depth;
    double x, w; /* shares of the whole */
};

struct kiln_svg_plan {
    struct kiln_svg_place *places; /* in preorder, a folded frame after its siblings */
    uint32_t n_places;
    uint32_t n_drawn; /* frames among them that are not folded, the root not counted */
    uint32_t max_depth;
};

struct kiln_svg_plan_opts {
    uint32_t frames_max;
    uint32_t depth_max;
    double min_share;
};

/* Returns 0 or -ENOMEM. */
KILN_CHECK int kiln_svg_plan_init(const struct kiln_tree *tree,
                                  const struct kiln_svg_plan_opts *opts,
                                  struct kiln_svg_plan *ret_plan);
void kiln_svg_plan_done(struct kiln_svg_plan *plan);

#endif /* KILN_CODEC_SVG_PLAN_H */
