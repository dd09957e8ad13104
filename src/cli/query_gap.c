/* SPDX-License-Identifier: Apache-2.0 */
/* What functions spend off processors, and on what: the table of `kiln query --gap`. */
#include "cli/query.h"
#include "cli/remote.h"
#include "cli/report.h"

#define TARGET_MAX ((size_t)1 << 20)

static const struct kiln_column columns[] = {
    {"off CPU", KILN_RIGHT, KILN_KEEP},   {"%", KILN_RIGHT, KILN_KEEP},
    {"CPU", KILN_RIGHT, KILN_KEEP},       {"runnable", KILN_RIGHT, KILN_KEEP},
    {"blocked", KILN_RIGHT, KILN_KEEP},   {"mostly", KILN_LEFT, KILN_KEEP},
    {"name", KILN_LEFT, KILN_CUT_MIDDLE}, {"file", KILN_LEFT, KILN_CUT_START},
};

static double share_of(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

/* The reason that most of the time is spent blocked on; NULL: none is. */
static const struct kiln_said_reason *
main_reason(const struct kiln_said *said, const struct kiln_said_gap *row, double *ret_value)
{
    const struct kiln_said_reason *reasons = said->reasons.items, *found = NULL;
    const double *values = row->reasons.items;

    *ret_value = 0;
    for (uint32_t i = 0; i < row->reasons.n && i < said->reasons.n; i++) {
        if (values[i] > *ret_value) {
            *ret_value = values[i];
            found = &reasons[i];
        }
    }
    return found;
}

static void put_reason(struct kiln_buf *out, struct kiln_str reason)
{
    if (reason.len)
        kiln_cli_put_safe(out, reason);
    else
        kiln_buf_puts(out, "not said");
}

static void add_row(struct kiln_table *table, const struct kiln_said *said,
                    const struct kiln_said_gap *row, bool by_self)
{
    const struct kiln_said_amounts *a = by_self ? &row->self : &row->total;
    double share = share_of(a->gap, said->overall.gap), most;
    const struct kiln_said_reason *reason = main_reason(said, row, &most);
    enum kiln_style hot = kiln_style_of_share(share);
    struct kiln_buf *cell;

    kiln_report_value(kiln_table_cell(table, hot), a->gap, &said->type);
    kiln_report_share(kiln_table_cell(table, hot), share);
    kiln_report_value(kiln_table_cell(table, KILN_STYLE_PLAIN), a->cpu, &said->type);
    kiln_report_value(kiln_table_cell(table, KILN_STYLE_PLAIN), a->runnable, &said->type);
    kiln_report_value(kiln_table_cell(table, KILN_STYLE_PLAIN), a->blocked, &said->type);
    cell = kiln_table_cell(table, KILN_STYLE_PLAIN);
    if (reason && most >= row->total.runnable)
        put_reason(cell, reason->reason);
    else if (row->total.runnable > 0)
        kiln_buf_puts(cell, "runnable");
    kiln_query_put_function(table, row->name, row->file, row->module);
}

/* "off CPU 4.85s: blocked 4.8s (socket 4s, futex 800ms), runnable 50ms" */
static void put_overall(struct kiln_cli *cli, const struct kiln_said *said)
{
    const struct kiln_said_reason *reasons = said->reasons.items;
    const struct kiln_said_amounts *all = &said->overall;
    struct kiln_buf *out = &cli->out;

    kiln_buf_puts(out, "on CPU ");
    kiln_report_value(out, all->cpu, &said->type);
    kiln_buf_puts(out, ", blocked ");
    kiln_report_value(out, all->blocked, &said->type);
    for (uint32_t i = 0; i < said->reasons.n; i++) {
        kiln_buf_puts(out, i ? ", " : " (");
        put_reason(out, reasons[i].reason);
        kiln_buf_putc(out, ' ');
        kiln_report_value(out, reasons[i].value, &said->type);
    }
    kiln_buf_puts(out, said->reasons.n ? "), runnable " : ", runnable ");
    kiln_report_value(out, all->runnable, &said->type);
    kiln_buf_puts(out, "\n\n");
}

static void print(struct kiln_cli *cli, struct kiln_said *said)
{
    const struct kiln_said_gap *rows = said->gaps.items;
    struct kiln_table table;

    said->total = said->overall.wall;
    kiln_query_head(cli, said);
    put_overall(cli, said);
    kiln_table_init(&table, columns, KILN_ARRAY_LEN(columns));
    for (uint32_t i = 0; i < said->gaps.n; i++)
        add_row(&table, said, &rows[i], cli->args.sort == KILN_QUERY_BY_SELF);
    kiln_table_print(&table, &cli->term, 0, &cli->out);
    kiln_table_done(&table);
    if (said->gaps.n < said->functions)
        kiln_buf_printf(&cli->out, "... %.0f more (-n 0 shows all)\n",
                        said->functions - said->gaps.n);
}

int kiln_query_gap(struct kiln_cli *cli)
{
    struct kiln_said said;
    struct kiln_buf target;
    int code;

    kiln_buf_init(&target, TARGET_MAX);
    kiln_buf_puts(&target, "/api/v1/gap?sort=");
    kiln_buf_puts(&target, cli->args.sort == KILN_QUERY_BY_SELF ? "self" : "total");
    kiln_remote_put_number(&target, "limit", cli->args.limit);
    kiln_query_put_choice(cli, &target);
    code = kiln_query_get(cli, &target, false, &said);
    kiln_buf_done(&target);
    if (code == 0 && !cli->args.json)
        kiln_query_say_notes(&said);
    if (code == 0 && said.basis.profiles <= 0)
        code = kiln_query_nothing(cli, &said);
    else if (code == 0 && !cli->args.json)
        print(cli, &said);
    kiln_said_done(&said);
    return code;
}
