/* SPDX-License-Identifier: Apache-2.0 */
/* What a terminal sends: each byte gives a key or none, and nothing is kept beyond its room. */
#include "cli/keyboard.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_keyboard keys = {0};

    for (size_t i = 0; i < size; i++) {
        uint32_t key = kiln_keyboard_take(&keys, data[i]);

        if (key > KILN_KEY_OTHER || keys.n > sizeof(keys.bytes))
            abort();
        if (data[i] == 0xff && kiln_keyboard_waits(&keys))
            kiln_keyboard_pause(&keys);
    }
    kiln_keyboard_pause(&keys);
    if (kiln_keyboard_waits(&keys))
        abort();
    return 0;
}
