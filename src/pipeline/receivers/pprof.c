/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /api/v1/profiles: one file in any format that Kiln reads, pprof above all, compressed or
 * not.
 *
 *   service    becomes service.name
 *   type       the family of its types where the file cannot say it: block, mutex, ...
 *   time       when it began, instead of what the file says (base/when.h)
 *   format     the name of a format (codec/codec.h); else it is found out
 *   any other  an attribute of the resource
 *
 * The answer is an account in JSON: {"format":"pprof","profiles":2,"samples":700,"rejected":0}.
 *
 * POST /v1/pprof, of the OpenTelemetry Collector's receiver, is the same with an empty answer, 204.
 */
#include <errno.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/when.h"
#include "codec/codec.h"
#include "pipeline/receivers/arrival.h"
#include "pipeline/receivers/tags.h"

#define ANSWER_MAX 4096u
#define PUSH_PATH  "/v1/pprof"
#define TEXTS_MAX  (64u << 10) /* all parameters */

struct upload {
    struct kiln_arrival arrival; /* first */
    struct kiln_request *request;
    struct kiln_tags tags;
    struct kiln_buf texts; /* what the tags borrow; never moves */
    struct kiln_buf content;
    enum kiln_format format;
    struct kiln_decode_info info;
};

/* ---- the answer ---- */

static void put_number(struct kiln_json_out *w, const char *name, uint64_t value)
{
    kiln_json_put_name(w, name);
    kiln_json_put_u64(w, value);
}

static void reply(const struct upload *up, const struct kiln_outcome *outcome)
{
    struct kiln_json_out w;
    struct kiln_buf body;

    if (kiln_str_eq(up->request->path, KILN_STR(PUSH_PATH))) {
        kiln_request_reply(up->request, &(struct kiln_reply){.status = 204});
        return;
    }
    kiln_buf_init(&body, ANSWER_MAX);
    kiln_json_out_init(&w, &body, 0);
    kiln_json_put_object(&w);
    kiln_json_put_name(&w, "format");
    kiln_json_put_str(&w, kiln_str_of(kiln_format_info(up->info.format)->name));
    put_number(&w, "profiles", up->arrival.n_profiles);
    put_number(&w, "samples", up->arrival.n_samples);
    put_number(&w, "rejected", outcome->rejected);
    if (outcome->rejected) {
        kiln_json_put_name(&w, "why");
        kiln_json_put_str(&w, kiln_str_of(outcome->err.text));
    }
    kiln_json_end_object(&w);
    kiln_buf_putc(&body, '\n');
    kiln_request_reply(up->request, &(struct kiln_reply){.status = 200,
                                                         .content_type = "application/json",
                                                         .body = kiln_buf_str(&body)});
    kiln_buf_done(&body);
}

static void answer(struct upload *up, const struct kiln_outcome *outcome)
{
    struct kiln_arrival *arrival = &up->arrival;
    struct kiln_outcome whole = *outcome;

    if (outcome->code == 0 && outcome->rejected && outcome->rejected >= arrival->n_profiles)
        whole.code = outcome->err.code ? outcome->err.code : KILN_E_MALFORMED;
    kiln_receivers_answered(arrival->owner, KILN_RECEIVER_PPROF, whole.code, up->request);
    if (whole.code < 0)
        kiln_receivers_reply(up->request, &whole);
    else
        reply(up, outcome);
}

static void finish(struct kiln_arrival *arrival, const struct kiln_outcome *outcome)
{
    struct upload *up = (struct upload *)arrival;

    if (outcome)
        answer(up, outcome);
    kiln_buf_done(&up->texts);
    kiln_free(up);
}

/* ---- parameters ---- */

static int read_time(struct upload *up, struct kiln_str value, struct kiln_err *err)
{
    int r = kiln_when_parse(value, up->request->received_ns, &up->tags.from_ns);

    up->tags.moves = true;
    return r < 0 ? kiln_err_set(err, KILN_E_MALFORMED, "time",
                                "a time is a Unix time, now-5m, or like 2026-03-01T12:00:00Z")
                 : 0;
}

static int keep(struct upload *up, struct kiln_str text, struct kiln_str *ret)
{
    size_t at = up->texts.len;

    if (up->texts.cap - at < text.len)
        return KILN_E_LIMIT;
    kiln_buf_add_str(&up->texts, text);
    *ret = (struct kiln_str){up->texts.ptr + at, text.len};
    return up->texts.error;
}

static int read_param(struct upload *up, struct kiln_str name, struct kiln_str value,
                      struct kiln_err *err)
{
    struct kiln_str kept_name, kept;

    if (keep(up, name, &kept_name) < 0 || keep(up, value, &kept) < 0)
        return kiln_err_set(err, KILN_E_MALFORMED, NULL, "the parameters are too long");
    if (kiln_str_eq(name, KILN_STR("time")))
        return read_time(up, value, err);
    if (kiln_str_eq(name, KILN_STR("format"))) {
        up->format = kiln_format_named(value);
        return up->format ? 0 : kiln_err_set(err, KILN_E_MALFORMED, "format", "no such format");
    }
    if (kiln_str_eq(name, KILN_STR("service")))
        kept_name = KILN_STR("service_name");
    else if (kiln_str_eq(name, KILN_STR("type")))
        kept_name = KILN_STR("__name__");
    return kiln_tags_add(&up->tags, kept_name, kept, err);
}

static int read_params(struct upload *up, struct kiln_err *err)
{
    struct kiln_params params;
    int r, bad = 0;

    kiln_buf_init(&up->texts, TEXTS_MAX);
    if (!kiln_buf_reserve(&up->texts, up->request->query.len + 1))
        return kiln_err_set(err, KILN_E_MALFORMED, NULL, "the parameters are too long");
    kiln_params_init(&params, up->request->query);
    while (bad == 0 && (r = kiln_params_next(&params)) > 0)
        bad = read_param(up, params.name, params.value, err);
    kiln_params_done(&params);
    if (bad == 0 && r < 0)
        bad = kiln_err_set(err, KILN_E_MALFORMED, NULL, "the parameters are damaged");
    return bad;
}

/* ---- the file ---- */

static int decode(void *context, struct kiln_str content, struct kiln_builder *b,
                  struct kiln_err *err)
{
    struct upload *up = context;
    int r;

    kiln_tags_prepare(&up->tags, b);
    r = kiln_decode_into(content, &(struct kiln_decode_opts){.format = up->format}, b, &up->info,
                         err);
    return r < 0 ? r : kiln_tags_apply(&up->tags, b);
}

/* A pprof can be logged as it came, unless it is compressed twice. */
static void keep_pprof(struct upload *up, enum kiln_compression compression)
{
    const struct kiln_request *request = up->request;

    if (request->encoding == KILN_PLAIN || compression == KILN_PLAIN)
        kiln_arrival_keep(&up->arrival, &(struct kiln_recipe){.tags = &up->tags}, request->body,
                          request->encoding == KILN_PLAIN ? compression : request->encoding);
}

static int take_file(struct upload *up, struct kiln_str file, struct kiln_err *err)
{
    struct kiln_source source = {.data = file,
                                 .compression = kiln_compression_of(file),
                                 .keeps = true,
                                 .decode = decode,
                                 .context = up};
    int r = kiln_arrival_take(&up->arrival, &source, err);

    if (r == 0 && up->info.format == KILN_FORMAT_PPROF)
        keep_pprof(up, source.compression);
    return r;
}

static int take(struct upload *up, struct kiln_err *err)
{
    struct kiln_request *request = up->request;
    struct kiln_str file = request->body;
    int r = kiln_receivers_enter(up->arrival.owner, request, err);

    if (r == 0)
        r = read_params(up, err);
    if (r == 0 && request->encoding != KILN_PLAIN) {
        r = kiln_arrival_content(&up->arrival, request->encoding, request->body, &up->content, err);
        file = kiln_buf_str(&up->content);
    }
    if (r == 0)
        r = take_file(up, file, err);
    kiln_buf_done(&up->content);
    return r;
}

static void upload(struct kiln_request *request)
{
    struct upload *up = kiln_calloc(1, sizeof(*up));
    struct kiln_err err = {0};
    int r;

    if (!up) {
        kiln_receivers_reply(request, &(struct kiln_outcome){.code = -ENOMEM});
        return;
    }
    up->request = request;
    kiln_arrival_init(&up->arrival, request->context, KILN_RECEIVER_PPROF, request);
    up->arrival.finish = finish;
    up->arrival.waits = request;
    r = take(up, &err);
    if (r == 0 && up->arrival.n_samples)
        kiln_arrival_send(&up->arrival);
    else
        kiln_arrival_refuse(&up->arrival, r, &err);
}

static int add(struct kiln_receivers *receivers, struct kiln_router *router, const char *path)
{
    return kiln_router_add(router, &(struct kiln_route){.method = "POST",
                                                        .path = path,
                                                        .access = KILN_ACCESS_WRITE,
                                                        .handler = upload,
                                                        .context = receivers});
}

int kiln_pprof_receiver_add(struct kiln_receivers *receivers, struct kiln_router *router)
{
    return add(receivers, router, "/api/v1/profiles");
}

int kiln_pprof_receiver_add_push(struct kiln_receivers *receivers, struct kiln_router *router)
{
    return add(receivers, router, PUSH_PATH);
}
