/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every value of every part becomes an entry (stack, labels, column, value) of the new dictionary;
 * sorted, entries of one stack and labels lie together and make a row.
 *
 * The program's mapping is the first of the dictionary, although no sample may be in it: readers
 * take the first one for the program, and tell by it that a program began anew.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sat.h"
#include "core/remap.h"
#include "inproc/pprof/shape.h"

enum { COLUMNS = 4, COMMENTS = 32 };
#define MEMORY_MAX  (256u << 20)
#define ENTRIES_MAX (1u << 26)

/* Frames that are the library's, or the C library's way to it: a frame goes with all it calls. */
#define OURS        "kiln_in_.*"
#define ALLOCATORS                                                                                 \
    OURS "|malloc|calloc|realloc|reallocarray|aligned_alloc|memalign|posix_memalign|p?valloc|"     \
         "strn?dup|__libc_(malloc|calloc|realloc|memalign)|operator new(\\[\\])?(\\(.*\\))?|mmap"
#define LOCKS                                                                                      \
    OURS "|_*pthread_(mutex|rwlock|spin|cond)_.*|sem_(timed|clock)?wait|_*pthread_(clock|timed)?"  \
         "join.*"

struct column {
    const char *type, *unit;
};

struct shape {
    struct column columns[COLUMNS];
    uint32_t n;
    struct column period;
    const char *drop_frames, *default_type;
};

static const struct shape shapes[KILN_IN_PROFILES] = {
    [KILN_IN_PROFILE_CPU] =
        {{{"samples", "count"}, {"cpu", "nanoseconds"}}, 2, {"cpu", "nanoseconds"}, OURS, NULL},
    [KILN_IN_PROFILE_WALL] =
        {{{"samples", "count"}, {"wall", "nanoseconds"}}, 2, {"wall", "nanoseconds"}, OURS, NULL},
    [KILN_IN_PROFILE_FGPROF] =
        {{{"samples", "count"}, {"time", "nanoseconds"}}, 2, {"wall", "nanoseconds"}, OURS, NULL},
    [KILN_IN_PROFILE_HEAP] = {{{"alloc_objects", "count"},
                               {"alloc_space", "bytes"},
                               {"inuse_objects", "count"},
                               {"inuse_space", "bytes"}},
                              4,
                              {"space", "bytes"},
                              ALLOCATORS,
                              NULL},
    [KILN_IN_PROFILE_ALLOCS] = {{{"alloc_objects", "count"},
                                 {"alloc_space", "bytes"},
                                 {"inuse_objects", "count"},
                                 {"inuse_space", "bytes"}},
                                4,
                                {"space", "bytes"},
                                ALLOCATORS,
                                "alloc_space"},
    [KILN_IN_PROFILE_BLOCK] = {{{"contentions", "count"}, {"delay", "nanoseconds"}},
                               2,
                               {"contentions", "count"},
                               LOCKS,
                               NULL},
    [KILN_IN_PROFILE_MUTEX] = {{{"contentions", "count"}, {"delay", "nanoseconds"}},
                               2,
                               {"contentions", "count"},
                               LOCKS,
                               NULL},
    [KILN_IN_PROFILE_HOLDERS] = {{{"contentions", "count"}, {"delay", "nanoseconds"}},
                                 2,
                                 {"contentions", "count"},
                                 LOCKS,
                                 NULL},
    [KILN_IN_PROFILE_THREADS] = {{{"goroutine", "count"}}, 1, {"goroutine", "count"}, OURS, NULL},
    [KILN_IN_PROFILE_CREATE] =
        {{{"threadcreate", "count"}}, 1, {"threadcreate", "count"}, OURS, NULL},
    [KILN_IN_PROFILE_LOOP] = {{{"lag", "nanoseconds"}}, 1, {NULL, NULL}, OURS, NULL},
};

struct entry {
    uint32_t stack, attrs, column;
    int64_t value;
};

struct making {
    struct kiln_builder *b;
    const struct shape *shape;
    const struct kiln_in_shape_opts *opts;
    struct kiln_budget budget;
    struct entry *entries;
    uint32_t n, cap;
};

/* A part on its way into the builder; what is 0 has not been brought over yet. */
struct moving {
    const struct kiln_batch *batch;
    struct kiln_remap *remap;
    uint32_t *locations, *stacks;
    struct kiln_in_place *places; /* by mapping */
    uint32_t *mappings;
};

/* ---- addresses ---- */

static void move_mapping(struct making *m, struct moving *v, uint32_t i)
{
    struct kiln_mapping fresh = v->batch->dict.mappings[i];
    struct kiln_in_place *place = &v->places[i];

    if (m->opts->place &&
        m->opts->place(kiln_batch_str(v->batch, fresh.filename), fresh.start, place)) {
        fresh.start = place->mapping.start;
        fresh.limit = place->mapping.limit;
        fresh.offset = place->mapping.offset;
    }
    fresh.filename = kiln_remap_string(v->remap, fresh.filename);
    fresh.attrs = kiln_remap_set(v->remap, fresh.attrs);
    v->mappings[i] = kiln_builder_mapping(m->b, &fresh);
}

static uint32_t move_location(struct making *m, struct moving *v, uint32_t i)
{
    const struct kiln_dict *d = &v->batch->dict;
    struct kiln_location fresh = d->locations[i];
    struct kiln_line lines[KILN_REMAP_LINES];
    uint32_t n = fresh.n < KILN_REMAP_LINES ? fresh.n : KILN_REMAP_LINES;

    if (!i || v->locations[i])
        return v->locations[i];
    if (fresh.mapping && !v->mappings[fresh.mapping])
        move_mapping(m, v, fresh.mapping);
    for (uint32_t k = 0; k < n; k++) {
        lines[k] = d->lines[fresh.first + k];
        lines[k].function = kiln_remap_function(v->remap, lines[k].function);
    }
    fresh.address += v->places[fresh.mapping].shift;
    fresh.mapping = v->mappings[fresh.mapping];
    fresh.attrs = kiln_remap_set(v->remap, fresh.attrs);
    v->locations[i] = kiln_builder_location(m->b, &fresh, lines, n);
    return v->locations[i];
}

static uint32_t move_stack(struct making *m, struct moving *v, uint32_t i)
{
    const struct kiln_dict *d = &v->batch->dict;
    struct kiln_range range = d->stacks[i];
    uint32_t *room;

    if (!i || v->stacks[i])
        return v->stacks[i];
    for (uint32_t k = 0; k < range.n; k++)
        move_location(m, v, d->frames[range.first + k]);
    room = kiln_builder_stack_room(m->b, range.n);
    for (uint32_t k = 0; room && k < range.n; k++)
        room[k] = v->locations[d->frames[range.first + k]];
    if (room)
        v->stacks[i] = kiln_builder_stack_take(m->b, range.n);
    return v->stacks[i];
}

static int moving_init(struct making *m, const struct kiln_batch *batch, struct moving *v)
{
    const struct kiln_dict *d = &batch->dict;

    *v = (struct moving){.batch = batch};
    v->locations = kiln_calloc(d->n_locations, sizeof(*v->locations));
    v->stacks = kiln_calloc(d->n_stacks, sizeof(*v->stacks));
    v->places = kiln_calloc(d->n_mappings, sizeof(*v->places));
    v->mappings = kiln_calloc(d->n_mappings, sizeof(*v->mappings));
    if (!v->locations || !v->stacks || !v->places || !v->mappings)
        return -ENOMEM;
    return kiln_remap_new(m->b, batch, NULL, &v->remap);
}

static void moving_done(struct moving *v)
{
    kiln_remap_free(v->remap);
    kiln_free(v->locations);
    kiln_free(v->stacks);
    kiln_free(v->places);
    kiln_free(v->mappings);
}

/* ---- entries ---- */

/* The column of a profile's values; COLUMNS: none. */
static uint32_t column_of(const struct shape *shape, const struct kiln_batch *batch,
                          struct kiln_value_type type)
{
    struct kiln_str name = kiln_batch_str(batch, type.type);
    struct kiln_str unit = kiln_batch_str(batch, type.unit);

    for (uint32_t i = 0; i < shape->n; i++)
        if (kiln_str_eq(name, kiln_str_of(shape->columns[i].type)))
            return i;
    for (uint32_t i = 0; i < shape->n; i++)
        if (kiln_str_eq(unit, kiln_str_of(shape->columns[i].unit)))
            return i;
    return COLUMNS;
}

static int take_profile(struct making *m, struct moving *v, const struct kiln_in_part *part,
                        uint32_t p)
{
    const struct kiln_profile *profile = &part->batch->profiles[p];
    uint32_t column = column_of(m->shape, part->batch, profile->sample_type);
    int r;

    if (column == COLUMNS)
        return 0;
    r = kiln_grow(&m->budget, (void **)&m->entries, &m->cap, (uint64_t)m->n + profile->n_samples,
                  sizeof(*m->entries), ENTRIES_MAX);
    for (uint32_t i = 0; r == 0 && i < profile->n_samples; i++) {
        const struct kiln_sample *s = &part->batch->samples[profile->first_sample + i];

        m->entries[m->n++] =
            (struct entry){.stack = move_stack(m, v, s->stack),
                           .attrs = kiln_remap_set(v->remap, s->attrs),
                           .column = column,
                           .value = part->sign * kiln_sample_total(part->batch, s)};
    }
    return r;
}

static int take_part(struct making *m, const struct kiln_in_part *part)
{
    struct moving v;
    int r = moving_init(m, part->batch, &v);

    for (uint32_t p = 0; r == 0 && p < part->batch->n_profiles; p++)
        r = take_profile(m, &v, part, p);
    moving_done(&v);
    return r;
}

static int compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->stack != y->stack)
        return x->stack < y->stack ? -1 : 1;
    if (x->attrs != y->attrs)
        return x->attrs < y->attrs ? -1 : 1;
    return 0;
}

/* Adds up the row that starts at entry `i`; the entry behind it. */
static uint32_t sum_row(const struct making *m, uint32_t i, int64_t values[COLUMNS])
{
    const struct entry *first = &m->entries[i];

    memset(values, 0, COLUMNS * sizeof(*values));
    for (; i < m->n && compare(first, &m->entries[i]) == 0; i++)
        values[m->entries[i].column] =
            kiln_sat_add(values[m->entries[i].column], m->entries[i].value);
    return i;
}

static bool is_zero(const int64_t values[COLUMNS])
{
    return !(values[0] | values[1] | values[2] | values[3]);
}

static uint32_t count_rows(const struct making *m)
{
    int64_t values[COLUMNS];
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->n;) {
        i = sum_row(m, i, values);
        n += !is_zero(values);
    }
    return n;
}

static int put_rows(struct making *m)
{
    int64_t values[COLUMNS];
    struct kiln_grid grid;
    int r;

    if (m->n)
        qsort(m->entries, m->n, sizeof(*m->entries), compare);
    r = kiln_builder_open_grid(m->b, m->shape->n, count_rows(m), &grid);
    for (uint32_t i = 0, row = 0; r == 0 && i < m->n;) {
        const struct entry *first = &m->entries[i];

        i = sum_row(m, i, values);
        if (!is_zero(values))
            kiln_builder_set_row(m->b, &grid, row++, first->stack, first->attrs, values);
    }
    return r;
}

/* ---- heads ---- */

static uint32_t string_of(struct making *m, const char *text)
{
    return text ? kiln_builder_string(m->b, kiln_str_of(text)) : 0;
}

static struct kiln_value_type type_of(struct making *m, struct column column)
{
    return (struct kiln_value_type){string_of(m, column.type), string_of(m, column.unit)};
}

static uint32_t profile_attrs(struct making *m)
{
    struct kiln_str rest = m->opts->comments;
    struct kiln_value lines[COMMENTS];
    uint32_t n = 0, attrs[2], n_attrs = 0;

    while (rest.len && n < COMMENTS) {
        struct kiln_str line = kiln_str_cut(&rest, '\n');

        if (line.len)
            lines[n++] = kiln_value_string(kiln_builder_string(m->b, line));
    }
    if (n)
        attrs[n_attrs++] = kiln_builder_attr(m->b, string_of(m, "pprof.profile.comment"),
                                             kiln_builder_array(m->b, lines, n), 0);
    attrs[n_attrs++] = kiln_builder_text_attr(m->b, KILN_STR("pprof.profile.drop_frames"),
                                              kiln_str_of(m->shape->drop_frames));
    return kiln_builder_set(m->b, attrs, n_attrs, NULL);
}

/* The order of the columns is said, so that no other default is made of it. */
static uint32_t scope_attrs(struct making *m)
{
    struct kiln_value order[COLUMNS];
    uint32_t attrs[2], n = 0;

    for (uint32_t i = 0; i < m->shape->n; i++)
        order[i] = kiln_value_int(i);
    attrs[n++] = kiln_builder_attr(m->b, string_of(m, "pprof.scope.sample_type_order"),
                                   kiln_builder_array(m->b, order, m->shape->n), 0);
    if (m->shape->default_type)
        attrs[n++] = kiln_builder_text_attr(m->b, KILN_STR("pprof.scope.default_sample_type"),
                                            kiln_str_of(m->shape->default_type));
    return kiln_builder_set(m->b, attrs, n, NULL);
}

static void put_heads(struct making *m)
{
    struct kiln_profile profile = {.period = m->shape->period.type ? m->opts->period : 0,
                                   .time_ns = m->opts->time_ns,
                                   .duration_ns = m->opts->duration_ns};

    profile.period_type = type_of(m, m->shape->period);
    profile.attrs = profile_attrs(m);
    kiln_builder_add_resource(m->b, &(struct kiln_resource){0});
    kiln_builder_add_scope(m->b, &(struct kiln_scope){.attrs = scope_attrs(m)});
    for (uint32_t i = 0; i < m->shape->n; i++) {
        profile.sample_type = type_of(m, m->shape->columns[i]);
        kiln_builder_add_profile(m->b, &profile);
    }
}

/* As parts have it too, where they do. */
static void put_program(struct making *m)
{
    struct kiln_mapping mapping = m->opts->program_mapping;
    uint32_t attr;

    if (!m->opts->program.len)
        return;
    if (m->opts->program_build_id.len) {
        attr = kiln_builder_text_attr(m->b, KILN_STR("process.executable.build_id.gnu"),
                                      m->opts->program_build_id);
        mapping.attrs = kiln_builder_set(m->b, &attr, 1, NULL);
    }
    mapping.filename = kiln_builder_string(m->b, m->opts->program);
    kiln_builder_mapping(m->b, &mapping);
}

int kiln_in_shape(enum kiln_in_profile which, const struct kiln_in_part *parts, uint32_t n_parts,
                  const struct kiln_in_shape_opts *opts, struct kiln_batch **ret_batch,
                  struct kiln_err *err)
{
    struct making m = {.shape = &shapes[which], .opts = opts, .budget = {.limit = MEMORY_MAX}};
    int r = kiln_builder_new(NULL, &m.b);

    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    put_program(&m);
    for (uint32_t i = 0; r == 0 && i < n_parts; i++)
        r = take_part(&m, &parts[i]);
    if (r == 0) {
        put_heads(&m);
        r = put_rows(&m);
    }
    if (r < 0)
        kiln_builder_fail(m.b, r);
    kiln_array_free(&m.budget, (void **)&m.entries, &m.cap, sizeof(*m.entries));
    return kiln_builder_finish(m.b, ret_batch, err);
}
