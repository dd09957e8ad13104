/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a batch as one document of ProfilesData, on one line.  Tables and indexes are those of the
 * protobuf encoder (codec/otlp_tables.h).
 */
#include "base/bytetext.h"
#include "base/json.h"
#include "base/mem.h"
#include "codec/otlp_json.h"
#include "codec/otlp_tables.h"

struct encoder {
    const struct kiln_batch *batch;
    const struct kiln_dict *dict;
    struct otlp_tables tables;
    struct kiln_json_out w;
};

/* ---- members, left out where they are the default ---- */

static void put_u32(struct encoder *e, const char *name, uint32_t value)
{
    if (value == 0)
        return;
    kiln_json_put_name(&e->w, name);
    kiln_json_put_u64(&e->w, value);
}

static void put_u64(struct encoder *e, const char *name, uint64_t value)
{
    if (value == 0)
        return;
    kiln_json_put_name(&e->w, name);
    kiln_json_put_u64_text(&e->w, value);
}

static void put_i64(struct encoder *e, const char *name, int64_t value)
{
    if (value == 0)
        return;
    kiln_json_put_name(&e->w, name);
    kiln_json_put_i64_text(&e->w, value);
}

static void put_text(struct encoder *e, const char *name, uint32_t string)
{
    if (string == 0)
        return;
    kiln_json_put_name(&e->w, name);
    kiln_json_put_str(&e->w, e->dict->strings[string]);
}

/* A string by its index in the string table. */
static void put_strindex(struct encoder *e, const char *name, uint32_t string)
{
    put_u32(e, name, e->tables.strings[string]);
}

static void put_hex(struct encoder *e, const char *name, const uint8_t *bytes, size_t n)
{
    kiln_json_put_name(&e->w, name);
    kiln_json_put_raw_begin(&e->w);
    kiln_buf_add_hex(e->w.buf, bytes, n);
    kiln_json_put_raw_end(&e->w);
}

static void put_base64(struct encoder *e, const char *name, struct kiln_str bytes)
{
    kiln_json_put_name(&e->w, name);
    kiln_json_put_raw_begin(&e->w);
    kiln_buf_add_base64(e->w.buf, bytes.ptr, bytes.len);
    kiln_json_put_raw_end(&e->w);
}

static void put_set(struct encoder *e, uint32_t set)
{
    struct kiln_range range = e->dict->sets[set];

    if (range.n == 0)
        return;
    kiln_json_put_name(&e->w, "attributeIndices");
    kiln_json_put_array(&e->w);
    for (uint32_t i = 0; i < range.n; i++)
        kiln_json_put_u64(&e->w, e->tables.attrs[e->dict->members[range.first + i]]);
    kiln_json_end_array(&e->w);
}

/* ---- attribute values ---- */

static void put_value(struct encoder *e, struct kiln_value value);

static void put_pair(struct encoder *e, const struct kiln_attr *attr)
{
    kiln_json_put_object(&e->w);
    put_text(e, "key", attr->key);
    if (attr->value.kind != KILN_VALUE_EMPTY) {
        kiln_json_put_name(&e->w, "value");
        put_value(e, attr->value);
    }
    kiln_json_end_object(&e->w);
}

static void put_children(struct encoder *e, struct kiln_value value)
{
    kiln_json_put_object(&e->w);
    kiln_json_put_name(&e->w, "values");
    kiln_json_put_array(&e->w);
    for (uint32_t i = 0; i < value.n; i++) {
        const struct kiln_attr *child = &e->dict->nested[value.first + i];

        if (value.kind == KILN_VALUE_MAP)
            put_pair(e, child);
        else
            put_value(e, child->value);
    }
    kiln_json_end_array(&e->w);
    kiln_json_end_object(&e->w);
}

/* The one member of an AnyValue, also where it is a zero. */
static void put_member(struct encoder *e, struct kiln_value value)
{
    static const char *const names[] = {
        [KILN_VALUE_STRING] = "stringValue", [KILN_VALUE_BOOL] = "boolValue",
        [KILN_VALUE_INT] = "intValue",       [KILN_VALUE_DOUBLE] = "doubleValue",
        [KILN_VALUE_ARRAY] = "arrayValue",   [KILN_VALUE_MAP] = "kvlistValue",
    };

    if (value.kind == KILN_VALUE_BYTES) {
        put_base64(e, "bytesValue", e->dict->strings[value.str]);
        return;
    }
    kiln_json_put_name(&e->w, names[value.kind]);
    if (value.kind == KILN_VALUE_STRING)
        kiln_json_put_str(&e->w, e->dict->strings[value.str]);
    else if (value.kind == KILN_VALUE_BOOL)
        kiln_json_put_bool(&e->w, value.flag != 0);
    else if (value.kind == KILN_VALUE_INT)
        kiln_json_put_i64_text(&e->w, value.i);
    else if (value.kind == KILN_VALUE_DOUBLE)
        kiln_json_put_double(&e->w, value.d);
    else
        put_children(e, value);
}

static void put_value(struct encoder *e, struct kiln_value value)
{
    kiln_json_put_object(&e->w);
    if (value.kind != KILN_VALUE_EMPTY)
        put_member(e, value);
    kiln_json_end_object(&e->w);
}

static int put_inline_attrs(struct encoder *e, uint32_t set)
{
    const struct kiln_attr **sorted;
    uint32_t n;
    int r = otlp_sorted_attrs(e->batch, set, &sorted, &n);

    if (r < 0 || n == 0)
        return r;
    kiln_json_put_name(&e->w, "attributes");
    kiln_json_put_array(&e->w);
    for (uint32_t i = 0; i < n; i++)
        put_pair(e, sorted[i]);
    kiln_json_end_array(&e->w);
    kiln_free(sorted);
    return 0;
}

/* ---- dictionary ---- */

static void put_mapping(struct encoder *e, uint32_t i)
{
    const struct kiln_mapping *mapping = &e->dict->mappings[i];

    put_u64(e, "memoryStart", mapping->start);
    put_u64(e, "memoryLimit", mapping->limit);
    put_u64(e, "fileOffset", mapping->offset);
    put_strindex(e, "filenameStrindex", mapping->filename);
    put_set(e, mapping->attrs);
}

static void put_lines(struct encoder *e, const struct kiln_location *location)
{
    if (location->n == 0)
        return;
    kiln_json_put_name(&e->w, "lines");
    kiln_json_put_array(&e->w);
    for (uint32_t i = 0; i < location->n; i++) {
        const struct kiln_line *line = &e->dict->lines[location->first + i];

        kiln_json_put_object(&e->w);
        put_u32(e, "functionIndex", line->function);
        put_i64(e, "line", line->line);
        put_i64(e, "column", line->column);
        kiln_json_end_object(&e->w);
    }
    kiln_json_end_array(&e->w);
}

static void put_location(struct encoder *e, uint32_t i)
{
    const struct kiln_location *location = &e->dict->locations[i];

    put_u32(e, "mappingIndex", location->mapping);
    put_u64(e, "address", location->address);
    put_lines(e, location);
    put_set(e, location->attrs);
}

static void put_function(struct encoder *e, uint32_t i)
{
    const struct kiln_function *function = &e->dict->functions[i];

    put_strindex(e, "nameStrindex", function->name);
    put_strindex(e, "systemNameStrindex", function->system_name);
    put_strindex(e, "filenameStrindex", function->filename);
    put_i64(e, "startLine", function->start_line);
}

static void put_link(struct encoder *e, uint32_t i)
{
    if (i == 0)
        return;
    put_hex(e, "traceId", e->dict->links[i].trace_id, 16);
    put_hex(e, "spanId", e->dict->links[i].span_id, 8);
}

static void put_attr(struct encoder *e, uint32_t i)
{
    const struct kiln_attr *attr = &e->dict->attrs[i];

    put_strindex(e, "keyStrindex", attr->key);
    if (attr->value.kind != KILN_VALUE_EMPTY) {
        kiln_json_put_name(&e->w, "value");
        put_value(e, attr->value);
    }
    put_strindex(e, "unitStrindex", attr->unit);
}

static void put_stack(struct encoder *e, uint32_t i)
{
    struct kiln_range stack = e->dict->stacks[i];

    if (stack.n == 0)
        return;
    kiln_json_put_name(&e->w, "locationIndices");
    kiln_json_put_array(&e->w);
    for (uint32_t k = 0; k < stack.n; k++)
        kiln_json_put_u64(&e->w, e->dict->frames[stack.first + k]);
    kiln_json_end_array(&e->w);
}

/* A table of objects.  `used`, where given, says which entries are written. */
static void put_table(struct encoder *e, const char *name,
                      void (*put)(struct encoder *e, uint32_t i), uint32_t n, const uint32_t *used)
{
    kiln_json_put_name(&e->w, name);
    kiln_json_put_array(&e->w);
    for (uint32_t i = 0; i < n; i++) {
        if (used && used[i] == OTLP_UNUSED)
            continue;
        kiln_json_put_object(&e->w);
        put(e, i);
        kiln_json_end_object(&e->w);
    }
    kiln_json_end_array(&e->w);
}

static void put_strings(struct encoder *e)
{
    kiln_json_put_name(&e->w, "stringTable");
    kiln_json_put_array(&e->w);
    for (uint32_t i = 0; i < e->dict->n_strings; i++) {
        if (e->tables.strings[i] != OTLP_UNUSED)
            kiln_json_put_str(&e->w, e->dict->strings[i]);
    }
    kiln_json_end_array(&e->w);
}

static void put_dictionary(struct encoder *e)
{
    const struct kiln_dict *d = e->dict;

    kiln_json_put_name(&e->w, "dictionary");
    kiln_json_put_object(&e->w);
    put_table(e, "mappingTable", put_mapping, d->n_mappings, NULL);
    put_table(e, "locationTable", put_location, d->n_locations, NULL);
    put_table(e, "functionTable", put_function, d->n_functions, NULL);
    put_table(e, "linkTable", put_link, d->n_links, NULL);
    put_strings(e);
    put_table(e, "attributeTable", put_attr, d->n_attrs, e->tables.attrs);
    put_table(e, "stackTable", put_stack, d->n_stacks, NULL);
    kiln_json_end_object(&e->w);
}

/* ---- profiles ---- */

static void put_observations(struct encoder *e, const struct kiln_sample *sample)
{
    const int64_t *values = kiln_sample_values(e->batch, sample);
    const uint64_t *times = kiln_sample_times(e->batch, sample);

    if (values && sample->n) {
        kiln_json_put_name(&e->w, "values");
        kiln_json_put_array(&e->w);
        for (uint32_t i = 0; i < sample->n; i++)
            kiln_json_put_i64_text(&e->w, values[i]);
        kiln_json_end_array(&e->w);
    }
    if (times && sample->n) {
        kiln_json_put_name(&e->w, "timestampsUnixNano");
        kiln_json_put_array(&e->w);
        for (uint32_t i = 0; i < sample->n; i++)
            kiln_json_put_u64_text(&e->w, times[i]);
        kiln_json_end_array(&e->w);
    }
}

static void put_samples(struct encoder *e, const struct kiln_profile *profile)
{
    if (profile->n_samples == 0)
        return;
    kiln_json_put_name(&e->w, "samples");
    kiln_json_put_array(&e->w);
    for (uint32_t i = 0; i < profile->n_samples; i++) {
        const struct kiln_sample *sample = &e->batch->samples[profile->first_sample + i];

        kiln_json_put_object(&e->w);
        put_u32(e, "stackIndex", sample->stack);
        put_set(e, sample->attrs);
        put_u32(e, "linkIndex", sample->link);
        put_observations(e, sample);
        kiln_json_end_object(&e->w);
    }
    kiln_json_end_array(&e->w);
}

static void put_type(struct encoder *e, const char *name, struct kiln_value_type type)
{
    if (!type.type && !type.unit)
        return;
    kiln_json_put_name(&e->w, name);
    kiln_json_put_object(&e->w);
    put_strindex(e, "typeStrindex", type.type);
    put_strindex(e, "unitStrindex", type.unit);
    kiln_json_end_object(&e->w);
}

static void put_profile(struct encoder *e, const struct kiln_profile *profile)
{
    static const uint8_t no_id[16];

    kiln_json_put_object(&e->w);
    put_type(e, "sampleType", profile->sample_type);
    put_samples(e, profile);
    put_u64(e, "timeUnixNano", profile->time_ns);
    put_u64(e, "durationNano", profile->duration_ns);
    put_type(e, "periodType", profile->period_type);
    put_i64(e, "period", profile->period);
    if (memcmp(profile->id, no_id, sizeof(no_id)) != 0)
        put_hex(e, "profileId", profile->id, sizeof(no_id));
    put_u32(e, "droppedAttributesCount", profile->dropped_attrs);
    put_text(e, "originalPayloadFormat", profile->payload_format);
    if (profile->payload.len)
        put_base64(e, "originalPayload", profile->payload);
    put_set(e, profile->attrs);
    kiln_json_end_object(&e->w);
}

/* Absent where it says nothing, as in protobuf. */
static int put_scope_head(struct encoder *e, const struct kiln_scope *scope)
{
    int r;

    if (!scope->name && !scope->version && !scope->attrs && !scope->dropped_attrs)
        return 0;
    kiln_json_put_name(&e->w, "scope");
    kiln_json_put_object(&e->w);
    put_text(e, "name", scope->name);
    put_text(e, "version", scope->version);
    r = put_inline_attrs(e, scope->attrs);
    put_u32(e, "droppedAttributesCount", scope->dropped_attrs);
    kiln_json_end_object(&e->w);
    return r;
}

static int put_scope(struct encoder *e, const struct kiln_scope *scope)
{
    int r;

    kiln_json_put_object(&e->w);
    r = put_scope_head(e, scope);
    kiln_json_put_name(&e->w, "profiles");
    kiln_json_put_array(&e->w);
    for (uint32_t i = 0; i < scope->n_profiles; i++)
        put_profile(e, &e->batch->profiles[scope->first_profile + i]);
    kiln_json_end_array(&e->w);
    put_text(e, "schemaUrl", scope->schema_url);
    kiln_json_end_object(&e->w);
    return r;
}

/* `n` keys of an entity, from `first` on. */
static void put_keys(struct encoder *e, const char *name, uint32_t first, uint32_t n)
{
    if (n == 0)
        return;
    kiln_json_put_name(&e->w, name);
    kiln_json_put_array(&e->w);
    for (uint32_t i = 0; i < n; i++)
        kiln_json_put_str(&e->w, e->dict->strings[e->batch->entity_keys[first + i]]);
    kiln_json_end_array(&e->w);
}

static void put_entities(struct encoder *e, const struct kiln_resource *resource)
{
    if (resource->n_entities == 0)
        return;
    kiln_json_put_name(&e->w, "entityRefs");
    kiln_json_put_array(&e->w);
    for (uint32_t i = 0; i < resource->n_entities; i++) {
        const struct kiln_entity *entity = &e->batch->entities[resource->first_entity + i];
        uint32_t first = entity->first_key;

        kiln_json_put_object(&e->w);
        put_text(e, "schemaUrl", entity->schema_url);
        put_text(e, "type", entity->type);
        put_keys(e, "idKeys", first, entity->n_id_keys);
        put_keys(e, "descriptionKeys", first + entity->n_id_keys, entity->n_description_keys);
        kiln_json_end_object(&e->w);
    }
    kiln_json_end_array(&e->w);
}

static int put_resource_head(struct encoder *e, const struct kiln_resource *resource)
{
    int r;

    if (!resource->attrs && !resource->dropped_attrs && !resource->n_entities)
        return 0;
    kiln_json_put_name(&e->w, "resource");
    kiln_json_put_object(&e->w);
    r = put_inline_attrs(e, resource->attrs);
    put_u32(e, "droppedAttributesCount", resource->dropped_attrs);
    put_entities(e, resource);
    kiln_json_end_object(&e->w);
    return r;
}

static int put_resource(struct encoder *e, const struct kiln_resource *resource)
{
    int r;

    kiln_json_put_object(&e->w);
    r = put_resource_head(e, resource);
    kiln_json_put_name(&e->w, "scopeProfiles");
    kiln_json_put_array(&e->w);
    for (uint32_t i = 0; r == 0 && i < resource->n_scopes; i++)
        r = put_scope(e, &e->batch->scopes[resource->first_scope + i]);
    kiln_json_end_array(&e->w);
    put_text(e, "schemaUrl", resource->schema_url);
    kiln_json_end_object(&e->w);
    return r;
}

static int encode(struct encoder *e)
{
    int r = 0;

    kiln_json_put_object(&e->w);
    kiln_json_put_name(&e->w, "resourceProfiles");
    kiln_json_put_array(&e->w);
    for (uint32_t i = 0; r == 0 && i < e->batch->n_resources; i++)
        r = put_resource(e, &e->batch->resources[i]);
    kiln_json_end_array(&e->w);
    put_dictionary(e);
    kiln_json_end_object(&e->w);
    kiln_buf_putc(e->w.buf, '\n');
    return r < 0 ? r : e->w.buf->error;
}

int kiln_otlp_json_encode(const struct kiln_batch *batch, struct kiln_buf *out,
                          struct kiln_err *err)
{
    struct encoder e = {.batch = batch, .dict = &batch->dict};
    int r = otlp_tables_init(&e.tables, batch, NULL);

    if (r == 0) {
        kiln_json_out_init(&e.w, out, 0);
        r = encode(&e);
        otlp_tables_done(&e.tables);
    }
    if (r < 0)
        kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    return r;
}
