/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules are read from libyaml's events, one at a time; nothing of a document is kept but the rule
 * at hand.  There are no anchors, no tags and no nesting in rules, so there is nothing to expand.
 */
#include <errno.h>
#include <stdio.h>
#include <yaml.h>

#include "core/redact_int.h"

#define TEXT_BYTES_MAX (1u << 20)
#define RULES_MAX      1000u

struct reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the one at hand */
    struct kiln_err *err;
};

/* ---- errors ---- */

static int fail_at(struct reader *r, yaml_mark_t mark, int code, const char *text)
{
    char where[64];

    snprintf(where, sizeof(where), "line %zu, column %zu", mark.line + 1, mark.column + 1);
    return kiln_err_set(r->err, code, where, "%s", text);
}

/* The event at hand is not what should stand here. */
static int fail_here(struct reader *r, const char *text)
{
    return fail_at(r, r->event.start_mark, KILN_E_MALFORMED, text);
}

/* ---- events ---- */

/* Steps to the next event.  On failure the event at hand is empty. */
static int next(struct reader *r)
{
    yaml_event_delete(&r->event);
    if (yaml_parser_parse(&r->parser, &r->event))
        return 0;
    memset(&r->event, 0, sizeof(r->event));
    if (r->parser.error == YAML_MEMORY_ERROR)
        return kiln_err_set(r->err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    return fail_at(r, r->parser.problem_mark, KILN_E_MALFORMED,
                   r->parser.problem ? r->parser.problem : "this is not YAML");
}

static struct kiln_str scalar(const struct reader *r)
{
    return (struct kiln_str){(const char *)r->event.data.scalar.value, r->event.data.scalar.length};
}

/* Steps to the next event, which has to be a text. */
static int next_scalar(struct reader *r, const char *or_else)
{
    int n = next(r);

    return n < 0 || r->event.type == YAML_SCALAR_EVENT ? n : fail_here(r, or_else);
}

/* ---- one rule ---- */

static const char *const matches[] = {"path", "name", "attribute"};
static const char *const actions[] = {"drop", "hash", "replace"};

/* A rule as written: where each of its texts stands, for errors. */
enum field { MATCH, ATTRIBUTE, REGEX, ACTION, REPLACEMENT, N_FIELDS };
static const char *const fields[N_FIELDS] = {"match", "attribute", "regex", "action",
                                             "replacement"};

struct seen {
    bool present[N_FIELDS];
    yaml_mark_t mark[N_FIELDS]; /* of the value */
};

/* The position of a word in a list, or -1. */
static int word_in(struct kiln_str word, const char *const *list, int n)
{
    for (int i = 0; i < n; i++) {
        if (kiln_str_eq(word, kiln_str_of(list[i])))
            return i;
    }
    return -1;
}

static int read_regex(struct reader *r, struct kiln_regex **ret)
{
    struct kiln_err err = {0};
    int n = kiln_regex_new(scalar(r), 0, ret, &err);

    return n < 0 ? fail_at(r, r->event.start_mark, n, err.text) : 0;
}

static int read_replacement(struct kiln_redact_rule *rule, struct kiln_str text)
{
    char *copy = kiln_malloc(text.len);

    if (!copy)
        return -ENOMEM;
    rule->replacement = (struct kiln_str){memcpy(copy, text.ptr, text.len), text.len};
    return 0;
}

/* The value of a field, which is the event at hand. */
static int read_value(struct reader *r, struct kiln_redact_rule *rule, enum field field)
{
    int word;

    switch (field) {
    case MATCH:
        word = word_in(scalar(r), matches, KILN_ARRAY_LEN(matches));
        rule->match = (enum kiln_redact_match)word;
        return word < 0 ? fail_here(r, "match is path, name or attribute") : 0;
    case ACTION:
        word = word_in(scalar(r), actions, KILN_ARRAY_LEN(actions));
        rule->action = (enum kiln_redact_action)word;
        return word < 0 ? fail_here(r, "action is drop, hash or replace") : 0;
    case ATTRIBUTE:
        return read_regex(r, &rule->key);
    case REGEX:
        return read_regex(r, &rule->regex);
    default:
        return read_replacement(rule, scalar(r));
    }
}

static int read_field(struct reader *r, struct kiln_redact_rule *rule, struct seen *seen)
{
    int field = word_in(scalar(r), fields, N_FIELDS);
    int n;

    if (field < 0)
        return fail_here(r, "a rule has match, attribute, regex, action and replacement");
    if (seen->present[field])
        return fail_here(r, "this is here twice");
    n = next_scalar(r, "a text belongs here");
    if (n < 0)
        return n;
    seen->present[field] = true;
    seen->mark[field] = r->event.start_mark;
    return read_value(r, rule, (enum field)field);
}

/* Whether the fields of a rule make sense together. */
static int check_rule(struct reader *r, const struct kiln_redact_rule *rule,
                      const struct seen *seen, yaml_mark_t start)
{
    struct kiln_err err = {0};

    if (!seen->present[MATCH] || !seen->present[ACTION])
        return fail_at(r, start, KILN_E_MALFORMED, "this rule lacks match or action");
    if (seen->present[ATTRIBUTE] && rule->match != KILN_REDACT_ATTRIBUTE)
        return fail_at(r, seen->mark[ATTRIBUTE], KILN_E_MALFORMED,
                       "a key is only for match: attribute");
    if (!seen->present[REGEX] && !seen->present[ATTRIBUTE])
        return fail_at(r, start, KILN_E_MALFORMED, "this rule has no regex");
    if (seen->present[REPLACEMENT] != (rule->action == KILN_REDACT_REPLACE))
        return fail_at(r, start, KILN_E_MALFORMED, "a replacement and action: replace go together");
    if (rule->regex && kiln_regex_check_replacement(rule->regex, rule->replacement, &err) < 0)
        return fail_at(r, seen->mark[REPLACEMENT], KILN_E_PATTERN, err.text);
    return 0;
}

static void rule_done(struct kiln_redact_rule *rule)
{
    kiln_regex_free(rule->key);
    kiln_regex_free(rule->regex);
    kiln_free((char *)(uintptr_t)rule->replacement.ptr);
}

/* A rule, of which the event at hand is the beginning. */
static int read_rule(struct reader *r, struct kiln_redact *rules)
{
    yaml_mark_t start = r->event.start_mark;
    struct kiln_redact_rule rule = {.line = (uint32_t)start.line + 1};
    struct seen seen = {0};
    int n;

    while ((n = next(r)) == 0 && r->event.type == YAML_SCALAR_EVENT) {
        n = read_field(r, &rule, &seen);
        if (n < 0)
            break;
    }
    if (n == 0 && r->event.type != YAML_MAPPING_END_EVENT)
        n = fail_here(r, "the name of a field belongs here");
    if (n == 0)
        n = check_rule(r, &rule, &seen, start);
    if (n == 0)
        n = kiln_grow(&rules->budget, (void **)&rules->rules, &rules->cap, (uint64_t)rules->n + 1,
                      sizeof(rule), RULES_MAX);
    if (n < 0) {
        rule_done(&rule);
        return kiln_err_set(r->err, n, NULL, "%s", kiln_err_text(n));
    }
    rules->rules[rules->n++] = rule;
    return 0;
}

/* ---- the list ---- */

/* The list, of which the event at hand is the beginning. */
static int read_list(struct reader *r, struct kiln_redact *rules)
{
    int n;

    if (r->event.type != YAML_SEQUENCE_START_EVENT)
        return fail_here(r, "a list of rules belongs here");
    while ((n = next(r)) == 0 && r->event.type == YAML_MAPPING_START_EVENT) {
        n = read_rule(r, rules);
        if (n < 0)
            return n;
    }
    if (n == 0 && r->event.type != YAML_SEQUENCE_END_EVENT)
        return fail_here(r, "a rule (match, regex, action) belongs here");
    return n;
}

/* The list, by itself or under the key `redaction`. */
static int read_content(struct reader *r, struct kiln_redact *rules)
{
    int n;

    if (r->event.type != YAML_MAPPING_START_EVENT)
        return read_list(r, rules);
    n = next_scalar(r, "the key redaction belongs here");
    if (n == 0 && !kiln_str_eq(scalar(r), KILN_STR("redaction")))
        n = fail_here(r, "the key redaction belongs here");
    if (n == 0)
        n = next(r);
    if (n == 0)
        n = read_list(r, rules);
    if (n == 0)
        n = next(r);
    if (n == 0 && r->event.type != YAML_MAPPING_END_EVENT)
        return fail_here(r, "nothing but the key redaction belongs here");
    return n;
}

static int read_document(struct reader *r, struct kiln_redact *rules)
{
    int n = next(r); /* the stream */

    if (n == 0)
        n = next(r);
    if (n == 0 && r->event.type != YAML_DOCUMENT_START_EVENT)
        return fail_here(r, "a list of rules belongs here");
    if (n == 0)
        n = next(r);
    if (n == 0)
        n = read_content(r, rules);
    if (n == 0)
        n = next(r); /* the end of the document */
    if (n == 0)
        n = next(r);
    if (n == 0 && r->event.type != YAML_STREAM_END_EVENT)
        return fail_here(r, "there is a second document");
    return n;
}

int kiln_redact_parse(struct kiln_str text, struct kiln_redact **ret_rules, struct kiln_err *err)
{
    struct reader r = {.err = err};
    struct kiln_redact *rules;
    int n;

    if (text.len > TEXT_BYTES_MAX)
        return kiln_err_set(err, KILN_E_LIMIT, NULL, "rules take %zu bytes, at most %u are allowed",
                            text.len, TEXT_BYTES_MAX);
    rules = kiln_calloc(1, sizeof(*rules));
    if (!rules || !yaml_parser_initialize(&r.parser)) {
        kiln_free(rules);
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    }
    rules->budget.limit = SIZE_MAX;
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)(text.ptr ? text.ptr : ""),
                                 text.len);
    n = read_document(&r, rules);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    if (n < 0) {
        kiln_redact_free(rules);
        return n;
    }
    *ret_rules = rules;
    return 0;
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
