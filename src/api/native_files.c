/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers as files of the formats Kiln writes.  A picture is drawn from a tree with a limit of
 * nodes; all others hold every stack, and are refused where they do not fit the question's memory.
 */
#include <errno.h>
#include <stdio.h>

#include "api/native_int.h"
#include "codec/pprof.h"
#include "codec/svg.h"
#include "core/flame_tree.h"

#define FILE_BYTES ((size_t)64 << 20)

static const char *type_of(enum kiln_format format)
{
    switch (format) {
    case KILN_FORMAT_PPROF:
        return "application/vnd.google.protobuf+gzip";
    case KILN_FORMAT_OTLP:
        return "application/x-protobuf";
    case KILN_FORMAT_OTLP_JSON:
    case KILN_FORMAT_SPEEDSCOPE:
        return "application/json";
    case KILN_FORMAT_SVG:
        return "image/svg+xml";
    case KILN_FORMAT_DOT:
        return "text/vnd.graphviz; charset=utf-8";
    default:
        return "text/plain; charset=utf-8";
    }
}

void kiln_native_title(const struct kiln_ask *ask, struct kiln_buf *out)
{
    const struct kiln_question *question = &ask->question;

    for (uint32_t i = 0; i < question->n_matchers; i++) {
        const struct kiln_matcher *m = &question->matchers[i];

        if (m->op == KILN_MATCH_EQ && (kiln_str_eq(m->name, KILN_STR("service_name")) ||
                                       kiln_str_eq(m->name, KILN_STR("service.name")))) {
            kiln_buf_add_str(out, m->value);
            break;
        }
    }
    kiln_buf_putc(out, '\0');
}

static bool has_losses(const struct kiln_pprof_losses *l)
{
    return l->timestamps || l->profile_ids || l->scopes || l->periods || l->attributes ||
           l->values_as_text || l->overflows;
}

static int encode(struct kiln_native_call *call, const struct kiln_native_export *what)
{
    struct kiln_pprof_losses losses = {0};
    const struct kiln_encode_opts opts = {
        .format = what->format, .view = what->view, .title = what->title, .losses = &losses};
    int r = kiln_encode(what->merged->profile, &opts, &call->body, &call->err);

    if (r == KILN_E_LIMIT)
        snprintf(call->known, sizeof(call->known),
                 "; a file may have %zu MiB here: ask for a shorter time or fewer services",
                 call->body.max >> 20);
    if (r == 0 && what->format == KILN_FORMAT_PPROF && has_losses(&losses))
        kiln_native_note(call, "pprof_losses", "pprof cannot say all of it");
    return r;
}

/* A quarter of what the question may use, for the encoded bytes. */
static size_t file_bytes(const struct kiln_ask *ask)
{
    size_t most = ask->question.leash->memory_max / 4;

    return most && most < FILE_BYTES ? most : FILE_BYTES;
}

void kiln_native_is_file(struct kiln_native_call *call, enum kiln_format format)
{
    call->content_type = type_of(format);
    snprintf(call->disposition, sizeof(call->disposition), "%s; filename=\"profile%s\"",
             format == KILN_FORMAT_SVG ? "inline" : "attachment", kiln_format_info(format)->ending);
}

/* ---- pictures ---- */

static int draw(struct kiln_native_call *call, const struct kiln_type *type,
                const struct kiln_native_export *what)
{
    const struct kiln_merged *merged = what->merged;
    const struct kiln_flame_facts facts = {.type = *type,
                                           .count = merged->basis.count,
                                           .time_ns = merged->basis.min_ns,
                                           .duration_ns = merged->basis.covered_ns,
                                           .n_profiles = (uint32_t)merged->basis.n_profiles};
    const struct kiln_svg_opts opts = {.title = what->title};
    struct kiln_view *view;
    int r = kiln_flame_view_new(merged->flame, &facts, &view, &call->err);

    if (r < 0)
        return r;
    r = kiln_svg_encode_view(view, &opts, &call->body, &call->err);
    kiln_view_free(view);
    return r;
}

int kiln_native_encode(struct kiln_native_call *call, struct kiln_ask *ask,
                       const struct kiln_native_export *what)
{
    int r;

    if (what->merged->flame)
        kiln_native_note_flame(call, what->merged->flame);
    call->body.max = file_bytes(ask);
    r = kiln_native_room(call, ask, call->body.max);
    if (r == 0)
        r = what->merged->flame ? draw(call, &ask->type, what) : encode(call, what);
    if (r < 0)
        call->body.max = FILE_BYTES; /* for the error */
    else
        kiln_native_is_file(call, what->format);
    return r;
}

static int encode_merged(struct kiln_native_call *call, struct kiln_ask *ask,
                         const struct kiln_merged *merged, enum kiln_format format)
{
    struct kiln_native_export what = {.format = format, .merged = merged};
    struct kiln_buf title;
    int r;

    kiln_buf_init(&title, 4096);
    kiln_native_title(ask, &title);
    if (!title.error && title.len > 1)
        what.title = title.ptr;
    r = kiln_native_encode(call, ask, &what);
    kiln_buf_done(&title);
    return r;
}

int kiln_native_file(struct kiln_native_call *call, struct kiln_ask *ask, enum kiln_format format)
{
    bool picture = format == KILN_FORMAT_SVG;
    const struct kiln_merge_wants wants = {.nodes_max = picture ? call->args.nodes : 0,
                                           .profile = !picture,
                                           .exact = !picture || call->args.exact};
    struct kiln_merged *merged;
    int r = kiln_ask_merge(ask, &wants, &merged, &call->err);

    if (r < 0)
        return r;
    kiln_native_note_basis(call, &merged->basis);
    r = encode_merged(call, ask, merged, format);
    kiln_merged_free(merged);
    return r;
}
