/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON to protobuf, and protobuf to a struct.
 *
 * Fields are appended in the order in which JSON has them.  The length of a nested message stands
 * before it and is known behind it: one byte is left for it, and where that is not enough the
 * message moves up.
 */
#include <errno.h>
#include <string.h>

#include "api/protojson.h"
#include "base/json.h"
#include "codec/pb.h"

/* ---- JSON to protobuf ---- */

static void put_varint(struct kiln_buf *out, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        kiln_buf_putc(out, (char)(v | 0x80));
    kiln_buf_putc(out, (char)v);
}

static void put_text(struct kiln_buf *out, const struct kiln_field *field, struct kiln_str text)
{
    put_varint(out, KILN_PB_BYTES(field->number));
    put_varint(out, text.len);
    kiln_buf_add_str(out, text);
}

static void put_number(struct kiln_buf *out, const struct kiln_field *field, uint64_t v)
{
    put_varint(out, KILN_PB_VARINT(field->number));
    put_varint(out, v);
}

/* Puts the length of what stands behind `at` where one byte was left for it. */
static void close_message(struct kiln_buf *out, size_t at)
{
    size_t len, more;

    if (out->error)
        return;
    len = out->len - at - 1;
    more = kiln_pb_varint_size(len) - 1;
    if (more && !kiln_buf_reserve(out, more))
        return;
    memmove(out->ptr + at + 1 + more, out->ptr + at + 1, len);
    out->len = at;
    put_varint(out, len);
    out->len += len;
}

static const struct kiln_field *field_named(const struct kiln_message *message,
                                            struct kiln_str name)
{
    for (uint32_t i = 0; i < message->n_fields; i++) {
        const struct kiln_field *f = &message->fields[i];

        if (kiln_str_eq(name, kiln_str_of(f->name)) ||
            (f->proto_name && kiln_str_eq(name, kiln_str_of(f->proto_name))))
            return f;
    }
    return NULL;
}

static int read_integer(struct kiln_json *r, bool is_signed, uint64_t *ret)
{
    struct kiln_str text;
    int64_t i = 0;
    int n;

    if (kiln_json_peek(r) != KILN_JSON_STRING) {
        n = is_signed ? kiln_json_i64(r, &i) : kiln_json_u64(r, ret);
    } else {
        n = kiln_json_string(r, &text);
        if (n == 0 && (is_signed ? kiln_json_parse_i64(text, &i) : kiln_json_parse_u64(text, ret)))
            n = kiln_json_fail(r, KILN_E_MALFORMED, "this is no number of 64 bits");
    }
    if (n == 0 && is_signed)
        *ret = (uint64_t)i;
    return n;
}

static int read_double(struct kiln_json *r, uint64_t *ret)
{
    struct kiln_str text;
    double d = 0;
    int n;

    if (kiln_json_peek(r) != KILN_JSON_STRING) {
        n = kiln_json_double(r, &d);
    } else {
        n = kiln_json_string(r, &text);
        if (n == 0 && kiln_json_parse_double(text, &d))
            n = kiln_json_fail(r, KILN_E_MALFORMED, "this is no number");
    }
    memcpy(ret, &d, sizeof(d));
    return n;
}

/* 1 where the name is known. */
static int read_enum(struct kiln_json *r, const struct kiln_field *field, uint64_t *ret)
{
    struct kiln_str text;
    int n;

    if (kiln_json_peek(r) != KILN_JSON_STRING) {
        n = read_integer(r, true, ret);
        return n < 0 ? n : 1;
    }
    n = kiln_json_string(r, &text);
    for (const struct kiln_enum_name *e = field->names; n == 0 && e->name; e++)
        if (kiln_str_eq(text, kiln_str_of(e->name))) {
            *ret = (uint64_t)(int64_t)e->number;
            return 1;
        }
    return n;
}

static int read_members(struct kiln_json *r, const struct kiln_message *message,
                        struct kiln_buf *out);

static int read_message(struct kiln_json *r, const struct kiln_field *field, struct kiln_buf *out)
{
    size_t at;
    int n;

    put_varint(out, KILN_PB_BYTES(field->number));
    at = out->len;
    kiln_buf_putc(out, 0);
    n = read_members(r, field->message, out);
    close_message(out, at);
    return n;
}

static int read_number(struct kiln_json *r, const struct kiln_field *field, struct kiln_buf *out)
{
    bool flag = false;
    uint64_t v = 0;
    int n;

    switch (field->kind) {
    case KILN_FIELD_BOOL:
        n = kiln_json_bool(r, &flag);
        v = flag;
        break;
    case KILN_FIELD_ENUM:
        n = read_enum(r, field, &v);
        if (n <= 0)
            return n;
        break;
    case KILN_FIELD_DOUBLE:
        n = read_double(r, &v);
        put_varint(out, KILN_PB_FIXED64(field->number));
        kiln_buf_add(out, &v, 8);
        return n;
    default:
        n = read_integer(r, field->kind != KILN_FIELD_ULONG, &v);
    }
    if (n >= 0)
        put_number(out, field, v);
    return n < 0 ? n : 0;
}

static int read_value(struct kiln_json *r, const struct kiln_field *field, struct kiln_buf *out)
{
    struct kiln_str text;
    int n;

    switch (field->kind) {
    case KILN_FIELD_STRING:
        n = kiln_json_string(r, &text);
        if (n == 0)
            put_text(out, field, text);
        return n;
    case KILN_FIELD_BYTES: /* no request has any */
        return kiln_json_skip(r);
    case KILN_FIELD_MESSAGE:
        return read_message(r, field, out);
    default:
        return read_number(r, field, out);
    }
}

static int read_member(struct kiln_json *r, const struct kiln_field *field, struct kiln_buf *out)
{
    int n = kiln_json_null(r);

    if (n != 0)
        return n < 0 ? n : 0;
    if (!field->repeated)
        return read_value(r, field, out);
    n = kiln_json_array(r);
    while (n == 0 && (n = kiln_json_element(r)) > 0)
        n = read_value(r, field, out);
    return n;
}

static int read_members(struct kiln_json *r, const struct kiln_message *message,
                        struct kiln_buf *out)
{
    struct kiln_str name;
    int n = kiln_json_object(r);

    while (n == 0 && (n = kiln_json_member(r, &name)) > 0) {
        const struct kiln_field *field = field_named(message, name);

        n = field ? read_member(r, field, out) : kiln_json_skip(r);
    }
    return n;
}

int kiln_protojson_read(const struct kiln_message *message, struct kiln_str json,
                        struct kiln_buf *out, struct kiln_err *err)
{
    struct kiln_json r;
    int n;

    kiln_json_init(&r, json, err);
    n = read_members(&r, message, out);
    if (n == 0)
        n = kiln_json_more(&r);
    if (n > 0)
        n = kiln_json_fail(&r, KILN_E_MALFORMED, "there is something behind the message");
    kiln_json_done(&r);
    if (n == 0 && out->error)
        n = kiln_err_set(err, out->error, NULL, "%s", kiln_err_text(out->error));
    return n;
}

/* ---- protobuf to a struct ---- */

struct reading {
    struct kiln_arena *arena;
    struct kiln_err *err;
};

static int bad(const struct reading *r, int code, const char *what)
{
    return kiln_err_set(r->err, code, what, "%s", kiln_err_text(code));
}

static int append(const struct reading *r, struct kiln_texts *list, const struct kiln_field *field,
                  struct kiln_str text)
{
    if (list->n == KILN_TEXTS_MAX)
        return kiln_err_set(r->err, KILN_E_LIMIT, field->name, "more than %d of them",
                            KILN_TEXTS_MAX);
    if (list->n == list->cap) {
        uint32_t cap = list->cap ? list->cap * 2 : 8;
        struct kiln_str *items;

        items = kiln_arena_alloc(r->arena, cap * sizeof(*items));
        if (!items)
            return bad(r, -ENOMEM, field->name);
        if (list->n)
            memcpy(items, list->items, list->n * sizeof(*items));
        list->items = items;
        list->cap = cap;
    }
    list->items[list->n++] = text;
    return 0;
}

static int fill(const struct reading *r, const struct kiln_message *message, struct kiln_str bytes,
                char *ret);

static int fill_message(const struct reading *r, const struct kiln_field *field,
                        struct kiln_str bytes, char *ret)
{
    char *inner = ret;

    if (field->apart) {
        memcpy(&inner, ret + field->offset, sizeof(inner));
        if (!inner) { /* a second one adds to the first */
            inner = kiln_arena_alloc(r->arena, field->apart);
            if (!inner)
                return bad(r, -ENOMEM, field->name);
            memset(inner, 0, field->apart);
            memcpy(ret + field->offset, &inner, sizeof(inner));
        }
    } else if (field->kept) {
        *(bool *)(ret + field->offset) = true;
    }
    return fill(r, field->message, bytes, inner);
}

static int fill_text(const struct reading *r, const struct kiln_field *field, struct kiln_str text,
                     char *ret)
{
    if (!kiln_utf8_valid(text))
        return bad(r, KILN_E_UTF8, field->name);
    if (field->repeated || field->appends)
        return append(r, (struct kiln_texts *)(void *)(ret + field->offset), field, text);
    memcpy(ret + field->offset, &text, sizeof(text));
    return 0;
}

static void fill_number(const struct kiln_field *field, uint64_t number, char *ret)
{
    bool flag = number != 0;
    int64_t value = (int64_t)number;

    if (field->kind == KILN_FIELD_BOOL)
        memcpy(ret + field->offset, &flag, sizeof(flag));
    else /* a double's bits, or an integer */
        memcpy(ret + field->offset, &value, sizeof(value));
}

/* The field of this tag; one of another wire type is passed over like an unknown one. */
static const struct kiln_field *field_of(const struct kiln_message *message, uint32_t tag)
{
    for (uint32_t i = 0; i < message->n_fields; i++) {
        const struct kiln_field *f = &message->fields[i];
        bool text = f->kind == KILN_FIELD_STRING || f->kind == KILN_FIELD_MESSAGE ||
                    f->kind == KILN_FIELD_BYTES;

        if (f->number != tag >> 3)
            continue;
        return (tag & 7) == (text ? 2 : f->kind == KILN_FIELD_DOUBLE ? 1 : 0) ? f : NULL;
    }
    return NULL;
}

static int fill(const struct reading *r, const struct kiln_message *message, struct kiln_str bytes,
                char *ret)
{
    struct kiln_pb in = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    int n, wrong = 0;

    while (wrong == 0 && (n = kiln_pb_next(&in, &f)) > 0) {
        const struct kiln_field *field = field_of(message, f.tag);

        if (!field)
            continue;
        if (field->kind == KILN_FIELD_MESSAGE)
            wrong = fill_message(r, field, f.bytes, ret);
        else if (field->kept && field->kind == KILN_FIELD_STRING)
            wrong = fill_text(r, field, f.bytes, ret);
        else if (field->kept)
            fill_number(field, f.number, ret);
    }
    if (wrong < 0)
        return wrong;
    return n < 0 ? bad(r, n, message->name) : 0;
}

int kiln_message_read(const struct kiln_message *message, struct kiln_str bytes,
                      struct kiln_arena *arena, void *ret, struct kiln_err *err)
{
    struct reading r = {.arena = arena, .err = err};

    return fill(&r, message, bytes, ret);
}
