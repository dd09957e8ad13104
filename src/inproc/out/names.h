/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names - names for a batch that has addresses alone, from the files that are mapped here: .symtab,
 * .dynsym, mini-debuginfo, the vDSO in memory; and for code that was made at run time from
 * /tmp/perf-PID.map, as V8 and others write it.  Demangled; no lines.
 *
 * One file at a time is read for the symbols that are needed, and closed again: they take
 * KILN_IN_NAMES_TABLE bytes at most, those of a perf-map, which stay, KILN_IN_NAMES_MAP.  Answers
 * are kept by file and address in KILN_IN_NAMES_KEPT bytes, so that in the steady state nothing is
 * read.
 *
 * Threads: from any of our own; one at a time works, others wait.
 */
#ifndef KILN_INPROC_OUT_NAMES_H
#define KILN_INPROC_OUT_NAMES_H

#include "base/err.h"
#include "core/batch.h"

enum {
    KILN_IN_NAMES_TABLE = 4 << 20,
    KILN_IN_NAMES_MAP = 8 << 20,
    KILN_IN_NAMES_KEPT = 2 << 20,
};

struct kiln_builder;

struct kiln_in_names_how {
    bool rest; /* only what no file with a build id has: the vDSO, code that was made at run time */
    void (*finish)(void *context, struct kiln_builder *b); /* what else it gets; NULL: nothing */
    void *context;
};

/* Gives every location without a function the one it is in, where that can be found. */
KILN_CHECK int kiln_in_names_fill(struct kiln_batch *batch, const struct kiln_in_names_how *how,
                                  struct kiln_batch **ret_named, struct kiln_err *err);

/* In a forked child: what is known is forgotten, whoever was at work. */
void kiln_in_names_forked(void);

#endif /* KILN_INPROC_OUT_NAMES_H */
