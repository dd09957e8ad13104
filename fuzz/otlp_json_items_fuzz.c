/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counting spans, data points and log records of JSON that is passed on.  The first byte says which
 * of them.  There are never more than bytes, and two messages in a row are none.
 */
#include "fuzz.h"
#include "otlp_items_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_message message;
    uint64_t items, again;

    if (!fuzz_message_read(data, size, &message))
        return 0;
    if (kiln_otlp_count_json_items(message.signal, message.once, &items, NULL) == 0) {
        FUZZ_CHECK(items <= message.once.len);
        FUZZ_CHECK(kiln_otlp_count_json_items(message.signal, message.twice, &again, NULL) < 0);
    }
    fuzz_message_free(&message);
    return 0;
}
