/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resources, scopes, profiles and samples.  The builder wants a resource before its scopes and a
 * profile before its samples, the text may give them the other way round: so each is opened empty
 * and filled in when its object has been read.
 */
#include "base/bytetext.h"
#include "codec/otlp_json_int.h"

/* ---- samples ---- */

struct sample {
    uint32_t stack, attrs, link;
};

static int read_sample(struct oj_decoder *d, __attribute__((unused)) void *profile)
{
    static const struct oj_field fields[] = {
        OJ_REF(struct sample, "stackIndex", stack, OJ_STACKS),
        OJ_FIELD(struct sample, "attributeIndices", OJ_SET, attrs),
        OJ_REF(struct sample, "linkIndex", link, OJ_LINKS),
        OJ_LIST("values", OJ_VALUES, OJ_TABLES),
        OJ_LIST("timestampsUnixNano", OJ_TIMES, OJ_TABLES),
        OJ_LIST("locationsStartIndex", OJ_OLD, OJ_TABLES),
        OJ_LIST("locationsLength", OJ_OLD, OJ_TABLES),
        OJ_END,
    };
    struct sample s = {0};
    int r;

    d->n_values = 0;
    d->n_times = 0;
    r = oj_object(d, fields, &s);
    if (r < 0)
        return r;
    if (d->n_values && d->n_times && d->n_values != d->n_times)
        return kiln_json_fail(&d->r, KILN_E_MALFORMED,
                              "has %u values for %u timestamps: they must be pairs", d->n_values,
                              d->n_times);
    kiln_builder_add_sample(d->b, d->profile, s.stack, s.attrs, s.link,
                            d->n_values ? d->values : NULL, d->n_times ? d->times : NULL,
                            d->n_values ? d->n_values : d->n_times);
    return kiln_builder_error(d->b);
}

/* ---- profiles ---- */

static int read_type(struct oj_decoder *d, struct kiln_value_type *ret)
{
    static const struct oj_field fields[] = {
        OJ_REF(struct kiln_value_type, "typeStrindex", type, OJ_STRINGS),
        OJ_REF(struct kiln_value_type, "unitStrindex", unit, OJ_STRINGS),
        OJ_END,
    };

    return oj_object(d, fields, ret);
}

static int read_sample_type(struct oj_decoder *d, void *record)
{
    if (kiln_json_peek(&d->r) == KILN_JSON_ARRAY)
        return kiln_json_fail(&d->r, KILN_E_UNSUPPORTED,
                              "JSON of OTLP 1.7 and older is not read; its protobuf is");
    return read_type(d, &((struct kiln_profile *)record)->sample_type);
}

static int read_period_type(struct oj_decoder *d, void *record)
{
    return read_type(d, &((struct kiln_profile *)record)->period_type);
}

/* 32 hexadecimal digits, or base64 of 16 bytes. */
static int read_profile_id(struct oj_decoder *d, void *record)
{
    uint8_t *id = ((struct kiln_profile *)record)->id;
    uint8_t bytes[24 + 3];
    struct kiln_str text;
    size_t len = 0;
    int r = kiln_json_string(&d->r, &text);

    if (r < 0 || text.len == 0 || kiln_hex_decode(text, id, 16) == 0)
        return r;
    if (text.len > 24 || kiln_base64_decode(text, bytes, &len) < 0 || len != 16)
        return kiln_json_fail(&d->r, KILN_E_MALFORMED,
                              "neither 32 hexadecimal digits nor base64 of 16 bytes");
    memcpy(id, bytes, 16);
    return 0;
}

static int read_payload(struct oj_decoder *d, void *record)
{
    struct kiln_str text;
    size_t len = 0;
    char *bytes;
    int r = kiln_json_string(&d->r, &text);

    if (r < 0)
        return r;
    bytes = kiln_builder_alloc(d->b, kiln_base64_room(text.len));
    if (!bytes)
        return kiln_builder_error(d->b);
    if (kiln_base64_decode(text, bytes, &len) < 0)
        return kiln_json_fail(&d->r, KILN_E_MALFORMED, "not base64");
    ((struct kiln_profile *)record)->payload = (struct kiln_str){bytes, len};
    return 0;
}

#define PROFILE(name, kind, member) OJ_FIELD(struct kiln_profile, name, kind, member)

static const struct oj_field profile_fields[] = {
    OJ_CALL("sampleType", OJ_READ, read_sample_type),
    OJ_CALL("samples", OJ_EACH, read_sample),
    PROFILE("timeUnixNano", OJ_U64, time_ns),
    PROFILE("durationNano", OJ_U64, duration_ns),
    OJ_CALL("periodType", OJ_READ, read_period_type),
    PROFILE("period", OJ_I64, period),
    OJ_CALL("profileId", OJ_READ, read_profile_id),
    PROFILE("droppedAttributesCount", OJ_U32, dropped_attrs),
    PROFILE("originalPayloadFormat", OJ_TEXT, payload_format),
    OJ_CALL("originalPayload", OJ_READ, read_payload),
    PROFILE("attributeIndices", OJ_SET, attrs),
    OJ_CALL("sample", OJ_EACH, read_sample), /* 1.8 */
    PROFILE("timeNanos", OJ_U64, time_ns),
    PROFILE("durationNanos", OJ_U64, duration_ns),
    OJ_LIST("locationIndices", OJ_OLD, OJ_TABLES),
    OJ_LIST("stringTable", OJ_OLD, OJ_TABLES),
    OJ_END,
};

static int read_profile(struct oj_decoder *d, __attribute__((unused)) void *scope)
{
    struct kiln_profile profile = {0}, *built;
    int r;

    d->profile = kiln_builder_add_profile(d->b, &profile);
    r = kiln_builder_error(d->b);
    if (r == 0)
        r = oj_object(d, profile_fields, &profile);
    if (r < 0)
        return r;
    built = kiln_builder_profile(d->b, d->profile);
    profile.first_sample = built->first_sample;
    profile.n_samples = built->n_samples;
    *built = profile;
    return 0;
}

/* ---- scopes ---- */

static int read_scope(struct oj_decoder *d, void *record)
{
    static const struct oj_field fields[] = {
        OJ_FIELD(struct kiln_scope, "name", OJ_TEXT, name),
        OJ_FIELD(struct kiln_scope, "version", OJ_TEXT, version),
        OJ_CALL("attributes", OJ_EACH, oj_pair),
        OJ_FIELD(struct kiln_scope, "droppedAttributesCount", OJ_U32, dropped_attrs),
        OJ_END,
    };
    struct kiln_scope *scope = record;
    uint32_t first = d->n_nest;
    int r = oj_object(d, fields, scope);

    return r < 0 ? r : oj_take_set(d, first, &scope->attrs);
}

static int read_scope_profiles(struct oj_decoder *d, __attribute__((unused)) void *resource)
{
    static const struct oj_field fields[] = {
        OJ_CALL("scope", OJ_READ, read_scope),
        OJ_CALL("profiles", OJ_EACH, read_profile),
        OJ_FIELD(struct kiln_scope, "schemaUrl", OJ_TEXT, schema_url),
        OJ_END,
    };
    struct kiln_scope scope = {0}, *built;
    uint32_t index = kiln_builder_add_scope(d->b, &scope);
    int r = kiln_builder_error(d->b);

    if (r == 0)
        r = oj_object(d, fields, &scope);
    if (r < 0)
        return r;
    built = kiln_builder_scope(d->b, index);
    scope.first_profile = built->first_profile;
    scope.n_profiles = built->n_profiles;
    *built = scope;
    return 0;
}

/* ---- resources ---- */

struct entity {
    uint32_t schema_url, type;
};

static int read_id_key(struct oj_decoder *d, __attribute__((unused)) void *record)
{
    struct kiln_str text;
    int r = kiln_json_string(&d->r, &text);

    if (r == 0)
        r = OJ_ROOM(d, ids);
    if (r == 0)
        d->ids[d->n_ids++] = kiln_builder_string(d->b, text);
    return r;
}

static int read_description_key(struct oj_decoder *d, __attribute__((unused)) void *record)
{
    struct kiln_str text;
    int r = kiln_json_string(&d->r, &text);

    if (r == 0)
        r = OJ_ROOM(d, keys);
    if (r == 0)
        d->keys[d->n_keys++] = kiln_builder_string(d->b, text);
    return r;
}

static int read_entity(struct oj_decoder *d, __attribute__((unused)) void *record)
{
    static const struct oj_field fields[] = {
        OJ_FIELD(struct entity, "schemaUrl", OJ_TEXT, schema_url),
        OJ_FIELD(struct entity, "type", OJ_TEXT, type),
        OJ_CALL("idKeys", OJ_EACH, read_id_key),
        OJ_CALL("descriptionKeys", OJ_EACH, read_description_key),
        OJ_END,
    };
    struct entity entity = {0};
    int r;

    d->n_ids = 0;
    d->n_keys = 0;
    r = oj_object(d, fields, &entity);
    if (r == 0)
        kiln_builder_add_entity(d->b, entity.schema_url, entity.type, d->ids, d->n_ids, d->keys,
                                d->n_keys);
    return r;
}

static int read_resource(struct oj_decoder *d, void *record)
{
    static const struct oj_field fields[] = {
        OJ_CALL("attributes", OJ_EACH, oj_pair),
        OJ_FIELD(struct kiln_resource, "droppedAttributesCount", OJ_U32, dropped_attrs),
        OJ_CALL("entityRefs", OJ_EACH, read_entity),
        OJ_END,
    };
    struct kiln_resource *resource = record;
    uint32_t first = d->n_nest;
    int r = oj_object(d, fields, resource);

    return r < 0 ? r : oj_take_set(d, first, &resource->attrs);
}

int oj_resource_profiles(struct oj_decoder *d, __attribute__((unused)) void *unused)
{
    static const struct oj_field fields[] = {
        OJ_CALL("resource", OJ_READ, read_resource),
        OJ_CALL("scopeProfiles", OJ_EACH, read_scope_profiles),
        OJ_FIELD(struct kiln_resource, "schemaUrl", OJ_TEXT, schema_url),
        OJ_END,
    };
    struct kiln_resource resource = {0}, *built;
    uint32_t index = kiln_builder_add_resource(d->b, &resource);
    int r = kiln_builder_error(d->b);

    if (r == 0)
        r = oj_object(d, fields, &resource);
    if (r < 0)
        return r;
    built = kiln_builder_resource(d->b, index);
    built->attrs = resource.attrs;
    built->dropped_attrs = resource.dropped_attrs;
    built->schema_url = resource.schema_url;
    return 0;
}
