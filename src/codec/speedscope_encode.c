/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a view as a file of one sampled profile (see codec/speedscope.c for the form).
 */
#include "base/json.h"
#include "codec/speedscope.h"

static const char *unit_of(struct kiln_str unit)
{
    switch (kiln_unit_kind(unit)) {
    case KILN_UNIT_NANOSECONDS:
        return "nanoseconds";
    case KILN_UNIT_BYTES:
        return "bytes";
    default:
        return "none";
    }
}

static void put_text(struct kiln_json_out *w, const char *name, struct kiln_str text)
{
    kiln_json_put_name(w, name);
    kiln_json_put_str(w, text);
}

static void put_frames(struct kiln_json_out *w, const struct kiln_view *view)
{
    kiln_json_put_name(w, "shared");
    kiln_json_put_object(w);
    kiln_json_put_name(w, "frames");
    kiln_json_put_array(w);
    for (uint32_t i = 0; i < view->n_frames; i++) {
        const struct kiln_frame *frame = &view->frames[i];
        bool has_function = frame->function.len && !frame->address;

        kiln_json_put_object(w);
        put_text(w, "name", has_function ? frame->function : frame->name);
        if (frame->file.len)
            put_text(w, "file", frame->file);
        if (frame->line > 0) {
            kiln_json_put_name(w, "line");
            kiln_json_put_i64(w, frame->line);
        }
        kiln_json_end_object(w);
    }
    kiln_json_end_array(w);
    kiln_json_end_object(w);
}

static void put_samples(struct kiln_json_out *w, const struct kiln_view *view)
{
    kiln_json_put_name(w, "samples");
    kiln_json_put_array(w);
    for (uint32_t i = 0; i < view->n_rows; i++) {
        kiln_json_put_array(w);
        for (uint32_t k = 0; k < view->rows[i].n; k++)
            kiln_json_put_u64(w, view->path[view->rows[i].first + k]);
        kiln_json_end_array(w);
    }
    kiln_json_end_array(w);
    kiln_json_put_name(w, "weights");
    kiln_json_put_array(w);
    for (uint32_t i = 0; i < view->n_rows; i++)
        kiln_json_put_i64(w, view->rows[i].value);
    kiln_json_end_array(w);
}

static void put_profile(struct kiln_json_out *w, const struct kiln_view *view)
{
    kiln_json_put_object(w);
    put_text(w, "type", KILN_STR("sampled"));
    put_text(w, "name", view->type.type);
    put_text(w, "unit", kiln_str_of(unit_of(view->type.unit)));
    kiln_json_put_name(w, "startValue");
    kiln_json_put_i64(w, 0);
    kiln_json_put_name(w, "endValue");
    kiln_json_put_i64(w, view->total);
    put_samples(w, view);
    kiln_json_end_object(w);
}

int kiln_speedscope_encode(const struct kiln_view *view, struct kiln_buf *out, struct kiln_err *err)
{
    struct kiln_json_out w;

    kiln_json_out_init(&w, out, 0);
    kiln_json_put_object(&w);
    put_text(&w, "$schema", KILN_STR("https://www.speedscope.app/file-format-schema.json"));
    put_text(&w, "exporter", KILN_STR("kiln " KILN_VERSION));
    put_text(&w, "name", view->type.name);
    kiln_json_put_name(&w, "activeProfileIndex");
    kiln_json_put_i64(&w, 0);
    put_frames(&w, view);
    kiln_json_put_name(&w, "profiles");
    kiln_json_put_array(&w);
    put_profile(&w, view);
    kiln_json_end_array(&w);
    kiln_json_end_object(&w);
    kiln_buf_putc(out, '\n');
    return out->error ? kiln_err_set(err, out->error, NULL, "%s", kiln_err_text(out->error)) : 0;
}
