/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/processors/actions.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <strings.h>

#include "base/mem.h"
#include "collector/processors/changing.h"
#include "collector/processors/matching.h"

#define ACTIONS_MAX 1000u

struct written {
    const char *key, *action, *from_attribute, *from_context, *pattern, *converted_type;
    const struct kiln_node *value, *default_value;
};

static const struct kiln_field fields[] = {
    {"key", KILN_FIELD_TEXT, offsetof(struct written, key)},
    {"action", KILN_FIELD_TEXT, offsetof(struct written, action)},
    {"value", KILN_FIELD_NODE, offsetof(struct written, value)},
    {"default_value", KILN_FIELD_NODE, offsetof(struct written, default_value)},
    {"from_attribute", KILN_FIELD_TEXT, offsetof(struct written, from_attribute)},
    {"from_context", KILN_FIELD_TEXT, offsetof(struct written, from_context)},
    {"pattern", KILN_FIELD_TEXT, offsetof(struct written, pattern)},
    {"converted_type", KILN_FIELD_TEXT, offsetof(struct written, converted_type)},
};

int kiln_plain_value_read(const struct kiln_node *node, struct kiln_plain_value *ret,
                          struct kiln_err *err)
{
    char *end;

    if (node->kind != KILN_NODE_TEXT)
        return kiln_node_fail(node, KILN_E_UNSUPPORTED, err,
                              "a text, a number, true or false belongs here");
    *ret = (struct kiln_plain_value){.kind = KILN_VALUE_STRING, .text = kiln_str_of(node->text)};
    if (node->quoted)
        return 0;
    if (strcmp(node->text, "true") == 0 || strcmp(node->text, "false") == 0) {
        ret->kind = KILN_VALUE_BOOL;
        ret->i = node->text[0] == 't';
    } else if (kiln_str_parse_i64(ret->text, &ret->i) == 0) {
        ret->kind = KILN_VALUE_INT;
    } else if (strspn(node->text, "+-.0123456789eE") == ret->text.len && ret->text.len) {
        ret->d = strtod(node->text, &end);
        ret->kind = *end == '\0' ? KILN_VALUE_DOUBLE : KILN_VALUE_STRING;
    }
    return 0;
}

static int read_kind(const struct kiln_node *node, const struct written *w,
                     struct kiln_action *action, struct kiln_err *err)
{
    for (int i = 0; w->action && i < KILN_N_ACTIONS; i++) {
        if (strcasecmp(w->action, kiln_action_names[i]) == 0) {
            action->kind = (enum kiln_action_kind)i;
            return 0;
        }
    }
    return kiln_node_fail(node, KILN_E_MALFORMED, err,
                          "action is insert, update, upsert, delete, hash, extract or convert");
}

static int read_pattern(const struct kiln_node *node, const struct written *w,
                        struct kiln_action *action, struct kiln_err *err)
{
    struct kiln_err why = {0};
    int r;

    if (!w->pattern)
        return 0;
    r = kiln_regex_new(kiln_str_of(w->pattern), 0, &action->pattern, &why);
    return r < 0 ? kiln_node_fail(kiln_node_get(node, "pattern"), r, err, "%s", why.text) : 0;
}

static int read_type(const struct kiln_node *node, const struct written *w,
                     struct kiln_action *action, struct kiln_err *err)
{
    if (action->kind != KILN_ACTION_CONVERT)
        return 0;
    if (w->converted_type && strcmp(w->converted_type, "int") == 0)
        action->convert_to = KILN_VALUE_INT;
    else if (w->converted_type && strcmp(w->converted_type, "double") == 0)
        action->convert_to = KILN_VALUE_DOUBLE;
    else if (w->converted_type && strcmp(w->converted_type, "string") == 0)
        action->convert_to = KILN_VALUE_STRING;
    else
        return kiln_node_fail(node, KILN_E_MALFORMED, err,
                              "converted_type is int, double or string");
    return 0;
}

static bool is_context(struct kiln_str context)
{
    struct kiln_str metadata = KILN_STR("metadata.");

    return kiln_str_eq(context, KILN_STR("client.address")) ||
           kiln_str_eq(context, KILN_STR("auth.username")) ||
           (kiln_str_starts(context, metadata) && context.len > metadata.len);
}

/* Whether the fields of an action make sense together. */
static int check(const struct kiln_node *node, const struct written *w,
                 const struct kiln_action *action, struct kiln_err *err)
{
    bool clears = action->kind == KILN_ACTION_DELETE || action->kind == KILN_ACTION_HASH;
    bool sets = action->kind <= KILN_ACTION_UPSERT;
    struct kiln_str name, text;

    if (w->from_context && !is_context(kiln_str_of(w->from_context)))
        return kiln_node_fail(kiln_node_get(node, "from_context"), KILN_E_UNSUPPORTED, err,
                              "from_context: client.address, auth.username (of basicauth) and "
                              "metadata.NAME (with the receiver's include_metadata) are known, "
                              "not \"%.40s\"",
                              w->from_context);
    if (!w->key && !(clears && w->pattern))
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "this action has no key");
    if (sets && !w->value && !w->from_attribute && !w->from_context)
        return kiln_node_fail(node, KILN_E_MALFORMED, err,
                              "%s needs value, from_attribute or from_context", w->action);
    if (w->from_context && (w->value || w->from_attribute))
        return kiln_node_fail(node, KILN_E_MALFORMED, err,
                              "a value comes from one place: value, from_attribute or "
                              "from_context");
    if (action->kind == KILN_ACTION_EXTRACT &&
        (!action->pattern || !kiln_regex_named(action->pattern, 0, KILN_STR(""), &name, &text)))
        return kiln_node_fail(node, KILN_E_MALFORMED, err,
                              "extract needs a pattern with named groups: (?P<name>...)");
    return 0;
}

static int read_action(const struct kiln_node *node, struct kiln_action *action,
                       struct kiln_err *err)
{
    struct written w = {0};
    const struct kiln_node *value;
    int r;

    if (node->kind != KILN_NODE_MAP)
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "an action {key, action} belongs here");
    r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), &w, err);
    if (r == 0)
        r = read_kind(node, &w, action, err);
    if (r == 0)
        r = read_pattern(node, &w, action, err);
    if (r == 0)
        r = read_type(node, &w, action, err);
    if (r == 0)
        r = check(node, &w, action, err);
    if (r < 0)
        return r;
    action->key = kiln_str_of(w.key);
    action->from = kiln_str_of(w.from_attribute);
    action->from_context = kiln_str_of(w.from_context);
    value = w.value ? w.value : w.default_value;
    return value ? kiln_plain_value_read(value, &action->value, err) : 0;
}

int kiln_actions_read(const struct kiln_node *list, struct kiln_actions *ret_actions,
                      struct kiln_err *err)
{
    struct kiln_budget budget = {.limit = SIZE_MAX};

    for (const struct kiln_node *node = list ? list->first : NULL; node; node = node->next) {
        int r = kiln_grow(&budget, (void **)&ret_actions->list, &ret_actions->cap,
                          (uint64_t)ret_actions->n + 1, sizeof(*ret_actions->list), ACTIONS_MAX);

        if (r < 0)
            return kiln_node_fail(node, r, err, "%s", kiln_err_text(r));
        ret_actions->list[ret_actions->n] = (struct kiln_action){0};
        r = read_action(node, &ret_actions->list[ret_actions->n++], err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- the components ---- */

static void done(void *context)
{
    kiln_actions_done(context);
    kiln_free(context);
}

static int read_new(const struct kiln_actions_settings *s, struct kiln_actions **ret_actions,
                    struct kiln_err *err)
{
    struct kiln_actions *actions = kiln_calloc(1, sizeof(*actions));
    int r;

    if (!actions)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    r = kiln_actions_read(s->list, actions, err);
    if (r == 0)
        r = kiln_matching_read(s->include, s->exclude, &actions->only, err);
    if (r < 0)
        done(actions);
    else
        *ret_actions = actions;
    return r;
}

static int check_settings(const struct kiln_actions_settings *settings, const char *key,
                          struct kiln_err *err)
{
    struct kiln_actions *actions;
    int r;

    if (!settings->list)
        return kiln_err_set(err, KILN_E_MALFORMED, NULL, "%s: a list of actions belongs here", key);
    r = read_new(settings, &actions, err);
    if (r == 0)
        done(actions);
    return r;
}

#define AT(member) offsetof(struct kiln_actions_settings, member)

int kiln_actions_read_attributes(const struct kiln_node *node, void *settings, struct kiln_err *err)
{
    static const struct kiln_field keys[] = {{"attributes", KILN_FIELD_LIST, AT(list)}};
    int r = kiln_node_read(node, keys, KILN_ARRAY_LEN(keys), settings, err);

    return r < 0 ? r : check_settings(settings, "attributes", err);
}

int kiln_actions_read_actions(const struct kiln_node *node, void *settings, struct kiln_err *err)
{
    static const struct kiln_field keys[] = {{"actions", KILN_FIELD_LIST, AT(list)},
                                             {"include", KILN_FIELD_MAP, AT(include)},
                                             {"exclude", KILN_FIELD_MAP, AT(exclude)}};
    int r = kiln_node_read(node, keys, KILN_ARRAY_LEN(keys), settings, err);

    return r < 0 ? r : check_settings(settings, "actions", err);
}

/* Each processor has expressions of its own: they are written to by matching. */
static int make(const struct kiln_component_env *env, const void *from,
                int (*change)(void *actions, struct kiln_batch **batch, struct kiln_err *err),
                struct kiln_component **ret_component, struct kiln_err *err)
{
    const struct kiln_actions_settings *settings = from;
    struct kiln_change what = {.change = change, .meet = kiln_actions_meet};
    struct kiln_actions *actions;
    int r = read_new(settings, &actions, err);

    if (r < 0)
        return r;
    what.context = actions;
    return kiln_changing_new(env, &what, done, ret_component, err);
}

int kiln_actions_make_for_resources(const struct kiln_component_env *env, const void *settings,
                                    struct kiln_component **ret_component, struct kiln_err *err)
{
    return make(env, settings, kiln_actions_on_resources, ret_component, err);
}

int kiln_actions_make_for_samples(const struct kiln_component_env *env, const void *settings,
                                  struct kiln_component **ret_component, struct kiln_err *err)
{
    return make(env, settings, kiln_actions_on_samples, ret_component, err);
}
