/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three tables: what grew, what shrank, and what noise may explain; each with the largest change
 * first, and before all of them a sentence about the whole.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/report.h"
#include "codec/caption.h"

struct comparison {
    struct kiln_cli *cli;
    const struct kiln_view *a, *b;
    const struct kiln_diff *diff;
    const struct kiln_diff_row **rows; /* in the order of the report */
    bool by_total;
};

static double before(const struct comparison *c, const struct kiln_diff_row *row)
{
    return c->by_total ? row->total_a : row->self_a;
}

static double after(const struct comparison *c, const struct kiln_diff_row *row)
{
    return (double)(c->by_total ? row->total_b : row->self_b);
}

static double change(const struct comparison *c, const struct kiln_diff_row *row)
{
    return after(c, row) - before(c, row);
}

static bool within_noise(const struct comparison *c, const struct kiln_diff_row *row)
{
    return c->by_total ? row->total_within_noise : row->self_within_noise;
}

/* ---- the order ---- */

static int compare_rows(const void *x, const void *y, void *context)
{
    const struct comparison *c = context;
    const struct kiln_diff_row *a = *(const struct kiln_diff_row *const *)x;
    const struct kiln_diff_row *b = *(const struct kiln_diff_row *const *)y;
    double da = fabs(change(c, a));
    double db = fabs(change(c, b));

    if (within_noise(c, a) != within_noise(c, b))
        return within_noise(c, a) ? 1 : -1;
    if (da != db)
        return da < db ? 1 : -1;
    return kiln_str_cmp(a->frame.name, b->frame.name);
}

static int sort_rows(struct comparison *c)
{
    uint32_t n = c->diff->n_rows;

    c->rows = kiln_malloc((n + 1) * sizeof(*c->rows));
    if (!c->rows)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        c->rows[i] = &c->diff->rows[i];
    qsort_r(c->rows, n, sizeof(*c->rows), compare_rows, c);
    return 0;
}

/* ---- text ---- */

static const struct kiln_column columns[] = {
    {"change", KILN_RIGHT, KILN_KEEP},   {"of all", KILN_RIGHT, KILN_KEEP},
    {"before", KILN_RIGHT, KILN_KEEP},   {"after", KILN_RIGHT, KILN_KEEP},
    {"ratio", KILN_RIGHT, KILN_KEEP},    {"name", KILN_LEFT, KILN_CUT_MIDDLE},
    {"file", KILN_LEFT, KILN_CUT_START},
};

static void put_signed(struct kiln_buf *out, double value, struct kiln_str unit)
{
    if (value > 0)
        kiln_buf_putc(out, '+');
    kiln_report_number(out, value, unit);
}

static void put_ratio(struct kiln_buf *out, double from, double to)
{
    if (from == 0)
        kiln_buf_puts(out, to == 0 ? "." : "new");
    else if (to == 0)
        kiln_buf_puts(out, "gone");
    else if (to / from >= 10)
        kiln_buf_printf(out, "x%.0f", to / from);
    else
        kiln_buf_printf(out, "%+.1f%%", 100 * kiln_share(to - from, from));
}

static void add_row(const struct comparison *c, struct kiln_table *table,
                    const struct kiln_diff_row *row, enum kiln_style style)
{
    double delta = change(c, row);

    put_signed(kiln_table_cell(table, style), delta, c->b->type.unit);
    if (c->diff->total_a == 0)
        kiln_buf_putc(kiln_table_cell(table, style), '.');
    else
        kiln_buf_printf(kiln_table_cell(table, style), "%+.1f%%",
                        100 * kiln_share(delta, c->diff->total_a));
    kiln_report_value(kiln_table_cell(table, KILN_STYLE_PLAIN), before(c, row), &c->b->type);
    kiln_report_value(kiln_table_cell(table, KILN_STYLE_PLAIN), after(c, row), &c->b->type);
    put_ratio(kiln_table_cell(table, KILN_STYLE_PLAIN), before(c, row), after(c, row));
    kiln_report_frame(table, &row->frame);
}

enum section { GREW, SHRANK, NOISE };

static bool belongs(const struct comparison *c, const struct kiln_diff_row *row,
                    enum section section)
{
    double delta = change(c, row);

    if (delta == 0)
        return false;
    if (within_noise(c, row))
        return section == NOISE;
    return section == (delta > 0 ? GREW : SHRANK);
}

static void put_section(const struct comparison *c, enum section section)
{
    static const char *const titles[] = {"Grew:", "Shrank:", "Within sampling noise (95%):"};
    static const enum kiln_style styles[] = {KILN_STYLE_WORSE, KILN_STYLE_BETTER, KILN_STYLE_FAINT};
    struct kiln_buf *out = &c->cli->out;
    uint32_t limit = c->cli->args.limit ? c->cli->args.limit : UINT32_MAX;
    struct kiln_table table;
    uint32_t n = 0;

    if (section == NOISE && limit != UINT32_MAX)
        limit = (limit + 1) / 2;
    kiln_table_init(&table, columns, KILN_ARRAY_LEN(columns));
    for (uint32_t i = 0; i < c->diff->n_rows; i++) {
        if (belongs(c, c->rows[i], section) && n++ < limit)
            add_row(c, &table, c->rows[i], styles[section]);
    }
    if (n) {
        kiln_buf_putc(out, '\n');
        kiln_term_put(&c->cli->term, out, KILN_STYLE_STRONG, kiln_str_of(titles[section]));
        kiln_buf_putc(out, '\n');
        kiln_table_print(&table, &c->cli->term, 0, out);
    }
    if (n > limit)
        kiln_buf_printf(out, "... %u more (-n 0 shows all)\n", n - limit);
    kiln_table_done(&table);
}

static double growth(const struct kiln_diff *diff)
{
    return kiln_share(diff->total_b - diff->total_a, diff->total_a);
}

static bool total_within_noise(const struct kiln_diff *diff)
{
    return fabs(diff->total_b - diff->total_a) <= diff->total_noise;
}

/* "cpu grew by 21.6% ±3.2%: 10.3s in 30s (0.342 cores) -> 12.5s in 30s (0.416 cores)" */
static void put_sentence(const struct comparison *c)
{
    const struct kiln_diff *diff = c->diff;
    struct kiln_buf *out = &c->cli->out;
    double noise = 100 * kiln_share(diff->total_noise, diff->total_a);

    kiln_caption_type(&c->b->type, KILN_QUOTE_NONE, out);
    if (diff->normalized == KILN_NORMALIZE_TOTAL)
        kiln_buf_puts(out, " is compared as shares of the total");
    else if (diff->total_a == 0)
        kiln_buf_puts(out, diff->total_b == 0 ? ", nothing in both" : ", nothing before");
    else if (total_within_noise(diff))
        kiln_buf_printf(out, " did not change beyond noise (%+.1f%% ±%.1f%%)", 100 * growth(diff),
                        noise);
    else
        kiln_buf_printf(out, " %s by %.1f%% ±%.1f%%", growth(diff) > 0 ? "grew" : "shrank",
                        100 * fabs(growth(diff)), noise);
    kiln_buf_puts(out, ": ");
    kiln_report_amount(out, (double)c->a->total, &c->a->type, c->a->duration_ns);
    kiln_buf_puts(out, " → ");
    kiln_report_amount(out, (double)c->b->total, &c->b->type, c->b->duration_ns);
    kiln_buf_putc(out, '\n');
    if (diff->scale_a != 1)
        kiln_buf_printf(out, "Values before are multiplied by %.4g, to compare over the same %s.\n",
                        diff->scale_a, diff->normalized == KILN_NORMALIZE_TOTAL ? "total" : "time");
}

static void print_text(const struct comparison *c)
{
    size_t before_sections;

    put_sentence(c);
    before_sections = c->cli->out.len;
    put_section(c, GREW);
    put_section(c, SHRANK);
    put_section(c, NOISE);
    if (c->cli->out.len == before_sections)
        kiln_buf_puts(&c->cli->out, "No function changed.\n");
}

/* ---- JSON ---- */

static void put_number(struct kiln_json_out *w, const char *name, double value)
{
    kiln_json_put_name(w, name);
    kiln_json_put_double(w, value);
}

static void put_flag(struct kiln_json_out *w, const char *name, bool flag)
{
    kiln_json_put_name(w, name);
    kiln_json_put_bool(w, flag);
}

static void put_view(struct kiln_json_out *w, const char *name, const struct kiln_view *view)
{
    kiln_json_put_name(w, name);
    kiln_json_put_object(w);
    kiln_json_put_view(w, view);
    kiln_json_end_object(w);
}

static void put_row(struct kiln_json_out *w, const struct kiln_diff_row *row)
{
    kiln_json_put_object(w);
    kiln_json_put_frame(w, &row->frame);
    put_number(w, "self_before", row->self_a);
    put_number(w, "self_after", (double)row->self_b);
    put_number(w, "self_noise", row->self_noise);
    put_flag(w, "self_within_noise", row->self_within_noise);
    put_number(w, "total_before", row->total_a);
    put_number(w, "total_after", (double)row->total_b);
    put_number(w, "total_noise", row->total_noise);
    put_flag(w, "total_within_noise", row->total_within_noise);
    kiln_json_end_object(w);
}

static const char *const normalizations[] = {"time", "total", "none", NULL};

static void print_json(const struct comparison *c)
{
    const struct kiln_diff *diff = c->diff;
    uint32_t limit = c->cli->args.limit ? c->cli->args.limit : UINT32_MAX;
    struct kiln_json_out w;

    kiln_json_out_init(&w, &c->cli->out, 2);
    kiln_json_put_object(&w);
    put_view(&w, "before", c->a);
    put_view(&w, "after", c->b);
    kiln_json_put_name(&w, "normalized");
    kiln_json_put_str(&w, kiln_str_of(normalizations[diff->normalized]));
    put_number(&w, "scale_before", diff->scale_a);
    put_number(&w, "total_before", diff->total_a);
    put_number(&w, "total_after", diff->total_b);
    put_number(&w, "total_noise", diff->total_noise);
    put_flag(&w, "total_within_noise", total_within_noise(diff));
    kiln_json_put_name(&w, "rows");
    kiln_json_put_array(&w);
    for (uint32_t i = 0; i < diff->n_rows && i < limit; i++)
        put_row(&w, c->rows[i]);
    kiln_json_end_array(&w);
    kiln_json_end_object(&w);
    kiln_buf_putc(&c->cli->out, '\n');
}

/* ---- the command ---- */

/* Growth that noise does not explain, of the whole and of each function, against the threshold. */
static int judge(const struct comparison *c)
{
    double allowed = c->cli->args.fail_on_growth;
    const struct kiln_diff *diff = c->diff;

    if (allowed < 0)
        return KILN_EXIT_WELL;
    if (diff->total_a == 0 && diff->total_b > 0) {
        kiln_cli_note(NULL, "there was nothing before, which is more growth than %g%%", allowed);
        return KILN_EXIT_FAILED;
    }
    if (!total_within_noise(diff) && 100 * growth(diff) > allowed) {
        kiln_cli_note(NULL, "the whole grew by %.1f%%, more than %g%%", 100 * growth(diff),
                      allowed);
        return KILN_EXIT_FAILED;
    }
    for (uint32_t i = 0; i < diff->n_rows; i++) {
        double share = 100 * kiln_share(change(c, c->rows[i]), diff->total_a);

        if (within_noise(c, c->rows[i]) || share <= allowed)
            continue;
        kiln_cli_note(NULL, "%.*s grew by %.1f%% of the whole, more than %g%%",
                      KILN_STR_ARG(c->rows[i]->frame.name), share, allowed);
        return KILN_EXIT_FAILED;
    }
    return KILN_EXIT_WELL;
}

static int report(struct kiln_cli *cli, const struct kiln_view *a, const struct kiln_view *b)
{
    struct comparison c = {.cli = cli, .a = a, .b = b, .by_total = cli->args.sort != 0};
    struct kiln_diff *diff = NULL;
    struct kiln_err err = {0};
    int code;
    int r = kiln_diff_new(a, b, (enum kiln_normalize)cli->args.normalize, &diff, &err);

    if (r == 0) {
        c.diff = diff;
        r = sort_rows(&c);
    }
    if (r < 0) {
        kiln_err_set(&err, r, NULL, "%s", kiln_err_text(r));
        kiln_diff_free(diff);
        return kiln_cli_fail(NULL, &err);
    }
    if (cli->args.json)
        print_json(&c);
    else
        print_text(&c);
    code = judge(&c);
    kiln_free(c.rows);
    kiln_diff_free(diff);
    return code;
}

static int run(struct kiln_cli *cli)
{
    struct kiln_view *a = NULL;
    struct kiln_view *b = NULL;
    int code = kiln_input_view_file(cli, cli->args.operands.items[0], &a);

    if (code == 0)
        code = kiln_input_view_file(cli, cli->args.operands.items[1], &b);
    if (code == 0)
        code = report(cli, a, b);
    kiln_view_free(a);
    kiln_view_free(b);
    return code;
}

static const char *const orders[] = {"self", "total", NULL};

static const struct kiln_option options[] = {
    KILN_OPT_OF("normalize", normalize, normalizations, "BY",
                "compare over the same time, as shares of the total, or as they are: none (time)"),
    KILN_OPT_OF("sort", sort, orders, "BY",
                "look at what functions spend themselves, or with what they call: total (self)"),
    KILN_OPT("fail-on-growth", 0, KILN_OPT_PERCENT, fail_on_growth, "PERCENT",
             "exit with 1 if the whole, or a function in percent of the whole, grew by more than "
             "PERCENT and noise does not explain it"),
    KILN_OPT_LIMIT("show at most N functions in each table, 0 for all (10)"),
    KILN_OPT_WIDE,
    KILN_OPT_JSON,
    KILN_OPT_END,
};
static const struct kiln_option_group group = {"Comparison", options};

const struct kiln_command kiln_cmd_diff = {
    .name = "diff",
    .summary = "what grew and what shrank between two profiles",
    .operands = "BEFORE AFTER",
    .operands_min = 2,
    .operands_max = 2,
    .about = "Compares two profiles function by function, over the same time where both know how "
             "long they ran. Changes that sampling alone could explain (95% confidence, from the "
             "numbers of samples) are listed last and never fail a threshold.",
    .groups = {&group, &kiln_group_selection, &kiln_group_input},
    .examples =
        {{"kiln diff examples/checkout.pb.gz examples/checkout-v2.pb.gz",
          "what the new version costs"},
         {"kiln diff --normalize total --sort total examples/checkout.pb.gz "
          "examples/checkout-v2.pb.gz",
          "shares instead of rates, callees included"},
         {"kiln diff --fail-on-growth 50 examples/checkout.pb.gz examples/checkout-v2.pb.gz",
          "for CI: fail if something grew by more than half of everything"}},
    .defaults = {.limit = 10, .fail_on_growth = -1},
    .run = run,
};
