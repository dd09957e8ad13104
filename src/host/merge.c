/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A heap of copies, the oldest on top; of two of the same time the one that was added first.  An
 * item is one block: a head, and behind it the record as it came.  Where there is no memory for a
 * copy, whatever is older is shown and then the record itself: order suffers, nothing is lost.
 */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "host/merge.h"

#define BYTES_DEFAULT ((size_t)32 << 20)

struct item {
    uint64_t time_ns;
    uint64_t number; /* of adding: keeps the order of equals */
    size_t size;     /* of the block */
};

static struct kiln_record *record_of(struct item *item)
{
    return (struct kiln_record *)(item + 1);
}

struct kiln_merge {
    struct kiln_merge_visitor visitor;
    struct kiln_budget budget;
    struct item **heap;
    uint32_t n, cap;
    uint64_t number;
    uint64_t begun_ns, before_ns; /* this round, and the one before */
    uint64_t shown_ns;            /* of the youngest that was shown */
    uint64_t late, early;
};

int kiln_merge_new(size_t bytes_max, const struct kiln_merge_visitor *visitor,
                   struct kiln_merge **ret_merge)
{
    struct kiln_merge *merge = kiln_calloc(1, sizeof(*merge));

    if (!merge)
        return -ENOMEM;
    merge->visitor = *visitor;
    merge->budget.limit = bytes_max ? bytes_max : BYTES_DEFAULT;
    *ret_merge = merge;
    return 0;
}

/* ---- heap ---- */

static bool is_before(const struct item *a, const struct item *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->number < b->number;
}

static void sift_up(struct kiln_merge *merge, struct item *item)
{
    uint32_t at = merge->n++;

    for (uint32_t up; at > 0 && is_before(item, merge->heap[up = (at - 1) / 2]); at = up)
        merge->heap[at] = merge->heap[up];
    merge->heap[at] = item;
}

static struct item *pop(struct kiln_merge *merge)
{
    struct item *top = merge->heap[0], *item = merge->heap[--merge->n];
    uint32_t at = 0, down;

    while ((down = 2 * at + 1) < merge->n) {
        if (down + 1 < merge->n && is_before(merge->heap[down + 1], merge->heap[down]))
            down++;
        if (!is_before(merge->heap[down], item))
            break;
        merge->heap[at] = merge->heap[down];
        at = down;
    }
    merge->heap[at] = item;
    return top;
}

/* ---- showing ---- */

void kiln_record_wipe(struct kiln_record *record)
{
    size_t frames = ((size_t)record->n_kernel + record->n_user) * sizeof(record->frames[0]);
    size_t kept = sizeof(*record) + frames;

    if ((record->flags & KILN_RECORD_RAW) && record->size > kept)
        explicit_bzero((char *)record + kept, record->size - kept);
}

void kiln_merge_saw(struct kiln_merge *merge, uint64_t time_ns)
{
    if (time_ns < merge->shown_ns)
        merge->late++;
    else
        merge->shown_ns = time_ns;
}

/* Of the same time events are first. */
static void show(struct kiln_merge *merge, const struct kiln_record *record)
{
    merge->visitor.before(merge->visitor.context, record->time_ns + 1);
    kiln_merge_saw(merge, record->time_ns);
    merge->visitor.sample(merge->visitor.context, record);
}

static void drop(struct kiln_merge *merge, struct item *item)
{
    kiln_record_wipe(record_of(item));
    kiln_budget_give(&merge->budget, item->size);
    kiln_free(item);
}

static void show_oldest(struct kiln_merge *merge)
{
    struct item *item = pop(merge);

    show(merge, record_of(item));
    drop(merge, item);
}

static void show_before(struct kiln_merge *merge, uint64_t time_ns)
{
    while (merge->n && merge->heap[0]->time_ns < time_ns)
        show_oldest(merge);
}

/* ---- adding ---- */

/* Room for one more, if need be by showing what is not due yet.  NULL: there is none. */
static struct item *make(struct kiln_merge *merge, uint64_t time_ns, size_t size)
{
    struct item *item;

    if (size > merge->budget.limit / 2 ||
        kiln_grow(&merge->budget, (void **)&merge->heap, &merge->cap, (uint64_t)merge->n + 1,
                  sizeof(struct item *), UINT32_MAX) < 0)
        return NULL;
    while (kiln_budget_take(&merge->budget, size) < 0) {
        if (!merge->n)
            return NULL;
        show_oldest(merge);
        merge->early++;
    }
    item = kiln_malloc(size);
    if (!item) {
        kiln_budget_give(&merge->budget, size);
        return NULL;
    }
    item->time_ns = time_ns;
    item->number = merge->number++;
    item->size = size;
    return item;
}

/* One without a copy is shown at once, behind those that are older. */
void kiln_merge_add_sample(struct kiln_merge *merge, const struct kiln_record *record)
{
    struct item *item = make(merge, record->time_ns, sizeof(*item) + record->size);

    if (!item) {
        show_before(merge, record->time_ns);
        merge->early++;
        show(merge, record);
        return;
    }
    memcpy(item + 1, record, record->size);
    sift_up(merge, item);
}

/* ---- rounds ---- */

void kiln_merge_begin(struct kiln_merge *merge, uint64_t now_ns)
{
    merge->before_ns = merge->begun_ns;
    merge->begun_ns = now_ns;
}

void kiln_merge_end(struct kiln_merge *merge)
{
    show_before(merge, merge->before_ns);
    merge->visitor.before(merge->visitor.context, merge->before_ns);
}

void kiln_merge_flush(struct kiln_merge *merge)
{
    while (merge->n)
        show_oldest(merge);
    merge->visitor.before(merge->visitor.context, UINT64_MAX);
}

size_t kiln_merge_bytes(const struct kiln_merge *merge)
{
    return merge->budget.used;
}

uint64_t kiln_merge_late(const struct kiln_merge *merge)
{
    return merge->late;
}

uint64_t kiln_merge_early(const struct kiln_merge *merge)
{
    return merge->early;
}

void kiln_merge_free(struct kiln_merge *merge)
{
    if (!merge)
        return;
    while (merge->n)
        drop(merge, merge->heap[--merge->n]);
    kiln_array_free(&merge->budget, (void **)&merge->heap, &merge->cap, sizeof(struct item *));
    kiln_free(merge);
}
