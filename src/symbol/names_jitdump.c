/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jitdump is what compilers at run time write for `perf inject --jit`: a file that only grows, of
 * records in the order of making, here little-endian.  Offsets and sizes in bytes:
 *
 *   header:     0 4 "DTiJ"    4 4 version 1    8 4 size of the header    12 4 machine    16 4
 * unused 20 4 pid    24 8 time    32 8 flags record:     0 4 kind    4 4 size, with this head    8
 * 8 time, then by kind: 0 load:     16 4 pid    20 4 tid    24 8 address    32 8 address    40 8
 * size of the code 48 8 number of the code    56 name, NUL, the code itself 1 move:     16 4 pid 20
 * 4 tid    24 8 address    32 8 old address    40 8 new address 48 8 size    56 8 number 2 lines:
 * 16 8 address    24 8 number of entries; stands before the load that it is of entry:    0 8
 * address    8 4 line    12 4 column    16 file, NUL; ff NUL: the one before 3 close, 4 unwinding
 * tables, others: passed over
 *
 * Pieces of code are kept as symbols whose "name" is the place of their record: a higher one was
 * told later, and hides what was there.  Names and lines are read from the file when they are asked
 * for.  A record that is not complete yet ends the reading; it goes on there when the file has
 * grown.  Records lie below 4 GiB.
 *
 * V8 says so by its unused word, and has two ways of its own: addresses of lines are 64 too high,
 * for the header of the file that perf makes; and lines of baseline code have places in the byte
 * code in place of addresses, and are of no use.
 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "symbol/cursor.h"
#include "symbol/names_int.h"
#include "symbol/v8_name.h"
#include "symbol/window.h"

enum {
    MAGIC = 0x4a695444,
    VERSION = 1,
    HEADER = 40,
    HEADER_MAX = 4096,
    LOAD = 0,
    MOVE = 1,
    LINES = 2,
    HEAD = 16,      /* of any record */
    LOAD_HEAD = 56, /* up to the name */
    MOVE_HEAD = 64,
    LINES_HEAD = 32,
    ENTRY_HEAD = 16,
    ENTRIES_MAX = 1 << 16,
    V8_SHIFT = 64,
};
#define V8_UNUSED 0xdeadbeefu

/* Code that was made. */
struct load {
    uint64_t number;
    uint32_t record; /* its place; these ascend */
    uint32_t lines;  /* the record of its lines; 0: none */
};

struct kiln_jitdump {
    struct kiln_symtab *table;
    struct kiln_bytes bytes;
    struct kiln_window window;
    struct kiln_map_end end;
    struct load *loads;
    uint32_t n_loads, cap_loads;
    uint64_t lines_of; /* the address that the last record of lines is of */
    uint32_t lines;    /* its place; 0: it has its load already */
    bool is_v8;
};

struct record {
    uint32_t at, kind, size;
};

static const uint8_t *see(struct kiln_jitdump *dump, uint64_t at, size_t need, size_t want,
                          size_t *ret_n)
{
    return kiln_window_see(&dump->window, at, need, want, ret_n);
}

/* ---- reading ---- */

/* False: there is none that is complete. */
static bool read_record(struct kiln_jitdump *dump, uint64_t at, struct record *ret_record)
{
    size_t n;
    const uint8_t *seen = at < UINT32_MAX ? see(dump, at, HEAD, HEAD, &n) : NULL;
    struct record record = {.at = (uint32_t)at};

    if (!seen)
        return false;
    record.kind = kiln_get_32(seen);
    record.size = kiln_get_32(seen + 4);
    if (record.size < HEAD || record.size > dump->bytes.size - at)
        return false;
    *ret_record = record;
    return true;
}

static int add_piece(struct kiln_jitdump *dump, uint64_t address, uint64_t size, uint32_t record)
{
    const struct kiln_symtab_entry piece = {
        .address = address,
        .name = record,
        .info = kiln_symtab_info(size, false, KILN_SYMTAB_FUNCTION),
    };

    return size ? kiln_symtab_add(dump->table, piece) : 0;
}

static int take_load(struct kiln_jitdump *dump, const struct record *record)
{
    size_t n;
    const uint8_t *seen =
        record->size > LOAD_HEAD ? see(dump, record->at, LOAD_HEAD, LOAD_HEAD, &n) : NULL;
    uint64_t address, size;
    struct load load = {.record = record->at};
    int r;

    if (!seen)
        return 0;
    address = kiln_get_64(seen + 32);
    size = kiln_get_64(seen + 40);
    load.number = kiln_get_64(seen + 48);
    if (dump->lines_of == address)
        load.lines = dump->lines;
    dump->lines = 0;
    r = kiln_grow(&dump->table->budget, (void **)&dump->loads, &dump->cap_loads,
                  (uint64_t)dump->n_loads + 1, sizeof(load), dump->table->max);
    if (r < 0)
        return r;
    dump->loads[dump->n_loads++] = load;
    return add_piece(dump, address, size, record->at);
}

static int take_record(struct kiln_jitdump *dump, const struct record *record)
{
    const uint8_t *seen;
    size_t n;

    if (record->kind == LOAD)
        return take_load(dump, record);
    if (record->kind == MOVE && record->size >= MOVE_HEAD) {
        seen = see(dump, record->at, MOVE_HEAD, MOVE_HEAD, &n);
        return seen ? add_piece(dump, kiln_get_64(seen + 40), kiln_get_64(seen + 48), record->at)
                    : 0;
    }
    if (record->kind == LINES && record->size >= LINES_HEAD) {
        seen = see(dump, record->at, LINES_HEAD, LINES_HEAD, &n);
        dump->lines = seen ? record->at : 0;
        dump->lines_of = seen ? kiln_get_64(seen + 16) : 0;
    }
    return 0;
}

static int read_on(struct kiln_jitdump *dump)
{
    struct record record;
    int r = 0;

    while (r == 0 && read_record(dump, dump->end.offset, &record)) {
        r = take_record(dump, &record);
        dump->end.offset += record.size;
    }
    /* What was told before something was too much is true all the same. */
    if (r < 0 && r != KILN_E_LIMIT)
        return r;
    kiln_map_end_mark(&dump->end, &dump->bytes);
    return kiln_names_flatten(dump->table);
}

static int read_header(struct kiln_jitdump *dump)
{
    size_t n;
    const uint8_t *seen = see(dump, 0, HEADER, HEADER, &n);

    if (!seen || kiln_get_32(seen) != MAGIC)
        return KILN_E_UNKNOWN;
    if (kiln_get_32(seen + 4) != VERSION)
        return KILN_E_UNSUPPORTED;
    dump->end.offset = kiln_get_32(seen + 8);
    dump->is_v8 = kiln_get_32(seen + 16) == V8_UNUSED;
    return dump->end.offset < HEADER || dump->end.offset > HEADER_MAX ? KILN_E_MALFORMED : 0;
}

int kiln_jitdump_open(struct kiln_symtab *table, const struct kiln_bytes *bytes,
                      struct kiln_jitdump **ret_dump)
{
    struct kiln_jitdump *dump = kiln_calloc(1, sizeof(*dump));
    int r;

    if (!dump)
        return -ENOMEM;
    dump->table = table;
    dump->bytes = *bytes;
    kiln_window_init(&dump->window, &dump->bytes);
    r = read_header(dump);
    if (r == 0)
        r = read_on(dump);
    kiln_window_drop(&dump->window);
    if (r < 0)
        kiln_jitdump_close(dump);
    else
        *ret_dump = dump;
    return r;
}

void kiln_jitdump_close(struct kiln_jitdump *dump)
{
    if (!dump)
        return;
    kiln_window_drop(&dump->window);
    kiln_array_free(&dump->table->budget, (void **)&dump->loads, &dump->cap_loads,
                    sizeof(*dump->loads));
    kiln_free(dump);
}

int kiln_jitdump_grow(struct kiln_jitdump *dump, const struct kiln_bytes *bytes)
{
    int r;

    if (!kiln_map_end_goes_on(&dump->end, bytes))
        return KILN_E_UNSUPPORTED;
    kiln_window_drop(&dump->window);
    dump->bytes = *bytes;
    r = read_on(dump);
    kiln_window_drop(&dump->window);
    return r;
}

/* ---- asking ---- */

/* The last piece that begins at or before an address, if that is in it; pieces do not overlap. */
static const struct kiln_symtab_entry *piece_at(const struct kiln_symtab *table, uint64_t address)
{
    uint32_t low = 0, high = table->n;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (table->symbols[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low && address < kiln_symtab_end(&table->symbols[low - 1]) ? &table->symbols[low - 1]
                                                                      : NULL;
}

/* By the place of its record, or by its number: writers count these up. */
static const struct load *find_load(const struct kiln_jitdump *dump, bool by_number, uint64_t value)
{
    uint32_t low = 0, high = dump->n_loads;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct load *load = &dump->loads[middle];
        uint64_t at = by_number ? load->number : load->record;

        if (at == value)
            return load;
        if (at < value)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Whose code a piece is, and how far into that an address is. */
static const struct load *load_of(struct kiln_jitdump *dump, uint32_t at, uint64_t address,
                                  uint64_t *ret_into)
{
    size_t n;
    const uint8_t *seen = see(dump, at, LOAD_HEAD + 8, LOAD_HEAD + 8, &n);
    bool moved = seen && kiln_get_32(seen) == MOVE;

    if (!seen)
        seen = see(dump, at, LOAD_HEAD, LOAD_HEAD, &n); /* the name alone, at the file's end */
    if (!seen)
        return NULL;
    *ret_into = address - kiln_get_64(seen + (moved ? 40 : 32));
    return moved ? find_load(dump, true, kiln_get_64(seen + 56)) : find_load(dump, false, at);
}

/* A text that ends with NUL, within a record.  ptr NULL: it has no end. */
static struct kiln_str text_at(struct kiln_jitdump *dump, uint64_t at, uint64_t end)
{
    uint64_t left = end - at;
    size_t want = left < KILN_SYMTAB_NAME_MAX ? (size_t)left : KILN_SYMTAB_NAME_MAX, n;
    const uint8_t *seen = at < end ? see(dump, at, 1, want, &n) : NULL;
    const uint8_t *nul = seen ? memchr(seen, 0, n) : NULL;

    return nul ? (struct kiln_str){(const char *)seen, (size_t)(nul - seen)} : KILN_STR_NONE;
}

/* Where the line of an address is told. */
struct place {
    uint32_t line, column;
    uint64_t file; /* the place of its text; 0: none */
};

static bool is_path(struct kiln_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] < ' ')
            return false;
    }
    return text.len > 0 && kiln_utf8_valid(text);
}

/*
 * The entry with the highest address up to `address`.  Some versions of V8 write texts that are no
 * texts, after which nothing is where it should be: one entry that cannot be, and none is believed.
 */
static bool find_place(struct kiln_jitdump *dump, const struct record *lines, uint64_t address,
                       uint64_t size, struct place *ret_place)
{
    uint64_t end = (uint64_t)lines->at + lines->size, at = (uint64_t)lines->at + LINES_HEAD;
    uint64_t begin, n_entries, best = 0, file = 0;
    struct place place = {0};
    size_t n;
    const uint8_t *seen = see(dump, lines->at, LINES_HEAD, LINES_HEAD, &n);

    if (!seen)
        return false;
    begin = kiln_get_64(seen + 16);
    n_entries = kiln_get_64(seen + 24);
    for (uint64_t i = 0; i < n_entries && i < ENTRIES_MAX; i++) {
        struct place entry;
        struct kiln_str text;
        uint64_t from;

        seen = end - at >= ENTRY_HEAD ? see(dump, at, ENTRY_HEAD, ENTRY_HEAD, &n) : NULL;
        if (!seen)
            return false;
        from = kiln_get_64(seen);
        entry = (struct place){kiln_get_32(seen + 8), kiln_get_32(seen + 12), 0};
        text = text_at(dump, at + ENTRY_HEAD, end);
        if (!text.ptr || from < begin || from - begin > size + V8_SHIFT)
            return false;
        if (text.len != 1 || (unsigned char)text.ptr[0] != 0xff) {
            if (!is_path(text))
                return false;
            file = at + ENTRY_HEAD;
        }
        if (from <= address && from >= best) {
            best = from;
            place = entry;
            place.file = file;
        }
        at += ENTRY_HEAD + text.len + 1;
    }
    *ret_place = place;
    return place.file != 0;
}

static void add_lines(struct kiln_jitdump *dump, const struct load *load, uint64_t into,
                      struct kiln_name_frame *frame)
{
    bool is_bytecode = dump->is_v8 && kiln_v8_name_is_bytecode(frame->function);
    struct record lines;
    struct place place;
    const uint8_t *seen;
    uint64_t begin, size;
    size_t n;

    if (!load->lines || is_bytecode || !read_record(dump, load->lines, &lines))
        return;
    seen = see(dump, load->record, LOAD_HEAD, LOAD_HEAD, &n);
    if (!seen)
        return;
    begin = kiln_get_64(seen + 32);
    size = kiln_get_64(seen + 40);
    if (!find_place(dump, &lines, begin + into + (dump->is_v8 ? V8_SHIFT : 0), size, &place))
        return;
    frame->line = place.line;
    frame->column = place.column;
    frame->file = text_at(dump, place.file, (uint64_t)lines.at + lines.size);
}

bool kiln_jitdump_find(struct kiln_jitdump *dump, uint64_t address, struct kiln_frames *frames)
{
    const struct kiln_symtab_entry *piece = piece_at(dump->table, address);
    char name[KILN_SYMTAB_NAME_MAX], renamed[KILN_SYMTAB_NAME_MAX];
    struct kiln_name_frame frame = {0};
    const struct load *load;
    struct record record;
    uint64_t into;

    load = piece ? load_of(dump, piece->name, address, &into) : NULL;
    if (!load || !read_record(dump, load->record, &record))
        return false;
    frame.function =
        text_at(dump, (uint64_t)load->record + LOAD_HEAD, (uint64_t)load->record + record.size);
    if (!frame.function.len)
        return false;
    memcpy(name, frame.function.ptr, frame.function.len);
    frame.function.ptr = name; /* the window moves on */
    if (dump->is_v8)
        kiln_frame_read_v8(&frame, renamed);
    add_lines(dump, load, into, &frame);
    kiln_frames_add(frames, &frame, KILN_STR_NONE);
    return true;
}
