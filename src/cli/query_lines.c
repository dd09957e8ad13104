/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of one function: what each spent, with its text and some around it where the server has
 * it. */
#include <math.h>

#include "cli/query.h"
#include "cli/remote.h"
#include "cli/report.h"

#define TARGET_MAX ((size_t)1 << 20)

enum { AROUND = 2 };

static const struct kiln_column columns[] = {
    {"self", KILN_RIGHT, KILN_KEEP},  {"self%", KILN_RIGHT, KILN_KEEP},
    {"total", KILN_RIGHT, KILN_KEEP}, {"total%", KILN_RIGHT, KILN_KEEP},
    {"line", KILN_RIGHT, KILN_KEEP},  {"", KILN_LEFT, KILN_CUT_END},
};

/* The text of a line; empty where there is none. */
static struct kiln_str text_of(const struct kiln_said *said, double line)
{
    const struct kiln_str *lines = said->text_lines.items;
    double at = line - said->text_first;

    return at >= 0 && at < said->text_lines.n ? lines[(uint32_t)at] : KILN_STR_NONE;
}

static void add_costs(struct kiln_table *table, const struct kiln_said *said,
                      const struct kiln_said_line *cost)
{
    double self = kiln_share(cost->self, said->all);
    enum kiln_style hot = kiln_style_of_share(self);

    kiln_report_value(kiln_table_cell(table, hot), cost->self, &said->type);
    kiln_report_share(kiln_table_cell(table, hot), self);
    kiln_report_value(kiln_table_cell(table, KILN_STYLE_PLAIN), cost->total, &said->type);
    kiln_report_share(kiln_table_cell(table, KILN_STYLE_PLAIN), kiln_share(cost->total, said->all));
}

static void add_line(struct kiln_table *table, const struct kiln_said *said, double line,
                     const struct kiln_said_line *cost)
{
    struct kiln_buf *cell;

    if (cost)
        add_costs(table, said, cost);
    for (int i = 0; !cost && i < 4; i++)
        kiln_table_add(table, KILN_STYLE_FAINT, KILN_STR_NONE);
    cell = kiln_table_cell(table, KILN_STYLE_FAINT);
    if (line > 0)
        kiln_buf_printf(cell, "%.0f", line);
    else
        kiln_buf_putc(cell, '?');
    kiln_report_source_line(kiln_table_cell(table, cost ? KILN_STYLE_PLAIN : KILN_STYLE_FAINT),
                            text_of(said, line));
}

/* The text from `line` to `end`, as far as it is near; the line behind it. */
static double add_text(struct kiln_table *table, const struct kiln_said *said, double line,
                       double end)
{
    for (uint32_t i = 0; i < AROUND && line < end; i++, line++) {
        if (text_of(said, line).ptr)
            add_line(table, said, line, NULL);
    }
    return line;
}

static void add_dots(struct kiln_table *table)
{
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(columns) - 1; i++)
        kiln_table_add(table, KILN_STYLE_FAINT, KILN_STR_NONE);
    kiln_table_add(table, KILN_STYLE_FAINT, KILN_STR("..."));
}

static void print_lines(struct kiln_cli *cli, const struct kiln_said *said)
{
    const struct kiln_said_line *lines = said->lines.items;
    struct kiln_table table;
    double next = 0; /* the first that is not shown yet */

    kiln_table_init(&table, columns, KILN_ARRAY_LEN(columns));
    for (uint32_t i = 0; i < said->lines.n; i++) {
        double line = lines[i].line, from = fmax(next, line - (double)AROUND);
        bool last = i + 1 == said->lines.n;

        if (next > 0 && from > next && text_of(said, next).ptr)
            add_dots(&table);
        if (line > 0)
            add_text(&table, said, from, line);
        add_line(&table, said, line, &lines[i]);
        if (line > 0)
            next = add_text(&table, said, line + 1, last ? INFINITY : lines[i + 1].line);
    }
    kiln_table_print(&table, &cli->term, 0, &cli->out);
    kiln_table_done(&table);
}

static void print(struct kiln_cli *cli, const struct kiln_said *said)
{
    const struct kiln_str *others = said->other_files.items;

    kiln_query_head(cli, said);
    kiln_cli_put_safe(&cli->out, said->file.len ? said->file : KILN_STR("(no file)"));
    kiln_buf_putc(&cli->out, '\n');
    print_lines(cli, said);
    for (uint32_t i = 0; i < said->other_files.n; i++)
        kiln_cli_note(NULL, "there is one of this name in %.*s too", KILN_STR_ARG(others[i]));
    if (said->text_problem.len)
        kiln_cli_note(NULL, "no text: %.*s", KILN_STR_ARG(said->text_problem));
}

int kiln_query_lines(struct kiln_cli *cli)
{
    struct kiln_said said;
    struct kiln_buf target;
    int code;

    cli->args.query.exact = false; /* it always is */
    kiln_buf_init(&target, TARGET_MAX);
    kiln_buf_puts(&target, "/api/v1/source");
    kiln_query_put_choice(cli, &target);
    code = kiln_query_get(cli, &target, false, &said);
    kiln_buf_done(&target);
    if (code == 0 && !cli->args.json)
        kiln_query_say_notes(&said);
    if (code == 0 && !said.lines.n)
        code = kiln_query_nothing(cli, &said);
    else if (code == 0 && !cli->args.json)
        print(cli, &said);
    kiln_said_done(&said);
    return code;
}
