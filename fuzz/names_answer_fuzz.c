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

static void check_name(const struct kiln_name *name)
{
    FUZZ_CHECK(name->n <= KILN_NAME_FRAMES_MAX);
    check_text(name->module);
    for (uint32_t i = 0; i < name->n; i++) {
        FUZZ_CHECK(name->frames[i].function.len > 0);
        check_text(name->frames[i].function);
        check_text(name->frames[i].system_name);
        check_text(name->frames[i].file);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct kiln_names_ask ask = {.number = 1, .n = 5};
    static struct kiln_name_frame frames[KILN_NAME_FRAMES_MAX];
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

            if (kiln_wire_next(&packet, frames, &name) < 0)
                return 0;
            check_name(&name);
        }
        answered += head.n;
    }
    return 0;
}
