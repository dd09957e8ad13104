/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "codec/pprof.h"
#include "core/type.h"
#include "intake.h"
#include "net/rpc.h"
#include "pipeline/receivers/recipe.h"
#include "test.h"

#define TEXT_MAX (1u << 16)

/* ---- the consumer ---- */

struct ending {
    struct kiln_delivery *delivery;
    struct kiln_outcome outcome;
};

static void *end_elsewhere(void *context)
{
    struct ending *e = context;

    kiln_delivery_end(e->delivery, &e->outcome);
    free(e);
    return NULL;
}

static void end(struct intake *in, struct kiln_delivery *delivery)
{
    struct ending *e;
    pthread_t thread;

    if (!in->elsewhere) {
        kiln_delivery_end(delivery, &in->outcome);
        return;
    }
    e = malloc(sizeof(*e));
    *e = (struct ending){delivery, in->outcome};
    CHECK_OK(pthread_create(&thread, NULL, end_elsewhere, e));
    pthread_detach(thread);
}

static void consume(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct intake *in = (struct intake *)consumer;
    struct kiln_outcome outcome = {.retry_after_s = 1};
    bool sealed = delivery->seal;
    struct intake_got *got;

    if (atomic_load(&in->busy)) {
        atomic_fetch_sub(&in->busy, 1);
        kiln_delivery_end(delivery, &(struct kiln_outcome){.code = -EAGAIN});
        return;
    }
    if (!kiln_delivery_check(delivery))
        return;
    outcome.code = kiln_delivery_open(delivery, &outcome.err);
    if (outcome.code < 0) {
        kiln_delivery_end(delivery, &outcome);
        return;
    }
    pthread_mutex_lock(&in->lock);
    CHECK(in->n < INTAKE_MAX);
    got = &in->got[in->n++];
    got->batch = kiln_batch_ref(delivery->batch);
    kiln_buf_init(&got->body, 1u << 30);
    kiln_buf_add_str(&got->body, delivery->body);
    kiln_buf_init(&got->recipe, KILN_RECIPE_MAX);
    kiln_buf_add_str(&got->recipe, delivery->recipe);
    got->compression = delivery->body_compression;
    got->rejected = delivery->rejected;
    got->sealed = sealed;
    snprintf(got->tenant, sizeof(got->tenant), "%s", delivery->tenant);
    pthread_mutex_unlock(&in->lock);
    end(in, delivery);
}

static bool has_room(void *context, size_t bytes)
{
    struct intake *in = context;

    (void)bytes;
    return atomic_fetch_add(&in->n_asked, 1) >= atomic_load(&in->full);
}

/* ---- start and stop ---- */

static void listen_and_connect(struct intake *in, const struct intake_opts *opts)
{
    struct kiln_client_opts client = {.token = opts->token, .tenant = opts->tenant};
    struct kiln_err err = {0};
    char address[64];

    snprintf(address, sizeof(address), "127.0.0.1:%u", opts->port);
    CHECK_OK(kiln_server_new(&(struct kiln_server_opts){.workers = 2, .metrics = in->metrics},
                             &in->server));
    CHECK_OK(kiln_server_listen(
        in->server, &(struct kiln_listen_opts){.address = address, .router = in->router}, &in->port,
        &err));
    CHECK_OK(kiln_server_start(in->server, &err));
    snprintf(address, sizeof(address), "http://127.0.0.1:%u", in->port);
    client.server = address;
    CHECK_OK(kiln_client_new(&client, &in->client, &err));
}

void intake_start(struct intake *in, const struct intake_opts *opts)
{
    static const struct intake_opts none = {0};

    opts = opts ? opts : &none;
    memset(in, 0, sizeof(*in));
    in->consumer = (struct kiln_consumer){consume, .takes_sealed = true};
    pthread_mutex_init(&in->lock, NULL);
    kiln_answer_init(&in->answer);
    kiln_pool_init(&in->pool, "ingest", opts->pool_bytes ? opts->pool_bytes : 256u << 20, NULL);
    CHECK_OK(kiln_metrics_new(&in->metrics));
    CHECK_OK(kiln_receivers_new(&(struct kiln_receivers_opts){.next = &in->consumer,
                                                              .pool = &in->pool,
                                                              .patience_ns = opts->patience_ns,
                                                              .has_room = has_room,
                                                              .room_context = in,
                                                              .gate = opts->gate,
                                                              .content_max = opts->content_max,
                                                              .metrics = in->metrics},
                                &in->receivers));
    CHECK_OK(kiln_router_new(&in->router));
    CHECK_OK(kiln_otlp_receiver_add(in->receivers, in->router));
    CHECK_OK(kiln_pyroscope_receiver_add(in->receivers, in->router));
    CHECK_OK(kiln_pprof_receiver_add(in->receivers, in->router));
    kiln_router_fallback(in->router, kiln_rpc_unknown, NULL);
    if (opts->guard.check)
        kiln_router_guard(in->router, opts->guard);
    listen_and_connect(in, opts);
}

/* As the store does it when it replays its log. */
static void follow(const struct intake_got *got)
{
    struct kiln_batch *batch;
    struct kiln_builder *b;
    struct kiln_buf content;
    struct kiln_err err = {0};

    kiln_buf_init(&content, 1u << 30);
    CHECK_OK(kiln_decompress(got->compression, kiln_buf_str(&got->body), &content, NULL));
    CHECK_OK(kiln_builder_new(NULL, &b));
    if (kiln_recipe_follow(kiln_buf_str(&got->recipe), kiln_buf_str(&content), b, &err) < 0)
        fail_msg("recipe: %s: %s", err.where, err.text);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    CHECK(kiln_batch_equal(batch, got->batch));
    kiln_batch_unref(batch);
    kiln_buf_done(&content);
}

void intake_clear(struct intake *in)
{
    pthread_mutex_lock(&in->lock);
    for (uint32_t i = 0; i < in->n; i++) {
        if (in->got[i].recipe.len)
            follow(&in->got[i]);
        kiln_buf_done(&in->got[i].recipe);
        kiln_batch_unref(in->got[i].batch);
        kiln_buf_done(&in->got[i].body);
    }
    in->n = 0;
    pthread_mutex_unlock(&in->lock);
}

void intake_stop(struct intake *in)
{
    kiln_client_free(in->client);
    kiln_receivers_stop(in->receivers);
    kiln_server_stop(in->server, 5000);
    kiln_server_free(in->server);
    kiln_router_free(in->router);
    kiln_receivers_free(in->receivers);
    intake_clear(in);
    kiln_answer_done(&in->answer);
    kiln_metrics_free(in->metrics);
    pthread_mutex_destroy(&in->lock);
    CHECK_EQ(in->pool.used, 0);
}

/* ---- calls ---- */

void intake_call(struct intake *in, const struct kiln_call *call)
{
    struct kiln_err err = {0};

    kiln_answer_done(&in->answer);
    kiln_answer_init(&in->answer);
    CHECK_OK(kiln_client_call(in->client, call, &in->answer, &err));
}

void intake_grpc(struct intake *in, const char *path, struct kiln_str message)
{
    struct kiln_err err = {0};

    kiln_answer_done(&in->answer);
    kiln_answer_init(&in->answer);
    CHECK_OK(kiln_client_grpc(in->client, &(struct kiln_call){.path = path, .body = message},
                              &in->answer, &err));
}

void intake_post(struct intake *in, const char *path, const char *content_type,
                 struct kiln_str body)
{
    intake_call(in,
                &(struct kiln_call){
                    .method = "POST", .path = path, .content_type = content_type, .body = body});
}

/* ---- pprofs ---- */

struct kiln_str intake_pprof(struct kiln_buf *out, const struct kiln_drawn *drawn, uint32_t n)
{
    struct kiln_batch *batch = kiln_test_batch(drawn, n);

    kiln_buf_init(out, 1u << 20);
    CHECK_OK(kiln_pprof_encode(batch, NULL, out, NULL));
    kiln_batch_unref(batch);
    return kiln_buf_str(out);
}

struct kiln_str intake_cpu_pprof(struct kiln_buf *out)
{
    return intake_pprof(out,
                        &(struct kiln_drawn){.stacks = "main;read 3\n",
                                             .type = "cpu",
                                             .unit = "nanoseconds",
                                             .period_type = "cpu",
                                             .period_unit = "nanoseconds",
                                             .period = 10000000,
                                             .time_ns = UINT64_C(1600000000000000000),
                                             .duration_ns = UINT64_C(10000000000)},
                        1);
}

/* ---- texts ---- */

static void put_value(const struct kiln_batch *batch, struct kiln_value value, struct kiln_buf *out)
{
    if (value.kind == KILN_VALUE_STRING)
        kiln_buf_add_str(out, kiln_batch_str(batch, (uint32_t)value.str));
    else if (value.kind == KILN_VALUE_INT)
        kiln_buf_printf(out, "%" PRId64, value.i);
    else
        kiln_buf_puts(out, "?");
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* A set as {a=1,b=2}, sorted by name. */
static void put_set(const struct kiln_batch *batch, uint32_t set, struct kiln_buf *out)
{
    struct kiln_range range = batch->dict.sets[set];
    char texts[32][256];
    struct kiln_buf one;

    CHECK(range.n <= 32);
    for (uint32_t i = 0; i < range.n; i++) {
        const struct kiln_attr *attr = &batch->dict.attrs[batch->dict.members[range.first + i]];

        kiln_buf_init(&one, 255);
        kiln_buf_add_str(&one, kiln_batch_str(batch, attr->key));
        kiln_buf_putc(&one, '=');
        put_value(batch, attr->value, &one);
        snprintf(texts[i], sizeof(texts[i]), "%.*s", (int)one.len, one.ptr);
        kiln_buf_done(&one);
    }
    qsort(texts, range.n, sizeof(texts[0]), by_text);
    for (uint32_t i = 0; i < range.n; i++)
        kiln_buf_printf(out, "%s%s", i ? "," : "{", texts[i]);
    kiln_buf_puts(out, range.n ? "}" : "{}");
}

static void put_sample(const struct kiln_batch *batch, const struct kiln_sample *sample,
                       struct kiln_buf *out)
{
    struct kiln_range stack = batch->dict.stacks[sample->stack];
    const struct kiln_link *link = &batch->dict.links[sample->link];

    kiln_buf_puts(out, "  ");
    for (uint32_t i = stack.n; i-- > 0;) {
        const struct kiln_location *l = &batch->dict.locations[batch->dict.frames[stack.first + i]];
        const struct kiln_function *f =
            &batch->dict.functions[l->n ? batch->dict.lines[l->first].function : 0];

        kiln_buf_add_str(out, kiln_batch_str(batch, f->name));
        if (i)
            kiln_buf_putc(out, ';');
    }
    kiln_buf_printf(out, " %" PRId64, kiln_sample_total(batch, sample));
    if (sample->attrs) {
        kiln_buf_putc(out, ' ');
        put_set(batch, sample->attrs, out);
    }
    if (sample->link) {
        kiln_buf_putc(out, ' ');
        kiln_buf_add_hex(out, link->trace_id, sizeof(link->trace_id));
        kiln_buf_putc(out, '/');
        kiln_buf_add_hex(out, link->span_id, sizeof(link->span_id));
    }
    kiln_buf_putc(out, '\n');
}

static void put_profiles(const struct kiln_batch *batch, uint32_t resource,
                         const struct kiln_scope *scope, const struct kiln_type *types,
                         struct kiln_buf *out)
{
    for (uint32_t i = 0; i < scope->n_profiles; i++) {
        uint32_t at = scope->first_profile + i;
        const struct kiln_profile *p = &batch->profiles[at];

        put_set(batch, batch->resources[resource].attrs, out);
        kiln_buf_putc(out, ' ');
        kiln_type_id(&types[at], out);
        kiln_buf_printf(out, " *%" PRId64 " @%" PRIu64 "+%" PRIu64 "s\n", types[at].scale,
                        p->time_ns, p->duration_ns / 1000000000u);
        for (uint32_t k = 0; k < p->n_samples; k++)
            put_sample(batch, &batch->samples[p->first_sample + k], out);
    }
}

const char *intake_text(struct intake *in, uint32_t i)
{
    static char text[TEXT_MAX];
    const struct kiln_batch *batch;
    struct kiln_type *types;
    struct kiln_buf out;

    if (i >= in->n)
        return "(nothing)";
    batch = in->got[i].batch;
    kiln_buf_init(&out, sizeof(text) - 1);
    CHECK_OK(kiln_types_of_batch(batch, false, &types));
    for (uint32_t r = 0; r < batch->n_resources; r++) {
        for (uint32_t s = 0; s < batch->resources[r].n_scopes; s++)
            put_profiles(batch, r, &batch->scopes[batch->resources[r].first_scope + s], types,
                         &out);
    }
    kiln_free(types);
    snprintf(text, sizeof(text), "%.*s", (int)out.len, out.len ? out.ptr : "");
    kiln_buf_done(&out);
    return text;
}

double intake_count(struct intake *in, const char *series)
{
    struct kiln_buf out;
    const char *at;
    double value = -1;

    kiln_buf_init(&out, 1u << 20);
    kiln_metrics_format(in->metrics, &out);
    kiln_buf_putc(&out, '\0');
    at = strstr(out.ptr, series);
    if (at && at[strlen(series)] == ' ')
        value = strtod(at + strlen(series), NULL);
    kiln_buf_done(&out);
    return value;
}
