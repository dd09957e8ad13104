/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an ELF file with debug information, which is also every file that it lacks.  Each
 * address that an 8-byte number in the file could be is asked for, under a deadline that is always
 * past, so that every walk is interrupted.
 */
#include <errno.h>

#include "fuzz.h"
#include "symbol/cursor.h"
#include "symbol/dwarf.h"

enum { BUDGET = 4 << 20, QUESTIONS = 24, ROUNDS = 64 };

static void serve(struct kiln_dwarf *dwarf, const struct kiln_elf *elf)
{
    struct kiln_wanted wanted;

    for (int i = 0; i < 16 && kiln_dwarf_wants(dwarf, &wanted); i++) {
        for (int j = 0; j < ROUNDS; j++) {
            if (kiln_dwarf_attach(dwarf, (enum kiln_wanted_kind)wanted.kind, elf) != -EAGAIN)
                break;
        }
    }
}

static uint64_t sum_of(struct kiln_str text)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < text.len; i++)
        sum += (uint8_t)text.ptr[i];
    return sum;
}

/* Looks at every byte of an answer. */
static void ask(struct kiln_dwarf *dwarf, uint64_t address)
{
    const struct kiln_dwarf_frame *frames;
    uint64_t sum = 0;
    uint32_t n;

    for (int i = 0; i < ROUNDS; i++) {
        int r = kiln_dwarf_find(dwarf, address, &frames, &n);

        if (r == -EAGAIN)
            continue;
        FUZZ_CHECK(r == 0);
        if (r < 0)
            return;
        FUZZ_CHECK(n <= KILN_DWARF_FRAMES);
        for (uint32_t j = 0; j < n; j++)
            sum += sum_of(frames[j].name) + sum_of(frames[j].linkage) +
                   sum_of(frames[j].qualified) + sum_of(frames[j].file);
        (void)sum;
        return;
    }
}

static void ask_all(struct kiln_dwarf *dwarf, const struct kiln_elf *elf, const uint8_t *data,
                    size_t size)
{
    uint32_t asked = 0;

    for (size_t at = 0; at + 8 <= size && asked < QUESTIONS; at++) {
        uint64_t address = kiln_get_64(data + at);

        if (address == 0 || address > UINT64_C(0x100000))
            continue;
        asked++;
        ask(dwarf, address);
        ask(dwarf, address + 3);
        serve(dwarf, elf);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_bytes bytes = kiln_bytes_memory(data, size);
    struct kiln_budget budget = {.limit = BUDGET};
    struct kiln_dwarf_opts opts = {.budget = &budget, .deadline_ns = 1};
    struct kiln_dwarf *dwarf;
    struct kiln_elf *elf;

    if (kiln_elf_open(&bytes, &elf) < 0)
        return 0;
    if (kiln_dwarf_open(elf, &opts, &dwarf) == 0) {
        serve(dwarf, elf);
        ask_all(dwarf, elf, data, size);
        FUZZ_CHECK(budget.peak <= BUDGET);
        kiln_dwarf_close(dwarf);
    }
    FUZZ_CHECK(budget.used == 0);
    kiln_elf_close(elf);
    return 0;
}
