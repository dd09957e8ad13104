/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of formats, and the way in and out: undo the compression, find the format, decode; make
 * a view where a format shows one sample type, encode, compress.
 */
#include <stdio.h>

#include "base/compress.h"
#include "base/mem.h"
#include "codec/codec.h"
#include "codec/collapsed.h"
#include "codec/dot.h"
#include "codec/gperftools.h"
#include "codec/jfr.h"
#include "codec/otlp.h"
#include "codec/otlp_json.h"
#include "codec/perf.h"
#include "codec/pprof.h"
#include "codec/speedscope.h"
#include "codec/svg.h"
#include "codec/text_tree.h"

#define INPUT_BYTES_DEFAULT ((size_t)256 << 20)

static const struct kiln_format_info formats[KILN_FORMAT_COUNT] = {
    [KILN_FORMAT_UNKNOWN] = {"unknown", "", "unknown", false, false},
#define X(suffix, name, ending, text, in, out)                                                     \
    [KILN_FORMAT_##suffix] = {name, ending, text, in, out},
    KILN_FORMAT_MAP(X)
#undef X
};

const struct kiln_format_info *kiln_format_info(enum kiln_format format)
{
    return &formats[format];
}

enum kiln_format kiln_format_named(struct kiln_str name)
{
    for (enum kiln_format f = KILN_FORMAT_UNKNOWN + 1; f < KILN_FORMAT_COUNT; f++) {
        if (kiln_str_eq(name, kiln_str_of(formats[f].name)))
            return f;
    }
    return KILN_FORMAT_UNKNOWN;
}

enum kiln_format kiln_format_of_path(struct kiln_str path)
{
    enum kiln_format best = KILN_FORMAT_UNKNOWN;

    for (enum kiln_format f = KILN_FORMAT_UNKNOWN + 1; f < KILN_FORMAT_COUNT; f++) {
        if (kiln_str_ends(path, kiln_str_of(formats[f].ending)) &&
            strlen(formats[f].ending) > strlen(formats[best].ending))
            best = f; /* .speedscope.json before .json */
    }
    return best;
}

/* ---- decoding ---- */

typedef bool detector(struct kiln_str content);
typedef int decoder(struct kiln_str content, struct kiln_builder *b, struct kiln_err *err);

/* In the order of asking: a format that is sure of itself comes before one that is not. */
static const struct {
    enum kiln_format format;
    detector *detect;
    decoder *decode; /* NULL: OTLP, which has more to say */
    bool is_text;    /* the batch keeps nothing of it */
} readers[] = {
    {KILN_FORMAT_JFR, kiln_jfr_detect, kiln_jfr_decode, false},
    {KILN_FORMAT_GPERFTOOLS, kiln_gperftools_detect, kiln_gperftools_decode, false},
    {KILN_FORMAT_OTLP, kiln_otlp_detect, NULL, false},
    {KILN_FORMAT_PPROF, kiln_pprof_detect, kiln_pprof_decode, false},
    {KILN_FORMAT_OTLP_JSON, kiln_otlp_json_detect, kiln_otlp_json_decode, true},
    {KILN_FORMAT_SPEEDSCOPE, kiln_speedscope_detect, kiln_speedscope_decode, true},
    {KILN_FORMAT_PERF, kiln_perf_detect, kiln_perf_decode, true},
    {KILN_FORMAT_COLLAPSED, kiln_collapsed_detect, kiln_collapsed_decode, true},
};

enum kiln_format kiln_format_detect(struct kiln_str content)
{
    for (size_t i = 0; i < KILN_ARRAY_LEN(readers); i++) {
        if (readers[i].detect(content))
            return readers[i].format;
    }
    return KILN_FORMAT_UNKNOWN;
}

static int decode_otlp(struct kiln_str content, const struct kiln_decode_opts *opts,
                       struct kiln_builder *b, struct kiln_decode_info *info, struct kiln_err *err)
{
    struct kiln_otlp_opts otlp = {
        .revision = opts->otlp_revision ? kiln_otlp_revision_named(kiln_str_of(opts->otlp_revision))
                                        : KILN_OTLP_AUTO,
    };
    struct kiln_otlp_info found;
    int r = kiln_otlp_decode(content, &otlp, b, &found, err);

    snprintf(info->revision, sizeof(info->revision), "%s", kiln_otlp_revision_name(found.revision));
    return r;
}

static int decode_content(struct kiln_str content, const struct kiln_decode_opts *opts,
                          struct kiln_builder *b, struct kiln_decode_info *info,
                          struct kiln_err *err)
{
    if (info->format == KILN_FORMAT_OTLP)
        return decode_otlp(content, opts, b, info, err);
    for (size_t i = 0; i < KILN_ARRAY_LEN(readers); i++) {
        if (readers[i].format == info->format)
            return readers[i].decode(content, b, err);
    }
    return kiln_err_set(err, KILN_E_UNSUPPORTED, NULL, "%s is a format that can only be written",
                        formats[info->format].name);
}

/* The uncompressed content, in memory of its own. */
static int own_content(struct kiln_str data, size_t max, struct kiln_decode_info *info,
                       struct kiln_buf *content, struct kiln_err *err)
{
    enum kiln_compression compression = kiln_compression_of(data);
    int r;

    info->compression = compression == KILN_PLAIN ? NULL : kiln_compression_name(compression);
    kiln_buf_init(content, max);
    r = kiln_decompress(compression, data, content, err);
    if (r < 0)
        kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    info->raw_bytes = content->len;
    return r;
}

static int find_format(struct kiln_str content, const struct kiln_decode_opts *opts,
                       struct kiln_decode_info *info, struct kiln_err *err)
{
    if (content.len == 0)
        return kiln_err_set(err, KILN_E_UNKNOWN, NULL, "the input is empty");
    info->format = opts->format ? opts->format : kiln_format_detect(content);
    if (info->format == KILN_FORMAT_UNKNOWN)
        info->format = opts->fallback;
    if (info->format != KILN_FORMAT_UNKNOWN)
        return 0;
    return kiln_err_set(err, KILN_E_UNKNOWN, NULL,
                        "this is no profile in any format that Kiln reads");
}

int kiln_decode_into(struct kiln_str content, const struct kiln_decode_opts *opts,
                     struct kiln_builder *b, struct kiln_decode_info *info, struct kiln_err *err)
{
    int r;

    *info = (struct kiln_decode_info){.raw_bytes = content.len};
    r = find_format(content, opts, info, err);
    return r < 0 ? r : decode_content(content, opts, b, info, err);
}

/* True if a batch of this format may point into its content. */
static bool keeps_content(enum kiln_format format)
{
    for (size_t i = 0; i < KILN_ARRAY_LEN(readers); i++) {
        if (readers[i].format == format)
            return !readers[i].is_text;
    }
    return true;
}

/* Decodes `content`, whose memory goes to the batch or is freed. */
static int decode_owned(struct kiln_buf *content, const struct kiln_decode_opts *opts,
                        struct kiln_batch **ret_batch, struct kiln_decode_info *info,
                        struct kiln_err *err)
{
    struct kiln_str text = kiln_buf_str(content);
    struct kiln_builder *b;
    char *memory;
    size_t len;
    int r = find_format(text, opts, info, err);

    if (r == 0)
        r = kiln_builder_new(opts->limits.memory_bytes ? &opts->limits : NULL, &b);
    if (r < 0) {
        kiln_buf_done(content);
        return r;
    }
    if (keeps_content(info->format)) {
        kiln_buf_take(content, &memory, &len);
        kiln_builder_adopt(b, memory, len);
    }
    r = kiln_builder_error(b);
    if (r == 0)
        r = decode_content(text, opts, b, info, err);
    kiln_buf_done(content);
    if (r < 0) {
        kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
        kiln_builder_free(b);
        return r;
    }
    return kiln_builder_finish(b, ret_batch, err);
}

int kiln_decode(struct kiln_str data, const struct kiln_decode_opts *opts,
                struct kiln_batch **ret_batch, struct kiln_decode_info *info, struct kiln_err *err)
{
    struct kiln_decode_opts none = {0};
    struct kiln_decode_info unused;
    struct kiln_buf content;
    size_t max;
    int r;

    opts = opts ? opts : &none;
    info = info ? info : &unused;
    *info = (struct kiln_decode_info){0};
    max = opts->input_bytes ? opts->input_bytes : INPUT_BYTES_DEFAULT;
    r = own_content(data, max, info, &content, err);
    if (r < 0) {
        kiln_buf_done(&content);
        return r;
    }
    return decode_owned(&content, opts, ret_batch, info, err);
}

/* ---- encoding ---- */

static int encode_pprof(const struct kiln_batch *batch, const struct kiln_encode_opts *opts,
                        struct kiln_buf *out, struct kiln_err *err)
{
    struct kiln_pprof_opts pprof = {.losses = opts->losses};
    struct kiln_buf raw;
    int r;

    if (opts->no_compression)
        return kiln_pprof_encode(batch, &pprof, out, err);
    kiln_buf_init(&raw, out->max);
    r = kiln_pprof_encode(batch, &pprof, &raw, err);
    if (r == 0)
        r = kiln_compress(KILN_GZIP, 0, kiln_buf_str(&raw), out);
    if (r < 0)
        kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    kiln_buf_done(&raw);
    return r;
}

/* Formats that show one sample type. */
static int encode_view(struct kiln_batch *batch, const struct kiln_encode_opts *opts,
                       struct kiln_buf *out, struct kiln_err *err)
{
    struct kiln_view *view;
    int r = kiln_view_new(batch, &opts->view, &view, err);

    if (r < 0)
        return r;
    switch (opts->format) {
    case KILN_FORMAT_SVG:
        r = kiln_svg_encode_view(view, &(struct kiln_svg_opts){.title = opts->title}, out, err);
        break;
    case KILN_FORMAT_DOT:
        r = kiln_dot_encode(view, &(struct kiln_dot_opts){.title = opts->title}, out, err);
        break;
    case KILN_FORMAT_TREE:
        r = kiln_text_tree_encode_view(view, &(struct kiln_text_tree_opts){.title = opts->title},
                                       out, err);
        break;
    case KILN_FORMAT_SPEEDSCOPE:
        r = kiln_speedscope_encode(view, out, err);
        break;
    default:
        r = kiln_collapsed_encode(view, out, err);
    }
    kiln_view_free(view);
    return r;
}

int kiln_encode(struct kiln_batch *batch, const struct kiln_encode_opts *opts, struct kiln_buf *out,
                struct kiln_err *err)
{
    switch (opts->format) {
    case KILN_FORMAT_OTLP:
        return kiln_otlp_encode(batch, NULL, out, err);
    case KILN_FORMAT_OTLP_JSON:
        return kiln_otlp_json_encode(batch, out, err);
    case KILN_FORMAT_PPROF:
        return encode_pprof(batch, opts, out, err);
    case KILN_FORMAT_COLLAPSED:
    case KILN_FORMAT_SPEEDSCOPE:
    case KILN_FORMAT_SVG:
    case KILN_FORMAT_DOT:
    case KILN_FORMAT_TREE:
        return encode_view(batch, opts, out, err);
    default:
        return kiln_err_set(err, KILN_E_UNSUPPORTED, NULL, "%s is a format that can only be read",
                            formats[opts->format].name);
    }
}
