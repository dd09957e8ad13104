/* SPDX-License-Identifier: Apache-2.0 */
/* A vouched message is one that the decoder takes whole: whatever was done to its bytes. */
#include "base/mem.h"
#include "codec/otlp.h"
#include "drawn.h"
#include "random_batch.h"
#include "test.h"

#define BYTES_MAX (1u << 20)

/* Encodes a batch, which it takes over. */
static struct kiln_str written(struct kiln_batch *batch, struct kiln_buf *out)
{
    kiln_buf_init(out, BYTES_MAX);
    CHECK_OK(kiln_otlp_encode(batch, NULL, out, NULL));
    kiln_batch_unref(batch);
    return kiln_buf_str(out);
}

/* Whether the profiles are vouched for, and the decoder takes the dictionary with them. */
static bool promise_is_kept(struct kiln_str message, struct kiln_otlp_counts *ret_counts)
{
    const struct kiln_otlp_opts opts = {.revision = KILN_OTLP_1_10, .promised = ret_counts};
    struct kiln_builder *b;
    int r;

    if (!kiln_otlp_vouch_for_profiles(message, ret_counts))
        return false;
    CHECK_OK(kiln_builder_new(NULL, &b));
    r = kiln_otlp_decode(message, &opts, b, NULL, NULL);
    if (r == 0) {
        CHECK_EQ(kiln_builder_peek(b)->n_profiles, ret_counts->profiles);
        CHECK_EQ(kiln_builder_peek(b)->n_samples, ret_counts->samples);
    } else { /* before anything that it promises */
        CHECK_EQ(kiln_builder_peek(b)->n_resources, 0);
    }
    kiln_builder_free(b);
    return r == 0;
}

/* True where it is vouched for, all at once or in two steps; then the decoder must agree. */
static bool vouched(struct kiln_str message)
{
    const struct kiln_otlp_opts opts = {.drop_bad_profiles = true};
    struct kiln_otlp_counts counts, promised;
    bool good = kiln_otlp_vouch(message, &counts), kept = promise_is_kept(message, &promised);
    struct kiln_otlp_info info;
    struct kiln_batch *batch;
    struct kiln_builder *b;

    CHECK(!good || kept);
    if (!kept)
        return false;
    counts = promised;
    CHECK_OK(kiln_builder_new(NULL, &b));
    CHECK_OK(kiln_otlp_decode(message, &opts, b, &info, NULL));
    CHECK_EQ(kiln_builder_silent(b), 0);
    CHECK_EQ(info.revision, KILN_OTLP_1_10);
    CHECK_EQ(info.dropped_profiles, 0);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    CHECK_EQ(batch->n_profiles, counts.profiles);
    CHECK_EQ(batch->n_samples, counts.samples);
    kiln_batch_unref(batch);
    return good;
}

TEST(otlp_vouch, what_we_write_is_vouched_for)
{
    struct kiln_buf out;

    CHECK(
        vouched(written(kiln_test_stacks("main;read 3 thread=a ^7.2\nmain 5@100 6@200\n"), &out)));
    kiln_buf_done(&out);
    for (uint64_t seed = 0; seed < 200; seed++) {
        CHECK(vouched(written(random_batch(&(struct random_opts){.seed = seed}), &out)));
        kiln_buf_done(&out);
    }
    CHECK_EQ(kiln_mem_live(), 0);
}

/* Every byte changed in four ways, and every length: some stay good, and all of those decode. */
TEST(otlp_vouch, damaged_messages_are_only_vouched_for_if_they_decode)
{
    uint32_t good = 0, bad = 0;

    for (uint64_t seed = 0; seed < 6; seed++) {
        const struct random_opts small = {.seed = seed, .samples = 2, .resources = 1};
        struct kiln_buf out;
        struct kiln_str m = written(random_batch(&small), &out);

        for (size_t i = 0; i < m.len; i++) {
            static const uint8_t changes[] = {0x01, 0x80, 0xff, 0x08};
            char was = out.ptr[i];

            for (size_t k = 0; k < KILN_ARRAY_LEN(changes); k++) {
                out.ptr[i] = (char)(was ^ changes[k]);
                *(vouched(m) ? &good : &bad) += 1;
            }
            out.ptr[i] = was;
            *(vouched((struct kiln_str){m.ptr, i}) ? &good : &bad) += 1;
        }
        kiln_buf_done(&out);
    }
    CHECK(good > 0);
    CHECK(bad > good / 4);
}

/* What another revision numbers differently, or what says nothing, is for the decoder. */
TEST(otlp_vouch, other_messages_are_left_to_the_decoder)
{
    struct kiln_otlp_counts counts;

    CHECK(!kiln_otlp_vouch(KILN_STR_NONE, &counts));
    CHECK(!kiln_otlp_vouch(KILN_STR("\x0a\x00"), &counts));         /* no dictionary */
    CHECK(!kiln_otlp_vouch(KILN_STR("\x12\x00\x12\x00"), &counts)); /* two of them */
    CHECK(!kiln_otlp_vouch(KILN_STR("\x12\x00\x18\x01"), &counts)); /* an unknown field */
    /* A sample of a stack and nothing else. */
    CHECK(!kiln_otlp_vouch(KILN_STR("\x0a\x08\x12\x06\x12\x04\x12\x02\x08\x00\x12\x00"), &counts));
    /* A dictionary whose attribute has its key as a text, as before 1.8; and one that is cut off.
     */
    CHECK(!vouched(KILN_STR("\x12\x07\x32\x00\x32\x03\x0a\x01k")));
    CHECK(!vouched(KILN_STR("\x12\x02\x32\x01")));
    CHECK(kiln_otlp_vouch_for_profiles(KILN_STR("\x12\x02\x32\x01"), &counts));
    CHECK(kiln_otlp_vouch(KILN_STR("\x12\x00"), &counts));
    CHECK_EQ(counts.samples, 0);
}
