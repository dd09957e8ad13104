/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries of the dictionary: one array of new indexes for each table, all in one zeroed block.  0
 * means "not brought over yet": entry 0 is always the zero value, so the few entries that an edit
 * turns into the zero value are simply looked at again.
 */
#include <assert.h>
#include <errno.h>

#include "core/bulk.h"
#include "core/code.h"
#include "core/frame.h"
#include "core/remap_int.h"

#define SKIP_MAX 1u  /* entries of other sources that may stand between two of this one */
#define MISS_MAX 16u /* wrong guesses in a row, after which guessing waits for a hit */

int kiln_remap_new(struct kiln_builder *b, const struct kiln_batch *from,
                   const struct kiln_remap_edit *edit, struct kiln_remap **ret_remap)
{
    const struct kiln_dict *d = &from->dict;
    size_t texts = edit && edit->text ? (size_t)d->n_strings * KILN_N_TEXT_ROLES : 0;
    size_t entries = texts + d->n_strings + d->n_functions + d->n_mappings + d->n_locations +
                     d->n_stacks + d->n_links + d->n_attrs + d->n_sets;
    size_t bytes =
        sizeof(struct kiln_remap) + entries * sizeof(uint32_t) + (edit ? d->n_strings : 0);
    struct kiln_remap *remap;
    uint32_t *at;
    int r;

    r = kiln_budget_take(&b->box->budget, bytes);
    if (r < 0)
        return r;
    remap = kiln_calloc(1, bytes);
    if (!remap) {
        kiln_budget_give(&b->box->budget, bytes);
        return -ENOMEM;
    }
    *remap = (struct kiln_remap){.b = b, .from = from, .edit = edit, .charged = bytes};
    remap->next.string = remap->next.function = remap->next.location = remap->next.stack = 1;
    at = (uint32_t *)(remap + 1);
#define TABLE(name)                                                                                \
    remap->name = at;                                                                              \
    at += d->n_##name
    TABLE(strings);
    TABLE(functions);
    TABLE(mappings);
    TABLE(locations);
    TABLE(stacks);
    TABLE(links);
    TABLE(attrs);
    TABLE(sets);
#undef TABLE
    for (int i = 0; texts && i < KILN_N_TEXT_ROLES; i++) {
        remap->texts[i] = at;
        at += d->n_strings;
    }
    remap->lost_keys = (uint8_t *)at;
    *ret_remap = remap;
    return 0;
}

void kiln_remap_sole(struct kiln_remap *remap)
{
    assert(!remap->edit && !remap->code && remap->b->box->batch.dict.n_strings == 1);
    remap->sole = true;
}

void kiln_remap_relocate(struct kiln_remap *remap, struct kiln_code *code)
{
    assert(!remap->sole);
    remap->code = code;
}

void kiln_remap_to_file(struct kiln_remap *remap)
{
    assert(!remap->sole && !remap->code);
    remap->to_file = true;
}

void kiln_remap_movable(struct kiln_remap *remap)
{
    remap->notes_touched = true;
}

void kiln_remap_free(struct kiln_remap *remap)
{
    struct kiln_budget *budget;

    if (!remap)
        return;
    budget = &remap->b->box->budget;
    kiln_array_free(budget, (void **)&remap->indexes, &remap->cap_indexes, sizeof(uint32_t));
    kiln_array_free(budget, (void **)&remap->frames, &remap->cap_frames, sizeof(uint32_t));
    kiln_array_free(budget, (void **)&remap->touched, &remap->cap_touched, sizeof(uint32_t));
    kiln_array_free(budget, (void **)&remap->lines, &remap->cap_lines, sizeof(struct kiln_line));
    kiln_budget_give(budget, remap->charged);
    kiln_free(remap);
}

/* ---- moving on ---- */

static size_t charge_of(const struct kiln_remap *remap)
{
    return remap->charged + remap->cap_lines * sizeof(*remap->lines) +
           ((size_t)remap->cap_indexes + remap->cap_frames + remap->cap_touched) * sizeof(uint32_t);
}

int kiln_remap_move(struct kiln_remap *remap, struct kiln_builder *b)
{
    int r = kiln_budget_take(&b->box->budget, charge_of(remap));

    if (r < 0)
        return r;
    kiln_budget_give(&remap->b->box->budget, charge_of(remap));
    for (uint32_t i = 0; i < remap->n_touched; i++)
        remap->strings[remap->touched[i]] = 0;
    remap->n_touched = 0;
    remap->b = b;
    return 0;
}

static void touch(struct kiln_remap *remap, const uint32_t *place)
{
    if (kiln_builder_room(remap->b, (void **)&remap->touched, &remap->cap_touched,
                          (uint64_t)remap->n_touched + 1, sizeof(*remap->touched)))
        remap->touched[remap->n_touched++] = (uint32_t)(place - remap->strings);
}

/* Notes the new index of an entry. */
KILN_INLINE uint32_t settle(struct kiln_remap *remap, uint32_t *place, uint32_t index)
{
    *place = index;
    if (KILN_UNLIKELY(remap->notes_touched))
        touch(remap, place);
    return index;
}

/* Scratch; false (and sticky) on failure. */
bool kiln_remap_scratch(struct kiln_remap *remap, uint64_t n)
{
    return kiln_builder_room(remap->b, (void **)&remap->indexes, &remap->cap_indexes, n,
                             sizeof(*remap->indexes));
}

static bool scratch_frames(struct kiln_remap *remap, uint64_t n)
{
    return kiln_builder_room(remap->b, (void **)&remap->frames, &remap->cap_frames, n,
                             sizeof(*remap->frames));
}

static bool scratch_lines(struct kiln_remap *remap, uint64_t n)
{
    return kiln_builder_room(remap->b, (void **)&remap->lines, &remap->cap_lines, n,
                             sizeof(*remap->lines));
}

/* ---- strings, functions, mappings, links ---- */

/* Remembers where the next entry probably is: behind this one, unless it is new among `n`. */
static uint32_t found(uint32_t *next, uint32_t entry, uint32_t n)
{
    if (entry < n)
        *next = entry + 1;
    return entry;
}

/* The same where it was guessed. */
static uint32_t guessed(struct kiln_remap *remap, uint32_t *next, uint32_t entry)
{
    remap->guessed++;
    *next = entry + 1;
    return entry;
}

uint32_t kiln_remap_find_string(struct kiln_remap *remap, struct kiln_str s)
{
    const struct kiln_dict *known = &remap->b->box->batch.dict;
    uint32_t n = known->n_strings;

    for (uint32_t i = remap->next.string; i < n && i <= remap->next.string + SKIP_MAX; i++) {
        if (kiln_str_eq(known->strings[i], s))
            return guessed(remap, &remap->next.string, i);
    }
    return found(&remap->next.string, kiln_builder_string(remap->b, s), n);
}

static uint32_t bring_string(struct kiln_remap *remap, uint32_t string)
{
    struct kiln_str s = remap->from->dict.strings[string];

    return remap->sole ? kiln_builder_new_string(remap->b, s) : kiln_remap_find_string(remap, s);
}

uint32_t kiln_remap_string(struct kiln_remap *remap, uint32_t string)
{
    uint32_t *to = &remap->strings[string];

    return *to || string == 0 ? *to : settle(remap, to, bring_string(remap, string));
}

static uint32_t remap_text(struct kiln_remap *remap, enum kiln_text_role role, uint32_t string)
{
    const struct kiln_remap_edit *edit = remap->edit;
    uint32_t *to;

    if (!edit || !edit->text || string == 0)
        return kiln_remap_string(remap, string);
    to = &remap->texts[role][string];
    if (*to)
        return *to;
    return settle(remap, to,
                  edit->text(edit->context, remap->b, role, remap->from->dict.strings[string]));
}

static uint32_t remap_name(struct kiln_remap *remap, const struct kiln_function *f)
{
    const struct kiln_str *strings = remap->from->dict.strings;
    const struct kiln_remap_edit *edit = remap->edit;

    if (!edit || !edit->name)
        return remap_text(remap, KILN_TEXT_NAME, f->name);
    return edit->name(edit->context, remap->b, strings[f->name], strings[f->system_name]);
}

struct kiln_function kiln_remap_make_function(struct kiln_remap *remap, uint32_t function)
{
    struct kiln_function f = remap->from->dict.functions[function];

    f.name = remap_name(remap, &f);
    f.system_name = remap_text(remap, KILN_TEXT_NAME, f.system_name);
    f.filename = remap_text(remap, KILN_TEXT_SOURCE, f.filename);
    return f;
}

uint32_t kiln_remap_find_function(struct kiln_remap *remap, const struct kiln_function *function)
{
    const struct kiln_dict *known = &remap->b->box->batch.dict;
    uint32_t n = known->n_functions;

    for (uint32_t i = remap->next.function; i < n && i <= remap->next.function + SKIP_MAX; i++) {
        if (memcmp(&known->functions[i], function, sizeof(*function)) == 0)
            return guessed(remap, &remap->next.function, i);
    }
    return found(&remap->next.function, kiln_builder_function(remap->b, function), n);
}

static uint32_t bring_function(struct kiln_remap *remap, uint32_t function)
{
    struct kiln_function f = kiln_remap_make_function(remap, function);

    return remap->sole ? kiln_builder_new_function(remap->b, &f)
                       : kiln_remap_find_function(remap, &f);
}

uint32_t kiln_remap_function(struct kiln_remap *remap, uint32_t function)
{
    uint32_t *to = &remap->functions[function];

    return *to || function == 0 ? *to : settle(remap, to, bring_function(remap, function));
}

static uint32_t bring_mapping(struct kiln_remap *remap, uint32_t mapping)
{
    struct kiln_mapping m = remap->from->dict.mappings[mapping];

    m.filename = remap_text(remap, KILN_TEXT_MAPPING, m.filename);
    m.attrs = kiln_remap_set(remap, m.attrs);
    if (remap->to_file)
        kiln_code_to_file(&remap->b->box->batch, &m);
    return remap->code ? kiln_code_mapping(remap->code, remap->b, &m)
                       : kiln_builder_mapping(remap->b, &m);
}

KILN_INLINE uint32_t remap_mapping(struct kiln_remap *remap, uint32_t mapping)
{
    uint32_t *to = &remap->mappings[mapping];

    return *to || mapping == 0 ? *to : settle(remap, to, bring_mapping(remap, mapping));
}

uint32_t kiln_remap_mapping(struct kiln_remap *remap, uint32_t mapping)
{
    return remap_mapping(remap, mapping);
}

uint32_t kiln_remap_link(struct kiln_remap *remap, uint32_t link)
{
    uint32_t *to = &remap->links[link];

    if (*to || link == 0)
        return *to;
    return settle(remap, to, kiln_builder_link(remap->b, &remap->from->dict.links[link]));
}

/* ---- attributes ---- */

static bool remap_value(struct kiln_remap *remap, const struct kiln_attr_place *place,
                        struct kiln_value *value, uint32_t depth);

/* An array or map: its children first, then the whole. */
static void remap_children(struct kiln_remap *remap, const struct kiln_attr_place *place,
                           struct kiln_value *value, uint32_t depth)
{
    const struct kiln_attr *from = remap->from->dict.nested + value->first;
    struct kiln_attr *children = kiln_calloc(value->n, sizeof(*children));
    uint32_t n = 0;

    if (!children) {
        kiln_builder_fail(remap->b, -ENOMEM);
        return;
    }
    for (uint32_t i = 0; i < value->n; i++) {
        struct kiln_attr_place inner = {remap->from->dict.strings[from[i].key], place};

        children[n] = from[i];
        if (!remap_value(remap, &inner, &children[n].value, depth + 1))
            continue;
        children[n].key = kiln_remap_string(remap, from[i].key);
        children[n++].unit = kiln_remap_string(remap, from[i].unit);
    }
    *value = kiln_builder_nested(remap->b, value->kind, children, n);
    kiln_free(children);
}

/* Turns *value into one of the builder; false if it is to be dropped. */
static bool remap_value(struct kiln_remap *remap, const struct kiln_attr_place *place,
                        struct kiln_value *value, uint32_t depth)
{
    const struct kiln_remap_edit *edit = remap->edit;
    enum kiln_attr_edit what = KILN_ATTR_KEEP;

    if (depth > kiln_builder_limits(remap->b)->value_depth + 1) {
        kiln_builder_fail(remap->b, KILN_E_LIMIT);
        return false;
    }
    if (edit && edit->attr)
        what = edit->attr(edit->context, remap->b, remap->from, place, value);
    if (what != KILN_ATTR_KEEP)
        return what != KILN_ATTR_DROP;
    if (value->kind == KILN_VALUE_STRING || value->kind == KILN_VALUE_BYTES)
        value->str = kiln_remap_string(remap, (uint32_t)value->str);
    else if ((value->kind == KILN_VALUE_ARRAY || value->kind == KILN_VALUE_MAP) && value->n)
        remap_children(remap, place, value, depth);
    return true;
}

/* The new index of an attribute, or KILN_REMAP_DROPPED. */
static uint32_t remap_attr(struct kiln_remap *remap, uint32_t attr)
{
    uint32_t *to = &remap->attrs[attr];
    struct kiln_attr entry = remap->from->dict.attrs[attr];
    struct kiln_attr_place place = {remap->from->dict.strings[entry.key], NULL};

    if (*to || attr == 0)
        return *to;
    if (!remap_value(remap, &place, &entry.value, 1))
        return settle(remap, to, KILN_REMAP_DROPPED);
    entry.key = kiln_remap_string(remap, entry.key);
    entry.unit = kiln_remap_string(remap, entry.unit);
    return settle(remap, to, kiln_builder_attr(remap->b, entry.key, entry.value, entry.unit));
}

static uint32_t bring_set(struct kiln_remap *remap, uint32_t set)
{
    struct kiln_range range = remap->from->dict.sets[set];
    uint32_t n = 0;

    if (!kiln_remap_scratch(remap, range.n))
        return 0;
    for (uint32_t i = 0; i < range.n; i++) {
        uint32_t attr = remap_attr(remap, remap->from->dict.members[range.first + i]);

        if (attr != KILN_REMAP_DROPPED)
            remap->indexes[n++] = attr;
    }
    return kiln_builder_set(remap->b, remap->indexes, n, NULL);
}

KILN_INLINE uint32_t remap_set(struct kiln_remap *remap, uint32_t set)
{
    uint32_t *to = &remap->sets[set];

    return *to || set == 0 ? *to : settle(remap, to, bring_set(remap, set));
}

uint32_t kiln_remap_set(struct kiln_remap *remap, uint32_t set)
{
    return remap_set(remap, set);
}

/* ---- locations, stacks ---- */

/* The lines of a location, into the scratch; returns how many. */
static uint32_t remap_lines(struct kiln_remap *remap, const struct kiln_location *from)
{
    const struct kiln_remap_edit *edit = remap->edit;
    const struct kiln_line *lines = from->n ? &remap->from->dict.lines[from->first] : NULL;
    uint32_t n = 0;

    if (!scratch_lines(remap, (uint64_t)from->n + (edit ? KILN_REMAP_LINES : 1)))
        return 0;
    if (edit && edit->lines && (from->n == 0 || kiln_frame_lack(remap->from, from)))
        n = edit->lines(edit->context, remap->b, remap->from, from, remap->lines);
    if (n)
        return n;
    for (uint32_t i = 0; i < from->n; i++) {
        remap->lines[i] = lines[i];
        remap->lines[i].function = kiln_remap_function(remap, lines[i].function);
    }
    return from->n;
}

/* An address, in a mapping that may have moved: one inside moves along, one outside stays. */
static uint64_t move_address(const struct kiln_remap *remap, uint64_t address,
                             const struct kiln_mapping *from, uint32_t to)
{
    uint64_t start = remap->b->box->batch.dict.mappings[to].start;

    if (remap->to_file && (address < from->start || address >= from->limit))
        return address;
    return address + (start - from->start);
}

/* The same for a location, which may have been where a guess would have looked, had there been one.
 */
static uint32_t found_location(struct kiln_remap *remap, uint32_t location, uint32_t n)
{
    if (location - remap->next.location <= SKIP_MAX)
        remap->location_misses = 0;
    else
        remap->location_misses++;
    return found(&remap->next.location, location, n);
}

struct kiln_location kiln_remap_make_location(struct kiln_remap *remap,
                                              const struct kiln_location *from)
{
    struct kiln_location entry = {.address = from->address};

    entry.mapping = remap_mapping(remap, from->mapping);
    if ((remap->code || remap->to_file) && entry.address)
        entry.address = move_address(remap, entry.address,
                                     &remap->from->dict.mappings[from->mapping], entry.mapping);
    entry.attrs = remap_set(remap, from->attrs);
    return entry;
}

uint32_t kiln_remap_find_location(struct kiln_remap *remap, const struct kiln_location *location,
                                  const struct kiln_line *lines, uint32_t n_lines)
{
    const struct kiln_dict *known = &remap->b->box->batch.dict;
    uint32_t n = known->n_locations;

    if (remap->location_misses < MISS_MAX) {
        uint32_t next = remap->next.location;

        for (uint32_t i = next; i < n && i <= next + SKIP_MAX; i++) {
            if (kiln_location_is(known, i, location, lines, n_lines)) {
                remap->location_misses = 0;
                return guessed(remap, &remap->next.location, i);
            }
        }
    }
    return found_location(remap, kiln_builder_location(remap->b, location, lines, n_lines), n);
}

static uint32_t bring_location(struct kiln_remap *remap, const struct kiln_location *from)
{
    struct kiln_location entry = kiln_remap_make_location(remap, from);
    uint32_t n_lines = remap_lines(remap, from);

    if (remap->sole)
        return kiln_builder_new_location(remap->b, entry.address, entry.mapping, entry.attrs,
                                         remap->lines, n_lines);
    return kiln_remap_find_location(remap, &entry, remap->lines, n_lines);
}

uint32_t kiln_remap_location(struct kiln_remap *remap, uint32_t location)
{
    uint32_t *to = &remap->locations[location];

    if (*to || location == 0)
        return *to;
    return settle(remap, to, bring_location(remap, &remap->from->dict.locations[location]));
}

void kiln_remap_locations(struct kiln_remap *remap, const uint64_t *locations, uint32_t n,
                          uint32_t *ret)
{
    const uint32_t *known = remap->locations;

    for (uint32_t i = 0; i < n; i++) {
        ret[i] = known[locations[i]];
        if (KILN_UNLIKELY(ret[i] == 0))
            ret[i] = kiln_remap_location(remap, (uint32_t)locations[i]);
    }
}

/* The new indexes of `n` locations. */
static void remap_frames(struct kiln_remap *remap, const uint32_t *from, uint32_t n, uint32_t *to)
{
    const uint32_t *known = remap->locations;

    for (uint32_t i = 0; i < n; i++) {
        to[i] = known[from[i]];
        if (KILN_UNLIKELY(to[i] == 0))
            to[i] = kiln_remap_location(remap, from[i]);
    }
}

/* A stack into an empty builder: its frames are written where they stay. */
static uint32_t bring_new_stack(struct kiln_remap *remap, struct kiln_range range)
{
    uint32_t *to = kiln_builder_frames(remap->b, range.n);

    if (!to)
        return 0;
    remap_frames(remap, remap->from->dict.frames + range.first, range.n, to);
    return kiln_builder_new_stack(remap->b, range.n);
}

uint32_t kiln_remap_find_stack(struct kiln_remap *remap, const uint32_t *frames, uint32_t n)
{
    const struct kiln_dict *known = &remap->b->box->batch.dict;
    uint32_t n_stacks = known->n_stacks, next = remap->next.stack;

    for (uint32_t i = next; i < n_stacks && i <= next + SKIP_MAX; i++) {
        struct kiln_range other = known->stacks[i];

        if (other.n == n && memcmp(known->frames + other.first, frames, n * sizeof(*frames)) == 0)
            return guessed(remap, &remap->next.stack, i);
    }
    return found(&remap->next.stack, kiln_builder_stack(remap->b, frames, n), n_stacks);
}

static uint32_t bring_stack(struct kiln_remap *remap, struct kiln_range range)
{
    if (remap->sole)
        return bring_new_stack(remap, range);
    if (!scratch_frames(remap, range.n))
        return 0;
    remap_frames(remap, remap->from->dict.frames + range.first, range.n, remap->frames);
    return kiln_remap_find_stack(remap, remap->frames, range.n);
}

uint32_t kiln_remap_stack(struct kiln_remap *remap, uint32_t stack)
{
    uint32_t *to = &remap->stacks[stack];

    return *to || stack == 0
               ? *to
               : settle(remap, to, bring_stack(remap, remap->from->dict.stacks[stack]));
}
