/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real captures through log, replay, cut and merge: what comes back is what a head says of them.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "codec/codec.h"
#include "resolve.h"
#include "store/head.h"
#include "store_kit.h"
#include "test.h"

#define NOW (UINT64_C(1900000000) * KILN_NS_PER_S)

static const char *const captures[] = {
    "otlp/host-mix.1.11/00001.otlp",  "otlp/host-mix.1.11/00002.otlp",
    "otlp/host-mix.1.11/00003.otlp",  "otlp/ebpf-host.1.8.otlp",
    "pprof/go-cpu-span-labels.pb.gz", "pprof/dotnet-labels.pb",
};

static struct kiln_batch *load(const char *relative)
{
    struct kiln_batch *batch = NULL;
    size_t len = 0;
    char *data = kiln_test_read(kiln_test_data(relative), &len);

    if (data)
        CHECK_OK(kiln_decode((struct kiln_str){data, len}, &(struct kiln_decode_opts){0}, &batch,
                             NULL, NULL));
    for (uint32_t i = 0; batch && i < batch->n_profiles; i++) { /* so that they can be recognised */
        if (batch->profiles[i].time_ns == 0)
            batch->profiles[i].time_ns = NOW - 1;
    }
    free(data);
    return batch;
}

/* What a head makes of the batches, as text. */
static char *said_by_head(struct kiln_batch *const *batches, size_t n)
{
    struct kiln_series_rule *rule;
    struct kiln_head_opts opts = {.seed = 1, .memory_bytes = (size_t)1 << 30};
    struct kiln_batch *batch;
    struct kiln_head *head;
    char *text;

    CHECK_OK(kiln_series_rule_new(NULL, 0, &rule));
    opts.rule = rule;
    CHECK_OK(kiln_head_new(&opts, &head));
    for (size_t i = 0; i < n; i++) {
        struct kiln_head_batch in = {.batch = batches[i], .number = i + 1, .received_ns = NOW};

        CHECK_OK(kiln_head_apply(head, &in));
    }
    CHECK_OK(kiln_head_select(head, &(struct kiln_head_choice){0}, NULL, &batch, NULL));
    text = resolve_batch(batch, 0);
    kiln_batch_unref(batch);
    kiln_head_unref(head);
    kiln_series_rule_free(rule);
    return text;
}

static void check(struct store_kit *kit, const char *want)
{
    struct kiln_batch *batch = kit_select(kit, 0, 0);
    char *got = resolve_batch(batch, 0);

    CHECK(strcmp(got, want) == 0); /* too long to be shown */
    kiln_free(got);
    kiln_batch_unref(batch);
}

CAPTURE_TEST(store, real_captures_come_back_as_they_were)
{
    struct kiln_batch *batches[KILN_ARRAY_LEN(captures)];
    struct store_kit kit;
    char *want;

    for (size_t i = 0; i < KILN_ARRAY_LEN(captures); i++) {
        batches[i] = load(captures[i]);
        if (!batches[i])
            SKIP("no real captures here");
    }
    want = said_by_head(batches, KILN_ARRAY_LEN(captures));
    kit_init(&kit, NOW);
    kit_close(&kit);
    kit.opts.retention.age_ns = UINT64_MAX;
    kit_open(&kit);
    for (size_t i = 0; i < KILN_ARRAY_LEN(captures); i++) {
        kit_put(&kit, kiln_batch_ref(batches[i]));
        if (i % 3 == 1)
            CHECK_OK(kiln_store_flush(kit.engine, NULL));
    }
    check(&kit, want);
    kit_cut_power(&kit, 5);
    kit_open(&kit);
    check(&kit, want);
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    check(&kit, want);
    CHECK_OK(kiln_store_compact(kit.engine, true, NULL));
    CHECK_EQ(kit_stats(&kit).blocks, 1);
    check(&kit, want);
    kit_reopen(&kit);
    for (size_t i = 0; i < KILN_ARRAY_LEN(captures); i++) { /* all are known */
        kit_put(&kit, kiln_batch_ref(batches[i]));
        kiln_batch_unref(batches[i]);
    }
    check(&kit, want);
    kiln_free(want);
    kit_done(&kit);
}
