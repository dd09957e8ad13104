/* SPDX-License-Identifier: Apache-2.0 */
/* What Go writes into its programs, and anybody into his. */
#include "fuzz.h"
#include "symbol/go_info.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_go_info info;

    if (kiln_go_info_parse((struct kiln_str){(const char *)data, size}, &info) < 0)
        return 0;
    FUZZ_CHECK(kiln_utf8_valid(kiln_str_of(info.version)));
    FUZZ_CHECK(kiln_utf8_valid(kiln_str_of(info.module)));
    FUZZ_CHECK(kiln_utf8_valid(kiln_str_of(info.module_version)));
    FUZZ_CHECK(kiln_utf8_valid(kiln_str_of(info.revision)));
    return 0;
}
