/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/report.h"

static const struct kiln_column columns[] = {
    {"self", KILN_RIGHT, KILN_KEEP},      {"self%", KILN_RIGHT, KILN_KEEP},
    {"total", KILN_RIGHT, KILN_KEEP},     {"total%", KILN_RIGHT, KILN_KEEP},
    {"name", KILN_LEFT, KILN_CUT_MIDDLE}, {"file", KILN_LEFT, KILN_CUT_START},
};

static void add_row(struct kiln_table *table, const struct kiln_view *view,
                    const struct kiln_top_row *row)
{
    double whole = (double)view->total_unfiltered;
    double self = kiln_share((double)row->self, whole);
    double total = kiln_share((double)row->total, whole);
    enum kiln_style hot = kiln_style_of_share(self);

    kiln_report_value(kiln_table_cell(table, hot), (double)row->self, &view->type);
    kiln_report_share(kiln_table_cell(table, hot), self);
    kiln_report_value(kiln_table_cell(table, KILN_STYLE_PLAIN), (double)row->total, &view->type);
    kiln_report_share(kiln_table_cell(table, KILN_STYLE_PLAIN), total);
    kiln_report_frame(table, &view->frames[row->frame]);
}

static void print_text(struct kiln_cli *cli, const struct kiln_view *view,
                       const struct kiln_top_row *rows, uint32_t n)
{
    uint32_t shown = cli->args.limit && cli->args.limit < n ? cli->args.limit : n;
    struct kiln_table table;

    kiln_report_head(cli, view, &cli->out);
    if (n == 0)
        return;
    kiln_table_init(&table, columns, KILN_ARRAY_LEN(columns));
    for (uint32_t i = 0; i < shown; i++)
        add_row(&table, view, &rows[i]);
    kiln_table_print(&table, &cli->term, 0, &cli->out);
    kiln_table_done(&table);
    if (shown < n)
        kiln_buf_printf(&cli->out, "... %u more (-n 0 shows all)\n", n - shown);
}

static void print_json(struct kiln_cli *cli, const struct kiln_view *view,
                       const struct kiln_top_row *rows, uint32_t n)
{
    uint32_t shown = cli->args.limit && cli->args.limit < n ? cli->args.limit : n;
    struct kiln_json_out w;

    kiln_json_out_init(&w, &cli->out, 2);
    kiln_json_put_object(&w);
    kiln_json_put_view(&w, view);
    kiln_json_put_name(&w, "functions");
    kiln_json_put_u64(&w, n);
    kiln_json_put_name(&w, "rows");
    kiln_json_put_array(&w);
    for (uint32_t i = 0; i < shown; i++) {
        kiln_json_put_object(&w);
        kiln_json_put_frame(&w, &view->frames[rows[i].frame]);
        kiln_json_put_name(&w, "self");
        kiln_json_put_i64(&w, rows[i].self);
        kiln_json_put_name(&w, "total");
        kiln_json_put_i64(&w, rows[i].total);
        kiln_json_end_object(&w);
    }
    kiln_json_end_array(&w);
    kiln_json_end_object(&w);
    kiln_buf_putc(&cli->out, '\n');
}

static int run(struct kiln_cli *cli)
{
    struct kiln_view *view;
    struct kiln_top_row *rows;
    struct kiln_err err = {0};
    uint32_t n;
    int code = kiln_input_view_of(cli, 0, &view);
    int r;

    if (code)
        return code;
    r = kiln_top(view, (enum kiln_top_order)cli->args.sort, &rows, &n);
    if (r < 0) {
        kiln_view_free(view);
        kiln_err_set(&err, r, NULL, "%s", kiln_err_text(r));
        return kiln_cli_fail(NULL, &err);
    }
    if (cli->args.json)
        print_json(cli, view, rows, n);
    else
        print_text(cli, view, rows, n);
    kiln_free(rows);
    kiln_view_free(view);
    return KILN_EXIT_WELL;
}

static const char *const orders[] = {"self", "total", "name", NULL};

static const struct kiln_option options[] = {
    KILN_OPT_LIMIT("show at most N functions, 0 for all (30)"),
    KILN_OPT_OF("sort", sort, orders, "BY", "the order: self, total or name (self)"),
    KILN_OPT_WIDE,
    KILN_OPT_JSON,
    KILN_OPT_END,
};
static const struct kiln_option_group group = {"Table", options};

const struct kiln_command kiln_cmd_top = {
    .name = "top",
    .summary = "the functions that cost most",
    .operands = "FILE...",
    .operands_min = 1,
    .operands_max = KILN_OPERANDS_ANY,
    .about =
        "Lists functions with what each spent itself (self) and what it and everything it "
        "called spent (total), as values and as shares of the whole profile. Several files are "
        "added up.",
    .groups = {&group, &kiln_group_selection, &kiln_group_input},
    .examples = {{"kiln top examples/checkout.pb.gz", "where the CPU time goes"},
                 {"kiln top -n 5 --sort total --focus json examples/checkout.pb.gz",
                  "the five largest of what calls or is JSON code"},
                 {"kiln top -t alloc_space examples/checkout.pb.gz", "who allocates"},
                 {"kiln top --label endpoint=/checkout examples/checkout.pb.gz",
                  "only samples taken while this endpoint was served"}},
    .defaults = {.limit = 30},
    .run = run,
};
