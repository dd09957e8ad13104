/* SPDX-License-Identifier: Apache-2.0 */
#include "core/builder_int.h"
#include "store/engine.h"
#include "store/rows.h"

#define NONE UINT32_MAX

/* Numbers of a block -> indexes of the builder, as far as they were met. */
struct numbers {
    uint32_t *to;
    uint32_t cap;
};

struct reading {
    struct kiln_rows *rows;
    struct kiln_block_reader *reader;
    struct numbers resources, scopes;
};

/* Where the index of a number is kept; NULL on failure, which sticks. */
static uint32_t *number_at(struct reading *reading, struct numbers *numbers, uint32_t number)
{
    uint32_t before = numbers->cap;

    if (!kiln_builder_room(reading->rows->b, (void **)&numbers->to, &numbers->cap,
                           (uint64_t)number + 1, sizeof(*numbers->to)))
        return NULL;
    for (uint32_t i = before; i < numbers->cap; i++)
        numbers->to[i] = NONE;
    return &numbers->to[number];
}

static int find_resource(struct reading *reading, uint32_t number, uint32_t *ret_index)
{
    uint32_t *at = number_at(reading, &reading->resources, number);
    int r = 0;

    if (!at)
        return kiln_builder_error(reading->rows->b);
    if (*at == NONE)
        r = kiln_block_add_resource(reading->reader, number, at);
    *ret_index = *at;
    return r;
}

static int find_scope(struct reading *reading, uint32_t number, uint32_t *ret_index)
{
    uint32_t *at = number_at(reading, &reading->scopes, number);

    if (!at)
        return kiln_builder_error(reading->rows->b);
    if (*at == NONE) {
        struct kiln_scope scope = kiln_block_scope(reading->reader, number);

        *at = kiln_builder_add_scope(reading->rows->b, &scope);
    }
    *ret_index = *at;
    return kiln_builder_error(reading->rows->b);
}

static int take_profile(struct reading *reading, const struct kiln_block_profile *profile)
{
    struct kiln_builder *b = reading->rows->b;
    struct kiln_row row = {.series = profile->series, .flags = profile->flags};
    struct kiln_profile head = profile->head;
    uint32_t added;
    int r;

    r = find_resource(reading, profile->resource, &row.resource);
    if (r == 0)
        r = find_scope(reading, profile->scope, &row.scope);
    if (r < 0)
        return r;
    if (head.payload.len) {
        char *copy = kiln_builder_alloc(b, head.payload.len);

        if (!copy)
            return kiln_builder_error(b);
        head.payload.ptr = memcpy(copy, head.payload.ptr, head.payload.len);
    }
    added = kiln_builder_add_profile(b, &head);
    for (uint32_t i = 0; i < profile->head.n_samples; i++) {
        const struct kiln_sample *s = &profile->samples[i];
        const int64_t *at = profile->observations + s->first;

        kiln_builder_add_sample(
            b, added, s->stack, s->attrs, s->link, s->has_values ? at : NULL,
            s->has_times ? (const uint64_t *)at + (s->has_values ? s->n : 0) : NULL, s->n);
    }
    if (!kiln_builder_error(b))
        kiln_rows_add(reading->rows, row);
    return kiln_builder_error(b);
}

static bool is_in(const struct kiln_window *window, const struct kiln_block_profile *profile)
{
    return !window ||
           (profile->head.time_ns >= window->start_ns && profile->head.time_ns < window->end_ns);
}

int kiln_rows_read(struct kiln_rows *rows, struct kiln_block_reader *reader,
                   const struct kiln_window *window, struct kiln_err *err)
{
    struct kiln_budget *budget = &rows->b->box->budget;
    struct reading reading = {.rows = rows, .reader = reader};
    struct kiln_block_profile profile;
    int r;

    while ((r = kiln_block_next(reader, &profile, err)) > 0) {
        r = is_in(window, &profile) ? take_profile(&reading, &profile) : 0;
        if (r < 0) {
            kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
            break;
        }
    }
    kiln_array_free(budget, (void **)&reading.resources.to, &reading.resources.cap,
                    sizeof(uint32_t));
    kiln_array_free(budget, (void **)&reading.scopes.to, &reading.scopes.cap, sizeof(uint32_t));
    return r;
}
