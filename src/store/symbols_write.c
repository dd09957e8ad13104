/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a symbol file (symbols.c has its bytes): what was there and what comes are merged in the
 * order of addresses; frames become nodes of one tree, the outermost first, where equal ones meet.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/compress.h"
#include "base/crc32c.h"
#include "base/hash.h"
#include "base/mem.h"
#include "core/builder.h"
#include "core/intern.h"
#include "store/symbols_int.h"

#define MEMORY_MAX (4 * KILN_SYMBOLS_BYTES_MAX) /* of tables while writing */

struct node {
    uint32_t parent, function;
    int64_t line;
};

struct writing {
    struct kiln_budget budget;
    struct kiln_builder *b; /* finds texts and functions that occur again */
    struct kiln_intern index;
    struct node *nodes; /* number less 1 */
    uint32_t n_nodes, cap_nodes;
    struct kiln_buf rows;
    uint64_t last; /* address */
    uint32_t n;    /* symbols */
};

static void put_varint(struct kiln_buf *out, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        kiln_buf_putc(out, (char)(v | 0x80));
    kiln_buf_putc(out, (char)v);
}

static void put_signed(struct kiln_buf *out, int64_t v)
{
    put_varint(out, (uint64_t)v << 1 ^ (uint64_t)(v >> 63));
}

/* ---- what comes ---- */

static int by_address(const void *a, const void *b, void *context)
{
    const struct kiln_symbol *symbols = context;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;

    if (symbols[i].address != symbols[j].address)
        return symbols[i].address < symbols[j].address ? -1 : 1;
    return i < j ? -1 : i > j;
}

/* The numbers of the symbols that count, in the order of addresses; returns how many. */
static uint32_t sort(const struct kiln_symbol *symbols, uint32_t *order, uint32_t n)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    qsort_r(order, n, sizeof(*order), by_address, (void *)symbols);
    for (uint32_t i = 0; i < n; i++) {
        if (kept == 0 || symbols[order[kept - 1]].address != symbols[order[i]].address)
            order[kept++] = order[i];
    }
    return kept;
}

/* ---- frames ---- */

static int find_node(struct writing *w, const struct node *node, uint32_t *ret)
{
    uint64_t hash = kiln_hash(node, sizeof(*node));
    int r;

    for (struct kiln_probe p = kiln_intern_probe(&w->index, hash);
         kiln_intern_next(&w->index, &p);) {
        if (memcmp(&w->nodes[p.entry], node, sizeof(*node)) == 0) {
            *ret = p.entry + 1;
            return 0;
        }
    }
    r = kiln_grow(&w->budget, (void **)&w->nodes, &w->cap_nodes, (uint64_t)w->n_nodes + 1,
                  sizeof(*w->nodes), UINT32_MAX);
    if (r == 0)
        r = kiln_intern_add(&w->index, &w->budget, hash, w->n_nodes);
    if (r < 0)
        return r;
    w->nodes[w->n_nodes++] = *node;
    *ret = w->n_nodes;
    return 0;
}

static bool is_empty(const struct kiln_symbol_frame *f)
{
    return f->name.len == 0 && f->system_name.len == 0 && f->file.len == 0;
}

/* A frame inside *node, which it becomes. */
static int add_frame(struct writing *w, const struct kiln_symbol_frame *f, uint32_t *node)
{
    struct kiln_function function = {0};
    struct node made = {.parent = *node};

    if (is_empty(f))
        return 0;
    function.name = kiln_builder_string(w->b, f->name);
    function.system_name = kiln_builder_string(w->b, f->system_name);
    function.filename = kiln_builder_string(w->b, f->file);
    function.start_line = f->file.len ? f->start_line : 0;
    made.line = f->file.len ? f->line : 0;
    made.function = kiln_builder_function(w->b, &function) - 1;
    return kiln_builder_error(w->b) ? kiln_builder_error(w->b) : find_node(w, &made, node);
}

/* Of too many the innermost and the outermost stay. */
static int add_row(struct writing *w, const struct kiln_symbol *symbol)
{
    const uint32_t max = KILN_SYMBOL_FRAMES_MAX;
    uint32_t node = 0, inner = symbol->n > max ? max - 1 : symbol->n;
    int r = 0;

    if (symbol->n > max)
        r = add_frame(w, &symbol->frames[symbol->n - 1], &node);
    for (uint32_t i = inner; r == 0 && i > 0; i--)
        r = add_frame(w, &symbol->frames[i - 1], &node);
    if (r < 0)
        return r;
    put_varint(&w->rows, symbol->address - w->last);
    put_varint(&w->rows, symbol->size);
    put_varint(&w->rows, node);
    w->last = symbol->address;
    w->n++;
    return w->rows.error;
}

/* ---- the body ---- */

static int add_old(struct writing *w, const struct kiln_symbols *before, uint32_t i)
{
    struct kiln_symbol_found found;

    kiln_symbols_get(before, i, &found);
    return add_row(
        w, &(struct kiln_symbol){
               .address = found.address, .size = found.size, .frames = found.frames, .n = found.n});
}

static int add_rows(struct writing *w, const struct kiln_symbols *before,
                    const struct kiln_symbol *symbols, const uint32_t *order, uint32_t n)
{
    uint32_t old = 0, n_old = before ? before->n : 0;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < n; i++) {
        const struct kiln_symbol *s = &symbols[order[i]];

        for (; r == 0 && old < n_old && before->rows[old].address < s->address; old++)
            r = add_old(w, before, old);
        if (old < n_old && before->rows[old].address == s->address)
            old++;
        if (r == 0)
            r = add_row(w, s);
    }
    for (; r == 0 && old < n_old; old++)
        r = add_old(w, before, old);
    return r;
}

static int put_body(const struct writing *w, struct kiln_str build_id, struct kiln_buf *out)
{
    const struct kiln_dict *d = &kiln_builder_peek(w->b)->dict;

    put_varint(out, build_id.len);
    kiln_buf_add_str(out, build_id);
    put_varint(out, d->n_strings - 1);
    for (uint32_t i = 1; i < d->n_strings; i++) {
        put_varint(out, d->strings[i].len);
        kiln_buf_add_str(out, d->strings[i]);
    }
    put_varint(out, d->n_functions - 1);
    for (uint32_t i = 1; i < d->n_functions; i++) {
        put_varint(out, d->functions[i].name);
        put_varint(out, d->functions[i].system_name);
        put_varint(out, d->functions[i].filename);
        put_signed(out, d->functions[i].start_line);
    }
    put_varint(out, w->n_nodes);
    for (uint32_t i = 0; i < w->n_nodes; i++) {
        put_varint(out, w->nodes[i].parent ? i + 1 - w->nodes[i].parent : 0);
        put_varint(out, w->nodes[i].function);
        put_signed(out, w->nodes[i].line);
    }
    kiln_buf_add_str(out, kiln_buf_str(&w->rows));
    return out->error;
}

/* ---- the file ---- */

static void set_u32(char *at, uint32_t v)
{
    memcpy(at, &v, sizeof(v)); /* little-endian hosts only, as the rest of Kiln */
}

static void set_u64(char *at, uint64_t v)
{
    memcpy(at, &v, sizeof(v));
}

static int put_file(struct kiln_buf *out, struct kiln_str body, uint32_t n)
{
    size_t start = out->len, stored;
    char *head = kiln_buf_reserve(out, KILN_SYMBOLS_HEAD);
    int r;

    if (!head)
        return out->error;
    out->len += KILN_SYMBOLS_HEAD;
    r = kiln_compress(KILN_ZSTD, 0, body, out);
    if (r < 0)
        return r;
    head = out->ptr + start;
    stored = out->len - start - KILN_SYMBOLS_HEAD;
    memcpy(head, kiln_symbols_magic, sizeof(kiln_symbols_magic));
    set_u32(head + 8, KILN_SYMBOLS_VERSION);
    set_u32(head + 12, n);
    set_u64(head + 16, body.len);
    set_u64(head + 24, stored);
    set_u32(head + 32, kiln_crc32c(0, head + KILN_SYMBOLS_HEAD, stored));
    set_u32(head + 36, kiln_crc32c(0, head, KILN_SYMBOLS_SUMMED));
    return 0;
}

/* What they take once they are read. */
static size_t bytes_in_memory(const struct writing *w, size_t body)
{
    const struct kiln_dict *d = &kiln_builder_peek(w->b)->dict;

    return sizeof(struct kiln_symbols) + body +
           ((size_t)w->n + 1) * sizeof(struct kiln_symbol_row) +
           ((size_t)w->n_nodes + 1) * sizeof(struct kiln_symbol_node) +
           (size_t)d->n_functions * sizeof(struct kiln_symbol_function) +
           (size_t)d->n_strings * sizeof(struct kiln_str);
}

static int write_file(struct writing *w, struct kiln_str build_id, struct kiln_buf *out)
{
    struct kiln_buf body;
    int r;

    kiln_buf_init(&body, KILN_SYMBOLS_BYTES_MAX);
    r = put_body(w, build_id, &body);
    if (r == 0 && bytes_in_memory(w, body.len) > KILN_SYMBOLS_BYTES_MAX)
        r = KILN_E_LIMIT;
    if (r == 0)
        r = put_file(out, kiln_buf_str(&body), w->n);
    kiln_buf_done(&body);
    return r;
}

int kiln_symbols_encode(struct kiln_str build_id, const struct kiln_symbols *before,
                        const struct kiln_symbol *symbols, uint32_t n, struct kiln_buf *out,
                        struct kiln_err *err)
{
    struct kiln_limits limits = kiln_limits_default;
    struct writing w = {.budget.limit = MEMORY_MAX};
    uint32_t *order = kiln_malloc(((size_t)n + 1) * sizeof(*order));
    int r;

    limits.memory_bytes = MEMORY_MAX;
    r = order ? kiln_builder_new(&limits, &w.b) : -ENOMEM;
    kiln_buf_init(&w.rows, KILN_SYMBOLS_BYTES_MAX);
    if (r == 0)
        r = add_rows(&w, before, symbols, order, sort(symbols, order, n));
    if (r == 0)
        r = write_file(&w, build_id, out);
    kiln_intern_done(&w.index, &w.budget);
    kiln_array_free(&w.budget, (void **)&w.nodes, &w.cap_nodes, sizeof(*w.nodes));
    kiln_buf_done(&w.rows);
    kiln_builder_free(w.b);
    kiln_free(order);
    if (r == KILN_E_LIMIT)
        return kiln_err_set(err, r, NULL, "the names of one build id may take %u MiB of memory",
                            (unsigned)(KILN_SYMBOLS_BYTES_MAX >> 20));
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}
