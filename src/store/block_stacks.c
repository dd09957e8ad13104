/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of each service: sorted from the root down, each as what it does not share with the
 * one before.
 *
 *   stacks  locations shared with the stack before, from the root (0 for the first of a page);
 *           locations of its own | all those, from the root
 *   ranks   for each stack, as first seen: its place in the sorted order, from 0
 *
 * Sorting looks at two locations at a time: a run of stacks whose pair is equal is sorted by the
 * next pair, until every run has one stack.
 */
#include "store/block_writer.h"

/* Stacks from `first` on that are equal down to `depth`. */
struct run {
    uint32_t first, n, depth;
};

struct sorter {
    struct kiln_block_writer *w;
    const uint32_t *stacks; /* indexes, as first seen */
    struct run *runs;       /* still to be sorted */
    uint32_t n_runs, cap_runs;
};

/* The number of the location at some depth, and 1; 0 below the leaf. */
static uint32_t frame_at(const struct kiln_block_writer *w, uint32_t stack, uint32_t depth)
{
    const struct kiln_dict *d = &w->dict->dict;
    struct kiln_range range = d->stacks[stack];

    if (depth >= range.n)
        return 0;
    return w->locations.of[d->frames[range.first + range.n - 1 - depth]] + 1;
}

static void push_run(struct sorter *s, struct run run)
{
    if (run.n > 1 && WRITER_ROOM(s->w, s->runs, s->cap_runs, (uint64_t)s->n_runs + 1))
        s->runs[s->n_runs++] = run;
}

static void sort_run(struct sorter *s, struct run run)
{
    struct kiln_keyed *keyed = s->w->keyed + run.first;

    for (uint32_t i = 0; i < run.n; i++) {
        uint32_t stack = s->stacks[keyed[i].at];

        keyed[i].key =
            (uint64_t)frame_at(s->w, stack, run.depth) << 32 | frame_at(s->w, stack, run.depth + 1);
    }
    kiln_sort_keyed(keyed, s->w->keyed_scratch, run.n);
    for (uint32_t i = 0, k; i < run.n; i = k) {
        for (k = i + 1; k < run.n && keyed[k].key == keyed[i].key;)
            k++;
        if ((uint32_t)keyed[i].key) /* else it ends here, and is alone */
            push_run(s, (struct run){run.first + i, k - i, run.depth + 2});
    }
}

/* Leaves in w->keyed the places (in `stacks`) of the sorted stacks. */
static void sort_stacks(struct kiln_block_writer *w, const uint32_t *stacks, uint32_t n)
{
    struct sorter s = {.w = w, .stacks = stacks};

    if (!WRITER_ROOM(w, w->keyed, w->cap_keyed, (uint64_t)n + 1) ||
        !WRITER_ROOM(w, w->keyed_scratch, w->cap_keyed_scratch, n))
        return;
    for (uint32_t i = 0; i < n; i++)
        w->keyed[i] = (struct kiln_keyed){.at = i};
    push_run(&s, (struct run){0, n, 0});
    while (s.n_runs && !w->error)
        sort_run(&s, s.runs[--s.n_runs]);
    kiln_array_free(&w->budget, (void **)&s.runs, &s.cap_runs, sizeof(*s.runs));
}

static uint32_t shared_frames(const struct kiln_block_writer *w, struct kiln_range a,
                              struct kiln_range b)
{
    const uint32_t *frames = w->dict->dict.frames;
    const uint32_t *x = frames + a.first + a.n, *y = frames + b.first + b.n;
    uint32_t n = a.n < b.n ? a.n : b.n;
    uint32_t i = 0;

    while (i < n && x[-1 - (int64_t)i] == y[-1 - (int64_t)i])
        i++;
    return i;
}

static void put_stacks(struct kiln_block_writer *w, const uint32_t *stacks, uint32_t n)
{
    const struct kiln_dict *d = &w->dict->dict;
    struct kiln_range last = {0};

    for (uint32_t i = 0; i < n && !w->error; i++) {
        struct kiln_range range = d->stacks[stacks[w->keyed[i].at]];
        uint32_t kept = w->n_entries ? shared_frames(w, last, range) : 0;

        kiln_writer_put(w, 0, kept);
        kiln_writer_put(w, 1, range.n - kept);
        for (uint32_t k = kept; k < range.n; k++)
            kiln_writer_put(w, 2, w->locations.of[d->frames[range.first + range.n - 1 - k]]);
        w->footer.info.n_frames += range.n - kept;
        last = range;
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
        put_stacks(w, stacks, n);
        kiln_writer_section(w, KILN_SECTION_RANKS, i);
        put_ranks(w, n);
    }
    w->footer.info.n_stacks = w->n_stacks;
}
