/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampling without an allocator: addresses are made up, records are taken out of the ring at once.
 * Seeds are fixed, but where the clock has a say in what is sampled.  Bounds are those of Bernstein
 * and Freedman, which hold for few samples of great weight as well, and where what is drawn depends
 * on what was drawn before: chance passes them once in ten million runs.
 */
#include "inproc/sample/alloc.h"

#include <errno.h>
#include <kiln.h>
#include <math.h>

#include "inproc/sample/filter.h"
#include "inproc/sample/live.h"
#include "inproc/sample/poisson.h"
#include "inproc/start.h"
#include "inproc/thread/thread.h"
#include "test.h"

struct truth {
    double objects, bytes;                   /* that were allocated */
    double objects_variance, bytes_variance; /* of what samples make of it */
    double objects_most, bytes_most;         /* that one sample stands for */
    double sampled_objects, sampled_bytes;
    uint64_t samples;
};

static void begin(uint64_t mean, uint64_t rate, uint64_t seed)
{
    kiln_in_settings.profiles = KILN_PROFILE_ALLOC | KILN_PROFILE_HEAP;
    kiln_in_settings.alloc_bytes = mean;
    kiln_in_settings.alloc_rate = rate;
    kiln_in_settings.depth = 8;
    kiln_in_thread_end();
    kiln_in_threads_sweep(false);
    CHECK_OK(kiln_in_threads_init(seed));
    CHECK_OK(kiln_in_alloc_start());
    kiln_in_live_forget();
    atomic_store(&kiln_in_on, 1);
    kiln_in_line.alloc_left = 0;
    kiln_in_line.alloc_mean = 0;
}

static void end(void)
{
    atomic_store(&kiln_in_on, 0);
    kiln_in_alloc_stop();
}

static void *address(uint64_t n)
{
    return (void *)(uintptr_t)(0x600000000000 + n * 16);
}

static void take_records(struct truth *truth)
{
    struct kiln_in_thread *thread = kiln_in_line.thread;
    struct kiln_in_record record;

    while (thread && kiln_in_ring_take(&thread->ring, &record)) {
        CHECK_EQ(record.kind, KILN_IN_ALLOC);
        truth->sampled_objects += record.count;
        truth->sampled_bytes += record.value;
        truth->samples++;
    }
}

static void allocate(struct truth *truth, uint64_t n, size_t size)
{
    uint64_t mean = kiln_in_line.alloc_mean ? kiln_in_line.alloc_mean : kiln_in_alloc_mean();
    double p = kiln_in_poisson_chance((double)size, (double)mean);

    truth->objects++;
    truth->bytes += (double)size;
    truth->objects_variance += (1 - p) / p;
    truth->bytes_variance += (double)size * (double)size * (1 - p) / p;
    truth->objects_most = fmax(truth->objects_most, 1 / p);
    truth->bytes_most = fmax(truth->bytes_most, (double)size / p);
    if (kiln_in_alloc_passes(size))
        return;
    kiln_in_alloc_made(address(n), size);
    take_records(truth);
}

static double bound(double variance, double most)
{
    const double rarity = 16.8; /* ln(2 / 1e-7) */
    double half = rarity * most / 3;

    return half + sqrt(half * half + 2 * rarity * variance);
}

static void check_totals(const struct truth *truth)
{
    CHECK(fabs(truth->sampled_objects - truth->objects) <=
          bound(truth->objects_variance, truth->objects_most));
    CHECK(fabs(truth->sampled_bytes - truth->bytes) <=
          bound(truth->bytes_variance, truth->bytes_most));
}

/* Sizes as programs have them: most are small, some very large. */
static size_t size_of(uint64_t n)
{
    uint64_t x = (n + 1) * 0x9e3779b97f4a7c15;
    unsigned percent = (unsigned)(x >> 32) % 100;

    return percent < 70   ? 16 + (x >> 50) % 112
           : percent < 93 ? 128 + (x >> 50) % 896
           : percent < 99 ? 1024 + (x >> 48) % 65536
                          : 262144 + (x >> 44) % 1048576;
}

TEST(alloc, totals_are_right_for_a_mix_of_sizes)
{
    struct truth truth = {0};

    begin(16384, 0, 1);
    for (uint64_t i = 0; i < 300000; i++)
        allocate(&truth, i, size_of(i));
    CHECK(truth.samples > 10000);
    check_totals(&truth);
    end();
}

TEST(alloc, each_size_is_right_for_itself)
{
    for (size_t size = 1; size <= 1 << 20; size = size * 4 + 1) {
        struct truth truth = {0};

        begin(4096, 0, size + 1);
        for (uint64_t i = 0; i < 20000; i++)
            allocate(&truth, i, size);
        check_totals(&truth);
        end();
    }
}

TEST(alloc, allocations_of_no_bytes_are_never_sampled)
{
    begin(1, 0, 3);
    for (uint64_t i = 0; i < 100000; i++)
        CHECK(kiln_in_alloc_passes(0));
    CHECK(!kiln_in_alloc_passes(1));
    end();
}

/* Somebody jumped out between the count and what follows it. */
TEST(alloc, no_bytes_are_not_sampled_for_a_call_that_was_left)
{
    struct truth truth = {0};

    begin(512, 0, 7);
    for (int cut = 0; cut < 2; cut++) {
        kiln_in_line.alloc_mean = 512;
        kiln_in_line.alloc_cut = cut;
        kiln_in_line.alloc_left = 100;
        CHECK(!kiln_in_alloc_passes(1 << 20));
        CHECK(!kiln_in_alloc_passes(0));
        kiln_in_alloc_begins(0);
        kiln_in_alloc_ends(address(1), 0);
        take_records(&truth);
        CHECK(kiln_in_line.alloc_left >= 0);
    }
    CHECK_EQ(truth.samples, 0);
    end();
}

TEST(alloc, threads_that_allocate_little_are_not_overlooked)
{
    struct truth truth = {0};

    begin(65536, 0, 4);
    for (uint64_t i = 0; i < 20000; i++) {
        kiln_in_line.alloc_left = 0;
        kiln_in_line.alloc_mean = 0;
        allocate(&truth, 2 * i, 1000);
        allocate(&truth, 2 * i + 1, 200);
    }
    CHECK(truth.samples > 200);
    check_totals(&truth);
    end();
}

/* Beyond the limit the mean changes all the time, and with it what deviates. */
TEST(alloc, totals_are_right_while_the_mean_changes)
{
    struct truth truth = {0};
    uint64_t highest = 0;

    begin(1024, 20000, 5);
    for (uint64_t i = 0; i < 2000000; i++) {
        allocate(&truth, i, size_of(i));
        highest = kiln_in_alloc_mean() > highest ? kiln_in_alloc_mean() : highest;
    }
    CHECK(highest > 4096);
    CHECK(truth.samples > 100);
    check_totals(&truth);
    end();
}

/* Distances of sixteen times a piece, so that nearly all of them are cut, by most allocations. */
TEST(alloc, distances_may_be_longer_than_a_piece)
{
    struct truth truth = {0};

    begin(256 << 20, 0, 6);
    for (uint64_t i = 0; i < 100000; i++)
        allocate(&truth, i, (12 << 20) + i);
    CHECK(truth.samples > 100);
    check_totals(&truth);
    end();
}

static void add_bytes(const struct kiln_in_live *block, void *sum)
{
    *(double *)sum += block->count * (double)block->size;
}

TEST(alloc, what_is_still_in_use_is_right)
{
    enum { N = 200000, SLOTS = 20000 };
    static size_t sizes[SLOTS];
    struct truth truth = {0};
    double bytes = 0, in_use = 0, variance = 0;

    begin(16384, 0, 7);
    for (uint64_t i = 0; i < N; i++) {
        uint64_t slot = i * 0x9e3779b97f4a7c15 % SLOTS;

        if (kiln_in_filter_has(address(slot)))
            kiln_in_alloc_freed(address(slot));
        sizes[slot] = size_of(i);
        allocate(&truth, slot, sizes[slot]);
    }
    for (uint64_t slot = 0; slot < SLOTS; slot++) {
        double p = kiln_in_poisson_chance((double)sizes[slot] + 1, 16384);

        bytes += (double)sizes[slot];
        variance += (double)sizes[slot] * (double)sizes[slot] * (1 - p) / p;
    }
    kiln_in_live_each(add_bytes, &in_use);
    CHECK(kiln_in_live_count() > 1000);
    CHECK(fabs(in_use - bytes) <= 5 * sqrt(variance));
    end();
}

TEST(alloc, a_live_block_weighs_what_its_sample_did)
{
    struct truth truth = {0};
    double bytes = 0;

    begin(4096, 0, 8);
    for (uint64_t i = 0; i < 5000; i++)
        allocate(&truth, i, 100);
    kiln_in_live_each(add_bytes, &bytes);
    CHECK(fabs(bytes - truth.sampled_bytes) < 1e-6 * bytes);
    for (uint64_t i = 0; i < 5000; i++)
        kiln_in_alloc_freed(address(i));
    CHECK_EQ(kiln_in_live_count(), 0);
    end();
}

TEST(alloc, a_call_that_failed_counts_for_nothing)
{
    int64_t left;

    begin(4096, 0, 9);
    while (kiln_in_alloc_passes(64))
        ;
    kiln_in_alloc_made(address(1), 64);
    left = kiln_in_line.alloc_left;
    CHECK(left >= 0);
    CHECK(!kiln_in_alloc_passes(1UL << 62));
    kiln_in_alloc_begins(1UL << 62);
    CHECK_EQ(kiln_in_line.alloc_left, left);
    kiln_in_alloc_ends(NULL, 1UL << 62);
    CHECK_EQ(kiln_in_line.alloc_left, left);
    end();
}

/* Nobody reads the ring meanwhile: most samples are told by others. */
static double bytes_of_a_burst(uint64_t seed)
{
    struct truth truth = {0};
    double bytes = 0;

    begin(16, 0, seed);
    for (uint64_t i = 0; i < 64000; i++) {
        if (!kiln_in_alloc_passes(1000))
            kiln_in_alloc_made(address(i), 1000);
    }
    take_records(&truth);
    kiln_in_live_each(add_bytes, &bytes);
    CHECK_EQ(kiln_in_live_count(), truth.samples);
    CHECK_EQ(kiln_in_lost_total(KILN_IN_LOST_RING), 0);
    CHECK(fabs(bytes - truth.sampled_bytes) < 1e-6 * bytes);
    end();
    return bytes;
}

TEST(alloc, a_burst_is_right_and_so_is_what_it_leaves)
{
    enum { BURSTS = 36 };
    double bytes = 0;

    for (uint64_t seed = 1; seed <= BURSTS; seed++)
        bytes += bytes_of_a_burst(seed) / BURSTS;
    CHECK(fabs(bytes - 64e6) < 0.32 * 64e6); /* six deviations; one burst's is a third of it */
}

TEST(alloc, nothing_happens_before_the_start)
{
    begin(16, 0, 11);
    end();
    for (uint64_t i = 0; i < 10000; i++) {
        if (!kiln_in_alloc_passes(1000))
            kiln_in_alloc_made(address(i), 1000);
    }
    CHECK_EQ(kiln_in_live_count(), 0);
}

TEST(alloc, errno_is_kept)
{
    begin(1, 0, 12);
    errno = EDOM;
    for (uint64_t i = 0; i < 1000; i++) {
        if (!kiln_in_alloc_passes(100))
            kiln_in_alloc_made(address(i), 100);
        kiln_in_alloc_freed(address(i));
    }
    CHECK_EQ(errno, EDOM);
    end();
}
