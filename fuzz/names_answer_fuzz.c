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

static int read_names(struct kiln_str packet, const struct kiln_names_said *said,
                      uint32_t *answered)
{
    static const struct kiln_names_ask ask = {.number = 1, .n = 5};
    static struct kiln_name_frame frames[KILN_NAME_FRAMES_MAX];

    if (kiln_wire_begin(said, &ask, *answered) < 0 || said->status < 0)
        return -1;
    FUZZ_CHECK(said->n <= ask.n - *answered);
    for (uint32_t i = 0; i < said->n; i++) {
        struct kiln_name name;

        if (kiln_wire_next(&packet, frames, &name) < 0)
            return -1;
        check_name(&name);
    }
    *answered += said->n;
    return *answered == ask.n ? -1 : 0;
}

static int read_wanted(struct kiln_str packet)
{
    struct kiln_wanted wanted;

    if (kiln_wire_wanted(&packet, &wanted) < 0)
        return -1;
    check_text(wanted.name);
    check_text(wanted.directory);
    FUZZ_CHECK(wanted.build_id_len <= KILN_BUILD_ID_MAX && wanted.kind <= KILN_WANTED_DWO);
    return 0;
}

/* A piece of text is all of its packet, wherever it says that it begins. */
static int read_text(struct kiln_str packet, const struct kiln_names_said *said, uint64_t *first)
{
    static const struct kiln_names_ask ask = {.number = 1, .n = 1, .name = 5};

    if (kiln_wire_text(said, &ask, *first, packet) < 0)
        return -1;
    FUZZ_CHECK(said->n == packet.len && (said->status == 0 || said->n == 0));
    *first += said->n;
    return said->n ? 0 : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t answered = 0;
    uint64_t first = 0;
    int r = 0;

    while (size >= 2 && r == 0) {
        size_t len = (size_t)data[0] | (size_t)data[1] << 8;
        struct kiln_str packet = {(const char *)data + 2, len < size - 2 ? len : size - 2};
        struct kiln_names_said said;

        data += 2 + packet.len;
        size -= 2 + packet.len;
        r = kiln_wire_head(&packet, &said);
        if (r == 0 && said.what == KILN_SAID_NAMES)
            r = read_names(packet, &said, &answered);
        else if (r == 0 && said.what == KILN_SAID_WANTED)
            r = read_wanted(packet);
        else if (r == 0 && said.what == KILN_SAID_TEXT)
            r = read_text(packet, &said, &first);
    }
    return 0;
}
