/* SPDX-License-Identifier: Apache-2.0 */
/* What names samples that came without names: naming/job.h over naming/depot.h. */
#include "cli/serve.h"
#include "naming/job.h"
#include "naming/texts.h"

/* The longest that any profile is kept: its debug files may be wanted as long. */
static uint64_t longest_ns(const struct kiln_server_config *config)
{
    uint64_t age_ns = config->set.retention_ns;

    for (uint32_t i = 0; i < config->n_rules; i++)
        if (config->rules[i].age_ns > age_ns)
            age_ns = config->rules[i].age_ns;
    return age_ns;
}

int kiln_serve_naming(struct kiln_serve *serve, struct kiln_err *err)
{
    const struct kiln_server_config *config = serve->config;
    const struct kiln_depot_opts depot = {.io = serve->io,
                                          .quota_bytes = config->set.symbols_quota,
                                          .tenant_quota_bytes = config->set.symbols_tenant_quota,
                                          .metrics = serve->metrics,
                                          .log = serve->log};
    struct kiln_naming_opts naming = {.engine = serve->engine,
                                      .paths = config->symbols_path.items,
                                      .n_paths = config->symbols_path.n,
                                      .debuginfod = config->debuginfod.items,
                                      .n_debuginfod = config->debuginfod.n,
                                      .age_ns = longest_ns(config),
                                      .metrics = serve->metrics,
                                      .log = serve->log};
    int r = kiln_depot_open(&depot, &serve->depot, err);

    naming.depot = serve->depot;
    naming.local = serve->local;
    if (r == 0)
        r = kiln_naming_start(&naming, &serve->naming, err);
    if (r == 0)
        r = kiln_texts_new(&(struct kiln_texts_opts){.depot = serve->depot, .log = serve->log},
                           &serve->texts, err);
    return r;
}

void kiln_serve_naming_done(struct kiln_serve *serve)
{
    kiln_naming_stop(serve->naming);
    kiln_texts_free(serve->texts);
}
