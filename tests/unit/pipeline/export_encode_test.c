/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/otlp.h"
#include "core/otlp_size.h"
#include "drawn.h"
#include "pipeline/exporters/encode.h"
#include "test.h"

TEST(export_encode, says_so_where_memory_runs_out)
{
    struct kiln_export_shape shape = {.compression = KILN_ZSTD, .dense = true, .request_max = 4096};
    char *stacks = malloc(1 << 16);
    struct kiln_batch *batch;
    uint32_t failed = 0;
    size_t n = 0;
    int64_t live;

    for (int i = 0; i < 100; i++)
        n += (size_t)snprintf(stacks + n, (1 << 16) - n, "main;function_%d;another_one_%d 1\n", i,
                              i);
    batch = kiln_test_stacks(stacks);
    live = kiln_mem_live();
    for (uint64_t at = 1;; at++) {
        struct kiln_export_item *items = NULL, *next;
        struct kiln_err err = {0};
        bool hit;
        int r;

        kiln_mem_fail_at(at);
        r = kiln_export_encode(batch, &shape, &items, &err);
        hit = kiln_mem_failed();
        kiln_mem_fail_at(0);
        for (; items; items = next) {
            next = items->next;
            kiln_export_item_free(items);
        }
        CHECK_EQ(kiln_mem_live(), live);
        CHECK(hit ? r < 0 && err.text[0] : r == 0);
        if (!hit)
            break;
        failed++;
    }
    CHECK(failed > 20);
    kiln_batch_unref(batch);
    free(stacks);
}

/* 300 stacks, and of the first one, which is not the first by its frames, many samples. */
static struct kiln_batch *often_the_first(void)
{
    struct kiln_batch *batch;
    struct kiln_builder *b;
    uint32_t profile, attrs[2000];

    CHECK_OK(kiln_builder_new(NULL, &b));
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    profile = kiln_builder_add_profile(b, &(struct kiln_profile){0});
    for (uint32_t i = 0; i < 300; i++) {
        char name[16];
        struct kiln_function function;
        struct kiln_line line;
        uint32_t frame[2] = {0};

        snprintf(name, sizeof(name), "f%u", i);
        function = (struct kiln_function){.name = kiln_builder_string(b, kiln_str_of(name))};
        line = (struct kiln_line){.function = kiln_builder_function(b, &function)};
        frame[0] = frame[1] = kiln_builder_location(b, &(struct kiln_location){0}, &line, 1);
        kiln_builder_add_value(b, profile, kiln_builder_stack(b, frame, i ? 1 : 2), 0, 1);
    }
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(attrs); i++) {
        uint32_t key = kiln_builder_string(b, KILN_STR("n"));

        attrs[i] = kiln_builder_attr(b, key, kiln_value_int(i), 0);
        kiln_builder_add_value(b, profile, 1, kiln_builder_set(b, &attrs[i], 1, NULL), 1);
    }
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    return batch;
}

TEST(export_encode, keeps_the_limit_where_the_dense_order_takes_more_bytes)
{
    const struct kiln_otlp_encode_opts dense = {.dense = true};
    struct kiln_batch *batch = often_the_first();
    struct kiln_export_shape shape = {.dense = true, .request_max = kiln_otlp_size_max(batch)};
    struct kiln_export_item *items;
    struct kiln_buf bytes;

    kiln_buf_init(&bytes, 1 << 20);
    CHECK_OK(kiln_otlp_encode(batch, &dense, &bytes, NULL));
    CHECK(bytes.len > shape.request_max);
    CHECK_OK(kiln_export_encode(batch, &shape, &items, NULL));
    CHECK(items && !items->next && items->len <= shape.request_max);
    CHECK_EQ(items->head.samples, batch->n_samples);
    kiln_export_item_free(items);
    kiln_buf_done(&bytes);
    kiln_batch_unref(batch);
}
