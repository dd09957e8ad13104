/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a batch as ProfilesData of revision 1.10, from the last byte to the first (see
 * codec/pb.h): that is why every function here puts the last field first.
 */
#include "base/mem.h"
#include "codec/otlp_order.h"
#include "codec/otlp_tables.h"
#include "codec/pb.h"

struct encoder {
    const struct kiln_batch *batch;
    const struct kiln_dict *dict;
    struct otlp_tables tables;
    struct otlp_order order;
    struct kiln_pb_out w;
    struct kiln_joints joints; /* from the last to the first, as what is behind each */
    bool string_refs, dense;
};

static uint32_t wire_string(const struct encoder *e, uint32_t string)
{
    return e->tables.strings[string];
}

/* ---- attribute values ---- */

static void put_value(struct encoder *e, struct kiln_value value);

static void put_pair(struct encoder *e, uint32_t field, const struct kiln_attr *attr)
{
    size_t mark = kiln_pb_mark(&e->w);

    if (e->string_refs)
        kiln_pb_put_number(&e->w, 3, wire_string(e, attr->key));
    if (attr->value.kind != KILN_VALUE_EMPTY) {
        size_t value = kiln_pb_mark(&e->w);

        put_value(e, attr->value);
        kiln_pb_put_message(&e->w, 2, value);
    }
    if (!e->string_refs)
        kiln_pb_put_bytes(&e->w, 1, e->dict->strings[attr->key]);
    kiln_pb_put_message(&e->w, field, mark);
}

static void put_children(struct encoder *e, struct kiln_value value)
{
    const struct kiln_attr *children = value.n ? &e->dict->nested[value.first] : NULL;
    size_t mark = kiln_pb_mark(&e->w);

    for (uint32_t i = value.n; i-- > 0;) {
        size_t item = kiln_pb_mark(&e->w);

        if (value.kind == KILN_VALUE_MAP) {
            put_pair(e, 1, &children[i]);
        } else {
            put_value(e, children[i].value);
            kiln_pb_put_message(&e->w, 1, item);
        }
    }
    kiln_pb_put_message(&e->w, value.kind == KILN_VALUE_MAP ? 6 : 5, mark);
}

/* The fields of an AnyValue: its one member, also where that is a zero. */
static void put_value(struct encoder *e, struct kiln_value value)
{
    switch (value.kind) {
    case KILN_VALUE_STRING:
        if (e->string_refs) {
            kiln_pb_raw_varint(&e->w, wire_string(e, (uint32_t)value.str));
            kiln_pb_raw_varint(&e->w, KILN_PB_VARINT(8u));
        } else {
            kiln_pb_put_element(&e->w, 1, e->dict->strings[value.str]);
        }
        break;
    case KILN_VALUE_BOOL:
    case KILN_VALUE_INT:
        kiln_pb_raw_varint(&e->w, value.bits);
        kiln_pb_raw_varint(&e->w, KILN_PB_VARINT(value.kind == KILN_VALUE_BOOL ? 2u : 3u));
        break;
    case KILN_VALUE_DOUBLE:
        kiln_pb_raw_fixed64(&e->w, value.bits);
        kiln_pb_raw_varint(&e->w, KILN_PB_FIXED64(4u));
        break;
    case KILN_VALUE_BYTES:
        kiln_pb_put_element(&e->w, 7, e->dict->strings[value.str]);
        break;
    case KILN_VALUE_ARRAY:
    case KILN_VALUE_MAP:
        put_children(e, value);
        break;
    default:
        break;
    }
}

/* The attributes of a resource or scope, each as a KeyValue in `field`. */
static int put_inline_attrs(struct encoder *e, uint32_t field, uint32_t set)
{
    const struct kiln_attr **sorted;
    uint32_t n;
    int r = otlp_sorted_attrs(e->batch, set, &sorted, &n);

    if (r < 0)
        return r;
    while (n-- > 0)
        put_pair(e, field, sorted[n]);
    kiln_free(sorted);
    return 0;
}

/* A packed field of the attributes in a set. */
static void put_set(struct encoder *e, uint32_t field, uint32_t set)
{
    struct kiln_range range = e->dict->sets[set];
    size_t mark = kiln_pb_mark(&e->w);

    if (range.n == 0)
        return;
    for (uint32_t i = range.n; i-- > 0;)
        kiln_pb_raw_varint(&e->w, e->tables.attrs[e->dict->members[range.first + i]]);
    kiln_pb_put_message(&e->w, field, mark);
}

/* ---- dictionary, table by table from the last to the first ---- */

static void put_stacks(struct encoder *e)
{
    for (uint32_t i = e->dict->n_stacks; i-- > 0;) {
        struct kiln_range stack = e->dict->stacks[otlp_at(e->order.stacks, i)];
        size_t mark = kiln_pb_mark(&e->w), packed = mark;

        kiln_pb_raw_varints(&e->w, e->dict->frames + stack.first, stack.n);
        if (stack.n)
            kiln_pb_put_message(&e->w, 1, packed);
        kiln_pb_put_message(&e->w, 7, mark);
    }
}

static void put_attr_table(struct encoder *e)
{
    for (uint32_t i = e->dict->n_attrs; i-- > 0;) {
        const struct kiln_attr *attr = &e->dict->attrs[i];
        size_t mark = kiln_pb_mark(&e->w);

        if (e->tables.attrs[i] == OTLP_UNUSED)
            continue;
        kiln_pb_put_number(&e->w, 3, wire_string(e, attr->unit));
        if (attr->value.kind != KILN_VALUE_EMPTY) {
            size_t value = kiln_pb_mark(&e->w);

            put_value(e, attr->value);
            kiln_pb_put_message(&e->w, 2, value);
        }
        kiln_pb_put_number(&e->w, 1, wire_string(e, attr->key));
        kiln_pb_put_message(&e->w, 6, mark);
    }
}

/* Those whose wire indexes are below `limit`, and not below `first`. */
static void put_some_strings(struct encoder *e, uint32_t first, uint32_t limit)
{
    for (uint32_t i = e->dict->n_strings; first < limit && i-- > 0;) {
        if (wire_string(e, i) >= first && wire_string(e, i) < limit)
            kiln_pb_put_element(&e->w, 5, e->dict->strings[i]);
    }
}

static void put_strings(struct encoder *e)
{
    uint32_t limit = e->tables.n_strings;

    for (uint32_t kind = OTLP_STRING_KINDS; kind-- > 0;) {
        put_some_strings(e, e->tables.first[kind], limit);
        limit = e->tables.first[kind];
    }
}

static void put_links(struct encoder *e)
{
    for (uint32_t i = e->dict->n_links; i-- > 0;) {
        const struct kiln_link *link = &e->dict->links[i];
        size_t mark = kiln_pb_mark(&e->w);

        if (i > 0) {
            kiln_pb_put_bytes(&e->w, 2, (struct kiln_str){(const char *)link->span_id, 8});
            kiln_pb_put_bytes(&e->w, 1, (struct kiln_str){(const char *)link->trace_id, 16});
        }
        kiln_pb_put_message(&e->w, 4, mark);
    }
}

static void put_functions(struct encoder *e)
{
    for (uint32_t i = e->dict->n_functions; i-- > 0;) {
        const struct kiln_function *function = &e->dict->functions[i];
        size_t mark = kiln_pb_mark(&e->w);

        kiln_pb_put_number(&e->w, 4, (uint64_t)function->start_line);
        kiln_pb_put_number(&e->w, 3, wire_string(e, function->filename));
        kiln_pb_put_number(&e->w, 2, wire_string(e, function->system_name));
        kiln_pb_put_number(&e->w, 1, wire_string(e, function->name));
        kiln_pb_put_message(&e->w, 3, mark);
    }
}

static void put_lines(struct encoder *e, const struct kiln_location *location)
{
    for (uint32_t i = location->n; i-- > 0;) {
        const struct kiln_line *line = &e->dict->lines[location->first + i];
        size_t mark = kiln_pb_mark(&e->w);

        kiln_pb_put_number(&e->w, 3, (uint64_t)line->column);
        kiln_pb_put_number(&e->w, 2, (uint64_t)line->line);
        kiln_pb_put_number(&e->w, 1, line->function);
        kiln_pb_put_message(&e->w, 3, mark);
    }
}

static void put_locations(struct encoder *e)
{
    for (uint32_t i = e->dict->n_locations; i-- > 0;) {
        const struct kiln_location *location = &e->dict->locations[i];
        size_t mark = kiln_pb_mark(&e->w);

        put_set(e, 4, location->attrs);
        put_lines(e, location);
        kiln_pb_put_number(&e->w, 2, location->address);
        kiln_pb_put_number(&e->w, 1, location->mapping);
        kiln_pb_put_message(&e->w, 2, mark);
    }
}

static void put_mappings(struct encoder *e)
{
    for (uint32_t i = e->dict->n_mappings; i-- > 0;) {
        const struct kiln_mapping *mapping = &e->dict->mappings[i];
        size_t mark = kiln_pb_mark(&e->w);

        put_set(e, 5, mapping->attrs);
        kiln_pb_put_number(&e->w, 4, wire_string(e, mapping->filename));
        kiln_pb_put_number(&e->w, 3, mapping->offset);
        kiln_pb_put_number(&e->w, 2, mapping->limit);
        kiln_pb_put_number(&e->w, 1, mapping->start);
        kiln_pb_put_message(&e->w, 1, mark);
    }
}

static void put_texts(struct encoder *e)
{
    put_attr_table(e);
    put_strings(e);
}

static void add_joint(struct encoder *e)
{
    e->joints.at[e->joints.n++] = kiln_pb_mark(&e->w);
}

/* Tables stand in the order of their numbers; where it is to be dense, all texts before them. */
static void put_dictionary(struct encoder *e)
{
    size_t mark = kiln_pb_mark(&e->w);

    put_stacks(e);
    add_joint(e);
    if (!e->dense)
        put_texts(e);
    put_links(e);
    put_functions(e);
    put_locations(e);
    put_mappings(e);
    add_joint(e);
    if (e->dense)
        put_texts(e);
    kiln_pb_put_message(&e->w, 2, mark);
    add_joint(e);
}

/* ---- profiles ---- */

static void put_sample(struct encoder *e, const struct kiln_sample *sample)
{
    const int64_t *values = kiln_sample_values(e->batch, sample);
    const uint64_t *times = kiln_sample_times(e->batch, sample);
    size_t mark = kiln_pb_mark(&e->w), packed = mark;

    if (times && sample->n) {
        kiln_pb_raw_bytes(&e->w, times, sample->n * sizeof(*times));
        kiln_pb_put_message(&e->w, 5, packed);
    }
    packed = kiln_pb_mark(&e->w);
    if (values && sample->n) {
        for (uint32_t i = sample->n; i-- > 0;)
            kiln_pb_raw_varint(&e->w, (uint64_t)values[i]);
        kiln_pb_put_message(&e->w, 4, packed);
    }
    kiln_pb_put_number(&e->w, 3, sample->link);
    put_set(e, 2, sample->attrs);
    kiln_pb_put_number(&e->w, 1, otlp_at(e->order.places, sample->stack));
    kiln_pb_put_message(&e->w, 2, mark);
}

static void put_value_type(struct encoder *e, uint32_t field, struct kiln_value_type type)
{
    size_t mark = kiln_pb_mark(&e->w);

    if (!type.type && !type.unit)
        return;
    kiln_pb_put_number(&e->w, 2, wire_string(e, type.unit));
    kiln_pb_put_number(&e->w, 1, wire_string(e, type.type));
    kiln_pb_put_message(&e->w, field, mark);
}

static void put_profile(struct encoder *e, const struct kiln_profile *profile)
{
    static const uint8_t no_id[16];
    size_t mark = kiln_pb_mark(&e->w);

    put_set(e, 11, profile->attrs);
    kiln_pb_put_bytes(&e->w, 10, profile->payload);
    kiln_pb_put_bytes(&e->w, 9, e->dict->strings[profile->payload_format]);
    kiln_pb_put_number(&e->w, 8, profile->dropped_attrs);
    if (memcmp(profile->id, no_id, sizeof(no_id)) != 0)
        kiln_pb_put_bytes(&e->w, 7, (struct kiln_str){(const char *)profile->id, sizeof(no_id)});
    kiln_pb_put_number(&e->w, 6, (uint64_t)profile->period);
    put_value_type(e, 5, profile->period_type);
    kiln_pb_put_number(&e->w, 4, profile->duration_ns);
    kiln_pb_put_fixed64(&e->w, 3, profile->time_ns);
    for (uint32_t i = profile->n_samples; i-- > 0;)
        put_sample(e, &e->batch->samples[otlp_at(e->order.samples, profile->first_sample + i)]);
    put_value_type(e, 1, profile->sample_type);
    kiln_pb_put_message(&e->w, 2, mark);
}

static int put_scope(struct encoder *e, const struct kiln_scope *scope)
{
    size_t mark = kiln_pb_mark(&e->w), head;
    int r;

    kiln_pb_put_bytes(&e->w, 3, e->dict->strings[scope->schema_url]);
    for (uint32_t i = scope->n_profiles; i-- > 0;)
        put_profile(e, &e->batch->profiles[scope->first_profile + i]);
    head = kiln_pb_mark(&e->w);
    kiln_pb_put_number(&e->w, 4, scope->dropped_attrs);
    r = put_inline_attrs(e, 3, scope->attrs);
    kiln_pb_put_bytes(&e->w, 2, e->dict->strings[scope->version]);
    kiln_pb_put_bytes(&e->w, 1, e->dict->strings[scope->name]);
    if (kiln_pb_mark(&e->w) != head)
        kiln_pb_put_message(&e->w, 1, head);
    kiln_pb_put_message(&e->w, 2, mark);
    return r;
}

static void put_entity(struct encoder *e, const struct kiln_entity *entity)
{
    const uint32_t *keys = e->batch->entity_keys + entity->first_key;
    size_t mark = kiln_pb_mark(&e->w);

    for (uint32_t i = entity->n_id_keys + entity->n_description_keys; i-- > 0;)
        kiln_pb_put_element(&e->w, i < entity->n_id_keys ? 3 : 4, e->dict->strings[keys[i]]);
    kiln_pb_put_bytes(&e->w, 2, e->dict->strings[entity->type]);
    kiln_pb_put_bytes(&e->w, 1, e->dict->strings[entity->schema_url]);
    kiln_pb_put_message(&e->w, 3, mark);
}

static int put_resource(struct encoder *e, const struct kiln_resource *resource)
{
    size_t mark = kiln_pb_mark(&e->w), head;
    int r = 0;

    kiln_pb_put_bytes(&e->w, 3, e->dict->strings[resource->schema_url]);
    for (uint32_t i = resource->n_scopes; r == 0 && i-- > 0;)
        r = put_scope(e, &e->batch->scopes[resource->first_scope + i]);
    head = kiln_pb_mark(&e->w);
    for (uint32_t i = resource->n_entities; i-- > 0;)
        put_entity(e, &e->batch->entities[resource->first_entity + i]);
    kiln_pb_put_number(&e->w, 2, resource->dropped_attrs);
    if (r == 0)
        r = put_inline_attrs(e, 1, resource->attrs);
    if (kiln_pb_mark(&e->w) != head)
        kiln_pb_put_message(&e->w, 1, head);
    kiln_pb_put_message(&e->w, 1, mark);
    return r;
}

static int encode(struct encoder *e, struct kiln_buf *out)
{
    int r = 0;

    put_dictionary(e);
    for (uint32_t i = e->batch->n_resources; r == 0 && i-- > 0;)
        r = put_resource(e, &e->batch->resources[otlp_at(e->order.resources, i)]);
    return r < 0 ? r : kiln_pb_out_flush(&e->w, out);
}

static struct kiln_joints joints_of(const struct encoder *e)
{
    struct kiln_joints joints = {.n = e->joints.n};

    for (uint32_t i = 0; i < joints.n; i++)
        joints.at[i] = kiln_pb_mark(&e->w) - e->joints.at[joints.n - 1 - i];
    return joints;
}

int kiln_otlp_encode(const struct kiln_batch *batch, const struct kiln_otlp_encode_opts *opts,
                     struct kiln_buf *out, struct kiln_err *err)
{
    struct encoder e = {
        .batch = batch,
        .dict = &batch->dict,
        .string_refs = opts && opts->string_refs,
        .dense = opts && opts->dense,
    };
    int r = otlp_tables_init(&e.tables, batch, opts);

    if (r == 0 && e.dense)
        r = otlp_order_init(&e.order, batch);
    if (r == 0) {
        kiln_pb_out_init(&e.w, kiln_batch_bytes(batch) / 2, out->max);
        r = encode(&e, out);
        if (r == 0 && opts && opts->ret_joints)
            *opts->ret_joints = joints_of(&e);
        kiln_pb_out_done(&e.w);
    }
    otlp_order_done(&e.order);
    otlp_tables_done(&e.tables);
    if (r < 0)
        kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    return r;
}
