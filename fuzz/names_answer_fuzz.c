/* SPDX-License-Identifier: Apache-2.0 */
/* What a child might say that somebody took over: one packet after another, each behind its length
 * (two bytes). */
#include "fuzz.h"
#include "symbol/clean.h"
#include "symbol/names_wire.h"

static void check_text(struct kiln_str text)
{
    char cleaned[KILN_WIRE_TEXT];
    size_t n;

    FUZZ_CHECK(text.len <= KILN_WIRE_TEXT);
    n = kiln_name_clean(text, cleaned, sizeof(cleaned));
    FUZZ_CHECK(kiln_utf8_valid((struct kiln_str){cleaned, n}));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct kiln_names_ask ask = {.number = 1, .n = 5};
    uint32_t answered = 0;

    while (size >= 2 && answered < ask.n) {
        size_t len = (size_t)data[0] | (size_t)data[1] << 8;
        struct kiln_str packet = {(const char *)data + 2, len < size - 2 ? len : size - 2};
        struct kiln_names_answer head;

        data += 2 + packet.len;
        size -= 2 + packet.len;
        if (kiln_wire_begin(&packet, &ask, answered, &head) < 0 || head.status < 0)
            return 0;
        FUZZ_CHECK(head.n <= ask.n - answered);
        for (uint32_t i = 0; i < head.n; i++) {
            struct kiln_name name;

            if (kiln_wire_next(&packet, &name) < 0)
                return 0;
            check_text(name.function);
            check_text(name.system_name);
            check_text(name.file);
            check_text(name.module);
        }
        answered += head.n;
    }
    return 0;
}
