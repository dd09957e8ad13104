/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speedscope - the JSON files of the speedscope viewer (file format 0.0.1).
 *
 * Every profile of a file becomes a profile of the batch.  Sampled profiles keep their samples;
 * evented ones (functions open and close at a time) become the time each stack was on top.  Times
 * are turned into nanoseconds and fractions rounded.  What a value counts is known by its unit
 * only: time/nanoseconds, space/bytes or samples/count; in files written by Kiln the name of a
 * profile says it.  Where a file has several profiles, the samples carry the name as thread.name.
 *
 * Written is one profile of a view, with name, file and line of each frame.
 *
 * Threads: no state.
 */
#ifndef KILN_CODEC_SPEEDSCOPE_H
#define KILN_CODEC_SPEEDSCOPE_H

#include "base/buf.h"
#include "core/builder.h"
#include "core/view.h"

/* True for an object whose $schema is speedscope's, or which has shared frames. */
bool kiln_speedscope_detect(struct kiln_str text);

/* Keeps nothing of the text.  Errors name the path ("profiles[1].samples[20]"). */
KILN_CHECK int kiln_speedscope_decode(struct kiln_str text, struct kiln_builder *b,
                                      struct kiln_err *err);
KILN_CHECK int kiln_speedscope_encode(const struct kiln_view *view, struct kiln_buf *out,
                                      struct kiln_err *err);

#endif /* KILN_CODEC_SPEEDSCOPE_H */
