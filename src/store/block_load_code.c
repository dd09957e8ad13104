/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sections of strings and code (block_code.c has their columns), into the reader's own tables.
 */
#include "core/bulk.h"
#include "store/block_reader.h"

static const struct kiln_dict *own_dict(const struct kiln_block_reader *r)
{
    return &kiln_builder_peek(r->own)->dict;
}

static int load_strings(struct kiln_block_reader *r, uint32_t n, struct kiln_err *err)
{
    struct kiln_str own = kiln_buf_str(&r->bytes[0]);
    struct kiln_buf *text = &r->bytes[1];
    size_t at = 0;

    if (!kiln_reader_fits(r, 2, n))
        return kiln_reader_damaged(err, "its columns do not fit together");
    kiln_buf_clear(text);
    for (uint32_t i = 0; i < n && !kiln_builder_error(r->own); i++) {
        uint64_t kept = r->columns[0].v[i], more = r->columns[1].v[i];

        if (kept > text->len || more > own.len - at || kept + more == 0)
            return kiln_reader_damaged(err, "a string is damaged");
        text->len = (size_t)kept;
        kiln_buf_add(text, own.ptr + at, (size_t)more);
        if (text->error)
            return text->error;
        at += (size_t)more;
        kiln_builder_new_string(r->own, kiln_buf_str(text));
    }
    if (!kiln_builder_error(r->own) && at != own.len)
        return kiln_reader_damaged(err, "there are bytes that belong to no string");
    return 0;
}

static int load_mappings(struct kiln_block_reader *r, uint32_t n, struct kiln_err *err)
{
    const struct kiln_column *c = r->columns;

    if (!kiln_reader_fits(r, 5, n))
        return kiln_reader_damaged(err, "its columns do not fit together");
    for (uint32_t i = 0; i < n; i++) {
        struct kiln_mapping mapping = {0};
        uint32_t number = own_dict(r)->n_mappings;

        if (c[0].v[i] >= own_dict(r)->n_strings || c[1].v[i] >= own_dict(r)->n_sets)
            return kiln_reader_damaged(err, "a mapping is damaged");
        mapping.filename = (uint32_t)c[0].v[i];
        mapping.attrs = (uint32_t)c[1].v[i];
        mapping.start = r->last = kiln_zigzag_add(r->last, c[2].v[i]);
        mapping.limit = kiln_zigzag_add(mapping.start, c[3].v[i]);
        mapping.offset = c[4].v[i];
        if (kiln_builder_mapping(r->own, &mapping) != number)
            return kiln_reader_twice(r, err, "a mapping is there twice");
    }
    return 0;
}

static int load_functions(struct kiln_block_reader *r, uint32_t n, struct kiln_err *err)
{
    const struct kiln_column *c = r->columns;
    uint64_t n_strings = own_dict(r)->n_strings;

    if (!kiln_reader_fits(r, 4, n))
        return kiln_reader_damaged(err, "its columns do not fit together");
    for (uint32_t i = 0; i < n; i++) {
        uint64_t name = r->last + c[0].v[i];
        uint64_t system_name = kiln_zigzag_add(name, c[1].v[i]);

        if (c[0].v[i] >= n_strings || name >= n_strings || system_name >= n_strings ||
            c[2].v[i] >= n_strings)
            return kiln_reader_damaged(err, "a function is damaged");
        r->last = name;
        kiln_builder_new_function(r->own,
                                  &(struct kiln_function){.name = (uint32_t)name,
                                                          .system_name = (uint32_t)system_name,
                                                          .filename = (uint32_t)c[2].v[i],
                                                          .start_line = kiln_unzigzag(c[3].v[i])});
    }
    return 0;
}

/* The lines of a location, from `first` on; false if one is damaged. */
static bool get_lines(struct kiln_block_reader *r, uint32_t first, uint32_t n,
                      struct kiln_line *lines)
{
    const struct kiln_column *c = r->columns;

    for (uint32_t i = 0; i < n; i++) {
        uint64_t function = kiln_zigzag_add(r->before[1], c[4].v[first + i]);

        if (function >= own_dict(r)->n_functions)
            return false;
        r->before[1] = (uint32_t)function;
        lines[i] = (struct kiln_line){.function = (uint32_t)function,
                                      .line = kiln_unzigzag(c[5].v[first + i]),
                                      .column = kiln_unzigzag(c[6].v[first + i])};
    }
    return true;
}

static int load_location(struct kiln_block_reader *r, uint32_t i, uint32_t first_line,
                         struct kiln_err *err)
{
    const struct kiln_column *c = r->columns;
    uint64_t mapping = kiln_zigzag_add(r->before[0], c[0].v[i]);
    uint32_t n = (uint32_t)c[3].v[i];
    int result = READER_ROOM(r, r->lines, r->cap_lines, n);

    if (result < 0)
        return result;
    r->last = kiln_zigzag_add(r->last, c[1].v[i]);
    if ((mapping >= own_dict(r)->n_mappings && !r->opts.lost) || mapping > UINT32_MAX ||
        c[2].v[i] >= own_dict(r)->n_sets)
        return kiln_reader_damaged(err, "a location is damaged");
    if (!get_lines(r, first_line, n, r->lines))
        return kiln_reader_damaged(err, "a line of a location is damaged");
    r->before[0] = (uint32_t)mapping;
    if (mapping >= own_dict(r)->n_mappings) { /* it is on a damaged page */
        result = kiln_reader_mark(r, KILN_SECTION_LOCATIONS, own_dict(r)->n_locations);
        mapping = 0;
    }
    if (result < 0)
        return result;
    kiln_builder_new_location(r->own, r->last, (uint32_t)mapping, (uint32_t)c[2].v[i], r->lines, n);
    return kiln_builder_error(r->own);
}

static int load_locations(struct kiln_block_reader *r, uint32_t n, struct kiln_err *err)
{
    const struct kiln_column *c = r->columns;
    uint32_t line = 0;
    int result = 0;

    if (!kiln_reader_fits(r, 4, n) || c[5].n != c[4].n || c[6].n != c[4].n)
        return kiln_reader_damaged(err, "its columns do not fit together");
    for (uint32_t i = 0; result == 0 && i < n; i++) {
        if (c[3].v[i] > c[4].n - line)
            return kiln_reader_damaged(err, "its columns do not fit together");
        result = load_location(r, i, line, err);
        line += (uint32_t)c[3].v[i];
    }
    if (result == 0 && line != c[4].n)
        return kiln_reader_damaged(err, "its columns do not fit together");
    return result;
}

int kiln_reader_load_strings(struct kiln_block_reader *r, struct kiln_err *err)
{
    return kiln_reader_section(r, kiln_footer_section(&r->block->footer, KILN_SECTION_STRINGS),
                               load_strings, err);
}

int kiln_reader_load_code(struct kiln_block_reader *r, struct kiln_err *err)
{
    const struct kiln_footer *f = &r->block->footer;
    int result =
        kiln_reader_section(r, kiln_footer_section(f, KILN_SECTION_MAPPINGS), load_mappings, err);

    if (result == 0)
        result = kiln_reader_section(r, kiln_footer_section(f, KILN_SECTION_FUNCTIONS),
                                     load_functions, err);
    if (result == 0)
        result = kiln_reader_section(r, kiln_footer_section(f, KILN_SECTION_LOCATIONS),
                                     load_locations, err);
    return result;
}
