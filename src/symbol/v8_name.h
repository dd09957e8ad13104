/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8_name - names that V8 gives to the code of JavaScript functions in perf-maps and jitdumps:
 *
 *   JS:*render /app/view.js:10:5           V8 of Node 20 and newer
 *   LazyCompile:*render /app/view.js:10    V8 of Node 16 and 18; also Function:
 *
 * The character behind the kind is the tier: ~ interpreted, ^ baseline, + and * optimized.  Scripts
 * and calls of eval are of the kinds Script and Eval in all versions.
 *
 * Threads: no state.
 */
#ifndef KILN_SYMBOL_V8_NAME_H
#define KILN_SYMBOL_V8_NAME_H

#include "base/str.h"

/* The kinds Function and LazyCompile become JS; any other text is returned as it is. */
struct kiln_str kiln_v8_name(struct kiln_str text, char *buffer, size_t size);

/* Whether the code is byte code, or baseline code, whose places are those of byte code. */
bool kiln_v8_name_is_bytecode(struct kiln_str name);

/* Where the function begins.  False: the name is not V8's, or has no place. */
bool kiln_v8_name_place(struct kiln_str name, struct kiln_str *ret_file, uint32_t *ret_line);

#endif /* KILN_SYMBOL_V8_NAME_H */
