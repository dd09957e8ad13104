/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: cfi_peer COUNT FILE...
 *
 * Asks elfutils' libdw, at COUNT random addresses of each file's code, how to find the caller, and
 * compares that with our rows: where the CFA is, where rbp and the return address are.  Prints one
 * line a file and one a disagreement (at most 20 a file), then a summary:
 *
 *   asked AGREED UNFOLLOWED DIFFERENT
 *
 * "Unfollowed" is where libdw has a rule that rows cannot say, and we say that nothing is known.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>

#include "symbol/cfi.h"

enum { PAGE = 16384, SHOWN_MAX = 20 };

struct counts {
    uint64_t asked, agreed, unfollowed, different;
};

struct peer {
    Elf *elf;
    Dwarf *dwarf;
    Dwarf_CFI *eh, *debug;
};

static struct kiln_cfi_row rows[PAGE];

/* What libdw says, in our words. */
static uint8_t take_cfa(const Dwarf_Op *ops, size_t n, struct kiln_cfi_row *row)
{
    if (n == 0)
        return KILN_RULE_NONE;
    if (ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg15) {
        row->reg = ops[0].atom - DW_OP_breg0;
        row->cfa_off = (int32_t)ops[0].number;
    } else if (ops[0].atom == DW_OP_bregx) {
        row->reg = (uint8_t)ops[0].number;
        row->cfa_off = (int32_t)ops[0].number2;
    } else {
        return KILN_RULE_NONE;
    }
    if (n == 1)
        return KILN_RULE_REG;
    if (n == 9 && ops[1].atom == DW_OP_breg16)
        return KILN_RULE_PLT;
    if (ops[1].atom != DW_OP_deref)
        return KILN_RULE_NONE;
    if (n == 3 && ops[2].atom == DW_OP_plus_uconst)
        row->more = (int32_t)ops[2].number;
    return n <= 3 ? KILN_RULE_DEREF : KILN_RULE_NONE;
}

static bool take_fp(Dwarf_Frame *frame, struct kiln_cfi_row *row)
{
    Dwarf_Op memory[3], *ops;
    size_t n;

    if (dwarf_frame_register(frame, 6, memory, &ops, &n) != 0)
        return false;
    row->fp = KILN_SAVED_LOST;
    if (n == 0) {
        row->fp = ops ? KILN_SAVED_LOST : KILN_SAVED_SAME;
    } else if (n <= 2 && ops[0].atom == DW_OP_call_frame_cfa &&
               (n == 1 || ops[1].atom == DW_OP_plus_uconst)) {
        row->fp = KILN_SAVED_CFA;
        row->fp_off = n == 2 ? (int32_t)ops[1].number : 0;
    } else if (n == 2 && ops[0].atom == DW_OP_call_frame_cfa && ops[1].atom == DW_OP_breg6) {
        row->fp = KILN_SAVED_FP;
        row->fp_off = (int32_t)ops[1].number;
    }
    return true;
}

static uint8_t take_ra(Dwarf_Frame *frame, uint8_t rule, struct kiln_cfi_row *row)
{
    Dwarf_Op memory[3], *ops;
    size_t n;

    row->ra_reg = 0xff;
    if (dwarf_frame_register(frame, 16, memory, &ops, &n) != 0)
        return KILN_RULE_NONE;
    if (n == 0)
        return ops ? KILN_RULE_END : KILN_RULE_NONE;
    if (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg15) {
        row->ra_reg = ops[0].atom - DW_OP_reg0;
        return rule;
    }
    if (ops[0].atom == DW_OP_regx) {
        row->ra_reg = (uint8_t)ops[0].number;
        return rule;
    }
    if (n == 2 && ops[0].atom == DW_OP_call_frame_cfa && ops[1].atom == DW_OP_plus_uconst &&
        (int64_t)ops[1].number == -8)
        return rule;
    return KILN_RULE_NONE;
}

/* False: libdw has no frame here. */
static bool ask(Dwarf_CFI *cfi, uint64_t address, struct kiln_cfi_row *ret_row)
{
    struct kiln_cfi_row row = {.address = address};
    Dwarf_Frame *frame;
    bool is_signal;
    Dwarf_Op *ops;
    size_t n;

    if (!cfi || dwarf_cfi_addrframe(cfi, address, &frame) != 0)
        return false;
    dwarf_frame_info(frame, NULL, NULL, &is_signal);
    if (is_signal) {
        row.rule = KILN_RULE_SIGNAL;
    } else if (dwarf_frame_cfa(frame, &ops, &n) == 0) {
        row.rule = take_ra(frame, take_cfa(ops, n, &row), &row);
        take_fp(frame, &row);
    }
    free(frame);
    *ret_row = row;
    return true;
}

/* What Go's compiler writes for debuggers says nothing of rbp, nor of functions that switch stacks.
 */
static bool is_silent(const struct kiln_elf *elf)
{
    return kiln_elf_section(elf, ".gopclntab") != NULL;
}

static bool is_equal(const struct kiln_elf *elf, const struct kiln_cfi_row *a,
                     const struct kiln_cfi_row *b)
{
    if (a->rule != b->rule)
        return false;
    if (a->rule != KILN_RULE_REG && a->rule != KILN_RULE_DEREF)
        return true;
    return a->reg == b->reg && a->cfa_off == b->cfa_off && a->more == b->more &&
           a->ra_reg == b->ra_reg && ((a->fp == b->fp && a->fp_off == b->fp_off) || is_silent(elf));
}

static void show(const char *what, const struct kiln_cfi_row *row)
{
    printf("    %s rule %u reg %u off %d more %d, fp %u off %d, ra %u\n", what, row->rule, row->reg,
           row->cfa_off, row->more, row->fp, row->fp_off, row->ra_reg);
}

/* Our row at an address. */
static struct kiln_cfi_row ours_at(struct kiln_cfi *cfi, uint64_t address)
{
    uint64_t begin = address & ~(uint64_t)(PAGE - 1);
    int n = kiln_cfi_rows(cfi, begin, begin + PAGE, rows, PAGE);

    while (n > 1 && rows[n - 1].address > address)
        n--;
    return n > 0 ? rows[n - 1] : (struct kiln_cfi_row){0};
}

static void compare(const struct kiln_elf *elf, struct kiln_cfi *cfi, const struct peer *peer,
                    uint64_t address, struct counts *counts)
{
    struct kiln_cfi_row ours, theirs = {.address = address};
    bool has = ask(peer->eh, address, &theirs) || ask(peer->debug, address, &theirs);

    counts->asked++;
    ours = ours_at(cfi, address);
    if (has && ours.rule == KILN_RULE_NONE && theirs.rule == KILN_RULE_NONE) {
        counts->unfollowed++;
    } else if (is_equal(elf, &ours, &theirs)) {
        counts->agreed++;
    } else if (!has && (ours.rule == KILN_RULE_END || ours.rule == KILN_RULE_SIGNAL)) {
        counts->agreed++; /* what code says without a frame */
    } else if (ours.rule == KILN_RULE_END && address - elf->entry < 64) {
        counts->agreed++;
    } else if (has && ours.rule == KILN_RULE_NONE) {
        counts->unfollowed++;
    } else if (is_silent(elf) && ours.rule != KILN_RULE_REG) {
        counts->agreed++;
    } else if (counts->different++ < SHOWN_MAX) {
        printf("  %" PRIx64 "\n", address);
        show("ours  ", &ours);
        show("theirs", &theirs);
    }
}

/* Random addresses of segments with code, the same in every run. */
static void compare_all(const struct kiln_elf *elf, struct kiln_cfi *cfi, const struct peer *peer,
                        uint32_t count, struct counts *counts)
{
    uint64_t seed = 88172645463325252u;

    for (uint32_t i = 0; i < elf->n_segments; i++) {
        const struct kiln_elf_segment *s = &elf->segments[i];

        for (uint32_t j = 0; s->type == PT_LOAD && (s->flags & PF_X) && j < count; j++) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            compare(elf, cfi, peer, s->address + seed % s->file_size, counts);
        }
    }
}

static int compare_file(const char *path, uint32_t count, struct counts *total)
{
    struct counts counts = {0};
    struct peer peer = {0};
    struct kiln_bytes bytes;
    struct kiln_elf *elf;
    struct kiln_cfi *cfi;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || kiln_bytes_file(fd, &bytes) < 0 || kiln_elf_open(&bytes, &elf) < 0)
        return 1;
    if (kiln_cfi_open(elf, &cfi) < 0)
        return 1;
    peer.elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    peer.eh = dwarf_getcfi_elf(peer.elf);
    peer.dwarf = dwarf_begin_elf(peer.elf, DWARF_C_READ, NULL);
    peer.debug = peer.dwarf ? dwarf_getcfi(peer.dwarf) : NULL;
    compare_all(elf, cfi, &peer, count, &counts);
    printf("%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", path, counts.asked,
           counts.agreed, counts.unfollowed, counts.different);
    total->asked += counts.asked;
    total->agreed += counts.agreed;
    total->unfollowed += counts.unfollowed;
    total->different += counts.different;
    dwarf_cfi_end(peer.eh);
    dwarf_end(peer.dwarf);
    elf_end(peer.elf);
    kiln_cfi_close(cfi);
    kiln_elf_close(elf);
    close(fd);
    return 0;
}

int main(int argc, char **argv)
{
    struct counts total = {0};
    int failed = 0;

    if (argc < 3)
        return 2;
    elf_version(EV_CURRENT);
    for (int i = 2; i < argc; i++)
        failed += compare_file(argv[i], (uint32_t)strtoul(argv[1], NULL, 10), &total);
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", total.asked, total.agreed,
           total.unfollowed, total.different);
    return failed ? 1 : 0;
}
