/* SPDX-License-Identifier: Apache-2.0 */
#include "drawn.h"
#include "resolve.h"
#include "test.h"

#define SPAN    "00f067aa0ba902b7"
#define ANOTHER "aaaabbbbccccdddd"
#define TRACE   "4bf92f3577b34da6a3ce929d0e0e4736"

/* The batch of a drawing once its ids are links. */
static struct kiln_batch *linked(const char *stacks)
{
    struct kiln_batch *batch;
    struct kiln_builder *b;

    CHECK_OK(kiln_builder_new(NULL, &b));
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    kiln_builder_add_profile(b, &(struct kiln_profile){0});
    kiln_test_draw(b, 0, stacks);
    kiln_builder_link_samples(b);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    check_invariants(batch);
    return batch;
}

/* The link of a sample as "trace/span", zeros as "-". */
static const char *link_text(const struct kiln_batch *batch, uint32_t sample)
{
    static char text[64];
    const struct kiln_link *link = &batch->dict.links[batch->samples[sample].link];
    struct kiln_buf out;
    const uint8_t zeros[16] = {0};

    kiln_buf_init(&out, sizeof(text) - 1);
    if (memcmp(link->trace_id, zeros, 16) == 0)
        kiln_buf_putc(&out, '-');
    else
        kiln_buf_add_hex(&out, link->trace_id, 16);
    kiln_buf_putc(&out, '/');
    if (memcmp(link->span_id, zeros, 8) == 0)
        kiln_buf_putc(&out, '-');
    else
        kiln_buf_add_hex(&out, link->span_id, 8);
    memcpy(text, out.ptr, out.len);
    text[out.len] = '\0';
    kiln_buf_done(&out);
    return text;
}

TEST(builder_links, ids_become_a_link_and_leave_the_attributes)
{
    struct kiln_batch *batch = linked("main;a 1 span_id=" SPAN ",trace_id=" TRACE ",thread=t\n"
                                      "main;b 2 thread=t\n"
                                      "main;c 3 span_id=" SPAN ",trace_id=" TRACE ",thread=t\n");

    CHECK_TEXT(link_text(batch, 0), TRACE "/" SPAN);
    CHECK_TEXT(link_text(batch, 1), "-/-");
    CHECK_EQ(batch->samples[2].link, batch->samples[0].link);
    CHECK_EQ(batch->samples[0].attrs, batch->samples[1].attrs);
    CHECK_STR(kiln_set_text(batch, batch->samples[0].attrs, KILN_STR("thread")), "t");
    CHECK_EQ(batch->dict.sets[batch->samples[0].attrs].n, 1);
    kiln_batch_unref(batch);
}

TEST(builder_links, an_old_name_of_the_span_counts_where_there_is_no_new_one)
{
    struct kiln_batch *batch = linked("a 1 profile_id=" SPAN "\n"
                                      "b 1 profile_id=" SPAN ",span_id=" ANOTHER "\n");

    CHECK_TEXT(link_text(batch, 0), "-/" SPAN);
    CHECK_TEXT(link_text(batch, 1), "-/" ANOTHER);
    CHECK_EQ(batch->samples[0].attrs, 0);
    CHECK_EQ(batch->samples[1].attrs, 0);
    kiln_batch_unref(batch);
}

TEST(builder_links, texts_that_are_no_ids_stay_attributes)
{
    struct kiln_batch *batch = linked("a 1 span_id=xyz\n"
                                      "b 1 span_id=" SPAN ",trace_id=12ab\n");

    CHECK_TEXT(link_text(batch, 0), "-/-");
    CHECK_STR(kiln_set_text(batch, batch->samples[0].attrs, KILN_STR("span_id")), "xyz");
    CHECK_TEXT(link_text(batch, 1), "-/" SPAN);
    CHECK_STR(kiln_set_text(batch, batch->samples[1].attrs, KILN_STR("trace_id")), "12ab");
    kiln_batch_unref(batch);
}

TEST(builder_links, samples_without_ids_are_left_as_they_are)
{
    struct kiln_batch *batch = linked("a 1 thread=t\n"
                                      "b 2\n");

    CHECK_EQ(batch->dict.n_links, 1);
    CHECK_EQ(batch->dict.n_sets, 2);
    kiln_batch_unref(batch);
}
