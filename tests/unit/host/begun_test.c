/* SPDX-License-Identifier: Apache-2.0 */
/* Waits that have begun, by thread, until they end. */
#include "host/begun.h"
#include "test.h"

static struct kiln_object file = {.refs = 1};
static struct kiln_identity app = {.refs = 1};

static int begin(struct kiln_begun *begun, uint32_t tid, uint64_t began_ns, uint32_t n_frames)
{
    static struct kiln_gframe frames[1024];
    struct kiln_record record = {.tid = tid, .began_ns = began_ns, .comm = "worker"};
    struct kiln_gather_sample sample = {.identity = &app,
                                        .tid = tid,
                                        .comm = record.comm,
                                        .frames = frames,
                                        .n_frames = n_frames,
                                        .kind = KILN_KIND_WAIT};

    for (uint32_t i = 0; i < n_frames; i++)
        frames[i] = (struct kiln_gframe){.address = tid + i, .object = &file};
    return kiln_begun_add(begun, &record, &sample);
}

static const struct kiln_gather_sample *end(struct kiln_begun *begun, uint32_t tid,
                                            uint64_t began_ns)
{
    return kiln_begun_take(begun, &(struct kiln_record){.tid = tid, .began_ns = began_ns});
}

TEST(begun, a_wait_that_ends_has_the_stack_that_it_began_with)
{
    struct kiln_begun *begun;
    const struct kiln_gather_sample *sample;

    CHECK_OK(kiln_begun_new(0, &begun));
    CHECK_OK(begin(begun, 7, 100, 3));
    CHECK_OK(begin(begun, 7 + 1024, 100, 2)); /* of the same chain */
    sample = end(begun, 7, 100);
    CHECK(sample && sample->n_frames == 3 && sample->frames[2].address == 9);
    CHECK_STR(kiln_str_of(sample->comm), "worker");
    CHECK(sample->identity == &app);
    CHECK(end(begun, 7, 100) == NULL);
    CHECK(end(begun, 7 + 1024, 100) != NULL);
    CHECK_EQ(kiln_begun_lost(begun), 0);
    kiln_begun_free(begun);
    CHECK_EQ(file.refs, 1);
    CHECK_EQ(app.refs, 1);
}

TEST(begun, an_end_of_another_wait_ends_none)
{
    struct kiln_begun *begun;

    CHECK_OK(kiln_begun_new(0, &begun));
    CHECK(end(begun, 7, 100) == NULL);
    CHECK_OK(begin(begun, 7, 100, 3));
    CHECK_OK(begin(begun, 7, 200, 3)); /* the end of the first was lost */
    CHECK_EQ(kiln_begun_lost(begun), 1);
    CHECK(end(begun, 7, 100) == NULL);
    CHECK(end(begun, 7, 200) == NULL);
    CHECK_EQ(kiln_begun_lost(begun), 2);
    CHECK_EQ(kiln_begun_bytes(begun), 0);
    kiln_begun_free(begun);
    CHECK_EQ(file.refs, 1);
}

TEST(begun, where_there_is_no_room_the_oldest_goes)
{
    struct kiln_begun *begun;

    CHECK_OK(kiln_begun_new(64 << 10, &begun));
    for (uint32_t tid = 1; tid <= 100; tid++)
        CHECK_OK(begin(begun, tid, tid, 100));
    CHECK(kiln_begun_bytes(begun) <= 64 << 10);
    CHECK(end(begun, 1, 1) == NULL);
    CHECK(end(begun, 100, 100) != NULL);
    CHECK(kiln_begun_lost(begun) > 50);
    CHECK(begin(begun, 101, 101, 1024 * 1) == 0);
    kiln_begun_free(begun);
    CHECK_EQ(file.refs, 1);
    CHECK_EQ(app.refs, 1);
}

TEST(begun, what_is_larger_than_all_room_is_refused)
{
    struct kiln_begun *begun;

    CHECK_OK(kiln_begun_new(4096, &begun));
    CHECK(begin(begun, 1, 1, 1024) < 0);
    CHECK_EQ(kiln_begun_lost(begun), 1);
    CHECK_EQ(kiln_begun_bytes(begun), 0);
    kiln_begun_free(begun);
    CHECK_EQ(file.refs, 1);
}
