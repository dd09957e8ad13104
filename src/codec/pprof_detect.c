/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is this a pprof?  Protobuf has no magic number, so the fields have to tell: every field must be
 * one of the profile's with its wire type, and so must the fields inside the first messages.  An
 * OTLP message, whose first field is also a message, differs one level down; text and random bytes
 * fall at the first or second field.
 */
#include "codec/pprof_int.h"

#define FIELDS_MAX   4096u /* top-level fields looked at */
#define MESSAGES_MAX 64u   /* of them, messages looked into */

/* Which fields a message has, one bit each, by wire type. */
struct shape {
    uint32_t varint;
    uint32_t bytes;
};

#define BITS(first, last) (((1u << (last)) - (1u << (first))) | 1u << (last))
#define BIT(field)        (1u << (field))

static const struct shape profile_shape = {
    .varint =
        BITS(PROFILE_DROP_FRAMES, PROFILE_DURATION_NANOS) | BITS(PROFILE_PERIOD, PROFILE_DOC_URL),
    .bytes = BITS(PROFILE_SAMPLE_TYPE, PROFILE_STRING_TABLE) | BIT(PROFILE_PERIOD_TYPE) |
             BIT(PROFILE_COMMENT),
};

static const struct shape inner_shapes[PROFILE_LAST + 1] = {
    [PROFILE_SAMPLE_TYPE] = {BITS(TYPE_TYPE, TYPE_UNIT), 0},
    [PROFILE_SAMPLE] = {BITS(SAMPLE_LOCATION_ID, SAMPLE_VALUE),
                        BITS(SAMPLE_LOCATION_ID, SAMPLE_LABEL)},
    [PROFILE_MAPPING] = {BITS(MAPPING_ID, MAPPING_HAS_INLINE_FRAMES), 0},
    [PROFILE_LOCATION] = {BITS(LOCATION_ID, LOCATION_ADDRESS) | BIT(LOCATION_IS_FOLDED),
                          BIT(LOCATION_LINE)},
    [PROFILE_FUNCTION] = {BITS(FUNCTION_ID, FUNCTION_START_LINE), 0},
    [PROFILE_PERIOD_TYPE] = {BITS(TYPE_TYPE, TYPE_UNIT), 0},
};

static bool has_field(struct shape shape, uint32_t tag)
{
    uint32_t field = tag >> 3, type = tag & 7;

    if (field > PROFILE_LAST)
        return false;
    return (type == 0 && shape.varint >> field & 1) || (type == 2 && shape.bytes >> field & 1);
}

static bool fits(struct kiln_str message, struct shape shape)
{
    struct kiln_pb r = kiln_pb_of(message);
    struct kiln_pb_field f;
    int n;

    while ((n = kiln_pb_next(&r, &f)) > 0) {
        if (!has_field(shape, f.tag))
            return false;
    }
    return n == 0;
}

/* True if the field, one of the profile's, holds what it should. */
static bool field_fits(const struct kiln_pb_field *f)
{
    uint32_t field = f->tag >> 3;

    if ((f->tag & 7) != 2 || field == PROFILE_STRING_TABLE || field == PROFILE_COMMENT)
        return true;
    return fits(f->bytes, inner_shapes[field]);
}

static bool starts_like_pprof(struct kiln_str content)
{
    struct kiln_pb r = kiln_pb_of(content);
    uint32_t seen = 0, n_fields = 0;
    struct kiln_pb_field f;
    int n = 0;

    while (n_fields < FIELDS_MAX && (n = kiln_pb_next(&r, &f)) > 0) {
        uint32_t bit = 1u << (f.tag >> 3 & 31);

        if (!has_field(profile_shape, f.tag))
            return false;
        if (f.tag == KILN_PB_BYTES(PROFILE_STRING_TABLE) && !(seen & bit) && f.bytes.len)
            return false;
        if (n_fields++ < MESSAGES_MAX && !field_fits(&f))
            return false;
        seen |= bit;
    }
    if (n == KILN_E_MALFORMED)
        return false;
    /* A whole pprof has strings; of one that is cut off, a few fields must have fitted. */
    return seen & BIT(PROFILE_STRING_TABLE) ||
           (n_fields > 2 && seen & (BIT(PROFILE_SAMPLE_TYPE) | BIT(PROFILE_SAMPLE)));
}

const char *kiln_pprof_old_text(struct kiln_str raw)
{
    static const struct {
        const char *start;
        const char *name;
    } formats[] = {
        {"heap profile:", "heap"},
        {"goroutine profile:", "goroutine"},
        {"threadcreate profile:", "thread"},
        {"--- heap", "heap"},
        {"--- growth", "heap growth"},
        {"--- contention", "contention"},
        {"--- mutex", "mutex"},
        {"--- threadz", "thread"},
        {"--- Thread", "thread"},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(formats); i++) {
        if (kiln_str_starts(raw, kiln_str_of(formats[i].start)))
            return formats[i].name;
    }
    return NULL;
}

bool kiln_pprof_detect(struct kiln_str content)
{
    return kiln_pprof_old_text(content) || starts_like_pprof(content);
}
