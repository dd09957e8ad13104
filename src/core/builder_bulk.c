/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copying a whole dictionary into an empty builder needs no look-ups: entries that were distinct
 * stay distinct.  They are appended here, and the indexes learn of them only when a second source
 * asks for an entry, all at once, which is also faster than one by one.
 */
#include "core/builder_int.h"

uint32_t kiln_builder_new_string(struct kiln_builder *b, struct kiln_str s)
{
    struct kiln_dict *d = &b->box->batch.dict;
    char *text;

    if (!ROOM(b, d->strings, d->n_strings, strings, 1))
        return 0;
    text = kiln_builder_alloc(b, s.len);
    if (!text)
        return 0;
    d->strings[d->n_strings] = (struct kiln_str){memcpy(text, s.ptr, s.len), s.len};
    return d->n_strings++;
}

uint32_t kiln_builder_new_function(struct kiln_builder *b, const struct kiln_function *function)
{
    struct kiln_dict *d = &b->box->batch.dict;

    if (!ROOM(b, d->functions, d->n_functions, functions, 1))
        return 0;
    d->functions[d->n_functions] = *function;
    return d->n_functions++;
}

uint32_t kiln_builder_new_location(struct kiln_builder *b, const struct kiln_location *location,
                                   const struct kiln_line *lines, uint32_t n_lines)
{
    struct kiln_dict *d = &b->box->batch.dict;
    struct kiln_location *added;

    if (!ROOM(b, d->locations, d->n_locations, locations, 1) ||
        !ROOM(b, d->lines, d->n_lines, lines, n_lines))
        return 0;
    added = &d->locations[d->n_locations];
    *added = *location;
    added->first = d->n_lines;
    added->n = n_lines;
    if (n_lines)
        memcpy(&d->lines[d->n_lines], lines, n_lines * sizeof(*lines));
    d->n_lines += n_lines;
    return d->n_locations++;
}

uint32_t *kiln_builder_frames(struct kiln_builder *b, uint32_t n)
{
    if (n > b->limits.stack_depth)
        kiln_builder_fail(b, KILN_E_LIMIT);
    return b->error ? NULL : kiln_builder_stack_room(b, n);
}

uint32_t kiln_builder_new_stack(struct kiln_builder *b, uint32_t n)
{
    struct kiln_dict *d = &b->box->batch.dict;

    if (!ROOM(b, d->stacks, d->n_stacks, stacks, 1))
        return 0;
    d->stacks[d->n_stacks] = (struct kiln_range){d->n_frames, n};
    d->n_frames += n;
    return d->n_stacks++;
}

/* ---- catching up ---- */

void kiln_builder_drop_indexes(struct kiln_builder *b)
{
    kiln_intern_done(&b->strings, &b->box->budget);
    kiln_intern_done(&b->functions, &b->box->budget);
    kiln_intern_done(&b->locations, &b->box->budget);
}

/* Room for what an index lacks of `n` entries; false (and sticky) on failure. */
static bool expect_missing(struct kiln_builder *b, struct kiln_intern *index, uint32_t n)
{
    int r = kiln_intern_expect(index, &b->box->budget, n - 1 - index->n);

    if (r < 0)
        kiln_builder_fail(b, r);
    return r == 0;
}

/* Puts entry number index->n + 1 into its index, which has room. */
static void index_next(struct kiln_builder *b, struct kiln_intern *index, uint64_t hash)
{
    int r = kiln_intern_add(index, &b->box->budget, hash, index->n + 1);

    if (r < 0)
        kiln_builder_fail(b, r);
}

bool kiln_builder_catch_up(struct kiln_builder *b)
{
    const struct kiln_dict *d = &b->box->batch.dict;

    if (!expect_missing(b, &b->strings, d->n_strings) ||
        !expect_missing(b, &b->functions, d->n_functions) ||
        !expect_missing(b, &b->locations, d->n_locations) ||
        !expect_missing(b, &b->stacks, d->n_stacks))
        return false;
    for (uint32_t i = b->strings.n + 1; i < d->n_strings; i++)
        index_next(b, &b->strings, kiln_hash(d->strings[i].ptr, d->strings[i].len));
    for (uint32_t i = b->functions.n + 1; i < d->n_functions; i++)
        index_next(b, &b->functions, kiln_hash_function(&d->functions[i]));
    for (uint32_t i = b->locations.n + 1; i < d->n_locations; i++) {
        const struct kiln_location *l = &d->locations[i];

        index_next(b, &b->locations, kiln_hash_location(l, d->lines + l->first, l->n));
    }
    for (uint32_t i = b->stacks.n + 1; i < d->n_stacks; i++)
        index_next(b, &b->stacks,
                   kiln_hash(d->frames + d->stacks[i].first, d->stacks[i].n * sizeof(*d->frames)));
    return b->error == 0;
}
