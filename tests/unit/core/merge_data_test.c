/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merge, compact and split on real captures.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/codec.h"
#include "core/merge.h"
#include "core/otlp_size.h"
#include "core/split.h"
#include "resolve.h"
#include "test.h"

static const char *const captures[] = {
    "pprof/large.cpu.pb.gz",          "pprof/go-heap.pb.gz",     "pprof/dotnet-labels.pb",
    "pprof/go-cpu-span-labels.pb.gz", "otlp/ebpf-host.1.8.otlp", "otlp/host-mix.1.11/00001.otlp",
    "otlp/host-mix.1.11/00010.otlp",
};

static struct kiln_batch *load(const char *relative)
{
    struct kiln_batch *batch;
    struct kiln_err err = {0};
    size_t len = 0;
    char *data = kiln_test_read(kiln_test_data(relative), &len);

    if (!data)
        return NULL;
    if (kiln_decode((struct kiln_str){data, len}, &(struct kiln_decode_opts){0}, &batch, NULL,
                    &err) < 0)
        fail_msg("%s: %s %s", relative, err.where, err.text);
    free(data);
    return batch;
}

/* The sum of all samples of a profile. */
static int64_t total(const struct kiln_batch *batch, uint32_t profile)
{
    const struct kiln_profile *p = &batch->profiles[profile];
    int64_t sum = 0;

    for (uint32_t i = 0; i < p->n_samples; i++)
        sum += kiln_sample_total(batch, &batch->samples[p->first_sample + i]);
    return sum;
}

/* The sum over all profiles of a sample type. */
static int64_t total_of_type(const struct kiln_batch *batch, struct kiln_str type)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < batch->n_profiles; i++) {
        if (kiln_str_eq(kiln_batch_str(batch, batch->profiles[i].sample_type.type), type))
            sum += total(batch, i);
    }
    return sum;
}

static void check_twice(struct kiln_batch *batch)
{
    struct kiln_batch *both[] = {batch, batch}, *once, *twice;

    CHECK_OK(kiln_merge(both, 1, NULL, &once, NULL));
    CHECK_OK(kiln_merge(both, 2, NULL, &twice, NULL));
    check_invariants(twice);
    check_no_orphans(twice);
    CHECK_EQ(once->n_samples, twice->n_samples);
    CHECK_EQ(once->n_profiles, twice->n_profiles);
    CHECK_EQ(once->dict.n_stacks, twice->dict.n_stacks);
    CHECK_EQ(once->dict.n_strings, twice->dict.n_strings);
    for (uint32_t i = 0; i < once->n_profiles; i++)
        CHECK_EQ(2 * total(once, i), total(twice, i));
    kiln_batch_unref(once);
    kiln_batch_unref(twice);
}

static void check_split(struct kiln_batch *batch)
{
    struct kiln_split_opts opts = {.bytes_max = kiln_otlp_size_max(batch) / 3 + 20000};
    struct kiln_batch **parts, *merged_parts, *merged;
    uint32_t n;

    CHECK_OK(kiln_split(batch, &opts, &parts, &n, NULL));
    CHECK(n >= 2 || kiln_otlp_size_max(batch) < 30000);
    for (uint32_t i = 0; i < n; i++) {
        CHECK(kiln_otlp_size_max(parts[i]) <= opts.bytes_max);
        check_no_orphans(parts[i]);
    }
    CHECK_OK(kiln_merge(parts, n, NULL, &merged_parts, NULL));
    CHECK_OK(kiln_merge(&batch, 1, NULL, &merged, NULL));
    CHECK(kiln_batch_equal(merged_parts, merged));
    for (uint32_t i = 0; i < n; i++)
        kiln_batch_unref(parts[i]);
    kiln_free(parts);
    kiln_batch_unref(merged_parts);
    kiln_batch_unref(merged);
}

CAPTURE_TEST(captures, merge_compact_and_split_keep_what_they_say)
{
    uint32_t seen = 0;

    for (size_t i = 0; i < KILN_ARRAY_LEN(captures); i++) {
        struct kiln_batch *batch = load(captures[i]), *compact;

        if (!batch)
            continue;
        seen++;
        CHECK_OK(kiln_compact(batch, &compact, NULL));
        CHECK(kiln_batch_equal(batch, compact));
        check_twice(batch);
        check_split(batch);
        kiln_batch_unref(compact);
        kiln_batch_unref(batch);
    }
    if (seen == 0)
        SKIP("there are no captures");
}

CAPTURE_TEST(captures, ten_messages_of_a_host_keep_their_totals)
{
    struct kiln_batch *batches[10], *merged;
    int64_t samples = 0;

    for (uint32_t i = 0; i < 10; i++) {
        char path[64];

        snprintf(path, sizeof(path), "otlp/host-mix.1.11/%05u.otlp", i + 1);
        batches[i] = load(path);
        if (!batches[i]) {
            while (i > 0)
                kiln_batch_unref(batches[--i]);
            SKIP("there are no captures");
        }
        samples += total_of_type(batches[i], KILN_STR("samples"));
    }
    CHECK_OK(
        kiln_merge(batches, 10, &(struct kiln_merge_opts){.combine_times = true}, &merged, NULL));
    CHECK(samples > 0);
    CHECK_EQ(total_of_type(merged, KILN_STR("samples")), samples);
    check_invariants(merged);
    for (uint32_t i = 0; i < 10; i++)
        kiln_batch_unref(batches[i]);
    kiln_batch_unref(merged);
}
