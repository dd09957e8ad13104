/* SPDX-License-Identifier: Apache-2.0 */
/* What a server has of debug files, what it lacks, and what it shall have no longer. */
#include <errno.h>

#include "cli/query.h"
#include "cli/remote.h"
#include "cli/report.h"
#include "cli/symbols.h"

#define TARGET_MAX ((size_t)1 << 16)

/* ---- what is there ---- */

static const struct kiln_column file_columns[] = {
    {"build id", KILN_LEFT, KILN_KEEP},  {"kind", KILN_LEFT, KILN_KEEP},
    {"size", KILN_RIGHT, KILN_KEEP},     {"has", KILN_LEFT, KILN_KEEP},
    {"uploaded", KILN_LEFT, KILN_KEEP},  {"used", KILN_LEFT, KILN_KEEP},
    {"file", KILN_LEFT, KILN_CUT_START},
};

static void put_file(struct kiln_table *table, const struct kiln_said_row *row)
{
    kiln_cli_put_safe(kiln_table_cell(table, KILN_STYLE_STRONG), row->build_id);
    kiln_cli_put_safe(kiln_table_cell(table, KILN_STYLE_PLAIN), row->kind);
    kiln_report_number(kiln_table_cell(table, KILN_STYLE_PLAIN), row->bytes, KILN_STR("bytes"));
    kiln_cli_put_safe(kiln_table_cell(table, KILN_STYLE_PLAIN), row->has);
    kiln_query_put_time(kiln_table_cell(table, KILN_STYLE_FAINT), row->at_ns);
    kiln_query_put_time(kiln_table_cell(table, KILN_STYLE_FAINT), row->last_ns);
    kiln_cli_put_safe(kiln_table_cell(table, KILN_STYLE_FAINT), row->name);
}

/* ---- what is not ---- */

static const struct kiln_column missing_columns[] = {
    {"samples", KILN_RIGHT, KILN_KEEP}, {"addresses", KILN_RIGHT, KILN_KEEP},
    {"newest", KILN_LEFT, KILN_KEEP},   {"build id", KILN_LEFT, KILN_KEEP},
    {"file", KILN_LEFT, KILN_KEEP},     {"why", KILN_LEFT, KILN_CUT_END},
};

static void put_missing(struct kiln_table *table, const struct kiln_said_row *row)
{
    kiln_report_number(kiln_table_cell(table, KILN_STYLE_PLAIN), row->samples, KILN_STR("count"));
    kiln_report_number(kiln_table_cell(table, KILN_STYLE_PLAIN), row->addresses, KILN_STR("count"));
    kiln_query_put_time(kiln_table_cell(table, KILN_STYLE_FAINT), row->newest_ns);
    kiln_cli_put_safe(kiln_table_cell(table, KILN_STYLE_STRONG), row->build_id);
    kiln_cli_put_safe(kiln_table_cell(table, KILN_STYLE_PLAIN), row->name);
    kiln_cli_put_safe(kiln_table_cell(table, KILN_STYLE_PLAIN), row->text);
}

/* ---- both ---- */

struct list {
    const struct kiln_column *columns;
    uint32_t n;
    void (*put)(struct kiln_table *table, const struct kiln_said_row *row);
    const char *none;
};

static void print_rows(struct kiln_cli *cli, const struct list *list, const struct kiln_said *said)
{
    const struct kiln_said_row *rows = said->rows.items;
    struct kiln_table table;

    if (said->rows.n == 0) {
        kiln_cli_note(NULL, "%s", list->none);
        return;
    }
    kiln_table_init(&table, list->columns, list->n);
    for (uint32_t i = 0; i < said->rows.n; i++)
        list->put(&table, &rows[i]);
    kiln_table_print(&table, &cli->term, 0, &cli->out);
    kiln_table_done(&table);
    if (said->all > said->rows.n)
        kiln_buf_printf(&cli->out, "... %.0f more (-n 0 shows all)\n", said->all - said->rows.n);
}

static int show(struct kiln_cli *cli, struct kiln_buf *target, const struct list *list)
{
    struct kiln_said said;
    int code = kiln_query_get(cli, target, false, &said);

    if (code == 0 && !cli->args.json)
        print_rows(cli, list, &said);
    kiln_said_done(&said);
    kiln_buf_done(target);
    return code;
}

int kiln_symbols_run_list(struct kiln_cli *cli)
{
    static const struct list list = {file_columns, KILN_ARRAY_LEN(file_columns), put_file,
                                     "there are no debug files (`kiln symbols upload` brings some, "
                                     "`kiln symbols missing` says which)"};
    struct kiln_buf target;

    kiln_buf_init(&target, TARGET_MAX);
    kiln_buf_puts(&target, "/api/v1/symbols");
    return show(cli, &target, &list);
}

int kiln_symbols_run_missing(struct kiln_cli *cli)
{
    static const struct list list = {missing_columns, KILN_ARRAY_LEN(missing_columns), put_missing,
                                     "nothing is missing: all that has a build id has its names"};
    struct kiln_buf target;

    kiln_buf_init(&target, TARGET_MAX);
    kiln_buf_puts(&target, "/api/v1/symbols?missing=1");
    kiln_remote_put_number(&target, "limit", cli->args.limit);
    return show(cli, &target, &list);
}

/* ---- deleting ---- */

static int delete_one(struct kiln_cli *cli, struct kiln_client *client, const char *build_id)
{
    struct kiln_call call = {.method = "DELETE"};
    struct kiln_answer answer;
    struct kiln_err err = {0};
    struct kiln_buf path;
    int r;

    kiln_answer_init(&answer);
    kiln_buf_init(&path, TARGET_MAX);
    kiln_buf_puts(&path, "/api/v1/symbols/");
    kiln_remote_put_text(&path, kiln_str_of(build_id), true);
    kiln_buf_putc(&path, '\0');
    call.path = path.ptr;
    r = path.error ? kiln_err_set(&err, path.error, NULL, "this is no build id")
                   : kiln_client_call(client, &call, &answer, &err);
    if (r == 0 && !kiln_remote_accepted(&answer))
        r = kiln_err_set(&err, answer.status == 404 ? -EINVAL : -EIO, NULL, "%s", answer.message);
    if (r == 0 && cli->args.json)
        kiln_buf_add_str(&cli->out, kiln_buf_str(&answer.body));
    kiln_buf_done(&path);
    kiln_answer_done(&answer);
    return r < 0 ? kiln_cli_fail(build_id, &err) : KILN_EXIT_WELL;
}

int kiln_symbols_run_delete(struct kiln_cli *cli)
{
    const struct kiln_list *operands = &cli->args.operands;
    struct kiln_client *client;
    struct kiln_err err = {0};
    int code = KILN_EXIT_WELL;

    if (kiln_remote_open(cli, 0, &client, &err) < 0)
        return kiln_cli_fail(NULL, &err);
    for (uint32_t i = 1; i < operands->n; i++) {
        int one = delete_one(cli, client, operands->items[i]);

        code = one > code ? one : code;
    }
    kiln_client_free(client);
    return code;
}
