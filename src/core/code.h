/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code - the same code loaded elsewhere is the same code.
 *
 * Every start of a program maps its files to other addresses.  Two mappings hold the same code if
 * they have the same build id (else the same file), the same attributes, offset and size; a
 * location is then the same at the same distance from the start.  Memory without a file or build id
 * has no such identity.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_CORE_CODE_H
#define KILN_CORE_CODE_H

#include "core/builder.h"
#include "core/intern.h"

/* The mappings of one builder, by the code they hold.  Zero is empty. */
struct kiln_code {
    struct kiln_intern index;
};

/*
 * The first mapping of the builder with the same code, or a new one.  Failures stick in the
 * builder.
 */
uint32_t kiln_code_mapping(struct kiln_code *code, struct kiln_builder *b,
                           const struct kiln_mapping *mapping);

/*
 * Moves a mapping of code that has a size to where its file has it: start and limit become offsets
 * in the file.  An address in it moves with the start.  Doing it again changes nothing.
 */
void kiln_code_to_file(const struct kiln_batch *batch, struct kiln_mapping *mapping);

/* `b` is the builder, for its budget. */
void kiln_code_done(struct kiln_code *code, struct kiln_builder *b);

#endif /* KILN_CORE_CODE_H */
