/* SPDX-License-Identifier: Apache-2.0 */
/* A perf-map; and the same read bit by bit, which must come to the same. */
#include "names_fuzz.h"

static void check_same(struct kiln_names *a, struct kiln_names *b, uint64_t address)
{
    struct kiln_name name = {0};
    bool found = kiln_names_find(a, address, &name);
    struct kiln_name other = {0};

    FUZZ_CHECK(kiln_names_find(b, address, &other) == found);
    FUZZ_CHECK(kiln_str_eq(kiln_name_function(&name), kiln_name_function(&other)));
}

static void grow(const uint8_t *data, size_t size)
{
    struct kiln_bytes half = kiln_bytes_memory(data, size / 2);
    struct kiln_bytes all = kiln_bytes_memory(data, size);
    struct kiln_names *grown = NULL;
    struct kiln_names *whole = NULL;

    if (kiln_names_open(KILN_SOURCE_PERF_MAP, &half, NULL, &grown) == 0 &&
        kiln_names_open(KILN_SOURCE_PERF_MAP, &all, NULL, &whole) == 0 &&
        kiln_names_grow(grown, &all) == 0) {
        for (uint64_t i = 0; i < 64; i++)
            check_same(grown, whole, 0x1000 + i * 8);
    }
    kiln_names_close(grown);
    kiln_names_close(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_names(KILN_SOURCE_PERF_MAP, data, size);
    if (size > 1)
        grow(data, size);
    return 0;
}
