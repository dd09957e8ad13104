/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table that keeps only what is wanted names the same as one that has all.
 */
#include "symbol/symtab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

enum { SYMBOLS = 400, WANTED = 24, ROUNDS = 200, CODE = 8 << 20, NAME_BYTES = 8 };

static uint64_t dice = 88172645463325252;

static uint64_t some(uint64_t below)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return (dice >> 11) % below;
}

static char names[SYMBOLS * NAME_BYTES];
static struct kiln_symtab_entry symbols[SYMBOLS];
static uint64_t wanted[WANTED];

/* Functions that overlap, aliases, labels, and many without a size; some names are noise. */
static void make_file(void)
{
    static const uint64_t sizes[] = {0, 0, 16, 256, 4096, 1 << 16};

    for (uint32_t i = 0; i < SYMBOLS; i++) {
        uint64_t address = i && some(8) == 0 ? symbols[i - 1].address : some(CODE);
        bool label = some(3) == 0, local = some(2);
        uint64_t size = sizes[some(6)]; /* one after the other: the same file by any compiler */

        snprintf(names + (size_t)i * NAME_BYTES, NAME_BYTES, "%s%u", label && some(2) ? ".L" : "s",
                 i);
        symbols[i] = (struct kiln_symtab_entry){
            .address = address,
            .name = i * NAME_BYTES,
            .info =
                kiln_symtab_info(size, local, label ? KILN_SYMTAB_LABEL : KILN_SYMTAB_FUNCTION)};
    }
}

static int by_value(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;

    return (*a > *b) - (*a < *b);
}

static void fill(struct kiln_symtab *table, uint64_t reach)
{
    struct kiln_bytes bytes = kiln_bytes_memory(names, sizeof(names));
    uint32_t first;

    table->reach = reach;
    CHECK_OK(kiln_symtab_add_code(table, 0, CODE / 2));
    CHECK_OK(kiln_symtab_add_code(table, CODE / 2, CODE));
    CHECK_OK(kiln_symtab_add_text(table, &bytes, 0, sizeof(names), &first));
    for (uint32_t i = 0; i < SYMBOLS; i++)
        CHECK_OK(kiln_symtab_add(table, symbols[i]));
    CHECK_OK(kiln_symtab_finish(table));
}

static struct kiln_str name_in(struct kiln_symtab *table, uint64_t address)
{
    const struct kiln_symtab_entry *symbol;
    struct kiln_str name;

    return kiln_symtab_find(table, address, &symbol, &name) ? name : KILN_STR_NONE;
}

static void compare(uint64_t reach, uint32_t *named, uint32_t *kept, uint32_t *n_far)
{
    struct kiln_symtab all, covers, near;

    kiln_symtab_init(&all, 1 << 20, SYMBOLS);
    kiln_symtab_init(&covers, 1 << 20, SYMBOLS);
    kiln_symtab_init(&near, 1 << 20, SYMBOLS);
    kiln_symtab_want(&covers, wanted, WANTED, false);
    kiln_symtab_want(&near, wanted, WANTED, true);
    fill(&all, reach);
    fill(&covers, reach);
    fill(&near, reach);
    for (uint32_t i = 0; i < WANTED; i++) {
        struct kiln_str name = name_in(&all, wanted[i]), found = name_in(&covers, wanted[i]);

        if (!found.len && covers.unsized)
            found = name_in(&near, wanted[i]);
        CHECK(kiln_str_eq(name, found));
        *named += name.len > 0;
    }
    for (uint32_t i = 0; i < SYMBOLS; i++) {
        bool far = kiln_symtab_is_far(kiln_symtab_wish(&covers), symbols[i].address,
                                      kiln_symtab_size(&symbols[i]));

        CHECK(!far || !kiln_symtab_wants(&covers, &symbols[i]));
        *n_far += far;
    }
    *kept += covers.n;
    kiln_symtab_done(&all);
    kiln_symtab_done(&covers);
    kiln_symtab_done(&near);
}

TEST(symtab, wanted_addresses_are_named_as_by_a_table_that_has_all)
{
    uint32_t named = 0, kept = 0, n_far = 0;

    for (uint32_t round = 0; round < ROUNDS; round++) {
        make_file();
        for (uint32_t i = 0; i < WANTED; i++)
            wanted[i] = some(4) ? some(CODE) : symbols[some(SYMBOLS)].address;
        qsort(wanted, WANTED, sizeof(*wanted), by_value);
        compare(round % 2 ? KILN_SYMTAB_REACH_MAX : 4096, &named, &kept, &n_far);
    }
    CHECK(n_far > ROUNDS * SYMBOLS / 8);
    CHECK(named > ROUNDS * WANTED / 4 && named < ROUNDS * WANTED);
    CHECK(kept < ROUNDS * SYMBOLS / 2);
}

/* Also where the table has only what is near wanted addresses, and the local one is near none. */
TEST(symtab, code_in_a_local_label_has_the_name_of_the_label_around_it)
{
    static const char text[] = "outer\0.Lin";
    struct kiln_bytes bytes = kiln_bytes_memory(text, sizeof(text));
    struct kiln_symtab table;
    uint32_t first;

    kiln_symtab_init(&table, 1 << 20, SYMBOLS);
    CHECK_OK(kiln_symtab_add_text(&table, &bytes, 0, sizeof(text), &first));
    for (uint32_t i = 0; i < 2; i++)
        CHECK_OK(kiln_symtab_add(
            &table, (struct kiln_symtab_entry){
                        .address = 0x1000 + 0x100 * i,
                        .name = first + 6 * i,
                        .info = kiln_symtab_info(0x1000 >> i, true, KILN_SYMTAB_LABEL)}));
    CHECK_OK(kiln_symtab_finish(&table));
    CHECK_STR(name_in(&table, 0x1200), "outer");
    kiln_symtab_done(&table);
}

/* One address is wanted alone: what is near it is a small part of a large function. */
TEST(symtab, what_covers_a_wanted_address_is_never_far)
{
    static const uint64_t alone[] = {1 << 20};
    struct kiln_symtab table;
    uint32_t n_far = 0;

    kiln_symtab_init(&table, 1 << 20, SYMBOLS);
    kiln_symtab_want(&table, alone, 1, false);
    for (uint64_t before = 0; before < 1 << 21; before = before * 2 + 1)
        for (uint64_t size = 1; size < 1 << 22; size = size * 2 + 1) {
            uint64_t address = (1 << 21) - before;
            bool far = kiln_symtab_is_far(kiln_symtab_wish(&table), address, size);

            CHECK(!far || address > alone[0] || address + size <= alone[0]);
            n_far += far;
        }
    CHECK(n_far > 100);
    kiln_symtab_done(&table);
}
