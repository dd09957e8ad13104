/* SPDX-License-Identifier: Apache-2.0 */
/*
 * section - a section of an ELF file as bytes with random access, inflated where it is compressed.
 *
 * A plain section is read from its file.  A compressed one is inflated when it is read and only as
 * far as it is read, into memory where it is small, else into a scratch file.  Reading may thus
 * take long: past the deadline it gives -EAGAIN, and goes on where it was when asked again.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_SYMBOL_SECTION_H
#define KILN_SYMBOL_SECTION_H

#include "symbol/elf.h"

struct kiln_budget;

enum { KILN_SCRATCH_PARTS = 64 };

/* A file that several sections, of several ELF files, put inflated bytes into. */
struct kiln_scratch {
    int fd;       /* borrowed; read and written at offsets; cut to nothing when nobody uses it, */
    bool shared;  /* unless somebody else has what is behind: */
    uint64_t max; /* bytes */
    uint32_t n;
    struct kiln_scratch_part {
        uint64_t at, size;
    } parts[KILN_SCRATCH_PARTS]; /* in use; ascending */
};

struct kiln_section_room {
    struct kiln_budget *budget;   /* outlives the section */
    struct kiln_scratch *scratch; /* likewise; NULL: memory has to do */
    const uint64_t *deadline_ns;  /* likewise, monotonic; NULL or 0 there: none */
};

struct kiln_section {
    struct kiln_bytes bytes;    /* may be copied; lives as long as the section */
    uint64_t base;              /* where it begins in them */
    uint64_t size;              /* 0: absent or empty */
    struct kiln_inflated *self; /* NULL: it is not compressed */
};

/*
 * By its name as it is uncompressed, ".debug_info": a ".zdebug_info" is found too.  Nothing is
 * inflated yet.  -ENOENT: absent; *ret_section is empty then.  The ELF file outlives the section.
 */
KILN_CHECK int kiln_section_open(const struct kiln_elf *elf, const char *name,
                                 const struct kiln_section_room *room,
                                 struct kiln_section *ret_section);
void kiln_section_done(struct kiln_section *section);

/*
 * Exactly `n` bytes.  KILN_E_TRUNCATED: past its end; KILN_E_CORRUPT: the compressed data is
 * damaged there; KILN_E_LIMIT: it cannot be inflated within its room; -EAGAIN: the deadline passed.
 */
KILN_CHECK int kiln_section_read(const struct kiln_section *section, uint64_t offset, void *to,
                                 size_t n);

/*
 * The bytes of a section that is in memory whole, with no need to copy them; NULL: it is not.
 * Small compressed sections come to be after their first read.
 */
const uint8_t *kiln_section_memory(const struct kiln_section *section);

#endif /* KILN_SYMBOL_SECTION_H */
