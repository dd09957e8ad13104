/* SPDX-License-Identifier: Apache-2.0 */
/* The table of functions, and the share of one of them against a threshold. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/when.h"
#include "cli/query.h"
#include "cli/remote.h"
#include "cli/report.h"

#define TARGET_MAX ((size_t)1 << 20)

/* ---- what answers share ---- */

void kiln_query_say_notes(const struct kiln_said *said)
{
    const struct kiln_said_note *notes = said->notes.items;

    for (uint32_t i = 0; i < said->notes.n; i++) {
        if (!kiln_str_eq(notes[i].code, KILN_STR("nothing_found")) &&
            !kiln_str_eq(notes[i].code, KILN_STR("rows_cut")))
            kiln_cli_note(NULL, "%.*s", KILN_STR_ARG(notes[i].text));
    }
}

void kiln_query_head(struct kiln_cli *cli, const struct kiln_said *said)
{
    const struct kiln_view view = {
        .type = said->type,
        .total = (int64_t)said->total,
        .total_unfiltered = (int64_t)said->total,
        .count = said->basis.count,
        .n_profiles = (uint32_t)said->basis.profiles,
        .duration_ns = (uint64_t)(said->basis.rate_seconds * 1e9),
    };

    kiln_report_head(cli, &view, &cli->out);
}

void kiln_query_put_time(struct kiln_buf *out, uint64_t ns)
{
    if (ns)
        kiln_when_format(ns - ns % KILN_NS_PER_MS, out);
    else
        kiln_buf_putc(out, '.');
}

int kiln_query_nothing(const struct kiln_cli *cli, const struct kiln_said *said)
{
    bool narrowed = cli->args.query.functions.n || cli->args.query.with || cli->args.query.without;
    struct kiln_buf times;

    kiln_buf_init(&times, 128);
    kiln_query_put_time(&times, said->from_ns);
    kiln_buf_puts(&times, " to ");
    kiln_query_put_time(&times, said->until_ns);
    kiln_cli_note(NULL,
                  narrowed ? "no profiles with such functions are chosen, from %.*s"
                           : "no profiles are chosen, from %.*s (`kiln query --services` shows "
                             "what there is)",
                  KILN_STR_ARG(kiln_buf_str(&times)));
    kiln_buf_done(&times);
    return KILN_EXIT_INPUT;
}

void kiln_query_put_function(struct kiln_table *table, struct kiln_str name, struct kiln_str file,
                             struct kiln_str module)
{
    const struct kiln_frame frame = {.name = name, .file = file, .module = module};

    kiln_report_frame(table, &frame);
}

/* ---- the table ---- */

static const struct kiln_column columns[] = {
    {"self", KILN_RIGHT, KILN_KEEP},      {"self%", KILN_RIGHT, KILN_KEEP},
    {"±", KILN_RIGHT, KILN_KEEP},         {"total", KILN_RIGHT, KILN_KEEP},
    {"total%", KILN_RIGHT, KILN_KEEP},    {"±", KILN_RIGHT, KILN_KEEP},
    {"name", KILN_LEFT, KILN_CUT_MIDDLE}, {"file", KILN_LEFT, KILN_CUT_START},
};

/* The half-width of a share, in percent; nothing where it is not known. */
static void put_error(struct kiln_buf *out, double error)
{
    if (error > 0)
        kiln_buf_printf(out, error < 0.0005 ? "<0.1" : "%.1f", 100 * error);
}

static void add_row(struct kiln_table *table, const struct kiln_said *said,
                    const struct kiln_said_function *row)
{
    enum kiln_style hot = kiln_style_of_share(row->self_share);

    kiln_report_value(kiln_table_cell(table, hot), row->self, &said->type);
    kiln_report_share(kiln_table_cell(table, hot), row->self_share);
    put_error(kiln_table_cell(table, KILN_STYLE_FAINT), row->self_error);
    kiln_report_value(kiln_table_cell(table, KILN_STYLE_PLAIN), row->total, &said->type);
    kiln_report_share(kiln_table_cell(table, KILN_STYLE_PLAIN), row->total_share);
    put_error(kiln_table_cell(table, KILN_STYLE_FAINT), row->total_error);
    kiln_query_put_function(table, row->name, row->file, row->module);
}

static int by_total(const void *a, const void *b)
{
    const struct kiln_said_function *x = a, *y = b;

    if (x->total != y->total)
        return x->total < y->total ? 1 : -1;
    return kiln_str_cmp(x->name, y->name);
}

static void print(struct kiln_cli *cli, struct kiln_said *said)
{
    struct kiln_said_function *rows = said->top.items;
    uint32_t shown = said->top.n;
    struct kiln_table table;

    if (cli->args.sort == KILN_QUERY_BY_TOTAL && shown)
        qsort(rows, said->top.n, sizeof(*rows), by_total);
    if (cli->args.limit && cli->args.limit < shown)
        shown = cli->args.limit;
    kiln_query_head(cli, said);
    kiln_table_init(&table, columns, KILN_ARRAY_LEN(columns));
    for (uint32_t i = 0; i < shown; i++)
        add_row(&table, said, &rows[i]);
    kiln_table_print(&table, &cli->term, 0, &cli->out);
    kiln_table_done(&table);
    if (shown < said->functions)
        kiln_buf_printf(&cli->out, "... %.0f more (-n 0 shows all)\n", said->functions - shown);
}

/* Asks for the functions; 0 rows: all. */
static int get_top(struct kiln_cli *cli, uint32_t limit, struct kiln_said *said)
{
    struct kiln_buf target;
    int code;

    kiln_buf_init(&target, TARGET_MAX);
    kiln_buf_puts(&target, "/api/v1/query?format=top");
    kiln_remote_put_number(&target, "limit", limit);
    kiln_query_put_choice(cli, &target);
    code = kiln_query_get(cli, &target, false, said);
    kiln_buf_done(&target);
    return code;
}

int kiln_query_top(struct kiln_cli *cli)
{
    struct kiln_said said;
    int code = get_top(cli, cli->args.sort == KILN_QUERY_BY_TOTAL ? 0 : cli->args.limit, &said);

    if (code == 0 && !cli->args.json)
        kiln_query_say_notes(&said);
    if (code == 0 && said.basis.profiles <= 0)
        code = kiln_query_nothing(cli, &said);
    else if (code == 0 && !cli->args.json)
        print(cli, &said);
    kiln_said_done(&said);
    return code;
}

/* ---- one function against a threshold ---- */

static const struct kiln_said_function *find(const struct kiln_said *said, const char *name)
{
    const struct kiln_said_function *rows = said->top.items;

    for (uint32_t i = 0; i < said->top.n; i++) {
        if (kiln_str_eq(rows[i].name, kiln_str_of(name)))
            return &rows[i];
    }
    return NULL;
}

/* A name that has this one in it, for who left out the package; NULL: none has. */
static const struct kiln_said_function *find_near(const struct kiln_said *said, const char *name)
{
    const struct kiln_said_function *rows = said->top.items;

    for (uint32_t i = 0; i < said->top.n; i++) {
        if (kiln_str_contains(rows[i].name, kiln_str_of(name)))
            return &rows[i];
    }
    return NULL;
}

static void print_verdict(struct kiln_cli *cli, const char *name, double share, double error)
{
    double most = cli->args.query.fail_above / 100;
    struct kiln_json_out w;

    if (!cli->args.json) {
        kiln_cli_put_safe(&cli->out, kiln_str_of(name));
        kiln_buf_printf(&cli->out, ": %.2f%% ±%.2f%% of the %s, %s %g%%\n", 100 * share,
                        100 * error, cli->args.query.self ? "whole by itself" : "whole",
                        share > most ? "which is above" : "not above", cli->args.query.fail_above);
        return;
    }
    kiln_json_out_init(&w, &cli->out, 2);
    kiln_json_put_object(&w);
    kiln_json_put_name(&w, "function");
    kiln_json_put_str(&w, kiln_str_of(name));
    kiln_json_put_name(&w, "by");
    kiln_json_put_str(&w, cli->args.query.self ? KILN_STR("self") : KILN_STR("total"));
    kiln_json_put_name(&w, "share");
    kiln_json_put_double(&w, share);
    kiln_json_put_name(&w, "error");
    kiln_json_put_double(&w, error);
    kiln_json_put_name(&w, "fail_above");
    kiln_json_put_double(&w, most);
    kiln_json_put_name(&w, "failed");
    kiln_json_put_bool(&w, share > most);
    kiln_json_end_object(&w);
    kiln_buf_putc(&cli->out, '\n');
}

static int judge(struct kiln_cli *cli, const struct kiln_said *said, const char *name)
{
    const struct kiln_said_function *f = find(said, name), *near;
    bool self = cli->args.query.self;
    double share = !f ? 0 : self ? f->self_share : f->total_share;
    double error = !f ? 0 : self ? f->self_error : f->total_error;

    near = f ? NULL : find_near(said, name);
    if (near)
        kiln_cli_note(NULL, "%s did not run (did you mean %.*s?)", name, KILN_STR_ARG(near->name));
    else if (!f)
        kiln_cli_note(NULL, "%s did not run", name);
    print_verdict(cli, name, share, error);
    return share > cli->args.query.fail_above / 100 ? KILN_EXIT_FAILED : KILN_EXIT_WELL;
}

int kiln_query_function(struct kiln_cli *cli)
{
    const struct kiln_list *functions = &cli->args.query.functions;
    struct kiln_said said;
    int code = get_top(cli, 0, &said);

    if (code == 0)
        kiln_buf_clear(&cli->out); /* the whole table is not what was asked for */
    if (code == 0 && said.basis.profiles <= 0)
        code = kiln_query_nothing(cli, &said);
    for (uint32_t i = 0; i < functions->n && code <= KILN_EXIT_FAILED; i++) {
        int one = judge(cli, &said, functions->items[i]);

        code = one ? one : code;
    }
    kiln_said_done(&said);
    return code;
}
