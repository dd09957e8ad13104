/* SPDX-License-Identifier: Apache-2.0 */
/* Values as the batch has them, and back: scalars, and what has parts. */
#include <errno.h>

#include "pipeline/ottl/ottl_int.h"

#define PARTS_MAX  32768u /* of a list that is handled */
#define GAP_MAX    1000u  /* of a list that an index makes */
#define DEPTH_MAX  64u    /* of a value that is made, and how much is in it */
#define WEIGHT_MAX 32768u

struct kiln_ottl_value kiln_ottl_value_of(const struct kiln_batch *batch, struct kiln_value value)
{
    static const enum kiln_ottl_kind kinds[] = {
        [KILN_VALUE_EMPTY] = KILN_OTTL_NIL,     [KILN_VALUE_STRING] = KILN_OTTL_TEXT,
        [KILN_VALUE_BOOL] = KILN_OTTL_BOOL,     [KILN_VALUE_INT] = KILN_OTTL_INT,
        [KILN_VALUE_DOUBLE] = KILN_OTTL_DOUBLE, [KILN_VALUE_BYTES] = KILN_OTTL_BYTES,
        [KILN_VALUE_ARRAY] = KILN_OTTL_LIST,    [KILN_VALUE_MAP] = KILN_OTTL_MAP,
    };
    struct kiln_ottl_value to = {.kind = kinds[value.kind]};

    switch (to.kind) {
    case KILN_OTTL_TEXT:
    case KILN_OTTL_BYTES:
        to.text = kiln_batch_str(batch, (uint32_t)value.str);
        break;
    case KILN_OTTL_BOOL:
        to.flag = value.flag != 0;
        break;
    case KILN_OTTL_DOUBLE:
        to.d = value.d;
        break;
    case KILN_OTTL_LIST:
    case KILN_OTTL_MAP:
        to.nested = value;
        break;
    default:
        to.i = value.i;
        break;
    }
    return to;
}

/* ---- into the batch ---- */

static void *room(struct kiln_ottl_run *run, size_t n, size_t size)
{
    void *ptr = n <= PARTS_MAX ? kiln_arena_alloc(&run->made, (n + 1) * size) : NULL;

    if (n > PARTS_MAX)
        kiln_ottl_fail(run, KILN_E_LIMIT, "a list has too many parts for a statement");
    else if (!ptr)
        kiln_ottl_fail(run, -ENOMEM, "%s", kiln_err_text(-ENOMEM));
    return ptr;
}

static int numbers_in(struct kiln_ottl_run *run, const struct kiln_ottl_value *value,
                      struct kiln_value *ret)
{
    struct kiln_value *items = room(run, value->numbers.n, sizeof(*items));

    if (!items)
        return run->code;
    for (uint32_t i = 0; i < value->numbers.n; i++)
        items[i] = kiln_value_int(value->numbers.at[i]);
    *ret = kiln_builder_array(run->item->b, items, value->numbers.n);
    return 0;
}

/* A map has no units. */
static int set_in(struct kiln_ottl_run *run, uint32_t set, struct kiln_value *ret)
{
    const struct kiln_dict *d = &run->item->batch->dict;
    struct kiln_range range = d->sets[set];
    struct kiln_attr *entries = room(run, range.n, sizeof(*entries));

    if (!entries)
        return run->code;
    for (uint32_t i = 0; i < range.n; i++) {
        entries[i] = d->attrs[d->members[range.first + i]];
        entries[i].unit = 0;
    }
    *ret = kiln_builder_map(run->item->b, entries, range.n);
    return 0;
}

int kiln_ottl_value_in(struct kiln_ottl_run *run, const struct kiln_ottl_value *value,
                       struct kiln_value *ret)
{
    struct kiln_builder *b = run->item->b;

    switch (value->kind) {
    case KILN_OTTL_NIL:
        *ret = (struct kiln_value){0};
        return 0;
    case KILN_OTTL_TEXT:
        *ret = kiln_value_string(kiln_builder_string(b, value->text));
        return 0;
    case KILN_OTTL_BYTES:
        *ret = kiln_value_bytes(kiln_builder_string(b, value->text));
        return 0;
    case KILN_OTTL_BOOL:
        *ret = kiln_value_bool(value->flag);
        return 0;
    case KILN_OTTL_INT:
        *ret = kiln_value_int(value->i);
        return 0;
    case KILN_OTTL_DOUBLE:
        *ret = kiln_value_double(value->d);
        return 0;
    case KILN_OTTL_LIST:
    case KILN_OTTL_MAP:
        *ret = value->nested;
        return 0;
    case KILN_OTTL_SET:
        return set_in(run, value->set, ret);
    case KILN_OTTL_NUMBERS:
        return numbers_in(run, value, ret);
    default:
        return kiln_ottl_fail(run, KILN_E_MALFORMED, "an attribute cannot have this value");
    }
}

int kiln_ottl_list(struct kiln_ottl_run *run, const struct kiln_ottl_node *list,
                   struct kiln_ottl_value *ret)
{
    struct kiln_value *items = room(run, list->n_args, sizeof(*items));
    int r = items ? 0 : run->code;

    if (!run->item->b)
        return kiln_ottl_fail(run, KILN_E_MALFORMED, "a list cannot be made here");
    for (uint32_t i = 0; i < list->n_args && r == 0; i++) {
        struct kiln_ottl_value value;

        r = kiln_ottl_eval(run, list->args[i], &value);
        if (r == 0)
            r = kiln_ottl_value_in(run, &value, &items[i]);
    }
    if (r < 0)
        return r;
    ret->kind = KILN_OTTL_LIST;
    ret->nested = kiln_builder_array(run->item->b, items, list->n_args);
    return 0;
}

/* ---- out of it ---- */

uint32_t kiln_ottl_set_of_map(struct kiln_ottl_run *run, struct kiln_value map)
{
    struct kiln_builder *b = run->item->b;
    uint32_t *attrs = room(run, map.n, sizeof(*attrs));

    if (!attrs)
        kiln_builder_fail(b, -ENOMEM);
    for (uint32_t i = 0; attrs && i < map.n; i++) {
        struct kiln_attr entry = run->item->batch->dict.nested[map.first + i];

        attrs[i] = kiln_builder_attr(b, entry.key, entry.value, 0);
    }
    return attrs ? kiln_builder_set(b, attrs, map.n, NULL) : 0;
}

int kiln_ottl_integers(struct kiln_ottl_run *run, const struct kiln_ottl_value *value,
                       int64_t **ret_at, uint32_t *ret_n)
{
    bool list = value->kind == KILN_OTTL_LIST;
    const struct kiln_attr *items = run->item->batch->dict.nested;
    uint32_t n = list ? value->nested.n : value->numbers.n;
    int64_t *at;

    if (!list && value->kind != KILN_OTTL_NUMBERS)
        return kiln_ottl_fail(run, KILN_E_MALFORMED, "a list of numbers belongs into this field");
    at = room(run, n, sizeof(*at));
    if (!at)
        return run->code;
    for (uint32_t i = 0; i < n; i++) {
        if (list && items[value->nested.first + i].value.kind != KILN_VALUE_INT)
            return kiln_ottl_fail(run, KILN_E_MALFORMED, "whole numbers belong into this list");
        at[i] = list ? items[value->nested.first + i].value.i : value->numbers.at[i];
    }
    *ret_at = at;
    *ret_n = n;
    return 0;
}

/* ---- parts ---- */

/* Counts what is in a value; false: too much, or too deep. */
static bool weigh(const struct kiln_batch *batch, struct kiln_value value, uint32_t depth,
                  uint32_t *left)
{
    bool nested = value.kind == KILN_VALUE_ARRAY || value.kind == KILN_VALUE_MAP;

    if (depth == 0 || *left == 0)
        return false;
    --*left;
    for (uint32_t i = 0; nested && i < value.n; i++) {
        if (!weigh(batch, batch->dict.nested[value.first + i].value, depth - 1, left))
            return false;
    }
    return true;
}

int kiln_ottl_weigh(struct kiln_ottl_run *run, struct kiln_value value)
{
    uint32_t left = WEIGHT_MAX;

    return weigh(run->item->batch, value, DEPTH_MAX, &left)
               ? 0
               : kiln_ottl_fail(run, KILN_E_LIMIT, "a value is nested too deeply, or too large");
}

/* Where a key finds its part, or is to put it. */
static int find_part(struct kiln_ottl_run *run, struct kiln_value of,
                     const struct kiln_ottl_key *key, struct kiln_attr *parts, uint32_t *ret_at)
{
    if (key->text.ptr && (of.kind == KILN_VALUE_MAP || of.kind == KILN_VALUE_EMPTY)) {
        uint32_t name = kiln_builder_string(run->item->b, key->text), at = 0;

        while (at < of.n && parts[at].key != name)
            at++;
        parts[at].key = name;
        *ret_at = at;
        return 0;
    }
    if (!key->text.ptr &&
        (of.kind == KILN_VALUE_EMPTY ? key->index < GAP_MAX
                                     : of.kind == KILN_VALUE_ARRAY && key->index < of.n)) {
        *ret_at = (uint32_t)key->index;
        return 0;
    }
    return kiln_ottl_fail(run, KILN_E_RANGE, "this value has no part of this key");
}

int kiln_ottl_put_part(struct kiln_ottl_run *run, struct kiln_value *of,
                       const struct kiln_ottl_key *keys, uint32_t n_keys, struct kiln_value to)
{
    uint32_t n = of->kind == KILN_VALUE_ARRAY || of->kind == KILN_VALUE_MAP ? of->n : 0, at;
    enum kiln_value_kind kind = keys->text.ptr ? KILN_VALUE_MAP : KILN_VALUE_ARRAY;
    struct kiln_attr *parts;
    int r;

    if (n_keys == 0) {
        *of = to;
        return 0;
    }
    parts = room(run, n + GAP_MAX, sizeof(*parts));
    if (!parts)
        return run->code;
    memset(parts, 0, (n + GAP_MAX + 1) * sizeof(*parts));
    if (n)
        memcpy(parts, run->item->batch->dict.nested + of->first, n * sizeof(*parts));
    r = find_part(run, *of, keys, parts, &at);
    if (r == 0)
        r = kiln_ottl_put_part(run, &parts[at].value, keys + 1, n_keys - 1, to);
    if (r == 0)
        *of = kiln_builder_nested(run->item->b, kind, parts, at < n ? n : at + 1);
    return r;
}
