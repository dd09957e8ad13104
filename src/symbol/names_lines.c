/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that are told line by line.
 *
 * /proc/kallsyms, sorted within the kernel and within each module:
 *
 *   ffffffff81000000 T _stext
 *   ffffffffc0a01000 t nft_do_chain[TAB][nf_tables]
 *   ffffffffc0b00000 t bpf_prog_6deef7357e7b4530_name[TAB][bpf]
 *
 * There are no sizes: a function ends where the next symbol of any kind begins.  A module stays
 * behind the name, as "nft_do_chain[TAB]nf_tables".
 *
 * A perf-map is what a JIT compiler tells of code it made, one piece a line, in the order of
 * making:
 *
 *   7f1c5a000000 1c0 LazyCompile:~render /app/view.js:10
 *
 * Where pieces overlap, the last told is there; older ones may show before and behind it.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "symbol/names_int.h"

enum {
    CHUNK = 1 << 16,
    READ_MAX = 256 << 20,
    TEXT_MAX = 64 << 20,
    FUNCTION_MAX = 1 << 18, /* of the kernel: what is further on has no symbol */
};

static ssize_t read_some(const struct kiln_bytes *bytes, uint64_t offset, char *to, size_t n)
{
    ssize_t r;

    /* Not what was added since it was opened; files of the kernel's have no size. */
    if (offset >= (bytes->size ? bytes->size : READ_MAX) || offset >= READ_MAX)
        return 0;
    if (bytes->data || bytes->fd < 0) {
        if (n > bytes->size - offset)
            n = bytes->size - offset;
        return bytes->read(bytes, offset, to, n) < 0 ? 0 : (ssize_t)n;
    }
    do
        r = pread(bytes->fd, to, n, (off_t)offset);
    while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : r;
}

struct lines {
    int (*each)(void *context, struct kiln_str line);
    void *context;
    size_t n;      /* of a line that is not complete yet */
    bool too_long; /* its rest is passed over */
    char chunk[CHUNK];
};

/* Shows the complete lines of the chunk, moves the rest to its beginning. */
static int show_lines(struct lines *lines)
{
    struct kiln_str rest = {lines->chunk, lines->n};
    const char *end;

    while (rest.len > 0 && (end = memchr(rest.ptr, '\n', rest.len))) {
        struct kiln_str line = {rest.ptr, (size_t)(end - rest.ptr)};
        int r = lines->too_long ? 0 : lines->each(lines->context, line);

        if (r < 0)
            return r;
        lines->too_long = false;
        rest.ptr += line.len + 1;
        rest.len -= line.len + 1;
    }
    if (rest.len == CHUNK) {
        int r = lines->too_long ? 0 : lines->each(lines->context, rest);

        if (r < 0)
            return r;
        lines->too_long = true;
        rest.len = 0;
    }
    memmove(lines->chunk, rest.ptr, rest.len);
    lines->n = rest.len;
    return 0;
}

int kiln_names_each_line(const struct kiln_bytes *bytes,
                         int (*each)(void *context, struct kiln_str line), void *context)
{
    struct lines *lines = kiln_malloc(sizeof(*lines));
    uint64_t offset = 0;
    ssize_t n;
    int r = 0;

    if (!lines)
        return -ENOMEM;
    *lines = (struct lines){.each = each, .context = context};
    while (r == 0 &&
           (n = read_some(bytes, offset, lines->chunk + lines->n, CHUNK - lines->n)) != 0) {
        lines->n += n > 0 ? (size_t)n : 0;
        offset += n > 0 ? (uint64_t)n : 0;
        r = n < 0 ? (int)n : show_lines(lines);
    }
    if (r == 0 && lines->n > 0 && !lines->too_long)
        r = each(context, (struct kiln_str){lines->chunk, lines->n});
    kiln_free(lines);
    return r;
}

/* What both readers fill. */
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

static int add_kernel_line(void *context, struct kiln_str line)
{
    struct told *told = context;
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
    r = kiln_names_each_line(bytes, add_kernel_line, &told);
    if (r == 0 && !told.seen)
        r = -EACCES;
    if (r == 0)
        r = kiln_symtab_take_text(table, &told.text);
    if (r == 0)
        bound(table);
    kiln_buf_done(&told.text);
    return r;
}

static int add_map_line(void *context, struct kiln_str line)
{
    struct told *told = context;
    struct kiln_str start = kiln_str_cut(&line, ' ');
    struct kiln_str size = kiln_str_cut(&line, ' ');
    struct kiln_symtab_entry symbol;
    uint64_t n;
    int r;

    if (kiln_str_parse_hex(start, &symbol.address) < 0 || kiln_str_parse_hex(size, &n) < 0 ||
        n == 0 || line.len == 0)
        return 0;
    symbol.info = kiln_symtab_info(n, false, KILN_SYMTAB_FUNCTION);
    r = add_name(told, line, KILN_STR_NONE, &symbol.name);
    return r < 0 ? r : kiln_symtab_add(told->table, symbol);
}

static uint64_t end_of(const struct kiln_symtab_entry *symbol)
{
    uint64_t end;

    if (__builtin_add_overflow(symbol->address, kiln_symtab_size(symbol), &end))
        return UINT64_MAX;
    return end;
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

    if (last && last->name == piece->name && end_of(last) == begin) {
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
        end = end_of(top);
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
        if (end_of(table->symbols + i - 1) > table->symbols[i].address)
            return true;
    }
    return false;
}

/* Leaves of each piece what no later one hides. */
static int flatten(struct kiln_symtab *table)
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

int kiln_names_read_perf_map(struct kiln_symtab *table, const struct kiln_bytes *bytes)
{
    struct told told = {.table = table};
    int r;

    kiln_buf_init(&told.text, TEXT_MAX);
    r = kiln_names_each_line(bytes, add_map_line, &told);
    /* What was told before something was too much is true all the same. */
    if (r == KILN_E_LIMIT) {
        told.text.error = 0;
        r = 0;
    }
    if (r == 0)
        r = kiln_symtab_take_text(table, &told.text);
    if (r == 0)
        r = flatten(table);
    kiln_buf_done(&told.text);
    return r;
}
