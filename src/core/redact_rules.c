/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules are read from a configuration's nodes (base/config.h), without variables: expressions and
 * replacements are full of dollars.
 */
#include <errno.h>

#include "core/redact_int.h"

#define RULES_MAX 1000u

static const char *const matches[] = {"path", "name", "attribute"};
static const char *const actions[] = {"drop", "hash", "replace", "keep"};

/* A rule as written: the values of its fields. */
enum field { MATCH, ATTRIBUTE, REGEX, ACTION, REPLACEMENT, N_FIELDS };
static const char *const fields[N_FIELDS] = {"match", "attribute", "regex", "action",
                                             "replacement"};

struct written {
    const struct kiln_node *field[N_FIELDS]; /* texts; NULL: not there */
};

static int fail(const struct kiln_node *node, struct kiln_err *err, const char *text)
{
    return kiln_node_fail(node, KILN_E_MALFORMED, err, "%s", text);
}

/* The same of the key of a node. */
static int fail_key(const struct kiln_node *node, struct kiln_err *err, const char *text)
{
    struct kiln_node key = {.line = node->key_line, .column = node->key_column};

    return fail(&key, err, text);
}

/* ---- one rule ---- */

/* The position of a word in a list, or -1. */
static int word_in(const char *word, const char *const *list, int n)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(word, list[i]) == 0)
            return i;
    }
    return -1;
}

static int read_regex(const struct kiln_node *node, struct kiln_regex **ret, struct kiln_err *err)
{
    struct kiln_err why = {0};
    int n = kiln_regex_new(kiln_str_of(node->text), 0, ret, &why);

    return n < 0 ? kiln_node_fail(node, n, err, "%s", why.text) : 0;
}

static int read_replacement(struct kiln_redact_rule *rule, struct kiln_str text)
{
    char *copy = text.len ? kiln_malloc(text.len) : NULL;

    if (text.len && !copy)
        return -ENOMEM;
    if (copy)
        memcpy(copy, text.ptr, text.len);
    rule->replacement = (struct kiln_str){copy, text.len};
    return 0;
}

static int read_value(const struct kiln_node *node, enum field field, struct kiln_redact_rule *rule,
                      struct kiln_err *err)
{
    int word;

    switch (field) {
    case MATCH:
        word = word_in(node->text, matches, KILN_ARRAY_LEN(matches));
        rule->match = (enum kiln_redact_match)word;
        return word < 0 ? fail(node, err, "match is path, name or attribute") : 0;
    case ACTION:
        word = word_in(node->text, actions, KILN_ARRAY_LEN(actions));
        rule->action = (enum kiln_redact_action)word;
        return word < 0 ? fail(node, err, "action is drop, hash, replace or keep") : 0;
    case ATTRIBUTE:
        return read_regex(node, &rule->key, err);
    case REGEX:
        return read_regex(node, &rule->regex, err);
    default:
        return read_replacement(rule, kiln_str_of(node->text));
    }
}

static int read_fields(const struct kiln_node *map, struct kiln_redact_rule *rule,
                       struct written *written, struct kiln_err *err)
{
    for (const struct kiln_node *m = map->first; m; m = m->next) {
        int field = word_in(m->key, fields, N_FIELDS);
        int n;

        if (field < 0)
            return fail_key(m, err, "a rule has match, attribute, regex, action and replacement");
        if (m->kind != KILN_NODE_TEXT)
            return fail(m, err, "a text belongs here");
        written->field[field] = m;
        n = read_value(m, (enum field)field, rule, err);
        if (n < 0)
            return n;
    }
    return 0;
}

/* Whether the fields of a rule make sense together. */
static int check_rule(const struct kiln_node *map, const struct kiln_redact_rule *rule,
                      const struct written *written, struct kiln_err *err)
{
    const struct kiln_node *const *field = written->field;
    struct kiln_err why = {0};

    if (!field[MATCH] || !field[ACTION])
        return fail(map, err, "this rule lacks match or action");
    if (field[ATTRIBUTE] && rule->match != KILN_REDACT_ATTRIBUTE)
        return fail(field[ATTRIBUTE], err, "a key is only for match: attribute");
    if (!field[REGEX] && !field[ATTRIBUTE])
        return fail(map, err, "this rule has no regex");
    if (!field[REPLACEMENT] != (rule->action != KILN_REDACT_REPLACE))
        return fail(map, err, "a replacement and action: replace go together");
    if (rule->regex && field[REPLACEMENT] &&
        kiln_regex_check_replacement(rule->regex, rule->replacement, &why) < 0)
        return kiln_node_fail(field[REPLACEMENT], KILN_E_PATTERN, err, "%s", why.text);
    return 0;
}

static void rule_done(struct kiln_redact_rule *rule)
{
    kiln_regex_free(rule->key);
    kiln_regex_free(rule->regex);
    kiln_free((char *)(uintptr_t)rule->replacement.ptr);
}

static int put_rule(struct kiln_redact *rules, struct kiln_redact_rule *rule)
{
    int n = kiln_grow(&rules->budget, (void **)&rules->rules, &rules->cap, (uint64_t)rules->n + 1,
                      sizeof(*rule), RULES_MAX);

    if (n == 0)
        rules->rules[rules->n++] = *rule;
    return n;
}

static int read_rule(const struct kiln_node *map, struct kiln_redact *rules, struct kiln_err *err)
{
    struct kiln_redact_rule rule = {.line = map->line};
    struct written written = {0};
    int n;

    if (map->kind != KILN_NODE_MAP)
        return fail(map, err, "a rule (match, regex, action) belongs here");
    n = read_fields(map, &rule, &written, err);
    if (n == 0)
        n = check_rule(map, &rule, &written, err);
    if (n == 0)
        n = put_rule(rules, &rule);
    if (n < 0) {
        rule_done(&rule);
        return kiln_err_set(err, n, NULL, "%s", kiln_err_text(n));
    }
    return 0;
}

/* ---- made, not read ---- */

int kiln_redact_new(struct kiln_redact **ret_rules)
{
    struct kiln_redact *rules = kiln_calloc(1, sizeof(*rules));

    if (!rules)
        return -ENOMEM;
    rules->budget.limit = SIZE_MAX;
    *ret_rules = rules;
    return 0;
}

/* A replacement as the rule has it: with each dollar twice. */
static int quote_replacement(struct kiln_redact_rule *rule, struct kiln_str text)
{
    struct kiln_buf out;
    int n;

    kiln_buf_init(&out, 2 * text.len + 1);
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '$')
            kiln_buf_putc(&out, '$');
        kiln_buf_putc(&out, text.ptr[i]);
    }
    n = out.error ? out.error : read_replacement(rule, kiln_buf_str(&out));
    kiln_buf_done(&out);
    return n;
}

int kiln_redact_add(struct kiln_redact *rules, const struct kiln_redact_spec *spec,
                    struct kiln_err *err)
{
    struct kiln_redact_rule rule = {.match = spec->match,
                                    .action = spec->action,
                                    .mask = spec->mask,
                                    .context = spec->context,
                                    .texts_only = spec->texts_only,
                                    .outermost = spec->outermost,
                                    .line = spec->line};
    struct kiln_err why = {0};
    int n = 0;

    if (spec->key.ptr)
        n = kiln_regex_new(spec->key, 0, &rule.key, &why);
    if (n == 0 && spec->regex.ptr)
        n = kiln_regex_new(spec->regex, 0, &rule.regex, &why);
    if (n == 0 && spec->action == KILN_REDACT_REPLACE && !spec->mask)
        n = quote_replacement(&rule, spec->replacement);
    if (n == 0)
        n = put_rule(rules, &rule);
    if (n == 0)
        return 0;
    rule_done(&rule);
    return kiln_err_set(err, n, NULL, "%s", why.text[0] ? why.text : kiln_err_text(n));
}

/* ---- the list ---- */

static int read_list(const struct kiln_node *list, struct kiln_redact *rules, struct kiln_err *err)
{
    int n = 0;

    if (list->kind != KILN_NODE_LIST)
        return fail(list, err, "a list of rules belongs here");
    for (const struct kiln_node *m = list->first; n == 0 && m; m = m->next)
        n = read_rule(m, rules, err);
    return n;
}

/* The list, by itself or under the key `redaction`. */
static int read_content(const struct kiln_node *root, struct kiln_redact *rules,
                        struct kiln_err *err)
{
    const struct kiln_node *only = root->first;

    if (root->kind != KILN_NODE_MAP)
        return read_list(root, rules, err);
    if (!only)
        return fail(root, err, "the key redaction belongs here");
    if (strcmp(only->key, "redaction") != 0)
        return fail_key(only, err, "the key redaction belongs here");
    if (only->next)
        return fail_key(only->next, err, "nothing but the key redaction belongs here");
    return read_list(only, rules, err);
}

int kiln_redact_read(const struct kiln_node *node, struct kiln_redact **ret_rules,
                     struct kiln_err *err)
{
    static const struct kiln_node nothing = {.kind = KILN_NODE_TEXT, .line = 1, .column = 1};
    struct kiln_redact *rules;
    int n = kiln_redact_new(&rules);

    if (n < 0)
        return kiln_err_set(err, n, NULL, "%s", kiln_err_text(n));
    n = read_content(node ? node : &nothing, rules, err);
    if (n < 0) {
        kiln_redact_free(rules);
        return n;
    }
    *ret_rules = rules;
    return 0;
}

int kiln_redact_parse(struct kiln_str text, struct kiln_redact **ret_rules, struct kiln_err *err)
{
    struct kiln_config *config;
    int n = kiln_config_parse_plain(text, &config, err);

    if (n < 0)
        return n;
    n = kiln_redact_read(kiln_config_root(config), ret_rules, err);
    kiln_config_free(config);
    return n;
}

void kiln_redact_free(struct kiln_redact *rules)
{
    if (!rules)
        return;
    for (uint32_t i = 0; i < rules->n; i++)
        rule_done(&rules->rules[i]);
    kiln_free(rules->rules);
    kiln_free(rules);
}
