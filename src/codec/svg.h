/* SPDX-License-Identifier: Apache-2.0 */
/*
 * svg - the flame graph: one SVG file that needs nothing else.
 *
 * Opened in a browser it zooms, finds and walks by keyboard (assets/flamegraph.js); anywhere else
 * it is a drawing with a title on every frame.  It says in words what it shows, and how many frames
 * were too narrow to draw.
 *
 * Threads: no state.
 */
#ifndef KILN_CODEC_SVG_H
#define KILN_CODEC_SVG_H

#include "base/buf.h"
#include "core/diff.h"
#include "core/tree.h"

struct kiln_svg_opts {
    const char *title;              /* what the profile is of, as "checkout"; NULL: not said */
    enum kiln_normalize normalized; /* of a diff: how its sides were made comparable */
    uint32_t width;                 /* px; 0: 1200.  A browser draws as wide as its window is. */
    uint32_t frames_max;            /* 0: 4,096; the widest are drawn */
    uint32_t depth_max;             /* 0: 256 */
    double min_share;               /* narrower frames are folded; 0: those below 0.1 px */
    bool root_below;                /* callees above their callers at first; the key i flips it */
};

/*
 * Draws a tree of `view` (of a diff: the new view), plain or diff.  `opts` may be NULL.
 * Returns 0, -ENOMEM or KILN_E_LIMIT where `out` is full.
 */
KILN_CHECK int kiln_svg_encode(const struct kiln_view *view, const struct kiln_tree *tree,
                               const struct kiln_svg_opts *opts, struct kiln_buf *out,
                               struct kiln_err *err);

/* The same of the view's whole call tree. */
KILN_CHECK int kiln_svg_encode_view(const struct kiln_view *view, const struct kiln_svg_opts *opts,
                                    struct kiln_buf *out, struct kiln_err *err);

#endif /* KILN_CODEC_SVG_H */
