/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes as labels of a pprof sample: those of the sample, those of its resource that the
 * sample does not have itself, and the link as trace_id and span_id in hexadecimal digits.
 *
 * A text is a label with a text, an integer one with a number and a unit, an array one label an
 * element.  Anything else becomes the text JSON has for it.
 */
#include "base/bytetext.h"
#include "base/json.h"
#include "codec/pprof_out.h"

#define TEXT_MAX (1u << 24)

/* Writes one label; strings are places in string_table. */
static void put_label(struct kiln_pprof_out *o, uint32_t key, uint32_t str, int64_t num,
                      uint32_t unit)
{
    size_t mark = kiln_pb_mark(&o->w);

    kiln_pb_put_number(&o->w, LABEL_NUM_UNIT, unit);
    kiln_pb_put_number(&o->w, LABEL_NUM, (uint64_t)num);
    kiln_pb_put_number(&o->w, LABEL_STR, str);
    kiln_pb_put_number(&o->w, LABEL_KEY, key);
    kiln_pb_put_message(&o->w, SAMPLE_LABEL, mark);
}

/* A label with no text, number and unit is the number 0, so an empty text needs a place of its own.
 */
static uint32_t empty_text(struct kiln_pprof_out *o)
{
    if (!o->empty_text)
        o->empty_text = kiln_pprof_put_text(o, KILN_STR(""));
    return o->empty_text;
}

static void write_json(struct kiln_json_out *json, const struct kiln_batch *batch,
                       const struct kiln_value *value)
{
    bool nested = value->kind == KILN_VALUE_ARRAY || value->kind == KILN_VALUE_MAP;
    const struct kiln_attr *children = nested ? batch->dict.nested + value->first : NULL;

    switch (value->kind) {
    case KILN_VALUE_STRING:
        kiln_json_put_str(json, batch->dict.strings[value->str]);
        break;
    case KILN_VALUE_BOOL:
        kiln_json_put_bool(json, value->flag);
        break;
    case KILN_VALUE_INT:
        kiln_json_put_i64(json, value->i);
        break;
    case KILN_VALUE_DOUBLE:
        kiln_json_put_double(json, value->d);
        break;
    case KILN_VALUE_BYTES:
        kiln_json_put_raw_begin(json);
        kiln_buf_add_hex(json->buf, batch->dict.strings[value->str].ptr,
                         batch->dict.strings[value->str].len);
        kiln_json_put_raw_end(json);
        break;
    case KILN_VALUE_ARRAY:
        kiln_json_put_array(json);
        for (uint32_t i = 0; i < value->n; i++)
            write_json(json, batch, &children[i].value);
        kiln_json_end_array(json);
        break;
    case KILN_VALUE_MAP:
        kiln_json_put_object(json);
        for (uint32_t i = 0; i < value->n; i++) {
            kiln_json_put_name_str(json, batch->dict.strings[children[i].key]);
            write_json(json, batch, &children[i].value);
        }
        kiln_json_end_object(json);
        break;
    default:
        kiln_json_put_null(json);
        break;
    }
}

/* A value that pprof has no kind for, as text. */
static uint32_t text_of(struct kiln_pprof_out *o, const struct kiln_value *value)
{
    struct kiln_json_out json;
    struct kiln_buf buf;
    struct kiln_str text;
    uint32_t place;

    kiln_buf_init(&buf, TEXT_MAX);
    kiln_json_out_init(&json, &buf, 0);
    write_json(&json, o->batch, value);
    if (buf.error && !o->error)
        o->error = buf.error;
    text = kiln_buf_str(&buf);
    if (text.len >= 2 && text.ptr[0] == '"') /* bytes: their digits alone */
        text = (struct kiln_str){text.ptr + 1, text.len - 2};
    place = text.len ? kiln_pprof_put_text(o, text) : empty_text(o);
    kiln_buf_done(&buf);
    return place;
}

/* True for {value: integer, unit: text}, an element of a label whose numbers differ in unit. */
static bool is_value_with_unit(const struct kiln_batch *batch, const struct kiln_value *value)
{
    const struct kiln_attr *pair;

    if (value->kind != KILN_VALUE_MAP || value->n != 2)
        return false;
    pair = batch->dict.nested + value->first;
    return pair[0].value.kind == KILN_VALUE_INT && pair[1].value.kind == KILN_VALUE_STRING &&
           kiln_str_eq(batch->dict.strings[pair[0].key], KEY_VALUE) &&
           kiln_str_eq(batch->dict.strings[pair[1].key], KEY_UNIT);
}

static void put_value(struct kiln_pprof_out *o, uint32_t key, const struct kiln_value *value,
                      uint32_t unit)
{
    uint32_t place;

    switch (value->kind) {
    case KILN_VALUE_STRING:
        place = kiln_pprof_put_string(o, (uint32_t)value->str);
        put_label(o, key, place ? place : empty_text(o), 0, 0);
        break;
    case KILN_VALUE_INT:
        put_label(o, key, 0, value->i, kiln_pprof_put_string(o, unit));
        break;
    default:
        put_label(o, key, text_of(o, value), 0, 0);
        o->losses->values_as_text++;
        break;
    }
}

static void put_attr(struct kiln_pprof_out *o, const struct kiln_attr *attr)
{
    const struct kiln_dict *d = &o->batch->dict;
    uint32_t key = kiln_pprof_put_string(o, attr->key);
    uint32_t n = attr->value.n;

    if (attr->value.kind != KILN_VALUE_ARRAY || n == 0) {
        put_value(o, key, &attr->value, attr->unit);
        return;
    }
    for (uint32_t i = n; i-- > 0;) { /* backwards, as all writing */
        const struct kiln_value *item = &d->nested[attr->value.first + i].value;

        if (is_value_with_unit(o->batch, item)) {
            const struct kiln_attr *pair = d->nested + item->first;

            put_label(o, key, 0, pair[0].value.i,
                      kiln_pprof_put_string(o, (uint32_t)pair[1].value.str));
        } else {
            put_value(o, key, item, attr->unit);
        }
    }
}

static bool set_has_key(const struct kiln_dict *d, uint32_t set, uint32_t key)
{
    struct kiln_range range = d->sets[set];

    for (uint32_t i = 0; i < range.n; i++) {
        if (d->attrs[d->members[range.first + i]].key == key)
            return true;
    }
    return false;
}

static void put_hex_label(struct kiln_pprof_out *o, struct kiln_str key, const uint8_t *id,
                          size_t len)
{
    char text[32];

    kiln_hex_encode(id, len, text);
    put_label(o, kiln_pprof_put_text(o, key),
              kiln_pprof_put_text(o, (struct kiln_str){text, 2 * len}), 0, 0);
}

static void put_link(struct kiln_pprof_out *o, const struct kiln_link *link)
{
    put_hex_label(o, KILN_STR("span_id"), link->span_id, sizeof(link->span_id));
    put_hex_label(o, KILN_STR("trace_id"), link->trace_id, sizeof(link->trace_id));
}

static void put_sets(struct kiln_pprof_out *o, const struct kiln_pprof_row *row)
{
    const struct kiln_dict *d = &o->batch->dict;
    struct kiln_range own = d->sets[row->attrs], resource = d->sets[row->resource];

    for (uint32_t i = resource.n; i-- > 0;) {
        const struct kiln_attr *attr = &d->attrs[d->members[resource.first + i]];

        if (!set_has_key(d, row->attrs, attr->key))
            put_attr(o, attr);
    }
    for (uint32_t i = own.n; i-- > 0;)
        put_attr(o, &d->attrs[d->members[own.first + i]]);
}

/* The labels of the last row, if this one has the same. */
static bool put_same(struct kiln_pprof_out *o, const struct kiln_pprof_row *row)
{
    if (o->same.to == o->same.from || row->attrs != o->same.attrs ||
        row->resource != o->same.resource)
        return false;
    kiln_pb_raw_again(&o->w, o->same.from, o->same.to);
    return true;
}

void kiln_pprof_put_labels(struct kiln_pprof_out *o, const struct kiln_pprof_row *row)
{
    uint64_t as_text = o->losses->values_as_text;
    size_t mark;

    if (row->link)
        put_link(o, &o->batch->dict.links[row->link]);
    if (put_same(o, row))
        return;
    mark = kiln_pb_mark(&o->w);
    put_sets(o, row);
    o->same.attrs = row->attrs;
    o->same.resource = row->resource;
    o->same.from = mark;
    /* What cannot be said as it is counts each time. */
    o->same.to = o->losses->values_as_text == as_text ? kiln_pb_mark(&o->w) : mark;
}
