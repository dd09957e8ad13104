/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of each service: sorted from the root down, each as what it does not share with the
 * one before.
 *
 *   stacks  locations shared with the stack before, from the root (0 for the first of a page);
 *           locations of its own | all those, from the root
 *   ranks   for each stack, as first seen: its place in the sorted order, from 0
 *
 * Sorting looks at as many locations at a time as fit into 64 bits: a run of stacks that are equal
 * in them is sorted by the next ones, until every run has one stack.  Stacks lie all over memory,
 * and waiting for it is most of the work, so those to come are asked for early.
 */
#include "store/rollup_make.h"

#define AHEAD 8u /* stacks */

/* Stacks from `first` on that are equal down to `depth`. */
struct run {
    uint32_t first, n, depth;
};

/* w->keyed has a stack each: `at` is its number less 1, `more` its index in the dictionary. */
struct sorter {
    struct kiln_block_writer *w;
    unsigned bits;    /* of the number of a location, and 1 */
    unsigned step;    /* locations that fit into a key */
    struct run *runs; /* still to be sorted */
    uint32_t n_runs, cap_runs;
};

/* The locations from `depth` on, each with 1 added; 0 below the leaf. */
static uint64_t key_at(const struct sorter *s, uint32_t stack, uint32_t depth)
{
    const struct kiln_dict *d = &s->w->dict->dict;
    struct kiln_range range = d->stacks[stack];
    const uint32_t *frames = d->frames + range.first;
    uint64_t key = 0;

    for (unsigned i = 0; i < s->step; i++, depth++) {
        key <<= s->bits;
        if (depth < range.n)
            key |= s->w->locations.of[frames[range.n - 1 - depth]] + 1u;
    }
    return key;
}

/* Asks for the stacks that come soon: where they are, and of the nearer ones the locations. */
static void fetch(const struct kiln_block_writer *w, const struct kiln_keyed *keyed, uint32_t left,
                  uint32_t depth)
{
    const struct kiln_dict *d = &w->dict->dict;
    struct kiln_range range;

    if (left > 2 * AHEAD)
        __builtin_prefetch(&d->stacks[keyed[2 * AHEAD].more]);
    if (left <= AHEAD)
        return;
    range = d->stacks[keyed[AHEAD].more];
    if (depth < range.n)
        __builtin_prefetch(d->frames + range.first + range.n - 1 - depth);
}

static void push_run(struct sorter *s, struct run run)
{
    if (run.n > 1 && WRITER_ROOM(s->w, s->runs, s->cap_runs, (uint64_t)s->n_runs + 1))
        s->runs[s->n_runs++] = run;
}

/* How many locations two different keys have in common. */
static uint32_t shared_in(const struct sorter *s, uint64_t a, uint64_t b)
{
    return ((unsigned)__builtin_clzll(a ^ b) - (64 - s->step * s->bits)) / s->bits;
}

/* Neighbours that this tells apart share what was sorted by before, and the beginning of keys. */
static void sort_run(struct sorter *s, struct run run)
{
    struct kiln_keyed *keyed = s->w->keyed + run.first;
    uint64_t last = (UINT64_C(1) << s->bits) - 1;

    for (uint32_t i = 0; i < run.n; i++) {
        fetch(s->w, keyed + i, run.n - i, run.depth);
        keyed[i].key = key_at(s, keyed[i].more, run.depth);
    }
    kiln_sort_keyed(keyed, s->w->keyed_scratch, run.n);
    for (uint32_t i = 0, k; i < run.n; i = k) {
        for (k = i + 1; k < run.n && keyed[k].key == keyed[i].key;)
            k++;
        if (k < run.n)
            s->w->shared[run.first + k] = run.depth + shared_in(s, keyed[i].key, keyed[k].key);
        if (keyed[i].key & last) /* else it ends here, and is alone */
            push_run(s, (struct run){run.first + i, k - i, run.depth + s->step});
    }
}

/* Leaves the sorted stacks in w->keyed, and what each shares with the one before in w->shared. */
static void sort_stacks(struct kiln_block_writer *w, const uint32_t *stacks, uint32_t n)
{
    struct sorter s = {.w = w};

    s.bits = 32u - (unsigned)__builtin_clz(w->locations.n + 1u);
    s.step = s.bits < 32 ? 64 / s.bits : 2;
    if (!WRITER_ROOM(w, w->keyed, w->cap_keyed, (uint64_t)n + 1) ||
        !WRITER_ROOM(w, w->keyed_scratch, w->cap_keyed_scratch, n) ||
        !WRITER_ROOM(w, w->shared, w->cap_shared, (uint64_t)n + 1))
        return;
    memset(w->shared, 0, n * sizeof(*w->shared));
    for (uint32_t i = 0; i < n; i++)
        w->keyed[i] = (struct kiln_keyed){.key = stacks[i], .at = i, .more = stacks[i]};
    kiln_sort_keyed(w->keyed, w->keyed_scratch, n); /* as they lie in memory */
    push_run(&s, (struct run){0, n, 0});
    while (s.n_runs && !w->error)
        sort_run(&s, s.runs[--s.n_runs]);
    kiln_array_free(&w->budget, (void **)&s.runs, &s.cap_runs, sizeof(*s.runs));
}

/* Asks for what is written of a stack that comes soon. */
static void fetch_own(const struct kiln_block_writer *w, uint32_t i, uint32_t n)
{
    const struct kiln_dict *d = &w->dict->dict;
    struct kiln_range range;

    if (n - i <= 2 * AHEAD)
        return;
    __builtin_prefetch(&d->stacks[w->keyed[i + 2 * AHEAD].more]);
    range = d->stacks[w->keyed[i + AHEAD].more];
    for (uint32_t k = 0; k < range.n - w->shared[i + AHEAD]; k += 64 / sizeof(*d->frames))
        __builtin_prefetch(d->frames + range.first + k);
}

static void put_stacks(struct kiln_block_writer *w, uint32_t service, uint32_t n)
{
    const struct kiln_dict *d = &w->dict->dict;
    uint8_t *used = kiln_rollup_expect(w, service);

    for (uint32_t i = 0; i < n && !w->error; i++) {
        struct kiln_range range = d->stacks[w->keyed[i].more];
        uint32_t kept = w->n_entries ? w->shared[i] : 0;

        fetch_own(w, i, n);
        kiln_writer_put(w, 0, kept);
        kiln_writer_put(w, 1, range.n - kept);
        for (uint32_t k = kept; k < range.n; k++)
            kiln_writer_put(w, 2, w->locations.of[d->frames[range.first + range.n - 1 - k]]);
        if (used) {
            for (uint32_t k = 0; k < range.n - kept; k++)
                used[d->frames[range.first + k]] = 1;
        }
        w->footer.info.n_frames += range.n - kept;
        kiln_writer_entry(w);
    }
    kiln_writer_flush(w);
}

/* `keyed` is turned round: the place in the sorted order, by number. */
static void put_ranks(struct kiln_block_writer *w, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        w->keyed[w->keyed[i].at].more = i;
    for (uint32_t i = 0; i < n && !w->error; i++) {
        kiln_writer_put(w, 0, w->keyed[i].more);
        kiln_writer_entry(w);
    }
    kiln_writer_flush(w);
}

void kiln_writer_put_stacks(struct kiln_block_writer *w)
{
    for (uint32_t i = 0; i < w->footer.n_services && !w->error; i++) {
        const uint32_t *stacks = w->stack_order + w->stack_starts[i];
        uint32_t n = w->stack_starts[i + 1] - w->stack_starts[i];

        sort_stacks(w, stacks, n);
        if (w->error)
            return;
        kiln_writer_section(w, KILN_SECTION_STACKS, i);
        put_stacks(w, i, n);
        kiln_writer_section(w, KILN_SECTION_RANKS, i);
        put_ranks(w, n);
        kiln_rollup_make(w, i);
    }
    w->footer.info.n_stacks = w->n_stacks;
}
