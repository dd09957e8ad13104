/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof, which comes in two ways:
 *
 *   server: {endpoint: localhost:8080}    programs post it to /api/v1/profiles
 *   scrape_configs: [...]                 it is fetched from /debug/pprof: receivers/scrape.h says
 *                                         what a job is
 */
#include <errno.h>

#include "base/mem.h"
#include "collector/door.h"
#include "collector/registry.h"
#include "pipeline/receivers/scrape.h"

#define BODY_MAX ((uint64_t)64 << 20)

struct pprof_settings {
    const struct kiln_node *server, *scrape_configs;
    bool serves;
    struct kiln_listen_settings listen;
};

struct pprof {
    struct kiln_component component; /* first */
    bool serves;
    struct kiln_door door;
    struct kiln_receivers *fetched; /* where the scraper's profiles go */
    struct kiln_scraper *scraper;
};

static int read(const struct kiln_node *node, void *settings, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"server", KILN_FIELD_MAP, offsetof(struct pprof_settings, server)},
        {"scrape_configs", KILN_FIELD_LIST, offsetof(struct pprof_settings, scrape_configs)},
    };
    static const struct kiln_refused_key refused[] = {
        {"remote", "say scrape_configs, which fetches all profiles of a program"},
        {"file", "upload files with `kiln push`, or to the receiver's server"},
        {"self", "the pprof extension serves profiles of the collector, for scrape_configs"},
    };
    struct pprof_settings *s = settings;
    int r = kiln_settings_refuse(node, refused, KILN_ARRAY_LEN(refused), err);

    s->listen = (struct kiln_listen_settings){.endpoint = "localhost:8080", .body_max = BODY_MAX};
    s->serves = kiln_settings_has(node, "server");
    if (r == 0)
        r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), s, err);
    if (r == 0)
        r = kiln_listen_read_http(s->server, NULL, 0, NULL, &s->listen, err);
    if (r == 0 && s->scrape_configs)
        r = kiln_scrape_check(s->scrape_configs, err);
    if (r == 0 && !s->serves && !s->scrape_configs)
        return kiln_err_set(err, KILN_E_MALFORMED, NULL,
                            "say server (programs post profiles) or scrape_configs (they are "
                            "fetched)");
    return r;
}

static int start(struct kiln_component *component, struct kiln_err *err)
{
    struct pprof *pprof = (struct pprof *)component;
    int r = pprof->serves ? kiln_door_start(&pprof->door, err) : 0;

    return r < 0 || !pprof->scraper ? r : kiln_scraper_start(pprof->scraper, err);
}

static void stop(struct kiln_component *component, uint64_t deadline_ns)
{
    struct pprof *pprof = (struct pprof *)component;

    if (pprof->scraper)
        kiln_scraper_stop(pprof->scraper);
    if (pprof->serves)
        kiln_door_stop(&pprof->door, deadline_ns);
}

static void destroy(struct kiln_component *component)
{
    struct pprof *pprof = (struct pprof *)component;

    if (pprof->scraper)
        kiln_scraper_free(pprof->scraper);
    kiln_receivers_free(pprof->fetched);
    kiln_door_done(&pprof->door);
    kiln_free(pprof);
}

static int make_door(struct pprof *pprof, const struct kiln_component_env *env,
                     const struct pprof_settings *s, struct kiln_err *err)
{
    int r = kiln_door_make(&pprof->door, env, KILN_RECEIVER, &s->listen, err);

    if (r < 0)
        return r;
    r = kiln_pprof_receiver_add(pprof->door.receivers, kiln_listen_router(pprof->door.listen));
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

static int make_scraper(struct pprof *pprof, const struct kiln_component_env *env,
                        const struct pprof_settings *s, struct kiln_err *err)
{
    struct kiln_receivers_opts opts = {.next = env->next[KILN_SIGNAL_PROFILES],
                                       .pool = env->pool,
                                       .waits = true,
                                       .metrics = env->metrics,
                                       .log = env->log};
    int r = kiln_receivers_new(&opts, &pprof->fetched);

    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    return kiln_scraper_new(&(struct kiln_scraper_opts){.jobs = s->scrape_configs,
                                                        .receivers = pprof->fetched,
                                                        .metrics = env->metrics,
                                                        .log = env->log},
                            &pprof->scraper, err);
}

static int make(const struct kiln_component_env *env, const void *settings,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {.start = start, .stop = stop, .free = destroy};
    const struct pprof_settings *s = settings;
    struct pprof *pprof = kiln_calloc(1, sizeof(*pprof));
    int r;

    if (!pprof)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    pprof->component.ops = &ops;
    pprof->serves = s->serves;
    r = s->serves ? make_door(pprof, env, s, err) : 0;
    if (r == 0 && s->scrape_configs)
        r = make_scraper(pprof, env, s, err);
    if (r < 0) {
        destroy(&pprof->component);
        return r;
    }
    *ret_component = &pprof->component;
    return 0;
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
