/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf - the text that `perf script` prints, with whatever fields were asked for (-F).
 *
 * One profile an event.  cpu-clock and task-clock are CPU time (cpu/nanoseconds, by the period);
 * other events count by their period under their own name; where periods were not printed, each
 * sample counts one.  Samples carry thread.id, thread.name, process.pid and cpu.logical_number as
 * far as they were printed.  Frames know whether they are kernel code; inlined frames are lines of
 * the frame they were inlined into.
 *
 * The times that perf prints count from some moment of the boot, not from 1970: they give the
 * duration and are not taken for timestamps.
 *
 * Threads: no state.
 */
#ifndef KILN_CODEC_PERF_H
#define KILN_CODEC_PERF_H

#include "core/builder.h"

/* True if the text starts with a sample of perf script. */
bool kiln_perf_detect(struct kiln_str text);

/* Keeps nothing of the text.  Errors name the line. */
KILN_CHECK int kiln_perf_decode(struct kiln_str text, struct kiln_builder *b, struct kiln_err *err);

#endif /* KILN_CODEC_PERF_H */
