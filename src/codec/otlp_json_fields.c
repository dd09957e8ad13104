/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop over the members of an object.  Members usually come in the order of the table, so the
 * search for a name starts behind the last one found.  A name with an underscore is looked up again
 * in lowerCamelCase.
 */
#include <errno.h>

#include "codec/otlp_json_int.h"

#define NAME_MAX_LEN 40u

static bool is_named(const struct oj_field *f, struct kiln_str name)
{
    return f->len == name.len && memcmp(f->name, name.ptr, name.len) == 0;
}

static const struct oj_field *find_exact(const struct oj_field *fields, const struct oj_field *hint,
                                         struct kiln_str name)
{
    for (const struct oj_field *f = hint; f->name; f++) {
        if (is_named(f, name))
            return f;
    }
    for (const struct oj_field *f = fields; f < hint; f++) {
        if (is_named(f, name))
            return f;
    }
    return NULL;
}

/* snake_case to lowerCamelCase; false where it is no snake_case or too long to be ours. */
static bool camel_case(struct kiln_str name, char *ret, size_t *ret_len)
{
    size_t n = 0;

    if (name.len > NAME_MAX_LEN || !memchr(name.ptr, '_', name.len))
        return false;
    for (size_t i = 0; i < name.len; i++) {
        bool upper = name.ptr[i] == '_' && i + 1 < name.len;
        char c = name.ptr[i += upper];

        ret[n++] = upper && c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
    }
    *ret_len = n;
    return true;
}

static const struct oj_field *find(const struct oj_field *fields, const struct oj_field *hint,
                                   struct kiln_str name)
{
    const struct oj_field *f = find_exact(fields, hint, name);
    char camel[NAME_MAX_LEN];
    size_t len;

    if (KILN_LIKELY(f) || !camel_case(name, camel, &len))
        return f;
    return find_exact(fields, hint, (struct kiln_str){camel, len});
}

/* ---- scalars ---- */

static int bad_text(struct oj_decoder *d, struct kiln_str text, int code)
{
    int shown = text.len < 40 ? (int)text.len : 40;

    return kiln_json_fail(&d->r, code,
                          code == -ERANGE ? "\"%.*s\" is out of range" : "\"%.*s\" is no integer",
                          shown, text.ptr);
}

int oj_i64(struct oj_decoder *d, int64_t *ret)
{
    struct kiln_str text;
    int r;

    if (kiln_json_peek(&d->r) != KILN_JSON_STRING)
        return kiln_json_i64(&d->r, ret);
    r = kiln_json_string(&d->r, &text);
    if (r < 0)
        return r;
    r = kiln_json_parse_i64(text, ret);
    return r < 0 ? bad_text(d, text, r) : 0;
}

int oj_u64(struct oj_decoder *d, uint64_t *ret)
{
    struct kiln_str text;
    int r;

    if (kiln_json_peek(&d->r) != KILN_JSON_STRING)
        return kiln_json_u64(&d->r, ret);
    r = kiln_json_string(&d->r, &text);
    if (r < 0)
        return r;
    r = kiln_json_parse_u64(text, ret);
    return r < 0 ? bad_text(d, text, r) : 0;
}

static int read_u32(struct oj_decoder *d, uint32_t *ret)
{
    uint64_t value;
    int r = oj_u64(d, &value);

    if (r < 0)
        return r;
    if (value > UINT32_MAX)
        return kiln_json_fail(&d->r, -ERANGE, "more than 32 bits");
    *ret = (uint32_t)value;
    return 0;
}

/* Index 0 of an absent table is the zero value. */
int oj_index(struct oj_decoder *d, enum oj_table table, uint32_t *ret)
{
    const struct oj_map *map = &d->maps[table];
    int64_t index;
    int r = oj_i64(d, &index);

    if (r < 0)
        return r;
    if (KILN_LIKELY(index >= 0 && index < map->n)) {
        *ret = map->to[index];
        return 0;
    }
    if (index != 0)
        return kiln_json_fail(&d->r, KILN_E_RANGE, "%lld is outside %s, which has %u entries",
                              (long long)index, oj_table_names[table], map->n);
    *ret = 0;
    return 0;
}

static int read_text(struct oj_decoder *d, uint32_t *ret)
{
    struct kiln_str text;
    int r = kiln_json_string(&d->r, &text);

    if (r < 0)
        return r;
    *ret = kiln_builder_string(d->b, text);
    return 0;
}

/* ---- lists ---- */

static int read_id(struct oj_decoder *d, enum oj_table table)
{
    uint32_t id;
    int r = oj_index(d, table, &id);

    if (r == 0)
        r = OJ_ROOM(d, ids);
    if (r == 0)
        d->ids[d->n_ids++] = id;
    return r;
}

static int read_value(struct oj_decoder *d)
{
    int r = OJ_ROOM(d, values);

    if (r == 0)
        r = oj_i64(d, &d->values[d->n_values]);
    d->n_values += r == 0;
    return r;
}

static int read_time(struct oj_decoder *d)
{
    int r = OJ_ROOM(d, times);

    if (r == 0)
        r = oj_u64(d, &d->times[d->n_times]);
    d->n_times += r == 0;
    return r;
}

static int read_element(struct oj_decoder *d, const struct oj_field *f, void *record)
{
    switch (f->kind) {
    case OJ_VALUES:
        return read_value(d);
    case OJ_TIMES:
        return read_time(d);
    case OJ_EACH:
        return f->read(d, record);
    default:
        return read_id(d, f->kind == OJ_SET ? OJ_ATTRS : f->table);
    }
}

static void clear_list(struct oj_decoder *d, enum oj_kind kind)
{
    if (kind == OJ_VALUES)
        d->n_values = 0;
    else if (kind == OJ_TIMES)
        d->n_times = 0;
    else if (kind != OJ_EACH)
        d->n_ids = 0;
}

static int read_list(struct oj_decoder *d, const struct oj_field *f, void *record)
{
    uint32_t i = 0;
    int r = kiln_json_array(&d->r);

    clear_list(d, f->kind);
    while (r == 0 && (r = kiln_json_element(&d->r)) > 0) {
        r = read_element(d, f, record);
        if (KILN_UNLIKELY(r < 0)) {
            kiln_err_within(d->err, "%s[%u]", f->name, i);
            return r;
        }
        i++;
    }
    if (r < 0)
        kiln_err_within(d->err, "%s", f->name);
    else if (f->kind == OJ_SET)
        *(uint32_t *)((char *)record + f->offset) = kiln_builder_set(d->b, d->ids, d->n_ids, NULL);
    return r;
}

/* ---- messages ---- */

static int read_scalar(struct oj_decoder *d, const struct oj_field *f, void *record)
{
    void *to = (char *)record + f->offset;

    switch (f->kind) {
    case OJ_INDEX:
        return oj_index(d, f->table, to);
    case OJ_TEXT:
        return read_text(d, to);
    case OJ_I64:
        return oj_i64(d, to);
    case OJ_U64:
        return oj_u64(d, to);
    case OJ_U32:
        return read_u32(d, to);
    case OJ_READ:
        return f->read(d, record);
    default:
        return kiln_json_fail(&d->r, KILN_E_UNSUPPORTED,
                              "JSON of OTLP 1.7 and older is not read; its protobuf is");
    }
}

static int read_field(struct oj_decoder *d, const struct oj_field *f, void *record)
{
    int r;

    switch (f->kind) {
    case OJ_IDS:
    case OJ_SET:
    case OJ_VALUES:
    case OJ_TIMES:
    case OJ_EACH:
        return read_list(d, f, record);
    default:
        r = read_scalar(d, f, record);
        if (KILN_UNLIKELY(r < 0))
            kiln_err_within(d->err, "%s", f->name);
        return r;
    }
}

int oj_object(struct oj_decoder *d, const struct oj_field *fields, void *record)
{
    const struct oj_field *hint = fields;
    struct kiln_str name;
    int r = kiln_json_null(&d->r);

    if (r != 0)
        return r < 0 ? r : 0;
    r = kiln_json_object(&d->r);
    while (r == 0 && (r = kiln_json_member(&d->r, &name)) > 0) {
        const struct oj_field *f = find(fields, hint, name);

        r = kiln_json_null(&d->r);
        if (r != 0) {
            r = r < 0 ? r : 0;
            continue;
        }
        if (!f) {
            r = kiln_json_skip(&d->r);
            continue;
        }
        r = read_field(d, f, record);
        hint = f + 1;
    }
    return r < 0 ? r : kiln_builder_error(d->b);
}
