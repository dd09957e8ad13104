/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which revision of the protocol is this?  No message says, but fields changed their numbers and
 * wire types, so the tags tell: one pass notes which wire types each field of Profile and Sample
 * occurs with, and the rules at the end of this file read the revision from that.
 *
 * One case stays open by tags alone: samples of nothing but stack, field 2 and timestamps, where
 * field 2 holds values (up to 1.9) or attributes (since 1.10).  Attributes are indexes into a table
 * and never repeat within a sample; values rarely look like that.
 */
#include "codec/otlp_int.h"

#define SAMPLES_LOOKED_AT 8u
#define PROFILE_FIELDS    24u
#define SAMPLE_FIELDS     8u

enum { V = 1 << 0, F = 1 << 1, L = 1 << 2 }; /* wire types seen: varint, fixed64, length */

struct evidence {
    uint8_t profile[PROFILE_FIELDS];
    uint8_t sample[SAMPLE_FIELDS];
    uint32_t samples;
    uint32_t n_attrs;
    bool dictionary;
    bool beyond_dictionary; /* top-level tables: fields 3 to 8 */
    bool attr_key_is_text;
    bool temporality;        /* ValueType field 3 */
    bool odd_field_7;        /* Profile field 7 of a length that no id has */
    bool value_without_time; /* a sample of only stack and field 2 */
    bool cannot_be_attrs;    /* field 2 of a sample cannot be attribute indexes */
};

static uint8_t wire_bit(uint32_t tag)
{
    return (uint8_t)(1u << (tag & 7));
}

/* Could these be attributes: inside the table, no index twice in a row? */
static bool may_be_attrs(struct kiln_str packed, uint32_t n_attrs)
{
    struct kiln_pb r = kiln_pb_of(packed);
    uint64_t index, before = UINT64_MAX;

    while (kiln_pb_varint(&r, &index) > 0) {
        if (index >= n_attrs || index == before)
            return false;
        before = index;
    }
    return true;
}

static void look_at_sample(struct kiln_str bytes, struct evidence *e)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    uint8_t seen[SAMPLE_FIELDS] = {0};

    e->samples++;
    while (kiln_pb_next(&r, &f) > 0) {
        if (f.tag >> 3 >= SAMPLE_FIELDS)
            continue;
        seen[f.tag >> 3] |= wire_bit(f.tag);
        if (f.tag == KILN_PB_BYTES(2u) && !e->cannot_be_attrs)
            e->cannot_be_attrs = !may_be_attrs(f.bytes, e->n_attrs);
    }
    e->value_without_time |= seen[2] && !seen[3] && !seen[4] && !seen[5];
    for (uint32_t i = 0; i < SAMPLE_FIELDS; i++)
        e->sample[i] |= seen[i];
}

static void look_at_value_type(struct kiln_str bytes, struct evidence *e)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;

    while (kiln_pb_next(&r, &f) > 0)
        e->temporality |= f.tag == KILN_PB_VARINT(3u);
}

static void look_at_profile(struct kiln_str bytes, struct evidence *e)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    struct kiln_str skipped;

    while (kiln_pb_next(&r, &f) > 0) {
        while (e->samples >= SAMPLES_LOOKED_AT && kiln_pb_element(&r, KILN_PB_BYTES(2u), &skipped))
            ;
        if (f.tag >> 3 >= PROFILE_FIELDS)
            continue;
        e->profile[f.tag >> 3] |= wire_bit(f.tag);
        if (f.tag == KILN_PB_BYTES(1u))
            look_at_value_type(f.bytes, e);
        else if (f.tag == KILN_PB_BYTES(2u) && e->samples < SAMPLES_LOOKED_AT)
            look_at_sample(f.bytes, e);
        else if (f.tag == KILN_PB_BYTES(7u))
            e->odd_field_7 |= f.bytes.len != 0 && f.bytes.len != 16;
    }
}

/* Down from ResourceProfiles (levels 2) through ScopeProfiles (1) to Profile (0): field 2 each. */
static void look_down(struct kiln_str bytes, int levels, struct evidence *e)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;

    if (levels == 0) {
        look_at_profile(bytes, e);
        return;
    }
    while (kiln_pb_next(&r, &f) > 0) {
        if (f.tag == KILN_PB_BYTES(2u))
            look_down(f.bytes, levels - 1, e);
    }
}

/* Attributes have their key as a text (up to 1.7) or as an index: the first one with a key tells.
 */
static bool attr_key_is_text(const struct otlp_extent *attrs)
{
    struct kiln_pb r = {attrs->from, attrs->to};
    struct kiln_pb_field f, key;

    while (attrs->n && kiln_pb_next(&r, &f) > 0) {
        struct kiln_pb attr;

        if (f.tag != KILN_PB_BYTES(OTLP_ATTRS))
            continue;
        attr = kiln_pb_of(f.bytes);
        while (kiln_pb_next(&attr, &key) > 0) {
            if (key.tag >> 3 == 1)
                return key.tag == KILN_PB_BYTES(1u);
        }
    }
    return false;
}

static struct evidence look_at(struct kiln_str message, const struct otlp_extent *extents)
{
    struct evidence e = {
        .n_attrs = (uint32_t)extents[OTLP_ATTRS].n,
        .attr_key_is_text = attr_key_is_text(&extents[OTLP_ATTRS]),
    };
    struct kiln_pb r = kiln_pb_of(message);
    struct kiln_pb_field f;

    while (kiln_pb_next(&r, &f) > 0) {
        if (f.tag == KILN_PB_BYTES(1u))
            look_down(f.bytes, 2, &e);
        else if (f.tag == KILN_PB_BYTES(2u))
            e.dictionary = true;
        else if ((f.tag & 7) == 2 && f.tag >> 3 >= 3 && f.tag >> 3 <= 8)
            e.beyond_dictionary = true;
    }
    return e;
}

/* ---- the rules ---- */

/* Samples numbered as 1.10 does it, beyond doubt? */
static bool has_new_samples(const struct evidence *e)
{
    return (e->sample[3] & V) || (e->sample[4] & L);
}

/* Samples numbered as 1.8 and 1.9 did it? */
static bool has_old_samples(const struct evidence *e)
{
    if ((e->sample[3] & L) || (e->sample[4] & V))
        return true;
    return e->value_without_time || (e->sample[2] && e->cannot_be_attrs);
}

static bool has_old_profile_head(const struct evidence *e)
{
    return (e->profile[8] & L) || (e->profile[9] & V) || e->profile[12] || e->temporality ||
           e->odd_field_7;
}

enum kiln_otlp_revision otlp_revision_by(struct kiln_str message, const struct otlp_extent *extents)
{
    struct evidence e = look_at(message, extents);

    if (e.beyond_dictionary && !(e.profile[3] & F)) /* a later revision may have new fields there */
        return KILN_OTLP_1_6;
    if (!e.dictionary && ((e.profile[10] & L) || (e.profile[6] & L)))
        return KILN_OTLP_1_4;
    if (e.attr_key_is_text || (e.profile[3] & L) || (e.profile[5] & V) || (e.profile[6] & L))
        return KILN_OTLP_1_7;
    if (has_new_samples(&e))
        return KILN_OTLP_1_10;
    if (has_old_profile_head(&e))
        return KILN_OTLP_1_8;
    return has_old_samples(&e) ? KILN_OTLP_1_9 : KILN_OTLP_1_10;
}

enum kiln_otlp_revision otlp_revision_of(struct kiln_str message)
{
    struct otlp_extent extents[OTLP_TABLES] = {0};
    struct kiln_pb r = kiln_pb_of(message);
    struct kiln_pb_field f;

    while (kiln_pb_next(&r, &f) > 0) {
        if (f.tag == KILN_PB_BYTES(2u) && otlp_dictionary_look(f.bytes, extents) < 0)
            break;
    }
    return otlp_revision_by(message, extents);
}

static const struct {
    const char *name;
    enum kiln_otlp_revision revision;
} revisions[] = {
    {"auto", KILN_OTLP_AUTO}, {"1.4", KILN_OTLP_1_4},   {"1.6", KILN_OTLP_1_6},
    {"1.7", KILN_OTLP_1_7},   {"1.8", KILN_OTLP_1_8},   {"1.9", KILN_OTLP_1_9},
    {"1.10", KILN_OTLP_1_10}, {"1.11", KILN_OTLP_1_10}, {"1.5", KILN_OTLP_1_4},
};

const char *kiln_otlp_revision_name(enum kiln_otlp_revision revision)
{
    return revisions[revision].name;
}

enum kiln_otlp_revision kiln_otlp_revision_named(struct kiln_str name)
{
    for (size_t i = 0; i < KILN_ARRAY_LEN(revisions); i++) {
        if (kiln_str_eq(name, kiln_str_of(revisions[i].name)))
            return revisions[i].revision;
    }
    return KILN_OTLP_AUTO;
}

/* ---- is it OTLP at all? ---- */

/* Every field of the message is length-delimited and has a number from 1 to `last`. */
static bool only_nested(struct kiln_str bytes, uint32_t last)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    int n;

    while ((n = kiln_pb_next(&r, &f)) > 0) {
        if ((f.tag & 7) != 2 || f.tag >> 3 > last)
            return false;
    }
    return n == 0;
}

static bool is_message(struct kiln_str message)
{
    struct kiln_pb r = kiln_pb_of(message);
    struct kiln_pb_field f;
    bool resources = false, dictionary = true, tables = false;

    if (message.len == 0 || !only_nested(message, 8))
        return false;
    while (kiln_pb_next(&r, &f) > 0) {
        if (f.tag == KILN_PB_BYTES(1u) && !only_nested(f.bytes, 3))
            return false;
        resources |= f.tag == KILN_PB_BYTES(1u) && f.bytes.len > 0;
        dictionary &= f.tag != KILN_PB_BYTES(2u) || only_nested(f.bytes, 7);
        tables |= f.tag >> 3 > 2;
    }
    return dictionary || (resources && tables); /* 1.6 has its mappings in field 2 */
}

bool otlp_next_record(struct kiln_str *rest, struct kiln_str *ret_record)
{
    const unsigned char *p = (const unsigned char *)rest->ptr;
    size_t len;

    if (rest->len < 4)
        return false;
    len = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
    if (len > rest->len - 4)
        return false;
    *ret_record = (struct kiln_str){rest->ptr + 4, len};
    rest->ptr += 4 + len;
    rest->len -= 4 + len;
    return true;
}

bool otlp_is_records(struct kiln_str bytes)
{
    struct kiln_str rest = bytes, record;

    if (!otlp_next_record(&rest, &record) || !is_message(record))
        return false;
    while (otlp_next_record(&rest, &record))
        ;
    return rest.len == 0;
}

bool kiln_otlp_detect(struct kiln_str content)
{
    return is_message(content) || otlp_is_records(content);
}
