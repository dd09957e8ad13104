/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collapsed - one line a stack, root first: "main;parse;read 42".
 *
 * The form flame graph tools exchange.  It has no types, units or attributes: what is read is
 * samples/count.  Frames may hold spaces, counts may be fractions (rounded), empty lines and lines
 * that start with '#' are passed over.  Suffixes of a frame say what it is: _[k] kernel, _[j] made
 * by a JIT compiler, _[i] inlined into its caller; they become the frame type or an inlined line
 * and are written again.
 *
 * What a line cannot hold is written as something else: a ';' in a name as U+FF1B, which is read as
 * ';' again; line breaks as spaces; the empty stack as "[no stack]".
 *
 * Threads: no state.
 */
#ifndef KILN_CODEC_COLLAPSED_H
#define KILN_CODEC_COLLAPSED_H

#include "base/buf.h"
#include "core/builder.h"
#include "core/view.h"

/* True if the first lines all have this form and some stack has two frames. */
bool kiln_collapsed_detect(struct kiln_str text);

/* Adds one profile; errors name the line.  Keeps nothing of the text. */
KILN_CHECK int kiln_collapsed_decode(struct kiln_str text, struct kiln_builder *b,
                                     struct kiln_err *err);
KILN_CHECK int kiln_collapsed_encode(const struct kiln_view *view, struct kiln_buf *out,
                                     struct kiln_err *err);

#endif /* KILN_CODEC_COLLAPSED_H */
