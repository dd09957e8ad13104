/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counting spans, data points and log records of messages that are passed on.  The first byte says
 * which of them.  There are never more than bytes, and the same message twice has twice as many.
 */
#include "otlp_items_fuzz.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_message message;
    uint64_t items, twice;

    if (!fuzz_message_read(data, size, &message))
        return 0;
    if (kiln_otlp_count_items(message.signal, message.once, &items) == 0) {
        FUZZ_CHECK(items <= message.once.len);
        FUZZ_CHECK(kiln_otlp_count_items(message.signal, message.twice, &twice) == 0);
        FUZZ_CHECK(twice == 2 * items);
    }
    fuzz_message_free(&message);
    return 0;
}
