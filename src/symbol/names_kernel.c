/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc/kallsyms, sorted within the kernel and within each module:
 *
 *   ffffffff81000000 T _stext
 *   ffffffffc0a01000 t nft_do_chain[TAB][nf_tables]
 *   ffffffffc0b00000 t bpf_prog_6deef7357e7b4530_name[TAB][bpf]
 *
 * There are no sizes: a function ends where the next symbol of any kind begins.  A module stays
 * behind the name, as "nft_do_chain[TAB]nf_tables".
 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "symbol/names_int.h"

enum {
    TEXT_MAX = 64 << 20,
    FUNCTION_MAX = 1 << 18, /* what is further on has no symbol */
};

struct told {
    struct kiln_symtab *table;
    struct kiln_buf text;
    bool seen; /* an address that is not zero */
};

/* Appends a name; its number in *ret. */
static int add_name(struct told *told, struct kiln_str name, struct kiln_str module, uint32_t *ret)
{
    *ret = (uint32_t)told->text.len;
    if (name.len > KILN_SYMTAB_NAME_MAX)
        name.len = KILN_SYMTAB_NAME_MAX;
    kiln_buf_add_str(&told->text, name);
    if (module.len > 0) {
        kiln_buf_putc(&told->text, '\t');
        kiln_buf_add_str(&told->text, module);
    }
    kiln_buf_putc(&told->text, '\0');
    return told->text.error;
}

static int add_line(void *context, const struct kiln_names_line *told_line)
{
    struct told *told = context;
    struct kiln_str line = told_line->text;
    struct kiln_str number = kiln_str_cut(&line, ' ');
    struct kiln_str type = kiln_str_cut(&line, ' ');
    struct kiln_str name = kiln_str_cut(&line, '\t');
    struct kiln_symtab_entry symbol = {.info = KILN_SYMTAB_BOUND};
    int r = 0;

    if (kiln_str_parse_hex(number, &symbol.address) < 0 || type.len != 1 || name.len == 0)
        return 0;
    if (symbol.address == 0)
        return 0;
    told->seen = true;
    if (line.len > 2 && line.ptr[0] == '[') {
        line.ptr++;
        line.len -= line.ptr[line.len - 2] == ']' ? 2 : 1;
    } else {
        line = KILN_STR_NONE;
    }
    if (strchr("tTwW", type.ptr[0])) {
        symbol.info = kiln_symtab_info(0, type.ptr[0] == 't', KILN_SYMTAB_FUNCTION);
        r = add_name(told, name, line, &symbol.name);
    }
    return r < 0 ? r : kiln_symtab_add(told->table, symbol);
}

/* Gives each its end; drops what is only an end of others. */
static void bound(struct kiln_symtab *table)
{
    uint32_t n = 0;
    uint64_t next = 0;

    kiln_symtab_sort(table->symbols, table->n);
    for (uint32_t i = table->n; i-- > 0;) {
        struct kiln_symtab_entry *symbol = table->symbols + i;
        uint64_t size = FUNCTION_MAX;

        if (i + 1 < table->n && symbol[1].address != symbol->address)
            next = symbol[1].address;
        if (next > 0 && next - symbol->address < size)
            size = next - symbol->address;
        symbol->info = kiln_symtab_info(size, symbol->info & 4, kiln_symtab_kind(symbol));
    }
    for (uint32_t i = 0; i < table->n; i++) {
        if (kiln_symtab_kind(table->symbols + i) != KILN_SYMTAB_BOUND)
            table->symbols[n++] = table->symbols[i];
    }
    table->n = n;
}

int kiln_names_read_kernel(struct kiln_symtab *table, const struct kiln_bytes *bytes)
{
    struct told told = {.table = table};
    int r;

    kiln_buf_init(&told.text, TEXT_MAX);
    r = kiln_names_each_line(bytes, 0, add_line, &told);
    if (r == 0 && !told.seen)
        r = -EACCES;
    if (r == 0)
        r = kiln_symtab_take_text(table, &told.text);
    if (r == 0)
        bound(table);
    kiln_buf_done(&told.text);
    return r;
}
