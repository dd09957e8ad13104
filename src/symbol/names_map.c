/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A perf-map is what a JIT compiler tells of code it made, one piece a line, in the order of
 * making:
 *
 *   7f1c5a000000 1c0 LazyCompile:~render /app/view.js:10
 *
 * Where pieces overlap, the last told is there; older ones may show before and behind it.  The
 * number of a name is its offset in the file, so that a higher one was told later, and names are
 * read from there.  A file that has grown since is read on from where it ended.
 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "symbol/names_int.h"

/* What is added to. */
struct told {
    struct kiln_symtab *table;
    struct kiln_map_end *end;
};

static int add_line(void *context, const struct kiln_names_line *line)
{
    struct told *told = context;
    struct kiln_str rest = line->text;
    struct kiln_str start = kiln_str_cut(&rest, ' ');
    struct kiln_str size = kiln_str_cut(&rest, ' ');
    struct kiln_symtab_entry symbol;
    uint64_t n;

    if (line->complete)
        told->end->offset = line->offset + line->text.len + 1;
    if (kiln_str_parse_hex(start, &symbol.address) < 0 || kiln_str_parse_hex(size, &n) < 0 ||
        n == 0 || rest.len == 0)
        return 0;
    symbol.info = kiln_symtab_info(n, false, KILN_SYMTAB_FUNCTION);
    symbol.name = (uint32_t)(line->offset + (uint64_t)(rest.ptr - line->text.ptr));
    return kiln_symtab_add(told->table, symbol);
}

/* Pieces that have begun, as a heap: the one whose name was told last is on top. */
struct layers {
    const struct kiln_symtab_entry *pieces;
    uint32_t *heap;
    uint32_t n;
};

static bool is_later(const struct layers *layers, uint32_t a, uint32_t b)
{
    return layers->pieces[layers->heap[a]].name > layers->pieces[layers->heap[b]].name;
}

static void swap(struct layers *layers, uint32_t a, uint32_t b)
{
    uint32_t kept = layers->heap[a];

    layers->heap[a] = layers->heap[b];
    layers->heap[b] = kept;
}

static void push(struct layers *layers, uint32_t piece)
{
    uint32_t at = layers->n++;

    layers->heap[at] = piece;
    for (; at > 0 && is_later(layers, at, (at - 1) / 2); at = (at - 1) / 2)
        swap(layers, at, (at - 1) / 2);
}

static void pop(struct layers *layers)
{
    uint32_t at = 0;

    layers->heap[0] = layers->heap[--layers->n];
    for (;;) {
        uint32_t child = 2 * at + 1;

        if (child + 1 < layers->n && is_later(layers, child + 1, child))
            child++;
        if (child >= layers->n || !is_later(layers, child, at))
            return;
        swap(layers, at, child);
        at = child;
    }
}

/* Adds [begin, end) of a piece, or makes the last longer where it is of the same. */
static int add_visible(struct kiln_symtab *made, const struct kiln_symtab_entry *piece,
                       uint64_t begin, uint64_t end)
{
    struct kiln_symtab_entry symbol = {begin, piece->name,
                                       kiln_symtab_info(end - begin, false, KILN_SYMTAB_FUNCTION)};
    struct kiln_symtab_entry *last = made->n ? made->symbols + made->n - 1 : NULL;

    if (last && last->name == piece->name && kiln_symtab_end(last) == begin) {
        last->info = kiln_symtab_info(end - last->address, false, KILN_SYMTAB_FUNCTION);
        return 0;
    }
    return kiln_symtab_add(made, symbol);
}

/* From left to right: what is on top is visible, up to its end or to where the next one begins. */
static int show_visible(const struct kiln_symtab *table, uint32_t *heap, struct kiln_symtab *made)
{
    struct layers layers = {.pieces = table->symbols, .heap = heap};
    uint64_t at = 0;
    uint32_t next = 0;

    while (layers.n > 0 || next < table->n) {
        const struct kiln_symtab_entry *top;
        uint64_t end;
        int r;

        if (layers.n == 0)
            at = table->symbols[next].address;
        for (; next < table->n && table->symbols[next].address == at; next++)
            push(&layers, next);
        top = table->symbols + layers.heap[0];
        end = kiln_symtab_end(top);
        if (end <= at) {
            pop(&layers);
            continue;
        }
        if (next < table->n && table->symbols[next].address < end)
            end = table->symbols[next].address;
        r = add_visible(made, top, at, end);
        if (r < 0)
            return r;
        at = end;
    }
    return 0;
}

static bool has_overlaps(const struct kiln_symtab *table)
{
    for (uint32_t i = 1; i < table->n; i++) {
        if (kiln_symtab_end(table->symbols + i - 1) > table->symbols[i].address)
            return true;
    }
    return false;
}

int kiln_names_flatten(struct kiln_symtab *table)
{
    struct kiln_symtab made = {.budget = table->budget, .max = table->max};
    uint32_t *heap = NULL;
    uint32_t cap = 0;
    int r;

    kiln_symtab_sort(table->symbols, table->n);
    if (!has_overlaps(table))
        return 0;
    r = kiln_reserve(&made.budget, (void **)&heap, &cap, table->n, sizeof(*heap), UINT32_MAX);
    if (r == 0)
        r = show_visible(table, heap, &made);
    kiln_array_free(&made.budget, (void **)&heap, &cap, sizeof(*heap));
    if (r < 0) {
        kiln_array_free(&made.budget, (void **)&made.symbols, &made.cap, sizeof(*made.symbols));
        return r;
    }
    kiln_array_free(&made.budget, (void **)&table->symbols, &table->cap, sizeof(*made.symbols));
    table->budget = made.budget;
    table->symbols = made.symbols;
    table->n = made.n;
    table->cap = made.cap;
    return 0;
}

/* The last bytes that were read, or as many as there are. */
static int read_tail(const struct kiln_bytes *bytes, uint64_t end, uint8_t *tail, uint32_t *ret_n)
{
    uint32_t n = end < KILN_MAP_TAIL ? (uint32_t)end : KILN_MAP_TAIL;

    *ret_n = n;
    return bytes->read(bytes, end - n, tail, n);
}

void kiln_map_end_mark(struct kiln_map_end *end, const struct kiln_bytes *bytes)
{
    if (read_tail(bytes, end->offset, end->tail, &end->n_tail) < 0)
        end->n_tail = UINT32_MAX; /* it shrinks: nothing goes on there */
}

bool kiln_map_end_goes_on(const struct kiln_map_end *end, const struct kiln_bytes *bytes)
{
    uint8_t tail[KILN_MAP_TAIL];
    uint32_t n;

    return read_tail(bytes, end->offset, tail, &n) == 0 && n == end->n_tail &&
           memcmp(tail, end->tail, n) == 0;
}

static int read_on(struct kiln_symtab *table, const struct kiln_bytes *bytes,
                   struct kiln_map_end *end)
{
    struct told told = {table, end};
    int r = kiln_names_each_line(bytes, end->offset, add_line, &told);

    /* What was told before something was too much is true all the same. */
    if (r == KILN_E_LIMIT)
        r = 0;
    if (r == 0)
        kiln_map_end_mark(end, bytes);
    return r < 0 ? r : kiln_names_flatten(table);
}

/* Names are read from this file from now on. */
static int set_text(struct kiln_symtab *table, const struct kiln_bytes *bytes)
{
    uint64_t size = bytes->size < KILN_NAMES_READ_MAX ? bytes->size : KILN_NAMES_READ_MAX;
    uint32_t first;
    int r;

    table->n_texts = 0;
    r = kiln_symtab_add_text(table, bytes, 0, size, &first);
    if (r == 0)
        table->texts[0].end = '\n';
    return r;
}

int kiln_names_read_map(struct kiln_symtab *table, const struct kiln_bytes *bytes,
                        struct kiln_map_end *end)
{
    int r = set_text(table, bytes);

    *end = (struct kiln_map_end){0};
    return r < 0 ? r : read_on(table, bytes, end);
}

int kiln_names_grow_map(struct kiln_symtab *table, const struct kiln_bytes *bytes,
                        struct kiln_map_end *end)
{
    int r;

    if (!kiln_map_end_goes_on(end, bytes))
        return KILN_E_UNSUPPORTED;
    r = set_text(table, bytes);
    return r < 0 ? r : read_on(table, bytes, end);
}
