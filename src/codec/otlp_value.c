/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attribute values.  AnyValue is a oneof: 1 string, 2 bool, 3 int, 4 double, 5 array, 6 key-value
 * list, 7 bytes, 8 index of a string (since 1.10); nothing at all is a value too.  KeyValue is
 * 1 key, 2 value, 3 index of the key (since 1.10); an inline key wins over an index.
 */
#include <errno.h>

#include "codec/otlp_int.h"

/* The children of an array or a map. */
struct children {
    struct kiln_attr *items;
    uint32_t n, cap;
};

static int value_of_pair(struct otlp_decoder *d, struct kiln_str bytes, uint32_t depth,
                         struct kiln_attr *ret);

static int add_child(struct otlp_decoder *d, struct children *c, struct kiln_attr child)
{
    int r = kiln_grow(&d->budget, (void **)&c->items, &c->cap, (uint64_t)c->n + 1,
                      sizeof(*c->items), UINT32_MAX);

    if (r == 0)
        c->items[c->n++] = child;
    return r;
}

static int read_children(struct otlp_decoder *d, struct kiln_str bytes, bool keyed, uint32_t depth,
                         struct children *c)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    int n;

    while ((n = kiln_pb_next(&r, &f)) > 0) {
        struct kiln_attr child = {0};
        int e;

        if (f.tag != KILN_PB_BYTES(1u))
            continue;
        e = keyed ? value_of_pair(d, f.bytes, depth, &child)
                  : otlp_value(d, f.bytes, depth, &child.value);
        if (e == 0)
            e = add_child(d, c, child);
        if (e < 0) {
            kiln_err_within(d->err, "values[%u]", c->n);
            return e;
        }
    }
    return n < 0 ? otlp_bad_wire(d->err, n) : 0;
}

/* An ArrayValue or a KeyValueList. */
static int nested_value(struct otlp_decoder *d, struct kiln_str bytes, bool keyed, uint32_t depth,
                        struct kiln_value *ret)
{
    struct children c = {0};
    int r;

    if (depth == 0)
        return kiln_err_set(d->err, KILN_E_LIMIT, NULL,
                            "attribute values are nested deeper than %u",
                            kiln_builder_limits(d->b)->value_depth);
    r = read_children(d, bytes, keyed, depth - 1, &c);
    if (r == 0)
        *ret = kiln_builder_nested(d->b, keyed ? KILN_VALUE_MAP : KILN_VALUE_ARRAY, c.items, c.n);
    kiln_array_free(&d->budget, (void **)&c.items, &c.cap, sizeof(*c.items));
    return r;
}

int otlp_value(struct otlp_decoder *d, struct kiln_str bytes, uint32_t depth,
               struct kiln_value *ret)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_value value = {0};
    struct kiln_pb_field f;
    uint32_t string = 0;
    int n, e = 0;

    while (e == 0 && (n = kiln_pb_next(&r, &f)) > 0) {
        switch (f.tag) {
        case KILN_PB_BYTES(1u):
            e = otlp_string(d, f.bytes, "string_value", &string);
            value = kiln_value_string(string);
            break;
        case KILN_PB_VARINT(2u):
            value = kiln_value_bool(f.number != 0);
            break;
        case KILN_PB_VARINT(3u):
            value = kiln_value_int((int64_t)f.number);
            break;
        case KILN_PB_FIXED64(4u):
            value = (struct kiln_value){.kind = KILN_VALUE_DOUBLE, .bits = f.number};
            break;
        case KILN_PB_BYTES(5u):
        case KILN_PB_BYTES(6u):
            e = nested_value(d, f.bytes, f.tag == KILN_PB_BYTES(6u), depth, &value);
            break;
        case KILN_PB_BYTES(7u):
            value = kiln_value_bytes(otlp_bytes(d, f.bytes));
            break;
        case KILN_PB_VARINT(8u):
            e = otlp_ref(d, OTLP_STRINGS, f.number, "string_value_strindex", &string);
            value = kiln_value_string(string);
            break;
        default:
            break;
        }
    }
    e = otlp_end(d, e, n);
    if (e < 0)
        return e;
    *ret = value;
    return 0;
}

static int value_of_pair(struct otlp_decoder *d, struct kiln_str bytes, uint32_t depth,
                         struct kiln_attr *ret)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    uint32_t inline_key = 0, key_ref = 0;
    int n, e = 0;

    while (e == 0 && (n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_BYTES(1u))
            e = otlp_string(d, f.bytes, "key", &inline_key);
        else if (f.tag == KILN_PB_BYTES(2u))
            e = otlp_value(d, f.bytes, depth, &ret->value);
        else if (f.tag == KILN_PB_VARINT(3u))
            e = otlp_ref(d, OTLP_STRINGS, f.number, "key_strindex", &key_ref);
    }
    e = otlp_end(d, e, n);
    if (e < 0)
        return e;
    ret->key = inline_key ? inline_key : key_ref;
    return 0;
}

int otlp_key_value(struct otlp_decoder *d, struct kiln_str bytes, struct otlp_ids *list)
{
    struct otlp_known_bytes *known = otlp_known(d->known_pairs, bytes);
    struct kiln_attr attr = {0};
    int r;

    if (known->bytes.len == 0 || !kiln_str_eq(known->bytes, bytes)) {
        r = value_of_pair(d, bytes, kiln_builder_limits(d->b)->value_depth, &attr);
        if (r < 0)
            return r;
        *known = (struct otlp_known_bytes){bytes, kiln_builder_attr(d->b, attr.key, attr.value, 0)};
    }
    return otlp_ids_add(d, list, known->index);
}
