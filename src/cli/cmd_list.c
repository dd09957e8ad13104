/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two views of the same samples: by line, for the numbers beside the source, and by function, for
 * the order and the totals (a recursive function's lines do not add up to it).
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/regex.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/report.h"
#include "cli/source.h"

/* What one line of one function spent. */
struct entry {
    struct kiln_str function, file;
    int64_t line;
    int64_t self, total;
};

/* A function in one file: `n` entries from `first`, by line. */
struct routine {
    struct kiln_str function, file;
    uint32_t first, n;
    int64_t self, total; /* of the function */
};

struct listing {
    struct kiln_cli *cli;
    struct kiln_embedded *embedded;
    struct kiln_view *lines, *functions;
    struct kiln_top_row *line_rows, *function_rows; /* the latter by name */
    uint32_t n_line_rows, n_function_rows;
    struct entry *entries;
    struct routine *routines;
    uint32_t n_entries, n_routines;
};

/* ---- collecting ---- */

static int compare_entries(const void *x, const void *y)
{
    const struct entry *a = x;
    const struct entry *b = y;
    int order = kiln_str_cmp(a->function, b->function);

    if (order == 0)
        order = kiln_str_cmp(a->file, b->file);
    return order ? order : (a->line > b->line) - (a->line < b->line);
}

static int compare_routines(const void *x, const void *y)
{
    const struct routine *a = x;
    const struct routine *b = y;
    int order;

    if (a->total != b->total)
        return a->total < b->total ? 1 : -1;
    order = kiln_str_cmp(a->function, b->function);
    return order ? order : kiln_str_cmp(a->file, b->file);
}

static int find_entries(struct listing *l, struct kiln_regex *regex)
{
    l->entries = kiln_calloc(l->n_line_rows + 1, sizeof(*l->entries));
    if (!l->entries)
        return -ENOMEM;
    for (uint32_t i = 0; i < l->n_line_rows; i++) {
        const struct kiln_top_row *row = &l->line_rows[i];
        const struct kiln_frame *frame = &l->lines->frames[row->frame];
        int r = frame->function.len ? kiln_regex_matches(regex, frame->function) : 0;

        if (r < 0)
            return r;
        if (r)
            l->entries[l->n_entries++] =
                (struct entry){frame->function, frame->file, frame->line, row->self, row->total};
    }
    qsort(l->entries, l->n_entries, sizeof(*l->entries), compare_entries);
    return 0;
}

/* Function rows are sorted by name. */
static void fill_totals(const struct listing *l, struct routine *routine)
{
    uint32_t low = 0;
    uint32_t high = l->n_function_rows;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct kiln_top_row *row = &l->function_rows[middle];
        int order = kiln_str_cmp(l->functions->frames[row->frame].name, routine->function);

        if (order == 0) {
            routine->self = row->self;
            routine->total = row->total;
            return;
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
}

static int group_entries(struct listing *l)
{
    l->routines = kiln_calloc(l->n_entries + 1, sizeof(*l->routines));
    if (!l->routines)
        return -ENOMEM;
    for (uint32_t i = 0; i < l->n_entries; i++) {
        const struct entry *e = &l->entries[i];
        struct routine *last = l->n_routines ? &l->routines[l->n_routines - 1] : NULL;

        if (!last || !kiln_str_eq(last->function, e->function) ||
            !kiln_str_eq(last->file, e->file)) {
            last = &l->routines[l->n_routines++];
            *last = (struct routine){.function = e->function, .file = e->file, .first = i};
            fill_totals(l, last);
        }
        last->n++;
    }
    qsort(l->routines, l->n_routines, sizeof(*l->routines), compare_routines);
    return 0;
}

static int open_source(const struct listing *l, const struct routine *routine,
                       struct kiln_source_text *ret_source)
{
    return kiln_source_text_open(routine->file, &l->cli->args.source_path, l->embedded, ret_source);
}

/* ---- text ---- */

static const struct kiln_column columns[] = {
    {"self", KILN_RIGHT, KILN_KEEP},  {"self%", KILN_RIGHT, KILN_KEEP},
    {"total", KILN_RIGHT, KILN_KEEP}, {"total%", KILN_RIGHT, KILN_KEEP},
    {"line", KILN_RIGHT, KILN_KEEP},  {"", KILN_LEFT, KILN_CUT_END},
};

static void add_line(const struct listing *l, struct kiln_table *table, const struct entry *e,
                     struct kiln_str text, int64_t line)
{
    double whole = (double)l->lines->total_unfiltered;
    double self = e ? (double)e->self : 0, total = e ? (double)e->total : 0;
    enum kiln_style hot = e ? kiln_style_of_share(kiln_share(self, whole)) : KILN_STYLE_PLAIN;

    kiln_report_value(kiln_table_cell(table, hot), self, &l->lines->type);
    kiln_report_share(kiln_table_cell(table, hot), kiln_share(self, whole));
    kiln_report_value(kiln_table_cell(table, KILN_STYLE_PLAIN), total, &l->lines->type);
    kiln_report_share(kiln_table_cell(table, KILN_STYLE_PLAIN), kiln_share(total, whole));
    kiln_buf_printf(kiln_table_cell(table, KILN_STYLE_FAINT), "%" PRId64, line);
    kiln_report_source_line(kiln_table_cell(table, e ? KILN_STYLE_PLAIN : KILN_STYLE_FAINT), text);
}

static struct kiln_str line_of(const struct kiln_source_text *source, int64_t line)
{
    return line >= 1 && line <= source->n_lines ? source->lines[line - 1] : KILN_STR_NONE;
}

/* The lines between two entries that stand near one of them; "..." for those that do not. */
static void add_gap(const struct listing *l, struct kiln_table *table,
                    const struct kiln_source_text *source, int64_t after, int64_t before)
{
    int64_t context = l->cli->args.context;
    int64_t line = after < 0 ? before - context : after + 1;
    bool dots = after >= 0 && before - after - 1 > 2 * context;

    for (line = line < 1 ? 1 : line; line < before && line <= source->n_lines; line++) {
        if (dots && line == after + context + 1) {
            for (uint32_t i = 0; i + 1 < KILN_ARRAY_LEN(columns); i++)
                kiln_table_add(table, KILN_STYLE_FAINT, KILN_STR_NONE);
            kiln_table_add(table, KILN_STYLE_FAINT, KILN_STR("..."));
            line = before - context - 1;
            continue;
        }
        add_line(l, table, NULL, line_of(source, line), line);
    }
}

static void print_lines(const struct listing *l, const struct routine *routine,
                        const struct kiln_source_text *source)
{
    struct kiln_table table;
    int64_t last = -1;

    kiln_table_init(&table, columns, KILN_ARRAY_LEN(columns));
    for (uint32_t i = 0; i < routine->n; i++) {
        const struct entry *e = &l->entries[routine->first + i];

        if (source->n_lines)
            add_gap(l, &table, source, last, e->line);
        add_line(l, &table, e, line_of(source, e->line), e->line);
        last = e->line;
    }
    if (source->n_lines && last < INT64_MAX - l->cli->args.context)
        add_gap(l, &table, source, last, last + l->cli->args.context + 1);
    kiln_table_print(&table, &l->cli->term, 0, &l->cli->out);
    kiln_table_done(&table);
}

static void print_head(const struct listing *l, const struct routine *routine)
{
    struct kiln_buf *out = &l->cli->out;
    struct kiln_buf name;
    double whole = (double)l->lines->total_unfiltered;

    kiln_buf_init(&name, 1 << 20);
    kiln_cli_put_safe(&name, routine->function);
    kiln_buf_putc(out, '\n');
    kiln_term_put(&l->cli->term, out, KILN_STYLE_STRONG, kiln_buf_str(&name));
    kiln_buf_done(&name);
    kiln_buf_puts(out, "  ");
    kiln_cli_put_safe(out, routine->file);
    kiln_buf_puts(out, "\nself ");
    kiln_report_number(out, (double)routine->self, l->lines->type.unit);
    kiln_buf_puts(out, " (");
    kiln_report_share(out, kiln_share((double)routine->self, whole));
    kiln_buf_puts(out, "), total ");
    kiln_report_number(out, (double)routine->total, l->lines->type.unit);
    kiln_buf_puts(out, " (");
    kiln_report_share(out, kiln_share((double)routine->total, whole));
    kiln_buf_puts(out, ")\n");
}

static uint32_t shown(const struct listing *l)
{
    uint32_t limit = l->cli->args.limit;

    return limit && limit < l->n_routines ? limit : l->n_routines;
}

static int print_text(const struct listing *l)
{
    kiln_report_head(l->cli, l->lines, &l->cli->out);
    for (uint32_t i = 0; i < shown(l); i++) {
        struct kiln_source_text source;
        int r = open_source(l, &l->routines[i], &source);

        if (r < 0)
            return r;
        print_head(l, &l->routines[i]);
        if (!source.n_lines)
            kiln_buf_puts(&l->cli->out, "the source was not found (--source DIR)\n");
        else if (source.is_embedded)
            kiln_buf_puts(&l->cli->out,
                          "the source is the one that was compiled: it is embedded\n");
        print_lines(l, &l->routines[i], &source);
        kiln_source_text_close(&source);
    }
    if (shown(l) < l->n_routines)
        kiln_buf_printf(&l->cli->out, "\n... %u more functions (-n 0 shows all)\n",
                        l->n_routines - shown(l));
    return 0;
}

/* ---- JSON ---- */

static void put_numbers(struct kiln_json_out *w, int64_t self, int64_t total)
{
    kiln_json_put_name(w, "self");
    kiln_json_put_i64(w, self);
    kiln_json_put_name(w, "total");
    kiln_json_put_i64(w, total);
}

static void put_share(struct kiln_json_out *w, const char *name, int64_t value, int64_t whole)
{
    kiln_json_put_name(w, name);
    kiln_json_put_double(w, round(kiln_share((double)value, (double)whole) * 1e6) / 1e6);
}

static void put_entry(struct kiln_json_out *w, const struct entry *e, int64_t whole,
                      const struct kiln_source_text *source)
{
    struct kiln_str text = line_of(source, e->line);

    kiln_json_put_object(w);
    kiln_json_put_name(w, "line");
    kiln_json_put_i64(w, e->line);
    put_numbers(w, e->self, e->total);
    put_share(w, "self_share", e->self, whole);
    put_share(w, "total_share", e->total, whole);
    if (text.ptr) {
        kiln_json_put_name(w, "text");
        kiln_json_put_str(w, text);
    }
    kiln_json_end_object(w);
}

static int put_routine(const struct listing *l, struct kiln_json_out *w,
                       const struct routine *routine)
{
    struct kiln_source_text source;
    int r = open_source(l, routine, &source);

    if (r < 0)
        return r;
    kiln_json_put_object(w);
    kiln_json_put_name(w, "name");
    kiln_json_put_str(w, routine->function);
    kiln_json_put_name(w, "file");
    kiln_json_put_str(w, routine->file);
    put_numbers(w, routine->self, routine->total);
    kiln_json_put_name(w, "lines");
    kiln_json_put_array(w);
    for (uint32_t i = 0; i < routine->n; i++)
        put_entry(w, &l->entries[routine->first + i], l->lines->total_unfiltered, &source);
    kiln_json_end_array(w);
    kiln_json_end_object(w);
    kiln_source_text_close(&source);
    return 0;
}

static int print_json(const struct listing *l)
{
    struct kiln_json_out w;
    int r = 0;

    kiln_json_out_init(&w, &l->cli->out, 2);
    kiln_json_put_object(&w);
    kiln_json_put_view(&w, l->lines);
    kiln_json_put_name(&w, "functions");
    kiln_json_put_array(&w);
    for (uint32_t i = 0; i < shown(l) && r == 0; i++)
        r = put_routine(l, &w, &l->routines[i]);
    kiln_json_end_array(&w);
    kiln_json_end_object(&w);
    kiln_buf_putc(&l->cli->out, '\n');
    return r;
}

/* ---- the command ---- */

static int collect(struct listing *l, struct kiln_err *err)
{
    const char *pattern = l->cli->args.operands.items[0];
    struct kiln_regex *regex;
    int r = kiln_regex_new(kiln_str_of(pattern), 0, &regex, err);

    if (r < 0)
        return r;
    r = kiln_top(l->lines, KILN_TOP_BY_SELF, &l->line_rows, &l->n_line_rows);
    if (r == 0)
        r = kiln_top(l->functions, KILN_TOP_BY_NAME, &l->function_rows, &l->n_function_rows);
    if (r == 0)
        r = find_entries(l, regex);
    if (r == 0)
        r = group_entries(l);
    kiln_regex_free(regex);
    if (r == 0 && l->n_routines == 0)
        return kiln_report_no_function(pattern, err);
    return r;
}

static int list(struct listing *l)
{
    struct kiln_err err = {0};
    int r = collect(l, &err);

    if (r == 0)
        r = l->cli->args.json ? print_json(l) : print_text(l);
    if (r < 0)
        kiln_err_set(&err, r, NULL, "%s", kiln_err_text(r));
    kiln_free(l->line_rows);
    kiln_free(l->function_rows);
    kiln_free(l->entries);
    kiln_free(l->routines);
    return r < 0 ? kiln_cli_fail(NULL, &err) : KILN_EXIT_WELL;
}

static int run(struct kiln_cli *cli)
{
    const struct kiln_list *operands = &cli->args.operands;
    const char *path = operands->n == 2 ? operands->items[1] : NULL;
    struct kiln_embedded embedded = {.debug = cli->args.resolve.debug};
    struct listing l = {.cli = cli, .embedded = &embedded};
    struct kiln_batch *batch;
    int code = kiln_input_merge(cli, 1, &batch);

    if (code)
        return code;
    embedded.batch = batch;
    cli->args.granularity = KILN_BY_LINE;
    code = kiln_input_view(cli, batch, path, &l.lines);
    cli->args.granularity = KILN_BY_FUNCTION;
    if (code == 0)
        code = kiln_input_view(cli, batch, path, &l.functions);
    if (code == 0)
        code = list(&l);
    kiln_view_free(l.lines);
    kiln_view_free(l.functions);
    kiln_embedded_done(&embedded);
    kiln_batch_unref(batch);
    return code;
}

static const struct kiln_option options[] = {
    KILN_OPT("source", 0, KILN_OPT_LIST, source_path, "[PREFIX=]DIR",
             "look for sources below DIR, also without their leading directories (.); with PREFIX, "
             "what stands behind it in their names; more than once"),
    KILN_OPT("source-path", 0, KILN_OPT_LIST, source_path, "[PREFIX=]DIR", "the same"),
    KILN_OPT("debug", 0, KILN_OPT_TEXT, resolve.debug, "FILE",
             "a program or debug file in which the compiler embedded sources"),
    KILN_OPT("context", 'C', KILN_OPT_COUNT, context, "N",
             "show N lines around those that cost something (3)"),
    KILN_OPT_LIMIT("show at most N functions, 0 for all (20)"),
    KILN_OPT_WIDE,
    KILN_OPT_JSON,
    KILN_OPT_END,
};
static const struct kiln_option_group group = {"Listing", options};

const struct kiln_command kiln_cmd_list = {
    .name = "list",
    .summary = "source lines with what each of them cost",
    .operands = "REGEX FILE...",
    .operands_min = 2,
    .operands_max = KILN_OPERANDS_ANY,
    .about =
        "Shows the functions whose names match REGEX line by line: what each line spent itself "
        "(self) and with what it called (total), beside its source where that can be found: where "
        "--source says, under its own name, in the program or its debug file, if the compiler "
        "embedded it there (clang -gdwarf-5 -gembed-source) and the build id is the profile's, or "
        "below a directory by the end of its name.",
    .groups = {&group, &kiln_group_selection, &kiln_group_input},
    .examples = {{"kiln list validate examples/checkout-v2.pb.gz --source examples",
                  "which line of validate is slow"},
                 {"kiln list 'store..load' examples/checkout.pb.gz --source examples",
                  "a method of a type"}},
    .defaults = {.limit = 20, .context = 3},
    .run = run,
};
