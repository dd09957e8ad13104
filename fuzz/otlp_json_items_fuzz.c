/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counting spans, data points and log records of JSON that is passed on.  The first byte says which
 * of them.  There are never more than bytes, and two messages in a row are none.
 */
#include <string.h>

#include "fuzz.h"
#include "pipeline/receivers/otlp_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum kiln_signal signal;
    uint64_t items, again;
    char *copy;
    size_t n = size ? size - 1 : 0;

    if (!n || n > 1 << 20)
        return 0;
    signal = (enum kiln_signal)(1 + data[0] % (KILN_SIGNALS - 1));
    copy = malloc(2 * n);
    if (!copy)
        return 0;
    memcpy(copy, data + 1, n);
    memcpy(copy + n, data + 1, n);
    if (kiln_otlp_count_json_items(signal, (struct kiln_str){copy, n}, &items, NULL) == 0) {
        FUZZ_CHECK(items <= n);
        FUZZ_CHECK(
            kiln_otlp_count_json_items(signal, (struct kiln_str){copy, 2 * n}, &again, NULL) < 0);
    }
    free(copy);
    return 0;
}
