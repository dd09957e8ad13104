/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a pprof, in the order in which one thing needs another.
 *
 * The messages of a pprof come in any order, and often the strings, which everything refers to,
 * come last.  One walk over the top-level fields notes where the messages of each kind start; then
 * the tables are read in turn: strings, mappings, functions, locations, samples (pprof_samples.c).
 *
 *   Profile   1 sample_type*  2 sample*  3 mapping*  4 location*  5 function*  6 string_table*
 *             7 drop_frames  8 keep_frames  9 time_nanos  10 duration_nanos  11 period_type
 *             12 period  13 comment*  14 default_sample_type  15 doc_url
 *   Mapping   1 id  2 start  3 limit  4 offset  5 filename  6 build_id  7-10 has_*
 *   Location  1 id  2 mapping_id  3 address  4 line*  5 is_folded
 *   Line      1 function_id  2 line  3 column
 *   Function  1 id  2 name  3 system_name  4 filename  5 start_line
 *
 * A text is an index into string_table, whose first entry is empty; ids are any number but 0.
 */
#include <stdio.h>

#include "base/hash.h"
#include "codec/pprof_int.h"

#define CHUNK_MIN 64u
#define CHUNK_MAX 4096u
#define AHEAD     8u /* messages that are fetched from memory while one is read */

/* ---- errors ---- */

int kiln_pprof_fail(struct kiln_pprof_in *in, int code, const char *where, const char *fmt, ...)
{
    char text[200];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return kiln_err_set(in->err, code, where, "%s", text);
}

int kiln_pprof_bad_wire(struct kiln_pprof_in *in, int code)
{
    return kiln_pprof_fail(in, code, NULL, "%s",
                           code == KILN_E_TRUNCATED ? "the data ends in the middle of a field"
                                                    : "this is not a protobuf field");
}

int kiln_pprof_builder_failure(struct kiln_pprof_in *in)
{
    int r = kiln_builder_error(in->b);

    return r < 0 ? kiln_pprof_fail(in, r, NULL, "%s", kiln_err_text(r)) : 0;
}

/* ---- the first walk ---- */

/* Another chunk for the list; NULL on failure. */
static struct offset_chunk *add_chunk(struct kiln_pprof_in *in, struct offset_list *list)
{
    uint32_t cap = list->last ? list->last->cap * 2 : CHUNK_MIN;
    struct offset_chunk *chunk;

    cap = cap > CHUNK_MAX ? CHUNK_MAX : cap;
    chunk = kiln_builder_scratch(in->b, sizeof(*chunk) + cap * sizeof(*chunk->offsets));
    if (!chunk)
        return NULL;
    *chunk = (struct offset_chunk){.cap = cap};
    *(list->last ? &list->last->next : &list->first) = chunk;
    list->last = chunk;
    return chunk;
}

static inline int list_add(struct kiln_pprof_in *in, struct offset_list *list, uint32_t offset)
{
    struct offset_chunk *chunk = list->last;

    if (KILN_UNLIKELY(!chunk || chunk->n == chunk->cap)) {
        chunk = add_chunk(in, list);
        if (!chunk)
            return kiln_pprof_builder_failure(in);
    }
    chunk->offsets[chunk->n++] = offset;
    list->n++;
    return 0;
}

static int add_comments(struct kiln_pprof_in *in, struct kiln_str packed)
{
    struct kiln_pb r = kiln_pb_of(packed);
    uint64_t index;
    int n;

    while ((n = kiln_pb_varint(&r, &index)) > 0) {
        int added =
            index > UINT32_MAX ? KILN_E_RANGE : list_add(in, &in->comments, (uint32_t)index);

        if (added < 0)
            return kiln_pprof_fail(in, added, "comment", "string index %llu is out of range",
                                   (unsigned long long)index);
    }
    return n < 0 ? kiln_pprof_bad_wire(in, n) : 0;
}

static int scan_number(struct kiln_pprof_in *in, const struct kiln_pb_field *f)
{
    switch (f->tag >> 3) {
    case PROFILE_DROP_FRAMES:
        in->drop_frames = f->number;
        return 0;
    case PROFILE_KEEP_FRAMES:
        in->keep_frames = f->number;
        return 0;
    case PROFILE_TIME_NANOS:
        if (in->has_time)
            return kiln_pprof_fail(in, KILN_E_MALFORMED, "time_nanos",
                                   "it comes twice: these are several profiles in a row");
        in->has_time = true;
        in->time_ns = (int64_t)f->number;
        return 0;
    case PROFILE_DURATION_NANOS:
        in->duration_ns = (int64_t)f->number;
        return 0;
    case PROFILE_PERIOD:
        in->period = (int64_t)f->number;
        return 0;
    case PROFILE_COMMENT:
        return f->number > UINT32_MAX
                   ? kiln_pprof_fail(in, KILN_E_RANGE, "comment", "string index is out of range")
                   : list_add(in, &in->comments, (uint32_t)f->number);
    case PROFILE_DEFAULT_SAMPLE_TYPE:
        in->default_type = f->number;
        return 0;
    case PROFILE_DOC_URL:
        in->doc_url = f->number;
        return 0;
    default:
        return 0;
    }
}

/* A field that is not one of the tables. */
static int scan_field(struct kiln_pprof_in *in, const struct kiln_pb_field *f)
{
    if (f->tag == KILN_PB_BYTES(PROFILE_COMMENT))
        return add_comments(in, f->bytes);
    if (f->tag == KILN_PB_BYTES(PROFILE_PERIOD_TYPE))
        in->period_type = f->bytes;
    return (f->tag & 7) == 0 ? scan_number(in, f) : 0;
}

/* Notes where every message is, and keeps the few fields that stand alone. */
static int scan(struct kiln_pprof_in *in)
{
    struct kiln_pb r = kiln_pb_of(in->raw);
    const uint8_t *start = r.at, *at = r.at;
    struct kiln_pb_field f;
    int n, bad = 0;

    for (; (n = kiln_pb_next(&r, &f)) > 0; at = r.at) {
        if (KILN_LIKELY((f.tag & 7) == 2 && f.tag >> 3 <= PROFILE_STRING_TABLE)) {
            bad = list_add(in, &in->lists[f.tag >> 3], (uint32_t)(at - start));
            if (f.tag == KILN_PB_BYTES(PROFILE_SAMPLE)) {
                in->sample_bytes += f.bytes.len;
                if (f.bytes.len > in->sample_bytes_max)
                    in->sample_bytes_max = f.bytes.len;
            }
        } else {
            bad = scan_field(in, &f);
        }
        if (KILN_UNLIKELY(bad < 0))
            return bad;
    }
    if (n < 0)
        kiln_pprof_fail(in, n, NULL, "at byte %zu: %s", (size_t)(at - start), kiln_err_text(n));
    return n;
}

/*
 * The content of the message or string whose tag is at `offset`.  The first walk read it already,
 * so that the length is known to fit; the tag may be any of several ways to write one byte.
 */
static inline struct kiln_str content_at(const struct kiln_pprof_in *in, uint32_t offset)
{
    struct kiln_pb r = {(const uint8_t *)in->raw.ptr + offset,
                        (const uint8_t *)in->raw.ptr + in->raw.len};
    uint64_t number = 0;

    (void)kiln_pb_varint(&r, &number);
    (void)kiln_pb_varint(&r, &number);
    return (struct kiln_str){(const char *)r.at, (size_t)number};
}

int kiln_pprof_each(struct kiln_pprof_in *in, unsigned field, const char *name,
                    int (*read)(struct kiln_pprof_in *in, struct kiln_str message, uint32_t i))
{
    uint32_t i = 0;

    for (const struct offset_chunk *c = in->lists[field].first; c; c = c->next) {
        for (uint32_t k = 0; k < c->n; k++, i++) {
            int r;

            if (k + AHEAD < c->n)
                __builtin_prefetch(in->raw.ptr + c->offsets[k + AHEAD]);
            r = read(in, content_at(in, c->offsets[k]), i);

            if (KILN_UNLIKELY(r < 0)) {
                kiln_err_within(in->err, "%s[%u]", name, i);
                return r;
            }
        }
    }
    return kiln_pprof_builder_failure(in);
}

/* ---- strings ---- */

int kiln_pprof_string(struct kiln_pprof_in *in, uint64_t index, const char *field, uint32_t *ret)
{
    if (KILN_UNLIKELY(index >= in->lists[PROFILE_STRING_TABLE].n))
        return kiln_pprof_fail(in, KILN_E_RANGE, field,
                               "string %lld is outside string_table, which has %u",
                               (long long)index, in->lists[PROFILE_STRING_TABLE].n);
    *ret = in->strings[index];
    return 0;
}

/* The text with U+FFFD for each byte that is not part of well-formed UTF-8. */
static struct kiln_str repaired(struct kiln_pprof_in *in, struct kiln_str s)
{
    char *text = s.len <= SIZE_MAX / 3 ? kiln_builder_alloc(in->b, s.len * 3) : NULL;
    size_t len = 0, i = 0;

    while (text && i < s.len) {
        size_t n = kiln_utf8_len((struct kiln_str){s.ptr + i, s.len - i});

        memcpy(text + len, n ? s.ptr + i : "\xef\xbf\xbd", n ? n : 3);
        len += n ? n : 3;
        i += n ? n : 1;
    }
    return (struct kiln_str){text, len};
}

static int read_string(struct kiln_pprof_in *in, struct kiln_str s, uint32_t i)
{
    if (i == 0 && s.len > 0)
        return kiln_pprof_fail(in, KILN_E_MALFORMED, NULL, "the first string must be empty");
    if (KILN_UNLIKELY(!kiln_utf8_valid(s)))
        s = repaired(in, s);
    in->strings[i] = kiln_builder_string_ref(in->b, s);
    return 0;
}

/* ---- ids ---- */

static bool id_map_init(struct kiln_pprof_in *in, struct id_map *map, uint32_t n)
{
    size_t bytes = ((size_t)n + 1) * sizeof(*map->dense);

    map->n = n;
    map->dense = kiln_builder_scratch(in->b, bytes);
    if (map->dense)
        memset(map->dense, 0xff, bytes);
    return map->dense != NULL;
}

static bool id_map_make_slots(struct kiln_pprof_in *in, struct id_map *map)
{
    uint64_t n_slots = 16;

    while (n_slots < (uint64_t)map->n * 2)
        n_slots *= 2;
    map->slots = kiln_builder_scratch(in->b, n_slots * sizeof(*map->slots));
    if (!map->slots)
        return false;
    memset(map->slots, 0, n_slots * sizeof(*map->slots));
    map->n_slots = (uint32_t)n_slots;
    return true;
}

/* The slot that has `id`, or the free one where it belongs. */
static struct id_slot *id_map_slot(const struct id_map *map, uint64_t id)
{
    uint32_t at = (uint32_t)kiln_hash_mix(id, 1) & (map->n_slots - 1);

    while (map->slots[at].id && map->slots[at].id != id)
        at = (at + 1) & (map->n_slots - 1);
    return &map->slots[at];
}

uint32_t kiln_pprof_sparse_id(const struct id_map *map, uint64_t id)
{
    const struct id_slot *slot = map->n_slots ? id_map_slot(map, id) : NULL;

    return slot && slot->id ? slot->index : NO_INDEX;
}

static int id_map_put(struct kiln_pprof_in *in, struct id_map *map, uint64_t id, uint32_t index)
{
    if (id == 0)
        return kiln_pprof_fail(in, KILN_E_MALFORMED, "id", "it must not be 0");
    if (KILN_UNLIKELY(kiln_pprof_id(map, id) != NO_INDEX))
        return kiln_pprof_fail(in, KILN_E_MALFORMED, "id", "another one has the same id %llu",
                               (unsigned long long)id);
    map->n_same += id == index;
    if (KILN_LIKELY(id <= map->n)) {
        map->dense[id] = index;
        return 0;
    }
    if (!map->slots && !id_map_make_slots(in, map))
        return kiln_pprof_builder_failure(in);
    *id_map_slot(map, id) = (struct id_slot){id, index};
    return 0;
}

/* ---- mappings ---- */

static uint32_t flag_attr(struct kiln_pprof_in *in, struct kiln_str key, bool on)
{
    return kiln_builder_attr(in->b, kiln_builder_string(in->b, key), kiln_value_bool(on), 0);
}

/*
 * The attributes of a mapping: its build id, and its flags, bits 1 << MAPPING_HAS_*.  A mapping
 * without flags says so, lest a writer should think that nobody looked; and one that says nothing
 * else is then still not the one that stands for none.
 */
static uint32_t mapping_attrs(struct kiln_pprof_in *in, uint32_t build_id, uint32_t flags)
{
    struct kiln_str text = kiln_builder_peek(in->b)->dict.strings[build_id];
    uint32_t attrs[8], n = 0;

    if (build_id)
        attrs[n++] = kiln_builder_attr(in->b,
                                       kiln_builder_string(in->b, memchr(text.ptr, '/', text.len)
                                                                      ? ATTR_BUILD_ID_GO
                                                                      : ATTR_BUILD_ID_GNU),
                                       kiln_value_string(build_id), 0);
#define X(field, name)                                                                             \
    if (flags & 1u << (field))                                                                     \
        attrs[n++] = flag_attr(in, KILN_STR(name), true);
    MAPPING_FLAGS(X)
#undef X
    if (!flags)
        attrs[n++] = flag_attr(in, KILN_STR("pprof.mapping.has_functions"), false);
    return kiln_builder_set(in->b, attrs, n, NULL);
}

static int read_mapping(struct kiln_pprof_in *in, struct kiln_str message,
                        __attribute__((unused)) uint32_t i)
{
    struct kiln_pb r = kiln_pb_of(message);
    struct kiln_mapping m = {0};
    struct kiln_pb_field f;
    uint32_t build_id = 0, flags = 0;
    uint64_t id = 0;
    int n, bad = 0;

    while (bad == 0 && (n = kiln_pb_next(&r, &f)) > 0) {
        switch (f.tag) {
        case KILN_PB_VARINT(MAPPING_ID):
            id = f.number;
            break;
        case KILN_PB_VARINT(MAPPING_START):
            m.start = f.number;
            break;
        case KILN_PB_VARINT(MAPPING_LIMIT):
            m.limit = f.number;
            break;
        case KILN_PB_VARINT(MAPPING_OFFSET):
            m.offset = f.number;
            break;
        case KILN_PB_VARINT(MAPPING_FILENAME):
            bad = kiln_pprof_string(in, f.number, "filename", &m.filename);
            break;
        case KILN_PB_VARINT(MAPPING_BUILD_ID):
            bad = kiln_pprof_string(in, f.number, "build_id", &build_id);
            break;
        case KILN_PB_VARINT(MAPPING_HAS_FUNCTIONS):
        case KILN_PB_VARINT(MAPPING_HAS_FILENAMES):
        case KILN_PB_VARINT(MAPPING_HAS_LINE_NUMBERS):
        case KILN_PB_VARINT(MAPPING_HAS_INLINE_FRAMES):
            flags = (flags & ~(1u << (f.tag >> 3))) | (uint32_t)(f.number != 0) << (f.tag >> 3);
            break;
        default:
            break;
        }
    }
    if (bad < 0)
        return bad;
    if (n < 0)
        return kiln_pprof_bad_wire(in, n);
    m.attrs = mapping_attrs(in, build_id, flags);
    return id_map_put(in, &in->mappings, id, kiln_builder_mapping(in->b, &m));
}

/* ---- functions ---- */

static int read_function(struct kiln_pprof_in *in, struct kiln_str message,
                         __attribute__((unused)) uint32_t i)
{
    struct kiln_pb r = kiln_pb_of(message);
    struct kiln_function function = {0};
    struct kiln_pb_field f;
    uint64_t id = 0;
    int n, bad = 0;

    while (bad == 0 && (n = kiln_pb_next(&r, &f)) > 0) {
        switch (f.tag) {
        case KILN_PB_VARINT(FUNCTION_ID):
            id = f.number;
            break;
        case KILN_PB_VARINT(FUNCTION_NAME):
            bad = kiln_pprof_string(in, f.number, "name", &function.name);
            break;
        case KILN_PB_VARINT(FUNCTION_SYSTEM_NAME):
            bad = kiln_pprof_string(in, f.number, "system_name", &function.system_name);
            break;
        case KILN_PB_VARINT(FUNCTION_FILENAME):
            bad = kiln_pprof_string(in, f.number, "filename", &function.filename);
            break;
        case KILN_PB_VARINT(FUNCTION_START_LINE):
            function.start_line = (int64_t)f.number;
            break;
        default:
            break;
        }
    }
    if (bad < 0)
        return bad;
    if (n < 0)
        return kiln_pprof_bad_wire(in, n);
    return id_map_put(in, &in->functions, id, kiln_builder_function(in->b, &function));
}

/* ---- locations ---- */

static int read_line(struct kiln_pprof_in *in, struct kiln_str message, struct kiln_line *line)
{
    struct kiln_pb r = kiln_pb_of(message);
    struct kiln_pb_field f;
    int n;

    *line = (struct kiln_line){0};
    while ((n = kiln_pb_next(&r, &f)) > 0) {
        switch (f.tag) {
        case KILN_PB_VARINT(LINE_FUNCTION_ID):
            line->function = f.number ? kiln_pprof_id(&in->functions, f.number) : 0;
            if (KILN_UNLIKELY(line->function == NO_INDEX))
                return kiln_pprof_fail(in, KILN_E_RANGE, "function_id", "no function has id %llu",
                                       (unsigned long long)f.number);
            break;
        case KILN_PB_VARINT(LINE_LINE):
            line->line = (int64_t)f.number;
            break;
        case KILN_PB_VARINT(LINE_COLUMN):
            line->column = (int64_t)f.number;
            break;
        default:
            break;
        }
    }
    return n < 0 ? kiln_pprof_bad_wire(in, n) : 0;
}

/* Reads one more line behind the `n` there are. */
static int add_line(struct kiln_pprof_in *in, struct kiln_str message, uint32_t n)
{
    int r;

    if (n == in->line_cap) {
        struct kiln_line *more =
            kiln_builder_scratch(in->b, (size_t)in->line_cap * 2 * sizeof(*more));

        if (!more)
            return kiln_pprof_builder_failure(in);
        memcpy(more, in->lines, n * sizeof(*more));
        in->lines = more;
        in->line_cap *= 2;
    }
    r = read_line(in, message, &in->lines[n]);
    if (KILN_UNLIKELY(r < 0))
        kiln_err_within(in->err, "line[%u]", n);
    return r;
}

static int read_location(struct kiln_pprof_in *in, struct kiln_str message,
                         __attribute__((unused)) uint32_t i)
{
    struct kiln_pb r = kiln_pb_of(message);
    struct kiln_location location = {0};
    struct kiln_pb_field f;
    uint32_t n_lines = 0;
    uint64_t id = 0;
    int n, bad = 0;

    while (bad == 0 && (n = kiln_pb_next(&r, &f)) > 0) {
        switch (f.tag) {
        case KILN_PB_VARINT(LOCATION_ID):
            id = f.number;
            break;
        case KILN_PB_VARINT(LOCATION_MAPPING_ID):
            location.mapping = f.number ? kiln_pprof_id(&in->mappings, f.number) : 0;
            if (KILN_UNLIKELY(location.mapping == NO_INDEX))
                bad = kiln_pprof_fail(in, KILN_E_RANGE, "mapping_id", "no mapping has id %llu",
                                      (unsigned long long)f.number);
            break;
        case KILN_PB_VARINT(LOCATION_ADDRESS):
            location.address = f.number;
            break;
        case KILN_PB_BYTES(LOCATION_LINE):
            bad = add_line(in, f.bytes, n_lines++);
            break;
        case KILN_PB_VARINT(LOCATION_IS_FOLDED):
            if (f.number && !in->folded_set) {
                uint32_t attr = flag_attr(in, ATTR_IS_FOLDED, true);

                in->folded_set = kiln_builder_set(in->b, &attr, 1, NULL);
            }
            location.attrs = f.number ? in->folded_set : 0;
            break;
        default:
            break;
        }
    }
    if (bad < 0)
        return bad;
    if (n < 0)
        return kiln_pprof_bad_wire(in, n);
    return id_map_put(in, &in->locations, id,
                      kiln_builder_location(in->b, &location, in->lines, n_lines));
}

/* ---- all of it ---- */

/* Makes room for the tables that are about to come. */
static int prepare(struct kiln_pprof_in *in)
{
    const struct offset_list *lists = in->lists;
    struct kiln_counts counts = {
        .strings = lists[PROFILE_STRING_TABLE].n,
        .functions = lists[PROFILE_FUNCTION].n,
        .locations = lists[PROFILE_LOCATION].n,
        .lines = lists[PROFILE_LOCATION].n + lists[PROFILE_LOCATION].n / 4, /* some inlined */
    };

    kiln_builder_expect(in->b, &counts);
    in->strings =
        kiln_builder_scratch(in->b, ((size_t)lists[PROFILE_STRING_TABLE].n + 1) * sizeof(uint32_t));
    in->line_cap = 16;
    in->lines = kiln_builder_scratch(in->b, in->line_cap * sizeof(*in->lines));
    if (!in->strings || !in->lines || !id_map_init(in, &in->mappings, lists[PROFILE_MAPPING].n) ||
        !id_map_init(in, &in->functions, lists[PROFILE_FUNCTION].n) ||
        !id_map_init(in, &in->locations, lists[PROFILE_LOCATION].n))
        return kiln_pprof_builder_failure(in);
    return 0;
}

static int read_tables(struct kiln_pprof_in *in)
{
    int r;

    if (in->lists[PROFILE_STRING_TABLE].n == 0)
        return kiln_pprof_fail(in, KILN_E_MALFORMED, "string_table", "there is none");
    r = prepare(in);
    if (r == 0)
        r = kiln_pprof_each(in, PROFILE_STRING_TABLE, "string_table", read_string);
    if (r == 0)
        r = kiln_pprof_each(in, PROFILE_MAPPING, "mapping", read_mapping);
    if (r == 0)
        r = kiln_pprof_each(in, PROFILE_FUNCTION, "function", read_function);
    if (r == 0)
        r = kiln_pprof_each(in, PROFILE_LOCATION, "location", read_location);
    return r;
}

int kiln_pprof_decode(struct kiln_str raw, struct kiln_builder *b, struct kiln_err *err)
{
    struct kiln_pprof_in in = {.raw = raw, .b = b, .err = err};
    const char *old = kiln_pprof_old_text(raw);
    int r;

    if (raw.len == 0)
        return kiln_pprof_fail(&in, KILN_E_TRUNCATED, NULL, "the input is empty");
    if (old)
        return kiln_pprof_fail(
            &in, KILN_E_UNSUPPORTED, NULL,
            "this is an old %s profile in text form; `go tool pprof -proto` makes "
            "a pprof of it",
            old);
    if (raw.len > UINT32_MAX)
        return kiln_pprof_fail(&in, KILN_E_LIMIT, NULL, "more than 4 GiB");
    r = scan(&in);
    if (r == 0)
        r = read_tables(&in);
    if (r == 0)
        r = kiln_pprof_read_profiles(&in);
    return r;
}
