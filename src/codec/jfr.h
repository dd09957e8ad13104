/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jfr - reads recordings of Java Flight Recorder, as the JDK and async-profiler write them.
 *
 * CPU, wall-clock, allocation, live-object and lock events become one profile per sample type;
 * jfr_events.c has the table.  Equal stacks of one thread are added up, timestamps are not kept.
 *
 * Threads: no state.
 */
#ifndef KILN_CODEC_JFR_H
#define KILN_CODEC_JFR_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "core/builder.h"

/* True if the content starts as a recording does. */
bool kiln_jfr_detect(struct kiln_str content);

/*
 * Reads a recording of one or more chunks; nothing of `raw` is kept.  If the file ends inside a
 * chunk (its JVM was killed) the chunks before it are read, and each profile says so in its
 * attribute jfr.incomplete; a file that is cut in its first chunk is an error.
 */
KILN_CHECK int kiln_jfr_decode(struct kiln_str raw, struct kiln_builder *b, struct kiln_err *err);

#endif /* KILN_CODEC_JFR_H */
