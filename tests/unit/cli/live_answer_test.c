/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/live_source.h"

#include "test.h"

static const char answer[] =
    "{\"total\": 3, \"series\": {\"step_seconds\": 60, \"series\": ["
    "{\"labels\": {\"service_name\": \"shop\", \"process.pid\": \"4711\", \"host.name\": \"a\","
    " \"thread.state\": \"runnable\", \"other\": \"x\"}, \"sum\": 999999982, \"bucket\": [0]},"
    "{\"labels\": {\"service_name\": \"jobs\", \"process.pid\": \"\"}, \"sum\": 0.2},"
    "{\"sum\": 5, \"labels\": {\"service_name\": \"jobs\"}}], \"all\": 3}, \"notes\": []}";

TEST(live_answer, a_row_is_a_process_with_one_sample)
{
    struct kiln_batch *batch = NULL;
    struct kiln_err err = {0};

    CHECK_OK(kiln_live_answer_read(KILN_STR(answer), true, &batch, &err));
    CHECK_EQ(batch->n_resources, 2);
    CHECK_EQ(batch->n_samples, 2);
    CHECK_STR(kiln_set_text(batch, batch->resources[0].attrs, KILN_STR("service.name")), "shop");
    CHECK_EQ(kiln_set_find(batch, batch->resources[0].attrs, KILN_STR("process.pid"))->value.i,
             4711);
    CHECK_STR(kiln_set_text(batch, batch->samples[0].attrs, KILN_STR("thread.state")), "runnable");
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[0]), 999999982);
    CHECK_STR(kiln_set_text(batch, batch->resources[1].attrs, KILN_STR("service.name")), "jobs");
    kiln_batch_unref(batch);
}

TEST(live_answer, what_is_cut_off_is_an_error)
{
    for (size_t n = 0; n + 1 < sizeof(answer) - 1; n++) {
        struct kiln_batch *batch = NULL;
        struct kiln_err err = {0};

        CHECK(kiln_live_answer_read((struct kiln_str){answer, n}, false, &batch, &err) < 0);
        CHECK(batch == NULL);
    }
}
