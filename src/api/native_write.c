/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that answers are made of.  Arrays of a tree are written number by number without the
 * JSON writer's bookkeeping: there are tens of thousands of them in an answer.
 */
#include "api/native_int.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/when.h"

/* ---- notes ---- */

void kiln_native_note(struct kiln_native_call *call, const char *code, const char *fmt, ...)
{
    struct kiln_native_note *note = &call->notes[call->n_notes];
    va_list args;

    for (uint32_t i = 0; i < call->n_notes; i++)
        if (strcmp(call->notes[i].code, code) == 0)
            return;
    if (call->n_notes == KILN_ARRAY_LEN(call->notes))
        return;
    call->n_notes++;
    note->code = code;
    va_start(args, fmt);
    vsnprintf(note->text, sizeof(note->text), fmt, args);
    va_end(args);
}

void kiln_native_note_damaged(struct kiln_native_call *call, uint32_t n_damaged)
{
    if (n_damaged)
        kiln_native_note(call, "blocks_damaged",
                         "%u damaged files may lack here: this is not everything (`kiln store "
                         "salvage` recovers what can be read)",
                         n_damaged);
}

void kiln_native_note_basis(struct kiln_native_call *call, const struct kiln_basis *basis)
{
    kiln_native_note_damaged(call, basis->n_damaged);
    if (basis->n_time_set)
        kiln_native_note(call, "arrival_times",
                         "%llu profiles came without a usable time and stand at that of arrival",
                         (unsigned long long)basis->n_time_set);
    if (basis->n_unsure)
        kiln_native_note(call, "profiles_unsure",
                         "the number of profiles may be off by %llu: these have samples on both "
                         "sides of the edge of an hour that was rolled up",
                         (unsigned long long)basis->n_unsure);
    if (basis->n_profiles == 0)
        kiln_native_note(call, "nothing_found", "no profile of this selection lies in the range");
    else if (!(basis->count > 0))
        kiln_native_note(call, "no_counts",
                         "nobody knows how many observations there were: no uncertainty is given");
}

void kiln_native_put_notes(struct kiln_native_call *call)
{
    kiln_json_put_name(&call->w, "notes");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; i < call->n_notes; i++) {
        kiln_json_put_object(&call->w);
        kiln_native_put_text(call, "code", kiln_str_of(call->notes[i].code));
        kiln_native_put_text(call, "text", kiln_str_of(call->notes[i].text));
        kiln_json_end_object(&call->w);
    }
    kiln_json_end_array(&call->w);
}

/* ---- members ---- */

void kiln_native_put_text(struct kiln_native_call *call, const char *name, struct kiln_str text)
{
    kiln_json_put_name(&call->w, name);
    kiln_json_put_str(&call->w, text);
}

void kiln_native_put_number(struct kiln_native_call *call, const char *name, double number)
{
    kiln_json_put_name(&call->w, name);
    kiln_json_put_double(&call->w, number);
}

void kiln_native_put_u64(struct kiln_native_call *call, const char *name, uint64_t number)
{
    kiln_json_put_name(&call->w, name);
    kiln_json_put_u64(&call->w, number);
}

void kiln_native_put_i64(struct kiln_native_call *call, const char *name, int64_t number)
{
    kiln_json_put_name(&call->w, name);
    kiln_json_put_i64(&call->w, number);
}

void kiln_native_put_flag(struct kiln_native_call *call, const char *name, bool flag)
{
    kiln_json_put_name(&call->w, name);
    kiln_json_put_bool(&call->w, flag);
}

void kiln_native_put_moment(struct kiln_native_call *call, const char *name, uint64_t ns)
{
    kiln_json_put_name(&call->w, name);
    kiln_json_put_raw_begin(&call->w);
    kiln_when_format(ns, &call->body);
    kiln_json_put_raw_end(&call->w);
}

void kiln_native_put_time(struct kiln_native_call *call, const char *name, uint64_t ns)
{
    if (ns) {
        kiln_native_put_moment(call, name, ns);
        return;
    }
    kiln_json_put_name(&call->w, name);
    kiln_json_put_null(&call->w);
}

void kiln_native_put_said(struct kiln_native_call *call, const char *name, const char *text)
{
    kiln_json_put_name(&call->w, name);
    if (text[0])
        kiln_json_put_str(&call->w, kiln_str_of(text));
    else
        kiln_json_put_null(&call->w);
}

void kiln_native_put_seconds(struct kiln_native_call *call, const char *name, uint64_t ns)
{
    kiln_native_put_number(call, name, (double)ns / 1e9);
}

void kiln_native_put_id(struct kiln_native_call *call, const char *name, const uint8_t *id,
                        size_t size)
{
    static const uint8_t none[16];

    kiln_json_put_name(&call->w, name);
    if (memcmp(id, none, size) == 0) {
        kiln_json_put_null(&call->w);
        return;
    }
    kiln_json_put_raw_begin(&call->w);
    kiln_buf_add_hex(&call->body, id, size);
    kiln_json_put_raw_end(&call->w);
}

void kiln_native_put_type_members(struct kiln_native_call *call, const struct kiln_type *type)
{
    struct kiln_buf id;

    kiln_buf_init(&id, 1 << 16);
    kiln_type_id(type, &id);
    kiln_native_put_text(call, "id", kiln_buf_str(&id));
    kiln_buf_done(&id);
    kiln_native_put_text(call, "name", type->name);
    kiln_native_put_text(call, "type", type->type);
    kiln_native_put_text(call, "unit", type->unit);
    kiln_native_put_text(call, "period_type", type->period_type);
    kiln_native_put_text(call, "period_unit", type->period_unit);
    kiln_native_put_text(call, "kind", type->level ? KILN_STR("level") : KILN_STR("flow"));
}

void kiln_native_put_type(struct kiln_native_call *call, const struct kiln_type *type)
{
    kiln_json_put_name(&call->w, "type");
    kiln_json_put_object(&call->w);
    kiln_native_put_type_members(call, type);
    kiln_json_end_object(&call->w);
}

void kiln_native_put_range(struct kiln_native_call *call, uint64_t from_ns, uint64_t until_ns)
{
    if (until_ns)
        kiln_native_put_moment(call, "from", from_ns);
    else
        kiln_native_put_time(call, "from", from_ns);
    kiln_native_put_time(call, "until", until_ns);
}

/* What rates are over: the time from the first profile to the last.  The time covered
 * would not do: where profiles cover 10 s of each minute, a service alone would have six times the
 * rate that it has among services whose profiles fill the gaps. */
static uint64_t rate_ns(const struct kiln_basis *basis)
{
    uint64_t span = basis->max_ns > basis->min_ns ? basis->max_ns - basis->min_ns : 0;

    return span > basis->covered_ns ? span : basis->covered_ns;
}

void kiln_native_put_basis(struct kiln_native_call *call, const struct kiln_basis *basis)
{
    kiln_json_put_name(&call->w, "basis");
    kiln_json_put_object(&call->w);
    kiln_native_put_u64(call, "profiles", basis->n_profiles);
    kiln_native_put_number(call, "count", basis->count);
    kiln_native_put_time(call, "first", basis->min_ns);
    kiln_native_put_time(call, "last", basis->max_ns);
    kiln_native_put_seconds(call, "covered_seconds", basis->covered_ns);
    kiln_native_put_seconds(call, "rate_seconds", rate_ns(basis));
    kiln_native_put_u64(call, "blocks", basis->n_blocks);
    kiln_native_put_u64(call, "rolled_up", basis->n_rolled);
    kiln_native_put_u64(call, "damaged", basis->n_damaged);
    kiln_native_put_u64(call, "arrival_times", basis->n_time_set);
    kiln_json_end_object(&call->w);
}

static void add_matcher(const struct kiln_matcher *m, struct kiln_buf *out)
{
    static const char *const ops[] = {[KILN_MATCH_EQ] = "=",
                                      [KILN_MATCH_NE] = "!=",
                                      [KILN_MATCH_RE] = "=~",
                                      [KILN_MATCH_NRE] = "!~"};

    kiln_selector_quote(m->name, out);
    kiln_buf_puts(out, ops[m->op]);
    kiln_selector_quote(m->value, out);
}

/* Sides of a diff repeat what both have in common. */
static bool is_said_before(const struct kiln_question *question, uint32_t at)
{
    const struct kiln_matcher *m = &question->matchers[at];

    for (uint32_t i = 0; i < at; i++) {
        const struct kiln_matcher *before = &question->matchers[i];

        if (before->op == m->op && kiln_str_eq(before->name, m->name) &&
            kiln_str_eq(before->value, m->value))
            return true;
    }
    return false;
}

void kiln_native_put_selector(struct kiln_native_call *call, const char *name,
                              const struct kiln_ask *ask)
{
    const struct kiln_question *question = &ask->question;
    struct kiln_buf text;

    kiln_buf_init(&text, 1 << 20);
    kiln_type_id(&ask->type, &text);
    kiln_buf_putc(&text, '{');
    for (uint32_t i = 0; i < question->n_matchers; i++) {
        if (is_said_before(question, i))
            continue;
        if (i)
            kiln_buf_puts(&text, ", ");
        add_matcher(&question->matchers[i], &text);
    }
    kiln_buf_putc(&text, '}');
    kiln_native_put_text(call, name, kiln_buf_str(&text));
    kiln_buf_done(&text);
}

void kiln_native_put_labels(struct kiln_native_call *call, const struct kiln_series *series)
{
    struct kiln_str labels = series->labels, name, value;

    kiln_json_put_name(&call->w, "labels");
    kiln_json_put_object(&call->w);
    kiln_native_put_text(call, "__profile_type__", series->type);
    kiln_native_put_text(call, "service_name", series->service);
    while (kiln_series_label(&labels, &name, &value)) {
        kiln_json_put_name_str(&call->w, name);
        kiln_json_put_str(&call->w, value);
    }
    kiln_json_end_object(&call->w);
}

/* ---- uncertainty ---- */

void kiln_native_put_share(struct kiln_native_call *call, double share)
{
    kiln_json_put_double(&call->w, round(share * 1e6) / 1e6);
}

double kiln_native_half(double share, double count)
{
    const double z = 1.96, extra = z * z;
    double n = count + extra, p = (share * count + extra / 2) / n;

    if (!(count > 0) || !(share >= 0) || share > 1)
        return -1;
    return z * sqrt(p * (1 - p) / n);
}

void kiln_native_put_half(struct kiln_native_call *call, double share, double count)
{
    double half = kiln_native_half(share, count);

    if (half < 0)
        kiln_json_put_null(&call->w);
    else
        kiln_native_put_share(call, half);
}

/* ---- names ---- */

int kiln_native_names_init(struct kiln_native_names *names, uint32_t n)
{
    names->n_used = 0;
    names->number = kiln_calloc(n ? n : 1, sizeof(*names->number));
    names->used = kiln_calloc(n ? n : 1, sizeof(*names->used));
    if (names->number && names->used)
        return 0;
    kiln_native_names_done(names);
    return -ENOMEM;
}

void kiln_native_names_done(struct kiln_native_names *names)
{
    kiln_free(names->number);
    kiln_free(names->used);
    names->number = names->used = NULL;
}

uint32_t kiln_native_names_use(struct kiln_native_names *names, uint32_t old)
{
    if (names->number[old] == 0) {
        names->used[names->n_used++] = old;
        names->number[old] = names->n_used;
    }
    return names->number[old] - 1;
}

void kiln_native_put_names(struct kiln_native_call *call, const struct kiln_native_names *names,
                           const struct kiln_flame_name *all)
{
    static const char *const keys[] = {"names", "files", "modules", "kinds"};

    for (uint32_t k = 0; k < KILN_ARRAY_LEN(keys); k++) {
        kiln_json_put_name(&call->w, keys[k]);
        kiln_json_put_array(&call->w);
        for (uint32_t i = 0; i < names->n_used; i++) {
            const struct kiln_flame_name *name = &all[names->used[i]];
            const struct kiln_str texts[] = {name->name, name->file, name->module, name->kind};

            kiln_json_put_str(&call->w, texts[k]);
        }
        kiln_json_end_array(&call->w);
    }
    kiln_json_put_name(&call->w, "inlined");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; i < names->n_used; i++) {
        if (all[names->used[i]].inlined)
            kiln_json_put_u64(&call->w, i);
    }
    kiln_json_end_array(&call->w);
}

void kiln_native_put_function(struct kiln_native_call *call, const struct kiln_flame_name *name)
{
    kiln_native_put_text(call, "name", name->name);
    kiln_native_put_text(call, "file", name->file);
    kiln_native_put_text(call, "module", name->module);
    kiln_native_put_text(call, "kind", name->kind);
}

/* ---- trees and tables ---- */

/* The number `i` of those that stand `stride` bytes apart. */
#define NTH(first, stride, i) (*(__typeof__(first))((const char *)(first) + (i) * (stride)))

void kiln_native_put_shape(struct kiln_native_call *call, const struct kiln_native_shape *shape,
                           struct kiln_native_names *names)
{
    kiln_json_put_name(&call->w, "name");
    kiln_json_put_array(&call->w);
    for (size_t i = 0; i < shape->n; i++) {
        if (i)
            kiln_buf_putc(&call->body, ',');
        kiln_buf_add_u64(&call->body,
                         kiln_native_names_use(names, NTH(shape->name, shape->stride, i)));
    }
    kiln_json_end_array(&call->w);
    kiln_json_put_name(&call->w, "depth");
    kiln_json_put_array(&call->w);
    for (size_t i = 0; i < shape->n; i++) {
        if (i)
            kiln_buf_putc(&call->body, ',');
        kiln_buf_add_u64(&call->body, NTH(shape->depth, shape->stride, i));
    }
    kiln_json_end_array(&call->w);
}

void kiln_native_put_values(struct kiln_native_call *call, const char *key, const int64_t *first,
                            const struct kiln_native_shape *shape)
{
    kiln_json_put_name(&call->w, key);
    kiln_json_put_array(&call->w);
    for (size_t i = 0; i < shape->n; i++) {
        if (i)
            kiln_buf_putc(&call->body, ',');
        kiln_buf_add_i64(&call->body, NTH(first, shape->stride, i));
    }
    kiln_json_end_array(&call->w);
}

void kiln_native_put_other(struct kiln_native_call *call, uint32_t other,
                           const struct kiln_native_names *names)
{
    kiln_json_put_name(&call->w, "other");
    if (other && names->number[other])
        kiln_json_put_u64(&call->w, names->number[other] - UINT64_C(1));
    else
        kiln_json_put_null(&call->w);
}

static void put_extent(struct kiln_native_call *call, const struct kiln_flame *flame)
{
    kiln_json_put_name(&call->w, "nodes_all");
    if (flame->nodes_all)
        kiln_json_put_u64(&call->w, flame->nodes_all);
    else
        kiln_json_put_null(&call->w);
    kiln_native_put_i64(call, "error_bound", flame->error_bound);
}

void kiln_native_note_bounds(struct kiln_native_call *call, double nodes, double functions)
{
    if (nodes > 0)
        kiln_native_note(
            call, "tree_estimated",
            "the tree was pruned while it was added up: the total of a node may be too "
            "low by up to %.2g%% of everything (exact=1 counts every sample, where memory "
            "suffices)",
            nodes);
    if (functions > 0)
        kiln_native_note(call, "functions_estimated",
                         "there are more functions than memory for them: the values of one may be "
                         "too low by up to %.2g%% of everything, and so much may be in one that is "
                         "not listed",
                         functions);
}

void kiln_native_note_flame(struct kiln_native_call *call, const struct kiln_flame *flame)
{
    if (flame->other)
        kiln_native_note(call, "tree_folded",
                         "the tree shows the nodes with the largest totals; the rest is \"other\" "
                         "below its callers (nodes=N shows more)");
    kiln_native_note_bounds(call, kiln_flame_percent(flame, flame->error_bound), 0);
}

int kiln_native_put_flame(struct kiln_native_call *call, const struct kiln_flame *flame)
{
    const struct kiln_flame_node *nodes = flame->nodes;
    const struct kiln_native_shape shape = {&nodes->name, &nodes->depth, sizeof(*nodes),
                                            flame->n_nodes};
    struct kiln_native_names names;
    int r = kiln_native_names_init(&names, flame->n_names);

    if (r < 0)
        return kiln_err_set(&call->err, r, NULL, "out of memory");
    kiln_native_note_flame(call, flame);
    kiln_json_put_name(&call->w, "flamegraph");
    kiln_json_put_object(&call->w);
    kiln_native_put_shape(call, &shape, &names);
    kiln_native_put_values(call, "self", &nodes->self, &shape);
    kiln_native_put_values(call, "total", &nodes->total, &shape);
    kiln_native_put_names(call, &names, flame->names);
    kiln_native_put_other(call, flame->other, &names);
    put_extent(call, flame);
    kiln_json_end_object(&call->w);
    kiln_native_names_done(&names);
    return 0;
}

void kiln_native_put_part(struct kiln_native_call *call, const char *prefix, int64_t value,
                          int64_t total, double count)
{
    double share = total > 0 ? (double)value / (double)total : 0;
    char name[32];

    snprintf(name, sizeof(name), "%s_share", prefix);
    kiln_json_put_name(&call->w, name);
    kiln_native_put_share(call, share);
    snprintf(name, sizeof(name), "%s_error", prefix);
    kiln_json_put_name(&call->w, name);
    kiln_native_put_half(call, share, count);
}

uint32_t kiln_native_begin_top(struct kiln_native_call *call, uint32_t n_functions, uint32_t limit,
                               int64_t error_bound)
{
    uint32_t n = limit && limit < n_functions ? limit : n_functions;

    if (n < n_functions)
        kiln_native_note(call, "rows_cut",
                         "the table shows %u of %u functions (limit=N shows more, 0 all)", n,
                         n_functions);
    kiln_json_put_name(&call->w, "top");
    kiln_json_put_object(&call->w);
    kiln_native_put_u64(call, "functions", n_functions);
    kiln_native_put_i64(call, "error_bound", error_bound);
    kiln_json_put_name(&call->w, "rows");
    kiln_json_put_array(&call->w);
    return n;
}

void kiln_native_end_top(struct kiln_native_call *call)
{
    kiln_json_end_array(&call->w);
    kiln_json_end_object(&call->w);
}

void kiln_native_put_top(struct kiln_native_call *call, const struct kiln_flame *flame,
                         double count, uint32_t limit)
{
    uint32_t n = kiln_native_begin_top(call, flame->n_functions, limit, flame->functions_bound);

    kiln_native_note_bounds(call, 0, kiln_flame_percent(flame, flame->functions_bound));
    for (uint32_t i = 0; i < n; i++) {
        const struct kiln_flame_function *f = &flame->functions[i];

        kiln_json_put_object(&call->w);
        kiln_native_put_function(call, &flame->names[f->name]);
        kiln_native_put_i64(call, "self", f->self);
        kiln_native_put_i64(call, "total", f->total);
        kiln_native_put_part(call, "self", f->self, flame->total, count);
        kiln_native_put_part(call, "total", f->total, flame->total, count);
        kiln_json_end_object(&call->w);
    }
    kiln_native_end_top(call);
}

size_t kiln_native_flame_bytes(const struct kiln_flame *flame)
{
    size_t bytes = 4096 + (size_t)flame->n_nodes * 32;

    for (uint32_t i = 0; i < flame->n_names; i++) {
        const struct kiln_flame_name *name = &flame->names[i];

        bytes += name->name.len + name->file.len + name->module.len + name->kind.len + 16;
    }
    return bytes;
}
