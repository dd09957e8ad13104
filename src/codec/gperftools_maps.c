/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line is one of
 *
 *   00400000-00fcb000 r-xp 00000000 00:00 21306940 /usr/bin/server      as the kernel writes it
 *   0x400000-0xfcb000 /usr/bin/server (@1000) abc123                    start, end, file, offset,
 * build build=/usr/bin                                                      then $build in files
 * stands for /usr/bin
 *
 * perhaps behind the prefix of a log ("main.cc:12] ").  Mappings that cannot be executed are left
 * out.
 */
#include "codec/gperftools_maps.h"
#include "codec/pprof_int.h"

#define MAPPINGS_MAX   65536u
#define STEPS_MAX      ((uint64_t)1 << 28)
#define VARIABLES_MAX  16u
#define EXPECTED_START 0x400000u

/* Words that a line may define and later lines use. */
struct variables {
    struct kiln_str names[VARIABLES_MAX], values[VARIABLES_MAX];
    uint32_t n;
};

/* ---- one line ---- */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static void skip(struct kiln_str *s, size_t n)
{
    s->ptr += n;
    s->len -= n;
}

/* Cuts the next word off; empty at the end. */
static struct kiln_str next_word(struct kiln_str *rest)
{
    struct kiln_str word;

    while (rest->len && is_space(rest->ptr[0]))
        skip(rest, 1);
    word = (struct kiln_str){rest->ptr, 0};
    while (rest->len && !is_space(rest->ptr[0])) {
        skip(rest, 1);
        word.len++;
    }
    return word;
}

/* The word that comes next, if it only has characters of `set`; else nothing is taken. */
static struct kiln_str word_of(struct kiln_str *rest, const char *set)
{
    struct kiln_str after = *rest, word = next_word(&after);

    for (size_t i = 0; i < word.len; i++) {
        if (!strchr(set, word.ptr[i]) || word.ptr[i] == '\0')
            return KILN_STR_NONE;
    }
    *rest = after;
    return word;
}

#define DIGITS     "0123456789"
#define HEX_DIGITS DIGITS "abcdefABCDEF"

/* Takes a hexadecimal number off the front. */
static bool take_hex(struct kiln_str *rest, uint64_t *ret)
{
    size_t n = 0;

    if (kiln_str_starts(*rest, KILN_STR("0x")))
        skip(rest, 2);
    while (n < rest->len && is_hex(rest->ptr[n]))
        n++;
    if (n == 0 || kiln_str_parse_hex((struct kiln_str){rest->ptr, n}, ret) < 0)
        return false;
    skip(rest, n);
    return true;
}

/* "start-end", with a dash or space between them. */
static bool take_range(struct kiln_str *rest, struct kiln_map_entry *entry)
{
    bool apart = false;

    while (rest->len && is_space(rest->ptr[0]))
        skip(rest, 1);
    if (!take_hex(rest, &entry->start))
        return false;
    for (; rest->len && (is_space(rest->ptr[0]) || (!apart && rest->ptr[0] == '-')); apart = true)
        skip(rest, 1);
    if (!apart || !take_hex(rest, &entry->limit))
        return false;
    if (rest->len && rest->ptr[0] == ':')
        skip(rest, 1);
    return rest->len == 0 || is_space(rest->ptr[0]);
}

/* offset, device, inode, file: the rest of a line of the kernel. */
static bool take_kernel_tail(struct kiln_str rest, struct kiln_map_entry *entry)
{
    struct kiln_str offset = word_of(&rest, HEX_DIGITS);
    struct kiln_str device = word_of(&rest, HEX_DIGITS ":"), inode = word_of(&rest, DIGITS);

    if (!device.len || !kiln_str_contains(device, KILN_STR(":")) || !inode.len ||
        (offset.len && kiln_str_parse_hex(offset, &entry->offset) < 0))
        return false;
    entry->file = next_word(&rest);
    return true;
}

/* file, (@offset), build id: the rest of a short line; each may be missing. */
static bool take_short_tail(struct kiln_str rest, struct kiln_map_entry *entry)
{
    struct kiln_str word = next_word(&rest);

    if (!kiln_str_starts(word, KILN_STR("(@"))) {
        entry->file = word;
        word = next_word(&rest);
    }
    if (kiln_str_starts(word, KILN_STR("(@")) && kiln_str_ends(word, KILN_STR(")"))) {
        if (kiln_str_parse_hex((struct kiln_str){word.ptr + 2, word.len - 3}, &entry->offset) < 0)
            return false;
        word = next_word(&rest);
    }
    entry->build_id = word;
    return true;
}

/* Reads a mapping; false if the line is none, or one without code. */
static bool read_entry(struct kiln_str line, struct kiln_map_entry *ret)
{
    struct kiln_map_entry entry = {0};
    struct kiln_str rights;

    if (!take_range(&line, &entry))
        return false;
    rights = word_of(&line, "-rwxp");
    if (rights.len && !kiln_str_contains(rights, KILN_STR("x")))
        return false;
    if (!take_kernel_tail(line, &entry)) {
        entry.offset = 0;
        if (!take_short_tail(line, &entry))
            return false;
    }
    *ret = entry;
    return true;
}

/* Without "file.cc:12] " at its start. */
static struct kiln_str without_log_prefix(struct kiln_str line)
{
    size_t end = 0, digits;

    while (end < line.len && line.ptr[end] != '[' && line.ptr[end] != ']')
        end++;
    for (digits = end; digits > 0 && line.ptr[digits - 1] >= '0' && line.ptr[digits - 1] <= '9';)
        digits--;
    if (end + 1 < line.len && line.ptr[end] == ']' && is_space(line.ptr[end + 1]) && digits < end &&
        digits > 1 && line.ptr[digits - 1] == ':')
        skip(&line, end + 2);
    return line;
}

static void define(struct variables *v, struct kiln_str line)
{
    struct kiln_str rest = line, name = kiln_str_trim(kiln_str_cut(&rest, '='));

    if (!rest.ptr || !name.len || v->n == VARIABLES_MAX)
        return;
    v->names[v->n] = name;
    v->values[v->n++] = kiln_str_trim(rest);
}

/* The file with a variable at its start replaced by what it stands for. */
static struct kiln_str expand(struct kiln_builder *b, const struct variables *v,
                              struct kiln_str file)
{
    for (uint32_t i = 0; i < v->n && file.len && file.ptr[0] == '$'; i++) {
        struct kiln_str rest = {file.ptr + 1, file.len - 1};
        char *text;

        if (!kiln_str_starts(rest, v->names[i]))
            continue;
        skip(&rest, v->names[i].len);
        text = kiln_builder_alloc(b, v->values[i].len + rest.len);
        if (!text)
            return KILN_STR_NONE;
        memcpy(text, v->values[i].ptr, v->values[i].len);
        if (rest.len)
            memcpy(text + v->values[i].len, rest.ptr, rest.len);
        return (struct kiln_str){text, v->values[i].len + rest.len};
    }
    return file;
}

/* ---- the map ---- */

static int add_entry(struct kiln_map *map, const struct kiln_map_entry *entry)
{
    if (map->n == map->cap) {
        uint32_t cap = map->cap ? map->cap * 2 : 64;
        struct kiln_map_entry *more;

        if (map->n >= MAPPINGS_MAX)
            return KILN_E_LIMIT;
        more = kiln_builder_scratch(map->b, cap * sizeof(*more));
        if (!more)
            return kiln_builder_error(map->b);
        if (map->n)
            memcpy(more, map->entries, map->n * sizeof(*more));
        map->entries = more;
        map->cap = cap;
    }
    map->entries[map->n++] = *entry;
    return 0;
}

/* True if two texts do not contradict each other: an empty one fits all. */
static bool agree(struct kiln_str a, struct kiln_str b)
{
    return !a.len || !b.len || kiln_str_eq(a, b);
}

/* True if `b` goes on where `a` ends, in the same file. */
static bool adjacent(const struct kiln_map_entry *a, const struct kiln_map_entry *b)
{
    return agree(a->file, b->file) && agree(a->build_id, b->build_id) && a->limit == b->start &&
           (!a->offset || !b->offset || a->offset + (a->limit - a->start) == b->offset);
}

static void join_neighbours(struct kiln_map *map)
{
    uint32_t kept = 0;

    for (uint32_t i = 1; i < map->n; i++) {
        struct kiln_map_entry *last = &map->entries[kept], *next = &map->entries[i];

        if (!adjacent(last, next)) {
            map->entries[++kept] = *next;
            continue;
        }
        last->limit = next->limit;
        last->file = next->file.len ? next->file : last->file;
        last->build_id = next->build_id.len ? next->build_id : last->build_id;
    }
    map->n = map->n ? kept + 1 : 0;
}

/* True for names like libc.so and libc.so.6, libc.so_1. */
static bool is_library(struct kiln_str file)
{
    for (size_t i = 0; i + 3 <= file.len; i++) {
        if (memcmp(file.ptr + i, ".so", 3) != 0)
            continue;
        if (i + 3 == file.len)
            return true;
        if (i + 4 < file.len && (file.ptr[i + 3] == '.' || file.ptr[i + 3] == '_') &&
            file.ptr[i + 4] >= '0' && file.ptr[i + 4] <= '9')
            return true;
    }
    return false;
}

/* Brings what looks like the program itself to the front. */
static void put_program_first(struct kiln_map *map)
{
    for (uint32_t i = 0; i < map->n; i++) {
        struct kiln_map_entry entry = map->entries[i];

        if (!entry.file.len || entry.file.ptr[0] == '[' || is_library(entry.file) ||
            kiln_str_eq(entry.file, KILN_STR("(deleted)")))
            continue;
        map->entries[i] = map->entries[0];
        map->entries[0] = entry;
        return;
    }
}

/* Puts the start of the program right where the handler that wrote the file got it wrong. */
static void correct_program(struct kiln_map *map)
{
    struct kiln_map_entry *first = map->entries;

    if (map->n > 1 && kiln_str_starts(first->file, KILN_STR("/anon_hugepage")) &&
        first->limit == first[1].start) {
        map->entries = ++first;
        map->n--;
        map->cap--;
    }
    if (map->n && first->start - first->offset == EXPECTED_START) {
        first->start = EXPECTED_START;
        first->offset = 0;
    }
}

int kiln_map_init(struct kiln_map *map, struct kiln_builder *b, struct kiln_str text)
{
    struct variables variables = {.n = 0};

    *map = (struct kiln_map){.b = b, .fake = NO_INDEX};
    while (text.len) {
        struct kiln_str line = without_log_prefix(kiln_str_cut(&text, '\n'));
        struct kiln_map_entry entry;
        int r;

        if (!read_entry(line, &entry)) {
            define(&variables, line);
            continue;
        }
        entry.file = expand(b, &variables, entry.file);
        r = add_entry(map, &entry);
        if (r < 0)
            return r;
    }
    join_neighbours(map);
    put_program_first(map);
    correct_program(map);
    return 0;
}

int kiln_map_find(struct kiln_map *map, uint64_t address, uint32_t *ret)
{
    struct kiln_map_entry *e = map->entries;

    *ret = NO_INDEX;
    if (address == 0)
        return 0;
    map->steps += map->n;
    if (map->steps > STEPS_MAX)
        return KILN_E_LIMIT;
    for (uint32_t i = 0; i < map->n; i++) {
        if (e[i].start <= address && address < e[i].limit) {
            *ret = i;
            return 0;
        }
    }
    for (uint32_t i = 0; i < map->n; i++) { /* the first part of a mapping may be missing */
        if (e[i].offset && e[i].start - e[i].offset <= address && address < e[i].start) {
            e[i].start -= e[i].offset;
            e[i].offset = 0;
            *ret = i;
            return 0;
        }
    }
    if (map->fake == NO_INDEX) {
        int r = add_entry(map, &(struct kiln_map_entry){.limit = UINT64_MAX});

        if (r < 0)
            return r;
        map->fake = map->n - 1;
    }
    *ret = map->fake;
    return 0;
}

/* A text that may be any bytes, as a string of the batch. */
static uint32_t text_string(struct kiln_builder *b, struct kiln_str s)
{
    return kiln_utf8_valid(s) ? kiln_builder_string_ref(b, s) : 0;
}

uint32_t kiln_map_add(struct kiln_map *map, uint32_t i)
{
    const struct kiln_map_entry *e = &map->entries[i];
    struct kiln_mapping mapping = {.start = e->start,
                                   .limit = e->limit,
                                   .offset = e->offset,
                                   .filename = text_string(map->b, e->file)};
    uint32_t build_id = text_string(map->b, e->build_id), attrs[2], n = 0;

    if (build_id)
        attrs[n++] = kiln_builder_attr(map->b, kiln_builder_string(map->b, ATTR_BUILD_ID_GNU),
                                       kiln_value_string(build_id), 0);
    attrs[n++] = kiln_builder_attr(
        map->b, kiln_builder_string(map->b, KILN_STR("pprof.mapping.has_functions")),
        kiln_value_bool(false), 0);
    mapping.attrs = kiln_builder_set(map->b, attrs, n, NULL);
    return kiln_builder_mapping(map->b, &mapping);
}
