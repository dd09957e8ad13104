/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /ingest: one profile of any format that Pyroscope's agents ever sent, described by
 * parameters.
 *
 *   name            app{label=value,...} (ingest_name.h); required
 *   from, until     when; for recordings, and for profiles that do not say it themselves
 *   sampleRate      of folded stacks and trees; 100 unless it is a number from 0 on
 *   spyName         becomes the label pyroscope_spy
 *   format          pprof, jfr, trie, tree, lines, speedscope; anything else: folded stacks
 *   units, aggregationType   follow from the type, and are not read
 *
 * Without a format, multipart/form-data is a pprof (field profile, with sample_type_config beside
 * it); a recording may come so too (jfr, labels).  Bodies and fields may be gzip.
 */
#include <errno.h>

#include "base/mem.h"
#include "codec/collapsed.h"
#include "codec/jfr.h"
#include "codec/speedscope.h"
#include "pipeline/receivers/arrival.h"
#include "pipeline/receivers/ingest_name.h"
#include "pipeline/receivers/ingest_tree.h"
#include "pipeline/receivers/jfr_labels.h"
#include "pipeline/receivers/multipart.h"
#include "pipeline/receivers/push.h"

#define PARAM_MAX    (64u << 10)
#define RATE_DEFAULT 100u
#define RATE_MAX     1000000000u

enum param { NAME, FROM, UNTIL, RATE, SPY, FORMAT, N_PARAMS };
static const char *const param_names[N_PARAMS] = {"name",       "from",    "until",
                                                  "sampleRate", "spyName", "format"};

enum format { FOLDED, LINES, TRIE, TREE, SPEEDSCOPE, PPROF, JFR };

struct ingest {
    struct kiln_arrival arrival; /* first */
    struct kiln_request *request;
    struct kiln_buf params[N_PARAMS];
    struct kiln_buf content; /* of the request, where it was compressed */
    struct kiln_buf labels;  /* of a recording */
    struct kiln_tags tags;
    struct kiln_str family; /* as the sender named it */
    struct kiln_type_config config;
    const struct kiln_named_type *named;
    enum format format;
    uint32_t rate;
};

static struct kiln_str param(const struct ingest *in, enum param p)
{
    return kiln_buf_str(&in->params[p]);
}

/* ---- the answer ---- */

static void answer(struct ingest *in, const struct kiln_outcome *outcome)
{
    struct kiln_outcome whole = *outcome;

    if (outcome->code == 0 && outcome->rejected)
        whole.code = outcome->err.code ? outcome->err.code : KILN_E_MALFORMED;
    kiln_receivers_answered(in->arrival.owner, KILN_RECEIVER_PYROSCOPE, whole.code, in->request);
    kiln_receivers_reply(in->request, &whole);
}

static void finish(struct kiln_arrival *arrival, const struct kiln_outcome *outcome)
{
    struct ingest *in = (struct ingest *)arrival;

    if (outcome)
        answer(in, outcome);
    for (int i = 0; i < N_PARAMS; i++)
        kiln_buf_done(&in->params[i]);
    kiln_free(in);
}

/* ---- parameters ---- */

static enum format format_of(struct kiln_str name, struct kiln_str content_type)
{
    static const struct {
        const char *name, *content_type;
        enum format format;
    } formats[] = {{"trie", "binary/octet-stream+trie", TRIE},
                   {"tree", "binary/octet-stream+tree", TREE},
                   {"lines", "", LINES},
                   {"jfr", "", JFR},
                   {"pprof", "", PPROF},
                   {"speedscope", "", SPEEDSCOPE}};

    for (size_t i = 0; i < KILN_ARRAY_LEN(formats); i++) {
        if (kiln_str_eq(name, kiln_str_of(formats[i].name)) ||
            (formats[i].content_type[0] &&
             kiln_str_eq(content_type, kiln_str_of(formats[i].content_type))))
            return formats[i].format;
    }
    return kiln_str_contains(content_type, KILN_STR("multipart/form-data")) ? PPROF : FOLDED;
}

static int read_params(struct ingest *in, struct kiln_err *err)
{
    int64_t rate;
    int r;

    for (int i = 0; i < N_PARAMS; i++) {
        r = kiln_request_param(in->request, param_names[i], &in->params[i]);
        if (r < 0)
            return kiln_err_set(err, r == KILN_E_LIMIT ? KILN_E_MALFORMED : r, param_names[i],
                                "the parameter is damaged or too long");
    }
    in->format = format_of(param(in, FORMAT), kiln_request_header(in->request, "content-type"));
    in->rate = RATE_DEFAULT;
    if (kiln_str_parse_i64(param(in, RATE), &rate) == 0 && rate >= 0 && rate <= RATE_MAX)
        in->rate = (uint32_t)rate;
    in->tags.from_ns = in->tags.until_ns = in->request->received_ns;
    if (param(in, FROM).len)
        in->tags.from_ns = kiln_ingest_time(param(in, FROM), in->request->received_ns);
    in->tags.moves = in->format == JFR && param(in, FROM).len;
    if (param(in, UNTIL).len)
        in->tags.until_ns = kiln_ingest_time(param(in, UNTIL), in->request->received_ns);
    return 0;
}

/* The name says the service; of formats that do not say it themselves, also the type. */
static int read_name(struct ingest *in, struct kiln_err *err)
{
    struct kiln_str spy = param(in, SPY).len ? param(in, SPY) : KILN_STR("unknown");
    struct kiln_str app;
    int r = kiln_ingest_name_parse(param(in, NAME), &app, &in->tags, err);

    if (r == 0 && in->format < PPROF)
        r = kiln_named_type_cut(&app, &in->named, err);
    if (r == 0 && !kiln_tags_get(&in->tags, KILN_STR("pyroscope_spy")).len)
        r = kiln_tags_add(&in->tags, KILN_STR("pyroscope_spy"), spy, err);
    if (r < 0)
        return r;
    in->family = in->tags.family;
    if (!in->tags.service.len)
        in->tags.service = app;
    else if (!kiln_tags_get(&in->tags, KILN_STR("app_name")).len)
        r = kiln_tags_add(&in->tags, KILN_STR("app_name"), app, err);
    return r;
}

/* ---- the body ---- */

static int take_labels(struct ingest *in, struct kiln_str content, struct kiln_err *err)
{
    if (in->labels.len)
        return kiln_err_set(err, KILN_E_MALFORMED, "labels", "the field is there twice");
    return kiln_arrival_content(&in->arrival, kiln_compression_of(content), content, &in->labels,
                                err);
}

static int take_part(struct ingest *in, const struct kiln_part *part, struct kiln_str *profile,
                     struct kiln_err *err)
{
    const char *wanted = in->format == JFR ? "jfr" : "profile";

    if (kiln_str_eq(part->name, kiln_str_of(wanted))) {
        *profile = part->content;
        return 0;
    }
    if (kiln_str_eq(part->name, KILN_STR("prev_profile")))
        return kiln_err_set(err, KILN_E_UNSUPPORTED, "prev_profile",
                            "differences to a profile before are not taken: send them as such");
    if (kiln_str_eq(part->name, KILN_STR("sample_type_config")))
        return kiln_type_config_parse(part->content, &in->config, err);
    if (in->format == JFR && kiln_str_eq(part->name, KILN_STR("labels")))
        return take_labels(in, part->content, err);
    return 0;
}

static int take_form(struct ingest *in, struct kiln_str content_type, struct kiln_str body,
                     struct kiln_str *profile, struct kiln_err *err)
{
    struct kiln_multipart m;
    struct kiln_part part;
    int r = kiln_multipart_init(&m, content_type, body, err);

    *profile = KILN_STR_NONE;
    while (r == 0 && (r = kiln_multipart_next(&m, &part, err)) > 0)
        r = take_part(in, &part, profile, err);
    if (r == 0 && !profile->ptr)
        r = kiln_err_set(err, KILN_E_MALFORMED, "multipart", "there is no field \"%s\"",
                         in->format == JFR ? "jfr" : "profile");
    return r;
}

static struct kiln_recipe recipe_of(struct ingest *in)
{
    return (struct kiln_recipe){
        .tags = &in->tags,
        .names = &in->config,
        .repairs_types = kiln_str_eq(param(in, SPY), KILN_STR("dotnetspy")),
    };
}

static int decode_pprof(void *context, struct kiln_str content, struct kiln_builder *b,
                        struct kiln_err *err)
{
    struct kiln_recipe recipe = recipe_of(context);

    return kiln_recipe_decode(&recipe, content, b, err);
}

static int decode_format(struct ingest *in, struct kiln_str content, struct kiln_builder *b,
                         struct kiln_err *err)
{
    switch (in->format) {
    case JFR:
        return kiln_jfr_decode(content, b, err);
    case SPEEDSCOPE:
        return kiln_speedscope_decode(content, b, err);
    case TRIE:
        return kiln_ingest_trie(content, b, err);
    case TREE:
        return kiln_ingest_tree(content, b, err);
    case LINES:
        return kiln_ingest_lines(content, b, err);
    default:
        return kiln_collapsed_decode(content, b, err);
    }
}

static int decode(void *context, struct kiln_str content, struct kiln_builder *b,
                  struct kiln_err *err)
{
    struct ingest *in = context;
    int r;

    in->tags.family = in->family;
    kiln_tags_prepare(&in->tags, b);
    r = decode_format(in, content, b, err);
    if (r == 0)
        r = kiln_builder_error(b);
    if (r == 0 && in->format == JFR && in->labels.len)
        r = kiln_jfr_labels_apply(kiln_buf_str(&in->labels), b, err);
    if (r < 0)
        return r;
    if (in->named)
        kiln_named_type_apply(in->named, in->rate, &in->tags, b);
    return kiln_tags_apply(&in->tags, b);
}

static int take_profile(struct ingest *in, struct kiln_str profile, struct kiln_err *err)
{
    enum kiln_compression compression = kiln_compression_of(profile);
    struct kiln_recipe recipe = recipe_of(in);
    bool is_pprof = in->format == PPROF;
    int r = kiln_arrival_take(&in->arrival,
                              &(struct kiln_source){.data = profile,
                                                    .compression = compression,
                                                    .keeps = is_pprof,
                                                    .decode = is_pprof ? decode_pprof : decode,
                                                    .context = in},
                              err);

    if (r == 0 && is_pprof && in->request->encoding == KILN_PLAIN)
        kiln_arrival_keep(&in->arrival, &recipe, profile, compression);
    return r;
}

static int take(struct ingest *in, struct kiln_err *err)
{
    struct kiln_request *request = in->request;
    struct kiln_str type = kiln_request_header(request, "content-type"), profile = request->body;
    int r = kiln_receivers_enter(in->arrival.owner, request, err);

    if (r == 0)
        r = read_params(in, err);
    if (r == 0)
        r = read_name(in, err);
    if (r == 0 && request->encoding != KILN_PLAIN) {
        r = kiln_arrival_content(&in->arrival, request->encoding, request->body, &in->content, err);
        profile = kiln_buf_str(&in->content);
    }
    if (r == 0 && kiln_str_contains(type, KILN_STR("multipart/form-data")))
        r = take_form(in, type, profile, &profile, err);
    if (r == 0 && profile.len)
        r = take_profile(in, profile, err);
    kiln_buf_done(&in->content);
    kiln_buf_done(&in->labels);
    return r;
}

static void ingest(struct kiln_request *request)
{
    struct ingest *in = kiln_calloc(1, sizeof(*in));
    struct kiln_err err = {0};
    int r;

    if (!in) {
        kiln_receivers_reply(request, &(struct kiln_outcome){.code = -ENOMEM});
        return;
    }
    in->request = request;
    for (int i = 0; i < N_PARAMS; i++)
        kiln_buf_init(&in->params[i], PARAM_MAX);
    kiln_arrival_init(&in->arrival, request->context, KILN_RECEIVER_PYROSCOPE, request);
    in->arrival.finish = finish;
    in->arrival.waits = request;
    r = take(in, &err);
    if (r == 0 && in->arrival.n_samples)
        kiln_arrival_send(&in->arrival);
    else
        kiln_arrival_refuse(&in->arrival, r, &err);
}

int kiln_pyroscope_receiver_add(struct kiln_receivers *receivers, struct kiln_router *router)
{
    static const char *const paths[] = {"/ingest", "/pyroscope/ingest"};
    int r = 0;

    for (size_t i = 0; r == 0 && i < KILN_ARRAY_LEN(paths); i++)
        r = kiln_router_add(router, &(struct kiln_route){.method = "POST",
                                                         .path = paths[i],
                                                         .access = KILN_ACCESS_WRITE,
                                                         .handler = ingest,
                                                         .context = receivers});
    if (r < 0)
        return r;
    return kiln_rpc_add(router, &(struct kiln_rpc_route){.path = "/push.v1.PusherService/Push",
                                                         .access = KILN_ACCESS_WRITE,
                                                         .handler = kiln_push_handle,
                                                         .context = receivers});
}
