/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config - the configuration of a collector, from its sources to one tree.
 *
 *   sources ──▶ merged ──▶ substituted ──▶ typed            as the OpenTelemetry Collector does it
 *
 * A source is file:PATH (or just a path), env:NAME, yaml:TEXT, http://... or https://.... Those
 * that come later count more: maps are merged, scalars and lists replaced, null replaces too.  A
 * key with `::` in it is a path through maps.  `sets` (a.b=c, or a::b=c) come last.
 *
 * In values, not in keys, ${env:NAME}, ${NAME}, ${env:NAME:-default}, ${file:PATH}, ${yaml:TEXT}
 * and
 * ${https://...} stand for what they name, again and again until nothing is left to put in; $$ is a
 * dollar, and so is a dollar that no brace follows.  Where one of them is a whole value, what comes
 * is YAML and can be anything; a node keeps how it was written for those who want a text
 * (base/config.h). Inside of a text it is text.
 *
 * Plain scalars are typed by YAML's core schema: 0x1F, 0o17 and 017 are numbers.  What is in quotes
 * is a text and no number.
 *
 * Limits: those of base/config.h for each source and for the whole; 100 substitutions in a value,
 * 10,000 in all.
 * Threads: constant once loaded.
 */
#ifndef KILN_COLLECTOR_CONFIG_H
#define KILN_COLLECTOR_CONFIG_H

#include "base/buf.h"
#include "base/config.h"

struct kiln_collector_config {
    const struct kiln_node *root; /* a map whose nodes know their file and line */
    uint32_t refs;                /* who has it; one owner counts */
    struct kiln_budget budget;
    struct kiln_arena arena;
};

struct kiln_collector_sources {
    const char *const *uris;
    uint32_t n_uris;
    const char *const *sets;
    uint32_t n_sets;
    bool fetches; /* http: and https: are asked for; else they are not known */
    /* Told of what is no error, a variable that is not set; NULL: nobody. */
    void (*warn)(void *context, const struct kiln_node *place, const char *text);
    void *context;
};

/*
 * Returns 0 or KILN_E_MALFORMED, KILN_E_LIMIT, KILN_E_UNSUPPORTED, a negative errno of a file, or
 * -ENOMEM; the error names file and line.
 */
KILN_CHECK int kiln_collector_config_load(const struct kiln_collector_sources *sources,
                                          struct kiln_collector_config **ret_config,
                                          struct kiln_err *err);
struct kiln_collector_config *kiln_collector_config_ref(struct kiln_collector_config *config);
void kiln_collector_config_unref(struct kiln_collector_config *config);

/* Writes it as YAML, or as JSON; `redacted` hides what is secret: headers, passwords, tokens. */
void kiln_collector_config_format(const struct kiln_collector_config *config, bool redacted,
                                  struct kiln_buf *out);
void kiln_collector_config_format_json(const struct kiln_collector_config *config, bool redacted,
                                       struct kiln_buf *out);

#endif /* KILN_COLLECTOR_CONFIG_H */
