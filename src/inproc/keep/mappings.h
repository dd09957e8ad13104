/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mappings - which file each piece of code in this process came from, also of files that have been
 * unloaded since.
 *
 * Threads: kiln_in_mappings_look() from any of our own; the others between lock and unlock.
 */
#ifndef KILN_INPROC_KEEP_MAPPINGS_H
#define KILN_INPROC_KEEP_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "symbol/elf.h"

enum { KILN_IN_MAPPINGS_MAX = 4096, KILN_IN_MAPPING_PATH = 256 };

struct kiln_in_mapping {
    uint64_t start, end;                           /* in memory */
    uint64_t code_address, code_offset, code_size; /* the segment, as the file wants it */
    uint64_t shift;                                /* an address in memory + this is the file's */
    char path[KILN_IN_MAPPING_PATH];
    uint8_t build_id[KILN_BUILD_ID_MAX];
    uint8_t build_id_len;
    char file_hash[33]; /* where it has no build id */
    bool ours;          /* this library */
    bool current;       /* it is still there */
    uint64_t inode, map_offset;
    uint32_t made; /* for whoever holds the lock */
};

/* Looks which there are now. */
void kiln_in_mappings_look(void);

void kiln_in_mappings_lock(void);
void kiln_in_mappings_unlock(void);
/* NULL: it is in no file. */
struct kiln_in_mapping *kiln_in_mappings_find(uint64_t address);
/* Where the code of a file is, which the file has at `address`; NULL: nowhere. */
struct kiln_in_mapping *kiln_in_mappings_of(struct kiln_str path, uint64_t address);
/* Of all, `made` is 0. */
void kiln_in_mappings_unmake(void);

/* In a forked child: the same mappings, and nobody holds the lock. */
void kiln_in_mappings_forked(void);

#endif /* KILN_INPROC_KEEP_MAPPINGS_H */
