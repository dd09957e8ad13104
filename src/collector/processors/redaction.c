/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes out what must not leave the house, by rules of core/redact.h:
 *
 *   redaction:
 *     rules:
 *       - {match: path, regex: '^/home/[^/]+', action: replace, replacement: "~"}
 *       - {match: name, regex: (?i)customer, action: hash}
 *
 * and attributes as the Collector's processor of this name does:
 *
 *   redaction:
 *     allow_all_keys: true
 *     blocked_values: ['4[0-9]{12}(?:[0-9]{3})?']     stars in the place of what matches
 *     blocked_key_patterns: ['.*token.*']             stars in the place of the value
 *
 * with allow_all_keys: false, which is its default, attributes whose keys are neither among
 * allowed_keys nor ignored_keys go.
 */
#include <errno.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "collector/processors/changing.h"
#include "collector/registry.h"
#include "core/redact.h"

#define TEXT_MAX (1u << 20)

struct settings {
    const struct kiln_node *rules, *allowed_keys, *ignored_keys, *blocked_values,
        *blocked_key_patterns;
    bool allow_all_keys;
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

static void put_field(struct kiln_json_out *w, const char *name, struct kiln_str text)
{
    kiln_json_put_name(w, name);
    kiln_json_put_str(w, text);
}

/* Attributes whose key, or whose value, matches; ptr NULL: any. */
static void put_rule(struct kiln_json_out *w, struct kiln_str key, struct kiln_str value,
                     const char *action)
{
    kiln_json_put_object(w);
    put_field(w, "match", KILN_STR("attribute"));
    if (key.ptr)
        put_field(w, "attribute", key);
    if (value.ptr)
        put_field(w, "regex", value);
    put_field(w, "action", kiln_str_of(action));
    if (strcmp(action, "replace") == 0)
        put_field(w, "replacement", KILN_STR("****"));
    kiln_json_end_object(w);
}

static void put_blocked(struct kiln_json_out *w, const struct settings *settings)
{
    const struct kiln_node *keys = settings->blocked_key_patterns;
    const struct kiln_node *values = settings->blocked_values;

    for (const struct kiln_node *node = keys ? keys->first : NULL; node; node = node->next)
        put_rule(w, kiln_str_of(node->text), KILN_STR("^[\\s\\S]*$"), "replace");
    for (const struct kiln_node *node = values ? values->first : NULL; node; node = node->next)
        put_rule(w, KILN_STR_NONE, kiln_str_of(node->text), "replace");
}

static void put_keys(struct kiln_buf *out, const struct kiln_node *list)
{
    for (const struct kiln_node *node = list ? list->first : NULL; node; node = node->next)
        kiln_buf_printf(out, "%s\\Q%s\\E",
                        kiln_str_ends(kiln_buf_str(out), KILN_STR(":")) ? "" : "|", node->text);
}

/* Keys that are none of these. */
static void put_others(struct kiln_json_out *w, struct kiln_buf *pattern,
                       const struct settings *settings)
{
    kiln_buf_puts(pattern, "^(?!(?:");
    put_keys(pattern, settings->allowed_keys);
    put_keys(pattern, settings->ignored_keys);
    kiln_buf_puts(pattern, ")$)");
    if (!pattern->error)
        put_rule(w, kiln_buf_str(pattern), KILN_STR_NONE, "drop");
}

static int make_rules(const struct settings *settings, struct kiln_redact **ret_rules,
                      struct kiln_err *err)
{
    struct kiln_buf text, pattern;
    struct kiln_json_out w;
    int r;

    kiln_buf_init(&text, TEXT_MAX);
    kiln_buf_init(&pattern, TEXT_MAX);
    kiln_json_out_init(&w, &text, 0);
    kiln_json_put_array(&w);
    if (!settings->allow_all_keys)
        put_others(&w, &pattern, settings);
    put_blocked(&w, settings);
    kiln_json_end_array(&w);
    r = text.error ? text.error : pattern.error;
    if (r < 0)
        kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    else
        r = kiln_redact_parse(kiln_buf_str(&text), ret_rules, err);
    kiln_buf_done(&text);
    kiln_buf_done(&pattern);
    return r;
}

/* ---- settings ---- */

static bool speaks_collector(const struct settings *settings)
{
    return settings->allow_all_keys || settings->allowed_keys || settings->blocked_values ||
           settings->blocked_key_patterns;
}

static int check_texts(const struct kiln_node *list, struct kiln_err *err)
{
    for (const struct kiln_node *node = list ? list->first : NULL; node; node = node->next) {
        if (node->kind != KILN_NODE_TEXT)
            return kiln_node_fail(node, KILN_E_MALFORMED, err, "a text belongs here");
    }
    return 0;
}

static int read_rules(const struct settings *settings, struct kiln_redact *ret_rules[2],
                      struct kiln_err *err)
{
    int r = 0;

    if (settings->rules)
        r = kiln_redact_read(settings->rules, &ret_rules[0], err);
    if (r == 0 && speaks_collector(settings))
        r = make_rules(settings, &ret_rules[1], err);
    return r;
}

static void free_rules(struct kiln_redact *rules[2])
{
    kiln_redact_free(rules[0]);
    kiln_redact_free(rules[1]);
}

static int read(const struct kiln_node *node, void *into, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"rules", KILN_FIELD_LIST, offsetof(struct settings, rules)},
        {"allow_all_keys", KILN_FIELD_BOOL, offsetof(struct settings, allow_all_keys)},
        {"allowed_keys", KILN_FIELD_LIST, offsetof(struct settings, allowed_keys)},
        {"ignored_keys", KILN_FIELD_LIST, offsetof(struct settings, ignored_keys)},
        {"blocked_values", KILN_FIELD_LIST, offsetof(struct settings, blocked_values)},
        {"blocked_key_patterns", KILN_FIELD_LIST, offsetof(struct settings, blocked_key_patterns)},
        {"summary", KILN_FIELD_TEXT, offsetof(struct settings, summary)},
    };
    struct settings *settings = into;
    struct kiln_redact *rules[2] = {NULL, NULL};
    int r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), settings, err);

    if (r == 0 && !settings->rules && !speaks_collector(settings))
        return kiln_err_set(err, KILN_E_MALFORMED, NULL,
                            "rules, allowed_keys or blocked_values: nothing says what to redact");
    if (r == 0)
        r = check_texts(settings->allowed_keys, err);
    if (r == 0)
        r = check_texts(settings->ignored_keys, err);
    if (r == 0)
        r = check_texts(settings->blocked_values, err);
    if (r == 0)
        r = check_texts(settings->blocked_key_patterns, err);
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
