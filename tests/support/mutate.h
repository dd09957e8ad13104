/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutate - changes an input by what its format is made of: fields of protobuf at any depth, values
 * of JSON, lines, bytes.  The same seed makes the same change.
 */
#ifndef KILN_TESTS_SUPPORT_MUTATE_H
#define KILN_TESTS_SUPPORT_MUTATE_H

#include "base/buf.h"

enum mutate_shape { MUTATE_BYTES, MUTATE_LINES, MUTATE_JSON, MUTATE_PROTOBUF };

/* Appends a changed input to `out`. */
void mutate(enum mutate_shape shape, struct kiln_str in, uint64_t seed, struct kiln_buf *out);

#endif /* KILN_TESTS_SUPPORT_MUTATE_H */
