/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/report.h"

struct subject {
    struct kiln_cli *cli;
    const char *path;
    const struct kiln_input *input;
    const struct kiln_batch *batch;
    struct kiln_type *types;  /* of each profile */
    struct label_key *labels; /* of the samples */
    uint32_t n_labels;
    uint32_t profiles_left; /* how many more may be shown */
};

/* A key that samples carry, and how many values it has. */
struct label_key {
    uint32_t key;
    uint32_t n_values;
};

/* ---- values ---- */

static void put_value(struct kiln_buf *out, const struct kiln_batch *batch,
                      const struct kiln_value *value)
{
    switch ((enum kiln_value_kind)value->kind) {
    case KILN_VALUE_EMPTY:
        return;
    case KILN_VALUE_STRING:
        kiln_cli_put_safe(out, kiln_batch_str(batch, (uint32_t)value->str));
        return;
    case KILN_VALUE_BOOL:
        kiln_buf_puts(out, value->flag ? "true" : "false");
        return;
    case KILN_VALUE_INT:
        kiln_buf_add_i64(out, value->i);
        return;
    case KILN_VALUE_DOUBLE:
        kiln_buf_printf(out, "%g", value->d);
        return;
    case KILN_VALUE_BYTES:
        kiln_buf_printf(out, "%zu bytes", kiln_batch_str(batch, (uint32_t)value->str).len);
        return;
    case KILN_VALUE_ARRAY:
    case KILN_VALUE_MAP:
        kiln_buf_printf(out, "%u values", value->n);
        return;
    }
}

static void put_set(struct kiln_buf *out, const struct kiln_batch *batch, uint32_t set)
{
    const struct kiln_range *range = &batch->dict.sets[set];

    if (!range->n)
        kiln_buf_puts(out, "(no attributes)");
    for (uint32_t i = 0; i < range->n; i++) {
        const struct kiln_attr *attr = &batch->dict.attrs[batch->dict.members[range->first + i]];

        if (i)
            kiln_buf_puts(out, ", ");
        kiln_cli_put_safe(out, kiln_batch_str(batch, attr->key));
        kiln_buf_putc(out, '=');
        put_value(out, batch, &attr->value);
    }
}

static void put_time(struct kiln_buf *out, uint64_t time_ns)
{
    time_t seconds = (time_t)(time_ns / 1000000000u);
    struct tm parts;
    char text[40];

    if (time_ns && gmtime_r(&seconds, &parts) && strftime(text, sizeof(text), "%F %TZ", &parts))
        kiln_buf_puts(out, text);
}

/* Saturates, as every sum over a stranger's numbers. */
static int64_t profile_total(const struct subject *s, uint32_t profile)
{
    const struct kiln_profile *p = &s->batch->profiles[profile];
    int64_t total = 0;

    for (uint32_t i = 0; i < p->n_samples; i++) {
        int64_t value = kiln_sample_total(s->batch, &s->batch->samples[p->first_sample + i]);

        if (__builtin_add_overflow(total, value, &total))
            return value > 0 ? INT64_MAX : INT64_MIN;
    }
    if (__builtin_mul_overflow(total, s->types[profile].scale, &total))
        return INT64_MAX;
    return total;
}

/* ---- labels ---- */

static int by_key(const void *a, const void *b)
{
    const struct label_key *x = a;
    const struct label_key *y = b;

    return (x->key > y->key) - (x->key < y->key);
}

/* Adds up entries of the same key, in place. */
static void fold_labels(struct subject *s)
{
    uint32_t n = 0;

    qsort(s->labels, s->n_labels, sizeof(*s->labels), by_key);
    for (uint32_t i = 0; i < s->n_labels; i++) {
        if (n && s->labels[n - 1].key == s->labels[i].key)
            s->labels[n - 1].n_values += s->labels[i].n_values;
        else
            s->labels[n++] = s->labels[i];
    }
    s->n_labels = n;
}

/* Sets `used` for each attribute that a sample carries. */
static void mark_labels(const struct kiln_batch *batch, bool *used)
{
    for (uint32_t i = 0; i < batch->n_samples; i++) {
        const struct kiln_range *set = &batch->dict.sets[batch->samples[i].attrs];

        for (uint32_t k = 0; k < set->n; k++)
            used[batch->dict.members[set->first + k]] = true;
    }
}

/* No attribute is in the table twice, so the values of a key are its attributes. */
static int find_labels(struct subject *s)
{
    uint32_t n = s->batch->dict.n_attrs;
    bool *used = kiln_calloc(n, sizeof(*used));

    s->labels = kiln_calloc(n, sizeof(*s->labels));
    if (!used || !s->labels) {
        kiln_free(used);
        return -ENOMEM;
    }
    mark_labels(s->batch, used);
    for (uint32_t i = 0; i < n; i++) {
        if (used[i])
            s->labels[s->n_labels++] = (struct label_key){s->batch->dict.attrs[i].key, 1};
    }
    fold_labels(s);
    kiln_free(used);
    return 0;
}

/* ---- text ---- */

static void put_field(struct kiln_buf *out, const char *name)
{
    kiln_buf_printf(out, "  %-12s", name);
}

static void print_file(const struct subject *s, struct kiln_buf *out)
{
    const struct kiln_decode_info *info = &s->input->info;

    put_field(out, "format");
    kiln_buf_puts(out, kiln_format_info(info->format)->name);
    if (info->revision[0])
        kiln_buf_printf(out, ", revision %s", info->revision);
    kiln_buf_printf(out, " (%s)\n", kiln_format_info(info->format)->text);
    put_field(out, "size");
    kiln_format_value(out, (double)s->input->file_bytes, KILN_STR("bytes"));
    if (info->compression) {
        kiln_buf_printf(out, " %s, ", info->compression);
        kiln_format_value(out, (double)info->raw_bytes, KILN_STR("bytes"));
        kiln_buf_puts(out, " uncompressed");
    }
    kiln_buf_puts(out, ", ");
    kiln_format_value(out, (double)kiln_batch_bytes(s->batch), KILN_STR("bytes"));
    kiln_buf_puts(out, " in memory\n");
}

static void print_dictionary(const struct subject *s, struct kiln_buf *out)
{
    const struct kiln_dict *d = &s->batch->dict;
    const struct {
        uint32_t n;
        const char *noun;
    } tables[] = {
        {d->n_strings, "string"},     {d->n_functions, "function"}, {d->n_mappings, "mapping"},
        {d->n_locations, "location"}, {d->n_stacks, "stack"},       {d->n_links, "link"},
        {d->n_attrs, "attribute"},
    };

    put_field(out, "dictionary");
    for (size_t i = 0; i < KILN_ARRAY_LEN(tables); i++) {
        kiln_buf_puts(out, i ? ", " : "");
        kiln_report_count(out, tables[i].n - 1, tables[i].noun);
    }
    kiln_buf_putc(out, '\n');
}

static void print_labels(const struct subject *s, struct kiln_buf *out)
{
    if (!s->n_labels)
        return;
    put_field(out, "labels");
    for (uint32_t i = 0; i < s->n_labels; i++) {
        if (i)
            kiln_buf_puts(out, ", ");
        kiln_cli_put_safe(out, kiln_batch_str(s->batch, s->labels[i].key));
        kiln_buf_printf(out, " (%u)", s->labels[i].n_values);
    }
    kiln_buf_putc(out, '\n');
}

static const struct kiln_column columns[] = {
    {"type", KILN_LEFT, KILN_CUT_END},   {"start", KILN_LEFT, KILN_KEEP},
    {"duration", KILN_RIGHT, KILN_KEEP}, {"samples", KILN_RIGHT, KILN_KEEP},
    {"total", KILN_RIGHT, KILN_KEEP},    {"rate", KILN_RIGHT, KILN_KEEP},
};

static void add_profile(const struct subject *s, struct kiln_table *table, uint32_t profile)
{
    const struct kiln_profile *p = &s->batch->profiles[profile];
    const struct kiln_type *type = &s->types[profile];
    double total = (double)profile_total(s, profile);
    struct kiln_buf id;

    kiln_buf_init(&id, 1 << 20);
    kiln_type_id(type, &id);
    kiln_cli_put_safe(kiln_table_cell(table, KILN_STYLE_PLAIN), kiln_buf_str(&id));
    kiln_buf_done(&id);
    put_time(kiln_table_cell(table, KILN_STYLE_PLAIN), p->time_ns);
    kiln_report_duration(kiln_table_cell(table, KILN_STYLE_PLAIN), p->duration_ns);
    kiln_format_value(kiln_table_cell(table, KILN_STYLE_PLAIN), p->n_samples, KILN_STR("count"));
    kiln_report_number(kiln_table_cell(table, KILN_STYLE_PLAIN), total, type->unit);
    kiln_format_rate(kiln_table_cell(table, KILN_STYLE_PLAIN), total, type, p->duration_ns);
}

static void print_scope(struct subject *s, const struct kiln_scope *scope, struct kiln_buf *out)
{
    struct kiln_table table;
    uint32_t n = scope->n_profiles < s->profiles_left ? scope->n_profiles : s->profiles_left;

    if (scope->name) {
        kiln_buf_puts(out, "    scope ");
        kiln_cli_put_safe(out, kiln_batch_str(s->batch, scope->name));
        kiln_buf_putc(out, ' ');
        kiln_cli_put_safe(out, kiln_batch_str(s->batch, scope->version));
        kiln_buf_putc(out, '\n');
    }
    kiln_table_init(&table, columns, KILN_ARRAY_LEN(columns));
    for (uint32_t i = 0; i < n; i++)
        add_profile(s, &table, scope->first_profile + i);
    if (n)
        kiln_table_print(&table, &s->cli->term, 4, out);
    kiln_table_done(&table);
    s->profiles_left -= n;
}

static void print_text(struct subject *s)
{
    struct kiln_buf *out = &s->cli->out;
    const struct kiln_batch *batch = s->batch;

    kiln_term_put(&s->cli->term, out, KILN_STYLE_STRONG, kiln_str_of(kiln_cli_file_name(s->path)));
    kiln_buf_putc(out, '\n');
    print_file(s, out);
    put_field(out, "holds");
    kiln_report_count(out, batch->n_resources, "resource");
    kiln_buf_puts(out, ", ");
    kiln_report_count(out, batch->n_profiles, "profile");
    kiln_buf_puts(out, ", ");
    kiln_report_count(out, batch->n_samples, "sample");
    kiln_buf_putc(out, '\n');
    print_dictionary(s, out);
    print_labels(s, out);
    for (uint32_t i = 0; i < batch->n_resources && s->profiles_left; i++) {
        const struct kiln_resource *resource = &batch->resources[i];

        kiln_buf_printf(out, "\n  resource %u  ", i + 1);
        put_set(out, batch, resource->attrs);
        kiln_buf_putc(out, '\n');
        for (uint32_t k = 0; k < resource->n_scopes; k++)
            print_scope(s, &batch->scopes[resource->first_scope + k], out);
    }
    if (!s->profiles_left && batch->n_profiles > s->cli->args.limit)
        kiln_buf_printf(out, "\n... %u more profiles (-n 0 shows all)\n",
                        batch->n_profiles - s->cli->args.limit);
}

/* ---- JSON ---- */

static void put_count(struct kiln_json_out *w, const char *name, uint64_t count)
{
    kiln_json_put_name(w, name);
    kiln_json_put_u64(w, count);
}

static void put_text(struct kiln_json_out *w, const char *name, struct kiln_str text)
{
    kiln_json_put_name(w, name);
    kiln_json_put_str(w, text);
}

static void json_file(const struct subject *s, struct kiln_json_out *w)
{
    const struct kiln_decode_info *info = &s->input->info;

    put_text(w, "file", kiln_str_of(s->path));
    put_text(w, "format", kiln_str_of(kiln_format_info(info->format)->name));
    if (info->revision[0])
        put_text(w, "revision", kiln_str_of(info->revision));
    if (info->compression)
        put_text(w, "compression", kiln_str_of(info->compression));
    put_count(w, "bytes", s->input->file_bytes);
    put_count(w, "raw_bytes", info->raw_bytes);
    put_count(w, "memory_bytes", kiln_batch_bytes(s->batch));
    put_count(w, "samples", s->batch->n_samples);
}

static void json_dictionary(const struct kiln_dict *d, struct kiln_json_out *w)
{
    kiln_json_put_name(w, "dictionary");
    kiln_json_put_object(w);
    put_count(w, "strings", d->n_strings);
    put_count(w, "functions", d->n_functions);
    put_count(w, "mappings", d->n_mappings);
    put_count(w, "locations", d->n_locations);
    put_count(w, "stacks", d->n_stacks);
    put_count(w, "links", d->n_links);
    put_count(w, "attributes", d->n_attrs);
    kiln_json_end_object(w);
}

static void json_labels(const struct subject *s, struct kiln_json_out *w)
{
    kiln_json_put_name(w, "labels");
    kiln_json_put_array(w);
    for (uint32_t i = 0; i < s->n_labels; i++) {
        kiln_json_put_object(w);
        put_text(w, "key", kiln_batch_str(s->batch, s->labels[i].key));
        put_count(w, "values", s->labels[i].n_values);
        kiln_json_end_object(w);
    }
    kiln_json_end_array(w);
}

static void json_profile(const struct subject *s, struct kiln_json_out *w, uint32_t profile)
{
    const struct kiln_profile *p = &s->batch->profiles[profile];
    struct kiln_buf id;

    kiln_buf_init(&id, 1 << 20);
    kiln_type_id(&s->types[profile], &id);
    kiln_json_put_object(w);
    put_text(w, "type", kiln_buf_str(&id));
    put_count(w, "time_ns", p->time_ns);
    put_count(w, "duration_ns", p->duration_ns);
    put_count(w, "samples", p->n_samples);
    kiln_json_put_name(w, "total");
    kiln_json_put_i64(w, profile_total(s, profile));
    kiln_json_end_object(w);
    kiln_buf_done(&id);
}

static void json_set(const struct subject *s, struct kiln_json_out *w, uint32_t set)
{
    const struct kiln_dict *d = &s->batch->dict;
    struct kiln_buf text;

    kiln_buf_init(&text, 1 << 26);
    kiln_json_put_name(w, "attributes");
    kiln_json_put_object(w);
    for (uint32_t i = 0; i < d->sets[set].n; i++) {
        const struct kiln_attr *attr = &d->attrs[d->members[d->sets[set].first + i]];

        kiln_buf_clear(&text);
        put_value(&text, s->batch, &attr->value);
        kiln_json_put_name_str(w, kiln_batch_str(s->batch, attr->key));
        kiln_json_put_str(w, kiln_buf_str(&text));
    }
    kiln_json_end_object(w);
    kiln_buf_done(&text);
}

static void json_resource(const struct subject *s, struct kiln_json_out *w,
                          const struct kiln_resource *resource)
{
    kiln_json_put_object(w);
    json_set(s, w, resource->attrs);
    kiln_json_put_name(w, "profiles");
    kiln_json_put_array(w);
    for (uint32_t k = 0; k < resource->n_scopes; k++) {
        const struct kiln_scope *scope = &s->batch->scopes[resource->first_scope + k];

        for (uint32_t i = 0; i < scope->n_profiles; i++)
            json_profile(s, w, scope->first_profile + i);
    }
    kiln_json_end_array(w);
    kiln_json_end_object(w);
}

static void print_json(struct subject *s)
{
    struct kiln_json_out w;

    kiln_json_out_init(&w, &s->cli->out, 2);
    kiln_json_put_object(&w);
    json_file(s, &w);
    json_dictionary(&s->batch->dict, &w);
    json_labels(s, &w);
    kiln_json_put_name(&w, "resources");
    kiln_json_put_array(&w);
    for (uint32_t i = 0; i < s->batch->n_resources; i++)
        json_resource(s, &w, &s->batch->resources[i]);
    kiln_json_end_array(&w);
    kiln_json_end_object(&w);
    kiln_buf_putc(&s->cli->out, '\n');
}

/* ---- the command ---- */

static int describe(struct kiln_cli *cli, const char *path, const struct kiln_input *input)
{
    struct subject s = {.cli = cli, .path = path, .input = input, .batch = input->batch};
    struct kiln_err err = {0};
    int r = kiln_types_of_batch(s.batch, false, &s.types);

    s.profiles_left = cli->args.limit ? cli->args.limit : UINT32_MAX;
    if (r == 0)
        r = find_labels(&s);
    if (r == 0 && cli->args.json)
        print_json(&s);
    else if (r == 0)
        print_text(&s);
    kiln_free(s.types);
    kiln_free(s.labels);
    if (r == 0)
        return KILN_EXIT_WELL;
    kiln_err_set(&err, r, NULL, "%s", kiln_err_text(r));
    return kiln_cli_fail(path, &err);
}

static int run(struct kiln_cli *cli)
{
    int code = KILN_EXIT_WELL;

    for (uint32_t i = 0; i < cli->args.operands.n && code == 0; i++) {
        const char *path = cli->args.operands.items[i];
        struct kiln_input input;

        code = kiln_input_open(cli, path, &input);
        if (code)
            return code;
        if (i && !cli->args.json)
            kiln_buf_putc(&cli->out, '\n');
        code = describe(cli, path, &input);
        kiln_input_close(&input);
    }
    return code;
}

static const struct kiln_option options[] = {
    KILN_OPT_LIMIT("describe at most N profiles, 0 for all (20)"),
    KILN_OPT_WIDE,
    KILN_OPT_JSON,
    KILN_OPT_END,
};
static const struct kiln_option_group group = {"Report", options};

const struct kiln_command kiln_cmd_info = {
    .name = "info",
    .summary = "what a file is and what it holds",
    .operands = "FILE...",
    .operands_min = 1,
    .operands_max = KILN_OPERANDS_ANY,
    .about =
        "Tells the format of each file (for OTLP also the revision), how it is compressed, its "
        "sizes, the labels of its samples, and for each resource its profiles: type, time, "
        "duration, number of samples, total and rate.",
    .groups = {&group, &kiln_group_input},
    .examples = {{"kiln info examples/checkout.pb.gz", "what is in it"},
                 {"kiln info --json examples/checkout.pb.gz", "the same for a program"}},
    .defaults = {.limit = 20},
    .run = run,
};
