/* SPDX-License-Identifier: Apache-2.0 */
/* A batch shared between threads: made for ThreadSanitizer (make tsan). */
#include <pthread.h>

#include "base/mem.h"
#include "core/batch.h"
#include "core/builder.h"
#include "test.h"

#define THREADS 4
#define ROUNDS  2000

static struct kiln_batch *make_batch(void)
{
    struct kiln_builder *b;
    struct kiln_batch *batch;

    CHECK_OK(kiln_builder_new(NULL, &b));
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){.name = kiln_builder_string(b, KILN_STR("t"))});
    kiln_builder_add_profile(b, &(struct kiln_profile){0});
    kiln_builder_add_value(b, 0, 0, 0, 42);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    return batch;
}

/* Takes and drops references and reads in between; gives its own reference back at the end. */
static void *share(void *arg)
{
    struct kiln_batch *batch = arg;
    int64_t sum = 0;

    for (int i = 0; i < ROUNDS; i++) {
        struct kiln_batch *mine = kiln_batch_ref(batch);

        sum += kiln_sample_total(mine, &mine->samples[0]);
        kiln_batch_unref(mine);
    }
    kiln_batch_unref(batch);
    return sum == 42 * ROUNDS ? NULL : "a thread read something else";
}

TEST(batch, threads_share_one_and_the_last_frees_it)
{
    int64_t live = kiln_mem_live();
    struct kiln_batch *batch = make_batch();
    pthread_t threads[THREADS];
    void *problem;

    for (int i = 0; i < THREADS; i++)
        CHECK_OK(pthread_create(&threads[i], NULL, share, kiln_batch_ref(batch)));
    kiln_batch_unref(batch);
    for (int i = 0; i < THREADS; i++) {
        CHECK_OK(pthread_join(threads[i], &problem));
        CHECK(problem == NULL);
    }
    CHECK_EQ(kiln_mem_live(), live);
}

/* Each thread makes its own batches: the library has no state that they could share. */
static void *make_many(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS / 10; i++)
        kiln_batch_unref(make_batch());
    return NULL;
}

TEST(batch, threads_make_their_own_at_the_same_time)
{
    int64_t live = kiln_mem_live();
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        CHECK_OK(pthread_create(&threads[i], NULL, make_many, NULL));
    for (int i = 0; i < THREADS; i++)
        CHECK_OK(pthread_join(threads[i], NULL));
    CHECK_EQ(kiln_mem_live(), live);
}
