/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector's own profiles (collector/own.h): all that libkiln has of it, fetched as those of
 * any program are (pipeline/receivers/scrape.h).
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "collector/graph.h"
#include "collector/own.h"
#include "collector/receivers/pprof_int.h"
#include "pipeline/receivers/scrape.h"

enum { SERVER_MAX = 256, JOB_MAX = 1024 };

struct self {
    struct kiln_component component; /* first */
    struct kiln_scraper_opts opts;
    const struct kiln_pprof_self_settings *settings;
    struct kiln_config *job; /* from the start on: */
    struct kiln_scraper *scraper;
};

/* Only now is it known where they are. */
static int make_scraper(struct self *self, struct kiln_err *err)
{
    uint64_t interval_s = self->settings->poll.interval_ns / KILN_NS_PER_S;
    char server[SERVER_MAX], text[JOB_MAX];
    int r = kiln_own_server(server, sizeof(server), err);
    const char *target = strstr(server, "://");

    if (r < 0)
        return r;
    snprintf(text, sizeof(text),
             "[{job_name: kiln-collector, scrape_interval: %llus, "
             "static_configs: [{targets: ['%s']}]}]",
             (unsigned long long)(interval_s ? interval_s : 1), target ? target + 3 : server);
    r = kiln_config_parse_plain(kiln_str_of(text), &self->job, err);
    if (r < 0)
        return r;
    self->opts.jobs = kiln_config_root(self->job);
    return kiln_scraper_new(&self->opts, &self->scraper, err);
}

static int start(struct kiln_component *component, struct kiln_err *err)
{
    struct self *self = (struct self *)component;
    int r = make_scraper(self, err);

    return r < 0 ? r : kiln_scraper_start(self->scraper, err);
}

static void stop(struct kiln_component *component, uint64_t deadline_ns)
{
    (void)deadline_ns; /* exporters let go of what it waits for */
    kiln_scraper_stop(((struct self *)component)->scraper);
}

static void destroy(struct kiln_component *component)
{
    struct self *self = (struct self *)component;

    if (self->scraper)
        kiln_scraper_free(self->scraper);
    kiln_receivers_free(self->opts.receivers);
    kiln_config_free(self->job);
    kiln_free(self);
}

int kiln_pprof_self_make(const struct kiln_component_env *env,
                         const struct kiln_pprof_self_settings *settings,
                         struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {.start = start, .stop = stop, .free = destroy};
    const struct kiln_receivers_opts opts = {.next = env->next[KILN_SIGNAL_PROFILES],
                                             .pool = env->pool,
                                             .waits = true,
                                             .metrics = env->metrics,
                                             .log = env->log};
    struct self *self = kiln_calloc(1, sizeof(*self));
    int r = self ? kiln_receivers_new(&opts, &self->opts.receivers) : -ENOMEM;

    if (r < 0) {
        kiln_free(self);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    self->component.ops = &ops;
    self->opts.metrics = env->metrics;
    self->opts.log = env->log;
    self->settings = settings;
    kiln_graph_want_own(env->graph);
    *ret_component = &self->component;
    return 0;
}

int kiln_pprof_self_read(const struct kiln_node *node, struct kiln_pprof_self_settings *ret,
                         struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        KILN_POLL_FIELDS(struct kiln_pprof_self_settings, poll),
        /* Waits are sampled in proportion to their length. */
        {"block_profile_fraction", KILN_FIELD_NODE,
         offsetof(struct kiln_pprof_self_settings, unused)},
        {"mutex_profile_fraction", KILN_FIELD_NODE,
         offsetof(struct kiln_pprof_self_settings, unused)},
    };
    int r;

    ret->poll = kiln_poll_default;
    r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), ret, err);
    return r < 0 ? r : kiln_poll_check(node, &ret->poll, err);
}
