/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the pprof reader accepts, the writer writes, and the reader reads that again, as the same.
 */
#include <stdlib.h>

#include "codec/pprof.h"
#include "decode_fuzz.h"

static void check_way_back(const struct kiln_batch *batch)
{
    struct kiln_batch *again;
    struct kiln_buf bytes;

    kiln_buf_init(&bytes, 64u << 20);
    if (kiln_pprof_encode(batch, NULL, &bytes, NULL) == 0) {
        again = kiln_fuzz_decode(kiln_pprof_decode, kiln_buf_str(&bytes));
        FUZZ_CHECK(!again || kiln_batch_equal(batch, again));
        kiln_batch_unref(again);
    }
    kiln_buf_done(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str content = {(const char *)data, size};
    struct kiln_batch *batch = kiln_fuzz_decode(kiln_pprof_decode, content);

    kiln_pprof_detect(content);
    if (batch)
        check_way_back(batch);
    kiln_batch_unref(batch);
    return 0;
}
