/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf - reads 64-bit little-endian ELF files of strangers: segments, sections, notes.
 *
 * Bytes come through a source (pread of a file, or memory); every offset and size is checked, and
 * what a file may make us read is limited.  A file that shrinks or changes meanwhile gives errors
 * or other bytes, never a fault.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_SYMBOL_ELF_H
#define KILN_SYMBOL_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

enum { KILN_BUILD_ID_MAX = 20 };

/* Where bytes come from.  Reads exactly `n` bytes, or returns a negative errno (KILN_E_TRUNCATED
 * past the end). */
struct kiln_bytes {
    int (*read)(const struct kiln_bytes *bytes, uint64_t offset, void *to, size_t n);
    uint64_t size;
    int fd;           /* of kiln_bytes_file() */
    const void *data; /* of kiln_bytes_memory(), borrowed */
    void *self;       /* of another source */
};
KILN_CHECK int kiln_bytes_file(int fd, struct kiln_bytes *ret_bytes); /* borrows the file */
struct kiln_bytes kiln_bytes_memory(const void *data, size_t n);

struct kiln_elf_segment {
    uint32_t type, flags; /* PT_*, PF_* */
    uint64_t offset, address, file_size, memory_size, align;
};

struct kiln_elf_section {
    const char *name; /* "" where the file has no names */
    uint32_t type, link;
    uint64_t flags, address, offset, size, entry_size;
};

struct kiln_elf {
    struct kiln_bytes bytes;
    uint16_t type, machine; /* ET_*, EM_* */
    uint64_t entry;
    const struct kiln_elf_segment *segments;
    const struct kiln_elf_section *sections;
    uint32_t n_segments, n_sections;
};

/*
 * Reads headers alone; at most 1,024 segments and 65,535 sections, 1 MiB of names.  KILN_E_UNKNOWN:
 * no ELF; KILN_E_UNSUPPORTED: 32 bits or big-endian.
 */
KILN_CHECK int kiln_elf_open(const struct kiln_bytes *bytes, struct kiln_elf **ret_elf);
void kiln_elf_close(struct kiln_elf *elf);
/* Memory that it holds. */
size_t kiln_elf_bytes(const struct kiln_elf *elf);

/* NULL: there is none of that name. */
const struct kiln_elf_section *kiln_elf_section(const struct kiln_elf *elf, const char *name);
/*
 * The content of a section, uncompressed (zlib or zstd), in memory from kiln_malloc().
 * KILN_E_LIMIT: larger than `max`; -ENOENT: the file has none of it (SHT_NOBITS).
 */
KILN_CHECK int kiln_elf_load(const struct kiln_elf *elf, const struct kiln_elf_section *section,
                             size_t max, void **ret_data, size_t *ret_size);
/* `n` bytes at an offset of the file, in memory from kiln_malloc().  KILN_E_LIMIT: more than `max`.
 */
KILN_CHECK int kiln_elf_load_plain(const struct kiln_elf *elf, uint64_t at, uint64_t n, size_t max,
                                   void **ret_data);
/* Bytes at an address of the file's own, by its segments.  -ENOENT: no segment has all of them. */
KILN_CHECK int kiln_elf_read(const struct kiln_elf *elf, uint64_t address, void *to, size_t n);
/* The address of what is at an offset, by the segments that can be executed.  -ENOENT. */
KILN_CHECK int kiln_elf_address(const struct kiln_elf *elf, uint64_t offset, uint64_t *ret_address);

/* GNU's build id, cut where it is longer, and Go's.  -ENOENT: none. */
KILN_CHECK int kiln_elf_build_id(const struct kiln_elf *elf, uint8_t ret_id[KILN_BUILD_ID_MAX],
                                 uint8_t *ret_len);
/* GNU's in notes that are in memory: the kernel shows its own. */
KILN_CHECK int kiln_notes_build_id(const void *notes, size_t n, uint8_t ret_id[KILN_BUILD_ID_MAX],
                                   uint8_t *ret_len);
KILN_CHECK int kiln_elf_go_build_id(const struct kiln_elf *elf, char *ret_text, size_t size);
/* OpenTelemetry's hash of a file: 32 hexadecimal digits and NUL. */
KILN_CHECK int kiln_elf_hash(const struct kiln_bytes *bytes, char ret_text[33]);

#endif /* KILN_SYMBOL_ELF_H */
