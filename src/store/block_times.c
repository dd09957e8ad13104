/* SPDX-License-Identifier: Apache-2.0 */
#include "store/block_times.h"

#include <errno.h>

#include "store/block_rows.h"

#define MEMORY_MAX ((size_t)64 << 20)

int kiln_block_times_init(struct kiln_block_times *t, struct kiln_block *block)
{
    *t = (struct kiln_block_times){.block = block, .budget = {.limit = MEMORY_MAX}};
    return kiln_page_in_init(&t->in, &t->budget);
}

void kiln_block_times_done(struct kiln_block_times *t)
{
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(t->columns); i++)
        kiln_column_done(&t->columns[i], &t->budget);
    kiln_column_done(&t->times, &t->budget);
    kiln_page_in_done(&t->in);
}

static int load(struct kiln_block_times *t, uint32_t page)
{
    const struct kiln_page_ref *ref = &t->block->footer.pages[page];

    return kiln_page_load(&t->in, t->block->io, t->block->fd, ref->offset, ref->size, NULL);
}

/* Adds the moments of a page to a clock that has `from` of them. */
static int add_moments(struct kiln_block_times *t, uint32_t page, uint64_t *clock, uint64_t from)
{
    uint64_t n = t->block->footer.pages[page].n_entries, last = from ? clock[from - 1] : 0;
    struct kiln_column *c = &t->columns[0];
    int r = load(t, page);

    if (r == 0)
        r = kiln_page_get(&t->in, c, n, NULL);
    if (r == 0 && c->n != n)
        r = KILN_E_CORRUPT;
    for (uint64_t i = 0; r == 0 && i < n; i++)
        clock[from + i] = last = kiln_zigzag_add(last, c->v[i]);
    return r;
}

/* Times are differences: nothing behind a damaged page can be read. */
static int fill_clock(struct kiln_block_times *t, const struct kiln_section *s, uint64_t *clock)
{
    uint64_t at = 0;
    int r = 0;

    memset(clock, 0xff, s->n_entries * sizeof(*clock)); /* KILN_TIME_LOST */
    for (uint32_t i = 0; r == 0 && i < s->n_pages; i++) {
        r = add_moments(t, s->first_page + i, clock, at);
        at += t->block->footer.pages[s->first_page + i].n_entries;
    }
    return kiln_block_is_damage(r) ? 0 : r;
}

int kiln_block_read_clock(struct kiln_block_times *t, uint64_t **ret_clock, uint32_t *ret_n)
{
    const struct kiln_footer *f = &t->block->footer;
    const struct kiln_section *s = kiln_footer_section(f, KILN_SECTION_MOMENTS);
    uint64_t *clock = NULL;
    int r = 0;

    *ret_clock = NULL;
    *ret_n = 0;
    if (!s || s->n_entries == 0)
        return 0;
    if (s->n_entries > f->info.n_profiles || s->n_entries > UINT32_MAX)
        return KILN_E_CORRUPT;
    clock = kiln_malloc(s->n_entries * sizeof(*clock));
    r = clock ? fill_clock(t, s, clock) : -ENOMEM;
    if (r < 0) {
        kiln_free(clock);
        return r;
    }
    *ret_clock = clock;
    *ret_n = (uint32_t)s->n_entries;
    return 0;
}

static bool is_needed(uint32_t column)
{
    return column != KILN_ROWS_ORIGIN && column != KILN_ROWS_COUNT;
}

int kiln_block_read_times(struct kiln_block_times *t, uint32_t page, const uint64_t *clock,
                          uint32_t n_clock)
{
    const struct kiln_footer *f = &t->block->footer;
    uint32_t at = kiln_footer_section(f, KILN_SECTION_ROWS)->first_page + page, skipped;
    struct kiln_rows_clock limits = {.n_series = f->info.n_series, .times = clock, .n = n_clock};
    int r = load(t, at);

    for (uint32_t i = 0; r == 0 && i < KILN_ARRAY_LEN(t->columns); i++)
        r = is_needed(i) ? kiln_page_get(&t->in, &t->columns[i], UINT32_MAX, NULL)
                         : kiln_page_skip(&t->in, &skipped, NULL);
    if (r == 0)
        r = kiln_column_grow(&t->times, &t->budget, f->pages[at].n_entries + 1);
    if (r == 0)
        r = kiln_rows_decode_times(t->columns, f->pages[at].n_entries, &limits, t->times.v);
    t->times.n = r == 0 ? (uint32_t)f->pages[at].n_entries : 0;
    return r;
}
