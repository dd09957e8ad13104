/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a file that somebody uploads: what it is, whose, and where its code lies.
 */
#include "fuzz.h"
#include "naming/debug_file.h"

static void check_map(const struct kiln_debug_map *map)
{
    FUZZ_CHECK(map->n > 0 && map->n <= KILN_DEBUG_SEGMENTS);
    for (uint32_t i = 0; i < map->n; i++) {
        uint64_t address, place = map->segments[i].place;

        FUZZ_CHECK(kiln_debug_map_address(map, place, &address));
        FUZZ_CHECK(kiln_debug_map_address(map, place + map->segments[i].size - 1, &address));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_bytes bytes = kiln_bytes_memory(data, size);
    struct kiln_debug_facts facts;
    struct kiln_debug_map map;
    struct kiln_elf *elf;
    struct kiln_err err = {0};
    int r = kiln_debug_inspect(&bytes, &facts, &err);

    FUZZ_CHECK(r <= 0 && (r == 0) == (err.code == 0));
    if (r == 0) {
        struct kiln_str id = kiln_str_of(kiln_debug_build_id(&facts));

        FUZZ_CHECK(facts.bytes == size && id.len <= KILN_DEBUG_ID_MAX);
        FUZZ_CHECK(id.len == 0 || kiln_debug_facts_match(&facts, id));
    }
    if (kiln_elf_open(&bytes, &elf) < 0)
        return 0;
    if (kiln_debug_map_make(elf, &map) == 0)
        check_map(&map);
    kiln_elf_close(elf);
    return 0;
}
