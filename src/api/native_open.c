/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /api/v1/files: a file of any format Kiln reads, looked at and forgotten.
 *
 *   body ─▶ batch ─▶ a view of one type ─▶ a flame, a table   as /api/v1/query answers
 *             └────▶ a file of another format                 as kiln convert writes it
 *
 * It takes the memory of a question, reserved before anything is read, in sixteenths: eight for the
 * content and the batch, four for the view, four for what is made of it.  The answer's own bytes
 * come on top, as with any question.
 */
#include <errno.h>
#include <stdio.h>

#include "api/native_int.h"
#include "base/sat.h"
#include "core/flame_tree.h"

#define MEMORY_MIN   ((size_t)4 << 20)
#define BYTES_A_BYTE 16u /* of memory, at most, for each of an uncompressed file */
#define DENSE        4u  /* how many times smaller a compressed file is, at least */
#define TYPES_MAX    256u
#define NAME_SHOWN   256u

static const char *const formats[] = {"json",      "flamegraph", "top",       "timeline",
                                      "pprof",     "otlp",       "otlp-json", "speedscope",
                                      "collapsed", "svg",        "dot",       NULL};
enum { FORMAT_JSON, FORMAT_FLAMEGRAPH, FORMAT_TOP, FORMAT_TIMELINE, FORMAT_FILES };

struct opened {
    struct kiln_batch *batch;
    struct kiln_decode_info info;
    struct kiln_type *types; /* parallel to the batch's profiles */
    struct kiln_view *view;  /* NULL: no format needs it */
    struct kiln_merged merged;
    struct kiln_timed *timed; /* NULL: no timeline is wanted */
    struct kiln_window range;
    size_t memory; /* reserved */
};

static void opened_done(struct opened *o)
{
    kiln_timed_free(o->timed);
    kiln_flame_free(o->merged.flame);
    kiln_view_free(o->view);
    kiln_free(o->types);
    kiln_batch_unref(o->batch);
}

/* ---- memory ---- */

/* What the body comes to, as far as it says; it may lie, and then it does not fit. */
static size_t plain_bytes(const struct kiln_request *request)
{
    enum kiln_compression encoding = request->encoding;
    size_t hint;

    if (encoding == KILN_PLAIN)
        encoding = kiln_compression_of(request->body);
    if (encoding == KILN_PLAIN)
        return request->body.len;
    hint = kiln_decompressed_hint(encoding, request->body);
    return hint > request->body.len * DENSE ? hint : request->body.len * DENSE;
}

/* What uncompressing takes beside it. */
static size_t window_bytes(const struct kiln_request *request)
{
    enum kiln_compression encoding = request->encoding;

    if (encoding == KILN_PLAIN)
        encoding = kiln_compression_of(request->body);
    return kiln_decompress_window(encoding, request->body);
}

static int reserve(struct kiln_native_call *call, struct kiln_ask *ask, struct opened *o)
{
    struct kiln_leash *leash = ask->question.leash;
    size_t most = leash->memory_max / 4 * 3; /* the rest is for the answer */
    size_t plain = plain_bytes(call->request);

    o->memory = plain < most / BYTES_A_BYTE ? MEMORY_MIN + plain * BYTES_A_BYTE : most;
    if (o->memory > most)
        o->memory = most;
    return kiln_leash_reserve(leash, o->memory + window_bytes(call->request), &call->err);
}

static size_t sixteenths(const struct opened *o, size_t n)
{
    return o->memory / 16 * n;
}

/* What is too large for the memory says how much there is; anything else is the file's fault. */
static int blame(struct kiln_native_call *call, const struct opened *o, int code)
{
    if (code == KILN_E_LIMIT)
        snprintf(call->known, sizeof(call->known),
                 "; a file like this may take %zu MiB here (kiln convert has no such limit)",
                 o->memory >> 20);
    if (code == KILN_E_LIMIT || code == -ENOMEM || code == -ETIMEDOUT || code == -ECANCELED)
        return code;
    kiln_err_set(&call->err, code, "body", "%s", kiln_err_text(code));
    return -EBADMSG;
}

/* ---- reading ---- */

static int decode(struct kiln_native_call *call, struct opened *o, struct kiln_str bytes)
{
    struct kiln_decode_opts opts = {.limits = kiln_limits_default, .input_bytes = sixteenths(o, 4)};
    int r;

    opts.limits.memory_bytes = sixteenths(o, 8);
    r = kiln_decode(bytes, &opts, &o->batch, &o->info, &call->err);
    if (r == 0 && o->batch->n_profiles == 0)
        r = kiln_err_set(&call->err, -ENODATA, "body", "there are no profiles in it");
    return r;
}

/* The body's own compression, which HTTP knows of; then the file's. */
static int read_body(struct kiln_native_call *call, struct opened *o)
{
    const struct kiln_request *request = call->request;
    struct kiln_buf plain;
    int r;

    if (request->encoding == KILN_PLAIN)
        return decode(call, o, request->body);
    kiln_buf_init(&plain, sixteenths(o, 4));
    r = kiln_decompress(request->encoding, request->body, &plain, &call->err);
    if (r == 0)
        r = decode(call, o, kiln_buf_str(&plain));
    kiln_buf_done(&plain);
    return r;
}

static void find_range(struct opened *o)
{
    for (uint32_t i = 0; i < o->batch->n_profiles; i++) {
        const struct kiln_profile *p = &o->batch->profiles[i];
        uint64_t end = p->time_ns + p->duration_ns;

        if (p->time_ns == 0)
            continue;
        if (o->range.start_ns == 0 || p->time_ns < o->range.start_ns)
            o->range.start_ns = p->time_ns;
        if (end >= p->time_ns && end > o->range.end_ns)
            o->range.end_ns = end;
    }
}

static int open_body(struct kiln_native_call *call, struct opened *o)
{
    int r = read_body(call, o);

    if (r == 0)
        r = kiln_types_of_batch(o->batch, false, &o->types);
    if (r < 0)
        return blame(call, o, r);
    find_range(o);
    return 0;
}

/* One type of it: the one that is asked for, or the usual one. */
static int choose_type(struct kiln_native_call *call, struct opened *o)
{
    const struct kiln_view_opts opts = {.sample_type = call->args.type,
                                        .memory_bytes = sixteenths(o, 4)};
    int r = kiln_view_new(o->batch, &opts, &o->view, &call->err);

    if (r == KILN_E_NOMATCH || r == KILN_E_AMBIGUOUS) {
        call->param = "type";
        return r;
    }
    if (r < 0)
        return blame(call, o, r);
    o->merged.total = o->view->total;
    o->merged.basis = (struct kiln_basis){
        .n_profiles = o->view->n_profiles,
        .count = o->view->count,
        .min_ns = o->range.start_ns,
        .max_ns = o->range.end_ns,
        .covered_ns = o->view->duration_ns,
    };
    return 0;
}

static int make_flame(struct kiln_native_call *call, struct opened *o, int format)
{
    const struct kiln_flame_wants wants = {
        .nodes_max = format == FORMAT_TOP ? 0 : call->args.nodes,
        .functions = format == FORMAT_JSON || format == FORMAT_TOP,
        .memory_bytes = sixteenths(o, 4),
    };
    int r = kiln_flame_of_view(o->view, &wants, &o->merged.flame, &call->err);

    return r < 0 ? blame(call, o, r) : 0;
}

static int make_timed(struct kiln_native_call *call, struct opened *o)
{
    struct kiln_timed_opts opts = {.type = &o->view->type, .memory_bytes = sixteenths(o, 4)};
    int r = kiln_native_rows(call, &opts.limit);

    if (r < 0)
        return r;
    r = kiln_timed_new(o->batch, &opts, &o->timed, &call->err);
    return r < 0 ? blame(call, o, r) : 0;
}

/* ---- the answer ---- */

/* Its name, as far as anybody reads it: cut between two letters. */
static struct kiln_str shown_name(const struct kiln_native_call *call)
{
    struct kiln_str name = call->args.name;

    if (name.len <= NAME_SHOWN)
        return name;
    for (name.len = NAME_SHOWN; name.len && ((uint8_t)name.ptr[name.len] & 0xc0) == 0x80;)
        name.len--;
    return name;
}

static void put_file(struct kiln_native_call *call, const struct opened *o)
{
    kiln_json_put_name(&call->w, "file");
    kiln_json_put_object(&call->w);
    kiln_native_put_text(call, "name", shown_name(call));
    kiln_native_put_text(call, "format", kiln_str_of(kiln_format_info(o->info.format)->name));
    kiln_native_put_u64(call, "bytes", call->request->body.len);
    kiln_json_end_object(&call->w);
}

static int64_t total_of(const struct opened *o, const struct kiln_type *type)
{
    bool made = kiln_type_is_made(type, o->types, o->batch->n_profiles);
    int64_t total = 0;

    for (uint32_t i = 0; i < o->batch->n_profiles; i++) {
        const struct kiln_profile *p = &o->batch->profiles[i];

        if (!kiln_type_counts(type, made, &o->types[i]))
            continue;
        for (uint32_t k = 0; k < p->n_samples; k++) {
            int64_t raw = kiln_sample_total(o->batch, &o->batch->samples[p->first_sample + k]);

            total = kiln_sat_add(total, kiln_sat_mul(raw, o->types[i].scale));
        }
    }
    return total;
}

static void put_type(struct kiln_native_call *call, const struct opened *o,
                     const struct kiln_type *type)
{
    kiln_json_put_object(&call->w);
    kiln_native_put_type_members(call, type);
    kiln_native_put_i64(call, "total", total_of(o, type));
    kiln_json_end_object(&call->w);
}

/* Each type once, in the order of the file; then what they add up to. */
static void put_types(struct kiln_native_call *call, const struct opened *o)
{
    uint32_t firsts[TYPES_MAX], n = 0;

    kiln_json_put_name(&call->w, "types");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; i < o->batch->n_profiles; i++) {
        uint32_t k = 0;

        while (k < n && !kiln_type_equal(&o->types[firsts[k]], &o->types[i]))
            k++;
        if (k < n)
            continue;
        if (n == TYPES_MAX) {
            kiln_native_note(call, "rows_cut", "the file has more than %u types", TYPES_MAX);
            break;
        }
        firsts[n++] = i;
        put_type(call, o, &o->types[i]);
    }
    if (kiln_type_is_made(&kiln_type_wall.type, o->types, o->batch->n_profiles))
        put_type(call, o, &kiln_type_wall.type);
    kiln_json_end_array(&call->w);
}

static int answer_json(struct kiln_native_call *call, struct kiln_ask *ask, struct opened *o,
                       int format)
{
    bool is_timeline = format == FORMAT_TIMELINE;
    int r = choose_type(call, o);

    if (r == 0)
        r = is_timeline ? make_timed(call, o) : make_flame(call, o, format);
    if (r == 0)
        r = kiln_native_room(call, ask,
                             is_timeline ? kiln_native_timed_bytes(o->timed)
                                         : kiln_native_flame_bytes(o->merged.flame));
    if (r < 0)
        return r;
    kiln_native_begin_answer(call, &o->view->type, o->range, &o->merged.basis);
    put_file(call, o);
    put_types(call, o);
    r = is_timeline ? kiln_native_put_timed(call, o->timed)
                    : kiln_native_put_merged(call, &o->merged);
    kiln_native_end_answer(call);
    return r;
}

/* Formats that hold several types get the whole file. */
static int answer_file(struct kiln_native_call *call, struct kiln_ask *ask, struct opened *o,
                       enum kiln_format format)
{
    struct kiln_native_export what = {
        .format = format,
        .merged = &o->merged,
        .view = {.sample_type = call->args.type, .memory_bytes = sixteenths(o, 4)},
    };
    char title[NAME_SHOWN + 1];
    int r = choose_type(call, o);

    if (r == 0 && format == KILN_FORMAT_SVG)
        r = make_flame(call, o, FORMAT_FLAMEGRAPH);
    if (r < 0)
        return r;
    o->merged.profile = o->batch;
    ask->type = o->view->type;
    snprintf(title, sizeof(title), "%.*s", KILN_STR_ARG(shown_name(call)));
    what.title = title[0] ? title : NULL;
    return kiln_native_encode(call, ask, &what);
}

static int answer(struct kiln_native_call *call, struct kiln_ask *ask, int format)
{
    struct opened o = {0};
    int r = reserve(call, ask, &o);

    if (r < 0)
        return r;
    r = open_body(call, &o);
    if (r == 0)
        r = kiln_leash_check(ask->question.leash);
    if (r == 0 && format < FORMAT_FILES)
        r = answer_json(call, ask, &o, format);
    else if (r == 0)
        r = answer_file(call, ask, &o, kiln_format_named(kiln_str_of(formats[format])));
    opened_done(&o);
    kiln_leash_give(ask->question.leash, o.memory);
    return r;
}

int kiln_native_run_open(struct kiln_native_call *call)
{
    const struct kiln_native_wish wish = {.any_type = true, .all_times = true, .no_stacks = true};
    struct kiln_ask *ask;
    int format = 0, r;

    if (call->args.format.len)
        format = kiln_native_choose(call, "format", call->args.format, formats);
    if (format < 0)
        return format;
    r = kiln_native_ask(call, &wish, &ask);
    if (r < 0)
        return r;
    r = answer(call, ask, format);
    kiln_native_close(call, ask);
    return r;
}
