/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cli/table.h"

#define TEXT_BYTES_MAX   ((size_t)1 << 30)
#define CELLS_MAX        (1u << 28)
#define SHRUNK_WIDTH_MIN 18u
#define PADDED_WIDTH_MAX 80u /* off a terminal: longer texts stand whole, and out of line */

void kiln_table_init(struct kiln_table *table, const struct kiln_column *columns, uint32_t n)
{
    assert(n <= KILN_COLUMNS_MAX);
    *table = (struct kiln_table){.columns = columns, .n_columns = n};
    table->budget.limit = TEXT_BYTES_MAX;
    kiln_buf_init(&table->text, TEXT_BYTES_MAX);
}

void kiln_table_done(struct kiln_table *table)
{
    kiln_array_free(&table->budget, (void **)&table->cells, &table->cap, sizeof(*table->cells));
    kiln_buf_done(&table->text);
}

/* The length of a cell is known when the next one starts. */
static void close_cell(struct kiln_table *table)
{
    struct kiln_cell *last = table->n_cells ? &table->cells[table->n_cells - 1] : NULL;

    if (last)
        last->len = (uint32_t)(table->text.len - last->at);
}

struct kiln_buf *kiln_table_cell(struct kiln_table *table, enum kiln_style style)
{
    int r = kiln_grow(&table->budget, (void **)&table->cells, &table->cap,
                      (uint64_t)table->n_cells + 1, sizeof(*table->cells), CELLS_MAX);

    close_cell(table);
    if (r < 0)
        table->error = r;
    else
        table->cells[table->n_cells++] = (struct kiln_cell){.at = table->text.len, .style = style};
    return &table->text;
}

void kiln_table_add(struct kiln_table *table, enum kiln_style style, struct kiln_str text)
{
    kiln_buf_add_str(kiln_table_cell(table, style), text);
}

static struct kiln_str cell_text(const struct kiln_table *table, const struct kiln_cell *cell)
{
    return (struct kiln_str){table->text.ptr + cell->at, cell->len};
}

/* A column without a text in any row has no width, and is left out. */
static void measure(const struct kiln_table *table, uint32_t *widths)
{
    memset(widths, 0, table->n_columns * sizeof(*widths));
    for (uint32_t i = 0; i < table->n_cells; i++) {
        uint32_t wide = kiln_term_columns(cell_text(table, &table->cells[i]));
        uint32_t *width = &widths[i % table->n_columns];

        *width = wide > *width ? wide : *width;
    }
    for (uint32_t c = 0; c < table->n_columns; c++) {
        uint32_t wide = kiln_term_columns(kiln_str_of(table->columns[c].title));

        if (widths[c] && wide > widths[c])
            widths[c] = wide;
    }
}

/* Takes up to `over` columns from those that are cut this way; returns what is left to take. */
static uint32_t shrink(const struct kiln_table *table, uint32_t *widths, enum kiln_cut cut,
                       uint32_t over)
{
    for (uint32_t c = 0; c < table->n_columns; c++) {
        uint32_t spare = widths[c] > SHRUNK_WIDTH_MIN ? widths[c] - SHRUNK_WIDTH_MIN : 0;
        uint32_t taken = over < spare ? over : spare;

        if (table->columns[c].cut != cut)
            continue;
        widths[c] -= taken;
        over -= taken;
    }
    return over;
}

/* Two spaces stand between columns. */
static void fit(const struct kiln_table *table, uint32_t *widths, uint32_t line_max)
{
    uint32_t line = 0;

    for (uint32_t c = 0; c < table->n_columns; c++)
        line += widths[c] ? widths[c] + (line ? 2 : 0) : 0;
    line = line > line_max ? line - line_max : 0;
    for (enum kiln_cut cut = KILN_CUT_START; cut <= KILN_CUT_END; cut++)
        line = shrink(table, widths, cut, line);
}

/* One name of a thousand characters must not push all other lines that far. */
static void pad_less(const struct kiln_table *table, uint32_t *widths)
{
    for (uint32_t c = 0; c < table->n_columns; c++)
        if (table->columns[c].align == KILN_LEFT && widths[c] > PADDED_WIDTH_MAX)
            widths[c] = PADDED_WIDTH_MAX;
}

static void spaces(struct kiln_buf *out, uint32_t n)
{
    while (n--)
        kiln_buf_putc(out, ' ');
}

struct place {
    uint32_t column;
    uint32_t width;
    bool last; /* of its line: no spaces after it */
};

/* What of a text fits in `width` columns, with "…" for the rest.  Returns the columns it took. */
static uint32_t put_part(struct kiln_buf *out, struct kiln_str text, enum kiln_cut cut,
                         uint32_t width)
{
    uint32_t tail_width = cut == KILN_CUT_START    ? width - 1
                          : cut == KILN_CUT_MIDDLE ? width / 2
                                                   : 0;
    struct kiln_str head = kiln_term_cut(text, width - 1 - tail_width);
    struct kiln_str tail = kiln_term_tail(text, tail_width);

    kiln_buf_add_str(out, head);
    kiln_buf_puts(out, "…");
    kiln_buf_add_str(out, tail);
    return kiln_term_columns(head) + 1 + kiln_term_columns(tail);
}

static void put_cell(const struct kiln_table *table, const struct kiln_term *term,
                     struct place place, enum kiln_style style, struct kiln_str text,
                     struct kiln_buf *out)
{
    const struct kiln_column *column = &table->columns[place.column];
    uint32_t wide = kiln_term_columns(text);
    struct kiln_buf part;

    kiln_buf_init(&part, text.len + 8);
    if (wide > place.width && term->width) {
        wide = put_part(&part, text, column->cut, place.width);
        text = kiln_buf_str(&part);
    }
    if (column->align == KILN_RIGHT)
        spaces(out, place.width - wide);
    kiln_term_put(term, out, style, text);
    if (column->align == KILN_LEFT && !place.last && wide < place.width)
        spaces(out, place.width - wide);
    kiln_buf_done(&part);
}

static void trim_line(struct kiln_buf *out)
{
    while (out->len && out->ptr[out->len - 1] == ' ')
        out->len--;
    kiln_buf_putc(out, '\n');
}

static void put_titles(const struct kiln_table *table, const struct kiln_term *term,
                       const uint32_t *widths, struct kiln_buf *out)
{
    for (uint32_t c = 0; c < table->n_columns; c++) {
        if (!widths[c])
            continue;
        put_cell(table, term, (struct place){c, widths[c], c + 1 == table->n_columns},
                 KILN_STYLE_FAINT, kiln_str_of(table->columns[c].title), out);
        spaces(out, 2);
    }
    trim_line(out);
}

static void put_row(const struct kiln_table *table, const struct kiln_term *term,
                    const uint32_t *widths, const struct kiln_cell *cells, struct kiln_buf *out)
{
    for (uint32_t c = 0; c < table->n_columns; c++) {
        if (!widths[c])
            continue;
        put_cell(table, term, (struct place){c, widths[c], c + 1 == table->n_columns},
                 (enum kiln_style)cells[c].style, cell_text(table, &cells[c]), out);
        spaces(out, 2);
    }
    trim_line(out);
}

void kiln_table_print(struct kiln_table *table, const struct kiln_term *term, uint32_t indent,
                      struct kiln_buf *out)
{
    uint32_t widths[KILN_COLUMNS_MAX];

    close_cell(table);
    measure(table, widths);
    if (term->width > indent)
        fit(table, widths, term->width - indent);
    else if (!term->width)
        pad_less(table, widths);
    spaces(out, indent);
    put_titles(table, term, widths, out);
    for (uint32_t i = 0; i + table->n_columns <= table->n_cells; i += table->n_columns) {
        spaces(out, indent);
        put_row(table, term, widths, table->cells + i, out);
    }
    if (!out->error)
        out->error = table->error ? table->error : table->text.error;
}
