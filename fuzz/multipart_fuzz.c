/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forms: the first line is the Content-Type, the rest the body.  Parts lie inside the body, one
 * behind the other.
 */
#include <stdint.h>

#include "fuzz.h"
#include "pipeline/receivers/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str body = {(const char *)data, size}, type = kiln_str_cut(&body, '\n');
    const char *at = body.ptr;
    struct kiln_multipart m;
    struct kiln_part part;
    struct kiln_err err = {0};
    int r = kiln_multipart_init(&m, type, body, &err);

    while (r == 0 && (r = kiln_multipart_next(&m, &part, &err)) > 0) {
        FUZZ_CHECK(part.content.ptr >= at);
        at = part.content.ptr + part.content.len;
        FUZZ_CHECK(at <= body.ptr + body.len);
        r = 0;
    }
    FUZZ_CHECK((r < 0) == (err.code != 0));
    return 0;
}
