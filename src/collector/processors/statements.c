/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/processors/statements.h"

#include <errno.h>
#include <stddef.h>

#include "base/mem.h"

#define STATEMENTS_MAX 1000u

int kiln_error_mode_read(const struct kiln_node *node, enum kiln_error_mode *ret_mode,
                         struct kiln_err *err)
{
    static const char *const names[] = {
        [KILN_ERROR_IGNORE] = "ignore",
        [KILN_ERROR_SILENT] = "silent",
        [KILN_ERROR_PROPAGATE] = "propagate",
    };

    for (size_t i = 0; node && node->kind == KILN_NODE_TEXT && i < KILN_ARRAY_LEN(names); i++) {
        if (strcmp(node->text, names[i]) == 0) {
            *ret_mode = (enum kiln_error_mode)i;
            return 0;
        }
    }
    return node ? kiln_node_fail(node, KILN_E_MALFORMED, err,
                                 "error_mode is ignore, silent or propagate")
                : 0;
}

/* One text, read where it stands. */
static int read_one(const struct kiln_node *node, bool condition, enum kiln_ottl_context context,
                    struct kiln_ottl **ret_ottl, struct kiln_err *err)
{
    struct kiln_err why = {0};
    int r;

    if (node->kind != KILN_NODE_TEXT)
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "a text belongs here");
    r = condition ? kiln_ottl_condition(kiln_str_of(node->text), context, ret_ottl, &why)
                  : kiln_ottl_statement(kiln_str_of(node->text), context, ret_ottl, &why);
    if (r == 0)
        return 0;
    return kiln_node_fail(node, r, err, "%s%s%s", why.where, why.where[0] ? ": " : "", why.text);
}

static int add(struct kiln_statements *statements, const struct kiln_node *node,
               const struct kiln_guarded *guarded, struct kiln_err *err)
{
    struct kiln_budget budget = {.limit = SIZE_MAX};
    int r = kiln_grow(&budget, (void **)&statements->list, &statements->cap,
                      (uint64_t)statements->n + 1, sizeof(*statements->list), STATEMENTS_MAX);

    if (r < 0)
        return kiln_node_fail(node, r, err, "there are at most %u statements", STATEMENTS_MAX);
    statements->list[statements->n] = *guarded;
    statements->list[statements->n++].context = kiln_ottl_context_of(guarded->ottl);
    return 0;
}

/* The head of the next group. */
static struct kiln_guarded new_group(const struct kiln_statements *statements)
{
    return (struct kiln_guarded){
        .group = statements->n ? statements->list[statements->n - 1].group + 1 : 0,
        .mode = statements->mode,
    };
}

/* ---- groups ---- */

struct written {
    const char *context;
    const struct kiln_node *conditions, *statements, *error_mode;
};

static void free_guards(struct kiln_guarded *guarded)
{
    for (uint32_t i = 0; i < guarded->n_guards; i++)
        kiln_ottl_free(guarded->guards[i]);
    kiln_free(guarded->guards);
}

static int read_guards(const struct kiln_node *list, enum kiln_ottl_context context,
                       struct kiln_guarded *guarded, struct kiln_err *err)
{
    int r = 0;

    if (!list || list->n == 0)
        return 0;
    guarded->guards = kiln_calloc(list->n, sizeof(struct kiln_ottl *));
    if (!guarded->guards)
        return kiln_node_fail(list, -ENOMEM, err, "%s", kiln_err_text(-ENOMEM));
    for (const struct kiln_node *node = list->first; node && r == 0; node = node->next) {
        r = read_one(node, true, context, &guarded->guards[guarded->n_guards], err);
        guarded->n_guards += r == 0;
    }
    return r;
}

static enum kiln_ottl_context innermost(enum kiln_ottl_context a, enum kiln_ottl_context b)
{
    return a > b ? a : b;
}

/* All of a group are for the same things, which its guards are asked about too. */
static int share_context(const struct kiln_node *node, struct kiln_guarded *group, uint32_t n,
                         struct kiln_err *err)
{
    enum kiln_ottl_context context = KILN_OTTL_RESOURCE;

    for (uint32_t i = 0; i < n; i++)
        context = innermost(context, group[i].context);
    for (uint32_t i = 0; n && i < group->n_guards; i++)
        context = innermost(context, kiln_ottl_context_of(group->guards[i]));
    for (uint32_t i = 0; i < n; i++, node = node->next) {
        group[i].context = context;
        if (!kiln_ottl_fits(group[i].ottl, context))
            return kiln_node_fail(node, KILN_E_MALFORMED, err,
                                  "the cache is that of the innermost context of all statements "
                                  "that stand together");
    }
    return 0;
}

/* Statements that stand together, all with their guards, which belong to the last one. */
static int read_statements(const struct kiln_node *first, const struct kiln_node *end,
                           enum kiln_ottl_context context, struct kiln_guarded guarded,
                           struct kiln_statements *statements, struct kiln_err *err)
{
    uint32_t before = statements->n;
    int r = 0;

    for (const struct kiln_node *node = first; node != end && r == 0; node = node->next) {
        r = read_one(node, false, context, &guarded.ottl, err);
        if (r == 0) {
            r = add(statements, node, &guarded, err);
            if (r < 0)
                kiln_ottl_free(guarded.ottl);
        }
    }
    if (statements->n == before)
        free_guards(&guarded);
    else if (r == 0)
        r = share_context(first, statements->list + before, statements->n - before, err);
    return r;
}

static int read_context(const struct kiln_node *node, const struct written *w,
                        enum kiln_ottl_context *ret_context, struct kiln_err *err)
{
    if (!w->context)
        return 0;
    *ret_context = kiln_ottl_context_named(kiln_str_of(w->context));
    if (*ret_context == KILN_OTTL_CONTEXTS)
        return kiln_node_fail(kiln_node_get(node, "context"), KILN_E_MALFORMED, err,
                              "context is resource, scope, profile or sample");
    return 0;
}

/* A group whose mode is that of `statements`. */
static int read_members(const struct written *w, bool conditions, enum kiln_ottl_context context,
                        struct kiln_statements *statements, struct kiln_err *err)
{
    struct kiln_guarded guarded = new_group(statements);
    int r;

    if (conditions)
        return kiln_statements_read(w->conditions, true, context, statements, err);
    r = read_guards(w->conditions, context, &guarded, err);
    if (r < 0) {
        free_guards(&guarded);
        return r;
    }
    return read_statements(w->statements ? w->statements->first : NULL, NULL, context, guarded,
                           statements, err);
}

static int read_group(const struct kiln_node *node, bool conditions, enum kiln_ottl_context context,
                      struct kiln_statements *statements, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"context", KILN_FIELD_TEXT, offsetof(struct written, context)},
        {"conditions", KILN_FIELD_LIST, offsetof(struct written, conditions)},
        {"statements", KILN_FIELD_LIST, offsetof(struct written, statements)},
        {"error_mode", KILN_FIELD_NODE, offsetof(struct written, error_mode)},
    };
    enum kiln_error_mode of_all = statements->mode;
    struct written w = {0};
    int r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), &w, err);

    if (r == 0)
        r = read_context(node, &w, &context, err);
    if (r == 0)
        r = kiln_error_mode_read(w.error_mode, &statements->mode, err);
    if (r == 0)
        r = read_members(&w, conditions, context, statements, err);
    statements->mode = of_all;
    return r;
}

/* A condition stands for itself. */
static int read_condition(const struct kiln_node *node, enum kiln_ottl_context context,
                          struct kiln_statements *statements, struct kiln_err *err)
{
    struct kiln_guarded guarded = new_group(statements);
    int r = read_one(node, true, context, &guarded.ottl, err);

    if (r < 0)
        return r;
    r = add(statements, node, &guarded, err);
    if (r < 0)
        kiln_ottl_free(guarded.ottl);
    return r;
}

/* Texts up to the next that is none. */
static const struct kiln_node *end_of_texts(const struct kiln_node *node)
{
    while (node && node->kind != KILN_NODE_MAP)
        node = node->next;
    return node;
}

int kiln_statements_read(const struct kiln_node *list, bool conditions,
                         enum kiln_ottl_context context, struct kiln_statements *statements,
                         struct kiln_err *err)
{
    const struct kiln_node *node = list ? list->first : NULL, *next;
    int r = 0;

    for (; node && r == 0; node = next) {
        bool group = node->kind == KILN_NODE_MAP && context == KILN_OTTL_CONTEXTS;

        next = group || conditions ? node->next : end_of_texts(node->next);
        if (group)
            r = read_group(node, conditions, context, statements, err);
        else if (conditions)
            r = read_condition(node, context, statements, err);
        else
            r = read_statements(node, next, context, new_group(statements), statements, err);
    }
    return r;
}

/* ---- the component ---- */

static void done(void *statements)
{
    kiln_statements_done(statements);
    kiln_free(statements);
}

int kiln_statements_component(const struct kiln_component_env *env, const void *settings,
                              int (*read)(const void *settings, struct kiln_statements *statements,
                                          struct kiln_err *err),
                              int (*change)(void *statements, struct kiln_batch **batch,
                                            struct kiln_err *err),
                              struct kiln_component **ret_component, struct kiln_err *err)
{
    struct kiln_statements *statements = kiln_calloc(1, sizeof(*statements));
    struct kiln_change what = {.context = statements, .change = change, .copies = true};
    int r;

    if (!statements)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    r = read(settings, statements, err);
    if (r < 0) {
        done(statements);
        return r;
    }
    statements->log = env->log;
    if (change == kiln_statements_filter)
        statements->filtered = kiln_metric_get(
            env->metrics, KILN_COUNTER, "otelcol_processor_filter_profiles_filtered",
            "Samples dropped by the filter processor.", KILN_LABELS("filter", env->id));
    return kiln_changing_new(env, &what, done, ret_component, err);
}

int kiln_statements_settings(const struct kiln_node *node, const struct kiln_field *fields,
                             uint32_t n, void *settings,
                             int (*read)(const void *settings, struct kiln_statements *statements,
                                         struct kiln_err *err),
                             struct kiln_err *err)
{
    struct kiln_statements statements = {0};
    int r = kiln_node_read(node, fields, n, settings, err);

    if (r == 0)
        r = read(settings, &statements, err);
    kiln_statements_done(&statements);
    return r;
}
