/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two walks over the dictionary and one over the samples.  Each frame of the wanted name (a line of
 * a location, or a location without lines) gets the number of its place, a file and a line; places
 * lie in one array, found by a hash.  Then every sample goes through its stack once, and a place or
 * file remembers the last sample that counted there.
 */
#include "core/lines.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/sat.h"
#include "core/frame.h"
#include "core/intern.h"

#define MEMORY_BYTES ((size_t)1 << 30)
/* Lines that a few bytes repeat must not keep anybody busy for ever. */
#define STEPS_MAX    (UINT64_C(1) << 31)

struct place {
    uint32_t file; /* into files */
    uint32_t seen; /* the last sample that counted, and one */
    struct kiln_line_cost cost;
};

struct counting {
    const struct kiln_batch *batch;
    const struct kiln_lines_opts *opts;
    struct kiln_lines *lines;
    struct place *places;
    struct kiln_intern index; /* of places */
    /* Places and one: of dict.lines, then of locations; 0: another name.  A location that has lines
     * has 1 where one of them has the name. */
    uint32_t *of_frame;
    uint32_t *file_of;   /* parallel to dict.strings: a file and one */
    uint32_t *file_seen; /* parallel to files */
    uint8_t *named;      /* parallel to dict.functions: 1 if it has the name */
    uint32_t n_places, places_cap, of_frame_cap, file_of_cap, seen_cap, named_cap, files_cap;
    uint64_t n_steps;
};

#define GROW(c, array, cap, need)                                                                  \
    kiln_grow(&(c)->lines->budget, (void **)&(array), &(cap), (need), sizeof(*(array)), UINT32_MAX)
#define RELEASE(c, array, cap)                                                                     \
    kiln_array_free(&(c)->lines->budget, (void **)&(array), &(cap), sizeof(*(array)))

/* ---- places ---- */

static int find_file(struct counting *c, uint32_t string, uint32_t mapping, uint32_t *ret)
{
    const struct kiln_dict *d = &c->batch->dict;
    struct kiln_lines *lines = c->lines;
    uint32_t n = lines->n_files;
    int r;

    *ret = c->file_of[string] - 1;
    if (c->file_of[string])
        return 0;
    r = GROW(c, lines->files, c->files_cap, (uint64_t)n + 1);
    if (r == 0)
        r = GROW(c, c->file_seen, c->seen_cap, (uint64_t)n + 1);
    if (r < 0)
        return r;
    lines->files[n] = (struct kiln_lines_file){.file = d->strings[string],
                                               .module = d->strings[d->mappings[mapping].filename]};
    c->file_seen[n] = 0;
    c->file_of[string] = ++lines->n_files;
    *ret = n;
    return 0;
}

static int find_place(struct counting *c, uint32_t file, int64_t line, uint32_t *ret)
{
    uint64_t hash = kiln_hash(&line, sizeof(line)) ^ file;
    int r;

    for (struct kiln_probe p = kiln_intern_probe(&c->index, hash);
         kiln_intern_next(&c->index, &p);) {
        if (c->places[p.entry].file == file && c->places[p.entry].cost.line == line) {
            *ret = p.entry + 1;
            return 0;
        }
    }
    r = GROW(c, c->places, c->places_cap, (uint64_t)c->n_places + 1);
    if (r == 0)
        r = kiln_intern_add(&c->index, &c->lines->budget, hash, c->n_places);
    if (r < 0)
        return r;
    c->places[c->n_places++] = (struct place){.file = file, .cost.line = line};
    *ret = c->n_places;
    return 0;
}

static bool is_unnamed(const struct counting *c, const struct kiln_location *location,
                       struct kiln_buf *text)
{
    const struct kiln_dict *d = &c->batch->dict;
    struct kiln_str module = d->strings[d->mappings[location->mapping].filename];

    return kiln_str_eq(kiln_frame_unnamed(module, kiln_frame_address(c->batch, location), text),
                       c->opts->function);
}

static int place_line(struct counting *c, const struct kiln_location *location, uint32_t at,
                      struct kiln_buf *text)
{
    const struct kiln_dict *d = &c->batch->dict;
    const struct kiln_line *line = &d->lines[at];
    const struct kiln_function *function = &d->functions[line->function];
    uint32_t file;
    int r;

    if (kiln_frame_function(d, function).len ? !c->named[line->function]
                                             : !is_unnamed(c, location, text))
        return 0;
    r = find_file(c, function->filename, location->mapping, &file);
    if (r < 0)
        return r;
    if (!c->lines->files[file].start_line && function->start_line > 0)
        c->lines->files[file].start_line = function->start_line;
    return find_place(c, file, line->line > 0 ? line->line : 0, &c->of_frame[at]);
}

static int place_location(struct counting *c, uint32_t index, struct kiln_buf *text)
{
    const struct kiln_dict *d = &c->batch->dict;
    const struct kiln_location *location = &d->locations[index];
    uint32_t file;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < location->n; i++) {
        r = place_line(c, location, location->first + i, text);
        if (c->of_frame[location->first + i])
            c->of_frame[d->n_lines + index] = 1;
    }
    if (r < 0 || location->n || !is_unnamed(c, location, text))
        return r;
    r = find_file(c, 0, location->mapping, &file);
    return r < 0 ? r : find_place(c, file, 0, &c->of_frame[d->n_lines + index]);
}

static int make_places(struct counting *c)
{
    const struct kiln_dict *d = &c->batch->dict;
    uint64_t n = (uint64_t)d->n_lines + d->n_locations;
    struct kiln_buf text;
    int r = GROW(c, c->of_frame, c->of_frame_cap, n);

    if (r == 0)
        r = GROW(c, c->named, c->named_cap, d->n_functions);
    if (r == 0)
        r = GROW(c, c->file_of, c->file_of_cap, d->n_strings);
    if (r < 0)
        return r;
    memset(c->file_of, 0, d->n_strings * sizeof(*c->file_of));
    memset(c->of_frame, 0, n * sizeof(*c->of_frame));
    for (uint32_t i = 0; i < d->n_functions; i++)
        c->named[i] = kiln_str_eq(kiln_frame_function(d, &d->functions[i]), c->opts->function);
    kiln_buf_init(&text, 1u << 24);
    for (uint32_t i = 0; r == 0 && i < d->n_locations; i++)
        r = place_location(c, i, &text);
    kiln_buf_done(&text);
    return r;
}

/* ---- samples ---- */

static void count_frame(struct counting *c, uint32_t of_frame, uint32_t sample, int64_t value)
{
    struct place *place = &c->places[of_frame - 1];
    struct kiln_lines_file *file = &c->lines->files[place->file];

    if (place->seen != sample) {
        place->seen = sample;
        place->cost.total = kiln_sat_add(place->cost.total, value);
    }
    if (c->file_seen[place->file] != sample) {
        c->file_seen[place->file] = sample;
        file->total = kiln_sat_add(file->total, value);
    }
}

static void count_self(struct counting *c, uint32_t of_frame, int64_t value)
{
    struct place *place = &c->places[of_frame - 1];
    struct kiln_lines_file *file = &c->lines->files[place->file];

    place->cost.self = kiln_sat_add(place->cost.self, value);
    file->self = kiln_sat_add(file->self, value);
}

static void count_location(struct counting *c, uint32_t number, uint32_t sample, int64_t value)
{
    const struct kiln_dict *d = &c->batch->dict;
    const struct kiln_location *location = &d->locations[number];
    const uint32_t *of = c->of_frame + d->n_lines + number;

    c->n_steps += 1;
    if (!*of)
        return;
    if (location->n == 0)
        count_frame(c, *of, sample, value);
    of = c->of_frame + location->first;
    for (uint32_t k = 0; k < location->n; k++) {
        if (of[k])
            count_frame(c, of[k], sample, value);
    }
    c->n_steps += location->n;
}

static int count_sample(struct counting *c, uint32_t index)
{
    const struct kiln_dict *d = &c->batch->dict;
    const struct kiln_sample *sample = &c->batch->samples[index];
    const uint32_t *frames = d->frames + d->stacks[sample->stack].first;
    uint32_t n = d->stacks[sample->stack].n, leaf;
    int64_t value = kiln_sample_total(c->batch, sample);

    for (uint32_t i = 0; i < n; i++)
        count_location(c, frames[i], index + 1, value);
    if (n) {
        const struct kiln_location *location = &d->locations[frames[0]];

        leaf = c->of_frame[location->n ? location->first : d->n_lines + frames[0]];
        if (leaf)
            count_self(c, leaf, value);
    }
    return c->n_steps > STEPS_MAX ? KILN_E_LIMIT : 0;
}

/* ---- the answer ---- */

static int compare_files(const void *a, const void *b)
{
    const struct kiln_lines_file *x = a, *y = b;

    if (x->total != y->total)
        return x->total < y->total ? 1 : -1;
    return kiln_str_cmp(x->file, y->file);
}

static int compare_lines(const void *a, const void *b)
{
    const struct kiln_line_cost *x = a, *y = b;

    return (x->line > y->line) - (x->line < y->line);
}

/* The file that is wanted; UINT32_MAX: it is not there. */
static uint32_t choose_file(const struct counting *c)
{
    const struct kiln_lines *lines = c->lines;
    uint32_t best = UINT32_MAX;

    for (uint32_t i = 0; i < lines->n_files; i++) {
        if (c->opts->file.len
                ? kiln_str_eq(lines->files[i].file, c->opts->file)
                : best == UINT32_MAX || compare_files(&lines->files[i], &lines->files[best]) < 0)
            best = i;
    }
    return best;
}

static int finish(struct counting *c, struct kiln_err *err)
{
    struct kiln_lines *lines = c->lines;
    struct kiln_lines_file chosen;
    uint32_t file = choose_file(c), cap = 0;
    int r;

    if (file == UINT32_MAX)
        return kiln_err_set(err, KILN_E_NOMATCH, NULL, "no stack has such a function");
    r = kiln_reserve(&lines->budget, (void **)&lines->lines, &cap, c->n_places,
                     sizeof(*lines->lines), UINT32_MAX);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < c->n_places; i++) {
        const struct place *place = &c->places[i];

        if (place->file == file && place->seen)
            lines->lines[lines->n_lines++] = place->cost;
    }
    qsort(lines->lines, lines->n_lines, sizeof(*lines->lines), compare_lines);
    chosen = lines->files[file];
    lines->files[file] = lines->files[0];
    lines->files[0] = chosen;
    qsort(lines->files + 1, lines->n_files - 1, sizeof(*lines->files), compare_files);
    return 0;
}

int kiln_lines_new(const struct kiln_batch *batch, const struct kiln_lines_opts *opts,
                   struct kiln_lines **ret_lines, struct kiln_err *err)
{
    struct kiln_lines *lines = kiln_calloc(1, sizeof(*lines));
    struct counting c = {.batch = batch, .opts = opts, .lines = lines};
    int r;

    if (!lines)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    lines->budget.limit = opts->memory_bytes ? opts->memory_bytes : MEMORY_BYTES;
    r = make_places(&c);
    for (uint32_t i = 0; r == 0 && i < batch->n_samples; i++)
        r = count_sample(&c, i);
    if (r == 0)
        r = finish(&c, err);
    kiln_intern_done(&c.index, &lines->budget);
    RELEASE(&c, c.places, c.places_cap);
    RELEASE(&c, c.of_frame, c.of_frame_cap);
    RELEASE(&c, c.file_of, c.file_of_cap);
    RELEASE(&c, c.file_seen, c.seen_cap);
    RELEASE(&c, c.named, c.named_cap);
    if (r < 0) {
        kiln_lines_free(lines);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    *ret_lines = lines;
    return 0;
}

void kiln_lines_free(struct kiln_lines *lines)
{
    if (!lines)
        return;
    kiln_free(lines->files);
    kiln_free(lines->lines);
    kiln_free(lines);
}

/* ---- mappings ---- */

static bool is_of_file(const struct kiln_dict *d, const struct kiln_location *location,
                       struct kiln_str file)
{
    for (uint32_t i = 0; i < location->n; i++) {
        const struct kiln_function *function =
            &d->functions[d->lines[location->first + i].function];

        if (kiln_str_eq(d->strings[function->filename], file))
            return true;
    }
    return false;
}

static bool has(const uint32_t *numbers, uint32_t n, uint32_t number)
{
    for (uint32_t i = 0; i < n; i++) {
        if (numbers[i] == number)
            return true;
    }
    return false;
}

uint32_t kiln_lines_mappings(const struct kiln_batch *batch, struct kiln_str file,
                             uint32_t *mappings, uint32_t max)
{
    const struct kiln_dict *d = &batch->dict;
    uint32_t n = 0;

    for (uint32_t i = 0; i < d->n_locations && n < max; i++) {
        const struct kiln_location *location = &d->locations[i];

        if (location->mapping && !has(mappings, n, location->mapping) &&
            is_of_file(d, location, file))
            mappings[n++] = location->mapping;
    }
    return n;
}
