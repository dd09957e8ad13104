/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "codec/otlp_order.h"

struct sorting {
    const struct kiln_batch *batch;
    const struct otlp_order *order;
};

static int compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* ---- stacks ---- */

/* How many frames two stacks have in common, from the outermost on. */
static uint32_t shared(const uint32_t *a, uint32_t n_a, const uint32_t *b, uint32_t n_b)
{
    uint32_t most = n_a < n_b ? n_a : n_b, n = 0;

    while (n < most && a[n_a - 1 - n] == b[n_b - 1 - n])
        n++;
    return n;
}

/* Below what they share: those that end there, those that end one frame further, all others. */
static uint32_t depth_class(uint32_t left)
{
    return left < 2 ? left : 2;
}

static int by_outer_frames(const void *a, const void *b, void *context)
{
    const struct kiln_dict *d = &((const struct sorting *)context)->batch->dict;
    struct kiln_range x = d->stacks[*(const uint32_t *)a], y = d->stacks[*(const uint32_t *)b];
    const uint32_t *frames_x = d->frames + x.first, *frames_y = d->frames + y.first;
    uint32_t n = shared(frames_x, x.n, frames_y, y.n);
    int r = compare(depth_class(x.n - n), depth_class(y.n - n));

    if (r != 0 || n == x.n)
        return r;
    return compare(frames_x[x.n - 1 - n], frames_y[y.n - 1 - n]);
}

/* ---- samples ---- */

static int64_t first_value(const struct kiln_batch *batch, const struct kiln_sample *sample)
{
    return sample->has_values && sample->n ? batch->observations[sample->first] : 0;
}

static int by_likeness(const void *a, const void *b, void *context)
{
    const struct sorting *s = context;
    const struct kiln_sample *x = &s->batch->samples[*(const uint32_t *)a];
    const struct kiln_sample *y = &s->batch->samples[*(const uint32_t *)b];
    int r = compare(x->attrs, y->attrs);

    if (r == 0)
        r = compare((uint64_t)first_value(s->batch, x), (uint64_t)first_value(s->batch, y));
    if (r == 0)
        r = compare(s->order->places[x->stack], s->order->places[y->stack]);
    return r ? r : compare(*(const uint32_t *)a, *(const uint32_t *)b);
}

/* ---- resources ---- */

static struct kiln_str service_of(const struct kiln_batch *batch, uint32_t resource)
{
    return kiln_set_text(batch, batch->resources[resource].attrs, KILN_STR("service.name"));
}

static int by_service(const void *a, const void *b, void *context)
{
    const struct kiln_batch *batch = ((const struct sorting *)context)->batch;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int r = kiln_str_cmp(service_of(batch, x), service_of(batch, y));

    return r ? r : compare(x, y);
}

/* ---- all of them ---- */

static uint32_t *numbers(uint32_t **room, uint32_t n)
{
    uint32_t *first = *room;

    for (uint32_t i = 0; i < n; i++)
        first[i] = i;
    *room += n;
    return first;
}

static void sort_all(struct otlp_order *order, const struct kiln_batch *batch)
{
    struct sorting s = {batch, order};
    uint32_t n_stacks = batch->dict.n_stacks;

    if (n_stacks) /* the first is the empty one, and stays the first */
        qsort_r(order->stacks + 1, n_stacks - 1, sizeof(uint32_t), by_outer_frames, &s);
    for (uint32_t i = 0; i < n_stacks; i++)
        order->places[order->stacks[i]] = i;
    for (uint32_t i = 0; i < batch->n_profiles; i++)
        qsort_r(order->samples + batch->profiles[i].first_sample, batch->profiles[i].n_samples,
                sizeof(uint32_t), by_likeness, &s);
    qsort_r(order->resources, batch->n_resources, sizeof(uint32_t), by_service, &s);
}

int otlp_order_init(struct otlp_order *order, const struct kiln_batch *batch)
{
    uint32_t n_stacks = batch->dict.n_stacks;
    size_t n = (size_t)2 * n_stacks + batch->n_samples + batch->n_resources;
    uint32_t *room = kiln_malloc((n + 1) * sizeof(*room));

    *order = (struct otlp_order){0};
    if (!room)
        return -ENOMEM;
    order->stacks = numbers(&room, n_stacks);
    order->places = numbers(&room, n_stacks);
    order->samples = numbers(&room, batch->n_samples);
    order->resources = numbers(&room, batch->n_resources);
    sort_all(order, batch);
    return 0;
}

void otlp_order_done(struct otlp_order *order)
{
    kiln_free(order->stacks); /* one block for all */
    *order = (struct otlp_order){0};
}
