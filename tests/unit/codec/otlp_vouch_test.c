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

/* True where it is vouched for; then the decoder must agree.  What it takes was counted, too. */
static bool vouched(struct kiln_str message)
{
    const struct kiln_otlp_opts opts = {.drop_bad_profiles = true};
    struct kiln_otlp_counts counts, vouched_for;
    bool counted = kiln_otlp_count(message, &counts), good = kiln_otlp_vouch(message, &vouched_for);
    struct kiln_otlp_info info;
    struct kiln_builder *b;
    bool taken;

    CHECK(counted || !good);
    CHECK_OK(kiln_builder_new(NULL, &b));
    taken = kiln_otlp_decode(message, &opts, b, &info, NULL) == 0 && !kiln_builder_silent(b) &&
            info.revision == KILN_OTLP_1_10 && !info.dropped_profiles;
    CHECK(taken || !good);
    if (counted && taken) {
        CHECK_EQ(kiln_builder_peek(b)->n_profiles, counts.profiles);
        CHECK_EQ(kiln_builder_peek(b)->n_samples, counts.samples);
    }
    if (good) {
        CHECK_EQ(counts.profiles, vouched_for.profiles);
        CHECK_EQ(counts.samples, vouched_for.samples);
    }
    kiln_builder_free(b);
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
    CHECK(kiln_otlp_count(KILN_STR("\x12\x02\x32\x01"), &counts));
    CHECK(kiln_otlp_vouch(KILN_STR("\x12\x00"), &counts));
    CHECK_EQ(counts.samples, 0);
}
