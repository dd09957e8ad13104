/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names_deep - lines and inlines of an ELF file, from its debug information, wherever that is.
 *
 * If the file has none itself, its separate debug file is wanted: the one with the same build id,
 * else the one whose CRC-32 its debug link tells.  What that lacks in turn (an alternate, split
 * units) is wanted next.  Nothing is opened here: whoever asks has to give the files.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_SYMBOL_NAMES_DEEP_H
#define KILN_SYMBOL_NAMES_DEEP_H

#include "symbol/dwarf.h"

struct kiln_deep;

struct kiln_deep_opts {
    size_t memory_bytes;          /* 0: 48 MiB */
    struct kiln_scratch *scratch; /* see symbol/dwarf.h; NULL: none */
};

/* `elf` is borrowed. */
KILN_CHECK int kiln_deep_new(const struct kiln_elf *elf, const struct kiln_deep_opts *opts,
                             struct kiln_deep **ret_deep);
void kiln_deep_free(struct kiln_deep *deep);
size_t kiln_deep_bytes(const struct kiln_deep *deep);
/* On the monotonic clock; work goes on until then.  0: there is none. */
void kiln_deep_deadline(struct kiln_deep *deep, uint64_t deadline_ns);

/* The file it cannot go on without; the same until it is attached. */
bool kiln_deep_wants(struct kiln_deep *deep, struct kiln_wanted *ret_wanted);
/*
 * That file, which is read as long as this lives; NULL: there is none.  KILN_E_NOMATCH: it is
 * another, and is wanted again with the next attempt, unless there were too many.
 */
KILN_CHECK int kiln_deep_attach(struct kiln_deep *deep, const struct kiln_bytes *bytes);

/* The separate debug file, once it is known to be the right one; NULL. */
const struct kiln_elf *kiln_deep_separate(const struct kiln_deep *deep);

/* See kiln_dwarf_find(); -EAGAIN also while a file is wanted. */
KILN_CHECK int kiln_deep_find(struct kiln_deep *deep, uint64_t address,
                              const struct kiln_dwarf_frame **ret_frames, uint32_t *ret_n);

#endif /* KILN_SYMBOL_NAMES_DEEP_H */
