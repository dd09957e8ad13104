/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two questions side by side: what grew, what shrank, and what noise may explain, as `kiln diff`
 * shows it for files.  The left side is --against; without any, the same length of time before.
 */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/when.h"
#include "cli/query.h"
#include "cli/remote.h"
#include "cli/report.h"
#include "codec/caption.h"

#define TARGET_MAX ((size_t)1 << 20)

/* ---- asking ---- */

static int bad_time(const struct kiln_cli *cli, const char *text)
{
    return kiln_cli_usage(cli->command, "%.60s is no time (now-1h, 2026-03-01T12:00, Unix time)",
                          text);
}

/* The same length of time, right before. */
static int put_before(const struct kiln_cli *cli, struct kiln_buf *target)
{
    const char *from = cli->args.query.from ? cli->args.query.from : "now-1h";
    const char *until = cli->args.query.until ? cli->args.query.until : "now";
    uint64_t now = kiln_clock_unix_ns(), start, end;

    if (kiln_when_parse(kiln_str_of(from), now, &start) < 0)
        return bad_time(cli, from);
    if (kiln_when_parse(kiln_str_of(until), now, &end) < 0)
        return bad_time(cli, until);
    if (end <= start || end - start > start)
        return kiln_cli_usage(cli->command, "--until is not after --from");
    kiln_remote_put_number(target, "left_from", start - (end - start));
    kiln_remote_put_number(target, "left_until", start);
    return KILN_EXIT_WELL;
}

/* FROM..UNTIL */
static int put_window(const struct kiln_cli *cli, const char *text, struct kiln_buf *target)
{
    const char *dots = strstr(text, "..");
    struct kiln_buf from;

    if (!dots || dots == text || !dots[2])
        return kiln_cli_usage(cli->command, "--against is FROM..UNTIL: now-2h..now-1h");
    kiln_buf_init(&from, TARGET_MAX);
    kiln_buf_add(&from, text, (size_t)(dots - text));
    kiln_buf_putc(&from, '\0');
    if (!from.error)
        kiln_remote_put_param(target, "left_from", from.ptr);
    kiln_buf_done(&from);
    kiln_remote_put_param(target, "left_until", dots + 2);
    return KILN_EXIT_WELL;
}

static int put_sides(const struct kiln_cli *cli, struct kiln_buf *target)
{
    const struct kiln_args *args = &cli->args;
    bool other =
        args->query.against_query || args->query.against_version || args->query.against_deployment;

    kiln_remote_put_param(target, "left_query", args->query.against_query);
    kiln_remote_put_param(target, "left_version", args->query.against_version);
    kiln_remote_put_param(target, "left_deployment", args->query.against_deployment);
    kiln_remote_put_param(target, "right_version", args->query.version);
    kiln_remote_put_param(target, "right_deployment", args->query.deployment);
    if (args->query.against)
        return put_window(cli, args->query.against, target);
    return other ? KILN_EXIT_WELL : put_before(cli, target);
}

/* ---- showing ---- */

static const struct kiln_column columns[] = {
    {"change", KILN_RIGHT, KILN_KEEP},   {"±", KILN_RIGHT, KILN_KEEP},
    {"of all", KILN_RIGHT, KILN_KEEP},   {"before", KILN_RIGHT, KILN_KEEP},
    {"after", KILN_RIGHT, KILN_KEEP},    {"name", KILN_LEFT, KILN_CUT_MIDDLE},
    {"file", KILN_LEFT, KILN_CUT_START},
};

/* A row as --sort looks at it. */
struct change {
    double before, after, change, noise;
    bool is_noise;
};

static struct change change_of(const struct kiln_cli *cli, const struct kiln_said *said,
                               const struct kiln_said_change *row)
{
    if (cli->args.sort == KILN_QUERY_BY_TOTAL)
        return (struct change){row->left_total * said->scale, row->right_total, row->total_change,
                               row->total_noise, row->total_is_noise};
    return (struct change){row->left_self * said->scale, row->right_self, row->self_change,
                           row->self_noise, row->self_is_noise};
}

static double whole_before(const struct kiln_said *said)
{
    return said->left.total * said->scale;
}

static void add_row(const struct kiln_cli *cli, const struct kiln_said *said,
                    struct kiln_table *table, const struct kiln_said_change *row,
                    enum kiln_style style)
{
    struct change c = change_of(cli, said, row);
    struct kiln_buf *cell = kiln_table_cell(table, style);

    kiln_buf_puts(cell, c.change > 0 ? "+" : "");
    kiln_report_number(cell, c.change, said->type.unit);
    kiln_report_value(kiln_table_cell(table, KILN_STYLE_FAINT), c.noise, &said->type);
    kiln_buf_printf(kiln_table_cell(table, style), "%+.1f%%",
                    100 * kiln_share(c.change, whole_before(said)));
    kiln_report_value(kiln_table_cell(table, KILN_STYLE_PLAIN), c.before, &said->type);
    kiln_report_value(kiln_table_cell(table, KILN_STYLE_PLAIN), c.after, &said->type);
    kiln_query_put_function(table, row->name, row->file, row->module);
}

enum section { GREW, SHRANK, NOISE };

static bool belongs(const struct change *c, enum section section)
{
    if (c->change == 0)
        return false;
    if (c->is_noise)
        return section == NOISE;
    return section == (c->change > 0 ? GREW : SHRANK);
}

static int compare_rows(const void *x, const void *y, void *context)
{
    const struct kiln_cli *cli = context;
    const struct kiln_said scaled = {.scale = 1}; /* changes are scaled already */
    struct change a = change_of(cli, &scaled, x), b = change_of(cli, &scaled, y);

    if (fabs(a.change) != fabs(b.change))
        return fabs(a.change) < fabs(b.change) ? 1 : -1;
    return kiln_str_cmp(((const struct kiln_said_change *)x)->name,
                        ((const struct kiln_said_change *)y)->name);
}

static uint32_t put_section(struct kiln_cli *cli, const struct kiln_said *said,
                            enum section section)
{
    static const char *const titles[] = {"Grew:", "Shrank:", "Within sampling noise (95%):"};
    static const enum kiln_style styles[] = {KILN_STYLE_WORSE, KILN_STYLE_BETTER, KILN_STYLE_FAINT};
    const struct kiln_said_change *rows = said->changes.items;
    uint32_t limit = cli->args.limit ? cli->args.limit : UINT32_MAX, n = 0;
    struct kiln_table table;

    if (section == NOISE && limit != UINT32_MAX)
        limit = (limit + 1) / 2;
    kiln_table_init(&table, columns, KILN_ARRAY_LEN(columns));
    for (uint32_t i = 0; i < said->changes.n; i++) {
        struct change c = change_of(cli, said, &rows[i]);

        if (belongs(&c, section) && n++ < limit)
            add_row(cli, said, &table, &rows[i], styles[section]);
    }
    if (n) {
        kiln_buf_putc(&cli->out, '\n');
        kiln_term_put(&cli->term, &cli->out, KILN_STYLE_STRONG, kiln_str_of(titles[section]));
        kiln_buf_putc(&cli->out, '\n');
        kiln_table_print(&table, &cli->term, 0, &cli->out);
    }
    if (n > limit)
        kiln_buf_printf(&cli->out, "... %u more (-n 0 shows all)\n", n - limit);
    kiln_table_done(&table);
    return n;
}

static void put_side(struct kiln_cli *cli, const char *title, const struct kiln_said *said,
                     const struct kiln_said_side *side)
{
    kiln_buf_printf(&cli->out, "%s: ", title);
    kiln_report_amount(&cli->out, side->total, &said->type,
                       (uint64_t)(side->basis.rate_seconds * 1e9));
    kiln_buf_puts(&cli->out, ", ");
    kiln_report_count(&cli->out, side->basis.profiles, "profile");
    kiln_buf_puts(&cli->out, ", ");
    kiln_query_put_time(&cli->out, side->from_ns);
    kiln_buf_puts(&cli->out, " to ");
    kiln_query_put_time(&cli->out, side->until_ns);
    kiln_buf_puts(&cli->out, ", ");
    kiln_cli_put_safe(&cli->out, side->query);
    kiln_buf_putc(&cli->out, '\n');
}

static void put_sentence(struct kiln_cli *cli, const struct kiln_said *said)
{
    double growth = 100 * kiln_share(said->change, whole_before(said));
    double noise = 100 * kiln_share(said->noise, whole_before(said));

    kiln_caption_type(&said->type, KILN_QUOTE_NONE, &cli->out);
    if (kiln_str_eq(said->normalized, KILN_STR("total")))
        kiln_buf_puts(&cli->out, " is compared as shares of the total\n");
    else if (said->left.total == 0)
        kiln_buf_puts(&cli->out, ", nothing before\n");
    else if (said->is_noise)
        kiln_buf_printf(&cli->out, " did not change beyond noise (%+.1f%% ±%.1f%%)\n", growth,
                        noise);
    else
        kiln_buf_printf(&cli->out, " %s by %.1f%% ±%.1f%%\n", growth > 0 ? "grew" : "shrank",
                        fabs(growth), noise);
    put_side(cli, "Before", said, &said->left);
    put_side(cli, "After", said, &said->right);
    if (said->scale != 1)
        kiln_buf_printf(&cli->out,
                        "Values before are multiplied by %.4g, to compare over the same %.*s.\n",
                        said->scale, KILN_STR_ARG(said->normalized));
}

static void print(struct kiln_cli *cli, struct kiln_said *said)
{
    uint32_t n;

    if (said->changes.n)
        qsort_r(said->changes.items, said->changes.n, sizeof(struct kiln_said_change), compare_rows,
                cli);
    put_sentence(cli, said);
    n = put_section(cli, said, GREW);
    n += put_section(cli, said, SHRANK);
    n += put_section(cli, said, NOISE);
    if (n == 0)
        kiln_buf_puts(&cli->out, "No function changed.\n");
}

/* Growth that noise does not explain, of the whole and of each function, against the threshold. */
static int judge(const struct kiln_cli *cli, const struct kiln_said *said)
{
    const struct kiln_said_change *rows = said->changes.items;
    double allowed = cli->args.fail_on_growth, whole = whole_before(said);

    if (allowed < 0)
        return KILN_EXIT_WELL;
    if (!said->is_noise && 100 * kiln_share(said->change, whole) > allowed) {
        kiln_cli_note(NULL, "the whole grew by %.1f%%, more than %g%%",
                      100 * kiln_share(said->change, whole), allowed);
        return KILN_EXIT_FAILED;
    }
    for (uint32_t i = 0; i < said->changes.n; i++) {
        struct change c = change_of(cli, said, &rows[i]);
        double share = 100 * kiln_share(c.change, whole);

        if (c.is_noise || share <= allowed)
            continue;
        kiln_cli_note(NULL, "%.*s grew by %.1f%% of the whole, more than %g%%",
                      KILN_STR_ARG(rows[i].name), share, allowed);
        return KILN_EXIT_FAILED;
    }
    return KILN_EXIT_WELL;
}

/* The side without any profile, if one has none. */
static const struct kiln_said_side *empty_side(const struct kiln_said *said)
{
    if (said->left.basis.profiles <= 0)
        return &said->left;
    return said->right.basis.profiles <= 0 ? &said->right : NULL;
}

static int show(struct kiln_cli *cli, struct kiln_said *said)
{
    const struct kiln_said_side *empty = empty_side(said);

    kiln_query_say_notes(said);
    if (empty) {
        said->from_ns = empty->from_ns;
        said->until_ns = empty->until_ns;
        return kiln_query_nothing(cli, said);
    }
    if (!cli->args.json)
        print(cli, said);
    return judge(cli, said);
}

int kiln_query_put_diff(const struct kiln_cli *cli, const char *format, struct kiln_buf *target)
{
    static const char *const normalizations[] = {"time", "total", "none"};

    kiln_buf_puts(target, "/api/v1/diff");
    kiln_remote_put_param(target, "format", format);
    kiln_remote_put_param(target, "normalize", normalizations[cli->args.normalize]);
    kiln_query_put_choice(cli, target);
    return put_sides(cli, target);
}

int kiln_query_diff(struct kiln_cli *cli)
{
    struct kiln_said said = {0};
    struct kiln_buf target;
    int code;

    kiln_buf_init(&target, TARGET_MAX);
    code = kiln_query_put_diff(cli, "top", &target);
    kiln_remote_put_param(&target, "limit", "0");
    if (code == 0)
        code = kiln_query_get(cli, &target, true, &said);
    kiln_buf_done(&target);
    if (code == 0)
        code = show(cli, &said);
    kiln_said_done(&said);
    return code;
}
