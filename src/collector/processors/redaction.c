/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes out what must not leave the house, by rules of core/redact.h:
 *
 *   redaction:
 *     rules:
 *       - {match: path, regex: '^/home/[^/]+', action: replace, replacement: "~"}
 *       - {match: name, regex: (?i)customer, action: hash}
 *
 * and attributes as the Collector's processor of this name does, in this order:
 *
 *   redaction:
 *     ignored_keys, ignored_key_patterns              stay whatever they hold
 *     allow_all_keys: false, allowed_keys             others go
 *     allowed_values                                  stay
 *     blocked_key_patterns: ['.*token.*']             stars in the place of the value
 *     blocked_values: ['4[0-9]{12}(?:[0-9]{3})?']     stars in the place of what matches
 *     url_sanitizer: {enabled: true, attributes: [http.url]}
 *     hash_function: sha3                             a hash in the place of stars
 *     redact_all_types: true                          numbers and truths too
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/mem.h"
#include "collector/processors/changing.h"
#include "collector/processors/masking.h"
#include "collector/registry.h"
#include "core/redact.h"

#define TEXT_MAX (1u << 20)

struct settings {
    const struct kiln_node *rules, *allowed_keys, *ignored_keys, *ignored_key_patterns,
        *blocked_values, *allowed_values, *blocked_key_patterns, *url_sanitizer;
    bool allow_all_keys, redact_all_types;
    struct kiln_masking masking;
    const char *summary; /* how much to tell in attributes: nothing is told here */
};

/* One processor behind the other: our rules, then those that are made of the Collector's. */
struct redaction {
    struct kiln_component component; /* first */
    struct kiln_redact *rules[2];
    struct kiln_consumer in, out;
    struct kiln_consumer *first, *next;
    struct kiln_processor_counts counts;
    struct kiln_consumer *processors[2];
};

/* ---- the Collector's keys as rules ---- */

static int add(struct kiln_redact *rules, const struct kiln_node *node,
               struct kiln_redact_spec spec, struct kiln_err *err)
{
    struct kiln_err why = {0};
    int r;

    spec.match = KILN_REDACT_ATTRIBUTE;
    spec.line = node->line;
    r = kiln_redact_add(rules, &spec, &why);
    return r < 0 ? kiln_node_fail(node, r, err, "%s", why.text) : 0;
}

/* A rule for each text of a list: it is the key (a pattern of one), or else the value. */
static int add_each(struct kiln_redact *rules, const struct kiln_node *list, bool key,
                    struct kiln_redact_spec spec, struct kiln_err *err)
{
    int r = 0;

    for (const struct kiln_node *node = list ? list->first : NULL; node && r == 0;
         node = node->next) {
        if (node->kind != KILN_NODE_TEXT)
            return kiln_node_fail(node, KILN_E_MALFORMED, err, "a text belongs here");
        *(key ? &spec.key : &spec.regex) = kiln_str_of(node->text);
        r = add(rules, node, spec, err);
    }
    return r;
}

/* One rule for all keys of a list, or for all that are not in it; `pattern` is for one. */
static int add_keys(struct kiln_redact *rules, const struct kiln_node *list, const char *pattern,
                    enum kiln_redact_action action, struct kiln_err *err)
{
    static const struct kiln_node nothing;
    struct kiln_buf keys;
    int r = 0;

    kiln_buf_init(&keys, TEXT_MAX);
    kiln_buf_puts(&keys, pattern);
    for (const struct kiln_node *node = list ? list->first : NULL; node && r == 0;
         node = node->next) {
        if (node->kind != KILN_NODE_TEXT)
            r = kiln_node_fail(node, KILN_E_MALFORMED, err, "a text belongs here");
        else
            kiln_buf_printf(&keys, "%s\\Q%s\\E", node == list->first ? "" : "|", node->text);
    }
    kiln_buf_puts(&keys, action == KILN_REDACT_DROP ? ")$)" : ")$");
    if (r == 0 && keys.error)
        r = kiln_err_set(err, keys.error, NULL, "%s", kiln_err_text(keys.error));
    if (r == 0)
        r = add(rules, list ? list : &nothing,
                (struct kiln_redact_spec){
                    .key = kiln_buf_str(&keys), .action = action, .outermost = true},
                err);
    kiln_buf_done(&keys);
    return r;
}

/* Stars, or a hash, in the place of values whose key matches; they are looked at no more. */
static int add_blocked_keys(struct kiln_redact *rules, const struct settings *settings,
                            struct kiln_redact_spec masked, struct kiln_err *err)
{
    const struct kiln_node *list = settings->blocked_key_patterns;
    int r;

    masked.regex = KILN_STR("^[\\s\\S]*$");
    masked.texts_only = false;
    r = add_each(rules, list, true, masked, err);
    return r < 0 ? r
                 : add_each(rules, list, true,
                            (struct kiln_redact_spec){.action = KILN_REDACT_KEEP}, err);
}

static int make_rules(const struct settings *settings, struct kiln_redact *rules,
                      struct kiln_err *err)
{
    const struct kiln_redact_spec keep = {.action = KILN_REDACT_KEEP,
                                          .texts_only = !settings->redact_all_types};
    struct kiln_redact_spec masked = {.action = KILN_REDACT_REPLACE,
                                      .replacement = KILN_STR("****"),
                                      .texts_only = !settings->redact_all_types};
    int r = 0;

    kiln_masking_apply(&settings->masking, &masked);
    if (settings->ignored_keys && settings->ignored_keys->n)
        r = add_keys(rules, settings->ignored_keys, "^(?:", KILN_REDACT_KEEP, err);
    if (r == 0)
        r = add_each(rules, settings->ignored_key_patterns, true,
                     (struct kiln_redact_spec){.action = KILN_REDACT_KEEP}, err);
    if (r == 0 && !settings->allow_all_keys)
        r = add_keys(rules, settings->allowed_keys, "^(?!(?:", KILN_REDACT_DROP, err);
    if (r == 0)
        r = add_each(rules, settings->allowed_values, false, keep, err);
    if (r == 0)
        r = add_blocked_keys(rules, settings, masked, err);
    if (r == 0)
        r = add_each(rules, settings->blocked_values, false, masked, err);
    return r;
}

/* ---- addresses ---- */

struct sanitizer {
    bool enabled, sanitize_span_name;
    const struct kiln_node *attributes;
};

/*
 * What varies in an address: all behind a question mark or a hash, and parts of the path that have
 * a digit in them and are no version.
 */
static int add_address(struct kiln_redact *rules, const struct kiln_node *attributes,
                       struct kiln_err *err)
{
    static const struct {
        const char *regex, *replacement;
    } parts[] = {
        {"[?#][\\s\\S]*$", ""},
        {"(?<=[^:/]/|^/)(?!v[0-9]+(?:/|$))[^/]*[0-9][^/]*", "*"},
    };
    int r = 0;

    for (const struct kiln_node *node = attributes ? attributes->first : NULL; node && r == 0;
         node = node->next) {
        char key[512];

        if (node->kind != KILN_NODE_TEXT || strlen(node->text) > sizeof(key) - 16)
            return kiln_node_fail(node, KILN_E_MALFORMED, err,
                                  "the key of an attribute belongs here");
        snprintf(key, sizeof(key), "^\\Q%s\\E$", node->text);
        for (size_t i = 0; i < KILN_ARRAY_LEN(parts) && r == 0; i++)
            r = add(rules, node,
                    (struct kiln_redact_spec){.action = KILN_REDACT_REPLACE,
                                              .key = kiln_str_of(key),
                                              .regex = kiln_str_of(parts[i].regex),
                                              .replacement = kiln_str_of(parts[i].replacement),
                                              .texts_only = true},
                    err);
    }
    return r;
}

static int add_addresses(const struct settings *settings, struct kiln_redact *rules,
                         struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"enabled", KILN_FIELD_BOOL, offsetof(struct sanitizer, enabled)},
        {"attributes", KILN_FIELD_LIST, offsetof(struct sanitizer, attributes)},
        {"sanitize_span_name", KILN_FIELD_BOOL, offsetof(struct sanitizer, sanitize_span_name)},
    };
    struct sanitizer sanitizer = {0};
    int r = settings->url_sanitizer ? kiln_node_read(settings->url_sanitizer, fields,
                                                     KILN_ARRAY_LEN(fields), &sanitizer, err)
                                    : 0;

    return r == 0 && sanitizer.enabled ? add_address(rules, sanitizer.attributes, err) : r;
}

/* ---- settings ---- */

static bool speaks_collector(const struct settings *settings)
{
    return settings->allow_all_keys || settings->allowed_keys || settings->blocked_values ||
           settings->blocked_key_patterns || settings->url_sanitizer;
}

static int make_all(const struct settings *settings, struct kiln_redact **ret_rules,
                    struct kiln_err *err)
{
    struct kiln_redact *rules;
    int r = kiln_redact_new(&rules);

    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    r = make_rules(settings, rules, err);
    if (r == 0)
        r = add_addresses(settings, rules, err);
    if (r < 0)
        kiln_redact_free(rules);
    else
        *ret_rules = rules;
    return r;
}

static int read_rules(const struct settings *settings, struct kiln_redact *ret_rules[2],
                      struct kiln_err *err)
{
    int r = 0;

    if (settings->rules)
        r = kiln_redact_read(settings->rules, &ret_rules[0], err);
    if (r == 0 && speaks_collector(settings))
        r = make_all(settings, &ret_rules[1], err);
    return r;
}

static void free_rules(struct kiln_redact *rules[2])
{
    kiln_redact_free(rules[0]);
    kiln_redact_free(rules[1]);
}

static int check_summary(const struct kiln_node *node, const char *summary, struct kiln_err *err)
{
    if (!summary || !*summary || strcmp(summary, "silent") == 0 || strcmp(summary, "info") == 0 ||
        strcmp(summary, "debug") == 0)
        return 0;
    return kiln_node_fail(kiln_node_get(node, "summary"), KILN_E_MALFORMED, err,
                          "summary is silent, info or debug");
}

static int read(const struct kiln_node *node, void *into, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"rules", KILN_FIELD_LIST, offsetof(struct settings, rules)},
        {"allow_all_keys", KILN_FIELD_BOOL, offsetof(struct settings, allow_all_keys)},
        {"allowed_keys", KILN_FIELD_LIST, offsetof(struct settings, allowed_keys)},
        {"ignored_keys", KILN_FIELD_LIST, offsetof(struct settings, ignored_keys)},
        {"ignored_key_patterns", KILN_FIELD_LIST, offsetof(struct settings, ignored_key_patterns)},
        {"blocked_values", KILN_FIELD_LIST, offsetof(struct settings, blocked_values)},
        {"allowed_values", KILN_FIELD_LIST, offsetof(struct settings, allowed_values)},
        {"blocked_key_patterns", KILN_FIELD_LIST, offsetof(struct settings, blocked_key_patterns)},
        {"redact_all_types", KILN_FIELD_BOOL, offsetof(struct settings, redact_all_types)},
        {"url_sanitizer", KILN_FIELD_NODE, offsetof(struct settings, url_sanitizer)},
        {"hash_function", KILN_FIELD_TEXT, offsetof(struct settings, masking.function)},
        {"hmac_key", KILN_FIELD_TEXT, offsetof(struct settings, masking.key)},
        {"summary", KILN_FIELD_TEXT, offsetof(struct settings, summary)},
    };
    struct settings *settings = into;
    struct kiln_redact *rules[2] = {NULL, NULL};
    int r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), settings, err);

    if (r == 0 && !settings->rules && !speaks_collector(settings))
        return kiln_err_set(err, KILN_E_MALFORMED, NULL,
                            "rules, allowed_keys or blocked_values: nothing says what to redact");
    if (r == 0)
        r = check_summary(node, settings->summary, err);
    if (r == 0)
        r = kiln_masking_check(node, &settings->masking, err);
    if (r == 0)
        r = read_rules(settings, rules, err);
    free_rules(rules);
    return r;
}

/* ---- the component ---- */

static void destroy(struct kiln_component *component)
{
    struct redaction *redaction = (struct redaction *)component;

    kiln_redact_processor_free(redaction->processors[0]);
    kiln_redact_processor_free(redaction->processors[1]);
    free_rules(redaction->rules);
    kiln_free(redaction);
}

/* On the way in, and on the way out: what two sets of rules do is one processor's. */
static void come(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct redaction *redaction =
        (struct redaction *)(void *)((char *)consumer - offsetof(struct redaction, in));

    kiln_processor_count(redaction->counts.incoming, delivery);
    redaction->first->consume(redaction->first, delivery);
}

static void go(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct redaction *redaction =
        (struct redaction *)(void *)((char *)consumer - offsetof(struct redaction, out));

    kiln_processor_count(redaction->counts.outgoing, delivery);
    redaction->next->consume(redaction->next, delivery);
}

static void join(struct redaction *redaction, const struct kiln_component_env *env)
{
    const struct kiln_processor_opts opts = kiln_processor_opts_of(env);

    redaction->counts = kiln_processor_counts(&opts);
    redaction->in.consume = come;
    redaction->out.consume = go;
    redaction->next = opts.next;
}

static void warn_summary(const struct kiln_component_env *env, const struct settings *settings)
{
    if (settings->summary && *settings->summary && strcmp(settings->summary, "silent") != 0)
        kiln_log(env->log, KILN_LOG_WARN,
                 "redaction adds no attributes that sum up what it did; /metrics has "
                 "kiln_redacted_total",
                 "processor", "%s", env->id, "summary", "%s", settings->summary, NULL);
}

static int make(const struct kiln_component_env *env, const void *settings,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {.free = destroy};
    struct redaction *redaction = kiln_calloc(1, sizeof(*redaction));
    struct kiln_consumer *next;
    int r;

    if (!redaction)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    join(redaction, env);
    warn_summary(env, settings);
    next = &redaction->out;
    r = read_rules(settings, redaction->rules, err);
    for (int i = 1; i >= 0 && r == 0; i--) {
        if (!redaction->rules[i])
            continue;
        r = kiln_redact_processor_new(redaction->rules[i], next, env->metrics,
                                      &redaction->processors[i]);
        next = redaction->processors[i];
    }
    if (r < 0) {
        destroy(&redaction->component);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    redaction->first = next;
    redaction->component = (struct kiln_component){&ops, &redaction->in};
    *ret_component = &redaction->component;
    return 0;
}

const struct kiln_component_type kiln_redaction_processor_type = {
    .name = "redaction",
    .kind = KILN_PROCESSOR,
    .signals = KILN_TAKES_PROFILES,
    .stability = "beta",
    .settings_size = sizeof(struct settings),
    .read = read,
    .make = make,
};
