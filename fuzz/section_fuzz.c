/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a compressed section: the first says in which form, and where its content goes.
 */
#include <elf.h>
#include <stdio.h>
#include <unistd.h>

#include "elf_around.h"
#include "fuzz.h"
#include "symbol/section.h"

enum { BUDGET = 16 << 20, SCRATCH = 64 << 20 };

static void read_all(const struct kiln_elf *elf, const struct kiln_section_room *room)
{
    struct kiln_section section;
    uint8_t to[4096];

    if (kiln_section_open(elf, ".debug_info", room, &section) == 0) {
        uint64_t last = section.size < sizeof(to) ? 0 : section.size - sizeof(to);

        (void)!kiln_section_read(&section, section.size / 2, to, 1);
        (void)!kiln_section_read(&section, last, to, sizeof(to));
        (void)!kiln_section_read(&section, 0, to, 16);
        FUZZ_CHECK(kiln_section_read(&section, section.size, to, 1) < 0);
    }
    kiln_section_done(&section);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool is_old = size && (data[0] & 1), has_scratch = size && (data[0] & 2);
    struct kiln_scratch scratch = {.max = SCRATCH};
    struct kiln_budget budget = {.limit = BUDGET};
    struct kiln_section_room room = {.budget = &budget};
    FILE *file = has_scratch ? tmpfile() : NULL;
    struct elf_around *around;
    struct kiln_bytes bytes;
    struct kiln_elf *elf;
    size_t n;

    if (size == 0)
        return 0;
    around = elf_around(is_old ? ".zdebug_info" : ".debug_info", data + 1, size - 1, &n);
    if (!around)
        return 0;
    if (!is_old)
        around->sections[1].sh_flags = SHF_COMPRESSED;
    if (file) {
        scratch.fd = fileno(file);
        room.scratch = &scratch;
    }
    bytes = kiln_bytes_memory(around, n);
    if (kiln_elf_open(&bytes, &elf) == 0) {
        read_all(elf, &room);
        kiln_elf_close(elf);
    }
    FUZZ_CHECK(budget.used == 0 && scratch.n == 0);
    if (file)
        fclose(file);
    kiln_free(around);
    return 0;
}
