/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protobuf to JSON.  Whoever wrote the message left out what has its default value, and so does
 * JSON; elements of a repeated field stand together, so that one pass is enough.
 */
#include <string.h>

#include "api/protojson.h"
#include "base/bytetext.h"
#include "base/json.h"
#include "codec/pb.h"

/* The field of this tag; one of another wire type is passed over like an unknown one. */
static const struct kiln_field *field_of(const struct kiln_message *message, uint32_t tag)
{
    for (uint32_t i = 0; i < message->n_fields; i++) {
        const struct kiln_field *f = &message->fields[i];
        bool text = f->kind == KILN_FIELD_STRING || f->kind == KILN_FIELD_MESSAGE ||
                    f->kind == KILN_FIELD_BYTES;
        uint32_t wire = text ? 2 : f->kind == KILN_FIELD_DOUBLE ? 1 : 0;

        if (f->number == tag >> 3)
            return (tag & 7) == wire || (f->repeated && (tag & 7) == 2) ? f : NULL;
    }
    return NULL;
}

static void write_enum(struct kiln_json_out *w, const struct kiln_field *field, int64_t number)
{
    for (const struct kiln_enum_name *e = field->names; e->name; e++)
        if (e->number == number) {
            kiln_json_put_str(w, kiln_str_of(e->name));
            return;
        }
    kiln_json_put_i64(w, number);
}

static void write_number(struct kiln_json_out *w, const struct kiln_field *field, uint64_t number)
{
    double d;

    switch (field->kind) {
    case KILN_FIELD_LONG:
        kiln_json_put_i64_text(w, (int64_t)number);
        break;
    case KILN_FIELD_ULONG:
        kiln_json_put_u64_text(w, number);
        break;
    case KILN_FIELD_DOUBLE:
        memcpy(&d, &number, sizeof(d));
        kiln_json_put_double(w, d);
        break;
    case KILN_FIELD_BOOL:
        kiln_json_put_bool(w, number != 0);
        break;
    case KILN_FIELD_ENUM:
        write_enum(w, field, (int64_t)number);
        break;
    default:
        kiln_json_put_i64(w, (int64_t)number);
    }
}

/* Many numbers in one field. */
static int write_packed(struct kiln_json_out *w, const struct kiln_field *field,
                        struct kiln_str packed)
{
    struct kiln_pb r = kiln_pb_of(packed);
    uint64_t number;
    int n;

    while ((n = field->kind == KILN_FIELD_DOUBLE ? kiln_pb_fixed64(&r, &number)
                                                 : kiln_pb_varint(&r, &number)) > 0)
        write_number(w, field, number);
    return n;
}

static int write_message(struct kiln_json_out *w, const struct kiln_message *message,
                         struct kiln_str bytes);

static int write_value(struct kiln_json_out *w, const struct kiln_field *field,
                       const struct kiln_pb_field *f)
{
    switch (field->kind) {
    case KILN_FIELD_MESSAGE:
        return write_message(w, field->message, f->bytes);
    case KILN_FIELD_STRING:
        kiln_json_put_str(w, f->bytes);
        return 0;
    case KILN_FIELD_BYTES:
        kiln_json_put_raw_begin(w);
        kiln_buf_add_base64(w->buf, f->bytes.ptr, f->bytes.len);
        kiln_json_put_raw_end(w);
        return 0;
    default:
        if (field->repeated && (f->tag & 7) == 2)
            return write_packed(w, field, f->bytes);
        write_number(w, field, f->number);
        return 0;
    }
}

static int write_message(struct kiln_json_out *w, const struct kiln_message *message,
                         struct kiln_str bytes)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    const struct kiln_field *open = NULL; /* the repeated field whose array is open */
    struct kiln_pb_field f;
    int n;

    kiln_json_put_object(w);
    while ((n = kiln_pb_next(&r, &f)) > 0) {
        const struct kiln_field *field = field_of(message, f.tag);

        if (open && field != open) {
            kiln_json_end_array(w);
            open = NULL;
        }
        if (!field)
            continue;
        if (!open) {
            kiln_json_put_name(w, field->name);
            if (field->repeated)
                kiln_json_put_array(w);
        }
        if (field->repeated)
            open = field;
        n = write_value(w, field, &f);
        if (n < 0)
            break;
    }
    if (open)
        kiln_json_end_array(w);
    kiln_json_end_object(w);
    return n < 0 ? n : 0;
}

int kiln_protojson_write(const struct kiln_message *message, struct kiln_str bytes,
                         struct kiln_buf *out)
{
    struct kiln_json_out w;
    int r;

    kiln_json_out_init(&w, out, 0);
    r = write_message(&w, message, bytes);
    return r == 0 ? out->error : r;
}
