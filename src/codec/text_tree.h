/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text_tree - the call tree as text, for a terminal or a file.
 *
 *    share    total   self
 *   100.0 %     10s     0s  [====================]  all
 *    90.0 %      9s     1s  [==================  ]  ├─ main
 *    80.0 %      8s     8s  [================    ]  │  parse
 *
 * A frame with lines beside it is one of several callees; a frame without, straight below its
 * caller, is the only one: chains do not run off to the right.
 *
 * Threads: no state.
 */
#ifndef KILN_CODEC_TEXT_TREE_H
#define KILN_CODEC_TEXT_TREE_H

#include "base/buf.h"
#include "core/diff.h"
#include "core/tree.h"

struct kiln_text_tree_opts {
    const char *title;              /* what the profile is of; NULL: not said */
    enum kiln_normalize normalized; /* of a diff: how its sides were made comparable */
    uint32_t depth_max;             /* 0: no limit */
    uint32_t name_chars;            /* longer names are cut; 0: 200 */
    bool fit;                       /* name_chars are for a name and the branches before it */
    double min_share;               /* frames below are left out; 0: 0.005; negative: none is */
    bool colour;                    /* escape sequences of a terminal */
    bool ascii;                     /* no box-drawing characters */
};

/*
 * Writes a tree of `view` (of a diff: the new view), plain or diff.  `opts` may be NULL.
 * Returns 0, -ENOMEM or KILN_E_LIMIT where `out` is full.
 */
KILN_CHECK int kiln_text_tree_encode(const struct kiln_view *view, const struct kiln_tree *tree,
                                     const struct kiln_text_tree_opts *opts, struct kiln_buf *out,
                                     struct kiln_err *err);

/* The same of the view's whole call tree. */
KILN_CHECK int kiln_text_tree_encode_view(const struct kiln_view *view,
                                          const struct kiln_text_tree_opts *opts,
                                          struct kiln_buf *out, struct kiln_err *err);

#endif /* KILN_CODEC_TEXT_TREE_H */
