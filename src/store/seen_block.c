/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A look-up goes from the key to the number of the series (a hash table), to the pages of rows that
 * have this series and cover this time (two binary searches), and into the sorted hashes of each.
 *
 * A page is read for its times at the first look-up, and its profiles are hashed at the first
 * look-up that meets an equal series and time.  A page that is damaged has nothing.
 */
#include "store/seen_block.h"

#include <errno.h>

#include "store/block_times.h"
#include "store/sort.h"

#define BYTES_SHARE 16u /* of the pool, for all that is indexed; */
#define BYTES_MIN   ((size_t)1 << 20)
#define BYTES_MAX   ((size_t)256 << 20)
#define PAGE_BYTES  256u /* of the memory for reading a page: for each profile of it, */
#define PAGE_ALWAYS ((size_t)256 << 10) /* and beside them */

/* A page of rows. */
struct kiln_seen_page {
    struct kiln_seen_use use; /* first */
    struct kiln_seen_block *owner;
    uint32_t page, n;
    uint32_t *hashes;                 /* of series and time, ascending */
    struct kiln_content_hash *prints; /* parallel; NULL: not read yet */
};

/* How far pages that have a series in common reach, up to this one and from this one on. */
struct reach {
    uint64_t latest, earliest;
};

struct kiln_seen_block {
    struct kiln_seen_use use; /* first */
    struct kiln_block *block; /* borrowed: the catalog has it */
    uint32_t *series;         /* by hash of the key: its number and 1; 0: free */
    uint32_t n_slots, n_clock;
    uint64_t *clock; /* store/block_times.h */
    struct reach *reach;
    struct kiln_seen_page **pages;
    size_t bytes;
};

/* ---- the order of use ---- */

static void take_out(struct kiln_seen_use *use)
{
    use->newer->older = use->older;
    use->older->newer = use->newer;
}

static void put_newest(struct kiln_seen_use *list, struct kiln_seen_use *use)
{
    use->newer = list;
    use->older = list->older;
    list->older->newer = use;
    list->older = use;
}

static void touch(struct kiln_seen_use *list, struct kiln_seen_use *use)
{
    take_out(use);
    put_newest(list, use);
}

/* ---- memory ---- */

static size_t page_bytes(uint32_t n, bool prints)
{
    return sizeof(struct kiln_seen_page) +
           n * (sizeof(uint32_t) + (prints ? sizeof(struct kiln_content_hash) : 0));
}

static void give(struct kiln_seen *seen, size_t bytes)
{
    seen->bytes -= bytes;
    kiln_pool_give(seen->pool, bytes);
}

static void drop_page(struct kiln_seen *seen, struct kiln_seen_page *page)
{
    take_out(&page->use);
    page->owner->pages[page->page] = NULL;
    give(seen, page_bytes(page->n, page->prints != NULL));
    kiln_free(page);
}

static void free_block(struct kiln_seen_block *b)
{
    kiln_free(b->series);
    kiln_free(b->clock);
    kiln_free(b->reach);
    kiln_free(b->pages);
    kiln_free(b);
}

static void drop_block(struct kiln_seen *seen, struct kiln_seen_block *b)
{
    for (uint32_t i = 0; i < b->block->footer.n_rows; i++) {
        if (b->pages[i])
            drop_page(seen, b->pages[i]);
    }
    take_out(&b->use);
    b->block->seen = NULL;
    seen->block_bytes -= b->bytes;
    give(seen, b->bytes);
    free_block(b);
}

/* The index of the block used last stays. */
bool kiln_seen_drop_oldest(struct kiln_seen *seen)
{
    struct kiln_seen_use *block = seen->blocks.newer, *page = seen->pages.newer;
    bool has_block = block != &seen->blocks && block != seen->blocks.older;
    bool has_page = page != &seen->pages;

    if (has_block && (!has_page || seen->block_bytes > seen->bytes_max / 2))
        drop_block(seen, (struct kiln_seen_block *)block);
    else if (has_page)
        drop_page(seen, (struct kiln_seen_page *)page);
    return has_block || has_page;
}

static int take(struct kiln_seen *seen, size_t bytes)
{
    while (seen->bytes + bytes > seen->bytes_max && kiln_seen_drop_oldest(seen))
        ;
    while (kiln_pool_take(seen->pool, bytes) < 0) {
        if (!kiln_seen_drop_oldest(seen))
            return KILN_E_LIMIT;
    }
    seen->bytes += bytes;
    return 0;
}

/* ---- the index of a block ---- */

static void index_series(struct kiln_seen_block *b)
{
    const struct kiln_footer *f = &b->block->footer;
    uint32_t mask = b->n_slots - 1;

    for (uint32_t i = 0; i < f->info.n_series; i++) {
        uint32_t at = (uint32_t)kiln_hash(f->series[i].key.ptr, f->series[i].key.len) & mask;

        while (b->series[at])
            at = (at + 1) & mask;
        b->series[at] = i + 1;
    }
}

/* Whether a page begins with the series that the one before it ends with. */
static bool goes_on(const struct kiln_footer *f, uint32_t page)
{
    return page > 0 && page < f->n_rows &&
           f->rows[page].first_series == f->rows[page - 1].last_series;
}

static void set_reach(struct kiln_seen_block *b)
{
    const struct kiln_footer *f = &b->block->footer;

    for (uint32_t i = 0; i < f->n_rows; i++) {
        b->reach[i].latest = f->rows[i].max_ns;
        if (goes_on(f, i) && b->reach[i - 1].latest > b->reach[i].latest)
            b->reach[i].latest = b->reach[i - 1].latest;
    }
    for (uint32_t i = f->n_rows; i-- > 0;) {
        b->reach[i].earliest = f->rows[i].min_ns;
        if (goes_on(f, i + 1) && b->reach[i + 1].earliest < b->reach[i].earliest)
            b->reach[i].earliest = b->reach[i + 1].earliest;
    }
}

static int read_clock(struct kiln_seen_block *b)
{
    struct kiln_block_times times;
    int r = kiln_block_times_init(&times, b->block);

    if (r == 0)
        r = kiln_block_read_clock(&times, &b->clock, &b->n_clock);
    kiln_block_times_done(&times);
    return r;
}

static int fill_block(struct kiln_seen_block *b)
{
    uint32_t n = b->block->footer.n_rows + 1;

    b->series = kiln_calloc(b->n_slots, sizeof(*b->series));
    b->reach = kiln_malloc(n * sizeof(*b->reach));
    b->pages = kiln_calloc(n, sizeof(struct kiln_seen_page *));
    if (!b->series || !b->reach || !b->pages)
        return -ENOMEM;
    index_series(b);
    set_reach(b);
    return read_clock(b);
}

/* The most that an index takes: moments are no more than profiles. */
static size_t bytes_for(const struct kiln_footer *f, uint32_t n_slots)
{
    const struct kiln_section *s = kiln_footer_section(f, KILN_SECTION_MOMENTS);
    uint64_t moments = s ? s->n_entries : 0;

    return sizeof(struct kiln_seen_block) + n_slots * sizeof(uint32_t) +
           ((size_t)f->n_rows + 1) * (sizeof(struct reach) + sizeof(struct kiln_seen_page *)) +
           (size_t)moments * sizeof(uint64_t);
}

static int new_block(struct kiln_seen *seen, struct kiln_block *block)
{
    struct kiln_seen_block *b = kiln_calloc(1, sizeof(*b));
    uint32_t n_slots = 16;
    int r;

    if (!b)
        return -ENOMEM;
    while (n_slots < block->footer.info.n_series / 2 * 3 && n_slots < 1u << 31)
        n_slots *= 2;
    *b = (struct kiln_seen_block){
        .block = block, .n_slots = n_slots, .bytes = bytes_for(&block->footer, n_slots)};
    r = take(seen, b->bytes);
    if (r < 0) {
        kiln_free(b);
        return r;
    }
    r = fill_block(b);
    if (r < 0) {
        give(seen, b->bytes);
        free_block(b);
        return r;
    }
    seen->block_bytes += b->bytes;
    seen->work.blocks++;
    put_newest(&seen->blocks, &b->use);
    block->seen = b;
    return 0;
}

/* ---- pages ---- */

static uint32_t short_hash(uint64_t series, uint64_t time_ns)
{
    return (uint32_t)(kiln_hash_mix(series, time_ns) >> 32);
}

/* An entry of a page before it is sorted: `at` is its number. */
struct unsorted {
    struct kiln_keyed *list, *scratch;
    uint32_t n;
};

static int unsorted_init(struct unsorted *u, uint32_t n)
{
    *u = (struct unsorted){.list = kiln_malloc(2 * ((size_t)n + 1) * sizeof(*u->list))};
    u->scratch = u->list + n + 1;
    return u->list ? 0 : -ENOMEM;
}

/* Keeps the sorted entries as a page, with room for `prints`. */
static int keep_page(struct kiln_seen *seen, struct kiln_seen_block *b, uint32_t at,
                     struct unsorted *u, bool prints, struct kiln_seen_page **ret_page)
{
    size_t bytes = page_bytes(u->n, prints);
    struct kiln_seen_page *page;
    int r = take(seen, bytes);

    if (r < 0)
        return r;
    page = kiln_malloc(bytes);
    if (!page) {
        give(seen, bytes);
        return -ENOMEM;
    }
    *page = (struct kiln_seen_page){.owner = b, .page = at, .n = u->n};
    page->prints = prints ? (struct kiln_content_hash *)(page + 1) : NULL;
    page->hashes = prints ? (uint32_t *)(page->prints + u->n) : (uint32_t *)(page + 1);
    kiln_sort_keyed(u->list, u->scratch, u->n);
    for (uint32_t i = 0; i < u->n; i++)
        page->hashes[i] = (uint32_t)u->list[i].key;
    put_newest(&seen->pages, &page->use);
    *ret_page = b->pages[at] = page;
    return 0;
}

/* The times of a page; none where it is damaged. */
static int hash_times(struct kiln_seen_block *b, uint32_t at, struct unsorted *u)
{
    struct kiln_block_times times;
    int r = kiln_block_times_init(&times, b->block);

    if (r == 0)
        r = kiln_block_read_times(&times, at, b->clock, b->n_clock);
    for (uint32_t i = 0; r == 0 && i < times.times.n; i++)
        u->list[u->n++] = (struct kiln_keyed){
            .key = short_hash(times.columns[KILN_ROWS_SERIES].v[i], times.times.v[i])};
    kiln_block_times_done(&times);
    return kiln_block_is_damage(r) ? 0 : r;
}

/* Reads a page for its times; the memory that this takes is charged meanwhile. */
static int read_times(struct kiln_seen *seen, struct kiln_seen_block *b, uint32_t at,
                      struct kiln_seen_page **ret_page)
{
    const struct kiln_footer *f = &b->block->footer;
    const struct kiln_page_ref *ref =
        &f->pages[kiln_footer_section(f, KILN_SECTION_ROWS)->first_page + at];
    size_t bytes = (size_t)ref->size + (size_t)ref->n_entries * PAGE_BYTES + PAGE_ALWAYS;
    struct unsorted u;
    int r = take(seen, bytes);

    if (r < 0)
        return r;
    seen->work.pages++;
    r = unsorted_init(&u, (uint32_t)ref->n_entries);
    if (r == 0)
        r = hash_times(b, at, &u);
    give(seen, bytes);
    if (r == 0)
        r = keep_page(seen, b, at, &u, false, ret_page);
    kiln_free(u.list);
    return r;
}

/* The profiles of a reader's page that can be recognised: those with a time of their own. */
static void hash_rows(const struct kiln_seen_reader *reader, struct unsorted *u)
{
    const struct kiln_rows *rows = &reader->rows;

    for (uint32_t i = 0; i < rows->n; i++) {
        if (!(rows->rows[i].flags & KILN_PROFILE_TIME_SET))
            u->list[u->n++] = (struct kiln_keyed){
                .key = short_hash(rows->rows[i].series, kiln_rows_batch(rows)->profiles[i].time_ns),
                .at = i};
    }
}

static struct kiln_content_hash print_row(const struct kiln_seen_reader *reader, uint32_t i)
{
    const struct kiln_batch *batch = kiln_rows_batch(&reader->rows);
    const struct kiln_row *row = &reader->rows.rows[i];
    struct kiln_content_place place = {row->resource, row->scope, row->first_sample};
    struct kiln_str key = reader->block->footer.series[row->series].key;

    return kiln_seen_print(kiln_hash(key.ptr, key.len), batch->profiles[i].time_ns,
                           kiln_content_profile(&reader->content, batch, i, &place));
}

/* Reads the contents of a page, which takes the place of the one that has only times. */
static int read_prints(struct kiln_seen *seen, struct kiln_seen_block *b, uint32_t at,
                       struct kiln_seen_page **ret_page)
{
    struct kiln_seen_reader *reader;
    struct unsorted u = {0};
    int r = kiln_seen_read_page(seen, b->block, at, &reader);

    if (r == 0)
        r = unsorted_init(&u, reader->rows.n);
    if (r == 0) {
        hash_rows(reader, &u);
        if (b->pages[at])
            drop_page(seen, b->pages[at]);
        r = keep_page(seen, b, at, &u, true, ret_page);
    }
    for (uint32_t i = 0; r == 0 && i < u.n; i++)
        (*ret_page)->prints[i] = print_row(reader, u.list[i].at);
    kiln_free(u.list);
    return r;
}

/* ---- looking up ---- */

/* The first entry with this hash; n: none. */
static uint32_t find_hash(const struct kiln_seen_page *page, uint32_t hash)
{
    uint32_t low = 0, high = page->n;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (page->hashes[mid] < hash)
            low = mid + 1;
        else
            high = mid;
    }
    return low < page->n && page->hashes[low] == hash ? low : page->n;
}

static int page_has(struct kiln_seen *seen, struct kiln_seen_block *b, uint32_t at, uint32_t series,
                    const struct kiln_seen_wanted *wanted)
{
    uint32_t hash = short_hash(series, wanted->time_ns), i;
    struct kiln_seen_page *page = b->pages[at];
    int r = page ? 0 : read_times(seen, b, at, &page);

    if (r < 0)
        return r;
    touch(&seen->pages, &page->use);
    if (!page->prints) {
        if (find_hash(page, hash) == page->n)
            return 0;
        r = read_prints(seen, b, at, &page);
        if (r < 0)
            return r;
    }
    for (i = find_hash(page, hash); i < page->n && page->hashes[i] == hash; i++) {
        if (kiln_content_equal(page->prints[i], wanted->print))
            return 1;
    }
    return 0;
}

/* The first page that may have this series at this time; n_rows: none. */
static uint32_t first_page(const struct kiln_seen_block *b, uint32_t series, uint64_t time_ns)
{
    const struct kiln_footer *f = &b->block->footer;
    uint32_t low = 0, high = f->n_rows;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        const struct kiln_rows_ref *rows = &f->rows[mid];

        /* Before the series, or of it and before the time. */
        if (rows->last_series < series ||
            (rows->first_series <= series && b->reach[mid].latest < time_ns))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static int pages_have(struct kiln_seen *seen, struct kiln_seen_block *b, uint32_t series,
                      const struct kiln_seen_wanted *wanted)
{
    const struct kiln_footer *f = &b->block->footer;
    int r = 0;

    for (uint32_t i = first_page(b, series, wanted->time_ns);
         r == 0 && i < f->n_rows && f->rows[i].first_series <= series &&
         b->reach[i].earliest <= wanted->time_ns;
         i++) {
        if (f->rows[i].min_ns <= wanted->time_ns && f->rows[i].max_ns >= wanted->time_ns)
            r = page_has(seen, b, i, series, wanted);
    }
    return r;
}

/* The number of a series; n_series: the block has none of it. */
static uint64_t find_series(const struct kiln_seen_block *b, const struct kiln_seen_wanted *wanted)
{
    const struct kiln_footer *f = &b->block->footer;
    uint32_t mask = b->n_slots - 1;

    for (uint32_t at = (uint32_t)wanted->key_hash & mask; b->series[at]; at = (at + 1) & mask) {
        if (kiln_str_eq(f->series[b->series[at] - 1].key, wanted->key))
            return b->series[at] - 1;
    }
    return f->info.n_series;
}

int kiln_seen_block_has(struct kiln_seen *seen, struct kiln_block *block,
                        const struct kiln_seen_wanted *wanted)
{
    const struct kiln_footer *f = &block->footer;
    uint64_t series;
    int r = block->seen ? 0 : new_block(seen, block);

    if (r < 0)
        return r;
    touch(&seen->blocks, &block->seen->use);
    series = find_series(block->seen, wanted);
    if (series == f->info.n_series || wanted->time_ns < f->series[series].min_ns ||
        wanted->time_ns > f->series[series].max_ns)
        return 0;
    return pages_have(seen, block->seen, (uint32_t)series, wanted);
}

/* ---- as a whole ---- */

void kiln_seen_blocks_init(struct kiln_seen *seen)
{
    seen->blocks = (struct kiln_seen_use){&seen->blocks, &seen->blocks};
    seen->pages = (struct kiln_seen_use){&seen->pages, &seen->pages};
    seen->bytes_max = seen->pool->limit / BYTES_SHARE;
    if (seen->bytes_max < BYTES_MIN)
        seen->bytes_max = BYTES_MIN;
    if (seen->bytes_max > BYTES_MAX)
        seen->bytes_max = BYTES_MAX;
}

void kiln_seen_block_drop(struct kiln_seen *seen, struct kiln_block *block)
{
    kiln_seen_close_readers(seen, block);
    if (block->seen)
        drop_block(seen, block->seen);
}

void kiln_seen_blocks_done(struct kiln_seen *seen)
{
    kiln_seen_close_readers(seen, NULL);
    while (seen->blocks.older != &seen->blocks)
        drop_block(seen, (struct kiln_seen_block *)seen->blocks.older);
}
