/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receivers, redaction, the store's exporter.  The rules of redaction come from the file of
 * --redact, or else from the key `redaction` of the configuration; either is read anew at each
 * reload, and stays as it was where it cannot be.
 */
#include <errno.h>
#include <stdio.h>

#include "cli/rules.h"
#include "cli/serve.h"
#include "naming/local.h"
#include "pipeline/receivers/scrape.h"
#include "store/exporter.h"

int kiln_serve_check_rules(const struct kiln_server_config *config, struct kiln_err *err)
{
    struct kiln_redact *rules = NULL;
    int r = kiln_rules_read(config, &rules, err);

    kiln_redact_free(rules);
    return r;
}

static void audit_reload(struct kiln_serve *serve, bool well)
{
    const char *file = serve->config->set.redact  ? serve->config->set.redact
                       : serve->config->file_name ? serve->config->file_name
                                                  : "";

    kiln_audit_write(serve->audit, &(struct kiln_audit_record){.action = "reload redaction",
                                                               .tenant = "",
                                                               .target = kiln_str_of(file),
                                                               .who = "",
                                                               .peer = "",
                                                               .result = well ? "ok" : "failed"});
}

static void reopen_audit(struct kiln_serve *serve)
{
    struct kiln_err err = {0};

    if (kiln_audit_reopen(serve->audit, &err) < 0)
        kiln_log(serve->log, KILN_LOG_ERROR, "the audit log stays the file that it was", "where",
                 "%s", err.where, "reason", "%s", err.text, NULL);
}

/* Certificates are looked at by the server itself. */
void kiln_serve_reload(struct kiln_serve *serve)
{
    struct kiln_redact *rules = NULL;
    struct kiln_err err = {0};

    reopen_audit(serve);
    kiln_gate_look_again(serve->gate);
    if (kiln_rules_read(serve->config, &rules, &err) < 0) {
        kiln_log(serve->log, KILN_LOG_ERROR, "redaction stays as it was", "where", "%s", err.where,
                 "reason", "%s", err.text, NULL);
        audit_reload(serve, false);
        return;
    }
    kiln_redact_free(kiln_redact_processor_swap(serve->redaction, rules));
    serve->rules = rules;
    kiln_log(serve->log, KILN_LOG_INFO, "redaction was read again", NULL);
    audit_reload(serve, true);
}

static int make_redaction(struct kiln_serve *serve, struct kiln_err *err)
{
    int r = kiln_rules_read(serve->config, &serve->rules, err);

    if (r < 0)
        return r;
    r = kiln_redact_processor_new(serve->rules, serve->exporter, serve->metrics, &serve->redaction);
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

static int make_scraper(struct kiln_serve *serve, struct kiln_err *err)
{
    const struct kiln_settings *set = &serve->config->set;
    struct kiln_scraper_opts opts = {
        .jobs = set->scrape,
        .receivers = serve->receivers,
        .state_dir = serve->scrape_dir,
        .metrics = serve->metrics,
        .log = serve->log,
    };

    if (!set->scrape)
        return 0;
    if (snprintf(serve->scrape_dir, sizeof(serve->scrape_dir), "%s/scrape", serve->data_dir) >=
        (int)sizeof(serve->scrape_dir))
        return kiln_err_set(err, -ENAMETOOLONG, set->data_dir, "%s", kiln_err_text(-ENAMETOOLONG));
    return kiln_scraper_new(&opts, &serve->scraper, err);
}

/* Who sends over the socket is on this host, and so are its files. */
static void note_local(void *context, const struct kiln_peer *peer, const struct kiln_batch *batch)
{
    kiln_local_files_note(context, peer->pid, batch);
}

static bool has_room(void *context, size_t bytes)
{
    struct kiln_engine *engine = context;

    return engine->ops->has_room(engine, bytes);
}

int kiln_serve_pipeline(struct kiln_serve *serve, struct kiln_err *err)
{
    struct kiln_receivers_opts opts = {
        .pool = &serve->memory.ingest,
        .patience_ns = serve->config->set.memory_wait_ns,
        .has_room = has_room,
        .room_context = serve->engine,
        .gate = serve->gate,
        .content_max = (size_t)serve->config->set.body_max,
        .metrics = serve->metrics,
        .log = serve->log,
        .local = note_local,
    };
    int r = kiln_store_exporter_new(serve->engine, &serve->exporter);

    if (r == 0)
        r = kiln_local_files_new(&serve->local);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    r = make_redaction(serve, err);
    if (r < 0)
        return r;
    serve->entry = serve->redaction;
    opts.next = serve->entry;
    opts.local_context = serve->local;
    r = kiln_receivers_new(&opts, &serve->receivers);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    return make_scraper(serve, err);
}

void kiln_serve_pipeline_done(struct kiln_serve *serve)
{
    kiln_scraper_free(serve->scraper);
    kiln_receivers_free(serve->receivers);
    kiln_redact_processor_free(serve->redaction);
    kiln_redact_free(serve->rules);
    kiln_store_exporter_free(serve->exporter);
    kiln_local_files_free(serve->local);
}
