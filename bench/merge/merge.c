/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is merging linear, and how fast is it?
 *
 *   bench_merge                 synthetic batches: N that share four fifths of their stacks
 *   bench_merge FILE...         2, 10 and 100 copies of the files, in turn
 *
 * Prints the best CPU time of several rounds for 2, 10 and 100 inputs, the time an input takes, and
 * how that compares with the smallest merge: 1.0 is perfectly linear, and 1.2 still meets the
 * promise (ten times the input in at most twelve times the time).
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../batch.h"
#include "base/mem.h"
#include "core/merge.h"

#define INPUTS_MAX 100u
#define ROUNDS     9
#define N_SAMPLES  20000u
#define DEPTH      30u

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static uint32_t synthetic_frame(struct kiln_builder *b, uint64_t id)
{
    char text[64];
    struct kiln_function f = {0};
    struct kiln_line line = {.line = (int64_t)(id % 100)};
    int n = snprintf(text, sizeof(text), "some::module::function_%llu", (unsigned long long)id / 3);

    f.name = kiln_builder_string(b, (struct kiln_str){text, (size_t)n});
    line.function = kiln_builder_function(b, &f);
    return kiln_builder_location(b, &(struct kiln_location){.address = id}, &line, 1);
}

/* One of the variants: every fifth stack is its own. */
static struct kiln_batch *synthetic(uint32_t variant)
{
    struct kiln_profile profile = {.time_ns = 1, .duration_ns = 1};
    struct kiln_err err = {0};
    struct kiln_batch *batch;
    struct kiln_builder *b;

    if (kiln_builder_new(NULL, &b) < 0)
        exit(1);
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    kiln_builder_add_profile(b, &profile);
    for (uint32_t i = 0; i < N_SAMPLES; i++) {
        uint64_t state = i % 5 ? i : (uint64_t)variant << 32 | i;
        uint32_t frames[DEPTH];

        for (uint32_t k = 0; k < DEPTH; k++)
            frames[k] = synthetic_frame(b, 1 + next_random(&state) % 10000);
        kiln_builder_add_value(b, 0, kiln_builder_stack(b, frames, DEPTH), 0, i + 1);
    }
    bench_must(kiln_builder_finish(b, &batch, &err), "synthetic data", &err);
    return batch;
}

static double best_of(struct kiln_batch *const *batches, uint32_t n, uint32_t *ret_samples)
{
    double best = 1e18;

    for (int round = 0; round < ROUNDS; round++) {
        struct kiln_err err = {0};
        struct kiln_batch *merged;
        double start = bench_cpu_s() * 1e3;
        double took;

        bench_must(
            kiln_merge(batches, n, &(struct kiln_merge_opts){.combine_times = true}, &merged, &err),
            "merge", &err);
        took = bench_cpu_s() * 1e3 - start;
        *ret_samples = merged->n_samples;
        kiln_batch_unref(merged);
        best = took < best ? took : best;
    }
    return best;
}

int main(int argc, char **argv)
{
    static const uint32_t sizes[] = {2, 10, INPUTS_MAX};
    struct kiln_batch *batches[INPUTS_MAX];
    double smallest = 0;

    kiln_mem_keep(64u << 20);
    for (uint32_t i = 0; i < INPUTS_MAX; i++) {
        if (argc == 1)
            batches[i] = synthetic(i);
        else if (i < (uint32_t)argc - 1)
            batches[i] = bench_load(argv[1 + i]);
        else
            batches[i] = kiln_batch_ref(batches[i % ((uint32_t)argc - 1)]);
    }
    printf("%8s %12s %12s %12s %8s\n", "inputs", "samples out", "ms", "ms/input", "ratio");
    for (size_t i = 0; i < KILN_ARRAY_LEN(sizes); i++) {
        uint32_t samples;
        double ms = best_of(batches, sizes[i], &samples);

        if (i == 0)
            smallest = ms / sizes[i];
        printf("%8u %12u %12.2f %12.3f %8.2f\n", sizes[i], samples, ms, ms / sizes[i],
               ms / sizes[i] / smallest);
    }
    for (uint32_t i = 0; i < INPUTS_MAX; i++)
        kiln_batch_unref(batches[i]);
    return 0;
}
