/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines - which lines of one function cost what.
 *
 * A function is what its frames are called (core/frame.h), in one source file: functions of one
 * name may be in several.  A line that a stack has more than once (recursion) counts once in its
 * total; a line that is not known is line 0.
 *
 * Threads: plain results; texts are borrowed from the batch.
 */
#ifndef KILN_CORE_LINES_H
#define KILN_CORE_LINES_H

#include "base/err.h"
#include "base/mem.h"
#include "core/batch.h"

struct kiln_line_cost {
    int64_t line;
    int64_t self, total;
};

/* A file that has a function of the name. */
struct kiln_lines_file {
    struct kiln_str file, module; /* either may be "" */
    int64_t start_line;           /* of the function; 0: not known */
    int64_t self, total;
};

struct kiln_lines {
    struct kiln_lines_file *files; /* the chosen one, then the others by total */
    struct kiln_line_cost *lines;  /* of the chosen one, ascending */
    uint32_t n_files, n_lines;     /* no file: no frame has the name */
    struct kiln_budget budget;
};

struct kiln_lines_opts {
    struct kiln_str function;
    struct kiln_str file; /* empty: the one with the largest total */
    size_t memory_bytes;  /* 0: 1 GiB */
};

/* Of all samples of the batch.  KILN_E_NOMATCH where no frame of the function is in the file;
 * KILN_E_LIMIT; -ENOMEM. */
KILN_CHECK int kiln_lines_new(const struct kiln_batch *batch, const struct kiln_lines_opts *opts,
                              struct kiln_lines **ret_lines, struct kiln_err *err);
void kiln_lines_free(struct kiln_lines *lines);

/*
 * The mappings of which some code was compiled from a source file, each once, as numbers of the
 * batch: at most `max`, those that are met first.  Returns how many.
 */
uint32_t kiln_lines_mappings(const struct kiln_batch *batch, struct kiln_str file,
                             uint32_t *mappings, uint32_t max);

#endif /* KILN_CORE_LINES_H */
