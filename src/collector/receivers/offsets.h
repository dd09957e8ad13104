/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offsets - how far files were read, for the collector that runs next.  As text:
 *
 *   kiln-offsets 1
 *   DEVICE INODE OFFSET HEAD HASH       decimal; HASH, hexadecimal, is of the first HEAD bytes
 *
 * A file is the one that is meant where its first bytes are those that it had.
 *
 * Threads: as files.h.
 */
#ifndef KILN_COLLECTOR_RECEIVERS_OFFSETS_H
#define KILN_COLLECTOR_RECEIVERS_OFFSETS_H

#include "base/buf.h"
#include "collector/receivers/files.h"

/* Adds what a text says of files; lines that make no sense are passed over.  0 or -ENOMEM. */
KILN_CHECK int kiln_offsets_read(struct kiln_files *files, struct kiln_str text);
void kiln_offsets_write(const struct kiln_files *files, struct kiln_buf *out);

/* Of a file that is open: begins anew where its first bytes are others than they were. */
void kiln_offsets_prove(struct kiln_file *file, int fd);
/* Notes its first bytes, as far as it was read. */
void kiln_offsets_note(struct kiln_file *file, int fd);

#endif /* KILN_COLLECTOR_RECEIVERS_OFFSETS_H */
