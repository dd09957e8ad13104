/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof, which comes in by several ways, each where its key is there:
 *
 *   server: {endpoint: localhost:8080}    programs post it, to /v1/pprof or /api/v1/profiles
 *   scrape_configs: [...]                 it is fetched from /debug/pprof: receivers/scrape.h says
 *                                         what a job is
 *   remote: {endpoint: http://...}        one profile is fetched, as it is
 *   file: {include: "*.pb.gz"}            it lies in files
 *   self: {}                              it is the collector's own
 */
#include <errno.h>

#include "base/mem.h"
#include "collector/door.h"
#include "collector/graph.h"
#include "collector/receivers/pprof_int.h"
#include "collector/registry.h"
#include "pipeline/receivers/scrape.h"

#define BODY_MAX ((uint64_t)64 << 20)

enum part { SERVER, SCRAPE, FILES, REMOTE, SELF, PARTS };
static const char *const keys[PARTS] = {"server", "scrape_configs", "file", "remote", "self"};

struct pprof_settings {
    bool has[PARTS];
    const struct kiln_node *nodes[PARTS];
    struct kiln_listen_settings listen;
    struct kiln_pprof_file_settings file;
    struct kiln_pprof_remote_settings remote;
    struct kiln_pprof_self_settings self;
};

/* ---- server ---- */

struct server_part {
    struct kiln_component component; /* first */
    struct kiln_door door;
};

static int start_server(struct kiln_component *component, struct kiln_err *err)
{
    return kiln_door_start(&((struct server_part *)component)->door, err);
}

static void stop_server(struct kiln_component *component, uint64_t deadline_ns)
{
    kiln_door_stop(&((struct server_part *)component)->door, deadline_ns);
}

static void free_server(struct kiln_component *component)
{
    kiln_door_done(&((struct server_part *)component)->door);
    kiln_free(component);
}

static int open_door(struct kiln_door *door, const struct kiln_component_env *env,
                     const struct pprof_settings *s, struct kiln_err *err)
{
    int r = kiln_door_make(door, env, KILN_RECEIVER, &s->listen, err);

    if (r < 0)
        return r;
    r = kiln_pprof_receiver_add(door->receivers, kiln_listen_router(door->listen));
    if (r == 0)
        r = kiln_pprof_receiver_add_push(door->receivers, kiln_listen_router(door->listen));
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

static int make_server(const struct kiln_component_env *env, const struct pprof_settings *s,
                       struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {
        .start = start_server, .stop = stop_server, .free = free_server};
    struct server_part *part = kiln_calloc(1, sizeof(*part));
    int r;

    if (!part)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    part->component.ops = &ops;
    r = open_door(&part->door, env, s, err);
    if (r < 0) {
        free_server(&part->component);
        return r;
    }
    *ret_component = &part->component;
    return 0;
}

/* ---- scrape_configs ---- */

struct scrape_part {
    struct kiln_component component;  /* first */
    struct kiln_receivers *receivers; /* where its profiles go */
    struct kiln_scraper *scraper;
};

static int start_scrape(struct kiln_component *component, struct kiln_err *err)
{
    return kiln_scraper_start(((struct scrape_part *)component)->scraper, err);
}

static void stop_scrape(struct kiln_component *component, uint64_t deadline_ns)
{
    (void)deadline_ns; /* exporters let go of what it waits for */
    kiln_scraper_stop(((struct scrape_part *)component)->scraper);
}

static void free_scrape(struct kiln_component *component)
{
    struct scrape_part *part = (struct scrape_part *)component;

    if (part->scraper)
        kiln_scraper_free(part->scraper);
    kiln_receivers_free(part->receivers);
    kiln_free(part);
}

static int open_scraper(struct scrape_part *part, const struct kiln_component_env *env,
                        const struct pprof_settings *s, struct kiln_err *err)
{
    struct kiln_receivers_opts opts = {.next = env->next[KILN_SIGNAL_PROFILES],
                                       .pool = env->pool,
                                       .waits = true,
                                       .metrics = env->metrics,
                                       .log = env->log};
    int r = kiln_receivers_new(&opts, &part->receivers);

    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    return kiln_scraper_new(&(struct kiln_scraper_opts){.jobs = s->nodes[SCRAPE],
                                                        .receivers = part->receivers,
                                                        .metrics = env->metrics,
                                                        .log = env->log},
                            &part->scraper, err);
}

static int make_scrape(const struct kiln_component_env *env, const struct pprof_settings *s,
                       struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {
        .start = start_scrape, .stop = stop_scrape, .free = free_scrape};
    struct scrape_part *part = kiln_calloc(1, sizeof(*part));
    int r;

    if (!part)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    part->component.ops = &ops;
    r = open_scraper(part, env, s, err);
    if (r < 0) {
        free_scrape(&part->component);
        return r;
    }
    *ret_component = &part->component;
    return 0;
}

/* ---- all of them ---- */

struct pprof {
    struct kiln_component component;     /* first */
    struct kiln_component *parts[PARTS]; /* NULL: not wanted */
    uint32_t n_started;
};

static void stop(struct kiln_component *component, uint64_t deadline_ns)
{
    struct pprof *pprof = (struct pprof *)component;

    for (uint32_t i = 0; i < pprof->n_started; i++)
        if (pprof->parts[i])
            pprof->parts[i]->ops->stop(pprof->parts[i], deadline_ns);
    pprof->n_started = 0;
}

static int start(struct kiln_component *component, struct kiln_err *err)
{
    struct pprof *pprof = (struct pprof *)component;
    int r = 0;

    for (; r == 0 && pprof->n_started < PARTS; pprof->n_started += r == 0) {
        struct kiln_component *part = pprof->parts[pprof->n_started];

        r = part ? part->ops->start(part, err) : 0;
    }
    if (r < 0)
        stop(component, 0);
    return r;
}

static void destroy(struct kiln_component *component)
{
    struct pprof *pprof = (struct pprof *)component;

    for (uint32_t i = 0; i < PARTS; i++)
        if (pprof->parts[i])
            pprof->parts[i]->ops->free(pprof->parts[i]);
    kiln_free(pprof);
}

static int make_files(const struct kiln_component_env *env, const struct pprof_settings *s,
                      struct kiln_component **ret, struct kiln_err *err)
{
    const struct pprof *before =
        (struct pprof *)kiln_graph_receiver_before(env->graph, env->id, &kiln_pprof_receiver_type);

    return kiln_pprof_file_make(env, &s->file, before ? before->parts[FILES] : NULL, ret, err);
}

static int make_part(const struct kiln_component_env *env, const struct pprof_settings *s,
                     enum part part, struct kiln_component **ret, struct kiln_err *err)
{
    switch (part) {
    case SERVER:
        return make_server(env, s, ret, err);
    case SCRAPE:
        return make_scrape(env, s, ret, err);
    case FILES:
        return make_files(env, s, ret, err);
    case REMOTE:
        return kiln_pprof_remote_make(env, &s->remote, ret, err);
    default:
        return kiln_pprof_self_make(env, &s->self, ret, err);
    }
}

static int make(const struct kiln_component_env *env, const void *settings,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {.start = start, .stop = stop, .free = destroy};
    const struct pprof_settings *s = settings;
    struct pprof *pprof = kiln_calloc(1, sizeof(*pprof));
    int r = pprof ? 0 : kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));

    for (enum part i = SERVER; r == 0 && i < PARTS; i++)
        if (s->has[i])
            r = make_part(env, s, i, &pprof->parts[i], err);
    if (r < 0) {
        if (pprof)
            destroy(&pprof->component);
        return r;
    }
    pprof->component.ops = &ops;
    *ret_component = &pprof->component;
    return 0;
}

/* ---- settings ---- */

static int read_parts(struct pprof_settings *s, struct kiln_err *err)
{
    int r = kiln_listen_read_http(s->nodes[SERVER], NULL, 0, NULL, &s->listen, err);

    if (r == 0 && s->has[SCRAPE] && s->nodes[SCRAPE])
        r = kiln_scrape_check(s->nodes[SCRAPE], err);
    if (r == 0 && s->has[FILES])
        r = kiln_pprof_file_read(s->nodes[FILES], &s->file, err);
    if (r == 0 && s->has[REMOTE])
        r = kiln_pprof_remote_read(s->nodes[REMOTE], &s->remote, err);
    if (r == 0 && s->has[SELF])
        r = kiln_pprof_self_read(s->nodes[SELF], &s->self, err);
    return r;
}

static int read(const struct kiln_node *node, void *settings, struct kiln_err *err)
{
#define NODE(part, kind)                                                                           \
    {                                                                                              \
        keys[part], KILN_FIELD_##kind, offsetof(struct pprof_settings, nodes[part])                \
    }
    const struct kiln_field fields[] = {NODE(SERVER, MAP), NODE(SCRAPE, LIST), NODE(FILES, MAP),
                                        NODE(REMOTE, MAP), NODE(SELF, MAP)};
#undef NODE
    struct pprof_settings *s = settings;
    bool any = false;
    int r;

    s->listen = (struct kiln_listen_settings){.endpoint = "localhost:8080", .body_max = BODY_MAX};
    r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), s, err);
    for (int i = 0; i < PARTS; i++) {
        s->has[i] = i == SCRAPE ? s->nodes[i] != NULL : kiln_settings_has(node, keys[i]);
        any |= s->has[i];
    }
    if (r == 0)
        r = read_parts(s, err);
    if (r == 0 && !any)
        return kiln_err_set(err, KILN_E_MALFORMED, NULL,
                            "say server (programs post profiles), scrape_configs or remote (they "
                            "are fetched), file, or self");
    return r;
}

const struct kiln_component_type kiln_pprof_receiver_type = {
    .name = "pprof",
    .kind = KILN_RECEIVER,
    .signals = KILN_TAKES_PROFILES,
    .stability = "beta",
    .settings_size = sizeof(struct pprof_settings),
    .read = read,
    .make = make,
};
