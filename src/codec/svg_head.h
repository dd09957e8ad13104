/* SPDX-License-Identifier: Apache-2.0 */
/*
 * svg_head - the head that our SVG drawings share: title, colours, and the sentences on top.
 *
 * Threads: no state.
 */
#ifndef KILN_CODEC_SVG_HEAD_H
#define KILN_CODEC_SVG_HEAD_H

#include "codec/caption.h"

#define KILN_SVG_EDGE 16 /* px around everything */
#define KILN_SVG_HEAD 96 /* px that the sentences take */

/*
 * Writes what follows the opening <svg>: its title, the style sheet (palette.css and then `css`),
 * the ground, the headline, what stands out, and where it is from.  The last text is left open, for
 * the drawing to add what it left out and "</text>".
 */
void kiln_svg_head(const struct kiln_caption *caption, struct kiln_str css, struct kiln_buf *out);

#endif /* KILN_CODEC_SVG_HEAD_H */
