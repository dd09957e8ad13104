/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a store says of itself, from JSON into words and tables: the same whether the answer came
 * from a server or from this process.
 */
#include "base/json.h"
#include "base/when.h"
#include "cli/report.h"
#include "cli/store.h"
#include "store/usage.h"

/* ---- reading ---- */

static bool is(struct kiln_str name, const char *text)
{
    return kiln_str_eq(name, kiln_str_of(text));
}

/* The rest of a member that nobody wants; every reader below ends in it. */
static int read_number(struct kiln_json *r, struct kiln_str name, const char *wanted, uint64_t *to)
{
    return is(name, wanted) ? kiln_json_u64(r, to) : 1;
}

uint64_t kiln_store_read_number(struct kiln_str json, const char *name)
{
    struct kiln_json r;
    struct kiln_str member;
    uint64_t number = 0;
    int n;

    kiln_json_init(&r, json, NULL);
    n = kiln_json_object(&r);
    while (n == 0 && kiln_json_member(&r, &member) > 0) {
        n = read_number(&r, member, name, &number);
        if (n > 0)
            n = kiln_json_skip(&r);
    }
    kiln_json_done(&r);
    return number;
}

static int bad_answer(const struct kiln_err *err)
{
    struct kiln_err said = *err;

    kiln_err_set(&said, KILN_E_MALFORMED, NULL, "the answer is not what was asked for");
    return kiln_cli_fail(NULL, &said);
}

/* ---- check ---- */

/* PATH: error: PLACE: WHAT */
static int print_damage(struct kiln_cli *cli, struct kiln_json *r)
{
    struct kiln_buf parts[3];
    struct kiln_str name, text;
    int n = kiln_json_object(r);

    for (int i = 0; i < 3; i++)
        kiln_buf_init(&parts[i], 4096);
    while (n == 0 && (n = kiln_json_member(r, &name)) > 0) {
        int at = is(name, "path") ? 0 : is(name, "where") ? 1 : is(name, "text") ? 2 : -1;

        n = at < 0 ? kiln_json_skip(r) : kiln_json_string(r, &text);
        if (n == 0 && at >= 0)
            kiln_buf_add_str(&parts[at], text);
    }
    kiln_cli_put_safe(&cli->out, kiln_buf_str(&parts[0]));
    kiln_buf_puts(&cli->out, ": ");
    kiln_term_put(&cli->term, &cli->out, KILN_STYLE_WORSE, KILN_STR("damaged"));
    for (int i = 1; i < 3; i++) {
        if (parts[i].len)
            kiln_buf_puts(&cli->out, ": ");
        kiln_cli_put_safe(&cli->out, kiln_buf_str(&parts[i]));
    }
    kiln_buf_putc(&cli->out, '\n');
    for (int i = 0; i < 3; i++)
        kiln_buf_done(&parts[i]);
    return n;
}

static int print_damages(struct kiln_cli *cli, struct kiln_json *r)
{
    int n = kiln_json_array(r);

    while (n == 0 && (n = kiln_json_element(r)) > 0)
        n = print_damage(cli, r);
    return n;
}

struct check_counts {
    uint64_t blocks, segments, records, symbols, profiles, samples, bytes, aside, damaged;
};

static int read_check_member(struct kiln_json *r, struct kiln_str name, struct check_counts *c)
{
    const struct {
        const char *name;
        uint64_t *to;
    } members[] = {
        {"blocks", &c->blocks},   {"segments", &c->segments}, {"records", &c->records},
        {"symbols", &c->symbols}, {"profiles", &c->profiles}, {"samples", &c->samples},
        {"bytes", &c->bytes},     {"aside", &c->aside},       {"damaged", &c->damaged},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(members); i++) {
        if (is(name, members[i].name))
            return kiln_json_u64(r, members[i].to);
    }
    return kiln_json_skip(r);
}

static void put_check(struct kiln_buf *out, const struct check_counts *c)
{
    kiln_report_count(out, (double)c->blocks, "block");
    kiln_buf_puts(out, " (");
    kiln_report_count(out, (double)c->profiles, "profile");
    kiln_buf_puts(out, ", ");
    kiln_report_count(out, (double)c->samples, "sample");
    kiln_buf_puts(out, "), ");
    kiln_report_count(out, (double)c->records, "record");
    kiln_buf_puts(out, " in ");
    kiln_report_count(out, (double)c->segments, "log segment");
    kiln_buf_puts(out, ", ");
    kiln_report_count(out, (double)c->symbols, "symbol file");
    kiln_buf_puts(out, ": ");
    if (c->damaged == 0)
        kiln_buf_puts(out, "all well");
    else
        kiln_report_count(out, (double)c->damaged, "damaged place");
    if (c->aside) {
        kiln_buf_puts(out, "; ");
        kiln_report_count(out, (double)c->aside, "file");
        kiln_buf_puts(out, " set aside before");
    }
    kiln_buf_putc(out, '\n');
}

int kiln_store_print_check(struct kiln_cli *cli, struct kiln_str json, uint64_t *ret_damaged)
{
    struct check_counts counts = {0};
    struct kiln_err err = {0};
    struct kiln_json r;
    struct kiln_str name;
    int n;

    kiln_json_init(&r, json, &err);
    n = kiln_json_object(&r);
    while (n == 0 && (n = kiln_json_member(&r, &name)) > 0)
        n = is(name, "damages") ? print_damages(cli, &r) : read_check_member(&r, name, &counts);
    kiln_json_done(&r);
    if (n < 0)
        return bad_answer(&err);
    put_check(&cli->out, &counts);
    *ret_damaged = counts.damaged;
    return KILN_EXIT_WELL;
}

/* ---- stats ---- */

static const struct kiln_column columns[] = {
    {"tenant", KILN_LEFT, KILN_KEEP},    {"service", KILN_LEFT, KILN_KEEP},
    {"type", KILN_LEFT, KILN_CUT_END},   {"bytes", KILN_RIGHT, KILN_KEEP},
    {"samples", KILN_RIGHT, KILN_KEEP},  {"bytes/sample", KILN_RIGHT, KILN_KEEP},
    {"profiles", KILN_RIGHT, KILN_KEEP}, {"oldest", KILN_LEFT, KILN_KEEP},
    {"newest", KILN_LEFT, KILN_KEEP},    {"blocks by level", KILN_LEFT, KILN_KEEP},
};

static void put_time(struct kiln_buf *out, uint64_t ns)
{
    if (ns)
        kiln_when_format(ns / 1000000000 * 1000000000, out);
}

/* Only where all of it is in blocks: what is in memory has its bytes in the log. */
static void put_ratio(struct kiln_buf *out, const struct kiln_usage *u)
{
    if (u->samples && u->bytes && !u->in_head)
        kiln_buf_printf(out, "%.2f", (double)u->bytes / (double)u->samples);
    else
        kiln_buf_putc(out, '.');
}

static void put_row(struct kiln_table *t, const struct kiln_usage *u)
{
    struct kiln_buf *out;

    kiln_cli_put_safe(kiln_table_cell(t, KILN_STYLE_PLAIN), u->tenant);
    kiln_cli_put_safe(kiln_table_cell(t, KILN_STYLE_STRONG), u->service);
    kiln_cli_put_safe(kiln_table_cell(t, KILN_STYLE_PLAIN), u->type);
    kiln_report_number(kiln_table_cell(t, KILN_STYLE_PLAIN), (double)u->bytes, KILN_STR("bytes"));
    kiln_report_number(kiln_table_cell(t, KILN_STYLE_PLAIN), (double)u->samples, KILN_STR("count"));
    put_ratio(kiln_table_cell(t, KILN_STYLE_PLAIN), u);
    kiln_report_number(kiln_table_cell(t, KILN_STYLE_PLAIN), (double)u->profiles,
                       KILN_STR("count"));
    put_time(kiln_table_cell(t, KILN_STYLE_FAINT), u->min_ns);
    put_time(kiln_table_cell(t, KILN_STYLE_FAINT), u->max_ns);
    out = kiln_table_cell(t, KILN_STYLE_PLAIN);
    for (uint32_t i = 0; i < KILN_USAGE_LEVELS; i++)
        kiln_buf_printf(out, "%s%u", i ? " " : "", u->levels[i]);
}

static int read_levels(struct kiln_json *r, struct kiln_usage *u)
{
    uint32_t at = 0;
    int n = kiln_json_array(r);

    while (n == 0 && (n = kiln_json_element(r)) > 0) {
        uint64_t level = 0;

        n = kiln_json_u64(r, &level);
        if (at < KILN_USAGE_LEVELS)
            u->levels[at++] = (uint32_t)level;
    }
    return n;
}

/* A text that lives until the row is printed. */
static int read_text(struct kiln_json *r, struct kiln_buf *texts, struct kiln_range *ret)
{
    struct kiln_str text;
    int n = kiln_json_string(r, &text);

    if (n == 0) {
        *ret = (struct kiln_range){(uint32_t)texts->len, (uint32_t)text.len};
        kiln_buf_add_str(texts, text);
    }
    return n;
}

static int read_row_member(struct kiln_json *r, struct kiln_str name, struct kiln_usage *u)
{
    const struct {
        const char *name;
        uint64_t *to;
    } members[] = {
        {"profiles", &u->profiles}, {"samples", &u->samples},  {"bytes", &u->bytes},
        {"oldest_ns", &u->min_ns},  {"newest_ns", &u->max_ns}, {"in_memory", &u->in_head},
    };

    if (is(name, "levels"))
        return read_levels(r, u);
    for (size_t i = 0; i < KILN_ARRAY_LEN(members); i++) {
        if (is(name, members[i].name))
            return kiln_json_u64(r, members[i].to);
    }
    return kiln_json_skip(r);
}

static int read_row(struct kiln_json *r, struct kiln_table *table)
{
    static const char *const names[] = {"tenant", "service", "type"};
    struct kiln_range at[3] = {0};
    struct kiln_usage u = {0};
    struct kiln_buf texts;
    struct kiln_str name;
    int n = kiln_json_object(r);

    kiln_buf_init(&texts, 1 << 20);
    while (n == 0 && (n = kiln_json_member(r, &name)) > 0) {
        uint32_t i = 0;

        while (i < 3 && !is(name, names[i]))
            i++;
        n = i < 3 ? read_text(r, &texts, &at[i]) : read_row_member(r, name, &u);
    }
    if (n == 0) {
        u.tenant = (struct kiln_str){texts.ptr + at[0].first, at[0].n};
        u.service = (struct kiln_str){texts.ptr + at[1].first, at[1].n};
        u.type = (struct kiln_str){texts.ptr + at[2].first, at[2].n};
        put_row(table, &u);
    }
    kiln_buf_done(&texts);
    return n;
}

static int read_rows(struct kiln_json *r, struct kiln_table *table)
{
    int n = kiln_json_array(r);

    while (n == 0 && (n = kiln_json_element(r)) > 0)
        n = read_row(r, table);
    return n;
}

struct totals {
    uint64_t blocks, block_bytes, log_bytes, profiles, samples, set_aside;
};

static int read_total(struct kiln_json *r, struct kiln_str name, struct totals *t)
{
    const struct {
        const char *name;
        uint64_t *to;
    } members[] = {
        {"blocks", &t->blocks},     {"block_bytes", &t->block_bytes}, {"log_bytes", &t->log_bytes},
        {"profiles", &t->profiles}, {"samples", &t->samples},         {"set_aside", &t->set_aside},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(members); i++) {
        if (is(name, members[i].name))
            return kiln_json_u64(r, members[i].to);
    }
    return kiln_json_skip(r);
}

static void put_totals(struct kiln_buf *out, const struct totals *t)
{
    kiln_report_count(out, (double)t->blocks, "block");
    kiln_buf_puts(out, " of ");
    kiln_report_number(out, (double)t->block_bytes, KILN_STR("bytes"));
    kiln_buf_puts(out, ", a log of ");
    kiln_report_number(out, (double)t->log_bytes, KILN_STR("bytes"));
    kiln_buf_puts(out, ": ");
    kiln_report_count(out, (double)t->profiles, "profile");
    kiln_buf_puts(out, ", ");
    kiln_report_count(out, (double)t->samples, "sample");
    if (t->samples && t->block_bytes)
        kiln_buf_printf(out, ", %.2f bytes a sample%s",
                        (double)(t->block_bytes + t->log_bytes) / (double)t->samples,
                        t->log_bytes ? " with the log" : "");
    if (t->set_aside) {
        kiln_buf_puts(out, "; ");
        kiln_report_count(out, (double)t->set_aside, "damaged file");
        kiln_buf_puts(out, " set aside");
    }
    kiln_buf_putc(out, '\n');
}

int kiln_store_print_stats(struct kiln_cli *cli, struct kiln_str json)
{
    struct totals totals = {0};
    struct kiln_table table;
    struct kiln_err err = {0};
    struct kiln_json r;
    struct kiln_str name;
    int n;

    kiln_table_init(&table, columns, KILN_ARRAY_LEN(columns));
    kiln_json_init(&r, json, &err);
    n = kiln_json_object(&r);
    while (n == 0 && (n = kiln_json_member(&r, &name)) > 0)
        n = is(name, "rows") ? read_rows(&r, &table) : read_total(&r, name, &totals);
    kiln_json_done(&r);
    if (n == 0) {
        put_totals(&cli->out, &totals);
        if (table.n_cells)
            kiln_table_print(&table, &cli->term, 0, &cli->out);
    }
    kiln_table_done(&table);
    return n < 0 ? bad_answer(&err) : KILN_EXIT_WELL;
}
