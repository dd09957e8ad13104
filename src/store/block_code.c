/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sections of strings and code, in sorted order; entry n is number n + 1.
 *
 *   strings    bytes shared with the string before (0 for the first of a page), bytes of its own |
 *              (bytes) those
 *   mappings   file name, attributes, start (zigzag difference to the mapping before), limit
 *              (zigzag difference to the start), offset
 *   functions  name (difference to the function before), system name (zigzag difference to the
 *              name), file name, start line (zigzag)
 *   locations  mapping (zigzag difference to the location before), address (likewise), attributes,
 *              lines | of all lines: function (zigzag difference to the line before), line
 * (zigzag), column (zigzag)
 */
#include "store/block_writer.h"

static uint32_t shared(struct kiln_str a, struct kiln_str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    size_t i = 0;

    while (i < n && a.ptr[i] == b.ptr[i])
        i++;
    return (uint32_t)i;
}

static void put_strings(struct kiln_block_writer *w)
{
    struct kiln_str last = KILN_STR("");

    kiln_writer_section(w, KILN_SECTION_STRINGS, 0);
    for (uint32_t i = 0; i < w->strings.n && !w->error; i++) {
        struct kiln_str s = w->dict->dict.strings[w->strings.order[i]];
        uint32_t n = w->n_entries ? shared(last, s) : 0;

        kiln_writer_put(w, 0, n);
        kiln_writer_put(w, 1, s.len - n);
        kiln_buf_add(&w->bytes[0], s.ptr + n, s.len - n);
        last = s;
        kiln_writer_entry(w);
    }
    kiln_writer_flush(w);
}

static void put_mappings(struct kiln_block_writer *w)
{
    uint64_t last = 0;

    kiln_writer_section(w, KILN_SECTION_MAPPINGS, 0);
    for (uint32_t i = 0; i < w->mappings.n && !w->error; i++) {
        const struct kiln_mapping *m = &w->dict->dict.mappings[w->mappings.order[i]];

        kiln_writer_put(w, 0, w->strings.of[m->filename]);
        kiln_writer_put(w, 1, w->sets.of[m->attrs]);
        kiln_writer_put(w, 2, kiln_zigzag_diff(m->start, last));
        kiln_writer_put(w, 3, kiln_zigzag_diff(m->limit, m->start));
        kiln_writer_put(w, 4, m->offset);
        last = m->start;
        kiln_writer_entry(w);
    }
    kiln_writer_flush(w);
}

static void put_functions(struct kiln_block_writer *w)
{
    const uint32_t *strings = w->strings.of;
    uint32_t last = 0;

    kiln_writer_section(w, KILN_SECTION_FUNCTIONS, 0);
    for (uint32_t i = 0; i < w->functions.n && !w->error; i++) {
        const struct kiln_function *f = &w->dict->dict.functions[w->functions.order[i]];

        kiln_writer_put(w, 0, strings[f->name] - last);
        kiln_writer_put(w, 1, kiln_zigzag_diff(strings[f->system_name], strings[f->name]));
        kiln_writer_put(w, 2, strings[f->filename]);
        kiln_writer_put(w, 3, kiln_zigzag(f->start_line));
        last = strings[f->name];
        kiln_writer_entry(w);
    }
    kiln_writer_flush(w);
}

static void put_lines(struct kiln_block_writer *w, const struct kiln_location *l, uint32_t *last)
{
    for (uint32_t i = 0; i < l->n; i++) {
        const struct kiln_line *line = &w->dict->dict.lines[l->first + i];
        uint32_t function = w->functions.of[line->function];

        kiln_writer_put(w, 4, kiln_zigzag_diff(function, *last));
        kiln_writer_put(w, 5, kiln_zigzag(line->line));
        kiln_writer_put(w, 6, kiln_zigzag(line->column));
        *last = function;
    }
}

static void put_locations(struct kiln_block_writer *w)
{
    uint32_t mapping = 0, function = 0;
    uint64_t address = 0;

    kiln_writer_section(w, KILN_SECTION_LOCATIONS, 0);
    for (uint32_t i = 0; i < w->locations.n && !w->error; i++) {
        const struct kiln_location *l = &w->dict->dict.locations[w->locations.order[i]];

        kiln_writer_put(w, 0, kiln_zigzag_diff(w->mappings.of[l->mapping], mapping));
        kiln_writer_put(w, 1, kiln_zigzag_diff(l->address, address));
        kiln_writer_put(w, 2, w->sets.of[l->attrs]);
        kiln_writer_put(w, 3, l->n);
        put_lines(w, l, &function);
        mapping = w->mappings.of[l->mapping];
        address = l->address;
        kiln_writer_entry(w);
    }
    kiln_writer_flush(w);
}

void kiln_writer_put_code(struct kiln_block_writer *w)
{
    if (w->error)
        return;
    put_strings(w);
    put_mappings(w);
    put_functions(w);
    put_locations(w);
}
