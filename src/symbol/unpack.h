/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack - the content of compressed sections of ELF files (zlib, zstd), at once or piece by piece.
 *
 * The size that a file claims is believed no further than its limits: what comes out is never more
 * than asked for, and less than claimed is an error.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_SYMBOL_UNPACK_H
#define KILN_SYMBOL_UNPACK_H

#include "symbol/elf.h"

enum kiln_packing { KILN_PACKING_ZLIB, KILN_PACKING_ZSTD };

/* Where the compressed bytes of a section are, and what they claim to become. */
struct kiln_packed {
    enum kiln_packing packing;
    uint64_t at, n; /* in the file */
    uint64_t size;  /* uncompressed; possible, as far as the format goes */
};

/* Whether a section is compressed: SHF_COMPRESSED, or the old form, which its name says. */
bool kiln_section_is_packed(const struct kiln_elf_section *section);
KILN_CHECK int kiln_packed_read(const struct kiln_elf *elf, const struct kiln_elf_section *section,
                                struct kiln_packed *ret_packed);

/* All of it at once: `n` bytes in memory become exactly `n_to`. */
KILN_CHECK int kiln_unpack_whole(enum kiln_packing packing, const void *from, size_t n, void *to,
                                 size_t n_to);

/* Piece by piece, from the front. */
struct kiln_unpack;
KILN_CHECK int kiln_unpack_open(const struct kiln_bytes *bytes, const struct kiln_packed *packed,
                                struct kiln_unpack **ret_unpack);
void kiln_unpack_close(struct kiln_unpack *unpack);
/* The next `n` bytes; there must be so many left of packed->size. */
KILN_CHECK int kiln_unpack_read(struct kiln_unpack *unpack, void *to, size_t n);
/* The most memory that one of them takes. */
size_t kiln_unpack_bytes(enum kiln_packing packing);

#endif /* KILN_SYMBOL_UNPACK_H */
