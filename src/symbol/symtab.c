/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An address belongs to the function that starts last among those that cover it, so the search
 * goes back from the address; a note of where each sixteen symbols end lets it leap over those that
 * end before.  Only where no function covers, labels with a size are asked, then the symbol just
 * before if it has no size: it reaches to the next one, as long as that is the same section.
 */
#include "symbol/symtab.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/types.h>

#include "base/err.h"

enum {
    BLOCK = 16,
    ALIASES_MAX = 64, /* that are compared */
    LABELS_MAX = 256, /* of compilers' own, that are passed over */
    SORT_SMALL = 24,  /* by insertion */
    TEXT_CHUNK = 192, /* most names are shorter */
    CODE_MAX = 64,    /* ranges; files have five or six */
};

void kiln_symtab_init(struct kiln_symtab *table, size_t memory_bytes, uint32_t max)
{
    memset(table, 0, offsetof(struct kiln_symtab, stretches));
    table->budget.limit = memory_bytes;
    table->max = max;
}

void kiln_symtab_done(struct kiln_symtab *table)
{
    for (uint32_t i = 0; i < table->n_texts; i++) {
        if (table->texts[i].own)
            kiln_budget_give(&table->budget, table->texts[i].size);
        kiln_free(table->texts[i].own);
    }
    table->n_texts = 0;
    kiln_array_free(&table->budget, (void **)&table->symbols, &table->cap, sizeof(*table->symbols));
    kiln_array_free(&table->budget, (void **)&table->ends, &table->cap_ends, sizeof(*table->ends));
    kiln_array_free(&table->budget, (void **)&table->code, &table->cap_code, sizeof(*table->code));
}

/* The first wanted address among [low, low + n) that is not before `address`. */
static uint32_t first_wanted(const struct kiln_symtab *table, uint32_t low, uint32_t n,
                             uint64_t address)
{
    while (n > 0) {
        bool before = table->wanted[low + n / 2] < address;

        low += before ? n - n / 2 : 0;
        n /= 2;
    }
    return low;
}

void kiln_symtab_want(struct kiln_symtab *table, const uint64_t *addresses, uint32_t n, bool near)
{
    uint64_t span = n ? addresses[n - 1] - addresses[0] : 0;

    table->wanted = addresses;
    table->n_wanted = n;
    table->near = near;
    for (table->stretch_bits = 0; span >> table->stretch_bits >= KILN_SYMTAB_STRETCHES;)
        table->stretch_bits++;
    for (uint32_t i = 0, at = 0; n && i <= KILN_SYMTAB_STRETCHES; i++) {
        while (at < n && addresses[at] - addresses[0] < (uint64_t)i << table->stretch_bits)
            at++;
        table->stretches[i] = at;
    }
}

bool kiln_symtab_wants(struct kiln_symtab *table, const struct kiln_symtab_entry *symbol)
{
    uint64_t reach = table->reach ? table->reach : KILN_SYMTAB_REACH_MAX;
    uint64_t address = symbol->address, stretch = 0, distance;
    uint32_t at;

    if (!table->wanted)
        return true;
    if (table->n_wanted == 0)
        return false;
    if (address > table->wanted[0])
        stretch = (address - table->wanted[0]) >> table->stretch_bits;
    if (stretch >= KILN_SYMTAB_STRETCHES)
        return false;
    at = table->stretches[stretch];
    at = first_wanted(table, at, table->stretches[stretch + 1] - at, address);
    if (at == table->n_wanted)
        return false;
    distance = table->wanted[at] - address;
    if (!table->near && kiln_symtab_size(symbol) == 0 && distance < reach)
        table->unsized = true;
    return distance < (table->near ? reach : kiln_symtab_size(symbol));
}

int kiln_symtab_add(struct kiln_symtab *table, struct kiln_symtab_entry symbol)
{
    if (!kiln_symtab_wants(table, &symbol))
        return 0;
    if (table->n == table->cap) {
        int r = kiln_grow(&table->budget, (void **)&table->symbols, &table->cap,
                          (uint64_t)table->n + 1, sizeof(symbol), table->max);

        if (r < 0)
            return r;
    }
    table->symbols[table->n++] = symbol;
    return 0;
}

int kiln_symtab_add_code(struct kiln_symtab *table, uint64_t begin, uint64_t end)
{
    int r = kiln_grow(&table->budget, (void **)&table->code, &table->cap_code,
                      (uint64_t)table->n_code + 1, sizeof(*table->code), CODE_MAX);

    if (r < 0)
        return r;
    table->code[table->n_code++] = (struct kiln_symtab_range){begin, end};
    return 0;
}

int kiln_symtab_add_text(struct kiln_symtab *table, const struct kiln_bytes *bytes, uint64_t offset,
                         uint64_t size, uint32_t *ret_first)
{
    uint64_t first = 0;

    for (uint32_t i = 0; i < table->n_texts; i++)
        first += table->texts[i].size;
    if (table->n_texts == KILN_SYMTAB_TEXTS || size > UINT32_MAX - first)
        return KILN_E_LIMIT;
    table->texts[table->n_texts++] = (struct kiln_symtab_text){
        .bytes = *bytes, .offset = offset, .first = (uint32_t)first, .size = (uint32_t)size};
    *ret_first = (uint32_t)first;
    return 0;
}

int kiln_symtab_own_text(struct kiln_symtab *table, uint32_t i)
{
    struct kiln_symtab_text *text = table->texts + i;
    struct kiln_bytes from = text->bytes;
    uint64_t offset = text->offset;
    char *own;
    int r;

    text->bytes = kiln_bytes_memory(NULL, 0);
    text->offset = 0;
    r = kiln_budget_take(&table->budget, text->size);
    if (r < 0)
        return r;
    own = kiln_malloc(text->size ? text->size : 1);
    r = own ? from.read(&from, offset, own, text->size) : -ENOMEM;
    if (r < 0) {
        kiln_budget_give(&table->budget, text->size);
        kiln_free(own);
        return r;
    }
    text->own = own;
    text->bytes = kiln_bytes_memory(own, text->size);
    return 0;
}

int kiln_symtab_take_text(struct kiln_symtab *table, struct kiln_buf *buf)
{
    struct kiln_bytes bytes = kiln_bytes_memory(buf->ptr, buf->len);
    uint32_t first;
    size_t len;
    char *own;
    int r = buf->error;

    if (r == 0)
        r = kiln_budget_take(&table->budget, buf->len);
    if (r < 0)
        return r;
    r = kiln_symtab_add_text(table, &bytes, 0, buf->len, &first);
    if (r < 0) {
        kiln_budget_give(&table->budget, buf->len);
        return r;
    }
    kiln_buf_take(buf, &own, &len);
    table->texts[table->n_texts - 1].own = own;
    return 0;
}

static void sort_few(struct kiln_symtab_entry *symbols, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        struct kiln_symtab_entry moved = symbols[i];
        uint32_t at = i;

        for (; at > 0 && symbols[at - 1].address > moved.address; at--)
            symbols[at] = symbols[at - 1];
        symbols[at] = moved;
    }
}

/* Puts each where the byte at `shift` says; leaves where the values begin, and the end. */
static void sort_byte(struct kiln_symtab_entry *symbols, uint32_t n, uint32_t shift,
                      uint32_t begin[257])
{
    uint32_t next[256];

    memset(begin, 0, 257 * sizeof(*begin));
    for (uint32_t i = 0; i < n; i++)
        begin[(symbols[i].address >> shift & 0xff) + 1]++;
    for (uint32_t i = 1; i <= 256; i++)
        begin[i] += begin[i - 1];
    memcpy(next, begin, sizeof(next));
    for (uint32_t value = 0; value < 256; value++) {
        while (next[value] < begin[value + 1]) {
            struct kiln_symtab_entry *here = symbols + next[value];
            uint32_t wanted = here->address >> shift & 0xff;
            struct kiln_symtab_entry moved = *here;

            *here = symbols[next[wanted]];
            symbols[next[wanted]++] = moved;
        }
    }
}

/* By the highest byte first, in place: the C library's qsort() may want as much memory again. */
static void sort_from(struct kiln_symtab_entry *symbols, uint32_t n, uint32_t shift)
{
    uint32_t begin[257];

    if (n <= SORT_SMALL) {
        sort_few(symbols, n);
        return;
    }
    sort_byte(symbols, n, shift, begin);
    for (uint32_t value = 0; shift > 0 && value < 256; value++) {
        if (begin[value + 1] - begin[value] > 1)
            sort_from(symbols + begin[value], begin[value + 1] - begin[value], shift - 8);
    }
}

void kiln_symtab_sort(struct kiln_symtab_entry *symbols, uint32_t n)
{
    uint64_t differ = 0;
    uint32_t shift = 0;

    for (uint32_t i = 1; i < n; i++)
        differ |= symbols[i].address ^ symbols[0].address;
    while (shift < 56 && differ >> shift > 0xff)
        shift += 8;
    sort_from(symbols, n, shift);
}

int kiln_symtab_finish(struct kiln_symtab *table)
{
    uint32_t n_ends = (table->n + BLOCK - 1) / BLOCK;
    int r;

    kiln_symtab_sort(table->symbols, table->n);
    r = kiln_reserve(&table->budget, (void **)&table->ends, &table->cap_ends, n_ends,
                     sizeof(*table->ends), UINT32_MAX);
    if (r < 0)
        return r;
    table->n_ends = n_ends;
    if (n_ends)
        memset(table->ends, 0, n_ends * sizeof(*table->ends));
    for (uint32_t i = 0; i < table->n; i++) {
        uint64_t end = kiln_symtab_end(table->symbols + i);

        if (end > table->ends[i / BLOCK])
            table->ends[i / BLOCK] = end;
    }
    return 0;
}

/* How many begin at the address or before. */
static uint32_t upto(const struct kiln_symtab *table, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = table->n;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (table->symbols[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The last before `end` of labels, or of all others, that covers the address; the number behind it,
 * 0: none does. */
static uint32_t covering(const struct kiln_symtab *table, uint32_t end, uint64_t address,
                         bool label)
{
    while (end > 0) {
        if (end % BLOCK == 0 && table->ends[end / BLOCK - 1] <= address) {
            end -= BLOCK;
            continue;
        }
        const struct kiln_symtab_entry *symbol = table->symbols + end - 1;

        if (kiln_symtab_end(symbol) > address &&
            label == (kiln_symtab_kind(symbol) == KILN_SYMTAB_LABEL))
            return end;
        end--;
    }
    return 0;
}

/* As much of a name as `max` bytes have; -1: its end is further on. */
static ssize_t read_piece(const struct kiln_symtab_text *text, uint32_t at, char *ret_text,
                          size_t max)
{
    bool whole = max >= text->size - at;
    size_t n = whole ? text->size - at : max;
    const char *end;

    if (text->bytes.read(&text->bytes, text->offset + at, ret_text, n) < 0)
        return 0;
    end = memchr(ret_text, text->end, n);
    if (end)
        return end - ret_text;
    return whole ? (ssize_t)n : -1;
}

/* The name into `ret_text`, cut where it is too long.  Returns its length, 0 also where it cannot
 * be read. */
static size_t read_name(const struct kiln_symtab *table, uint32_t name, char *ret_text)
{
    for (uint32_t i = 0; i < table->n_texts; i++) {
        const struct kiln_symtab_text *text = table->texts + i;
        uint32_t at = name - text->first;
        ssize_t n;

        if (name < text->first || at >= text->size)
            continue;
        n = read_piece(text, at, ret_text, TEXT_CHUNK);
        if (n < 0)
            n = read_piece(text, at, ret_text, KILN_SYMTAB_NAME_MAX);
        return n < 0 ? KILN_SYMTAB_NAME_MAX : (size_t)n;
    }
    return 0;
}

static uint32_t underscores(struct kiln_str name)
{
    uint32_t n = 0;

    if (name.len > 2 && name.ptr[0] == '_' && (name.ptr[1] == 'Z' || name.ptr[1] == 'R'))
        return 0;
    while (n < name.len && name.ptr[n] == '_')
        n++;
    return n;
}

/* Of two names for one thing people know the one that is not decorated, and shorter. */
static bool is_better(struct kiln_str a, struct kiln_str b)
{
    const struct kiln_str vdso = KILN_STR("__vdso_");
    uint32_t in_a = underscores(a);
    uint32_t in_b = underscores(b);

    /* "clock_gettime" is the C library's, too, which calls the kernel's. */
    if (kiln_str_starts(a, vdso) != kiln_str_starts(b, vdso))
        return kiln_str_starts(a, vdso);
    if (in_a != in_b)
        return in_a < in_b;
    return a.len != b.len ? a.len < b.len : kiln_str_cmp(a, b) < 0;
}

/* Compilers' own: notes on how something was compiled, marks of data, local labels. */
static bool is_noise(struct kiln_str name)
{
    return name.ptr[0] == '$' || kiln_str_starts(name, KILN_STR(".L")) ||
           kiln_str_starts(name, KILN_STR(".annobin"));
}

/* One place in the table that symbols share, and what is asked of them. */
struct group {
    uint32_t first, end;
    uint64_t address; /* they must cover it; or */
    bool unsized;     /* have no size */
    bool label;
};

static bool fits(const struct group *group, const struct kiln_symtab_entry *symbol)
{
    if (group->unsized)
        return kiln_symtab_size(symbol) == 0;
    return kiln_symtab_end(symbol) > group->address &&
           group->label == (kiln_symtab_kind(symbol) == KILN_SYMTAB_LABEL);
}

/* The best named of them; its name is in table->name.  NULL: none has a name. */
static const struct kiln_symtab_entry *choose(struct kiln_symtab *table, const struct group *group,
                                              struct kiln_str *ret_name)
{
    const struct kiln_symtab_entry *best = NULL;
    struct kiln_str best_name = KILN_STR_NONE;

    for (uint32_t i = group->first; i < group->end; i++) {
        const struct kiln_symtab_entry *symbol = table->symbols + i;
        struct kiln_str name = {table->other, 0};
        bool local = symbol->info & 4;

        if (!fits(group, symbol) || (best && local && !(best->info & 4)))
            continue;
        name.len = read_name(table, symbol->name, table->other);
        if (name.len == 0 || (kiln_symtab_kind(symbol) == KILN_SYMTAB_LABEL && is_noise(name)))
            continue;
        if (best && local == !!(best->info & 4) && !is_better(name, best_name))
            continue;
        memcpy(table->name, table->other, name.len);
        best_name = (struct kiln_str){table->name, name.len};
        best = symbol;
    }
    *ret_name = best_name;
    return best;
}

/* All that begin where the last before `end` does; no more than are worth comparing. */
static uint32_t group_begin(const struct kiln_symtab *table, uint32_t end)
{
    uint32_t first = end - 1;

    while (first > 0 && end - first < ALIASES_MAX &&
           table->symbols[first - 1].address == table->symbols[end - 1].address)
        first--;
    return first;
}

static bool same_section(const struct kiln_symtab *table, uint64_t a, uint64_t b)
{
    for (uint32_t i = 0; i < table->n_code; i++) {
        const struct kiln_symtab_range *code = table->code + i;

        if (a >= code->begin && a < code->end)
            return b >= code->begin && b < code->end;
    }
    return false;
}

static const struct kiln_symtab_entry *find_unsized(struct kiln_symtab *table, uint32_t end,
                                                    uint64_t address, struct kiln_str *ret_name)
{
    for (uint32_t steps = 0; end > 0 && steps < LABELS_MAX; steps++) {
        uint64_t start = table->symbols[end - 1].address;
        struct group group = {group_begin(table, end), end, address, .unsized = true};
        const struct kiln_symtab_entry *symbol;

        if (address - start >= table->reach || !same_section(table, start, address))
            return NULL;
        symbol = choose(table, &group, ret_name);
        if (symbol)
            return symbol;
        for (uint32_t i = group.first; i < end; i++) {
            if (kiln_symtab_kind(table->symbols + i) != KILN_SYMTAB_LABEL ||
                kiln_symtab_size(table->symbols + i) > 0)
                return NULL;
        }
        end = group.first;
    }
    return NULL;
}

/* What has no name to show, as labels of compilers' own, is passed over for what is around it. */
static const struct kiln_symtab_entry *find_covering(struct kiln_symtab *table, uint32_t end,
                                                     uint64_t address, bool label,
                                                     struct kiln_str *ret_name)
{
    const struct kiln_symtab_entry *symbol = NULL;

    for (uint32_t steps = 0; !symbol && steps < LABELS_MAX; steps++) {
        uint32_t behind = covering(table, end, address, label);
        struct group group = {0, behind, address, .label = label};

        if (behind == 0)
            return NULL;
        end = group.first = group_begin(table, behind);
        symbol = choose(table, &group, ret_name);
    }
    return symbol;
}

bool kiln_symtab_find(struct kiln_symtab *table, uint64_t address,
                      const struct kiln_symtab_entry **ret_symbol, struct kiln_str *ret_name)
{
    uint32_t end = upto(table, address);
    const struct kiln_symtab_entry *symbol = find_covering(table, end, address, false, ret_name);

    if (!symbol)
        symbol = find_covering(table, end, address, true, ret_name);
    if (!symbol)
        symbol = find_unsized(table, end, address, ret_name);
    if (symbol)
        *ret_symbol = symbol;
    return symbol;
}
