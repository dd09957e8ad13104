/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/tape.h"

#include "core/merge.h"

/* All batches become one, in the first place. */
static int add_up(struct kiln_tape *tape, struct kiln_err *err)
{
    const struct kiln_merge_opts opts = {.combine_times = true};
    struct kiln_batch *sum;
    int r;

    if (tape->n < 2)
        return 0;
    r = kiln_merge(tape->batches, tape->n, &opts, &sum, err);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < tape->n; i++)
        kiln_batch_unref(tape->batches[i]);
    tape->batches[0] = sum;
    tape->n = 1;
    return 0;
}

static int keep(struct kiln_tape *tape, struct kiln_batch *batch, struct kiln_err *err)
{
    int r = tape->n < KILN_TAPE_PENDING ? 0 : add_up(tape, err);

    if (r < 0) {
        if (tape->lost++ == 0)
            tape->why = *err;
        return r;
    }
    tape->batches[tape->n++] = kiln_batch_ref(batch);
    return 0;
}

int kiln_tape_add(struct kiln_tape *tape, struct kiln_batch *batch, struct kiln_err *err)
{
    int r;

    pthread_mutex_lock(&tape->lock);
    r = keep(tape, batch, err);
    pthread_mutex_unlock(&tape->lock);
    return r;
}

static void consume(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct kiln_tape *tape = (struct kiln_tape *)consumer;
    struct kiln_outcome outcome = {0};

    outcome.code = kiln_tape_add(tape, delivery->batch, &outcome.err);
    kiln_delivery_end(delivery, &outcome);
}

void kiln_tape_init(struct kiln_tape *tape)
{
    *tape = (struct kiln_tape){.consumer.consume = consume};
    pthread_mutex_init(&tape->lock, NULL);
}

void kiln_tape_done(struct kiln_tape *tape)
{
    for (uint32_t i = 0; i < tape->n; i++)
        kiln_batch_unref(tape->batches[i]);
    tape->n = 0;
    pthread_mutex_destroy(&tape->lock);
}

int kiln_tape_take(struct kiln_tape *tape, struct kiln_batch **ret_batch, struct kiln_err *err)
{
    int r = add_up(tape, err);

    if (r < 0)
        return r;
    *ret_batch = tape->n ? tape->batches[0] : NULL;
    tape->n = 0;
    return 0;
}
