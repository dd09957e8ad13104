/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header of a line table:
 *
 *   4 bytes of length, or ffffffff and 8 of it     2 version (2 to 5)
 *   5: 1 size of addresses   1 of segment selectors
 *   4 (or 8) length of what is left of the header
 *   1 smallest instruction   4 and later: 1 operations in an instruction   1 is a row a statement
 *   1 line base, signed   1 line range   1 first special opcode, and a byte for each before it:
 *   how many numbers it takes
 *
 *   2 to 4: directories, each a text, from 1 on; an empty one ends them
 *           files, from 1 on: text   uleb directory, 0: the unit's   uleb time   uleb length; an
 *           empty text ends them
 *   5:      directories, from 0 on: 1 number of formats, each uleb content and uleb form; uleb
 *           number of entries; entries.  Files likewise.
 */
#include <errno.h>

#include "base/err.h"
#include "symbol/dwarf_line_int.h"

enum { CONTENT_PATH = 1, CONTENT_DIRECTORY = 2, CONTENT_SOURCE = 6, CONTENT_LLVM_SOURCE = 0x2001 };

enum {
    FORM_BLOCK2 = 0x03,
    FORM_BLOCK4 = 0x04,
    FORM_DATA2 = 0x05,
    FORM_DATA4 = 0x06,
    FORM_DATA8 = 0x07,
    FORM_STRING = 0x08,
    FORM_BLOCK = 0x09,
    FORM_BLOCK1 = 0x0a,
    FORM_DATA1 = 0x0b,
    FORM_FLAG = 0x0c,
    FORM_SDATA = 0x0d,
    FORM_STRP = 0x0e,
    FORM_UDATA = 0x0f,
    FORM_SEC_OFFSET = 0x17,
    FORM_STRX = 0x1a,
    FORM_STRP_SUP = 0x1d,
    FORM_DATA16 = 0x1e,
    FORM_LINE_STRP = 0x1f,
    FORM_STRX1 = 0x25,
    FORM_STRX2 = 0x26,
    FORM_STRX3 = 0x27,
    FORM_STRX4 = 0x28,
    FORM_GNU_STR_INDEX = 0x1f02,
    FORM_GNU_STRP_ALT = 0x1f21,
};

/* A value of whatever form: a text or a number, or neither. */
struct value {
    struct line_text text;
    uint64_t number;
};

struct format {
    uint64_t content, form;
};

static struct line_text text_at(enum line_place place, uint64_t at)
{
    if (at >> 56)
        return (struct line_text){0};
    return (struct line_text){.at = at & ((UINT64_C(1) << 56) - 1), .place = place & 0xff};
}

/* A text that is here, and what of it has to be kept. */
static struct line_text take_string(struct kiln_dwarf_lines *lines, struct kiln_cursor *c)
{
    const uint8_t *at = c->at;
    const uint8_t *nul = memchr(at, 0, (size_t)(c->end - at));

    if (!kiln_cursor_skip(c, nul ? (uint64_t)(nul - at) + 1 : UINT64_MAX))
        return (struct line_text){0};
    lines->has_inline = true;
    return text_at(LINE_TEXT_INLINE, (uint64_t)(at - lines->data));
}

static uint64_t take_offset(const struct kiln_dwarf_lines *lines, struct kiln_cursor *c)
{
    return lines->head.offset_size == 8 ? kiln_cursor_64(c) : kiln_cursor_32(c);
}

/* False: it is none of these. */
static bool take_text(struct kiln_dwarf_lines *lines, uint64_t form, struct kiln_cursor *c,
                      struct value *value)
{
    const uint8_t *three;

    switch (form) {
    case FORM_STRING:
        value->text = take_string(lines, c);
        return true;
    case FORM_LINE_STRP:
        value->text = text_at(LINE_TEXT_LINE_STR, take_offset(lines, c));
        return true;
    case FORM_STRP:
        value->text = text_at(LINE_TEXT_STR, take_offset(lines, c));
        return true;
    case FORM_STRP_SUP:
    case FORM_GNU_STRP_ALT:
        value->text = text_at(LINE_TEXT_ALTERNATE, take_offset(lines, c));
        return true;
    case FORM_STRX:
    case FORM_GNU_STR_INDEX:
        value->text = text_at(LINE_TEXT_INDEX, kiln_cursor_uleb(c));
        return true;
    case FORM_STRX1:
        value->text = text_at(LINE_TEXT_INDEX, kiln_cursor_8(c));
        return true;
    case FORM_STRX2:
        value->text = text_at(LINE_TEXT_INDEX, kiln_cursor_16(c));
        return true;
    case FORM_STRX3:
        three = kiln_cursor_skip(c, 3);
        value->text = text_at(LINE_TEXT_INDEX,
                              three ? kiln_get_16(three) | (uint64_t)three[2] << 16 : UINT64_MAX);
        return true;
    case FORM_STRX4:
        value->text = text_at(LINE_TEXT_INDEX, kiln_cursor_32(c));
        return true;
    default:
        return false;
    }
}

static bool take_number(struct kiln_cursor *c, uint64_t form, struct value *value)
{
    switch (form) {
    case FORM_DATA1:
    case FORM_FLAG:
        value->number = kiln_cursor_8(c);
        return true;
    case FORM_DATA2:
        value->number = kiln_cursor_16(c);
        return true;
    case FORM_DATA4:
        value->number = kiln_cursor_32(c);
        return true;
    case FORM_DATA8:
        value->number = kiln_cursor_64(c);
        return true;
    case FORM_UDATA:
        value->number = kiln_cursor_uleb(c);
        return true;
    case FORM_SDATA:
        value->number = (uint64_t)kiln_cursor_sleb(c);
        return true;
    default:
        return false;
    }
}

/* Every form takes a byte at least, so that entries are no more than bytes. */
static int take_value(struct kiln_dwarf_lines *lines, uint64_t form, struct kiln_cursor *c,
                      struct value *value)
{
    *value = (struct value){0};
    if (take_text(lines, form, c, value) || take_number(c, form, value))
        return 0;
    switch (form) {
    case FORM_DATA16:
        kiln_cursor_skip(c, 16);
        return 0;
    case FORM_SEC_OFFSET:
        take_offset(lines, c);
        return 0;
    case FORM_BLOCK:
        kiln_cursor_skip(c, kiln_cursor_uleb(c));
        return 0;
    case FORM_BLOCK1:
        kiln_cursor_skip(c, kiln_cursor_8(c));
        return 0;
    case FORM_BLOCK2:
        kiln_cursor_skip(c, kiln_cursor_16(c));
        return 0;
    case FORM_BLOCK4:
        kiln_cursor_skip(c, kiln_cursor_32(c));
        return 0;
    default:
        return KILN_E_UNSUPPORTED;
    }
}

static int add_directory(struct kiln_dwarf_lines *lines, struct line_text text)
{
    int r = kiln_grow(lines->budget, (void **)&lines->directories, &lines->cap_directories,
                      (uint64_t)lines->n_directories + 1, sizeof(text), LINE_FILES_MAX);

    if (r == 0)
        lines->directories[lines->n_directories++] = text;
    return r;
}

static int add_file(struct kiln_dwarf_lines *lines, struct line_file file)
{
    int r = kiln_grow(lines->budget, (void **)&lines->files, &lines->cap_files,
                      (uint64_t)lines->n_files + 1, sizeof(file), LINE_FILES_MAX);

    if (r == 0)
        lines->files[lines->n_files++] = file;
    return r;
}

static uint32_t directory_of(uint64_t number)
{
    return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

int line_file_read(struct kiln_dwarf_lines *lines, struct kiln_cursor *c)
{
    struct line_file file = {.name = take_string(lines, c)};

    file.directory = directory_of(kiln_cursor_uleb(c));
    kiln_cursor_uleb(c);
    kiln_cursor_uleb(c);
    return c->bad ? KILN_E_TRUNCATED : add_file(lines, file);
}

/* Directory 0 is the unit's own; there is no file 0. */
static int read_tables_2(struct kiln_dwarf_lines *lines, struct kiln_cursor *c)
{
    int r = add_directory(lines, (struct line_text){0});

    if (r == 0)
        r = add_file(lines, (struct line_file){0});
    while (r == 0 && c->at < c->end && *c->at)
        r = add_directory(lines, take_string(lines, c));
    kiln_cursor_skip(c, 1);
    while (r == 0 && c->at < c->end && *c->at)
        r = line_file_read(lines, c);
    kiln_cursor_skip(c, 1);
    return r;
}

static int read_entry(struct kiln_dwarf_lines *lines, const struct format *formats, unsigned n,
                      struct kiln_cursor *c, struct line_file *ret_entry)
{
    struct line_file entry = {0};
    struct value value;

    for (unsigned i = 0; i < n; i++) {
        int r = take_value(lines, formats[i].form, c, &value);

        if (r < 0)
            return r;
        if (formats[i].content == CONTENT_PATH)
            entry.name = value.text;
        else if (formats[i].content == CONTENT_DIRECTORY)
            entry.directory = directory_of(value.number);
        else if (formats[i].content == CONTENT_SOURCE || formats[i].content == CONTENT_LLVM_SOURCE)
            entry.source = value.text;
    }
    lines->has_sources |= entry.source.place != LINE_TEXT_NONE;
    *ret_entry = entry;
    return c->bad ? KILN_E_TRUNCATED : 0;
}

static int read_table_5(struct kiln_dwarf_lines *lines, struct kiln_cursor *c, bool is_files)
{
    struct format formats[255];
    unsigned n = kiln_cursor_8(c);
    struct line_file entry;
    uint64_t count;
    int r = 0;

    for (unsigned i = 0; i < n; i++) {
        formats[i].content = kiln_cursor_uleb(c);
        formats[i].form = kiln_cursor_uleb(c);
    }
    count = kiln_cursor_uleb(c);
    if (c->bad || (n == 0 && count > 0) || count > (uint64_t)(c->end - c->at))
        return KILN_E_MALFORMED;
    for (uint64_t i = 0; r == 0 && i < count; i++) {
        r = read_entry(lines, formats, n, c, &entry);
        if (r == 0)
            r = is_files ? add_file(lines, entry) : add_directory(lines, entry.name);
    }
    return r;
}

/* Up to the length of what is left, and this. */
static int read_front(struct kiln_dwarf_lines *lines, struct kiln_cursor *c)
{
    struct line_head *head = &lines->head;
    uint16_t version;
    uint64_t left;

    head->offset_size = kiln_cursor_32(c) == UINT32_MAX ? 8 : 4;
    if (head->offset_size == 8)
        kiln_cursor_skip(c, 8);
    version = kiln_cursor_16(c);
    if (c->bad || version < 2 || version > 5)
        return KILN_E_UNSUPPORTED;
    head->version = (uint8_t)version;
    head->address_size = head->version >= 5 ? kiln_cursor_8(c) : 8;
    if (head->version >= 5)
        kiln_cursor_8(c);
    left = take_offset(lines, c);
    if (c->bad || left > (uint64_t)(c->end - c->at))
        return KILN_E_MALFORMED;
    head->program = c->at + left;
    c->end = head->program;
    return 0;
}

int line_head_read(struct kiln_dwarf_lines *lines)
{
    struct kiln_cursor c = {lines->data, lines->data + lines->n_data, false};
    struct line_head *head = &lines->head;
    int r = read_front(lines, &c);

    if (r < 0)
        return r;
    head->min_instruction = kiln_cursor_8(&c);
    head->max_operations = head->version >= 4 ? kiln_cursor_8(&c) : 1;
    kiln_cursor_8(&c);
    head->line_base = (int8_t)kiln_cursor_8(&c);
    head->line_range = kiln_cursor_8(&c);
    head->opcode_base = kiln_cursor_8(&c);
    if (c.bad || head->line_range == 0 || head->opcode_base == 0)
        return KILN_E_MALFORMED;
    if (head->max_operations == 0)
        head->max_operations = 1;
    head->lengths = kiln_cursor_skip(&c, head->opcode_base - 1u);
    if (head->version < 5)
        return c.bad ? KILN_E_TRUNCATED : read_tables_2(lines, &c);
    r = read_table_5(lines, &c, false);
    return r < 0 ? r : read_table_5(lines, &c, true);
}
