/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a message without making anything of it: every length, index and text is looked at once,
 * in the order of the bytes.  How long a table must be is known when all that refers to it was
 * seen, and how long it is as well.
 *
 * What each message may hold is a table, by tag: the rules below are all of revision 1.10 but its
 * samples.  They leave out what no sender writes (numbers that are not packed, unknown fields), and
 * all that other revisions number differently, so that whatever passes is of that revision by the
 * rules of otlp_detect.c as well.
 */
#include "codec/otlp_int.h"

#define DEPTH_MAX     32u         /* of messages: far below what the decoder takes of values */
#define STACK_BYTES   (1u << 16)  /* an index has a byte at least: no deeper than it may be */
#define MESSAGE_BYTES 0x0a000000u /* from there on, it might be read as a row of records */
#define TAGS          256u        /* of one byte; those of more have no rule */
#define HIGH          0x8080808080808080u

enum op {
    UNKNOWN,
    NUMBER,
    FIXED,
    TEXT,
    BYTES,
    ID,      /* of `of` bytes, or none */
    INDEX,   /* into the table `of` */
    INDEXES, /* packed */
    MESSAGE, /* of the type `of` */
    ENTRY,   /* the same: the next one of the table that has the field's number */
    STRING,  /* an entry that is a text */
    PROFILE,
    STACK,
    SAMPLE,
    DICTIONARIES, /* of which there is one */
    PAIRS,
};

enum type {
    REQUEST,
    RESOURCE_PROFILES,
    RESOURCE,
    ENTITY,
    SCOPE_PROFILES,
    SCOPE,
    PROFILE_HEAD,
    VALUE_TYPE,
    DICTIONARY,
    MAPPING,
    LOCATION,
    LINE,
    FUNCTION,
    LINK,
    ATTR,
    STACK_FRAMES,
    PAIR,
    VALUE,
    ARRAY,
    MAP,
    TYPES
};

struct rule {
    uint8_t op;
    uint8_t of;
};

#define V(field) [KILN_PB_VARINT(field)]
#define F(field) [KILN_PB_FIXED64(field)]
#define L(field) [KILN_PB_BYTES(field)]

static const struct rule rules[TYPES][TAGS] = {
    [REQUEST] = {L(1) = {MESSAGE, RESOURCE_PROFILES}, L(2) = {DICTIONARIES, DICTIONARY}},
    [RESOURCE_PROFILES] = {L(1) = {MESSAGE, RESOURCE}, L(2) = {MESSAGE, SCOPE_PROFILES},
                           L(3) = {TEXT, 0}},
    [RESOURCE] = {L(1) = {PAIRS, PAIR}, V(2) = {NUMBER, 0}, L(3) = {MESSAGE, ENTITY}},
    [ENTITY] = {L(1) = {TEXT, 0}, L(2) = {TEXT, 0}, L(3) = {TEXT, 0}, L(4) = {TEXT, 0}},
    [SCOPE_PROFILES] = {L(1) = {MESSAGE, SCOPE}, L(2) = {PROFILE, PROFILE_HEAD}, L(3) = {TEXT, 0}},
    [SCOPE] = {L(1) = {TEXT, 0}, L(2) = {TEXT, 0}, L(3) = {PAIRS, PAIR}, V(4) = {NUMBER, 0}},
    [PROFILE_HEAD] = {L(1) = {MESSAGE, VALUE_TYPE}, L(2) = {SAMPLE, 0}, F(3) = {FIXED, 0},
                      V(4) = {NUMBER, 0}, L(5) = {MESSAGE, VALUE_TYPE}, V(6) = {NUMBER, 0},
                      L(7) = {ID, 16}, V(8) = {NUMBER, 0}, L(9) = {TEXT, 0}, L(10) = {BYTES, 0},
                      L(11) = {INDEXES, OTLP_ATTRS}},
    [VALUE_TYPE] = {V(1) = {INDEX, OTLP_STRINGS}, V(2) = {INDEX, OTLP_STRINGS}},
    [DICTIONARY] = {L(OTLP_MAPPINGS) = {ENTRY, MAPPING}, L(OTLP_LOCATIONS) = {ENTRY, LOCATION},
                    L(OTLP_FUNCTIONS) = {ENTRY, FUNCTION}, L(OTLP_LINKS) = {ENTRY, LINK},
                    L(OTLP_STRINGS) = {STRING, 0}, L(OTLP_ATTRS) = {ENTRY, ATTR},
                    L(OTLP_STACKS) = {STACK, STACK_FRAMES}},
    [MAPPING] = {V(1) = {NUMBER, 0}, V(2) = {NUMBER, 0}, V(3) = {NUMBER, 0},
                 V(4) = {INDEX, OTLP_STRINGS}, L(5) = {INDEXES, OTLP_ATTRS}},
    [LOCATION] = {V(1) = {INDEX, OTLP_MAPPINGS}, V(2) = {NUMBER, 0}, L(3) = {MESSAGE, LINE},
                  L(4) = {INDEXES, OTLP_ATTRS}},
    [LINE] = {V(1) = {INDEX, OTLP_FUNCTIONS}, V(2) = {NUMBER, 0}, V(3) = {NUMBER, 0}},
    [FUNCTION] = {V(1) = {INDEX, OTLP_STRINGS}, V(2) = {INDEX, OTLP_STRINGS},
                  V(3) = {INDEX, OTLP_STRINGS}, V(4) = {NUMBER, 0}},
    [LINK] = {L(1) = {ID, 16}, L(2) = {ID, 8}},
    [ATTR] = {V(1) = {INDEX, OTLP_STRINGS}, L(2) = {MESSAGE, VALUE}, V(3) = {INDEX, OTLP_STRINGS}},
    [STACK_FRAMES] = {L(1) = {INDEXES, OTLP_LOCATIONS}},
    [PAIR] = {L(1) = {TEXT, 0}, L(2) = {MESSAGE, VALUE}, V(3) = {INDEX, OTLP_STRINGS}},
    [VALUE] = {L(1) = {TEXT, 0}, V(2) = {NUMBER, 0}, V(3) = {NUMBER, 0}, F(4) = {FIXED, 0},
               L(5) = {MESSAGE, ARRAY}, L(6) = {MESSAGE, MAP}, L(7) = {BYTES, 0},
               V(8) = {INDEX, OTLP_STRINGS}},
    [ARRAY] = {L(1) = {MESSAGE, VALUE}},
    [MAP] = {L(1) = {PAIRS, PAIR}},
};

#undef V
#undef F
#undef L

struct voucher {
    const uint8_t *near_end;    /* up to there, sixteen bytes can be read at once */
    uint64_t need[OTLP_TABLES]; /* entries that each table must have */
    uint64_t n[OTLP_TABLES];    /* and that it has */
    uint32_t n_dictionaries;
    struct kiln_otlp_counts counts;
};

KILN_INLINE void needs(struct voucher *v, uint32_t table, uint64_t n)
{
    v->need[table] = v->need[table] > n ? v->need[table] : n;
}

/* Index 0 of an absent table is its zero value. */
KILN_INLINE void refer(struct voucher *v, uint32_t table, uint64_t index)
{
    needs(v, table, index + (index > 0 && index < UINT64_MAX));
}

/* ---- numbers and texts ---- */

/* The byte after a varint, which may be behind `stop`; NULL if there is none. */
KILN_INLINE const uint8_t *number(const struct voucher *v, const uint8_t *p, const uint8_t *stop,
                                  uint64_t *ret)
{
    int n;

    if (KILN_LIKELY(p <= v->near_end))
        return kiln_pb_varint_near(p, ret);
    n = p < stop ? kiln_pb_varint_long(p, stop, ret) : 0;
    return n > 0 ? p + n : NULL;
}

static inline uint64_t eight(const uint8_t *p)
{
    uint64_t bytes;

    memcpy(&bytes, p, sizeof(bytes));
    return bytes;
}

static inline uint32_t four(const uint8_t *p)
{
    uint32_t bytes;

    memcpy(&bytes, p, sizeof(bytes));
    return bytes;
}

/* Of eight bytes or more: the last ones are looked at twice. */
KILN_INLINE bool is_ascii(const uint8_t *p, size_t len)
{
    const uint8_t *last = p + len - 8;

    for (; p < last; p += 8) {
        if (eight(p) & HIGH)
            return false;
    }
    return !(eight(last) & HIGH);
}

KILN_INLINE bool is_text(const uint8_t *p, size_t len)
{
    return (len >= 8 && is_ascii(p, len)) ||
           kiln_utf8_valid((struct kiln_str){(const char *)p, len});
}

/* ---- indexes ---- */

/*
 * The largest of those of one or two bytes; false if there is a longer one, or the last is cut off.
 * There is no branch in it: sixteen bytes are looked at together.  Each is taken for the end of an
 * index; where it is the beginning of one, that is 127 at most, which is no more than what follows
 * makes of it.
 */
static bool short_indexes(const uint8_t *p, size_t len, uint64_t *ret_largest)
{
    int16_t largest = p[0] & 0x7f, longer = 0;

    for (size_t i = 1; i < len; i++) {
        int16_t before = p[i - 1], at = p[i], goes_on = (int16_t) - (before >> 7);
        int16_t joined = (int16_t)((at & 0x7f) << 7 | (before & 0x7f));
        int16_t index = (int16_t)((joined & goes_on) | (at & 0x7f & ~goes_on));

        largest = largest > index ? largest : index;
        longer |= (int16_t)(at & before);
    }
    *ret_largest = (uint64_t)largest;
    return !((longer | p[len - 1]) & 0x80);
}

static bool long_indexes(const uint8_t *p, size_t len, uint64_t *ret_largest)
{
    struct kiln_pb r = {p, p + len};
    uint64_t index;
    int n;

    *ret_largest = 0;
    while ((n = kiln_pb_varint(&r, &index)) > 0)
        *ret_largest = *ret_largest > index ? *ret_largest : index;
    return n == 0;
}

KILN_INLINE bool indexes_are_good(struct voucher *v, uint32_t table, const uint8_t *p, size_t len)
{
    uint64_t largest = 0;

    if (len == 1)
        largest = p[0];
    else if (len && !short_indexes(p, len, &largest) && !long_indexes(p, len, &largest))
        return false;
    refer(v, table, largest);
    return len != 1 || largest < 0x80;
}

/* ---- tables, as senders write them ---- */

/*
 * Each takes entries from `at` on as long as they are usual, and returns where it stopped: at an
 * entry for the ordinary way, or in the last bytes of the message.
 */
enum { SHORT = 0x7f, SLACK = 2 + SHORT + 16 }; /* an entry, and what may be read behind it */

static const uint8_t *usual_strings(struct voucher *v, const uint8_t *at, const uint8_t *end)
{
    const uint8_t *first = at;
    uint64_t n = 0;
    uint8_t all = 0;

    for (; end - at >= SLACK && at[0] == KILN_PB_BYTES(OTLP_STRINGS) && at[1] <= SHORT; n++)
        at += 2 + at[1];
    for (const uint8_t *p = first; p < at; p++)
        all |= *p;
    if (all & 0x80)
        return first;
    v->n[OTLP_STRINGS] += n;
    return at;
}

/*
 * The heads of entries are taken for indexes too: all of them are below 128, and there is a larger
 * one in any table that this is for.
 */
static const uint8_t *usual_stacks(struct voucher *v, const uint8_t *at, const uint8_t *end)
{
    const uint8_t *first = at;
    uint64_t n = 0, largest;

    for (; end - at >= SLACK && at[0] == KILN_PB_BYTES(OTLP_STACKS) && at[1] <= SHORT &&
           at[2] == KILN_PB_BYTES(1u) && at[3] + 2u == at[1] && at[1 + at[1]] < 0x80;
         n++)
        at += 2 + at[1];
    if (at == first || !short_indexes(first, (size_t)(at - first), &largest) || largest < 0x80)
        return first;
    refer(v, OTLP_LOCATIONS, largest);
    v->n[OTLP_STACKS] += n;
    return at;
}

/* The byte after a number of eight bytes at most; else one behind every entry. */
KILN_INLINE const uint8_t *after(const uint8_t *p)
{
    uint64_t stops = ~eight(p) & HIGH;

    return p + (stops ? __builtin_ctzll(stops) / 8 + 1 : SLACK);
}

/* The field that a tag of a number is for, less one; large for tags of anything else. */
KILN_INLINE uint32_t number_field(uint8_t tag)
{
    return (uint8_t)((uint8_t)(tag >> 3 | tag << 5) - 1);
}

/*
 * Entries of numbers of seven bytes at most, those up to field `refs` indexes of one or two: a tag
 * and its number are read together.
 */
KILN_INLINE const uint8_t *usual_numbers(const uint8_t *p, const uint8_t *stop, uint32_t refs,
                                         uint32_t fields, uint32_t *largest)
{
    while (p < stop) {
        uint64_t bytes = eight(p), stops = ~bytes & HIGH & ~(uint64_t)0xff;
        uint32_t field = number_field((uint8_t)bytes), index;
        int len;

        if (field >= fields || !stops)
            break;
        len = __builtin_ctzll(stops) / 8;
        if (field < refs) {
            index = (bytes >> 8 & 0x7f) | (len == 2 ? bytes >> 9 & 0x3f80 : 0);
            if (len > 2)
                break;
            *largest = *largest > index ? *largest : index;
        }
        p += len + 1;
    }
    return p;
}

static const uint8_t *usual_functions(struct voucher *v, const uint8_t *at, const uint8_t *end)
{
    uint32_t string = 0;
    uint64_t n = 0;

    for (; end - at >= SLACK && at[0] == KILN_PB_BYTES(OTLP_FUNCTIONS) && at[1] <= SHORT; n++) {
        const uint8_t *stop = at + 2 + at[1];

        if (usual_numbers(at + 2, stop, 3, 4, &string) != stop)
            break;
        at = stop;
    }
    refer(v, OTLP_STRINGS, string);
    v->n[OTLP_FUNCTIONS] += n;
    return at;
}

/* The largest index of each table that locations refer to. */
struct location_refs {
    uint32_t mapping, function, attr;
};

/* A mapping, an address, lines, and an attribute below 128. */
KILN_INLINE const uint8_t *usual_location(const uint8_t *p, const uint8_t *stop,
                                          struct location_refs *refs)
{
    while (p < stop) {
        p = usual_numbers(p, stop, 1, 2, &refs->mapping);
        if (p < stop && *p == KILN_PB_BYTES(4u) && p[1] == 1 && p[2] < 0x80) {
            refs->attr = refs->attr > p[2] ? refs->attr : p[2];
            p += 3;
        } else if (p < stop && *p == KILN_PB_BYTES(3u) && p[1] <= stop - p - 2) {
            const uint8_t *inner = p + 2 + p[1];

            if (usual_numbers(p + 2, inner, 1, 3, &refs->function) != inner)
                return NULL;
            p = inner;
        } else {
            break;
        }
    }
    return p;
}

/* Of native code, in ascending order: mapping, address, attribute; bytes are compared together. */
KILN_INLINE bool is_native_location(const uint8_t *at, const uint8_t *stop,
                                    struct location_refs *refs)
{
    const uint8_t *p;

    if ((four(at) & 0x80ff80ff) != (KILN_PB_BYTES(OTLP_LOCATIONS) | KILN_PB_VARINT(1u) << 16) ||
        at[4] != KILN_PB_VARINT(2u))
        return false;
    p = after(at + 5);
    if (p + 3 != stop || (four(p) & 0x80ffff) != (KILN_PB_BYTES(4u) | 1 << 8))
        return false;
    refs->mapping = refs->mapping > at[3] ? refs->mapping : at[3];
    refs->attr = refs->attr > p[2] ? refs->attr : p[2];
    return true;
}

static const uint8_t *usual_locations(struct voucher *v, const uint8_t *at, const uint8_t *end)
{
    struct location_refs refs = {0};
    uint64_t n = 0;

    for (; end - at >= SLACK && at[0] == KILN_PB_BYTES(OTLP_LOCATIONS) && at[1] <= SHORT; n++) {
        const uint8_t *stop = at + 2 + at[1];

        if (!is_native_location(at, stop, &refs) && usual_location(at + 2, stop, &refs) != stop)
            break;
        at = stop;
    }
    refer(v, OTLP_MAPPINGS, refs.mapping);
    refer(v, OTLP_FUNCTIONS, refs.function);
    refer(v, OTLP_ATTRS, refs.attr);
    v->n[OTLP_LOCATIONS] += n;
    return at;
}

/* A text, or a number of eight bytes at most; sixteen bytes behind it may be read. */
KILN_INLINE bool is_usual_value(const uint8_t *p, size_t len)
{
    size_t text = len - 2;

    if (p[0] != KILN_PB_BYTES(1u))
        return p[0] == KILN_PB_VARINT(3u) && after(p + 1) == p + len;
    if (len < 2 || p[1] != text)
        return false;
    return text < 8 ? !(eight(p + 2) & HIGH & (((uint64_t)1 << text * 8) - 1))
                    : is_ascii(p + 2, text);
}

/* A key and a value, without a unit. */
static const uint8_t *usual_attrs(struct voucher *v, const uint8_t *at, const uint8_t *end)
{
    uint32_t string = 0;
    uint64_t n = 0;

    for (; end - at >= SLACK && at[0] == KILN_PB_BYTES(OTLP_ATTRS) && at[1] <= SHORT; n++) {
        const uint8_t *stop = at + 2 + at[1];
        const uint8_t *value = usual_numbers(at + 2, stop, 1, 1, &string);

        if (value[0] != KILN_PB_BYTES(2u) || value + 2 + value[1] != stop ||
            !is_usual_value(value + 2, value[1]))
            break;
        at = stop;
    }
    refer(v, OTLP_STRINGS, string);
    v->n[OTLP_ATTRS] += n;
    return at;
}

static const uint8_t *usual_entries(struct voucher *v, const uint8_t *at, const uint8_t *end)
{
    switch (*at) {
    case KILN_PB_BYTES(OTLP_LOCATIONS):
        return usual_locations(v, at, end);
    case KILN_PB_BYTES(OTLP_FUNCTIONS):
        return usual_functions(v, at, end);
    case KILN_PB_BYTES(OTLP_STRINGS):
        return usual_strings(v, at, end);
    case KILN_PB_BYTES(OTLP_STACKS):
        return usual_stacks(v, at, end);
    case KILN_PB_BYTES(OTLP_ATTRS):
        return usual_attrs(v, at, end);
    default:
        return at;
    }
}

/* A number of at least one byte that ends where it should. */
static bool is_number(const uint8_t *p, const uint8_t *stop)
{
    uint64_t value;

    return p < stop && kiln_pb_varint_long(p, stop, &value) == stop - p;
}

/* A key, and a text or a number; texts of eight bytes or more: what most attributes are. */
KILN_INLINE bool is_usual_pair(const uint8_t *p, size_t len)
{
    const uint8_t *stop = p + len, *value;

    if (len < 16 || len > SHORT || p[0] != KILN_PB_BYTES(1u) || p[1] < 8)
        return false;
    value = p + 2 + p[1];
    if (stop - value < 4 || value[0] != KILN_PB_BYTES(2u) || value + 2 + value[1] != stop ||
        !is_ascii(p + 2, p[1]))
        return false;
    if (value[2] == KILN_PB_VARINT(3u))
        return is_number(value + 3, stop);
    return value[2] == KILN_PB_BYTES(1u) && value[3] + 2u == value[1] && is_ascii(stop - 8, 8) &&
           (value[3] <= 8 || is_ascii(value + 4, value[3]));
}

/* ---- samples ---- */

/* Of a sample they never repeat: else they may be what an older revision has there. */
KILN_INLINE bool attrs_are_good(struct voucher *v, const uint8_t *p, size_t len)
{
    struct kiln_pb r = {p, p + len};
    uint64_t index, before = UINT64_MAX;
    int n;

    while ((n = kiln_pb_varint(&r, &index)) > 0) {
        if (index == before || index == UINT64_MAX)
            return false;
        needs(v, OTLP_ATTRS, index + 1);
        before = index;
    }
    return n == 0;
}

static bool count_values(const uint8_t *p, size_t len, size_t *ret_n)
{
    struct kiln_pb r = {p, p + len};
    uint64_t value;
    int n;

    while ((n = kiln_pb_varint(&r, &value)) > 0)
        ++*ret_n;
    return n == 0;
}

/* What was observed of a sample: values and times. */
struct observed {
    size_t n_values, n_times;
};

KILN_INLINE bool sample_bytes_are_good(struct voucher *v, uint32_t tag, const uint8_t *p,
                                       size_t len, struct observed *o)
{
    if (tag == KILN_PB_BYTES(2u))
        return attrs_are_good(v, p, len);
    if (tag == KILN_PB_BYTES(4u))
        return count_values(p, len, &o->n_values);
    o->n_times += len / sizeof(uint64_t);
    return len % sizeof(uint64_t) == 0;
}

/* One value for each time, where there are both; and one of either at least. */
static bool sample_is_good(struct voucher *v, const uint8_t *p, const uint8_t *stop)
{
    struct observed o = {0};
    uint64_t value;

    while (p < stop) {
        uint32_t tag = *p;

        p = number(v, p + 1, stop, &value);
        if (KILN_UNLIKELY(!p || p > stop))
            return false;
        if (tag == KILN_PB_VARINT(1u)) {
            refer(v, OTLP_STACKS, value);
        } else if (tag == KILN_PB_VARINT(3u)) {
            refer(v, OTLP_LINKS, value);
        } else {
            if ((tag != KILN_PB_BYTES(2u) && tag != KILN_PB_BYTES(4u) &&
                 tag != KILN_PB_BYTES(5u)) ||
                value > (uint64_t)(stop - p) || !sample_bytes_are_good(v, tag, p, value, &o))
                return false;
            p += value;
        }
    }
    v->counts.samples++;
    return o.n_values + o.n_times && (o.n_values == o.n_times || !o.n_values || !o.n_times);
}

/* ---- all other messages ---- */

static bool is_good(struct voucher *v, enum type type, const uint8_t *p, const uint8_t *stop,
                    uint32_t depth);

KILN_INLINE bool bytes_are_good(struct voucher *v, struct rule rule, uint32_t field,
                                const uint8_t *p, size_t len, uint32_t depth)
{
    switch (rule.op) {
    case STRING:
        v->n[OTLP_STRINGS]++;
        return is_text(p, len);
    case TEXT:
        return is_text(p, len);
    case ID:
        return len == 0 || len == rule.of;
    case INDEXES:
        return indexes_are_good(v, rule.of, p, len);
    case SAMPLE:
        return sample_is_good(v, p, p + len);
    case BYTES:
        return true;
    case STACK:
        if (len > STACK_BYTES)
            return false;
        v->n[OTLP_STACKS]++;
        return is_good(v, rule.of, p, p + len, depth);
    case ENTRY:
        v->n[field]++;
        return is_good(v, rule.of, p, p + len, depth);
    case PROFILE:
        v->counts.profiles++;
        return is_good(v, rule.of, p, p + len, depth);
    case DICTIONARIES:
        v->n_dictionaries++;
        return is_good(v, rule.of, p, p + len, depth);
    case PAIRS:
        return is_usual_pair(p, len) || is_good(v, rule.of, p, p + len, depth);
    default:
        return is_good(v, rule.of, p, p + len, depth);
    }
}

/* The rules have an operation only where the wire type is one that it takes. */
static bool is_good(struct voucher *v, enum type type, const uint8_t *p, const uint8_t *stop,
                    uint32_t depth)
{
    const struct rule *of_type = rules[type];

    while (p < stop) {
        uint64_t value = 0;
        struct rule rule;
        uint32_t tag;

        if (type == DICTIONARY)
            p = usual_entries(v, p, stop);
        if (p == stop)
            break;
        tag = *p++;
        rule = of_type[tag];
        if (rule.op == UNKNOWN || depth == 0)
            return false;
        if (rule.op != FIXED) {
            p = number(v, p, stop, &value);
            if (KILN_UNLIKELY(!p || p > stop))
                return false;
        }
        if (rule.op == INDEX) {
            refer(v, rule.of, value);
        } else if (rule.op != NUMBER) {
            value = rule.op == FIXED ? sizeof(uint64_t) : value;
            if (KILN_UNLIKELY(value > (uint64_t)(stop - p)))
                return false;
            if (rule.op != FIXED && !bytes_are_good(v, rule, tag >> 3, p, value, depth - 1))
                return false;
            p += value;
        }
    }
    return true;
}

bool kiln_otlp_vouch(struct kiln_str message, struct kiln_otlp_counts *ret_counts)
{
    struct kiln_pb r = kiln_pb_of(message);
    struct voucher v = {.near_end = message.len < 16 ? NULL : r.end - 16};

    if (message.len >= MESSAGE_BYTES || !is_good(&v, REQUEST, r.at, r.end, DEPTH_MAX) ||
        v.n_dictionaries != 1)
        return false;
    for (int table = 0; table < OTLP_TABLES; table++) {
        if (v.need[table] > v.n[table])
            return false;
    }
    *ret_counts = v.counts;
    return true;
}
