/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verifying is reading everything: the head, tail and footer were checked when the block was
 * opened, and the footer's pages cover the file without a gap; then every page of every section,
 * each profile, and the counts.
 */
#include "store/block_reader.h"

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
    uint64_t profiles, samples, observations;
};

static int check_resources(struct kiln_block_reader *reader, struct kiln_builder *b)
{
    const struct kiln_batch *own = kiln_builder_peek(reader->own);
    uint32_t index;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < own->n_resources; i++)
        r = kiln_block_add_resource(reader, i, &index);
    for (uint32_t i = 0; r == 0 && i < own->n_scopes; i++)
        (void)kiln_block_scope(reader, i);
    return r ? r : kiln_builder_error(b);
}

static int check_profiles(struct kiln_block_reader *reader, struct totals *ret,
                          struct kiln_err *err)
{
    struct kiln_block_profile p;
    int r;

    while ((r = kiln_block_next(reader, &p, err)) > 0) {
        ret->profiles++;
        ret->samples += p.head.n_samples;
        for (uint32_t i = 0; i < p.head.n_samples; i++)
            ret->observations += p.samples[i].n;
    }
    return r;
}

int kiln_block_verify(struct kiln_block *block, struct kiln_err *err)
{
    const struct kiln_block_info *info = kiln_block_info(block);
    struct kiln_block_read_opts opts = {.memory_bytes = (size_t)1 << 30};
    struct kiln_block_reader *reader = NULL;
    struct totals totals = {0};
    struct kiln_builder *b;
    int r = kiln_builder_new(NULL, &b);

    if (r < 0)
        return kiln_block_fail(block, err, r);
    r = check_unknown(block, err);
    if (r == 0)
        r = kiln_block_read(block, &opts, b, &reader, err);
    if (r == 0)
        r = check_resources(reader, b);
    if (r == 0)
        r = check_profiles(reader, &totals, err);
    if (r == 0 && (totals.profiles != info->n_profiles || totals.samples != info->n_samples ||
                   totals.observations != info->n_observations))
        r = kiln_err_set(err, KILN_E_CORRUPT, block->path,
                         "footer: it does not count what is in the block");
    if (r < 0)
        kiln_err_set(err, r, block->path, "%s", kiln_err_text(r));
    kiln_block_reader_free(reader);
    kiln_builder_free(b);
    return r;
}
