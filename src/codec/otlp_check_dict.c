/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dictionary: every table is there and begins with its zero value, every index is inside, texts
 * are UTF-8, ids have their length, numbers make sense.
 */
#include <errno.h>
#include <stdio.h>

#include "base/hash.h"
#include "codec/otlp_check_int.h"
#include "core/intern.h"

static const char *const names[OTLP_TABLES] = {
    [OTLP_MAPPINGS] = "mapping_table",   [OTLP_LOCATIONS] = "location_table",
    [OTLP_FUNCTIONS] = "function_table", [OTLP_LINKS] = "link_table",
    [OTLP_STRINGS] = "string_table",     [OTLP_ATTRS] = "attribute_table",
    [OTLP_STACKS] = "stack_table",
};

/* ---- collecting ---- */

static void *take(struct checker *c, size_t count, size_t size)
{
    void *ptr = kiln_arena_alloc(&c->arena, count * size);

    if (!ptr) {
        c->error = KILN_E_LIMIT;
        return NULL;
    }
    return memset(ptr, 0, count * size);
}

static void collect_entries(struct checker *c, struct kiln_str dictionary)
{
    struct otlp_extent extents[OTLP_TABLES] = {0};
    int r = otlp_dictionary_look(dictionary, extents);

    check_wire(c, r, "dictionary");
    for (enum otlp_table t = OTLP_MAPPINGS; c->error == 0 && t < OTLP_TABLES; t++) {
        struct check_table *table = &c->tables[t];
        struct kiln_pb reader = {extents[t].from, extents[t].to};
        struct kiln_pb_field f;

        table->entries = take(c, extents[t].n, sizeof(*table->entries));
        table->used = take(c, extents[t].n, 1);
        while (c->error == 0 && table->n < extents[t].n && kiln_pb_next(&reader, &f) > 0) {
            if (f.tag == extents[t].tag)
                table->entries[table->n++] = f.bytes;
        }
    }
}

/* The first string of each text, so that keys are compared by text whatever their index. */
static void find_canon(struct checker *c)
{
    struct check_table *strings = &c->tables[OTLP_STRINGS];
    struct kiln_intern index = {0};
    int r = 0;

    c->canon = take(c, strings->n, sizeof(*c->canon));
    for (uint32_t i = 0; c->error == 0 && r == 0 && i < strings->n; i++) {
        uint64_t hash = kiln_hash(strings->entries[i].ptr, strings->entries[i].len);
        bool known = false;

        for (struct kiln_probe p = kiln_intern_probe(&index, hash);
             !known && kiln_intern_next(&index, &p);) {
            known = kiln_str_eq(strings->entries[p.entry], strings->entries[i]);
            c->canon[i] = p.entry;
        }
        if (known)
            continue;
        c->canon[i] = i;
        r = kiln_intern_add(&index, &c->budget, hash, i);
    }
    if (r < 0)
        c->error = r;
    kiln_intern_done(&index, &c->budget);
}

/* Keys of attributes: looked up before anything refers to them. */
static void find_attr_keys(struct checker *c)
{
    struct check_table *attrs = &c->tables[OTLP_ATTRS];

    c->attr_key = take(c, attrs->n, sizeof(*c->attr_key));
    c->seen_key = take(c, c->tables[OTLP_STRINGS].n, sizeof(*c->seen_key));
    for (uint32_t i = 0; c->error == 0 && i < attrs->n; i++) {
        struct kiln_pb r = kiln_pb_of(attrs->entries[i]);
        struct kiln_pb_field f;

        while (kiln_pb_next(&r, &f) > 0) {
            if (f.tag == KILN_PB_VARINT(1u) && f.number < c->tables[OTLP_STRINGS].n)
                c->attr_key[i] = c->canon[f.number];
        }
    }
}

/* ---- rules for whole tables ---- */

/* Every field of the message is zero or empty, or consists of zero bytes. */
static bool is_zero(struct kiln_str bytes)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    int n;

    while ((n = kiln_pb_next(&r, &f)) > 0) {
        if ((f.tag & 7) != 2 && f.number != 0)
            return false;
        for (size_t i = 0; (f.tag & 7) == 2 && i < f.bytes.len; i++) {
            if (f.bytes.ptr[i] != 0)
                return false;
        }
    }
    return n == 0;
}

static void check_zero_values(struct checker *c)
{
    for (enum otlp_table t = OTLP_MAPPINGS; t < OTLP_TABLES; t++) {
        char where[PATH_MAX_LEN];
        const struct check_table *table = &c->tables[t];
        bool zero;

        snprintf(where, sizeof(where), "dictionary.%s", names[t]);
        if (table->n == 0) {
            check_error(c, "zero-value", where, "the table is empty: it must hold its zero value");
            continue;
        }
        zero = t == OTLP_STRINGS ? table->entries[0].len == 0 : is_zero(table->entries[0]);
        snprintf(where, sizeof(where), "dictionary.%s[0]", names[t]);
        if (!zero)
            check_error(c, "zero-value", where, "the first entry must be the zero value");
    }
}

static void check_dupes_of(struct checker *c, enum otlp_table t)
{
    const struct check_table *table = &c->tables[t];
    struct kiln_intern index = {0};
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < table->n; i++) {
        uint64_t hash = kiln_hash(table->entries[i].ptr, table->entries[i].len);
        bool known = false;

        for (struct kiln_probe p = kiln_intern_probe(&index, hash);
             !known && kiln_intern_next(&index, &p);) {
            char where[PATH_MAX_LEN];

            known = kiln_str_eq(table->entries[p.entry], table->entries[i]);
            snprintf(where, sizeof(where), "dictionary.%s[%u]", names[t], i);
            if (known)
                check_error(c, "duplicate", where, "equals entry %u", p.entry);
        }
        if (!known)
            r = kiln_intern_add(&index, &c->budget, hash, i);
    }
    if (r < 0)
        c->error = r;
    kiln_intern_done(&index, &c->budget);
}

void check_orphans(struct checker *c)
{
    for (enum otlp_table t = OTLP_MAPPINGS; t < OTLP_TABLES; t++) {
        for (uint32_t i = 1; i < c->tables[t].n; i++) {
            char where[PATH_MAX_LEN];

            if (c->tables[t].used[i])
                continue;
            snprintf(where, sizeof(where), "dictionary.%s[%u]", names[t], i);
            check_error(c, "orphan", where, "nothing refers to it");
        }
    }
}

/* ---- rules for entries ---- */

static void check_mapping(struct checker *c, struct kiln_str bytes, uint32_t index,
                          const char *where)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    uint64_t start = 0, limit = 0;
    struct kiln_pb_field f;
    int n;

    check_attrs_begin(c);
    while ((n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_VARINT(1u))
            start = f.number;
        else if (f.tag == KILN_PB_VARINT(2u))
            limit = f.number;
        else if (f.tag == KILN_PB_VARINT(4u))
            check_index(c, OTLP_STRINGS, f.number, where, "filename_strindex");
        else if (f.tag >> 3 == 5)
            check_attrs(c, &f, where);
    }
    check_wire(c, n, where);
    if (!(start < limit) && (start || limit))
        check_error(c, "mapping-range", where, "memory_start %#llx is not below memory_limit %#llx",
                    (unsigned long long)start, (unsigned long long)limit);
    if (index && !c->has_build_id)
        check_warn(c, "build-id", where, "no process.executable.build_id.* attribute");
}

static void check_line(struct checker *c, struct kiln_str bytes, const char *where)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    int n;

    while ((n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_VARINT(1u))
            check_index(c, OTLP_FUNCTIONS, f.number, where, "lines.function_index");
        else if ((f.tag == KILN_PB_VARINT(2u) || f.tag == KILN_PB_VARINT(3u)) &&
                 (int64_t)f.number < 0)
            check_error(c, "negative", where, "a line or column is negative");
    }
    check_wire(c, n, where);
}

/* Start and limit of a mapping. */
static void mapping_range(const struct checker *c, uint64_t index, uint64_t *start, uint64_t *limit)
{
    struct kiln_pb r = kiln_pb_of(c->tables[OTLP_MAPPINGS].entries[index]);
    struct kiln_pb_field f;

    *start = *limit = 0;
    while (kiln_pb_next(&r, &f) > 0) {
        if (f.tag == KILN_PB_VARINT(1u))
            *start = f.number;
        else if (f.tag == KILN_PB_VARINT(2u))
            *limit = f.number;
    }
}

static void check_location(struct checker *c, struct kiln_str bytes, const char *where)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    uint64_t mapping = 0, address = 0, start, limit;
    struct kiln_pb_field f;
    int n;

    check_attrs_begin(c);
    while ((n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_VARINT(1u) &&
            check_index(c, OTLP_MAPPINGS, f.number, where, "mapping_index"))
            mapping = f.number;
        else if (f.tag == KILN_PB_VARINT(2u))
            address = f.number;
        else if (f.tag == KILN_PB_BYTES(3u))
            check_line(c, f.bytes, where);
        else if (f.tag >> 3 == 4)
            check_attrs(c, &f, where);
    }
    check_wire(c, n, where);
    if (mapping == 0)
        return;
    mapping_range(c, mapping, &start, &limit);
    if (limit && (address < start || address > limit))
        check_warn(c, "address-range", where, "address %#llx is outside its mapping",
                   (unsigned long long)address);
}

static void check_function(struct checker *c, struct kiln_str bytes, uint32_t index,
                           const char *where)
{
    static const char *const fields[] = {"", "name_strindex", "system_name_strindex",
                                         "filename_strindex"};
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    bool named = false;
    int n;

    while ((n = kiln_pb_next(&r, &f)) > 0) {
        if ((f.tag & 7) == 0 && f.tag >> 3 <= 3) {
            check_index(c, OTLP_STRINGS, f.number, where, fields[f.tag >> 3]);
            named |= f.number != 0;
        } else if (f.tag == KILN_PB_VARINT(4u) && (int64_t)f.number < 0) {
            check_error(c, "negative", where, "start_line is negative");
        }
    }
    check_wire(c, n, where);
    if (index && !named)
        check_error(c, "nameless", where, "has neither a name nor a file name");
}

static void check_link(struct checker *c, struct kiln_str bytes, uint32_t index, const char *where)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    size_t trace = 0, span = 0;
    struct kiln_pb_field f;
    int n;

    while ((n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_BYTES(1u))
            trace = f.bytes.len;
        else if (f.tag == KILN_PB_BYTES(2u))
            span = f.bytes.len;
    }
    check_wire(c, n, where);
    if (index == 0 && trace == 0 && span == 0)
        return;
    if (trace != 16)
        check_error(c, "id-length", where, "trace_id has %zu bytes instead of 16", trace);
    if (span != 8)
        check_error(c, "id-length", where, "span_id has %zu bytes instead of 8", span);
}

static void check_attribute(struct checker *c, struct kiln_str bytes, const char *where)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    int n;

    while ((n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_VARINT(1u))
            check_index(c, OTLP_STRINGS, f.number, where, "key_strindex");
        else if (f.tag == KILN_PB_BYTES(2u))
            check_value(c, f.bytes, where, kiln_limits_default.value_depth);
        else if (f.tag == KILN_PB_VARINT(3u))
            check_index(c, OTLP_STRINGS, f.number, where, "unit_strindex");
    }
    check_wire(c, n, where);
}

static void check_stack(struct checker *c, struct kiln_str bytes, const char *where)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    int n;

    while ((n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag >> 3 == 1)
            check_indexes(c, OTLP_LOCATIONS, &f, where, "location_indices");
    }
    check_wire(c, n, where);
}

static void check_entry(struct checker *c, enum otlp_table t, uint32_t i)
{
    struct kiln_str bytes = c->tables[t].entries[i];
    char where[PATH_MAX_LEN];

    snprintf(where, sizeof(where), "dictionary.%s[%u]", names[t], i);
    switch (t) {
    case OTLP_STRINGS:
        check_utf8(c, bytes, where);
        break;
    case OTLP_MAPPINGS:
        check_mapping(c, bytes, i, where);
        break;
    case OTLP_LOCATIONS:
        check_location(c, bytes, where);
        break;
    case OTLP_FUNCTIONS:
        check_function(c, bytes, i, where);
        break;
    case OTLP_LINKS:
        check_link(c, bytes, i, where);
        break;
    case OTLP_ATTRS:
        check_attribute(c, bytes, where);
        break;
    default:
        check_stack(c, bytes, where);
        break;
    }
}

/* All pieces of the dictionary, joined: protobuf allows several. */
static struct kiln_str whole_dictionary(struct checker *c, struct kiln_str message)
{
    struct kiln_pb r = kiln_pb_of(message);
    struct kiln_str whole = {0};
    struct kiln_pb_field f;
    char *joined;
    size_t len = 0;
    int n;

    while ((n = kiln_pb_next(&r, &f)) > 0)
        len += f.tag == KILN_PB_BYTES(2u) ? f.bytes.len : 0;
    check_wire(c, n, "message");
    joined = take(c, len, 1);
    for (r = kiln_pb_of(message); joined && kiln_pb_next(&r, &f) > 0;) {
        if (f.tag != KILN_PB_BYTES(2u) || f.bytes.len == 0)
            continue;
        memcpy(joined + whole.len, f.bytes.ptr, f.bytes.len);
        whole.len += f.bytes.len;
    }
    whole.ptr = joined;
    return whole;
}

void check_dictionary(struct checker *c, struct kiln_str message)
{
    collect_entries(c, whole_dictionary(c, message));
    if (c->error == 0)
        find_canon(c);
    if (c->error == 0)
        find_attr_keys(c);
    if (c->error)
        return;
    check_zero_values(c);
    for (enum otlp_table t = OTLP_MAPPINGS; t < OTLP_TABLES; t++) {
        for (uint32_t i = 0; c->error == 0 && i < c->tables[t].n; i++)
            check_entry(c, t, i);
        if (c->error == 0 && c->opts->dupes)
            check_dupes_of(c, t);
    }
}
