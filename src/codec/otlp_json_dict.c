/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of the dictionary.  They may stand in any order in the text, so they are visited by
 * position, each after those it refers to.  Entries are interned by value: an entry 0 that is not
 * the zero value is used as it is.
 */
#include "base/bytetext.h"
#include "codec/otlp_json_int.h"

const char *const oj_table_names[OJ_TABLES] = {
    [OJ_STRINGS] = "stringTable",     [OJ_ATTRS] = "attributeTable",
    [OJ_MAPPINGS] = "mappingTable",   [OJ_FUNCTIONS] = "functionTable",
    [OJ_LOCATIONS] = "locationTable", [OJ_LINKS] = "linkTable",
    [OJ_STACKS] = "stackTable",
};

static int read_string(struct oj_decoder *d, uint32_t *ret)
{
    struct kiln_str text;
    int r = kiln_json_string(&d->r, &text);

    if (r == 0)
        *ret = kiln_builder_string(d->b, text);
    return r;
}

struct attr_entry {
    struct kiln_attr attr;
    uint32_t inline_key;
};

static int attr_value(struct oj_decoder *d, void *record)
{
    return oj_value(d, &((struct attr_entry *)record)->attr.value);
}

static int read_attr(struct oj_decoder *d, uint32_t *ret)
{
    static const struct oj_field fields[] = {
        OJ_REF(struct attr_entry, "keyStrindex", attr.key, OJ_STRINGS),
        OJ_CALL("value", OJ_READ, attr_value),
        OJ_REF(struct attr_entry, "unitStrindex", attr.unit, OJ_STRINGS),
        OJ_FIELD(struct attr_entry, "key", OJ_TEXT, inline_key),
        OJ_END,
    };
    struct attr_entry e = {0};
    int r = oj_object(d, fields, &e);

    if (r == 0)
        *ret = kiln_builder_attr(d->b, e.inline_key ? e.inline_key : e.attr.key, e.attr.value,
                                 e.attr.unit);
    return r;
}

static int read_mapping(struct oj_decoder *d, uint32_t *ret)
{
    static const struct oj_field fields[] = {
        OJ_FIELD(struct kiln_mapping, "memoryStart", OJ_U64, start),
        OJ_FIELD(struct kiln_mapping, "memoryLimit", OJ_U64, limit),
        OJ_FIELD(struct kiln_mapping, "fileOffset", OJ_U64, offset),
        OJ_REF(struct kiln_mapping, "filenameStrindex", filename, OJ_STRINGS),
        OJ_FIELD(struct kiln_mapping, "attributeIndices", OJ_SET, attrs),
        OJ_END,
    };
    struct kiln_mapping mapping = {0};
    int r = oj_object(d, fields, &mapping);

    if (r == 0)
        *ret = kiln_builder_mapping(d->b, &mapping);
    return r;
}

static int read_function(struct oj_decoder *d, uint32_t *ret)
{
    static const struct oj_field fields[] = {
        OJ_REF(struct kiln_function, "nameStrindex", name, OJ_STRINGS),
        OJ_REF(struct kiln_function, "systemNameStrindex", system_name, OJ_STRINGS),
        OJ_REF(struct kiln_function, "filenameStrindex", filename, OJ_STRINGS),
        OJ_FIELD(struct kiln_function, "startLine", OJ_I64, start_line),
        OJ_END,
    };
    struct kiln_function function = {0};
    int r = oj_object(d, fields, &function);

    if (r == 0)
        *ret = kiln_builder_function(d->b, &function);
    return r;
}

static int read_line(struct oj_decoder *d, __attribute__((unused)) void *record)
{
    static const struct oj_field fields[] = {
        OJ_REF(struct kiln_line, "functionIndex", function, OJ_FUNCTIONS),
        OJ_FIELD(struct kiln_line, "line", OJ_I64, line),
        OJ_FIELD(struct kiln_line, "column", OJ_I64, column),
        OJ_END,
    };
    struct kiln_line line = {0};
    int r = oj_object(d, fields, &line);

    if (r == 0)
        r = OJ_ROOM(d, lines);
    if (r == 0)
        d->lines[d->n_lines++] = line;
    return r;
}

static int read_location(struct oj_decoder *d, uint32_t *ret)
{
    static const struct oj_field fields[] = {
        OJ_REF(struct kiln_location, "mappingIndex", mapping, OJ_MAPPINGS),
        OJ_FIELD(struct kiln_location, "address", OJ_U64, address),
        OJ_CALL("lines", OJ_EACH, read_line),
        OJ_FIELD(struct kiln_location, "attributeIndices", OJ_SET, attrs),
        OJ_CALL("line", OJ_EACH, read_line), /* 1.8 */
        OJ_END,
    };
    struct kiln_location location = {0};
    int r;

    d->n_lines = 0;
    r = oj_object(d, fields, &location);
    if (r == 0)
        *ret = kiln_builder_location(d->b, &location, d->lines, d->n_lines);
    return r;
}

/* An id of `n` bytes in hexadecimal; an empty one is all zeros. */
static int read_id(struct oj_decoder *d, uint8_t *ret, size_t n)
{
    struct kiln_str text;
    int r = kiln_json_string(&d->r, &text);

    if (r < 0 || text.len == 0)
        return r;
    if (kiln_hex_decode(text, ret, n) < 0)
        return kiln_json_fail(&d->r, KILN_E_MALFORMED, "not %zu hexadecimal digits", 2 * n);
    return 0;
}

static int read_trace_id(struct oj_decoder *d, void *record)
{
    return read_id(d, ((struct kiln_link *)record)->trace_id, 16);
}

static int read_span_id(struct oj_decoder *d, void *record)
{
    return read_id(d, ((struct kiln_link *)record)->span_id, 8);
}

static int read_link(struct oj_decoder *d, uint32_t *ret)
{
    static const struct oj_field fields[] = {
        OJ_CALL("traceId", OJ_READ, read_trace_id),
        OJ_CALL("spanId", OJ_READ, read_span_id),
        OJ_END,
    };
    struct kiln_link link = {0};
    int r = oj_object(d, fields, &link);

    if (r == 0)
        *ret = kiln_builder_link(d->b, &link);
    return r;
}

static int read_stack(struct oj_decoder *d, uint32_t *ret)
{
    static const struct oj_field fields[] = {
        OJ_LIST("locationIndices", OJ_IDS, OJ_LOCATIONS),
        OJ_END,
    };
    int r;

    d->n_ids = 0;
    r = oj_object(d, fields, NULL);
    if (r == 0 && d->n_ids > kiln_builder_limits(d->b)->stack_depth)
        r = kiln_json_fail(&d->r, KILN_E_LIMIT, "a stack of %u locations", d->n_ids);
    if (r == 0)
        *ret = kiln_builder_stack(d->b, d->ids, d->n_ids);
    return r;
}

static int (*const entry_readers[OJ_TABLES])(struct oj_decoder *d, uint32_t *ret) = {
    [OJ_STRINGS] = read_string,     [OJ_ATTRS] = read_attr,         [OJ_MAPPINGS] = read_mapping,
    [OJ_FUNCTIONS] = read_function, [OJ_LOCATIONS] = read_location, [OJ_LINKS] = read_link,
    [OJ_STACKS] = read_stack,
};

static int read_entry(struct oj_decoder *d, enum oj_table table)
{
    struct oj_map *map = &d->maps[table];
    uint32_t entry = 0;
    int r = kiln_json_null(&d->r);

    if (r == 0)
        r = entry_readers[table](d, &entry);
    if (r >= 0)
        r = kiln_builder_error(d->b);
    if (r == 0)
        r = kiln_grow(&d->budget, (void **)&map->to, &map->cap, (uint64_t)map->n + 1,
                      sizeof(*map->to), INT32_MAX);
    if (r == 0)
        map->to[map->n++] = entry;
    return r;
}

static int read_table(struct oj_decoder *d, enum oj_table table)
{
    int r = kiln_json_array(&d->r);

    while (r == 0 && (r = kiln_json_element(&d->r)) > 0) {
        r = read_entry(d, table);
        if (r < 0) {
            kiln_err_within(d->err, "dictionary.%s[%u]", oj_table_names[table], d->maps[table].n);
            return r;
        }
    }
    if (r < 0)
        kiln_err_within(d->err, "dictionary.%s", oj_table_names[table]);
    return r;
}

int oj_tables(struct oj_decoder *d, const size_t *positions)
{
    int r = 0;

    for (enum oj_table t = 0; t < OJ_TABLES; t++)
        d->maps[t].n = 0;
    for (enum oj_table t = 0; t < OJ_TABLES && r == 0; t++) {
        if (positions[t] == 0)
            continue;
        kiln_json_seek(&d->r, positions[t]);
        r = read_table(d, t);
    }
    return r;
}
