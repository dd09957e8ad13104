/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of the exporter's spool: refused, or written again as the same bytes (but for those that
 * are always zero).  Whatever bytes come as a body, are read back.
 */
#include <stdint.h>

#include "fuzz.h"
#include "pipeline/exporters/spool.h"

static void round_trip(const struct kiln_spooled *head, struct kiln_str body)
{
    struct kiln_spooled again;
    struct kiln_str same;
    struct kiln_buf file;

    kiln_buf_init(&file, 1u << 24);
    kiln_spooled_encode(head, body, &file);
    if (!file.error) {
        FUZZ_CHECK(kiln_spooled_decode(kiln_buf_str(&file), &again, &same) == 0);
        FUZZ_CHECK(kiln_str_eq(body, same));
        FUZZ_CHECK(again.compression == head->compression && again.json == head->json &&
                   again.profiles == head->profiles && again.samples == head->samples &&
                   again.made_ns == head->made_ns);
    }
    kiln_buf_done(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str file = {(const char *)data, size}, body;
    struct kiln_spooled head = {.compression = KILN_GZIP, .profiles = 1, .samples = size};

    round_trip(&head, file);
    if (kiln_spooled_decode(file, &head, &body) == 0) {
        FUZZ_CHECK(body.ptr >= file.ptr && body.ptr + body.len == file.ptr + file.len);
        round_trip(&head, body);
    }
    return 0;
}
