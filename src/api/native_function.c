/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /api/v1/functions: one function over time, beside everything.  Two questions, one of stacks
 * that have the function and one of all, on one leash; their buckets are joined.
 */
#include <errno.h>

#include "api/native_int.h"

/* A bucket of all stacks, and what the function has of it. */
struct bucket {
    const struct kiln_timeline_point *all, *part; /* `part` may be NULL */
};

/* Goes through both in step; buckets without anything are in neither. */
static bool next(const struct kiln_timeline *all, const struct kiln_timeline *part, uint32_t *at,
                 uint32_t *at_part, struct bucket *ret)
{
    if (*at == all->n_points)
        return false;
    ret->all = &all->points[(*at)++];
    while (*at_part < part->n_points && part->points[*at_part].bucket < ret->all->bucket)
        (*at_part)++;
    ret->part = *at_part < part->n_points && part->points[*at_part].bucket == ret->all->bucket
                    ? &part->points[*at_part]
                    : NULL;
    return true;
}

static double share_of(const struct bucket *b)
{
    return b->part && b->all->value > 0 ? b->part->value / b->all->value : 0;
}

enum column { BUCKET, VALUE, TOTAL, SHARE, ERROR, COLUMNS };

static void put_one(struct kiln_native_call *call, const struct bucket *b, enum column column)
{
    switch (column) {
    case BUCKET:
        kiln_json_put_u64(&call->w, b->all->bucket);
        break;
    case VALUE:
        kiln_json_put_double(&call->w, b->part ? b->part->value : 0);
        break;
    case TOTAL:
        kiln_json_put_double(&call->w, b->all->value);
        break;
    case SHARE:
        kiln_native_put_share(call, share_of(b));
        break;
    default:
        kiln_native_put_half(call, share_of(b), b->all->count);
    }
}

static void put_columns(struct kiln_native_call *call, const struct kiln_timeline *all,
                        const struct kiln_timeline *part)
{
    static const char *const keys[COLUMNS] = {"bucket", "value", "total", "share", "error"};

    for (enum column c = BUCKET; c < COLUMNS; c++) {
        uint32_t at = 0, at_part = 0;
        struct bucket b;

        kiln_json_put_name(&call->w, keys[c]);
        kiln_json_put_array(&call->w);
        while (next(all, part, &at, &at_part, &b))
            put_one(call, &b, c);
        kiln_json_end_array(&call->w);
    }
}

static double sum_of(const struct kiln_timeline *timeline)
{
    return timeline->n_series ? timeline->series[0].sum : 0;
}

static void put_answer(struct kiln_native_call *call, const struct kiln_ask *ask,
                       const struct kiln_timeline *all, const struct kiln_timeline *part)
{
    const struct kiln_native_args *args = &call->args;
    uint64_t step_ns = kiln_native_step(args);

    kiln_json_put_object(&call->w);
    kiln_native_put_text(call, "function", args->functions.items[0]);
    kiln_native_put_type(call, &ask->type);
    kiln_native_put_range(call, args->from_ns, args->until_ns);
    kiln_native_put_moment(call, "start", args->from_ns);
    kiln_native_put_seconds(call, "step_seconds", step_ns);
    kiln_native_put_u64(call, "buckets", (args->until_ns - args->from_ns + step_ns - 1) / step_ns);
    put_columns(call, all, part);
    kiln_native_put_number(call, "sum", sum_of(part));
    kiln_native_put_number(call, "total_sum", sum_of(all));
    kiln_native_put_basis(call, &all->basis);
    kiln_native_note_basis(call, &all->basis);
    kiln_native_put_notes(call);
    kiln_json_end_object(&call->w);
    kiln_buf_putc(&call->body, '\n');
}

/* Both timelines are of no label: one series each, or none where nothing was found. */
static int answer(struct kiln_native_call *call, struct kiln_ask *ask, struct kiln_ask *ask_part)
{
    const struct kiln_timeline_opts opts = {.step_ns = kiln_native_step(&call->args)};
    struct kiln_timeline *all, *part;
    int r = kiln_ask_timeline(ask, &opts, &all, &call->err);

    if (r < 0)
        return r;
    r = kiln_ask_timeline(ask_part, &opts, &part, &call->err);
    if (r == 0) {
        r = kiln_native_room(call, ask, 4096 + (size_t)all->n_points * 64);
        if (r == 0)
            put_answer(call, ask, all, part);
        kiln_timeline_free(part);
    }
    kiln_timeline_free(all);
    return r;
}

int kiln_native_run_function(struct kiln_native_call *call)
{
    struct kiln_ask *ask, *ask_part;
    int r;

    if (call->args.functions.n != 1)
        return kiln_native_refuse(call, "function", "one function must be named");
    r = kiln_native_ask(call, &(struct kiln_native_wish){.no_stacks = true}, &ask);
    if (r < 0)
        return r;
    r = kiln_native_ask(call, &(struct kiln_native_wish){0}, &ask_part);
    if (r == 0) {
        kiln_native_share(ask, ask_part);
        r = answer(call, ask, ask_part);
        kiln_native_close(call, ask_part);
    }
    kiln_native_close(call, ask);
    return r;
}
