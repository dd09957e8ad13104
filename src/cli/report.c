/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "cli/report.h"
#include "codec/caption.h"

#define UNIT_BYTES_MAX 64u

double kiln_share(double part, double whole)
{
    return whole != 0 ? part / fabs(whole) : 0;
}

void kiln_report_number(struct kiln_buf *out, double value, struct kiln_str unit)
{
    struct kiln_buf text;

    unit.len = unit.len < UNIT_BYTES_MAX ? unit.len : UNIT_BYTES_MAX;
    kiln_buf_init(&text, 8 * UNIT_BYTES_MAX);
    kiln_format_value(&text, value, unit);
    kiln_cli_put_safe(out, kiln_buf_str(&text));
    kiln_buf_done(&text);
}

void kiln_report_share(struct kiln_buf *out, double share)
{
    if (share == 0)
        kiln_buf_putc(out, '.');
    else if (fabs(share) < 0.0005)
        kiln_buf_puts(out, share < 0 ? "-0.0%" : "<0.1%");
    else
        kiln_buf_printf(out, "%.1f%%", share * 100);
}

void kiln_report_value(struct kiln_buf *out, double value, const struct kiln_type *type)
{
    if (value == 0)
        kiln_buf_putc(out, '.');
    else
        kiln_report_number(out, value, type->unit);
}

void kiln_report_duration(struct kiln_buf *out, uint64_t duration_ns)
{
    if (duration_ns)
        kiln_format_value(out, (double)duration_ns, KILN_STR("nanoseconds"));
}

void kiln_report_amount(struct kiln_buf *out, double value, const struct kiln_type *type,
                        uint64_t duration_ns)
{
    size_t before;

    kiln_report_number(out, value, type->unit);
    if (!duration_ns)
        return;
    kiln_buf_puts(out, type->level ? " over " : " in ");
    kiln_report_duration(out, duration_ns);
    before = out->len;
    kiln_buf_puts(out, " (");
    kiln_format_rate(out, value, type, duration_ns);
    if (out->len == before + 2)
        out->len = before;
    else
        kiln_buf_putc(out, ')');
}

void kiln_report_count(struct kiln_buf *out, double count, const char *noun)
{
    kiln_format_value(out, count, KILN_STR("count"));
    kiln_buf_printf(out, " %s%s", noun, count == 1 ? "" : "s");
}

/* How many samples, unless the value is their number, and of how many profiles, unless of one. */
static void put_sources(struct kiln_buf *out, const struct kiln_view *view)
{
    /* Values that are no multiple of the period give fractions of samples. */
    double count = view->count > 0 && view->count < 1 ? 1 : round(view->count);

    if (count != (double)view->total) {
        kiln_buf_puts(out, ", ");
        kiln_report_count(out, count, "sample");
    }
    if (view->n_profiles > 1) {
        kiln_buf_puts(out, " of ");
        kiln_report_count(out, view->n_profiles, "profile");
    }
}

void kiln_report_head(const struct kiln_cli *cli, const struct kiln_view *view,
                      struct kiln_buf *out)
{
    struct kiln_buf name;

    kiln_buf_init(&name, 4096);
    kiln_caption_type(&view->type, KILN_QUOTE_NONE, &name);
    kiln_term_put(&cli->term, out, KILN_STYLE_STRONG, kiln_buf_str(&name));
    kiln_buf_done(&name);
    kiln_buf_puts(out, ": ");
    kiln_report_amount(out, (double)view->total, &view->type, view->duration_ns);
    if (view->total != view->total_unfiltered) {
        kiln_buf_puts(out, ", ");
        if (view->total)
            kiln_report_share(out, kiln_share((double)view->total, (double)view->total_unfiltered));
        else
            kiln_buf_puts(out, "nothing");
        kiln_buf_puts(out, " of ");
        kiln_report_number(out, (double)view->total_unfiltered, view->type.unit);
    }
    put_sources(out, view);
    kiln_buf_putc(out, '\n');
}

int kiln_report_no_function(const char *pattern, struct kiln_err *err)
{
    return kiln_err_set(err, KILN_E_NOMATCH, NULL,
                        "no function matches \"%.100s\" (`kiln top -n 0` lists all)", pattern);
}

static void put_place(struct kiln_buf *out, const struct kiln_frame *frame)
{
    bool named = frame->file.len != 0;

    kiln_cli_put_safe(out, named ? frame->file : frame->module);
    if (named && frame->line > 0)
        kiln_buf_printf(out, ":%lld", (long long)frame->line);
}

void kiln_report_frame(struct kiln_table *table, const struct kiln_frame *frame)
{
    struct kiln_buf *name = kiln_table_cell(table, KILN_STYLE_PLAIN);

    kiln_cli_put_safe(name, frame->name);
    if (frame->inlined)
        kiln_buf_puts(name, " (inline)");
    put_place(kiln_table_cell(table, KILN_STYLE_FAINT), frame);
}

static void put_type_id(struct kiln_json_out *w, const struct kiln_type *type)
{
    struct kiln_buf id;

    kiln_buf_init(&id, 1 << 20);
    kiln_type_id(type, &id);
    kiln_json_put_name(w, "type");
    kiln_json_put_str(w, kiln_buf_str(&id));
    kiln_buf_done(&id);
}

void kiln_json_put_view(struct kiln_json_out *w, const struct kiln_view *view)
{
    put_type_id(w, &view->type);
    kiln_json_put_name(w, "unit");
    kiln_json_put_str(w, view->type.unit);
    kiln_json_put_name(w, "total");
    kiln_json_put_i64(w, view->total);
    kiln_json_put_name(w, "total_unfiltered");
    kiln_json_put_i64(w, view->total_unfiltered);
    kiln_json_put_name(w, "samples");
    kiln_json_put_double(w, view->count);
    kiln_json_put_name(w, "profiles");
    kiln_json_put_u64(w, view->n_profiles);
    kiln_json_put_name(w, "time_ns");
    kiln_json_put_u64(w, view->time_ns);
    kiln_json_put_name(w, "duration_ns");
    kiln_json_put_u64(w, view->duration_ns);
}

void kiln_json_put_frame(struct kiln_json_out *w, const struct kiln_frame *frame)
{
    kiln_json_put_name(w, "name");
    kiln_json_put_str(w, frame->name);
    if (frame->file.len) {
        kiln_json_put_name(w, "file");
        kiln_json_put_str(w, frame->file);
    }
    if (frame->line > 0) {
        kiln_json_put_name(w, "line");
        kiln_json_put_i64(w, frame->line);
    }
    if (frame->module.len) {
        kiln_json_put_name(w, "module");
        kiln_json_put_str(w, frame->module);
    }
    if (frame->address) {
        kiln_json_put_name(w, "address");
        kiln_json_put_u64(w, frame->address);
    }
    if (frame->inlined) {
        kiln_json_put_name(w, "inlined");
        kiln_json_put_bool(w, true);
    }
}

void kiln_report_source_line(struct kiln_buf *out, struct kiln_str text)
{
    for (bool first = true; text.ptr; first = false) {
        struct kiln_str part = kiln_str_cut(&text, '\t');

        if (!first)
            kiln_buf_puts(out, "    ");
        kiln_cli_put_safe(out, part);
    }
}
