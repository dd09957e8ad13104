/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verifying is reading everything: the head, tail and footer were checked when the block was
 * opened, and the footer's pages cover the file without a gap; then every page of every section,
 * each profile, the counts, and the roll-ups.
 */
#include "store/block_reader.h"
#include "store/rollup.h"

/* Optional sections nobody here can read still have checksums. */
static int check_unknown(struct kiln_block *block, struct kiln_err *err)
{
    const struct kiln_footer *f = &block->footer;
    struct kiln_budget budget = {.limit = (size_t)1 << 30};
    struct kiln_page_in in;
    int r = kiln_page_in_init(&in, &budget);

    for (uint32_t i = 0; r == 0 && i < f->n_sections; i++) {
        const struct kiln_section *s = &f->sections[i];

        for (uint32_t k = 0; s->kind >= KILN_SECTION_OPTIONAL && r == 0 && k < s->n_pages; k++) {
            const struct kiln_page_ref *page = &f->pages[s->first_page + k];

            r = kiln_page_load(&in, block->io, block->fd, page->offset, page->size, err);
            if (r < 0)
                kiln_err_within(err, "section %u[%u]", s->kind, k);
        }
    }
    kiln_page_in_done(&in);
    return r < 0 ? kiln_block_fail(block, err, r) : 0;
}

struct totals {
    uint64_t profiles, observations;
};

/* Every profile of the page at hand. */
static int check_page(struct kiln_block_reader *reader, struct totals *totals)
{
    const struct kiln_column *origins = &reader->columns[KILN_ROWS_ORIGIN];
    struct kiln_rows_profile p;
    int r;

    while ((r = kiln_rows_next(&reader->cursor, &p)) > 0) {
        struct kiln_profile head;

        if (origins->v[reader->cursor.profile - 1] == 0 ||
            !kiln_reader_get_bytes(reader, &p, &head))
            return KILN_E_CORRUPT;
        totals->profiles++;
        totals->observations += p.of[1] + p.of[2] + p.of[3];
    }
    return r;
}

static int check_profiles(struct kiln_block_reader *reader, struct totals *totals,
                          struct kiln_err *err)
{
    int r;

    while ((r = kiln_reader_next_page(reader, err)) > 0) {
        r = check_page(reader, totals);
        if (r < 0)
            return kiln_err_set(err, r, reader->block->path, "rows[%u]: a profile is damaged",
                                reader->next_page - 1);
    }
    return r;
}

/* Pages of a hostile file may claim any size; what an honest one needs is in proportion to it. */
static size_t memory_for(const struct kiln_block_info *info)
{
    size_t least = (size_t)16 << 20, most = (size_t)1 << 30;

    return info->bytes > (most - least) / 1024 ? most : least + (size_t)info->bytes * 1024;
}

static int check_rollups(struct kiln_block *block, size_t memory_bytes, struct kiln_err *err)
{
    struct kiln_budget budget = {.limit = memory_bytes};

    return kiln_rollup_verify(block, &budget, err);
}

int kiln_block_verify(struct kiln_block *block, struct kiln_err *err)
{
    return kiln_block_verify_within(block, memory_for(kiln_block_info(block)), err);
}

int kiln_block_verify_within(struct kiln_block *block, size_t memory_bytes, struct kiln_err *err)
{
    const struct kiln_block_info *info = kiln_block_info(block);
    struct kiln_block_read_opts opts = {.memory_bytes = memory_bytes};
    struct kiln_block_reader *reader = NULL;
    struct totals totals = {0};
    int r = check_unknown(block, err);

    if (r == 0)
        r = kiln_block_read(block, &opts, NULL, &reader, err);
    if (r == 0)
        r = check_profiles(reader, &totals, err);
    if (r == 0 &&
        (totals.profiles != info->n_profiles || totals.observations != info->n_observations))
        r = kiln_err_set(err, KILN_E_CORRUPT, block->path,
                         "footer: it does not count what is in the block");
    if (r == 0)
        r = check_rollups(block, opts.memory_bytes, err);
    if (r < 0)
        kiln_block_fail(block, err, r);
    kiln_block_reader_free(reader);
    return r;
}
