/* SPDX-License-Identifier: Apache-2.0 */
#include "ways_kit.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "pipeline/outcome.h"
#include "test.h"

static void consume(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct ways_end *end = (struct ways_end *)consumer;
    struct ways *kit = end->kit;
    struct ways_got *got;

    if (end->instead) {
        end->instead->consume(end->instead, delivery);
        return;
    }
    pthread_mutex_lock(&kit->lock);
    CHECK(kit->n < WAYS_MAX);
    got = &kit->got[kit->n++];
    got->charged = delivery->charged;
    got->signal = delivery->signal;
    got->items = delivery->items;
    got->batch = delivery->batch ? kiln_batch_ref(delivery->batch) : NULL;
    got->compression = delivery->body_compression;
    got->json = delivery->body_is_json;
    got->n_headers = delivery->remote.n_headers;
    snprintf(got->address, sizeof(got->address), "%s",
             delivery->remote.address ? delivery->remote.address : "");
    kiln_buf_init(&got->body, 1u << 30);
    kiln_buf_add_str(&got->body, delivery->body);
    snprintf(got->tenant, sizeof(got->tenant), "%s", delivery->tenant);
    pthread_cond_broadcast(&kit->more);
    pthread_mutex_unlock(&kit->lock);
    kiln_delivery_end(delivery, &kit->outcome);
}

static void begin(struct ways *kit, const char *yaml)
{
    struct kiln_err err = {0};

    memset(kit, 0, sizeof(*kit));
    pthread_mutex_init(&kit->lock, NULL);
    pthread_cond_init(&kit->more, NULL);
    kiln_answer_init(&kit->answer);
    kiln_pool_init(&kit->pool, "ingest", 256u << 20, NULL);
    CHECK_OK(kiln_metrics_new(&kit->metrics));
    CHECK_OK(kiln_sockets_new(&kit->sockets));
    if (kiln_config_parse(kiln_str_of(yaml), &kit->config, &err) < 0)
        fail_msg("%s: %s", err.where, err.text);
}

static int make(struct ways *kit, enum kiln_component_kind kind, const char *type, unsigned without,
                struct kiln_err *err)
{
    struct kiln_component_env env = {
        .id = type, .pool = &kit->pool, .sockets = kit->sockets, .metrics = kit->metrics};
    int r;

    kit->type = kiln_component_find(kind, kiln_str_of(type));
    CHECK(kit->type);
    kit->settings = kiln_calloc(1, kit->type->settings_size + 1);
    for (int i = 0; kind == KILN_RECEIVER && i < KILN_SIGNALS; i++) {
        kit->ends[i] =
            (struct ways_end){.consumer = {.consume = consume, .takes_json = true}, .kit = kit};
        if (!(without & KILN_TAKES(i)))
            env.next[i] = &kit->ends[i].consumer;
    }
    r = kit->type->read(kiln_config_root(kit->config), kit->settings, err);
    return r < 0 ? r : kit->type->make(&env, kit->settings, &kit->component, err);
}

void ways_start_without(struct ways *kit, enum kiln_component_kind kind, const char *type,
                        const char *yaml, unsigned without)
{
    struct kiln_err err = {0};

    begin(kit, yaml);
    if (make(kit, kind, type, without, &err) < 0)
        fail_msg("%s: %s", err.where, err.text);
    if (kit->component->ops->start && kit->component->ops->start(kit->component, &err) < 0)
        fail_msg("%s: %s", err.where, err.text);
}

void ways_start(struct ways *kit, enum kiln_component_kind kind, const char *type, const char *yaml)
{
    ways_start_without(kit, kind, type, yaml, 0);
}

static int make_graph(struct ways *kit, struct kiln_err *err)
{
    struct kiln_graph_opts opts = {
        .pool = &kit->pool, .sockets = kit->sockets, .metrics = kit->metrics};

    return kiln_graph_new(kiln_config_root(kit->config), &opts, &kit->graph, err);
}

void ways_start_graph(struct ways *kit, const char *yaml)
{
    struct kiln_err err = {0};

    begin(kit, yaml);
    if (make_graph(kit, &err) < 0 || kiln_graph_start(kit->graph, &err) < 0)
        fail_msg("%s: %s", err.where, err.text);
}

static void done(struct ways *kit)
{
    for (uint32_t i = 0; i < kit->n; i++) {
        kiln_batch_unref(kit->got[i].batch);
        kiln_buf_done(&kit->got[i].body);
    }
    if (kit->settings && kit->type->settings_done)
        kit->type->settings_done(kit->settings);
    kiln_free(kit->settings);
    kiln_answer_done(&kit->answer);
    kiln_sockets_free(kit->sockets);
    kiln_config_free(kit->config);
    kiln_metrics_free(kit->metrics);
    pthread_cond_destroy(&kit->more);
    pthread_mutex_destroy(&kit->lock);
    CHECK_EQ(atomic_load(&kit->pool.used), 0);
    CHECK_EQ(kiln_mem_live(), 0);
}

void ways_stop(struct ways *kit)
{
    uint64_t deadline_ns = kiln_clock_mono_ns() + 5 * KILN_NS_PER_S;

    if (kit->graph) {
        kiln_graph_stop(kit->graph, deadline_ns);
        kiln_graph_free(kit->graph);
    } else {
        if (kit->component->ops->stop)
            kit->component->ops->stop(kit->component, deadline_ns);
        kit->component->ops->free(kit->component);
    }
    done(kit);
}

static const char *say(const struct kiln_err *err)
{
    static char said[512];

    snprintf(said, sizeof(said), "%s%s%s", err->where, err->where[0] ? ": " : "", err->text);
    return said;
}

const char *ways_refusal(enum kiln_component_kind kind, const char *type, const char *yaml)
{
    struct kiln_err err = {0};
    struct ways kit;

    begin(&kit, yaml);
    CHECK(make(&kit, kind, type, 0, &err) < 0);
    done(&kit);
    return say(&err);
}

const char *ways_graph_refusal(const char *yaml)
{
    struct kiln_err err = {0};
    struct ways kit;

    begin(&kit, yaml);
    CHECK(make_graph(&kit, &err) < 0);
    done(&kit);
    return say(&err);
}

/* ---- calls ---- */

struct search {
    const char *what;
    uint16_t port;
};

static void look(void *context, const char *owner, const char *address, uint16_t port)
{
    struct search *search = context;

    (void)address;
    if (kiln_str_ends(kiln_str_of(owner), kiln_str_of(search->what)))
        search->port = port;
}

uint16_t ways_port(struct ways *kit, const char *what)
{
    struct search search = {.what = what};

    kiln_sockets_each(kit->sockets, look, &search);
    CHECK(search.port);
    return search.port;
}

static void call_it(struct ways *kit, const char *what, const struct kiln_call *call,
                    int (*way)(struct kiln_client *, const struct kiln_call *, struct kiln_answer *,
                               struct kiln_err *))
{
    struct kiln_client *client;
    struct kiln_err err = {0};
    char address[64];

    snprintf(address, sizeof(address), "http://127.0.0.1:%u", ways_port(kit, what));
    CHECK_OK(kiln_client_new(&(struct kiln_client_opts){.server = address}, &client, &err));
    kiln_answer_done(&kit->answer);
    kiln_answer_init(&kit->answer);
    if (way(client, call, &kit->answer, &err) < 0)
        fail_msg("%s: %s", err.where, err.text);
    kiln_client_free(client);
}

void ways_call(struct ways *kit, const char *what, const struct kiln_call *call)
{
    call_it(kit, what, call, kiln_client_call);
}

void ways_grpc(struct ways *kit, const char *what, const char *path, struct kiln_str message)
{
    call_it(kit, what, &(struct kiln_call){.path = path, .body = message}, kiln_client_grpc);
}

void ways_wait(struct ways *kit, uint32_t n)
{
    pthread_mutex_lock(&kit->lock);
    while (kit->n < n)
        pthread_cond_wait(&kit->more, &kit->lock);
    pthread_mutex_unlock(&kit->lock);
}
