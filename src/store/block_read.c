/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading profiles: the dictionary first, into tables of the reader's own; then page after page of
 * rows, of those that may have something for the question.  Entries go to the builder when a
 * profile or stack needs them (core/remap.h); stacks when the first page of their service comes.
 */
#include <errno.h>

#include "store/block_reader.h"

#define MEMORY_DEFAULT ((size_t)64 << 20)
#define DICT_MAX       ((size_t)4 << 30)
#define SAMPLE_MAX     0x3fffffffu /* observations of a sample, for want of bits */

/* ---- pages ---- */

int kiln_reader_page(struct kiln_block_reader *r, uint32_t kind, uint32_t page,
                     struct kiln_err *err)
{
    const struct kiln_section_shape *shape = &kiln_section_shapes[kind];
    const struct kiln_page_ref *ref = &r->block->footer.pages[page];
    struct kiln_str bytes;
    int result = kiln_page_load(&r->in, r->block->io, r->block->fd, ref->offset, ref->size, err);

    for (uint32_t i = 0; result == 0 && i < shape->numbers; i++)
        result = kiln_page_get(&r->in, &r->columns[i], UINT32_MAX, err);
    for (uint32_t i = 0; result == 0 && i < shape->bytes; i++) {
        kiln_buf_clear(&r->bytes[i]);
        result = kiln_page_get_bytes(&r->in, r->bytes[i].max, &bytes, err);
        if (result == 0) {
            (void)kiln_buf_reserve(&r->bytes[i], bytes.len + 1); /* never nothing */
            kiln_buf_add_str(&r->bytes[i], bytes);
            result = r->bytes[i].error;
        }
    }
    if (result == 0 && !kiln_page_is_read(&r->in))
        result = kiln_reader_damaged(err, "the page has more columns than it should");
    return result;
}

/* Reports what is lost with a page; 0 if that is the caller's wish, else `code`. */
static int lose(struct kiln_block_reader *r, uint32_t kind, uint32_t page, int code,
                const struct kiln_err *err)
{
    const struct kiln_footer *f = &r->block->footer;
    struct kiln_block_lost lost = {
        .section = kiln_section_name(kind),
        .page = page,
        .last_series = f->info.n_series ? (uint32_t)f->info.n_series - 1 : 0,
        .min_ns = f->info.min_ns,
        .max_ns = f->info.max_ns,
        .why = err,
    };

    if (!r->opts.lost || !kiln_block_is_damage(code))
        return code;
    if (kind == KILN_SECTION_ROWS) {
        uint32_t first = kiln_footer_section(f, KILN_SECTION_ROWS)->first_page;

        lost.n_profiles = f->pages[first + page].n_entries;
        if (r->has_page)
            lost.n_profiles = r->profile_is_lost ? 1 : lost.n_profiles - (r->cursor.profile - 1);
        lost.first_series = f->rows[page].first_series;
        lost.last_series = f->rows[page].last_series;
        lost.min_ns = f->rows[page].min_ns;
        lost.max_ns = f->rows[page].max_ns;
    }
    r->opts.lost(r->opts.lost_context, &lost);
    return 0;
}

/* Says where it went wrong: "rows[3]" in the file. */
static int fail_at(const struct kiln_block_reader *r, uint32_t kind, uint32_t page, int code,
                   struct kiln_err *err)
{
    kiln_err_set(err, code, NULL, "%s", kiln_err_text(code));
    kiln_err_within(err, "%s[%u]", kiln_section_name(kind), page);
    return kiln_block_fail(r->block, err, code);
}

static int take_page(struct kiln_block_reader *r, const struct kiln_section *section, uint32_t i,
                     kiln_reader_take *take, struct kiln_err *err)
{
    uint32_t page = section->first_page + i;
    int result = kiln_reader_page(r, section->kind, page, err);

    if (result == 0)
        result = take(r, (uint32_t)r->block->footer.pages[page].n_entries, err);
    if (r->own && kiln_builder_error(r->own) < 0) {
        /* What looks damaged is only what there was no memory for. */
        result = kiln_builder_error(r->own);
        *err = (struct kiln_err){0};
    }
    return result;
}

int kiln_reader_section(struct kiln_block_reader *r, const struct kiln_section *section,
                        kiln_reader_take *take, struct kiln_err *err)
{
    uint64_t n_entries = 0;
    bool broken = false; /* numbers of later pages count on those of this one */

    r->last = 0;
    r->next = 0;
    r->before[0] = r->before[1] = 0;
    for (uint32_t i = 0; section && i < section->n_pages; i++) {
        struct kiln_err why = {0};
        int result = broken ? 0 : take_page(r, section, i, take, &why);

        n_entries += r->block->footer.pages[section->first_page + i].n_entries;
        if (result < 0) {
            result = lose(r, section->kind, i, result, &why);
            broken = result == 0 && !kiln_reader_stands_alone(section->kind);
            if (result == 0)
                result = kiln_reader_fill(r, section->kind, n_entries);
        } else if (broken) {
            result = kiln_reader_fill(r, section->kind, n_entries);
        }
        if (result < 0) {
            kiln_err_set(err, result, why.where, "%s", why.code ? why.text : kiln_err_text(result));
            return fail_at(r, section->kind, i, result, err);
        }
    }
    return 0;
}

int kiln_reader_twice(const struct kiln_block_reader *r, struct kiln_err *err, const char *what)
{
    int error = kiln_builder_error(r->own);

    return error ? error : kiln_reader_damaged(err, what);
}

/* ---- beginning ---- */

static int load_dict(struct kiln_block_reader *r, struct kiln_err *err)
{
    struct kiln_limits limits = kiln_limits_default;
    uint64_t dict_bytes = r->block->footer.info.dict_bytes;
    int result;

    limits.memory_bytes = dict_bytes > DICT_MAX / 2 ? DICT_MAX : (size_t)dict_bytes * 2;
    limits.memory_bytes += r->budget.limit;
    result = kiln_builder_new(&limits, &r->own);
    if (result == 0)
        result = kiln_reader_load_strings(r, err);
    if (result == 0)
        result = kiln_reader_load_dict(r, err);
    if (result == 0 && !r->opts.no_code)
        result = kiln_reader_load_code(r, err);
    if (result == 0)
        result = kiln_reader_spread(r);
    if (result == 0 && r->b)
        result = kiln_remap_new(r->b, kiln_builder_peek(r->own), r->opts.edit, &r->remap);
    return result;
}

/* Damaged ones count too: the profiles that have them are lost, not their page. */
static uint32_t links_in_rows(const struct kiln_block_reader *r)
{
    const struct kiln_section *s = kiln_footer_section(&r->block->footer, KILN_SECTION_LINKS);
    uint32_t n = kiln_builder_peek(r->own)->dict.n_links - 1;

    return r->opts.lost && s && s->n_entries < UINT32_MAX ? (uint32_t)s->n_entries : n;
}

static uint32_t link_of(struct kiln_block_reader *r, uint64_t number)
{
    if (number < kiln_builder_peek(r->own)->dict.n_links)
        return kiln_remap_link(r->remap, (uint32_t)number);
    r->profile_is_lost = true;
    return 0;
}

static int make_tables(struct kiln_block_reader *r)
{
    const struct kiln_dict *d = &kiln_builder_peek(r->own)->dict;
    int result = READER_ROOM(r, r->cpus, r->cap_cpus, d->n_sets);

    if (result < 0)
        return result;
    for (uint32_t i = 0; i < d->n_sets; i++)
        r->cpus[i] = kiln_rows_cpu(d, i);
    r->tables = (struct kiln_rows_tables){
        .n_series = r->block->footer.info.n_series,
        .n_sets = d->n_sets - 1,
        .n_links = links_in_rows(r),
        .n_origins = r->n_origins,
        .n_moments = r->n_moments,
        .moments = r->moments,
        .cpus = r->cpus,
        .ticks = &r->ticks,
    };
    return 0;
}

int kiln_block_read(struct kiln_block *block, const struct kiln_block_read_opts *opts,
                    struct kiln_builder *b, struct kiln_block_reader **ret_reader,
                    struct kiln_err *err)
{
    struct kiln_block_reader *r = kiln_calloc(1, sizeof(*r));
    int result;

    if (!r)
        return kiln_err_set(err, -ENOMEM, block->path, "no memory for reading");
    r->block = kiln_block_ref(block);
    r->opts = opts ? *opts : (struct kiln_block_read_opts){0};
    r->b = b;
    r->service = UINT32_MAX;
    r->end_page = block->footer.n_rows;
    r->budget.limit = r->opts.memory_bytes ? r->opts.memory_bytes : MEMORY_DEFAULT;
    for (size_t i = 0; i < KILN_ARRAY_LEN(r->bytes); i++)
        kiln_buf_init(&r->bytes[i], r->budget.limit);
    result = kiln_page_in_init(&r->in, &r->budget);
    if (result == 0)
        result = load_dict(r, err);
    if (result == 0)
        result = make_tables(r);
    if (result < 0) {
        kiln_err_set(err, result, block->path, "%s", kiln_err_text(result));
        kiln_block_reader_free(r);
        return result;
    }
    *ret_reader = r;
    return 0;
}

#define FREE(array)                                                                                \
    kiln_array_free(&r->budget, (void **)&r->array, &r->cap_##array, sizeof(*r->array))

void kiln_reader_trim(struct kiln_block_reader *r)
{
    FREE(lists);
    FREE(lines);
    FREE(path);
    for (uint32_t i = 0; i < KILN_COLUMNS_MAX; i++)
        kiln_column_done(&r->columns[i], &r->budget);
    for (size_t i = 0; i < KILN_ARRAY_LEN(r->bytes); i++)
        kiln_buf_done(&r->bytes[i]);
    kiln_page_in_done(&r->in);
    kiln_block_unref(r->block);
    r->block = NULL;
    if (r->own)
        kiln_builder_drop_indexes(r->own);
}

void kiln_block_reader_free(struct kiln_block_reader *r)
{
    if (!r)
        return;
    kiln_reader_trim(r);
    kiln_remap_free(r->remap);
    kiln_builder_free(r->own);
    FREE(origins);
    FREE(moments);
    FREE(stack_of);
    FREE(sorted);
    FREE(cpus);
    FREE(samples);
    FREE(observations);
    FREE(keyed);
    FREE(keyed_scratch);
    kiln_reader_marks_done(r);
    kiln_free(r);
}
#undef FREE

/* ---- choosing ---- */

static bool is_chosen(const struct kiln_block_reader *r, uint64_t series)
{
    return !r->opts.series || (r->opts.series[series / 64] >> series % 64 & 1);
}

static bool has_range(const struct kiln_block_reader *r)
{
    return r->opts.start_ns || r->opts.end_ns;
}

static bool in_range(const struct kiln_block_reader *r, uint64_t t)
{
    return t >= r->opts.start_ns && t < r->opts.end_ns;
}

static bool page_is_wanted(const struct kiln_block_reader *r, const struct kiln_rows_ref *ref)
{
    bool wanted = false;

    if (has_range(r) && (ref->max_ns < r->opts.start_ns || ref->min_ns >= r->opts.end_ns))
        return false;
    for (uint32_t i = ref->first_series; i <= ref->last_series && !wanted; i++)
        wanted = is_chosen(r, i);
    return wanted;
}

static bool profile_is_wanted(const struct kiln_block_reader *r, const struct kiln_rows_profile *p,
                              uint64_t series)
{
    const uint64_t *times = r->columns[KILN_ROWS_TIME].v + p->time;
    bool wanted = !has_range(r) || in_range(r, p->moment.time_ns);

    for (uint64_t i = 0; !wanted && i < p->of[2] + p->of[3]; i++)
        wanted = in_range(r, times[i]);
    return wanted && is_chosen(r, series);
}

/* ---- rows ---- */

static int load_rows(struct kiln_block_reader *r, uint32_t i, struct kiln_err *err)
{
    const struct kiln_footer *f = &r->block->footer;
    uint32_t page = kiln_footer_section(f, KILN_SECTION_ROWS)->first_page + i;
    const struct kiln_rows_ref *ref = &f->rows[i];
    const struct kiln_column *series = &r->columns[KILN_ROWS_SERIES];
    int result = kiln_reader_page(r, KILN_SECTION_ROWS, page, err);

    r->tables.n_stacks = r->n_stacks;
    if (result == 0)
        result =
            kiln_rows_decode(r->columns, f->pages[page].n_entries, &r->tables, &r->budget, err);
    if (result == 0 &&
        (series->v[0] < ref->first_series || series->v[series->n - 1] > ref->last_series))
        result = kiln_reader_damaged(err, "its series are not those of the index");
    r->cursor = (struct kiln_rows_cursor){.columns = r->columns, .tables = &r->tables};
    return result;
}

int kiln_reader_next_page(struct kiln_block_reader *r, struct kiln_err *err)
{
    const struct kiln_footer *f = &r->block->footer;
    uint32_t i = r->next_page;
    struct kiln_err why = {0};
    int result;

    r->profile_is_lost = false;
    while (i < r->end_page && !page_is_wanted(r, &f->rows[i]))
        i++;
    r->next_page = i + 1;
    if (i >= r->end_page)
        return 0;
    result = kiln_reader_load_stacks(r, f->services[f->rows[i].first_series], err);
    if (result < 0)
        return kiln_block_fail(r->block, err, result);
    result = load_rows(r, i, &why);
    r->has_page = result == 0;
    if (result < 0)
        result = lose(r, KILN_SECTION_ROWS, i, result, &why);
    if (result < 0) {
        kiln_err_set(err, result, why.where, "%s", why.code ? why.text : kiln_err_text(result));
        return fail_at(r, KILN_SECTION_ROWS, i, result, err);
    }
    return 1;
}

/*
 * Puts the `n` rows from `first` on in the order of identity, so that those of one sample stand
 * together, in the order of time they have.
 */
static void sort_rows(struct kiln_block_reader *r, uint64_t first, uint32_t n)
{
    const uint64_t *stacks = r->columns[KILN_ROWS_STACK].v + first;
    const uint64_t *attrs = r->columns[KILN_ROWS_ATTRS].v + first;
    const uint64_t *links = r->columns[KILN_ROWS_LINK].v + first;
    uint64_t linked = 0;

    for (uint32_t i = 0; i < n; i++) {
        r->keyed[i] = (struct kiln_keyed){.key = links[i], .at = i};
        linked |= links[i];
    }
    if (linked)
        kiln_sort_keyed(r->keyed, r->keyed_scratch, n);
    for (uint32_t i = 0; i < n; i++)
        r->keyed[i].key = stacks[r->keyed[i].at] << 32 | attrs[r->keyed[i].at];
    kiln_sort_keyed(r->keyed, r->keyed_scratch, n);
}

/* Rows of one identity among the `n` at `keyed`. */
static uint32_t run_length(const struct kiln_keyed *keyed, const uint64_t *links, uint32_t n)
{
    uint32_t run = 1;

    while (run < n && run < SAMPLE_MAX && keyed[run].key == keyed[0].key &&
           links[keyed[run].at] == links[keyed[0].at])
        run++;
    return run;
}

/* Where the next row, value, time, sample and observation of a profile are. */
struct fill {
    uint64_t row, value, time;
    uint32_t n_samples, n_observations;
};

static void fill_shape(struct kiln_block_reader *r, struct fill *at, uint32_t shape, uint32_t n)
{
    const uint64_t *links = r->columns[KILN_ROWS_LINK].v + at->row;
    const uint64_t *values = r->columns[KILN_ROWS_VALUE].v + at->value;
    const uint64_t *times = r->columns[KILN_ROWS_TIME].v + at->time;

    sort_rows(r, at->row, n);
    for (uint32_t i = 0, run; i < n; i += run) {
        const struct kiln_keyed *keyed = r->keyed + i;

        run = run_length(keyed, links, n - i);
        if (r->has_marks)
            r->profile_is_lost |= r->stack_of[(keyed->key >> 32) - 1] == KILN_READER_BAD ||
                                  kiln_reader_is_marked(r, KILN_SECTION_SETS, (uint32_t)keyed->key);
        r->samples[at->n_samples++] = (struct kiln_sample){
            .stack = r->stack_of[(keyed->key >> 32) - 1],
            .attrs = kiln_remap_set(r->remap, (uint32_t)keyed->key),
            .link = link_of(r, links[keyed->at]),
            .first = at->n_observations,
            .n = run & SAMPLE_MAX,
            .has_values = shape & 1,
            .has_times = shape >> 1 & 1,
        };
        for (uint32_t k = 0; (shape & 1) && k < run; k++)
            r->observations[at->n_observations++] = (int64_t)values[keyed[k].at];
        for (uint32_t k = 0; (shape & 2) && k < run; k++)
            r->observations[at->n_observations++] = (int64_t)times[keyed[k].at];
    }
    at->row += n;
    at->value += shape & 1 ? n : 0;
    at->time += shape & 2 ? n : 0;
}

static int fill_samples(struct kiln_block_reader *r, const struct kiln_rows_profile *p,
                        uint32_t *ret_n)
{
    uint64_t n = p->of[1] + p->of[2] + p->of[3];
    struct fill at = {p->row, p->value, p->time, 0, 0};
    int result = READER_ROOM(r, r->samples, r->cap_samples, n);

    if (result == 0)
        result = READER_ROOM(r, r->observations, r->cap_observations, n + p->of[3]);
    if (result == 0)
        result = READER_ROOM(r, r->keyed, r->cap_keyed, n);
    if (result == 0)
        result = READER_ROOM(r, r->keyed_scratch, r->cap_keyed_scratch, n);
    for (uint32_t shape = 1; result == 0 && shape <= 3; shape++)
        fill_shape(r, &at, shape, (uint32_t)p->of[shape]);
    *ret_n = at.n_samples;
    return result;
}

/* All of a profile's head but its id and payload. */
static struct kiln_block_profile head_of(struct kiln_block_reader *r, uint64_t origin)
{
    const struct kiln_origin *o = &r->origins[origin - 1];

    return (struct kiln_block_profile){
        .resource = o->resource - 1,
        .scope = o->scope - 1,
        .flags = o->flags,
        .head =
            {
                .sample_type = {kiln_remap_string(r->remap, o->sample_type.type),
                                kiln_remap_string(r->remap, o->sample_type.unit)},
                .period_type = {kiln_remap_string(r->remap, o->period_type.type),
                                kiln_remap_string(r->remap, o->period_type.unit)},
                .period = o->period,
                .attrs = kiln_remap_set(r->remap, o->attrs),
                .dropped_attrs = o->dropped_attrs,
                .payload_format = kiln_remap_string(r->remap, o->payload_format),
            },
    };
}

bool kiln_reader_get_bytes(const struct kiln_block_reader *r, const struct kiln_rows_profile *p,
                           struct kiln_profile *head)
{
    if ((p->shape & KILN_SHAPE_HAS_ID) && p->id + sizeof(head->id) > r->bytes[0].len)
        return false;
    if (p->payload > r->bytes[1].len || p->payload_len > r->bytes[1].len - p->payload)
        return false;
    if (p->shape & KILN_SHAPE_HAS_ID)
        memcpy(head->id, r->bytes[0].ptr + p->id, sizeof(head->id));
    if (p->payload_len)
        head->payload = (struct kiln_str){r->bytes[1].ptr + p->payload, (size_t)p->payload_len};
    return true;
}

static int fill_profile(struct kiln_block_reader *r, const struct kiln_rows_profile *p, uint32_t i,
                        struct kiln_block_profile *ret, struct kiln_err *err)
{
    struct kiln_block_profile made;
    uint64_t origin = r->columns[KILN_ROWS_ORIGIN].v[i];
    int result;

    if (origin == 0)
        return kiln_reader_damaged(err, "a profile has no origin");
    r->profile_is_lost = kiln_reader_is_marked(r, KILN_SECTION_ORIGINS, origin);
    made = head_of(r, origin);
    if (!kiln_reader_get_bytes(r, p, &made.head))
        return kiln_reader_damaged(err, "an id or payload is not there");
    made.series = (uint32_t)r->columns[KILN_ROWS_SERIES].v[i];
    made.head.time_ns = p->moment.time_ns;
    made.head.duration_ns = p->moment.duration_ns;
    result = fill_samples(r, p, &made.head.n_samples);
    if (result == 0)
        result = kiln_builder_error(r->b);
    if (result == 0 && r->profile_is_lost)
        return kiln_reader_damaged(err, "a profile refers to what is damaged");
    made.samples = r->samples;
    made.observations = r->observations;
    if (result == 0)
        *ret = made;
    return result;
}

int kiln_block_next(struct kiln_block_reader *r, struct kiln_block_profile *ret_profile,
                    struct kiln_err *err)
{
    struct kiln_rows_profile p;
    int result = 1;

    for (;;) {
        struct kiln_err why = {0};
        uint32_t i = r->cursor.profile;

        if (r->has_page && kiln_rows_next(&r->cursor, &p) > 0) {
            if (!profile_is_wanted(r, &p, r->columns[KILN_ROWS_SERIES].v[i]))
                continue;
            result = fill_profile(r, &p, i, ret_profile, &why);
            if (result == 0)
                return 1;
            result = lose(r, KILN_SECTION_ROWS, r->next_page - 1, result, &why);
            r->has_page = r->profile_is_lost; /* else the rest of its page is not counted on */
            if (result == 0)
                continue;
            kiln_err_set(err, result, why.where, "%s", why.code ? why.text : kiln_err_text(result));
            return fail_at(r, KILN_SECTION_ROWS, r->next_page - 1, result, err);
        }
        r->has_page = false;
        result = kiln_reader_next_page(r, err);
        if (result <= 0)
            return result;
    }
}

int kiln_block_add_resource(struct kiln_block_reader *r, uint32_t resource, uint32_t *ret_index)
{
    if (resource >= kiln_builder_peek(r->own)->n_resources)
        return KILN_E_RANGE;
    *ret_index = kiln_remap_add_resource(r->remap, resource);
    return kiln_builder_error(r->b);
}

struct kiln_scope kiln_block_scope(struct kiln_block_reader *r, uint32_t scope)
{
    if (scope >= kiln_builder_peek(r->own)->n_scopes)
        return (struct kiln_scope){0};
    return kiln_remap_scope(r->remap, scope);
}
