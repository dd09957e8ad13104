/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an ELF file: whatever opens is asked for everything that headers promise.
 */
#include "fuzz.h"
#include "symbol/elf.h"

static void load_all(const struct kiln_elf *elf)
{
    for (uint32_t i = 0; i < elf->n_sections && i < 64; i++) {
        size_t size;
        void *data;

        (void)kiln_elf_section(elf, elf->sections[i].name);
        if (kiln_elf_load(elf, &elf->sections[i], 1 << 20, &data, &size) == 0) {
            FUZZ_CHECK(size <= 1 << 20);
            kiln_free(data);
        }
    }
}

static void read_all(const struct kiln_elf *elf)
{
    for (uint32_t i = 0; i < elf->n_segments && i < 64; i++) {
        const struct kiln_elf_segment *s = &elf->segments[i];
        uint64_t address;
        char to[64];

        if (kiln_elf_read(elf, s->address, to, sizeof(to)) == 0)
            FUZZ_CHECK(elf->bytes.size >= sizeof(to));
        (void)!kiln_elf_address(elf, s->offset, &address);
        (void)!kiln_elf_address(elf, s->offset + s->file_size - 1, &address);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_bytes bytes = kiln_bytes_memory(data, size);
    uint8_t id[20], len;
    struct kiln_elf *elf;
    char text[84];

    (void)!kiln_elf_hash(&bytes, text);
    if (kiln_elf_open(&bytes, &elf) < 0)
        return 0;
    if (kiln_elf_build_id(elf, id, &len) == 0)
        FUZZ_CHECK(len > 0 && len <= 20);
    (void)!kiln_elf_go_build_id(elf, text, sizeof(text));
    load_all(elf);
    read_all(elf);
    kiln_elf_close(elf);
    return 0;
}
