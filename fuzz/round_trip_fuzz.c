/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a receiver takes comes back from a store as it was sent: from the head, the log, a block and
 * a merged block (tests/support/round_trip.h).  The first letter says the format.
 */
#include <stdio.h>
#include <string.h>

#include "fuzz.h"
#include "mutate.h"
#include "round_trip.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct round_trip_format *format = size ? round_trip_format_of((char)data[0]) : NULL;
    struct kiln_buf why;

    /* A store that has no memory waits for some: tests/torture/power_cut.c looks at that. */
    if (!format || getenv("KILN_TORTURE"))
        return 0;
    kiln_buf_init(&why, 1 << 20);
    if (round_trip(format, (struct kiln_str){(const char *)data + 1, size - 1}, size, &why) ==
        ROUND_TRIP_WRONG) {
        fprintf(stderr, "%.*s", KILN_STR_ARG(kiln_buf_str(&why)));
        FUZZ_CHECK(false);
    }
    kiln_buf_done(&why);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    const struct round_trip_format *format = size ? round_trip_format_of((char)data[0]) : NULL;
    struct kiln_buf out;
    size_t n;

    kiln_buf_init(&out, 1 << 20);
    mutate(format ? (enum mutate_shape)format->shape : MUTATE_BYTES,
           (struct kiln_str){(const char *)data + (format != NULL), size - (format != NULL)}, seed,
           &out);
    n = out.len < max_size - 1 ? out.len : max_size - 1;
    if (!format)
        data[0] = 'o';
    if (n)
        memcpy(data + 1, out.ptr, n);
    kiln_buf_done(&out);
    return n + 1;
}
