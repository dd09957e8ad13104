/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frame of a message: ProfilesData { 1 resource_profiles, 2 dictionary }, ResourceProfiles
 * { 1 resource, 2 scope_profiles, 3 schema_url }, ScopeProfiles { 1 scope, 2 profiles,
 * 3 schema_url }.  Heads are read before their children, wherever they stand in the bytes.
 */
#include <errno.h>

#include "codec/otlp_int.h"

int otlp_bad_wire(struct kiln_err *err, int code)
{
    return kiln_err_set(err, code, NULL, "%s",
                        code == KILN_E_TRUNCATED ? "the message is cut off"
                                                 : "this is not a protobuf message");
}

int otlp_bad_index(struct kiln_err *err, const char *field, uint64_t index, uint32_t n)
{
    if (index > INT32_MAX)
        return kiln_err_set(err, KILN_E_RANGE, field, "%d is not an index", (int)(int64_t)index);
    return kiln_err_set(err, KILN_E_RANGE, field, "%u is outside the table of %u", (uint32_t)index,
                        n);
}

struct kiln_str otlp_kept(struct otlp_decoder *d, struct kiln_str bytes)
{
    char *copy = d->copies && bytes.len ? kiln_builder_alloc(d->b, bytes.len) : NULL;

    if (copy)
        bytes.ptr = memcpy(copy, bytes.ptr, bytes.len);
    return bytes;
}

int otlp_string(struct otlp_decoder *d, struct kiln_str text, const char *field, uint32_t *ret)
{
    struct otlp_known_bytes *known = otlp_known(d->known_texts, text);

    if (known->bytes.len && kiln_str_eq(known->bytes, text)) {
        *ret = known->index;
        return 0;
    }
    if (KILN_UNLIKELY(!otlp_is_text(d, text)))
        return kiln_err_set(d->err, KILN_E_UTF8, field, "the text is not valid UTF-8");
    *ret = otlp_bytes(d, text);
    *known = (struct otlp_known_bytes){text, *ret};
    return 0;
}

static int grow_ids(struct otlp_decoder *d, struct otlp_ids *list, uint64_t more)
{
    return kiln_grow(&d->budget, (void **)&list->ids, &list->cap, list->n + more,
                     sizeof(*list->ids), UINT32_MAX);
}

int otlp_ids_add(struct otlp_decoder *d, struct otlp_ids *list, uint32_t id)
{
    int r = grow_ids(d, list, 1);

    if (r == 0)
        list->ids[list->n++] = id;
    return r;
}

int otlp_refs_one(struct otlp_decoder *d, enum otlp_table table, uint64_t wire, const char *field,
                  struct otlp_ids *list)
{
    uint32_t id;
    int r = otlp_ref(d, table, wire, field, &id);

    return r < 0 ? r : otlp_ids_add(d, list, id);
}

int otlp_refs_packed(struct otlp_decoder *d, enum otlp_table table, struct kiln_str packed,
                     const char *field, struct otlp_ids *list)
{
    const struct otlp_map map = d->maps[table];
    struct kiln_pb r = kiln_pb_of(packed);
    uint32_t at = list->n;
    uint32_t *ids;
    uint64_t wire;
    int n = grow_ids(d, list, packed.len); /* a varint has at least a byte */

    if (n < 0)
        return n;
    ids = list->ids;
    while ((n = kiln_pb_varint(&r, &wire)) > 0) {
        if (KILN_UNLIKELY(!otlp_map_get(&map, wire, &ids[at]))) {
            otlp_bad_index(d->err, NULL, wire, map.n);
            kiln_err_within(d->err, "%s[%u]", field, at);
            return KILN_E_RANGE;
        }
        at++;
    }
    list->n = at;
    return n < 0 ? otlp_bad_wire(d->err, n) : 0;
}

uint32_t otlp_set_of(struct otlp_decoder *d, const struct otlp_ids *attrs)
{
    uint32_t *known;

    if (attrs->n != 1 || attrs->ids[0] >= d->n_set_of_attr)
        return kiln_builder_set(d->b, attrs->ids, attrs->n, NULL);
    known = &d->set_of_attr[attrs->ids[0]];
    if (*known == 0)
        *known = 1 + kiln_builder_set(d->b, attrs->ids, 1, NULL);
    return *known - 1;
}

bool otlp_try_set(struct otlp_decoder *d, struct kiln_str packed, uint32_t *ret)
{
    struct kiln_err *err = d->err;
    int r;

    d->err = NULL;
    d->attr_ids.n = 0;
    r = otlp_refs_packed(d, OTLP_ATTRS, packed, "attribute_indices", &d->attr_ids);
    d->err = err;
    if (r == 0)
        *ret = otlp_set_of(d, &d->attr_ids);
    return r == 0;
}

/* ---- scopes ---- */

static int read_scope(struct otlp_decoder *d, struct kiln_str bytes, struct kiln_scope *scope)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    uint32_t i = 0;
    int n, e = 0;

    while (e == 0 && (n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_BYTES(1u)) {
            e = otlp_string(d, f.bytes, "name", &scope->name);
        } else if (f.tag == KILN_PB_BYTES(2u)) {
            e = otlp_string(d, f.bytes, "version", &scope->version);
        } else if (f.tag == KILN_PB_BYTES(3u)) {
            e = otlp_key_value(d, f.bytes, &d->attr_ids);
            if (e < 0)
                kiln_err_within(d->err, "attributes[%u]", i);
            i++;
        } else if (f.tag == KILN_PB_VARINT(4u)) {
            scope->dropped_attrs = (uint32_t)f.number;
        }
    }
    e = otlp_end(d, e, n);
    if (e < 0)
        kiln_err_within(d->err, "scope");
    return e;
}

static int read_scope_head(struct otlp_decoder *d, struct kiln_str bytes, struct kiln_scope *scope)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    int n, e = 0;

    d->attr_ids.n = 0;
    while (e == 0 && (n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_BYTES(1u))
            e = read_scope(d, f.bytes, scope);
        else if (f.tag == KILN_PB_BYTES(3u))
            e = otlp_string(d, f.bytes, "schema_url", &scope->schema_url);
    }
    scope->attrs = otlp_set_of(d, &d->attr_ids);
    return e < 0 || n == 0 ? e : otlp_bad_wire(d->err, n);
}

/* A bad profile ends the decoding, or is dropped and counted where the caller wants that. */
static int read_profile(struct otlp_decoder *d, struct kiln_str bytes, uint32_t index)
{
    struct kiln_err *outer = d->err;
    struct kiln_err err = {0};
    int r;

    d->err = &err;
    r = d->revision < KILN_OTLP_1_8 ? otlp_old_profile(d, bytes) : otlp_profile(d, bytes);
    d->err = outer;
    if (r == 0)
        return 0;
    kiln_err_set(&err, r, NULL, "%s", kiln_err_text(r));
    kiln_err_within(&err, "profiles[%u]", index);
    if (d->drop_bad_profiles && d->revision >= KILN_OTLP_1_8 && kiln_builder_error(d->b) == 0) {
        if (d->info->dropped_profiles++ == 0)
            d->info->first_dropped = err;
        return 0;
    }
    if (outer && outer->code == 0)
        *outer = err;
    return r;
}

static int read_scope_profiles(struct otlp_decoder *d, struct kiln_str bytes)
{
    struct kiln_scope scope = {0};
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    uint32_t i = 0;
    int e = read_scope_head(d, bytes, &scope);

    if (e < 0)
        return e;
    kiln_builder_add_scope(d->b, &scope);
    e = kiln_builder_error(d->b);
    while (e == 0 && kiln_pb_next(&r, &f) > 0) {
        if (f.tag == KILN_PB_BYTES(2u))
            e = read_profile(d, f.bytes, i++);
    }
    return e;
}

/* ---- resources ---- */

static int read_entity_key(struct otlp_decoder *d, struct kiln_str text, struct otlp_ids *list)
{
    uint32_t key = 0;
    int r = otlp_string(d, text, "key", &key);

    return r < 0 ? r : otlp_ids_add(d, list, key);
}

/* EntityRef: 1 schema_url, 2 type, 3 id_keys, 4 description_keys. */
static int read_entity(struct otlp_decoder *d, struct kiln_str bytes)
{
    struct otlp_ids description_keys = {0};
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    uint32_t schema_url = 0, type = 0;
    int n, e = 0;

    d->ids.n = 0;
    while (e == 0 && (n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_BYTES(1u))
            e = otlp_string(d, f.bytes, "schema_url", &schema_url);
        else if (f.tag == KILN_PB_BYTES(2u))
            e = otlp_string(d, f.bytes, "type", &type);
        else if (f.tag == KILN_PB_BYTES(3u))
            e = read_entity_key(d, f.bytes, &d->ids);
        else if (f.tag == KILN_PB_BYTES(4u))
            e = read_entity_key(d, f.bytes, &description_keys);
    }
    e = otlp_end(d, e, n);
    if (e == 0)
        kiln_builder_add_entity(d->b, schema_url, type, d->ids.ids, d->ids.n, description_keys.ids,
                                description_keys.n);
    kiln_array_free(&d->budget, (void **)&description_keys.ids, &description_keys.cap,
                    sizeof(*description_keys.ids));
    return e;
}

/* Resource: 1 attributes, 2 dropped_attributes_count, 3 entity_refs (read later, see below). */
static int read_resource(struct otlp_decoder *d, struct kiln_str bytes,
                         struct kiln_resource *resource)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    uint32_t i = 0;
    int n, e = 0;

    while (e == 0 && (n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_BYTES(1u)) {
            e = otlp_key_value(d, f.bytes, &d->attr_ids);
            if (e < 0)
                kiln_err_within(d->err, "attributes[%u]", i);
            i++;
        } else if (f.tag == KILN_PB_VARINT(2u)) {
            resource->dropped_attrs = (uint32_t)f.number;
        }
    }
    return e < 0 || n == 0 ? e : otlp_bad_wire(d->err, n);
}

/* Entities belong to a resource that has been added; the bytes were read well once before. */
static int read_entities(struct otlp_decoder *d, struct kiln_str bytes)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    int e = 0;

    while (e == 0 && kiln_pb_next(&r, &f) > 0) {
        if (f.tag == KILN_PB_BYTES(3u))
            e = read_entity(d, f.bytes);
    }
    if (e < 0)
        kiln_err_within(d->err, "entity_refs");
    return e;
}

static int read_resource_head(struct otlp_decoder *d, struct kiln_str bytes,
                              struct kiln_resource *resource)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    int n, e = 0;

    d->attr_ids.n = 0;
    while (e == 0 && (n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_BYTES(1u)) {
            e = read_resource(d, f.bytes, resource);
            if (e < 0)
                kiln_err_within(d->err, "resource");
        } else if (f.tag == KILN_PB_BYTES(3u)) {
            e = otlp_string(d, f.bytes, "schema_url", &resource->schema_url);
        }
    }
    resource->attrs = otlp_set_of(d, &d->attr_ids);
    return e < 0 || n == 0 ? e : otlp_bad_wire(d->err, n);
}

static int read_resource_children(struct otlp_decoder *d, struct kiln_str bytes)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    uint32_t i = 0;
    int e = 0;

    while (e == 0 && kiln_pb_next(&r, &f) > 0) {
        if (f.tag == KILN_PB_BYTES(1u)) {
            e = read_entities(d, f.bytes);
            if (e < 0)
                kiln_err_within(d->err, "resource");
        } else if (f.tag == KILN_PB_BYTES(2u)) {
            e = read_scope_profiles(d, f.bytes);
            if (e < 0)
                kiln_err_within(d->err, "scope_profiles[%u]", i);
            i++;
        }
    }
    return e;
}

static int read_resource_profiles(struct otlp_decoder *d, struct kiln_str bytes)
{
    struct kiln_resource resource = {0};
    int r = read_resource_head(d, bytes, &resource);

    if (r < 0)
        return r;
    kiln_builder_add_resource(d->b, &resource);
    r = kiln_builder_error(d->b);
    return r < 0 ? r : read_resource_children(d, bytes);
}

/* ---- messages ---- */

static int read_message(struct otlp_decoder *d, struct kiln_str message,
                        const struct otlp_extent *extents)
{
    struct kiln_pb r = kiln_pb_of(message);
    struct kiln_pb_field f;
    uint32_t i = 0;
    int e = d->revision < KILN_OTLP_1_8 ? otlp_old_tables(d, message) : otlp_dictionary(d, extents);

    while (e == 0 && kiln_pb_next(&r, &f) > 0) {
        if (f.tag != KILN_PB_BYTES(1u))
            continue;
        e = read_resource_profiles(d, f.bytes);
        if (e < 0)
            kiln_err_within(d->err, "resource_profiles[%u]", i);
        i++;
    }
    return e;
}

static void free_scratch(struct otlp_decoder *d)
{
    kiln_array_free(&d->budget, (void **)&d->ids.ids, &d->ids.cap, sizeof(*d->ids.ids));
    kiln_array_free(&d->budget, (void **)&d->attr_ids.ids, &d->attr_ids.cap,
                    sizeof(*d->attr_ids.ids));
    kiln_array_free(&d->budget, (void **)&d->stack_pool.ids, &d->stack_pool.cap,
                    sizeof(*d->stack_pool.ids));
    kiln_array_free(&d->budget, (void **)&d->set_of_attr, &d->cap_set_of_attr,
                    sizeof(*d->set_of_attr));
    kiln_array_free(&d->budget, (void **)&d->lines, &d->cap_lines, sizeof(*d->lines));
    kiln_array_free(&d->budget, (void **)&d->values, &d->cap_values, sizeof(*d->values));
    kiln_array_free(&d->budget, (void **)&d->times, &d->cap_times, sizeof(*d->times));
}

static int decode_message(struct otlp_decoder *d, struct kiln_str message,
                          enum kiln_otlp_revision wanted, bool first)
{
    struct otlp_extent extents[OTLP_TABLES] = {0};
    struct kiln_str dictionary = {0};
    int r = otlp_dictionary_find(d, message, &dictionary);

    d->message_end = kiln_pb_of(message).end;
    if (r == 0) {
        r = otlp_dictionary_look(dictionary, extents);
        if (r < 0)
            otlp_bad_wire(d->err, r);
    }
    if (r < 0)
        return r;
    d->revision = wanted ? wanted : otlp_revision_by(message, extents);
    if (first)
        d->info->revision = d->revision;
    return read_message(d, message, extents);
}

/* The length-prefixed form: records up to the end of the file. */
static int decode_records(struct otlp_decoder *d, struct kiln_str bytes,
                          enum kiln_otlp_revision wanted)
{
    struct kiln_str record;
    uint32_t i = 0;
    int r = 0;

    while (r == 0 && otlp_next_record(&bytes, &record)) {
        r = decode_message(d, record, wanted, i == 0);
        if (r < 0)
            kiln_err_within(d->err, "record[%u]", i);
        i++;
    }
    return r;
}

int kiln_otlp_decode(struct kiln_str bytes, const struct kiln_otlp_opts *opts,
                     struct kiln_builder *b, struct kiln_otlp_info *info, struct kiln_err *err)
{
    struct kiln_otlp_info unused = {0};
    enum kiln_otlp_revision wanted = opts ? opts->revision : KILN_OTLP_AUTO;
    struct otlp_decoder d = {
        .b = b,
        .err = err,
        .info = info ? info : &unused,
        .drop_bad_profiles = opts && opts->drop_bad_profiles,
        .copies = opts && opts->copies,
        .vouched = opts && opts->vouched,
        .of = opts && opts->of ? opts->of : 1,
        .budget = {.limit = kiln_builder_limits(b)->memory_bytes},
    };
    int r;

    *d.info = (struct kiln_otlp_info){0};
    r = otlp_is_records(bytes) ? decode_records(&d, bytes, wanted)
                               : decode_message(&d, bytes, wanted, true);
    free_scratch(&d);
    if (r < 0)
        kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    return r;
}
