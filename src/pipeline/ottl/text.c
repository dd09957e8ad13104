/* SPDX-License-Identifier: Apache-2.0 */
/* Values as texts: bytes are hexadecimal, whatever has parts is JSON (with bytes in base64). */
#include "base/bytetext.h"
#include "base/json.h"
#include "pipeline/ottl/ottl_int.h"

static void put_json(struct kiln_json_out *w, const struct kiln_batch *batch,
                     const struct kiln_ottl_value *value);

static void put_attr(struct kiln_json_out *w, const struct kiln_batch *batch,
                     const struct kiln_attr *attr, bool named)
{
    struct kiln_ottl_value value = kiln_ottl_value_of(batch, attr->value);

    if (named)
        kiln_json_put_name_str(w, kiln_batch_str(batch, attr->key));
    put_json(w, batch, &value);
}

static void put_list(struct kiln_json_out *w, const struct kiln_batch *batch,
                     const struct kiln_ottl_value *value)
{
    kiln_json_put_array(w);
    for (uint32_t i = 0; value->kind == KILN_OTTL_LIST && i < value->nested.n; i++)
        put_attr(w, batch, &batch->dict.nested[value->nested.first + i], false);
    for (uint32_t i = 0; value->kind == KILN_OTTL_NUMBERS && i < value->numbers.n; i++)
        kiln_json_put_i64(w, value->numbers.at[i]);
    kiln_json_end_array(w);
}

static void put_map(struct kiln_json_out *w, const struct kiln_batch *batch,
                    const struct kiln_ottl_value *value)
{
    const struct kiln_dict *d = &batch->dict;

    kiln_json_put_object(w);
    for (uint32_t i = 0; value->kind == KILN_OTTL_MAP && i < value->nested.n; i++)
        put_attr(w, batch, &d->nested[value->nested.first + i], true);
    for (uint32_t i = 0; value->kind == KILN_OTTL_SET && i < d->sets[value->set].n; i++)
        put_attr(w, batch, &d->attrs[d->members[d->sets[value->set].first + i]], true);
    kiln_json_end_object(w);
}

static void put_json(struct kiln_json_out *w, const struct kiln_batch *batch,
                     const struct kiln_ottl_value *value)
{
    switch (value->kind) {
    case KILN_OTTL_BOOL:
        kiln_json_put_bool(w, value->flag);
        break;
    case KILN_OTTL_INT:
    case KILN_OTTL_MOMENT:
        kiln_json_put_i64(w, value->i);
        break;
    case KILN_OTTL_DOUBLE:
        kiln_json_put_double(w, value->d);
        break;
    case KILN_OTTL_TEXT:
        kiln_json_put_str(w, value->text);
        break;
    case KILN_OTTL_BYTES:
        kiln_json_put_raw_begin(w);
        kiln_buf_add_base64(w->buf, value->text.ptr, value->text.len);
        kiln_json_put_raw_end(w);
        break;
    case KILN_OTTL_LIST:
    case KILN_OTTL_NUMBERS:
        put_list(w, batch, value);
        break;
    case KILN_OTTL_MAP:
    case KILN_OTTL_SET:
        put_map(w, batch, value);
        break;
    default:
        kiln_json_put_null(w);
        break;
    }
}

void kiln_ottl_put_text(struct kiln_buf *out, const struct kiln_batch *batch,
                        const struct kiln_ottl_value *value)
{
    struct kiln_json_out w;

    kiln_json_out_init(&w, out, 0);
    if (value->kind == KILN_OTTL_TEXT)
        kiln_buf_add_str(out, value->text);
    else if (value->kind == KILN_OTTL_BYTES)
        kiln_buf_add_hex(out, value->text.ptr, value->text.len);
    else if (value->kind != KILN_OTTL_NIL)
        put_json(&w, batch, value);
}
