/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules are checked when they are read, so that applying them cannot fail; texts stay those of the
 * configuration.
 */
#include "host/identity_rules.h"

#include <errno.h>
#include <stdio.h>

#include "base/arena.h"
#include "host/identity_int.h"

enum { RULES_MAX = 256, MATCH_MAX = 16, SET_MAX = 32, STARS_MAX = 9, ENV_MAX = 64 };
#define BYTES_MAX ((size_t)1 << 20)

struct pair {
    const char *key, *text; /* a pattern, or what to set */
};

struct rule {
    struct pair *match, *set;
    uint32_t n_match, n_set, n_stars;
};

struct kiln_identity_rules {
    struct kiln_budget budget;
    struct kiln_arena arena;
    struct rule *rules;
    uint32_t n;
    const char *env[ENV_MAX];
    uint32_t n_env;
};

/* ---- reading ---- */

static struct kiln_str variable_of(struct kiln_str name)
{
    struct kiln_str prefix = KILN_STR("env:");

    if (!kiln_str_starts(name, prefix))
        return KILN_STR_NONE;
    return (struct kiln_str){name.ptr + prefix.len, name.len - prefix.len};
}

/* Remembers the variable that a name is, if it is one. */
static int note_variable(struct kiln_identity_rules *rules, struct kiln_str name,
                         const struct kiln_node *node, struct kiln_err *err)
{
    struct kiln_str variable = variable_of(name);
    char *copy;

    if (!variable.ptr)
        return 0;
    for (uint32_t i = 0; i < rules->n_env; i++)
        if (kiln_str_eq(kiln_str_of(rules->env[i]), variable))
            return 0;
    if (!variable.len || memchr(variable.ptr, '=', variable.len) || rules->n_env == ENV_MAX)
        return kiln_node_fail(node, KILN_E_MALFORMED, err,
                              "\"%.*s\" is no variable, or one of "
                              "more than 64",
                              KILN_STR_ARG(name));
    copy = kiln_arena_alloc(&rules->arena, variable.len + 1);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, variable.ptr, variable.len);
    copy[variable.len] = '\0';
    rules->env[rules->n_env++] = copy;
    return 0;
}

/* Members of a map, as pairs. */
static int read_pairs(struct kiln_identity_rules *rules, const struct kiln_node *map, uint32_t max,
                      struct pair **ret_pairs, struct kiln_err *err)
{
    struct pair *pairs = kiln_arena_alloc(&rules->arena, (map->n + 1) * sizeof(*pairs));
    uint32_t n = 0;
    int r = 0;

    if (!pairs)
        return -ENOMEM;
    if (map->n > max)
        return kiln_node_fail(map, KILN_E_MALFORMED, err, "a rule has at most %u of them", max);
    for (const struct kiln_node *m = map->first; r == 0 && m; m = m->next, n++) {
        pairs[n].key = m->key;
        r = kiln_node_text(m, &pairs[n].text, err);
    }
    *ret_pairs = pairs;
    return r;
}

static int read_match(struct kiln_identity_rules *rules, const struct kiln_node *map,
                      struct rule *rule, struct kiln_err *err)
{
    const struct kiln_node *m = map->first;
    int r = read_pairs(rules, map, MATCH_MAX, &rule->match, err);

    rule->n_match = map->n;
    for (uint32_t i = 0; r == 0 && i < rule->n_match; i++, m = m->next) {
        for (const char *c = rule->match[i].text; *c; c++)
            rule->n_stars += *c == '*';
        r = note_variable(rules, kiln_str_of(rule->match[i].key), m, err);
    }
    if (r == 0 && rule->n_stars > STARS_MAX)
        r = kiln_node_fail(map, KILN_E_MALFORMED, err, "a rule has at most nine stars");
    return r;
}

/* What stands between the braces that `*text` begins with; false: there is no end. */
static bool cut_reference(const char **text, struct kiln_str *ret_name)
{
    const char *end = strchr(*text, '}');

    if (!end)
        return false;
    *ret_name = (struct kiln_str){*text + 1, (size_t)(end - *text - 1)};
    *text = end + 1;
    return ret_name->len > 0;
}

/* Which star a name is, from 1 on; 0: none. */
static uint32_t star_of(struct kiln_str name)
{
    return name.len == 1 && *name.ptr >= '1' && *name.ptr <= '9' ? (uint32_t)(*name.ptr - '0') : 0;
}

static int check_text(struct kiln_identity_rules *rules, const struct rule *rule,
                      const struct kiln_node *node, struct kiln_err *err)
{
    const char *text = node->text;
    int r = 0;

    while (r == 0 && *(text += strcspn(text, "{"))) {
        struct kiln_str name;

        if (text[1] == '{') {
            text += 2;
            continue;
        }
        if (!cut_reference(&text, &name))
            return kiln_node_fail(node, KILN_E_MALFORMED, err,
                                  "a brace begins a name and ends with another brace ({{ is one)");
        if (star_of(name) > rule->n_stars)
            return kiln_node_fail(node, KILN_E_MALFORMED, err, "the rule has no star %u",
                                  star_of(name));
        r = note_variable(rules, name, node, err);
    }
    return r;
}

/* Numbers of a process, and what is said of the whole host. */
static bool is_fixed(struct kiln_str key)
{
    return kiln_str_eq(key, KILN_STR("process.pid")) ||
           kiln_str_eq(key, KILN_STR("process.parent_pid")) ||
           kiln_str_eq(key, KILN_STR("process.creation.time")) ||
           kiln_str_starts(key, KILN_STR("host.")) || kiln_str_starts(key, KILN_STR("env:"));
}

static int read_set(struct kiln_identity_rules *rules, const struct kiln_node *map,
                    struct rule *rule, struct kiln_err *err)
{
    const struct kiln_node *m = map->first;
    int r = read_pairs(rules, map, SET_MAX, &rule->set, err);

    rule->n_set = map->n;
    for (uint32_t i = 0; r == 0 && i < rule->n_set; i++, m = m->next) {
        if (is_fixed(kiln_str_of(rule->set[i].key)))
            return kiln_node_fail(m, KILN_E_MALFORMED, err,
                                  "%s cannot be set here (agent.resource sets host.*)",
                                  rule->set[i].key);
        r = check_text(rules, rule, m, err);
    }
    return r;
}

struct keys {
    const struct kiln_node *match, *set;
};

static int read_rule(struct kiln_identity_rules *rules, const struct kiln_node *node,
                     struct rule *rule, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"match", KILN_FIELD_MAP, offsetof(struct keys, match)},
        {"set", KILN_FIELD_MAP, offsetof(struct keys, set)},
    };
    struct keys keys = {0};
    int r = node->kind == KILN_NODE_MAP
                ? kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), &keys, err)
                : kiln_node_fail(node, KILN_E_MALFORMED, err, "a rule is a map: match, set");

    if (r == 0 && !keys.set)
        r = kiln_node_fail(node, KILN_E_MALFORMED, err, "a rule says what to set");
    if (r == 0 && keys.match)
        r = read_match(rules, keys.match, rule, err);
    return r < 0 ? r : read_set(rules, keys.set, rule, err);
}

static int read_rules(struct kiln_identity_rules *rules, const struct kiln_node *list,
                      struct kiln_err *err)
{
    const struct kiln_node *node = list ? list->first : NULL;
    uint32_t n = list ? list->n : 0;
    int r = 0;

    if (list && list->kind != KILN_NODE_LIST)
        return kiln_node_fail(list, KILN_E_MALFORMED, err, "this must be a list of rules");
    if (n > RULES_MAX)
        return kiln_node_fail(list, KILN_E_MALFORMED, err, "there are at most %d rules", RULES_MAX);
    rules->rules = kiln_arena_alloc(&rules->arena, (n + 1) * sizeof(*rules->rules));
    if (!rules->rules)
        return -ENOMEM;
    for (; r == 0 && rules->n < n; rules->n++, node = node->next) {
        rules->rules[rules->n] = (struct rule){0};
        r = read_rule(rules, node, &rules->rules[rules->n], err);
    }
    return r;
}

int kiln_identity_rules_read(const struct kiln_node *list, struct kiln_identity_rules **ret_rules,
                             struct kiln_err *err)
{
    struct kiln_identity_rules *rules = kiln_calloc(1, sizeof(*rules));
    int r = -ENOMEM;

    if (rules) {
        rules->budget.limit = BYTES_MAX;
        kiln_arena_init(&rules->arena, &rules->budget);
        r = read_rules(rules, list, err);
    }
    if (r < 0) {
        kiln_identity_rules_free(rules);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    *ret_rules = rules;
    return 0;
}

void kiln_identity_rules_free(struct kiln_identity_rules *rules)
{
    if (!rules)
        return;
    kiln_arena_done(&rules->arena);
    kiln_free(rules);
}

const char *kiln_identity_rules_env(const struct kiln_identity_rules *rules, uint32_t i)
{
    return i < rules->n_env ? rules->env[i] : NULL;
}

/* ---- applying ---- */

struct stars {
    struct kiln_str at[STARS_MAX];
    uint32_t n;
};

/* Each star takes as little as it can; only the last one met is ever moved. */
static bool matches(const char *pattern, struct kiln_str text, struct stars *stars)
{
    const char *star = NULL;
    size_t at = 0;

    while (at < text.len) {
        if (*pattern == '*') {
            star = ++pattern;
            stars->at[stars->n++] = (struct kiln_str){text.ptr + at, 0};
        } else if (*pattern && (*pattern == '?' || *pattern == text.ptr[at])) {
            pattern++;
            at++;
        } else if (star) {
            struct kiln_str *taken = &stars->at[stars->n - 1];

            pattern = star;
            at = (size_t)(taken->ptr - text.ptr) + ++taken->len;
        } else {
            return false;
        }
    }
    for (; *pattern == '*'; pattern++)
        stars->at[stars->n++] = (struct kiln_str){text.ptr + at, 0};
    return !*pattern;
}

/* The variable or attribute of a name; empty: it is not there. */
static struct kiln_str look_up(const struct kiln_facts *facts, struct kiln_str name)
{
    struct kiln_str variable = variable_of(name);
    char text[KILN_COMMAND_MAX];

    if (!variable.ptr)
        return kiln_attrs_get(&facts->attrs, name);
    snprintf(text, sizeof(text), "%.*s", KILN_STR_ARG(variable));
    return kiln_facts_env(facts, text);
}

static bool fits(const struct kiln_facts *facts, const struct rule *rule, struct stars *stars)
{
    for (uint32_t i = 0; i < rule->n_match; i++) {
        struct kiln_str value = look_up(facts, kiln_str_of(rule->match[i].key));

        if (!value.len && rule->match[i].text[0])
            return false;
        if (!matches(rule->match[i].text, value, stars))
            return false;
    }
    return true;
}

/* False: something that the text refers to is not there. */
static bool fill_in(const struct kiln_facts *facts, const char *text, const struct stars *stars,
                    struct kiln_buf *out)
{
    while (*text) {
        size_t plain = strcspn(text, "{");
        struct kiln_str name, value;

        kiln_buf_add(out, text, plain);
        text += plain;
        if (!*text)
            break;
        if (text[1] == '{') {
            kiln_buf_putc(out, '{');
            text += 2;
            continue;
        }
        if (!cut_reference(&text, &name))
            return false;
        value = star_of(name) ? stars->at[star_of(name) - 1] : look_up(facts, name);
        if (!value.len)
            return false;
        kiln_buf_add_str(out, value);
    }
    return !out->error;
}

/* All texts are made before the first is set: they may be made of what is set. */
static void apply_rule(struct kiln_facts *facts, const struct rule *rule)
{
    struct stars stars = {0};
    struct kiln_str rest;
    struct kiln_buf texts;
    uint32_t made = 0; /* a bit each */

    if (!fits(facts, rule, &stars))
        return;
    kiln_buf_init(&texts, (size_t)SET_MAX * KILN_ATTR_TEXT_MAX);
    for (uint32_t i = 0; i < rule->n_set; i++) {
        size_t before = texts.len;

        if (fill_in(facts, rule->set[i].text, &stars, &texts))
            made |= 1u << i;
        else
            texts.len = before;
        kiln_buf_putc(&texts, '\0');
    }
    rest = kiln_buf_str(&texts);
    for (uint32_t i = 0; i < rule->n_set && !texts.error; i++) {
        struct kiln_str text = kiln_str_cut(&rest, '\0');

        if (made & 1u << i)
            kiln_attrs_set(&facts->attrs, kiln_str_of(rule->set[i].key), text);
    }
    kiln_buf_done(&texts);
}

void kiln_facts_apply(struct kiln_facts *facts, const struct kiln_identity_rules *rules)
{
    for (uint32_t i = 0; rules && i < rules->n; i++)
        apply_rule(facts, &rules->rules[i]);
}
