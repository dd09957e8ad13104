/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines, tries and trees of old agents; the first byte says which.
 */
#include <stdint.h>

#include "decode_fuzz.h"
#include "pipeline/receivers/ingest_tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str content = {(const char *)data + 1, size - 1};
    struct kiln_batch *batch;

    if (size == 0)
        return 0;
    batch = kiln_fuzz_decode(data[0] == 'l'   ? kiln_ingest_lines
                             : data[0] == 'i' ? kiln_ingest_trie
                                              : kiln_ingest_tree,
                             content);
    kiln_batch_unref(batch);
    return 0;
}
