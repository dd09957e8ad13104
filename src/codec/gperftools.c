/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is words of 32 or 64 bits, in the order of bytes of the machine that wrote it, then
 * text:
 *
 *   0 3 0 PERIOD 0                    header; period in microseconds; the second 0 is 1 from Java
 *   COUNT DEPTH ADDRESS...            a stack, leaf first, and how often it was seen
 *   0 1 0                             the end of the stacks
 *   /proc/self/maps                   or, from Java, "0xADDRESS function (file:line)" a line
 *
 * All addresses but the leaf's are return addresses; one less is inside the call.
 */
#include <errno.h>

#include "base/hash.h"
#include "codec/gperftools.h"
#include "codec/gperftools_maps.h"
#include "codec/pprof_int.h"

#define HEADER_WORDS 5u
#define STRIPS_MAX   2u  /* frames of a signal handler that are taken away */
#define SIMILAR      32u /* one stack in so many may lack the handler's frame */

/* Frames that never belong to the program, for readers of pprof. */
#define DROP_FRAMES                                                                                \
    KILN_STR("ProfileData::Add|ProfileData::prof_handler|CpuProfiler::prof_handler|"               \
             "__pthread_sighandler|__restore")

/* A table from numbers to indexes, in scratch memory. */
struct number_slot {
    uint64_t key;
    uint32_t value; /* one more than the index; 0: free */
};

struct numbers {
    struct number_slot *slots;
    uint32_t n_slots, n;
};

/* One stack of the file. */
struct record {
    uint32_t first; /* the word with the leaf's address */
    uint32_t depth;
    uint32_t strip; /* addresses behind the leaf that are left out */
};

/* What is known of one address. */
struct place {
    uint64_t address;
    uint32_t mapping; /* entry of the map, or NO_INDEX */
    uint32_t function;
    int64_t line;
    bool named; /* has function and line */
    uint32_t location;
};

struct reader {
    struct kiln_str raw;
    struct kiln_builder *b;
    struct kiln_err *err;
    unsigned size; /* bytes of a word */
    bool big_endian;
    bool java;
    uint64_t period_us;
    struct record *records;
    uint32_t n_records, cap_records;
    struct place *places;
    uint32_t n_places, cap_places;
    struct numbers by_address, by_name;
    size_t text; /* where the text starts */
    uint32_t depth_max;
};

/* ---- words ---- */

static uint64_t word(const struct reader *r, uint32_t i)
{
    const char *at = r->raw.ptr + (size_t)i * r->size;
    uint64_t wide;
    uint32_t narrow;

    if (r->size == 8) {
        memcpy(&wide, at, sizeof(wide));
        return r->big_endian ? __builtin_bswap64(wide) : wide;
    }
    memcpy(&narrow, at, sizeof(narrow));
    return r->big_endian ? __builtin_bswap32(narrow) : narrow;
}

/* Tries one size and order of words. */
static bool header_fits(struct reader *r, unsigned size, bool big_endian)
{
    r->size = size;
    r->big_endian = big_endian;
    if (r->raw.len < (size_t)size * HEADER_WORDS || word(r, 0) != 0 || word(r, 1) != 3 ||
        word(r, 2) > 1 || word(r, 3) == 0 || word(r, 4) != 0)
        return false;
    r->java = word(r, 2) == 1;
    r->period_us = word(r, 3);
    return r->period_us <= INT64_MAX / 1000;
}

static bool read_header(struct reader *r)
{
    return header_fits(r, 4, false) || header_fits(r, 4, true) || header_fits(r, 8, false) ||
           header_fits(r, 8, true);
}

bool kiln_gperftools_detect(struct kiln_str content)
{
    struct reader r = {.raw = content};

    return read_header(&r);
}

/* ---- memory ---- */

static int out_of_memory(struct reader *r)
{
    int code = kiln_builder_error(r->b);

    return kiln_err_set(r->err, code, NULL, "%s", kiln_err_text(code));
}

/* Room for one more element in an array of scratch memory; false on failure. */
static bool scratch_room(struct reader *r, void **array, uint32_t n, uint32_t *cap, size_t size)
{
    uint32_t more = *cap ? *cap * 2 : 64;
    void *grown;

    if (n < *cap)
        return true;
    if (more < *cap)
        kiln_builder_fail(r->b, KILN_E_LIMIT);
    grown = kiln_builder_scratch(r->b, more * size);
    if (!grown)
        return false;
    if (n)
        memcpy(grown, *array, n * size);
    *array = grown;
    *cap = more;
    return true;
}

static struct number_slot *number_slot(const struct numbers *t, uint64_t key)
{
    uint32_t at = (uint32_t)kiln_hash_mix(key, 1) & (t->n_slots - 1);

    while (t->slots[at].value && t->slots[at].key != key)
        at = (at + 1) & (t->n_slots - 1);
    return &t->slots[at];
}

/* The slot for a key, free if it is new; NULL on failure. */
static struct number_slot *numbers_find(struct reader *r, struct numbers *t, uint64_t key)
{
    if (t->n * 2 >= t->n_slots) {
        struct numbers grown = {.n_slots = t->n_slots ? t->n_slots * 2 : 256, .n = t->n};
        size_t bytes = grown.n_slots * sizeof(*grown.slots);

        grown.slots = kiln_builder_scratch(r->b, bytes);
        if (!grown.slots)
            return NULL;
        memset(grown.slots, 0, bytes);
        for (uint32_t i = 0; i < t->n_slots; i++) {
            if (t->slots[i].value)
                *number_slot(&grown, t->slots[i].key) = t->slots[i];
        }
        *t = grown;
    }
    return number_slot(t, key);
}

/* ---- stacks ---- */

/* Address `i` of a stack, 0 being the leaf. */
static uint64_t address(const struct reader *r, const struct record *record, uint32_t i)
{
    uint64_t found = word(r, record->first + i + (i ? record->strip : 0));

    return i && !r->java ? found - 1 : found;
}

static uint32_t depth(const struct record *record)
{
    return record->depth - record->strip;
}

/* Gives every address of a stack a place, in the order in which they come. */
static int add_places(struct reader *r, const struct record *record)
{
    for (uint32_t i = 0; i < depth(record); i++) {
        uint64_t a = address(r, record, i);
        struct number_slot *slot = numbers_find(r, &r->by_address, a);

        if (!slot)
            return out_of_memory(r);
        if (slot->value)
            continue;
        if (!scratch_room(r, (void **)&r->places, r->n_places, &r->cap_places, sizeof(*r->places)))
            return out_of_memory(r);
        r->places[r->n_places] = (struct place){.address = a, .mapping = NO_INDEX};
        *slot = (struct number_slot){a, ++r->n_places};
        r->by_address.n++;
    }
    return 0;
}

static int read_records(struct reader *r)
{
    uint32_t n_words = (uint32_t)(r->raw.len / r->size), at = HEADER_WORDS;

    while ((size_t)at * r->size < r->raw.len) {
        struct record record = {.first = at + 2};
        uint64_t count, n;

        if (n_words - at < 2)
            return kiln_err_set(r->err, KILN_E_TRUNCATED, NULL, "the stacks have no end mark");
        count = word(r, at);
        n = word(r, at + 1);
        if (n > n_words - at - 2)
            return kiln_err_set(r->err, KILN_E_TRUNCATED, NULL,
                                "it has %llu addresses, but only %u words are left",
                                (unsigned long long)n, n_words - at - 2);
        at += 2 + (uint32_t)n;
        record.depth = (uint32_t)n;
        if (count == 0 && n == 1 && word(r, record.first) == 0)
            break;
        if (n > kiln_builder_limits(r->b)->stack_depth)
            return kiln_err_set(r->err, KILN_E_LIMIT, NULL, "more than %u addresses",
                                kiln_builder_limits(r->b)->stack_depth);
        if (record.depth > r->depth_max)
            r->depth_max = record.depth;
        if (!scratch_room(r, (void **)&r->records, r->n_records, &r->cap_records,
                          sizeof(*r->records)))
            return out_of_memory(r);
        r->records[r->n_records++] = record;
    }
    r->text = (size_t)at * r->size;
    return 0;
}

/*
 * If nearly all stacks have the same second frame, it is the one that the signal handler pushed:
 * takes it away.  An address that has nearly all votes wins a vote in which different ones cancel
 * out.
 */
static void strip_handler(struct reader *r)
{
    uint64_t winner = 0;
    uint32_t votes = 0, count = 0;

    for (uint32_t i = 0; i < r->n_records; i++) {
        if (depth(&r->records[i]) <= 1)
            continue;
        if (votes == 0)
            winner = address(r, &r->records[i], 1);
        votes += address(r, &r->records[i], 1) == winner ? 1 : UINT32_MAX;
    }
    for (uint32_t i = 0; i < r->n_records; i++)
        count += depth(&r->records[i]) > 1 && address(r, &r->records[i], 1) == winner;
    if (count == 0 || count < r->n_records - r->n_records / SIMILAR)
        return;
    for (uint32_t i = 0; i < r->n_records; i++) {
        if (depth(&r->records[i]) > 1 && address(r, &r->records[i], 1) == winner)
            r->records[i].strip++;
    }
}

/* A handler may give the leaf twice, the second time as a return address: takes that away. */
static void strip_second_leaf(struct reader *r)
{
    for (uint32_t i = 0; i < r->n_records; i++) {
        struct record *record = &r->records[i];

        if (depth(record) > 1 && address(r, record, 0) == address(r, record, 1) + 1)
            record->strip++;
    }
}

/* ---- places ---- */

static int find_mappings(struct reader *r)
{
    struct kiln_str text = {r->raw.ptr + r->text, r->raw.len - r->text};
    uint32_t *indexes;
    struct kiln_map map;
    int n = kiln_map_init(&map, r->b, r->java ? KILN_STR_NONE : text);

    for (uint32_t i = 0; n == 0 && i < r->n_places; i++) {
        if (!r->places[i].named)
            n = kiln_map_find(&map, r->places[i].address, &r->places[i].mapping);
    }
    indexes = n == 0 ? kiln_builder_scratch(r->b, (map.n + 1) * sizeof(*indexes)) : NULL;
    if (n == 0 && !indexes)
        return out_of_memory(r);
    if (n < 0)
        return kiln_err_set(r->err, n, "memory map", "%s", kiln_err_text(n));
    for (uint32_t i = 0; i < map.n; i++)
        indexes[i] = kiln_map_add(&map, i);
    for (uint32_t i = 0; i < r->n_places; i++)
        r->places[i].mapping = r->places[i].mapping == NO_INDEX ? 0 : indexes[r->places[i].mapping];
    return 0;
}

static void add_locations(struct reader *r)
{
    for (uint32_t i = 0; i < r->n_places; i++) {
        struct place *place = &r->places[i];
        struct kiln_location location = {.address = r->java ? 0 : place->address,
                                         .mapping = place->mapping};
        struct kiln_line line = {.function = place->function, .line = place->line};

        place->location = kiln_builder_location(r->b, &location, &line, place->named);
    }
}

/* ---- names from Java ---- */

/* Splits "function (file:line)", "function (path)" or a bare name. */
static void split_name(struct kiln_str text, struct kiln_str *name, struct kiln_str *file,
                       int64_t *line)
{
    size_t open = text.len, colon = text.len - 1;

    *name = text;
    if (kiln_str_contains(text, KILN_STR("generated stub/JIT")) && text.ptr[text.len - 1] != ')')
        *name = KILN_STR("STUB");
    if (text.ptr[text.len - 1] != ')')
        return;
    while (open > 0 && text.ptr[open - 1] != '(')
        open--;
    if (open < 2 || text.ptr[open - 2] != ' ')
        return;
    *name = kiln_str_trim((struct kiln_str){text.ptr, open - 2});
    *file = (struct kiln_str){text.ptr + open, text.len - 1 - open};
    while (colon > open && text.ptr[colon - 1] != ':')
        colon--;
    if (colon > open + 1 &&
        kiln_str_parse_i64((struct kiln_str){text.ptr + colon, text.len - 1 - colon}, line) == 0) {
        file->len = colon - 1 - open;
        *line = *line > 0 ? *line : 0;
        return;
    }
    for (size_t i = file->len; i-- > 0;) { /* the path of a library: its name will do */
        if (file->ptr[i] == '/') {
            *file = (struct kiln_str){file->ptr + i + 1, file->len - i - 1};
            break;
        }
    }
}

/* The function of this name; the first one to come with it says the file. */
static int name_function(struct reader *r, struct kiln_str name, struct kiln_str file,
                         uint32_t *ret)
{
    struct kiln_function f = {.name = kiln_builder_string_ref(r->b, name)};
    struct number_slot *slot = numbers_find(r, &r->by_name, f.name);

    if (!slot)
        return out_of_memory(r);
    if (!slot->value) {
        f.system_name = f.name;
        f.filename = kiln_builder_string_ref(r->b, file);
        *slot = (struct number_slot){f.name, kiln_builder_function(r->b, &f) + 1};
        r->by_name.n++;
    }
    *ret = slot->value - 1;
    return 0;
}

static int name_place(struct reader *r, struct kiln_str text)
{
    struct kiln_str name, file = KILN_STR_NONE;
    struct kiln_str number = kiln_str_cut(&text, ' ');
    struct number_slot *slot;
    struct place *place;
    int64_t line = 0;
    uint64_t a;

    text = kiln_str_trim(text);
    if (!kiln_str_starts(number, KILN_STR("0x")) || kiln_str_parse_hex(number, &a) < 0 ||
        !text.len || !kiln_utf8_valid(text))
        return 0;
    slot = numbers_find(r, &r->by_address, a);
    if (!slot)
        return out_of_memory(r);
    if (!slot->value)
        return 0; /* of no stack */
    split_name(text, &name, &file, &line);
    place = &r->places[slot->value - 1];
    place->named = true;
    place->line = line;
    return name_function(r, name, file, &place->function);
}

static int read_names(struct reader *r)
{
    struct kiln_str text = {r->raw.ptr + r->text, r->raw.len - r->text};
    int n = 0;

    while (text.len && n == 0)
        n = name_place(r, kiln_str_trim(kiln_str_cut(&text, '\n')));
    return n;
}

/* ---- the batch ---- */

static struct kiln_value_type type(struct kiln_builder *b, struct kiln_str name,
                                   struct kiln_str unit)
{
    return (struct kiln_value_type){kiln_builder_string(b, name), kiln_builder_string(b, unit)};
}

/* Resource, scope and the two profiles, CPU time first; as the pprof decoder would give them. */
static void add_profiles(struct reader *r)
{
    struct kiln_builder *b = r->b;
    struct kiln_value order[] = {kiln_value_int(1), kiln_value_int(0)};
    uint32_t attr = kiln_builder_attr(b, kiln_builder_string(b, ATTR_TYPE_ORDER),
                                      kiln_builder_array(b, order, 2), 0);
    uint32_t drop = kiln_builder_text_attr(b, ATTR_DROP_FRAMES, DROP_FRAMES);
    struct kiln_profile profile = {
        .sample_type = type(b, KILN_STR("cpu"), KILN_STR("nanoseconds")),
        .period_type = type(b, KILN_STR("cpu"), KILN_STR("nanoseconds")),
        .period = (int64_t)r->period_us * 1000,
        .attrs = kiln_builder_set(b, &drop, 1, NULL),
    };

    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){.attrs = kiln_builder_set(b, &attr, 1, NULL)});
    kiln_builder_add_profile(b, &profile);
    profile.sample_type = type(b, KILN_STR("samples"), KILN_STR("count"));
    kiln_builder_add_profile(b, &profile);
}

static int add_row(struct reader *r, const struct kiln_grid *grid, uint32_t i)
{
    const struct record *record = &r->records[i];
    uint64_t count = word(r, record->first - 2);
    uint32_t *stack = kiln_builder_stack_room(r->b, r->depth_max);
    int64_t values[2];

    if (!stack)
        return out_of_memory(r);
    for (uint32_t k = 0; k < depth(record); k++)
        stack[k] =
            r->places[number_slot(&r->by_address, address(r, record, k))->value - 1].location;
    values[1] = count > INT64_MAX ? INT64_MAX : (int64_t)count;
    if (__builtin_mul_overflow(values[1], (int64_t)r->period_us * 1000, &values[0]))
        values[0] = INT64_MAX;
    kiln_builder_set_row(r->b, grid, i, kiln_builder_stack_take(r->b, depth(record)), 0, values);
    return 0;
}

static int add_rows(struct reader *r)
{
    struct kiln_grid grid;
    int n = kiln_builder_open_grid(r->b, 2, r->n_records, &grid);

    if (n < 0)
        return out_of_memory(r);
    for (uint32_t i = 0; n == 0 && i < r->n_records; i++)
        n = add_row(r, &grid, i);
    return n < 0 || kiln_builder_error(r->b) == 0 ? n : out_of_memory(r);
}

int kiln_gperftools_decode(struct kiln_str raw, struct kiln_builder *b, struct kiln_err *err)
{
    struct reader r = {.raw = raw, .b = b, .err = err};
    int n;

    if (!read_header(&r))
        return kiln_err_set(err, KILN_E_MALFORMED, "header", "it is not that of a CPU profile");
    if (raw.len / r.size > UINT32_MAX)
        return kiln_err_set(err, KILN_E_LIMIT, NULL, "more than 2^32 words");
    n = read_records(&r);
    if (n < 0) {
        kiln_err_within(err, "stack[%u]", r.n_records);
        return n;
    }
    for (uint32_t i = 0; i < STRIPS_MAX && !r.java; i++)
        strip_handler(&r);
    for (uint32_t i = 0; i < r.n_records && n == 0; i++)
        n = add_places(&r, &r.records[i]);
    if (!r.java)
        strip_second_leaf(&r);
    else if (n == 0)
        n = read_names(&r);
    if (n == 0)
        n = find_mappings(&r);
    if (n < 0)
        return n;
    add_locations(&r);
    add_profiles(&r);
    return add_rows(&r);
}
