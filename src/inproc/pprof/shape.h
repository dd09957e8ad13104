/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape - readings of the library as the profiles that clients of Go's net/http/pprof know: their
 * sample types in their order, one table, the program's own mapping first.
 *
 * Threads: no state.
 */
#ifndef KILN_INPROC_PPROF_SHAPE_H
#define KILN_INPROC_PPROF_SHAPE_H

#include "inproc/pprof/source.h"

/* A batch, added or (-1) taken away. */
struct kiln_in_part {
    const struct kiln_batch *batch;
    int64_t sign;
};

/* A mapping as it lies in memory; `filename` and `attrs` are not read. */
struct kiln_in_place {
    struct kiln_mapping mapping;
    uint64_t shift; /* an address of the batch + this is that in memory */
};

struct kiln_in_shape_opts {
    uint64_t time_ns, duration_ns;
    int64_t period;
    struct kiln_str program; /* its file; empty: not known */
    struct kiln_mapping program_mapping;
    struct kiln_str program_build_id; /* hexadecimal; empty: none */
    struct kiln_str comments;         /* lines */
    /* Where a file is in memory, of which `address` is the start of the code as the file has it.
     * False: it is not known.  NULL: addresses stay as they are. */
    bool (*place)(struct kiln_str file, uint64_t address, struct kiln_in_place *ret);
};

/*
 * Profiles of the parts become columns by their types, or else by their units; equal stacks with
 * equal labels become one row; rows without a value are left out.  Addresses become those in
 * memory, which are the only ones that a text, or a question for a name, can have.
 */
KILN_CHECK int kiln_in_shape(enum kiln_in_profile which, const struct kiln_in_part *parts,
                             uint32_t n_parts, const struct kiln_in_shape_opts *opts,
                             struct kiln_batch **ret_batch, struct kiln_err *err);

#endif /* KILN_INPROC_PPROF_SHAPE_H */
