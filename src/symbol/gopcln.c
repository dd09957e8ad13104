/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes, little-endian; offsets are from the beginning of the table:
 *
 *   header:    0 4 magic    4 two zeros    6 1 quantum of addresses    7 1 bytes of a pointer
 *              8 8 number of functions    16 8 of files    24 8 address of code (1.18 to 1.25)
 *              then 8 bytes each: offset of names, units, files, values, functions
 *   functions: {4 entry, 4 offset of its description from here} each, sorted, and the end of code;
 *              8 bytes each in Go 1.16, and entries are addresses
 *   function:  0 4 entry    4 4 name    8 arguments    12 deferreturn    16 4 pcsp    20 4 pcfile
 *              24 4 pcln    28 4 number of pcdata    32 4 unit    36 4 first line (1.20)
 *              then 1 id    1 flags    1 pad    1 number of funcdata, then 4 bytes each pcdata,
 *              funcdata; in Go 1.16 the entry has 8 bytes, and all else is 4 later
 *   values:    pairs of varints: how the value changes (zig-zag; it begins at -1), for how many
 *              quanta of addresses; ended by a change of 0
 *   file:      files[units[unit + number]], texts end with NUL like those of names
 */
#include "symbol/gopcln.h"

#include <errno.h>

#include "base/err.h"
#include "base/mem.h"
#include "symbol/cursor.h"
#include "symbol/gopcln_int.h"

enum { FUNCS_MAX = 1 << 24, TEXT_MAX = 4096, FUNC_HEAD = 44, PAIR = 20 };

const uint8_t *kiln_gopcln_see(struct kiln_gopcln *pcln, uint64_t at, size_t need, size_t want,
                               size_t *ret_n)
{
    if (need > pcln->size || at > pcln->size - need)
        return NULL;
    if (want > pcln->size - at)
        want = (size_t)(pcln->size - at);
    return kiln_window_see(&pcln->window, pcln->offset + at, need, want, ret_n);
}

bool kiln_gopcln_has_1_18(const struct kiln_gopcln *pcln)
{
    return pcln->magic != KILN_GO_1_16;
}

static int read_header(struct kiln_gopcln *pcln)
{
    size_t n;
    const uint8_t *head = kiln_gopcln_see(pcln, 0, 72, 72, &n);
    uint64_t n_funcs, text_start;
    const uint8_t *parts;

    if (!head || !kiln_gopcln_is_magic(head))
        return head ? KILN_E_UNSUPPORTED : KILN_E_TRUNCATED;
    pcln->magic = kiln_get_32(head);
    pcln->quantum = head[6];
    n_funcs = kiln_get_64(head + 8);
    parts = head + (kiln_gopcln_has_1_18(pcln) ? 32 : 24);
    pcln->names = kiln_get_64(parts);
    pcln->units = kiln_get_64(parts + 8);
    pcln->files = kiln_get_64(parts + 16);
    pcln->values = kiln_get_64(parts + 24);
    pcln->funcs = kiln_get_64(parts + 32);
    text_start = kiln_get_64(head + KILN_GO_TEXT_START);
    if (n_funcs == 0 || n_funcs > FUNCS_MAX || pcln->names > pcln->size ||
        pcln->units > pcln->size || pcln->files > pcln->size || pcln->values > pcln->size ||
        pcln->funcs > pcln->size || pcln->size - pcln->funcs < n_funcs * 8)
        return KILN_E_MALFORMED;
    pcln->n_funcs = (uint32_t)n_funcs;
    if (kiln_gopcln_has_1_18(pcln))
        pcln->text = kiln_gopcln_text(pcln, text_start);
    return kiln_gopcln_has_1_18(pcln) && !pcln->text ? KILN_E_UNSUPPORTED : 0;
}

int kiln_gopcln_open(const struct kiln_elf *elf, struct kiln_gopcln **ret_pcln)
{
    struct kiln_gopcln *pcln = kiln_calloc(1, sizeof(*pcln));
    int r;

    if (!pcln)
        return -ENOMEM;
    pcln->elf = elf;
    kiln_window_init(&pcln->window, &elf->bytes);
    r = kiln_gopcln_locate(pcln);
    if (r == 0)
        r = read_header(pcln);
    kiln_window_drop(&pcln->window);
    if (r < 0)
        kiln_free(pcln);
    else
        *ret_pcln = pcln;
    return r;
}

void kiln_gopcln_close(struct kiln_gopcln *pcln)
{
    if (!pcln)
        return;
    kiln_window_drop(&pcln->window);
    kiln_free(pcln);
}

void kiln_gopcln_rest(struct kiln_gopcln *pcln)
{
    kiln_window_drop(&pcln->window);
}

bool kiln_gopcln_has_flags(const struct kiln_gopcln *pcln)
{
    return kiln_gopcln_has_1_18(pcln);
}

uint32_t kiln_gopcln_count(const struct kiln_gopcln *pcln)
{
    return pcln->n_funcs;
}

/* An entry of the list of functions; that of `n_funcs` is the end of code. */
static int entry_of(struct kiln_gopcln *pcln, uint32_t index, uint64_t *ret_entry,
                    uint64_t *ret_func)
{
    size_t half = kiln_gopcln_has_1_18(pcln) ? 4 : 8;
    size_t need = index < pcln->n_funcs ? 2 * half : half, n;
    const uint8_t *at =
        kiln_gopcln_see(pcln, pcln->funcs + (uint64_t)index * 2 * half, need, need, &n);

    if (!at)
        return KILN_E_TRUNCATED;
    *ret_entry = kiln_gopcln_has_1_18(pcln) ? pcln->text + kiln_get_32(at) : kiln_get_64(at);
    if (index < pcln->n_funcs)
        *ret_func = kiln_gopcln_has_1_18(pcln) ? kiln_get_32(at + half) : kiln_get_64(at + half);
    return 0;
}

/* Where the part that begins with the id is, from the name on. */
static uint32_t tail_of(const struct kiln_gopcln *pcln)
{
    return pcln->magic == KILN_GO_1_20 ? 36 : 32;
}

static void take_func(const struct kiln_gopcln *pcln, const uint8_t *at, struct kiln_go_func *func)
{
    const uint8_t *tail = at + tail_of(pcln);

    func->name = kiln_get_32(at);
    func->pcsp = kiln_get_32(at + 12);
    func->pcfile = kiln_get_32(at + 16);
    func->pcln = kiln_get_32(at + 20);
    func->cu = kiln_get_32(at + 28);
    func->start_line = pcln->magic == KILN_GO_1_20 ? kiln_get_32(at + 32) : 0;
    func->flags = tail[1];
    func->n_funcdata = tail[3];
    func->n_pcdata = kiln_get_32(at + 24);
}

int kiln_gopcln_func(struct kiln_gopcln *pcln, uint32_t index, struct kiln_go_func *ret_func)
{
    struct kiln_go_func func = {0};
    size_t entry = kiln_gopcln_has_1_18(pcln) ? 4 : 8, n;
    uint64_t at, unused;
    const uint8_t *seen;

    if (index >= pcln->n_funcs)
        return KILN_E_RANGE;
    if (entry_of(pcln, index, &func.entry, &at) < 0 ||
        entry_of(pcln, index + 1, &func.end, &unused) < 0 || func.end < func.entry ||
        __builtin_add_overflow(at, pcln->funcs, &at))
        return KILN_E_MALFORMED;
    seen = kiln_gopcln_see(pcln, at, FUNC_HEAD, FUNC_HEAD, &n);
    if (!seen)
        return KILN_E_TRUNCATED;
    take_func(pcln, seen + entry, &func);
    func.tables = at + entry + tail_of(pcln) + 4;
    *ret_func = func;
    return 0;
}

int kiln_gopcln_find(struct kiln_gopcln *pcln, uint64_t address, uint32_t *ret_index)
{
    uint32_t low = 0, high = pcln->n_funcs; /* the last entry <= address is in [low, high] */
    uint64_t entry, unused;

    if (entry_of(pcln, 0, &entry, &unused) < 0 || address < entry ||
        entry_of(pcln, pcln->n_funcs, &entry, &unused) < 0 || address >= entry)
        return -ENOENT;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (entry_of(pcln, middle, &entry, &unused) < 0)
            return KILN_E_TRUNCATED;
        if (entry <= address)
            low = middle;
        else
            high = middle;
    }
    *ret_index = low;
    return 0;
}

static struct kiln_str text_at(struct kiln_gopcln *pcln, uint64_t at)
{
    size_t n;
    const uint8_t *seen = kiln_gopcln_see(pcln, at, 1, TEXT_MAX, &n);
    const uint8_t *end = seen ? memchr(seen, 0, n) : NULL;

    if (!end)
        return KILN_STR_NONE;
    return (struct kiln_str){(const char *)seen, (size_t)(end - seen)};
}

struct kiln_str kiln_gopcln_name(struct kiln_gopcln *pcln, uint32_t name)
{
    return text_at(pcln, pcln->names + name);
}

struct kiln_str kiln_gopcln_file(struct kiln_gopcln *pcln, const struct kiln_go_func *func,
                                 int32_t file)
{
    const uint8_t *seen;
    size_t n;

    if (file < 0)
        return KILN_STR_NONE;
    seen = kiln_gopcln_see(pcln, pcln->units + ((uint64_t)func->cu + (uint32_t)file) * 4, 4, 4, &n);
    if (!seen || kiln_get_32(seen) == UINT32_MAX)
        return KILN_STR_NONE;
    return text_at(pcln, pcln->files + kiln_get_32(seen));
}

void kiln_go_values_init(struct kiln_go_values *values, struct kiln_gopcln *pcln,
                         const struct kiln_go_func *func, uint32_t table)
{
    *values = (struct kiln_go_values){
        .pcln = pcln,
        .at = table ? pcln->values + table : UINT64_MAX,
        .end = func->entry,
        .value = -1,
        .is_first = true,
    };
}

bool kiln_go_values_next(struct kiln_go_values *values)
{
    struct kiln_cursor c = {0};
    uint32_t change, quanta;
    size_t n;

    c.at = kiln_gopcln_see(values->pcln, values->at, 1, PAIR, &n);
    if (!c.at)
        return false;
    c.end = c.at + n;
    change = (uint32_t)kiln_cursor_uleb(&c);
    quanta = (uint32_t)kiln_cursor_uleb(&c);
    if (c.bad || (change == 0 && !values->is_first) || quanta == 0)
        return false;
    values->at += n - (size_t)(c.end - c.at);
    values->value = (int32_t)((uint32_t)values->value + ((change >> 1) ^ -(change & 1)));
    values->start = values->end;
    values->end += (uint64_t)quanta * values->pcln->quantum;
    values->is_first = false;
    return true;
}

int32_t kiln_gopcln_value(struct kiln_gopcln *pcln, const struct kiln_go_func *func, uint32_t table,
                          uint64_t address)
{
    struct kiln_go_values values;

    kiln_go_values_init(&values, pcln, func, table);
    while (kiln_go_values_next(&values)) {
        if (address < values.end)
            return values.value;
        if (values.end >= func->end)
            break;
    }
    return -1;
}
