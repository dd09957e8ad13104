/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attribute values.  AnyValue is an object with one member that says what the value is:
 *
 *   {"stringValue": "x"}   {"boolValue": true}   {"intValue": "5"}   {"doubleValue": 1.5}
 *   {"bytesValue": base64} {"stringValueStrindex": 3}
 *   {"arrayValue": {"values": [AnyValue...]}}   {"kvlistValue": {"values": [KeyValue...]}}
 *
 * Children are collected on a stack, d->nest, from which the list they belong to takes them.
 */
#include <math.h>

#include "base/bytetext.h"
#include "codec/otlp_json_int.h"

static int value_string(struct oj_decoder *d, void *record)
{
    struct kiln_str text;
    int r = kiln_json_string(&d->r, &text);

    if (r == 0)
        *(struct kiln_value *)record = kiln_value_string(kiln_builder_string(d->b, text));
    return r;
}

static int value_bool(struct oj_decoder *d, void *record)
{
    bool flag;
    int r = kiln_json_bool(&d->r, &flag);

    if (r == 0)
        *(struct kiln_value *)record = kiln_value_bool(flag);
    return r;
}

static int value_int(struct oj_decoder *d, void *record)
{
    int64_t i;
    int r = oj_i64(d, &i);

    if (r == 0)
        *(struct kiln_value *)record = kiln_value_int(i);
    return r;
}

/* A double in quotes: a number, or one of the three that JSON has no numbers for. */
static int quoted_double(struct oj_decoder *d, double *ret)
{
    struct kiln_str text;
    int r = kiln_json_string(&d->r, &text);

    if (r < 0)
        return r;
    if (kiln_str_eq(text, KILN_STR("NaN")))
        *ret = NAN;
    else if (kiln_str_eq(text, KILN_STR("Infinity")))
        *ret = INFINITY;
    else if (kiln_str_eq(text, KILN_STR("-Infinity")))
        *ret = -INFINITY;
    else if (kiln_json_parse_double(text, ret) < 0)
        return kiln_json_fail(&d->r, KILN_E_MALFORMED, "not a number");
    return 0;
}

static int value_double(struct oj_decoder *d, void *record)
{
    double value;
    int r = kiln_json_peek(&d->r) == KILN_JSON_STRING ? quoted_double(d, &value)
                                                      : kiln_json_double(&d->r, &value);

    if (r == 0)
        *(struct kiln_value *)record = kiln_value_double(value);
    return r;
}

static int value_bytes(struct oj_decoder *d, void *record)
{
    struct kiln_str text;
    size_t len = 0;
    void *bytes;
    int r = kiln_json_string(&d->r, &text);

    if (r < 0)
        return r;
    bytes = kiln_builder_alloc(d->b, kiln_base64_room(text.len));
    if (!bytes)
        return kiln_builder_error(d->b);
    if (kiln_base64_decode(text, bytes, &len) < 0)
        return kiln_json_fail(&d->r, KILN_E_MALFORMED, "not base64");
    *(struct kiln_value *)record =
        kiln_value_bytes(kiln_builder_string_ref(d->b, (struct kiln_str){bytes, len}));
    return 0;
}

/* An element of an ArrayValue. */
static int item(struct oj_decoder *d, __attribute__((unused)) void *unused)
{
    struct kiln_attr attr = {0};
    int r = oj_value(d, &attr.value);

    if (r == 0)
        r = OJ_ROOM(d, nest);
    if (r == 0)
        d->nest[d->n_nest++] = attr;
    return r;
}

static const struct oj_field array_fields[] = {OJ_CALL("values", OJ_EACH, item), OJ_END};
static const struct oj_field list_fields[] = {OJ_CALL("values", OJ_EACH, oj_pair), OJ_END};

static int nested(struct oj_decoder *d, enum kiln_value_kind kind, struct kiln_value *ret)
{
    uint32_t limit = kiln_builder_limits(d->b)->value_depth, first = d->n_nest;
    int r;

    if (d->value_depth == limit)
        return kiln_json_fail(&d->r, KILN_E_LIMIT, "attribute values are nested deeper than %u",
                              limit);
    d->value_depth++;
    r = oj_object(d, kind == KILN_VALUE_ARRAY ? array_fields : list_fields, NULL);
    d->value_depth--;
    if (r == 0)
        *ret = kiln_builder_nested(d->b, kind, d->nest ? d->nest + first : NULL, d->n_nest - first);
    d->n_nest = first;
    return r;
}

static int value_array(struct oj_decoder *d, void *record)
{
    return nested(d, KILN_VALUE_ARRAY, record);
}

static int value_map(struct oj_decoder *d, void *record)
{
    return nested(d, KILN_VALUE_MAP, record);
}

static int value_ref(struct oj_decoder *d, void *record)
{
    uint32_t string;
    int r = oj_index(d, OJ_STRINGS, &string);

    if (r == 0)
        *(struct kiln_value *)record = kiln_value_string(string);
    return r;
}

static const struct oj_field value_fields[] = {
    OJ_CALL("stringValue", OJ_READ, value_string),
    OJ_CALL("boolValue", OJ_READ, value_bool),
    OJ_CALL("intValue", OJ_READ, value_int),
    OJ_CALL("doubleValue", OJ_READ, value_double),
    OJ_CALL("arrayValue", OJ_READ, value_array),
    OJ_CALL("kvlistValue", OJ_READ, value_map),
    OJ_CALL("bytesValue", OJ_READ, value_bytes),
    OJ_CALL("stringValueStrindex", OJ_READ, value_ref),
    OJ_END,
};

int oj_value(struct oj_decoder *d, struct kiln_value *ret)
{
    return oj_object(d, value_fields, ret);
}

struct pair {
    uint32_t key, key_ref;
    struct kiln_value value;
};

static int pair_value(struct oj_decoder *d, void *record)
{
    return oj_value(d, &((struct pair *)record)->value);
}

static const struct oj_field pair_fields[] = {
    OJ_FIELD(struct pair, "key", OJ_TEXT, key),
    OJ_CALL("value", OJ_READ, pair_value),
    OJ_REF(struct pair, "keyStrindex", key_ref, OJ_STRINGS),
    OJ_END,
};

int oj_pair(struct oj_decoder *d, __attribute__((unused)) void *unused)
{
    struct pair pair = {0};
    int r = oj_object(d, pair_fields, &pair);

    if (r == 0)
        r = OJ_ROOM(d, nest);
    if (r == 0)
        d->nest[d->n_nest++] = (struct kiln_attr){
            .key = pair.key ? pair.key : pair.key_ref,
            .value = pair.value,
        };
    return r;
}

int oj_take_set(struct oj_decoder *d, uint32_t first, uint32_t *ret_set)
{
    d->n_ids = 0;
    for (uint32_t i = first; i < d->n_nest; i++) {
        int r = OJ_ROOM(d, ids);

        if (r < 0)
            return r;
        d->ids[d->n_ids++] = kiln_builder_attr(d->b, d->nest[i].key, d->nest[i].value, 0);
    }
    d->n_nest = first;
    *ret_set = kiln_builder_set(d->b, d->ids, d->n_ids, NULL);
    return kiln_builder_error(d->b);
}
