/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a pprof.  The dictionary goes out as it is: an entry's index is its id, and entry 0,
 * which stands for nothing, gets an id behind the others where something refers to it all the same.
 *
 * Bytes are written backwards (codec/pb.h), and the string table fills up on the way; so fields 1
 * to 5 are written first, and what follows them (strings, then the single fields) into a second
 * buffer that goes behind the first.  See pprof_decode.c for the messages.
 */
#include <errno.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/mem.h"
#include "codec/pprof_out.h"
#include "core/frame.h"

#define MEMORY_MAX  (1u << 30)
#define ENTRIES_MAX (1u << 30)

/* ---- strings ---- */

static void fail(struct kiln_pprof_out *o, int code)
{
    if (!o->error)
        o->error = code;
}

static uint32_t append_string(struct kiln_pprof_out *o, struct kiln_str s)
{
    int r = kiln_grow(&o->budget, (void **)&o->strings, &o->cap_strings, (uint64_t)o->n_strings + 1,
                      sizeof(*o->strings), ENTRIES_MAX);

    if (r < 0) {
        fail(o, r);
        return 0;
    }
    o->strings[o->n_strings] = s;
    return o->n_strings++;
}

uint32_t kiln_pprof_put_string(struct kiln_pprof_out *o, uint32_t string)
{
    if (string && !o->string_of[string])
        o->string_of[string] = append_string(o, o->batch->dict.strings[string]);
    return o->string_of[string];
}

uint32_t kiln_pprof_put_text(struct kiln_pprof_out *o, struct kiln_str text)
{
    uint64_t hash = kiln_hash(text.ptr, text.len);
    uint32_t place;
    int r;

    for (struct kiln_probe p = kiln_intern_probe(&o->made, hash); kiln_intern_next(&o->made, &p);) {
        if (kiln_str_eq(o->strings[p.entry], text))
            return p.entry;
    }
    text = kiln_arena_copy(&o->arena, text);
    if (!text.ptr) {
        fail(o, -ENOMEM);
        return 0;
    }
    place = append_string(o, text);
    r = kiln_intern_add(&o->made, &o->budget, hash, place);
    if (r < 0)
        fail(o, r);
    return place;
}

/* ---- life ---- */

int kiln_pprof_out_init(struct kiln_pprof_out *o, const struct kiln_batch *batch, size_t max,
                        struct kiln_pprof_losses *losses)
{
    const struct kiln_dict *d = &batch->dict;
    int r;

    *o = (struct kiln_pprof_out){.batch = batch, .losses = losses};
    o->budget.limit = MEMORY_MAX;
    kiln_arena_init(&o->arena, &o->budget);
    r = kiln_pprof_rows_init(&o->rows, batch, losses);
    if (r == 0)
        r = kiln_reserve(&o->budget, (void **)&o->string_of, &o->cap_string_of, d->n_strings,
                         sizeof(*o->string_of), ENTRIES_MAX);
    if (r == 0)
        r = kiln_reserve(&o->budget, (void **)&o->mapping_flags, &o->cap_mapping_flags,
                         d->n_mappings, sizeof(*o->mapping_flags), ENTRIES_MAX);
    if (r < 0) {
        kiln_pprof_out_done(o);
        return r;
    }
    memset(o->string_of, 0, d->n_strings * sizeof(*o->string_of));
    memset(o->mapping_flags, 0, d->n_mappings * sizeof(*o->mapping_flags));
    append_string(o, KILN_STR(""));
    kiln_pb_out_init(&o->w, (size_t)d->n_frames * 2 + (size_t)d->n_locations * 24 + 4096, max);
    return 0;
}

void kiln_pprof_out_done(struct kiln_pprof_out *o)
{
    kiln_pprof_rows_done(&o->rows);
    kiln_pb_out_done(&o->w);
    kiln_arena_done(&o->arena);
    kiln_intern_done(&o->made, &o->budget);
    kiln_free(o->strings);
    kiln_free(o->string_of);
    kiln_free(o->mapping_flags);
}

/* ---- functions, locations ---- */

static bool line_without_function(const struct kiln_dict *d)
{
    for (uint32_t i = 0; i < d->n_lines; i++) {
        if (d->lines[i].function == 0)
            return true;
    }
    return false;
}

static void put_function(struct kiln_pprof_out *o, uint32_t i, uint64_t id)
{
    const struct kiln_function *f = &o->batch->dict.functions[i];
    size_t mark = kiln_pb_mark(&o->w);

    kiln_pb_put_number(&o->w, FUNCTION_START_LINE, (uint64_t)f->start_line);
    kiln_pb_put_number(&o->w, FUNCTION_FILENAME, kiln_pprof_put_string(o, f->filename));
    kiln_pb_put_number(&o->w, FUNCTION_SYSTEM_NAME, kiln_pprof_put_string(o, f->system_name));
    kiln_pb_put_number(&o->w, FUNCTION_NAME, kiln_pprof_put_string(o, f->name));
    kiln_pb_put_number(&o->w, FUNCTION_ID, id);
    kiln_pb_put_message(&o->w, PROFILE_FUNCTION, mark);
}

static void put_functions(struct kiln_pprof_out *o)
{
    const struct kiln_dict *d = &o->batch->dict;

    if (line_without_function(d))
        put_function(o, 0, d->n_functions);
    for (uint32_t i = d->n_functions; i-- > 1;)
        put_function(o, i, i);
}

/* The id of the mapping that stands for a frame type; 0 if there are too many. */
static uint64_t kind_mapping(struct kiln_pprof_out *o, uint32_t kind)
{
    uint32_t i = 0;

    while (i < o->n_kinds && o->kinds[i] != kind)
        i++;
    if (i == KILN_ARRAY_LEN(o->kinds))
        return 0;
    if (i == o->n_kinds)
        o->kinds[o->n_kinds++] = kind;
    return (uint64_t)o->batch->dict.n_mappings + i;
}

/* What the attributes of a location come to. */
struct location_facts {
    bool folded;
    uint32_t kind; /* string: the frame type */
    uint32_t others;
};

static struct location_facts location_facts(const struct kiln_dict *d, uint32_t set)
{
    struct location_facts facts = {0};
    struct kiln_range range = d->sets[set];

    for (uint32_t i = 0; i < range.n; i++) {
        const struct kiln_attr *attr = &d->attrs[d->members[range.first + i]];
        struct kiln_str key = d->strings[attr->key];

        if (attr->value.kind == KILN_VALUE_BOOL && kiln_str_eq(key, ATTR_IS_FOLDED))
            facts.folded = attr->value.flag;
        else if (attr->value.kind == KILN_VALUE_STRING && kiln_str_eq(key, ATTR_FRAME_TYPE))
            facts.kind = (uint32_t)attr->value.str;
        else
            facts.others++;
    }
    return facts;
}

/* A frame without a name is shown by its module and address: a made-up module would rename it. */
static bool is_named(const struct kiln_dict *d, const struct kiln_location *location)
{
    bool named = location->n != 0;

    for (uint32_t k = 0; k < location->n; k++) {
        const struct kiln_function *f = &d->functions[d->lines[location->first + k].function];

        named = named && (f->name || f->system_name);
    }
    return named;
}

static void put_location(struct kiln_pprof_out *o, uint32_t i, uint64_t id,
                         const struct location_facts *facts)
{
    const struct kiln_dict *d = &o->batch->dict;
    const struct kiln_location *location = &d->locations[i];
    uint64_t mapping = location->mapping;
    size_t mark = kiln_pb_mark(&o->w);

    kiln_pb_put_number(&o->w, LOCATION_IS_FOLDED, facts->folded);
    for (uint32_t k = location->n; k-- > 0;) {
        const struct kiln_line *line = &d->lines[location->first + k];
        size_t line_mark = kiln_pb_mark(&o->w);

        kiln_pb_put_number(&o->w, LINE_COLUMN, (uint64_t)line->column);
        kiln_pb_put_number(&o->w, LINE_LINE, (uint64_t)line->line);
        kiln_pb_put_number(&o->w, LINE_FUNCTION_ID,
                           line->function ? line->function : d->n_functions);
        kiln_pb_put_message(&o->w, LOCATION_LINE, line_mark);
    }
    if (!mapping && facts->kind && is_named(d, location))
        mapping = kind_mapping(o, facts->kind);
    o->losses->attributes += facts->others + (facts->kind && mapping < d->n_mappings);
    kiln_pb_put_number(&o->w, LOCATION_ADDRESS, location->address);
    kiln_pb_put_number(&o->w, LOCATION_MAPPING_ID, mapping);
    kiln_pb_put_number(&o->w, LOCATION_ID, id);
    kiln_pb_put_message(&o->w, PROFILE_LOCATION, mark);
}

static bool frame_without_location(const struct kiln_dict *d)
{
    for (uint32_t i = 0; i < d->n_frames; i++) {
        if (d->frames[i] == 0)
            return true;
    }
    return false;
}

static void put_locations(struct kiln_pprof_out *o)
{
    const struct kiln_dict *d = &o->batch->dict;
    struct location_facts facts = {0};
    uint32_t set = 0; /* that the facts are of: neighbours mostly have the same */

    if (frame_without_location(d))
        put_location(o, 0, d->n_locations, &facts);
    for (uint32_t i = d->n_locations; i-- > 1;) {
        if (d->locations[i].attrs != set) {
            set = d->locations[i].attrs;
            facts = location_facts(d, set);
        }
        put_location(o, i, i, &facts);
    }
}

/* ---- mappings ---- */

/* What is known of the locations in each mapping: for mappings that do not say it themselves. */
static void find_mapping_flags(struct kiln_pprof_out *o)
{
    const struct kiln_dict *d = &o->batch->dict;

    for (uint32_t i = 1; i < d->n_locations; i++) {
        const struct kiln_location *location = &d->locations[i];
        uint8_t flags =
            location->n > 1 ? 1u << (MAPPING_HAS_INLINE_FRAMES - MAPPING_HAS_FUNCTIONS) : 0;

        for (uint32_t k = 0; k < location->n; k++) {
            const struct kiln_line *line = &d->lines[location->first + k];
            const struct kiln_function *f = &d->functions[line->function];

            flags |=
                (uint8_t)((f->name != 0 && !kiln_frame_is_made_up(d, f)) |
                          (f->filename != 0) << (MAPPING_HAS_FILENAMES - MAPPING_HAS_FUNCTIONS) |
                          (line->line != 0) << (MAPPING_HAS_LINE_NUMBERS - MAPPING_HAS_FUNCTIONS));
        }
        o->mapping_flags[location->mapping] |= flags;
    }
}

/* What the attributes of a mapping come to. */
struct mapping_facts {
    uint32_t build_id; /* string */
    uint32_t build_id_rank;
    uint32_t flags;
    bool says_flags;
};

static void take_build_id(struct kiln_pprof_out *o, struct mapping_facts *facts, uint32_t string,
                          uint32_t rank)
{
    o->losses->attributes += facts->build_id != 0;
    if (rank <= facts->build_id_rank)
        return;
    facts->build_id = string;
    facts->build_id_rank = rank;
}

static void take_mapping_attr(struct kiln_pprof_out *o, struct mapping_facts *facts,
                              const struct kiln_attr *attr)
{
    struct kiln_str key = o->batch->dict.strings[attr->key];

#define X(field, name)                                                                             \
    if (attr->value.kind == KILN_VALUE_BOOL && kiln_str_eq(key, KILN_STR(name))) {                 \
        facts->flags |= (uint32_t)attr->value.flag << ((field)-MAPPING_HAS_FUNCTIONS);             \
        facts->says_flags = true;                                                                  \
        return;                                                                                    \
    }
    MAPPING_FLAGS(X)
#undef X
    if (attr->value.kind != KILN_VALUE_STRING)
        o->losses->attributes++;
    else if (kiln_str_eq(key, ATTR_BUILD_ID_GNU))
        take_build_id(o, facts, (uint32_t)attr->value.str, 3);
    else if (kiln_str_eq(key, ATTR_BUILD_ID_GO))
        take_build_id(o, facts, (uint32_t)attr->value.str, 2);
    else if (kiln_str_starts(key, KILN_STR("process.executable.build_id.")))
        take_build_id(o, facts, (uint32_t)attr->value.str, 1);
    else
        o->losses->attributes++;
}

static void put_mapping(struct kiln_pprof_out *o, uint32_t i)
{
    const struct kiln_dict *d = &o->batch->dict;
    const struct kiln_mapping *m = &d->mappings[i];
    struct mapping_facts facts = {0};
    struct kiln_range range = d->sets[m->attrs];
    size_t mark = kiln_pb_mark(&o->w);

    for (uint32_t k = 0; k < range.n; k++)
        take_mapping_attr(o, &facts, &d->attrs[d->members[range.first + k]]);
    if (!facts.says_flags)
        facts.flags = o->mapping_flags[i];
    for (uint32_t flag = MAPPING_HAS_INLINE_FRAMES; flag >= MAPPING_HAS_FUNCTIONS; flag--)
        kiln_pb_put_number(&o->w, flag, facts.flags >> (flag - MAPPING_HAS_FUNCTIONS) & 1);
    kiln_pb_put_number(&o->w, MAPPING_BUILD_ID, kiln_pprof_put_string(o, facts.build_id));
    kiln_pb_put_number(&o->w, MAPPING_FILENAME, kiln_pprof_put_string(o, m->filename));
    kiln_pb_put_number(&o->w, MAPPING_OFFSET, m->offset);
    kiln_pb_put_number(&o->w, MAPPING_LIMIT, m->limit);
    kiln_pb_put_number(&o->w, MAPPING_START, m->start);
    kiln_pb_put_number(&o->w, MAPPING_ID, i);
    kiln_pb_put_message(&o->w, PROFILE_MAPPING, mark);
}

/* A mapping that only carries a frame type: "[kernel]". */
static void put_kind_mapping(struct kiln_pprof_out *o, uint32_t i)
{
    struct kiln_str kind = o->batch->dict.strings[o->kinds[i]];
    size_t mark = kiln_pb_mark(&o->w);
    char name[64];
    int len =
        snprintf(name, sizeof(name), "[%.*s]", (int)(kind.len > 60 ? 60 : kind.len), kind.ptr);

    kiln_pb_put_number(&o->w, MAPPING_HAS_LINE_NUMBERS, 1);
    kiln_pb_put_number(&o->w, MAPPING_HAS_FILENAMES, 1);
    kiln_pb_put_number(&o->w, MAPPING_HAS_FUNCTIONS, 1);
    kiln_pb_put_number(&o->w, MAPPING_FILENAME,
                       kiln_pprof_put_text(o, (struct kiln_str){name, (size_t)len}));
    kiln_pb_put_number(&o->w, MAPPING_ID, (uint64_t)o->batch->dict.n_mappings + i);
    kiln_pb_put_message(&o->w, PROFILE_MAPPING, mark);
}

static void put_mappings(struct kiln_pprof_out *o)
{
    find_mapping_flags(o);
    for (uint32_t i = o->n_kinds; i-- > 0;)
        put_kind_mapping(o, i);
    for (uint32_t i = o->batch->dict.n_mappings; i-- > 1;)
        put_mapping(o, i);
}

/* ---- samples ---- */

static void put_row(struct kiln_pprof_out *o, uint32_t i)
{
    const struct kiln_dict *d = &o->batch->dict;
    const struct kiln_pprof_row *row = &o->rows.rows[i];
    const int64_t *values = o->rows.values + (size_t)i * o->rows.n_types;
    struct kiln_range stack = d->stacks[row->stack];
    size_t mark = kiln_pb_mark(&o->w), packed;

    kiln_pprof_put_labels(o, row);
    packed = kiln_pb_mark(&o->w);
    for (uint32_t k = o->rows.n_types; k-- > 0;)
        kiln_pb_raw_varint(&o->w, (uint64_t)values[k]);
    kiln_pb_put_message(&o->w, SAMPLE_VALUE, packed);
    packed = kiln_pb_mark(&o->w);
    for (uint32_t k = stack.n; k-- > 0;) {
        uint32_t location = d->frames[stack.first + k];

        kiln_pb_raw_varint(&o->w, location ? location : d->n_locations);
    }
    if (stack.n)
        kiln_pb_put_message(&o->w, SAMPLE_LOCATION_ID, packed);
    kiln_pb_put_message(&o->w, PROFILE_SAMPLE, mark);
}

void kiln_pprof_put_type(struct kiln_pprof_out *o, uint32_t field, struct kiln_value_type type)
{
    size_t mark = kiln_pb_mark(&o->w);

    kiln_pb_put_number(&o->w, TYPE_UNIT, kiln_pprof_put_string(o, type.unit));
    kiln_pb_put_number(&o->w, TYPE_TYPE, kiln_pprof_put_string(o, type.type));
    kiln_pb_put_message(&o->w, field, mark);
}

/* Fields 1 to 5. */
static void put_tables(struct kiln_pprof_out *o)
{
    put_functions(o);
    put_locations(o);
    put_mappings(o);
    for (uint32_t i = o->rows.n_rows; i-- > 0 && !o->error && !o->w.error;)
        put_row(o, i);
    for (uint32_t i = o->rows.n_types; i-- > 0;)
        kiln_pprof_put_type(o, PROFILE_SAMPLE_TYPE, o->rows.types[i]);
}

int kiln_pprof_encode(const struct kiln_batch *batch, const struct kiln_pprof_opts *opts,
                      struct kiln_buf *out, struct kiln_err *err)
{
    struct kiln_pprof_losses losses = {0};
    struct kiln_pprof_out o;
    int r = kiln_pprof_out_init(&o, batch, out->max, &losses);

    if (r == 0) {
        put_tables(&o);
        r = o.error ? o.error : kiln_pb_out_flush(&o.w, out);
        o.w.at = o.w.end; /* the second part: what stands behind the tables */
        if (r == 0) {
            kiln_pprof_put_head(&o);
            for (uint32_t i = o.n_strings; i-- > 0;)
                kiln_pb_put_element(&o.w, PROFILE_STRING_TABLE, o.strings[i]);
            r = o.error ? o.error : kiln_pb_out_flush(&o.w, out);
        }
        kiln_pprof_out_done(&o);
    }
    if (r < 0)
        return kiln_err_set(err, r, NULL, "writing pprof: %s", kiln_err_text(r));
    if (opts && opts->losses)
        *opts->losses = losses;
    return 0;
}
