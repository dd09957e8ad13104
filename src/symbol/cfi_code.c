/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What code says itself.
 *
 * A signal's handler returns to a trampoline, `mov $15, %rax; syscall`, which is never called: its
 * first byte is the return address, and callers are looked up one byte before.
 *
 * The entry point of a program is its outermost frame.  It begins by clearing rbp, as the ABI asks,
 * and C libraries seldom write frames for it, or wrong ones.
 */
#include <elf.h>

#include "symbol/cfi_int.h"

enum {
    ENTRY_BYTES = 64, /* of the code at the entry point, where no frames tell its end */
    CHUNK = 16384 + 2 * CFI_TRAMPOLINE, /* a page and what touches it, in one read */
};

static const uint8_t trampoline[CFI_TRAMPOLINE] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};

/* Looks in [begin, end), which a segment has. */
static uint32_t scan(const struct kiln_elf *elf, uint64_t begin, uint64_t end, uint64_t *found,
                     uint32_t n)
{
    uint8_t chunk[CHUNK];

    while (end - begin >= CFI_TRAMPOLINE && n < CFI_TRAMPOLINES_MAX) {
        size_t size = end - begin < CHUNK ? (size_t)(end - begin) : CHUNK;
        const uint8_t *at = chunk;

        if (kiln_elf_read(elf, begin, chunk, size) < 0)
            break;
        while (n < CFI_TRAMPOLINES_MAX &&
               (at = memmem(at, size - (size_t)(at - chunk), trampoline, CFI_TRAMPOLINE))) {
            found[n++] = begin + (uint64_t)(at - chunk);
            at += CFI_TRAMPOLINE;
        }
        begin += size < CHUNK ? size : CHUNK - CFI_TRAMPOLINE + 1;
    }
    return n;
}

uint32_t cfi_trampolines(const struct kiln_elf *elf, uint64_t begin, uint64_t end,
                         uint64_t found[CFI_TRAMPOLINES_MAX])
{
    uint32_t n = 0;

    /* One may begin before the range and reach into it, or begin right behind it. */
    begin = begin > CFI_TRAMPOLINE ? begin - CFI_TRAMPOLINE + 1 : 0;
    end = end < UINT64_MAX - CFI_TRAMPOLINE ? end + CFI_TRAMPOLINE : UINT64_MAX;
    for (uint32_t i = 0; i < elf->n_segments; i++) {
        const struct kiln_elf_segment *s = &elf->segments[i];
        uint64_t to, from = s->address > begin ? s->address : begin;

        if (s->type != PT_LOAD || !(s->flags & PF_X) ||
            __builtin_add_overflow(s->address, s->file_size, &to))
            continue;
        if (to > end)
            to = end;
        if (from < to)
            n = scan(elf, from, to, found, n);
    }
    return n;
}

void cfi_entry_fill(const struct kiln_cfi *cfi, uint64_t begin, uint64_t end, struct cfi_out *out)
{
    uint64_t entry = cfi->elf->entry;
    uint64_t from = entry > begin ? entry : begin;

    if (!cfi->is_entry_bare || from >= end || from - entry >= ENTRY_BYTES) {
        cfi_push_rule(out, begin, KILN_RULE_NONE);
        return;
    }
    if (from > begin)
        cfi_push_rule(out, begin, KILN_RULE_NONE);
    cfi_push_rule(out, from, KILN_RULE_END);
    if (end - entry > ENTRY_BYTES)
        cfi_push_rule(out, entry + ENTRY_BYTES, KILN_RULE_NONE);
}

/* [endbr64;] xor %ebp, %ebp, or the same of 64 bits. */
static bool clears_rbp(const struct kiln_elf *elf)
{
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    uint8_t code[8];
    const uint8_t *at = code;

    if (kiln_elf_read(elf, elf->entry, code, sizeof(code)) < 0)
        return false;
    if (memcmp(at, endbr64, sizeof(endbr64)) == 0)
        at += sizeof(endbr64);
    if (*at == 0x48)
        at++;
    return at[0] == 0x31 && at[1] == 0xed;
}

/* Old linkers gave shared objects an entry point too: the first byte of their code. */
bool cfi_entry_is_outermost(const struct kiln_elf *elf)
{
    if (!elf->entry)
        return false;
    for (uint32_t i = 0; i < elf->n_segments; i++) {
        if (elf->segments[i].type == PT_INTERP)
            return true;
    }
    return elf->type == ET_EXEC || clears_rbp(elf);
}
