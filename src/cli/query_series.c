/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values over time, a line each: the sum, the rate where there is one, least and most of a bucket,
 * and a sparkline in which each character is one bucket, or the mean of several.
 */
#include <math.h>

#include "base/mem.h"
#include "cli/query.h"
#include "cli/remote.h"
#include "cli/report.h"

#define TARGET_MAX ((size_t)1 << 20)

enum { SPARKS_MAX = 60, SPARKS_MIN = 10 };

static const char *const sparks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

static const struct kiln_column columns[] = {
    {"series", KILN_LEFT, KILN_CUT_MIDDLE}, {"sum", KILN_RIGHT, KILN_KEEP},
    {"rate", KILN_RIGHT, KILN_KEEP},        {"least", KILN_RIGHT, KILN_KEEP},
    {"most", KILN_RIGHT, KILN_KEEP},        {"over time", KILN_LEFT, KILN_KEEP},
};

struct spread {
    double least, most; /* of buckets that have something */
};

static struct spread spread_of(const struct kiln_said_series *series)
{
    const double *values = series->value.items;
    struct spread s = {0, 0};

    for (uint32_t i = 0; i < series->value.n; i++) {
        s.least = i == 0 || values[i] < s.least ? values[i] : s.least;
        s.most = i == 0 || values[i] > s.most ? values[i] : s.most;
    }
    return s;
}

/* Adds the buckets up into `n` columns; a column without any stays negative. */
static void gather(const struct kiln_said *said, const struct kiln_said_series *series,
                   double *sums, uint32_t n)
{
    const double *buckets = series->bucket.items, *values = series->value.items;

    for (uint32_t i = 0; i < n; i++)
        sums[i] = -1;
    for (uint32_t i = 0; i < series->value.n && i < series->bucket.n; i++) {
        double at = floor(buckets[i] * n / said->buckets);

        if (!(at >= 0 && at < n))
            continue;
        sums[(uint32_t)at] = fmax(sums[(uint32_t)at], 0) + fmax(values[i], 0);
    }
}

static void put_sparks(struct kiln_buf *out, const struct kiln_said *said,
                       const struct kiln_said_series *series)
{
    uint32_t n = said->buckets < (double)SPARKS_MAX ? (uint32_t)said->buckets : SPARKS_MAX;
    const uint32_t n_sparks = KILN_ARRAY_LEN(sparks);
    double sums[SPARKS_MAX], most = 0;

    gather(said, series, sums, n);
    for (uint32_t i = 0; i < n; i++)
        most = fmax(most, sums[i]);
    for (uint32_t i = 0; i < n; i++) {
        double level = most > 0 ? sums[i] / most * n_sparks : 0;
        uint32_t step = level < 1 ? 0 : (uint32_t)ceil(level) - 1;

        if (sums[i] < 0)
            kiln_buf_putc(out, ' ');
        else
            kiln_buf_puts(out, sparks[step < n_sparks ? step : n_sparks - 1]);
    }
}

static void add_row(struct kiln_table *table, const struct kiln_said *said,
                    const struct kiln_said_series *series)
{
    struct spread spread = spread_of(series);
    uint64_t rate_ns = (uint64_t)(said->basis.rate_seconds * 1e9);

    kiln_cli_put_safe(kiln_table_cell(table, KILN_STYLE_PLAIN),
                      series->labels.len ? series->labels : KILN_STR("all"));
    kiln_report_value(kiln_table_cell(table, KILN_STYLE_PLAIN), series->sum, &said->type);
    kiln_format_rate(kiln_table_cell(table, KILN_STYLE_PLAIN), series->sum, &said->type, rate_ns);
    kiln_report_value(kiln_table_cell(table, KILN_STYLE_FAINT), spread.least, &said->type);
    kiln_report_value(kiln_table_cell(table, KILN_STYLE_FAINT), spread.most, &said->type);
    put_sparks(kiln_table_cell(table, KILN_STYLE_STRONG), said, series);
}

static void print(struct kiln_cli *cli, const struct kiln_said *said)
{
    const struct kiln_said_series *series = said->series.items;
    struct kiln_table table;

    kiln_query_head(cli, said);
    kiln_query_put_time(&cli->out, said->from_ns);
    kiln_buf_puts(&cli->out, " to ");
    kiln_query_put_time(&cli->out, said->until_ns);
    kiln_buf_puts(&cli->out, ", a bucket is ");
    kiln_report_duration(&cli->out, (uint64_t)(said->step_seconds * 1e9));
    kiln_buf_putc(&cli->out, '\n');
    kiln_table_init(&table, columns, KILN_ARRAY_LEN(columns));
    for (uint32_t i = 0; i < said->series.n; i++)
        add_row(&table, said, &series[i]);
    kiln_table_print(&table, &cli->term, 0, &cli->out);
    kiln_table_done(&table);
    if (said->all > said->series.n)
        kiln_buf_printf(&cli->out, "... %.0f more (-n 0 shows all)\n", said->all - said->series.n);
}

int kiln_query_series(struct kiln_cli *cli)
{
    const struct kiln_list *by = &cli->args.query.by;
    struct kiln_said said;
    struct kiln_buf target;
    int code;

    kiln_buf_init(&target, TARGET_MAX);
    kiln_buf_puts(&target, "/api/v1/query?format=series");
    kiln_remote_put_number(&target, "limit", cli->args.limit);
    kiln_remote_put_param(&target, "step", cli->args.query.step);
    for (uint32_t i = 0; i < by->n; i++)
        kiln_remote_put_param(&target, "by", by->items[i]);
    kiln_query_put_choice(cli, &target);
    code = kiln_query_get(cli, &target, false, &said);
    kiln_buf_done(&target);
    if (code == 0 && !cli->args.json)
        kiln_query_say_notes(&said);
    if (code == 0 && (!said.series.n || said.buckets <= 0))
        code = kiln_query_nothing(cli, &said);
    else if (code == 0 && !cli->args.json)
        print(cli, &said);
    kiln_said_done(&said);
    return code;
}
