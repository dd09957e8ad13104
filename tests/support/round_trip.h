/* SPDX-License-Identifier: Apache-2.0 */
/*
 * round_trip - the property that whatever a store acknowledges can be replayed, cut into a block,
 * merged and read back, and equals what was sent.
 */
#ifndef KILN_TESTS_SUPPORT_ROUND_TRIP_H
#define KILN_TESTS_SUPPORT_ROUND_TRIP_H

#include "base/buf.h"
#include "core/builder.h"

/* What a receiver makes of a body; the first letter of a fuzz input says which. */
struct round_trip_format {
    char letter;
    const char *name;
    const char *corpus; /* in fuzz/corpus */
    int shape;          /* enum mutate_shape */
};
extern const struct round_trip_format round_trip_formats[];
const struct round_trip_format *round_trip_format_of(char letter);

enum round_trip_result { ROUND_TRIP_SAME, ROUND_TRIP_REFUSED, ROUND_TRIP_WRONG };
/* Gives an uncompressed body to a store of its own; `why` says what was wrong. */
enum round_trip_result round_trip(const struct round_trip_format *format, struct kiln_str body,
                                  uint64_t seed, struct kiln_buf *why);

#endif /* KILN_TESTS_SUPPORT_ROUND_TRIP_H */
