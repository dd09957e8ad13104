/* SPDX-License-Identifier: Apache-2.0 */
#include "base/when.h"
#include "fuzz.h"

#define NOW UINT64_C(1772366400000000000)

/* What is written of a time is read back as the same. */
static void check_round_trip(uint64_t ns)
{
    struct kiln_buf text;
    uint64_t again;

    kiln_buf_init(&text, 64);
    kiln_when_format(ns, &text);
    if (ns / 1000000000 < 253402300800) /* four digits of a year */
        FUZZ_CHECK(kiln_when_parse(kiln_buf_str(&text), NOW, &again) == 0 && again == ns);
    kiln_buf_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str text = {(const char *)data, size};
    uint64_t ns;

    if (kiln_when_parse(text, NOW, &ns) == 0)
        check_round_trip(ns);
    if (kiln_when_parse_legacy(text, NOW, &ns) == 0)
        check_round_trip(ns);
    if (kiln_when_in_name(text, &ns) == 0)
        check_round_trip(ns);
    return 0;
}
