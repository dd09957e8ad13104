/* SPDX-License-Identifier: Apache-2.0 */
/* Lists: each is a path, columns, and which member of a row a column shows. */
#include <math.h>

#include "cli/query.h"
#include "cli/remote.h"
#include "cli/report.h"

#define TARGET_MAX ((size_t)1 << 20)

enum show { TEXT, TIME, NUMBER, BYTES, SECONDS, AMOUNT, RATE, BYTE_RATE, N_TYPES };

struct shown {
    struct kiln_column column;
    enum show show;
    size_t offset;
};

#define COLUMN(title, align, cut, show, field)                                                     \
    {                                                                                              \
        {(title), (align), (cut)}, (show), offsetof(struct kiln_said_row, field)                   \
    }

static const struct shown value_columns[] = {
    COLUMN("value", KILN_LEFT, KILN_CUT_MIDDLE, TEXT, value),
    COLUMN("profiles", KILN_RIGHT, KILN_KEEP, NUMBER, profiles),
    COLUMN("first", KILN_LEFT, KILN_KEEP, TIME, first_ns),
    COLUMN("last", KILN_LEFT, KILN_KEEP, TIME, last_ns),
};

static const struct shown type_columns[] = {
    COLUMN("type", KILN_LEFT, KILN_CUT_MIDDLE, TEXT, id),
    COLUMN("profiles", KILN_RIGHT, KILN_KEEP, NUMBER, profiles),
    COLUMN("first", KILN_LEFT, KILN_KEEP, TIME, first_ns),
    COLUMN("last", KILN_LEFT, KILN_KEEP, TIME, last_ns),
};

static const struct shown service_columns[] = {
    COLUMN("service", KILN_LEFT, KILN_CUT_MIDDLE, TEXT, name),
    COLUMN("types", KILN_RIGHT, KILN_KEEP, N_TYPES, n_types),
    COLUMN("profiles", KILN_RIGHT, KILN_KEEP, NUMBER, profiles),
    COLUMN("a minute", KILN_RIGHT, KILN_KEEP, RATE, profiles_per_second),
    COLUMN("on disk", KILN_RIGHT, KILN_KEEP, BYTES, bytes),
    COLUMN("a day", KILN_RIGHT, KILN_KEEP, BYTE_RATE, bytes_per_second),
    COLUMN("oldest", KILN_LEFT, KILN_KEEP, TIME, oldest_ns),
    COLUMN("newest", KILN_LEFT, KILN_KEEP, TIME, newest_ns),
};

static const struct shown profile_columns[] = {
    COLUMN("time", KILN_LEFT, KILN_KEEP, TIME, time_ns),
    COLUMN("lasts", KILN_RIGHT, KILN_KEEP, SECONDS, duration_seconds),
    COLUMN("value", KILN_RIGHT, KILN_KEEP, AMOUNT, amount),
    COLUMN("samples", KILN_RIGHT, KILN_KEEP, NUMBER, samples),
    COLUMN("service", KILN_LEFT, KILN_KEEP, TEXT, service),
    COLUMN("id", KILN_LEFT, KILN_KEEP, TEXT, id),
    COLUMN("labels", KILN_LEFT, KILN_CUT_END, TEXT, labels),
};

static const struct shown span_columns[] = {
    COLUMN("first seen", KILN_LEFT, KILN_KEEP, TIME, first_ns),
    COLUMN("lasts", KILN_RIGHT, KILN_KEEP, SECONDS, duration_seconds),
    COLUMN("value", KILN_RIGHT, KILN_KEEP, AMOUNT, amount),
    COLUMN("samples", KILN_RIGHT, KILN_KEEP, NUMBER, samples),
    COLUMN("trace", KILN_LEFT, KILN_KEEP, TEXT, trace_id),
    COLUMN("span", KILN_LEFT, KILN_KEEP, TEXT, span_id),
    COLUMN("service", KILN_LEFT, KILN_CUT_MIDDLE, TEXT, service),
};

static const struct shown deployment_columns[] = {
    COLUMN("at", KILN_LEFT, KILN_KEEP, TIME, at_ns),
    COLUMN("until", KILN_LEFT, KILN_KEEP, TIME, until_ns),
    COLUMN("service", KILN_LEFT, KILN_KEEP, TEXT, service),
    COLUMN("version", KILN_LEFT, KILN_KEEP, TEXT, version),
    COLUMN("", KILN_LEFT, KILN_KEEP, TEXT, source),
    COLUMN("id", KILN_LEFT, KILN_KEEP, TEXT, id),
    COLUMN("name", KILN_LEFT, KILN_KEEP, TEXT, name),
    COLUMN("text", KILN_LEFT, KILN_CUT_END, TEXT, text),
};

static const struct {
    const char *path;
    const struct shown *columns;
    uint32_t n;
    const char *noun;
} lists[] = {
    [KILN_LIST_LABELS] = {"/api/v1/labels", NULL, 0, "labels"},
    [KILN_LIST_VALUES] = {"/api/v1/labels/", value_columns, KILN_ARRAY_LEN(value_columns),
                          "values"},
    [KILN_LIST_TYPES] = {"/api/v1/types", type_columns, KILN_ARRAY_LEN(type_columns), "types"},
    [KILN_LIST_SERVICES] = {"/api/v1/services", service_columns, KILN_ARRAY_LEN(service_columns),
                            "services"},
    [KILN_LIST_PROFILES] = {"/api/v1/profiles", profile_columns, KILN_ARRAY_LEN(profile_columns),
                            "profiles"},
    [KILN_LIST_SPANS] = {"/api/v1/spans", span_columns, KILN_ARRAY_LEN(span_columns), "spans"},
    [KILN_LIST_DEPLOYMENTS] = {"/api/v1/deployments", deployment_columns,
                               KILN_ARRAY_LEN(deployment_columns), "deployments"},
};

/* ---- asking ---- */

static void put_target(const struct kiln_cli *cli, enum kiln_query_list list,
                       struct kiln_buf *target)
{
    const struct kiln_args *args = &cli->args;

    kiln_buf_puts(target, lists[list].path);
    if (list == KILN_LIST_VALUES) {
        kiln_remote_put_text(target, kiln_str_of(args->query.values), false);
        kiln_buf_puts(target, "/values");
    }
    if (list == KILN_LIST_SERVICES)
        return;
    if (list == KILN_LIST_DEPLOYMENTS) {
        if (args->operands.n)
            kiln_remote_put_param(target, "service", args->operands.items[0]);
        kiln_remote_put_param(target, "from", args->query.from ? args->query.from : "0");
        kiln_remote_put_param(target, "until", args->query.until);
        return;
    }
    if (list == KILN_LIST_VALUES || list == KILN_LIST_PROFILES || list == KILN_LIST_SPANS)
        kiln_remote_put_number(target, "limit", args->limit);
    if (args->query.largest && (list == KILN_LIST_PROFILES || list == KILN_LIST_SPANS))
        kiln_remote_put_param(target, "order", "largest");
    kiln_query_put_choice(cli, target);
}

/* ---- showing ---- */

static void put_cell(struct kiln_buf *out, const struct shown *shown,
                     const struct kiln_said_row *row, const struct kiln_type *type)
{
    const char *at = (const char *)row + shown->offset;
    const struct kiln_str *text = (const struct kiln_str *)at;
    double number = shown->show > TIME && shown->show < N_TYPES ? *(const double *)at : 0;

    switch (shown->show) {
    case TEXT:
        kiln_cli_put_safe(out, *text);
        break;
    case TIME:
        kiln_query_put_time(out, *(const uint64_t *)at);
        break;
    case NUMBER:
        kiln_format_value(out, number, KILN_STR("count"));
        break;
    case BYTES:
        kiln_format_value(out, number, KILN_STR("bytes"));
        break;
    case SECONDS:
        kiln_format_value(out, number * 1e9, KILN_STR("nanoseconds"));
        break;
    case AMOUNT:
        kiln_report_value(out, number, type);
        break;
    case RATE:
        if (number * 60 >= 100)
            kiln_format_value(out, round(number * 60), KILN_STR("count"));
        else
            kiln_buf_printf(out, "%.3g", number * 60);
        break;
    case BYTE_RATE:
        kiln_format_value(out, number * 86400, KILN_STR("bytes"));
        break;
    case N_TYPES:
        kiln_buf_add_u64(out, *(const uint32_t *)at);
        break;
    }
}

/* Rows of a list may be of several types: each names its own. */
static struct kiln_type type_of(const struct kiln_said *said, const struct kiln_said_row *row)
{
    struct kiln_type type = said->type;
    struct kiln_str rest = row->type;

    if (!row->type.len)
        return type;
    (void)kiln_str_cut(&rest, ':');
    (void)kiln_str_cut(&rest, ':');
    type.unit = kiln_str_cut(&rest, ':');
    return type;
}

static void print_rows(struct kiln_cli *cli, enum kiln_query_list list,
                       const struct kiln_said *said)
{
    const struct kiln_said_row *rows = said->rows.items;
    struct kiln_column columns[KILN_COLUMNS_MAX];
    uint32_t n = lists[list].n;
    struct kiln_table table;

    for (uint32_t i = 0; i < n; i++)
        columns[i] = lists[list].columns[i].column;
    kiln_table_init(&table, columns, n);
    for (uint32_t i = 0; i < said->rows.n; i++) {
        struct kiln_type type = type_of(said, &rows[i]);

        for (uint32_t k = 0; k < n; k++)
            put_cell(kiln_table_cell(&table, KILN_STYLE_PLAIN), &lists[list].columns[k], &rows[i],
                     &type);
    }
    kiln_table_print(&table, &cli->term, 0, &cli->out);
    kiln_table_done(&table);
}

static void print(struct kiln_cli *cli, enum kiln_query_list list, const struct kiln_said *said)
{
    const struct kiln_str *names = said->strings.items;

    for (uint32_t i = 0; i < said->strings.n; i++) {
        kiln_cli_put_safe(&cli->out, names[i]);
        kiln_buf_putc(&cli->out, '\n');
    }
    if (said->rows.n)
        print_rows(cli, list, said);
    if (said->all > said->rows.n)
        kiln_buf_printf(&cli->out, "... %.0f more (-n 0 shows all)\n", said->all - said->rows.n);
    else if (said->truncated)
        kiln_buf_puts(&cli->out, "... there are more\n");
}

int kiln_query_list(struct kiln_cli *cli, enum kiln_query_list list)
{
    struct kiln_said said;
    struct kiln_buf target;
    int code;

    kiln_buf_init(&target, TARGET_MAX);
    put_target(cli, list, &target);
    code = kiln_query_get(cli, &target, false, &said);
    kiln_buf_done(&target);
    if (code == 0 && !cli->args.json) {
        kiln_query_say_notes(&said);
        if (!said.rows.n && !said.strings.n) /* which is an answer */
            kiln_cli_note(NULL, "there are no %s", lists[list].noun);
        print(cli, list, &said);
    }
    kiln_said_done(&said);
    return code;
}
