/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that change something. */
#include <errno.h>

#include "base/buf.h"
#include "pipeline/ottl/ottl_int.h"

/* The attributes of the first argument, to be changed, or NULL; close() gives them back. */
static struct kiln_draft *open(struct kiln_ottl_run *run, const struct kiln_ottl_node *call)
{
    const struct kiln_ottl_path *path = &call->args[0]->path;
    struct kiln_draft *draft = &run->ottl->draft;
    struct kiln_ottl_value value;
    uint32_t set;

    if (kiln_ottl_path_get(run, path, &value) < 0)
        return NULL;
    if (value.kind != KILN_OTTL_SET && value.kind != KILN_OTTL_MAP) {
        kiln_ottl_fail(run, KILN_E_MALFORMED, "%s: these are no attributes", call->function->name);
        return NULL;
    }
    set = value.kind == KILN_OTTL_SET ? value.set : kiln_ottl_set_of_map(run, value.nested);
    kiln_draft_open(draft, run->item->b, set);
    return draft;
}

static int close(struct kiln_ottl_run *run, const struct kiln_ottl_node *call, int r)
{
    const struct kiln_ottl_path *path = &call->args[0]->path;
    struct kiln_ottl_value value = {.kind = KILN_OTTL_SET};

    if (r < 0)
        return r;
    value.set = kiln_draft_close(&run->ottl->draft);
    if (path->n_keys)
        return kiln_ottl_path_set(run, path, &value);
    kiln_ottl_give_set(run, path, value.set);
    return 0;
}

static struct kiln_str key_at(const struct kiln_ottl_run *run, const struct kiln_draft *draft,
                              uint32_t i)
{
    return kiln_batch_str(run->item->batch, kiln_draft_at(draft, i)->key);
}

static int set(struct kiln_ottl_run *run, const struct kiln_ottl_node *call)
{
    struct kiln_ottl_value value;
    int r = kiln_ottl_eval(run, call->args[1], &value);

    return r < 0 ? r : kiln_ottl_path_set(run, &call->args[0]->path, &value);
}

/* ---- keys ---- */

static int delete_key(struct kiln_ottl_run *run, const struct kiln_ottl_node *call)
{
    struct kiln_draft *draft = open(run, call);

    if (!draft)
        return run->code;
    kiln_draft_drop(draft, call->args[1]->value.text);
    return close(run, call, 0);
}

/* Drops the keys that match, or those that do not. */
static int drop_matching(struct kiln_ottl_run *run, const struct kiln_ottl_node *call, int matching)
{
    struct kiln_draft *draft = open(run, call);
    int r = 0;

    if (!draft)
        return run->code;
    for (uint32_t i = draft->n; i-- > 0 && r >= 0;) {
        r = kiln_regex_matches(call->args[1]->pattern, key_at(run, draft, i));
        if (r == matching)
            kiln_draft_drop_at(draft, i);
    }
    if (r < 0)
        return kiln_ottl_fail(run, r, "%s: %s", call->function->name, kiln_err_text(r));
    return close(run, call, 0);
}

static int delete_matching_keys(struct kiln_ottl_run *run, const struct kiln_ottl_node *call)
{
    return drop_matching(run, call, 1);
}

static int keep_matching_keys(struct kiln_ottl_run *run, const struct kiln_ottl_node *call)
{
    return drop_matching(run, call, 0);
}

static bool is_in(const struct kiln_ottl_node *list, struct kiln_str key)
{
    for (uint32_t i = 0; i < list->n_args; i++) {
        const struct kiln_ottl_node *item = list->args[i];

        if (item->kind == KILN_OTTL_LITERAL && item->value.kind == KILN_OTTL_TEXT &&
            kiln_str_eq(item->value.text, key))
            return true;
    }
    return false;
}

static int keep_keys(struct kiln_ottl_run *run, const struct kiln_ottl_node *call)
{
    struct kiln_draft *draft = open(run, call);

    if (!draft)
        return run->code;
    for (uint32_t i = draft->n; i-- > 0;) {
        if (!is_in(call->args[1], key_at(run, draft, i)))
            kiln_draft_drop_at(draft, i);
    }
    return close(run, call, 0);
}

/* Drops until so many are left: none of the list as long as there are others. */
static int limit(struct kiln_ottl_run *run, const struct kiln_ottl_node *call)
{
    const struct kiln_ottl_node *first = call->n_args > 2 ? call->args[2] : NULL;
    struct kiln_draft *draft = open(run, call);
    uint64_t most = (uint64_t)call->args[1]->value.i;

    if (!draft)
        return run->code;
    for (uint32_t i = draft->n; i-- > 0 && draft->n > most;) {
        if (!first || !is_in(first, key_at(run, draft, i)))
            kiln_draft_drop_at(draft, i);
    }
    while (draft->n > most)
        kiln_draft_drop_at(draft, draft->n - 1);
    return close(run, call, 0);
}

/* insert: keys that are not there; update: those that are; upsert: all. */
static void merge_one(struct kiln_draft *draft, struct kiln_str key, struct kiln_value value,
                      struct kiln_str strategy)
{
    bool there = kiln_draft_find(draft, key) != NULL;

    if (kiln_str_eq(strategy, KILN_STR("upsert")) ||
        kiln_str_eq(strategy, there ? KILN_STR("update") : KILN_STR("insert")))
        kiln_draft_put(draft, key, value);
}

static int merge_maps(struct kiln_ottl_run *run, const struct kiln_ottl_node *call)
{
    const struct kiln_batch *batch = run->item->batch;
    struct kiln_ottl_value from;
    struct kiln_draft *draft;
    struct kiln_range range;
    uint32_t set;
    int r = kiln_ottl_eval(run, call->args[1], &from);

    if (r < 0)
        return r;
    if (from.kind != KILN_OTTL_SET && from.kind != KILN_OTTL_MAP)
        return kiln_ottl_fail(run, KILN_E_MALFORMED, "merge_maps: these are no attributes");
    /* Which may be a new one, for which the table has moved. */
    set = from.kind == KILN_OTTL_SET ? from.set : kiln_ottl_set_of_map(run, from.nested);
    range = batch->dict.sets[set];
    draft = open(run, call);
    if (!draft)
        return run->code;
    for (uint32_t i = 0; i < range.n; i++) {
        struct kiln_attr attr = batch->dict.attrs[batch->dict.members[range.first + i]];

        merge_one(draft, kiln_batch_str(batch, attr.key), attr.value, call->args[2]->value.text);
    }
    return close(run, call, 0);
}

/* ---- texts ---- */

/* Where a text may be cut: not inside a character. */
static size_t cut_at(struct kiln_str text, size_t most)
{
    while (most > 0 && ((unsigned char)text.ptr[most] & 0xc0) == 0x80)
        most--;
    return most;
}

static int truncate_all(struct kiln_ottl_run *run, const struct kiln_ottl_node *call)
{
    struct kiln_draft *draft = open(run, call);
    uint64_t most = (uint64_t)call->args[1]->value.i;

    if (!draft)
        return run->code;
    for (uint32_t i = 0; i < draft->n; i++) {
        struct kiln_value value = kiln_draft_at(draft, i)->value;
        struct kiln_str text = {0};

        if (value.kind == KILN_VALUE_STRING)
            text = kiln_batch_str(run->item->batch, (uint32_t)value.str);
        if (text.len <= most)
            continue;
        text.len = cut_at(text, (size_t)most);
        kiln_draft_put(draft, key_at(run, draft, i),
                       kiln_value_string(kiln_builder_string(draft->b, text)));
    }
    return close(run, call, 0);
}

/* The text with its matches replaced; *ret_changed says whether there were any. */
static int replace(struct kiln_ottl_run *run, const struct kiln_ottl_node *pattern,
                   const struct kiln_ottl_node *with, struct kiln_str text,
                   struct kiln_ottl_value *ret, bool *ret_changed)
{
    struct kiln_buf out;
    int r;

    kiln_buf_init(&out, KILN_OTTL_MADE_MAX);
    r = kiln_regex_replace(pattern->pattern, text, with->value.text, &out);
    *ret_changed = r > 0;
    if (r > 0)
        r = kiln_ottl_make(run, kiln_buf_str(&out), ret);
    else if (r < 0)
        kiln_ottl_fail(run, r, "replace: %s", kiln_err_text(r));
    kiln_buf_done(&out);
    return r;
}

static int replace_pattern(struct kiln_ottl_run *run, const struct kiln_ottl_node *call)
{
    struct kiln_ottl_value value;
    bool changed;
    int r = kiln_ottl_eval(run, call->args[0], &value);

    if (r < 0 || value.kind != KILN_OTTL_TEXT)
        return r;
    r = replace(run, call->args[1], call->args[2], value.text, &value, &changed);
    return r < 0 || !changed ? r : kiln_ottl_path_set(run, &call->args[0]->path, &value);
}

/* One attribute: its key or its value. */
static int replace_in(struct kiln_ottl_run *run, const struct kiln_ottl_node *call,
                      struct kiln_draft *draft, struct kiln_str key, bool keys)
{
    struct kiln_value value = kiln_draft_find(draft, key)->value;
    struct kiln_str text = key;
    struct kiln_ottl_value to;
    bool changed;
    int r;

    if (!keys && value.kind != KILN_VALUE_STRING)
        return 0;
    if (!keys)
        text = kiln_batch_str(run->item->batch, (uint32_t)value.str);
    r = replace(run, call->args[2], call->args[3], text, &to, &changed);
    if (r < 0 || !changed)
        return r;
    if (keys) {
        kiln_draft_drop(draft, key);
        kiln_draft_put(draft, to.text, value);
    } else {
        kiln_draft_put(draft, key, kiln_value_string(kiln_builder_string(draft->b, to.text)));
    }
    return 0;
}

static int replace_all_patterns(struct kiln_ottl_run *run, const struct kiln_ottl_node *call)
{
    bool keys = kiln_str_eq(call->args[1]->value.text, KILN_STR("key"));
    const struct kiln_batch *batch = run->item->batch;
    struct kiln_draft *draft = open(run, call);
    struct kiln_range range = {0};
    int r = draft ? 0 : run->code;

    if (draft)
        range = batch->dict.sets[draft->set];
    /* Of the set as it was: what a new key was made from is not looked at again. */
    for (uint32_t i = 0; i < range.n && r == 0; i++) {
        struct kiln_str key =
            kiln_batch_str(batch, batch->dict.attrs[batch->dict.members[range.first + i]].key);

        if (kiln_draft_find(draft, key))
            r = replace_in(run, call, draft, key, keys);
    }
    return close(run, call, r);
}

/* ---- the table ---- */

const struct kiln_ottl_function *kiln_ottl_editor(struct kiln_str name)
{
    static const struct kiln_ottl_function functions[] = {
        {"set", "pw", NULL, set},
        {"delete_key", "ms", NULL, delete_key},
        {"delete_matching_keys", "mr", NULL, delete_matching_keys},
        {"keep_keys", "ml", NULL, keep_keys},
        {"keep_matching_keys", "mr", NULL, keep_matching_keys},
        {"limit", "mn?l", NULL, limit},
        {"merge_maps", "mvu", NULL, merge_maps},
        {"truncate_all", "mn", NULL, truncate_all},
        {"replace_pattern", "prs", NULL, replace_pattern},
        {"replace_all_patterns", "msrs", NULL, replace_all_patterns},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(functions); i++) {
        if (kiln_str_eq(name, kiln_str_of(functions[i].name)))
            return &functions[i];
    }
    return NULL;
}
