/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of a service (block_stacks.c has their columns), straight into the builder: of each,
 * only the locations it does not share with the one before are looked up.
 */
#include "store/block_reader.h"

static bool is_marked(const struct kiln_block_reader *r, uint32_t depth)
{
    bool marked = false;

    for (uint32_t i = 0; r->has_marks && !marked && i < depth; i++)
        marked = r->path[i] == KILN_READER_BAD;
    return marked;
}

static int load_stack(struct kiln_block_reader *r, uint64_t kept, const uint64_t *own, uint64_t n,
                      struct kiln_err *err)
{
    uint32_t n_locations = kiln_builder_peek(r->own)->dict.n_locations;
    uint32_t *frames;
    uint32_t depth;

    if (kept > r->n_path || n > kiln_limits_default.stack_depth - kept)
        return kiln_reader_damaged(err, "a stack is damaged");
    depth = (uint32_t)(kept + n);
    for (uint64_t i = 0; i < n; i++) {
        if (own[i] >= n_locations)
            return kiln_reader_damaged(err, "a stack has a location that is not there");
    }
    if (r->b)
        kiln_remap_locations(r->remap, own, (uint32_t)n, r->path + kept);
    for (uint64_t i = 0; r->has_marks && i < n; i++) {
        if (kiln_reader_is_marked(r, KILN_SECTION_LOCATIONS, own[i]))
            r->path[kept + i] = KILN_READER_BAD;
    }
    r->n_path = depth;
    if (is_marked(r, depth)) {
        r->sorted[r->n_stacks++] = KILN_READER_BAD;
        return 0;
    }
    if (!r->b) {
        r->sorted[r->n_stacks++] = 0;
        return 0;
    }
    frames = kiln_builder_stack_room(r->b, depth);
    if (!frames)
        return kiln_builder_error(r->b);
    for (uint32_t i = 0; i < depth; i++)
        frames[i] = r->path[depth - 1 - i];
    r->sorted[r->n_stacks++] = kiln_builder_stack_take(r->b, depth);
    return kiln_builder_error(r->b);
}

static int load_stacks(struct kiln_block_reader *r, uint32_t n, struct kiln_err *err)
{
    const struct kiln_column *c = r->columns;
    uint64_t at = 0;
    int result = READER_ROOM(r, r->sorted, r->cap_sorted, (uint64_t)r->n_stacks + n);

    if (!kiln_reader_fits(r, 2, n))
        return kiln_reader_damaged(err, "its columns do not fit together");
    r->n_path = 0;
    for (uint32_t i = 0; result == 0 && i < n; i++) {
        if (c[1].v[i] > c[2].n - at)
            return kiln_reader_damaged(err, "its columns do not fit together");
        result = load_stack(r, c[0].v[i], c[2].v + at, c[1].v[i], err);
        at += c[1].v[i];
    }
    if (result == 0 && at != c[2].n)
        return kiln_reader_damaged(err, "its columns do not fit together");
    return result;
}

static int load_ranks(struct kiln_block_reader *r, uint32_t n, struct kiln_err *err)
{
    if (!kiln_reader_fits(r, 1, n) || n > r->n_stacks - r->next)
        return kiln_reader_damaged(err, "there are more ranks than stacks");
    for (uint32_t i = 0; i < n; i++) {
        uint64_t rank = r->columns[0].v[i];

        if (rank >= r->n_stacks)
            return kiln_reader_damaged(err, "a rank is larger than there are stacks");
        r->stack_of[r->next++] = r->sorted[rank];
    }
    return 0;
}

int kiln_reader_load_stacks(struct kiln_block_reader *r, uint32_t service, struct kiln_err *err)
{
    const struct kiln_footer *f = &r->block->footer;
    int result;

    if (r->service == service)
        return 0;
    r->service = UINT32_MAX;
    r->n_stacks = 0;
    result = READER_ROOM(r, r->path, r->cap_path, (uint64_t)kiln_limits_default.stack_depth + 1);
    if (result == 0)
        result = kiln_reader_section(r, &f->sections[f->stacks[service]], load_stacks, err);
    if (result == 0)
        result = READER_ROOM(r, r->stack_of, r->cap_stack_of, r->n_stacks);
    if (result == 0)
        result = kiln_reader_section(r, &f->sections[f->ranks[service]], load_ranks, err);
    if (result == 0 && r->opts.lost && r->next != r->n_stacks)
        result = kiln_reader_fill(r, KILN_SECTION_RANKS, r->n_stacks);
    if (result == 0 && r->next != r->n_stacks)
        result = kiln_reader_damaged(err, "a stack has no rank");
    if (result == 0)
        r->service = service;
    return result;
}
