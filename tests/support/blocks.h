/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks - batches into blocks and back, for tests.
 *
 * The service of a profile is its resource's service.name, else "none"; its series is that and its
 * sample type.
 */
#ifndef KILN_TESTS_BLOCKS_H
#define KILN_TESTS_BLOCKS_H

#include "store/block.h"

#define BLOCK_MEMORY ((size_t)64 << 20)

/* Writes all profiles of a batch as a block of the tenant "t"; returns what commit returned. */
int block_write(struct kiln_io *io, const struct kiln_batch *batch,
                const struct kiln_block_write_opts *opts, struct kiln_block_id *ret_id,
                struct kiln_err *err);
/* The path of a block of the tenant "t", in a static buffer. */
const char *block_path(const struct kiln_block_id *id);
/* Both, and opened; fails the test on any error. */
struct kiln_block *block_of(struct kiln_io *io, const struct kiln_batch *batch);

/* What a reader gives, as a batch; NULL, and the code, if it fails. */
struct kiln_batch *block_batch(struct kiln_block *block, const struct kiln_block_read_opts *opts,
                               int *ret_code, struct kiln_err *err);
/* Fails the test unless both batches say the same, head for head and sample for sample. */
void block_check_same(const struct kiln_batch *a, const struct kiln_batch *b);

#endif /* KILN_TESTS_BLOCKS_H */
