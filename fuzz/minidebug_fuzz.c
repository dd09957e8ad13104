/* SPDX-License-Identifier: Apache-2.0 */
/* Packed symbols: the bytes are the packed ones; or, behind a 'p', what they unpack to. */
#include <lzma.h>

#include "elf_around.h"
#include "names_fuzz.h"

static void read_section(const void *packed, size_t n)
{
    size_t size;
    void *elf = elf_around(".gnu_debugdata", packed, n, &size);

    if (elf)
        fuzz_names(KILN_SOURCE_ELF, elf, size);
    kiln_free(elf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t room = lzma_stream_buffer_bound(size);
    size_t n = 0;
    uint8_t *packed;

    if (size == 0 || data[0] != 'p') {
        read_section(data, size);
        return 0;
    }
    packed = kiln_malloc(room);
    if (packed && lzma_easy_buffer_encode(0, LZMA_CHECK_NONE, NULL, data + 1, size - 1, packed, &n,
                                          room) == LZMA_OK)
        read_section(packed, n);
    kiln_free(packed);
    return 0;
}
