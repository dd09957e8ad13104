/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gperftools_maps - the memory map at the end of a gperftools profile: which address is in which
 * file.
 *
 * It follows what pprof does with such a map, so that addresses end up in the same mapping:
 * neighbours of one file are joined, the program comes first, and starts that were cut off are put
 * right.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_CODEC_GPERFTOOLS_MAPS_H
#define KILN_CODEC_GPERFTOOLS_MAPS_H

#include "core/builder.h"

struct kiln_map_entry {
    uint64_t start, limit, offset;
    struct kiln_str file, build_id;
};

struct kiln_map {
    struct kiln_builder *b;
    struct kiln_map_entry *entries;
    uint32_t n, cap;
    uint32_t fake;  /* the entry for addresses that are nowhere; UINT32_MAX until there is one */
    uint64_t steps; /* comparisons so far: many addresses times many mappings must end */
};

/* Reads the text of /proc/PID/maps, or what looks like it; other lines are passed over. */
KILN_CHECK int kiln_map_init(struct kiln_map *map, struct kiln_builder *b, struct kiln_str text);

/* The entry an address is in; UINT32_MAX for address 0.  May change the entry, and add one. */
KILN_CHECK int kiln_map_find(struct kiln_map *map, uint64_t address, uint32_t *ret);

/* Puts entry `i` into the builder. */
uint32_t kiln_map_add(struct kiln_map *map, uint32_t i);

#endif /* KILN_CODEC_GPERFTOOLS_MAPS_H */
