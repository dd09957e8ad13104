/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_fuzz - what rows promise, whatever the file: the first at the beginning of the range,
 * sorted, no two neighbours equal; and that a function covers the address that was asked for.
 */
#ifndef KILN_FUZZ_ROWS_FUZZ_H
#define KILN_FUZZ_ROWS_FUZZ_H

#include <string.h>

#include "fuzz.h"
#include "symbol/cfi.h"

static inline void kiln_fuzz_functions(struct kiln_cfi *cfi, uint64_t begin, uint64_t size)
{
    for (uint64_t at = 0; at < size; at += 97) {
        uint64_t first, end;

        if (kiln_cfi_function(cfi, begin + at, &first, &end) == 0)
            FUZZ_CHECK(first <= begin + at && begin + at < end);
    }
}

static inline void kiln_fuzz_rows(struct kiln_cfi *cfi, uint64_t begin, uint64_t size)
{
    static struct kiln_cfi_row rows[16384];
    int n = kiln_cfi_rows(cfi, begin, begin + size, rows, 16384);

    kiln_fuzz_functions(cfi, begin, size);
    if (n <= 0)
        return;
    FUZZ_CHECK(rows[0].address == begin);
    for (int i = 1; i < n; i++) {
        FUZZ_CHECK(rows[i].address > rows[i - 1].address && rows[i].address < begin + size);
        FUZZ_CHECK(memcmp(&rows[i].rule, &rows[i - 1].rule, sizeof(rows[i]) - 8) != 0);
    }
}

#endif /* KILN_FUZZ_ROWS_FUZZ_H */
