/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a block: pages that have a chosen series in the time, one after the other, and of
 * each only the columns that somebody looks at.
 */
#include <errno.h>

#include "store/scan_int.h"

#define PAGES_MAX ((size_t)256 << 20) /* bytes of columns */

struct pages {
    struct kiln_scan *scan;
    struct kiln_block *block;
    struct kiln_block_dict *dict;
    struct kiln_budget budget;
    struct kiln_page_in in;
    struct kiln_column columns[KILN_COLUMNS_MAX];
    struct kiln_buf ids;
    struct kiln_ticks *ticks;
    struct kiln_rows_tables tables;
    struct kiln_scan_source source;
    bool has_source, has_ids;
    uint32_t *whole;              /* room for the numbers of all series */
    struct kiln_basis before;     /* the source at hand, if it is whole */
    struct kiln_scan_sieve sieve; /* of the page at hand */
};

static int damaged(struct kiln_err *err, const char *what)
{
    return kiln_err_set(err, KILN_E_CORRUPT, NULL, "%s", what);
}

/* ---- sources ---- */

static int end_source(struct pages *pg, struct kiln_err *err)
{
    const struct kiln_scan_visitor *v = pg->scan->visitor;
    struct kiln_scan_piece piece;

    if (!pg->has_source)
        return 0;
    pg->has_source = false;
    if (pg->source.whole) {
        piece = kiln_scan_end_piece(pg->scan, &pg->before);
        pg->source.piece = &piece;
    }
    return v->end ? v->end(v->context, &pg->source, err) : 0;
}

static bool is_chosen(const struct pages *pg, const struct kiln_rows_ref *ref)
{
    for (uint32_t i = ref->first_series; i <= ref->last_series; i++) {
        if (pg->scan->memo.series[i].chosen)
            return true;
    }
    return false;
}

/* Whether all rows of the chosen series are meant, from a page on, the first of the service. */
static bool is_whole(const struct pages *pg, uint32_t page)
{
    const struct kiln_scan *scan = pg->scan;
    const struct kiln_footer *f = &pg->block->footer;
    uint32_t service = f->services[f->rows[page].first_series];

    if (!scan->visitor->known || kiln_scan_has_links(scan) || kiln_scan_has_stacks(scan) ||
        scan->q->n_profile_ids)
        return false;
    for (; page < f->n_rows && f->services[f->rows[page].first_series] == service; page++) {
        if (is_chosen(pg, &f->rows[page]) &&
            !kiln_scan_covers(scan, f->rows[page].min_ns, f->rows[page].max_ns))
            return false;
    }
    return true;
}

/* Lists the chosen series of the service, where all of their rows are meant. */
static void list_whole(struct pages *pg, uint32_t page)
{
    const struct kiln_footer *f = &pg->block->footer;
    uint32_t n = 0, service = pg->source.service, first = f->rows[page].first_series;

    while (first > 0 && f->services[first - 1] == service) /* series are sorted by service */
        first--;
    pg->source.whole = is_whole(pg, page) ? pg->whole : NULL;
    for (uint32_t i = first; pg->source.whole && i < f->info.n_series && f->services[i] == service;
         i++) {
        const struct kiln_scan_series *s = &pg->scan->memo.series[i];

        if (!s->chosen)
            continue;
        if (s->pending)
            pg->source.whole = NULL;
        pg->whole[n++] = i;
    }
    pg->source.n_whole = n;
    pg->source.piece = NULL;
}

/* 1: its rows need not be shown. */
static int begin_source(struct pages *pg, uint32_t page, struct kiln_err *err)
{
    const struct kiln_footer *f = &pg->block->footer;
    const struct kiln_scan_visitor *v = pg->scan->visitor;
    uint32_t service = f->services[f->rows[page].first_series];
    uint64_t n = f->sections[f->stacks[service]].n_entries;
    int r = end_source(pg, err);

    if (r != 0)
        return r;
    if (n > UINT32_MAX)
        return damaged(err, "a service has more stacks than there can be");
    pg->source.service = service;
    pg->source.n_stacks = (uint32_t)n;
    pg->tables.n_stacks = n;
    list_whole(pg, page);
    if (pg->source.whole)
        r = v->known(v->context, &pg->source, err);
    if (r == 0 && kiln_scan_has_stacks(pg->scan))
        r = kiln_scan_mark_stacks(pg->scan, &pg->source, NULL, pg->source.n_stacks, err);
    if (r == 0 && v->begin)
        r = v->begin(v->context, &pg->source, err);
    pg->has_source = r == 0;
    if (pg->has_source && pg->source.whole)
        pg->before = kiln_scan_begin_piece(pg->scan);
    return r;
}

/* ---- pages ---- */

static bool is_wanted(const struct pages *pg, const struct kiln_rows_ref *ref)
{
    return kiln_scan_touches(pg->scan, ref->min_ns, ref->max_ns) && is_chosen(pg, ref);
}

/* Which columns nobody looks at. */
static void plan(struct pages *pg, const struct kiln_rows_ref *ref)
{
    const struct kiln_scan *scan = pg->scan;
    bool covered = kiln_scan_covers(scan, ref->min_ns, ref->max_ns);
    bool times = (scan->columns & KILN_SCAN_TIMES) || !covered;
    bool links = (scan->columns & KILN_SCAN_LINKS) || kiln_scan_has_links(scan);
    bool attrs = (scan->columns & KILN_SCAN_ATTRS) || scan->memo.in_sets || times;

    pg->tables.skipped = 0;
    if (!attrs)
        pg->tables.skipped |= 1u << KILN_ROWS_ATTRS;
    if (!links)
        pg->tables.skipped |= 1u << KILN_ROWS_LINK;
    if (!times)
        pg->tables.skipped |= 1u << KILN_ROWS_TIME | 1u << KILN_ROWS_TICK | 1u << KILN_ROWS_OFF;
    pg->has_ids = (scan->columns & KILN_SCAN_IDS) || scan->q->n_profile_ids;
    pg->sieve = (struct kiln_scan_sieve){
        .times = !covered,
        .links = kiln_scan_has_links(scan),
        .stacks = scan->memo.stacks != NULL,
        .min_ns = ref->min_ns,
        .max_ns = ref->max_ns,
    };
}

static int read_ids(struct pages *pg, struct kiln_err *err)
{
    struct kiln_str bytes;
    uint32_t n;
    int r;

    kiln_buf_clear(&pg->ids);
    if (!pg->has_ids)
        return kiln_page_skip(&pg->in, &n, err);
    r = kiln_page_get_bytes(&pg->in, PAGES_MAX, &bytes, err);
    if (r == 0) {
        kiln_buf_add_str(&pg->ids, bytes);
        r = pg->ids.error;
    }
    return r;
}

static int read_columns(struct pages *pg, uint32_t page, struct kiln_err *err)
{
    const struct kiln_page_ref *ref = &pg->block->footer.pages[page];
    struct kiln_column *c = pg->columns;
    uint32_t n;
    int r = kiln_leash_check(pg->scan->q->leash);

    if (r == 0)
        r = kiln_leash_read(pg->scan->q->leash, ref->size);
    if (r == 0)
        r = kiln_page_load(&pg->in, pg->block->io, pg->block->fd, ref->offset, ref->size, err);
    for (uint32_t i = 0; r == 0 && i < KILN_N_ROWS_COLUMNS; i++)
        r = pg->tables.skipped >> i & 1 ? kiln_page_skip(&pg->in, &c[i].n, err)
                                        : kiln_page_get(&pg->in, &c[i], UINT32_MAX, err);
    if (r == 0)
        r = read_ids(pg, err);
    if (r == 0)
        r = kiln_page_skip(&pg->in, &n, err); /* payloads */
    if (r == 0 && !kiln_page_is_read(&pg->in))
        r = damaged(err, "the page has more columns than it should");
    if (r == 0)
        r = kiln_rows_decode(c, ref->n_entries, &pg->tables, &pg->budget, err);
    return r;
}

/* ---- profiles ---- */

/* The rows of a profile by shape. */
static void fill_runs(const struct pages *pg, const struct kiln_rows_profile *at,
                      struct kiln_scan_profile *p)
{
    const struct kiln_column *c = pg->columns;
    uint32_t skipped = pg->tables.skipped, row = at->row, value = at->value, time = at->time;

    for (uint32_t shape = 1; shape <= 3; shape++) {
        uint32_t n = (uint32_t)at->of[shape];
        bool timed = shape & 2;

        if (n == 0)
            continue;
        p->runs[p->n_runs++] = (struct kiln_scan_run){
            .n = n,
            .stacks = c[KILN_ROWS_STACK].v + row,
            .attrs = skipped >> KILN_ROWS_ATTRS & 1 ? NULL : c[KILN_ROWS_ATTRS].v + row,
            .links = skipped >> KILN_ROWS_LINK & 1 ? NULL : c[KILN_ROWS_LINK].v + row,
            .values = shape & 1 ? c[KILN_ROWS_VALUE].v + value : NULL,
            .times = !timed || skipped >> KILN_ROWS_TIME & 1 ? NULL : c[KILN_ROWS_TIME].v + time,
            .timed = timed,
        };
        row += n;
        value += shape & 1 ? n : 0;
        time += timed ? n : 0;
    }
}

static int show_profile(struct pages *pg, const struct kiln_rows_profile *at, uint32_t i,
                        struct kiln_err *err)
{
    struct kiln_scan *scan = pg->scan;
    uint64_t series = pg->columns[KILN_ROWS_SERIES].v[i];
    uint64_t origin = pg->columns[KILN_ROWS_ORIGIN].v[i];
    const struct kiln_scan_series *known = &scan->memo.series[series];
    struct kiln_scan_profile p = {
        .source = &pg->source,
        .series = &known->series,
        .key = known->key,
        .series_number = (uint32_t)series,
        .origin_number = (uint32_t)origin,
        .time_ns = at->moment.time_ns,
        .duration_ns = at->moment.duration_ns,
    };
    int r;

    if (origin == 0)
        return damaged(err, "a profile has no origin");
    p.origin = &pg->dict->origins[origin - 1];
    if (pg->has_ids && (at->shape & KILN_SHAPE_HAS_ID)) {
        if (at->id + 16 > pg->ids.len)
            return damaged(err, "an id is not there");
        p.id = (const uint8_t *)pg->ids.ptr + at->id;
    }
    if (!kiln_scan_id_wanted(scan, p.id))
        return 0;
    r = kiln_scan_judge(scan, known, pg->dict->batch, p.origin, p.origin_number,
                        &pg->sieve.opinion);
    if (r < 0)
        return r;
    pg->sieve.pending = known->pending & scan->memo.in_sets;
    pg->sieve.flags = p.origin->flags;
    kiln_scan_weigh(&p);
    fill_runs(pg, at, &p);
    return kiln_scan_show(scan, &p, &pg->sieve, err);
}

static int scan_page(struct pages *pg, uint32_t i, struct kiln_err *err)
{
    const struct kiln_footer *f = &pg->block->footer;
    const struct kiln_rows_ref *ref = &f->rows[i];
    const struct kiln_column *series = &pg->columns[KILN_ROWS_SERIES];
    struct kiln_rows_cursor cursor = {.columns = pg->columns, .tables = &pg->tables};
    struct kiln_rows_profile at;
    int r;

    plan(pg, ref);
    r = read_columns(pg, kiln_footer_section(f, KILN_SECTION_ROWS)->first_page + i, err);
    if (r < 0)
        return r;
    if (series->v[0] < ref->first_series || series->v[series->n - 1] > ref->last_series ||
        f->services[ref->first_series] != f->services[ref->last_series])
        return damaged(err, "its series are not those of the index");
    while (r == 0 && (r = kiln_rows_next(&cursor, &at)) > 0) {
        uint32_t profile = cursor.profile - 1;

        r = pg->scan->memo.series[series->v[profile]].chosen ? show_profile(pg, &at, profile, err)
                                                             : 0;
    }
    return r;
}

static int scan_pages(struct pages *pg, struct kiln_err *err)
{
    const struct kiln_footer *f = &pg->block->footer;
    uint32_t known = UINT32_MAX; /* a service */
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < f->n_rows; i++) {
        uint32_t service = f->services[f->rows[i].first_series];

        if (service == known || !is_wanted(pg, &f->rows[i]))
            continue;
        if (!pg->has_source || pg->source.service != service)
            r = begin_source(pg, i, err);
        if (r == 0)
            r = scan_page(pg, i, err);
        else if (r > 0)
            known = service;
        r = r > 0 ? 0 : r;
        if (r < 0 && !err->code)
            kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
        if (r < 0)
            kiln_err_within(err, "rows[%u]", i);
    }
    return r == 0 ? end_source(pg, err) : r;
}

/* ---- a block ---- */

int kiln_scan_choose_block(struct kiln_scan *scan, const struct kiln_block *block, bool *ret_any)
{
    const struct kiln_footer *f = &block->footer;
    int r = 0;

    *ret_any = false;
    for (uint32_t i = 0; r == 0 && i < f->info.n_series; i++) {
        const struct kiln_block_series *s = &f->series[i];

        r = kiln_scan_add_series(
            scan, s->key,
            (!scan->only_service || f->services[i] + 1 == scan->only_service) &&
                kiln_scan_touches(scan, s->min_ns, s->max_ns));
        *ret_any |= r == 0 && scan->memo.series[i].chosen;
    }
    return r;
}

static int open_pages(struct pages *pg, struct kiln_err *err)
{
    const struct kiln_batch *batch;
    int r = kiln_block_meta(&pg->scan->store->cache, pg->block, &pg->scan->fund, &pg->dict, err);

    if (r < 0)
        return r;
    batch = pg->source.batch = pg->dict->batch;
    pg->ticks = kiln_calloc(1, sizeof(*pg->ticks));
    pg->whole = kiln_calloc((size_t)pg->block->footer.info.n_series + 1, sizeof(*pg->whole));
    if (!pg->ticks || !pg->whole)
        return -ENOMEM;
    pg->tables = (struct kiln_rows_tables){
        .n_series = pg->block->footer.info.n_series,
        .n_sets = batch->dict.n_sets - 1,
        .n_links = batch->dict.n_links - 1,
        .n_origins = pg->dict->n_origins,
        .n_moments = pg->dict->n_moments,
        .moments = pg->dict->moments,
        .cpus = pg->dict->cpus,
        .ticks = pg->ticks,
    };
    r = kiln_page_in_init(&pg->in, &pg->budget);
    return r < 0 ? r : kiln_scan_learn(pg->scan, batch);
}

static void close_pages(struct pages *pg)
{
    kiln_page_in_done(&pg->in);
    for (uint32_t i = 0; i < KILN_COLUMNS_MAX; i++)
        kiln_column_done(&pg->columns[i], &pg->budget);
    kiln_buf_done(&pg->ids);
    kiln_free(pg->ticks);
    kiln_free(pg->whole);
    kiln_block_dict_done(pg->dict, &pg->scan->fund);
    kiln_free(pg);
}

/* The rows of the chosen series. */
static int show_rows(struct kiln_scan *scan, struct kiln_scan_part *part, struct kiln_block *block,
                     struct kiln_err *err)
{
    struct pages *pg = kiln_calloc(1, sizeof(*pg));
    int r;

    if (!pg)
        return -ENOMEM;
    pg->scan = scan;
    pg->block = block;
    pg->budget.limit = PAGES_MAX;
    pg->in.budget = &pg->budget;
    pg->source.tenant = part->tenant;
    pg->source.tenant_name = kiln_str_of(part->tenant->name);
    pg->source.block = block;
    kiln_buf_init(&pg->ids, PAGES_MAX);
    r = open_pages(pg, err);
    if (r == 0)
        r = scan_pages(pg, err);
    close_pages(pg);
    return r;
}

/* ---- whole blocks ---- */

static bool is_whole_block(const struct kiln_scan *scan, const struct kiln_block *block)
{
    const struct kiln_footer *f = &block->footer;

    if (!scan->visitor->begin_block || kiln_scan_has_links(scan) || kiln_scan_has_stacks(scan) ||
        scan->q->n_profile_ids)
        return false;
    for (uint32_t i = 0; i < f->info.n_series; i++) {
        const struct kiln_scan_series *s = &scan->memo.series[i];

        if (s->chosen &&
            (s->pending || !kiln_scan_covers(scan, f->series[i].min_ns, f->series[i].max_ns)))
            return false;
    }
    return true;
}

static int show(struct kiln_scan *scan, struct kiln_scan_part *part, struct kiln_block *block,
                struct kiln_err *err)
{
    if (kiln_block_info(block)->level && scan->visitor->rolled && kiln_scan_may_roll(scan))
        return kiln_scan_roll(scan, part, block, show_rows, err);
    return show_rows(scan, part, block, err);
}

static int show_whole(struct kiln_scan *scan, struct kiln_scan_part *part,
                      struct kiln_scan_source *source, struct kiln_err *err)
{
    const struct kiln_scan_visitor *v = scan->visitor;
    struct kiln_scan_piece piece;
    struct kiln_basis before;
    int r = v->begin_block(v->context, source, err);

    if (r != 0)
        return r < 0 ? r : 0;
    before = kiln_scan_begin_piece(scan);
    r = show(scan, part, source->block, err);
    piece = kiln_scan_end_piece(scan, &before);
    scan->basis.n_rolled += piece.basis.n_rolled;
    source->piece = &piece;
    return r < 0 ? r : v->end_block(v->context, source, err);
}

static int show_block(struct kiln_scan *scan, struct kiln_scan_part *part, struct kiln_block *block,
                      struct kiln_err *err)
{
    struct kiln_scan_source source = {.tenant = part->tenant,
                                      .tenant_name = kiln_str_of(part->tenant->name),
                                      .block = block,
                                      .service = UINT32_MAX};
    uint32_t *whole;
    int r;

    if (!is_whole_block(scan, block))
        return show(scan, part, block, err);
    whole = kiln_malloc(((size_t)scan->memo.n_series + 1) * sizeof(*whole));
    if (!whole)
        return -ENOMEM;
    for (uint32_t i = 0; i < scan->memo.n_series; i++) {
        if (scan->memo.series[i].chosen)
            whole[source.n_whole++] = i;
    }
    source.whole = whole;
    r = show_whole(scan, part, &source, err);
    kiln_free(whole);
    return r;
}

int kiln_scan_block(struct kiln_scan *scan, struct kiln_scan_part *part, struct kiln_block *block,
                    struct kiln_err *err)
{
    const struct kiln_block_info *info = kiln_block_info(block);
    bool any;
    int r;

    if (!kiln_scan_touches(scan, info->min_ns, info->max_ns))
        return 0;
    kiln_scan_forget(scan);
    r = kiln_scan_choose_block(scan, block, &any);
    if (r < 0 || !any)
        return r;
    r = show_block(scan, part, block, err);
    scan->basis.n_blocks++;
    return r < 0 ? kiln_block_fail(block, err, r) : r;
}
