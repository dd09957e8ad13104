/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/receivers/jfr_labels.h"
#include "test.h"

/* context 1: user=ann; context 2: user=bob and a label whose value is not there */
#define SNAPSHOT                                                                                   \
    "\x0a\x0a\x08\x01\x12\x06\x0a\x04\x08\x0a\x10\x0b"                                             \
    "\x0a\x10\x08\x02\x12\x0c\x0a\x04\x08\x0a\x10\x0c\x0a\x04\x08\x0c\x10\x63"                     \
    "\x12\x08\x08\x0a\x12\x04user"                                                                 \
    "\x12\x07\x08\x0b\x12\x03"                                                                     \
    "ann"                                                                                          \
    "\x12\x07\x08\x0c\x12\x03"                                                                     \
    "bob"

/* A batch with a sample for each of the numbers 1 to 3, labelled. */
static int labelled(struct kiln_str snapshot, struct kiln_batch **ret)
{
    struct kiln_err err = {0};
    struct kiln_builder *b;
    int r;

    CHECK_OK(kiln_builder_new(NULL, &b));
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    kiln_builder_add_profile(b, &(struct kiln_profile){0});
    for (int64_t i = 1; i <= 3; i++) {
        uint32_t key = kiln_builder_string(b, KILN_STR("jfr.context_id"));
        uint32_t attrs[] = {kiln_builder_attr(b, key, kiln_value_int(i), 0),
                            kiln_builder_text_attr(b, KILN_STR("thread"), KILN_STR("t"))};

        kiln_builder_add_value(b, 0, 0, kiln_builder_set(b, attrs, 2, NULL), i);
    }
    r = kiln_jfr_labels_apply(snapshot, b, &err);
    if (r == 0)
        return kiln_builder_finish(b, ret, &err);
    CHECK(err.text[0]);
    kiln_builder_free(b);
    return r;
}

static struct kiln_str label(const struct kiln_batch *batch, uint32_t sample, const char *key)
{
    return kiln_set_text(batch, batch->samples[sample].attrs, kiln_str_of(key));
}

TEST(jfr_labels, labels_take_the_place_of_numbers)
{
    struct kiln_batch *batch;

    CHECK_OK(labelled(KILN_STR(SNAPSHOT), &batch));
    CHECK_STR(label(batch, 0, "user"), "ann");
    CHECK_STR(label(batch, 0, "thread"), "t");
    CHECK(!kiln_set_find(batch, batch->samples[0].attrs, KILN_STR("jfr.context_id")));
    CHECK_STR(label(batch, 1, "user"), "bob");
    CHECK_EQ(batch->dict.sets[batch->samples[1].attrs].n, 2);
    CHECK(kiln_set_find(batch, batch->samples[2].attrs, KILN_STR("jfr.context_id")));
    kiln_batch_unref(batch);
}

TEST(jfr_labels, a_snapshot_that_is_cut_off_is_refused)
{
    struct kiln_str whole = KILN_STR(SNAPSHOT);
    struct kiln_batch *batch;

    CHECK(labelled((struct kiln_str){whole.ptr, whole.len - 1}, &batch) < 0);
    CHECK(labelled((struct kiln_str){whole.ptr, 11}, &batch) < 0);
    CHECK_OK(labelled(KILN_STR_NONE, &batch));
    kiln_batch_unref(batch);
}
