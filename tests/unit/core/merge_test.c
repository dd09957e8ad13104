/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "base/mem.h"
#include "core/merge.h"
#include "random_batch.h"
#include "resolve.h"
#include "stacks.h"
#include "test.h"

#define SECOND     1000000000u
#define N_SEEDS    150u
#define UNREF(...) unref_all((struct kiln_batch *[]){__VA_ARGS__, NULL})

static void unref_all(struct kiln_batch **batches)
{
    for (; *batches; batches++)
        kiln_batch_unref(*batches);
}

static struct kiln_batch *merge(struct kiln_batch *a, struct kiln_batch *b,
                                const struct kiln_merge_opts *opts)
{
    struct kiln_batch *both[] = {a, b};
    struct kiln_batch *merged = NULL;
    struct kiln_err err = {0};

    CHECK_OK(kiln_merge(both, 2, opts, &merged, &err));
    check_invariants(merged);
    return merged;
}

static const struct kiln_merge_opts over_time = {.combine_times = true};

TEST(merge, equal_stacks_become_one_sample)
{
    struct kiln_batch *a = batch_of_stacks("main;parse;read 3\n"
                                           "main;idle 1\n");
    struct kiln_batch *b = batch_of_stacks("main;idle 2\n"
                                           "main;parse 5\n");
    struct kiln_batch *merged = merge(a, b, NULL);

    check_stacks(merged, "main;parse;read 3\n"
                         "main;idle 3\n"
                         "main;parse 5\n");
    CHECK_EQ(merged->n_resources, 1);
    CHECK_EQ(merged->n_profiles, 1);
    CHECK_EQ(merged->dict.n_functions, 5);
    UNREF(a, b, merged);
}

TEST(merge, nothing_at_all_is_an_empty_batch)
{
    struct kiln_batch *merged;

    CHECK_OK(kiln_merge(NULL, 0, NULL, &merged, NULL));
    CHECK_EQ(merged->n_resources, 0);
    CHECK_EQ(merged->dict.n_strings, 1);
    kiln_batch_unref(merged);
}

TEST(merge, into_an_empty_batch_keeps_the_zero_values)
{
    struct kiln_batch *none, *a = batch_of_stacks("main;read 3\n");
    struct kiln_batch *merged;

    CHECK_OK(kiln_merge(NULL, 0, NULL, &none, NULL));
    merged = merge(none, a, NULL);
    CHECK_STR(kiln_batch_str(merged, 0), "");
    CHECK(kiln_batch_equal(merged, a));
    UNREF(none, a, merged);
}

TEST(merge, sums_saturate)
{
    struct kiln_batch *a = batch_of_stacks("main 9223372036854775807\n");
    struct kiln_batch *b = batch_of_stacks("main 1\n");
    struct kiln_batch *merged = merge(a, b, NULL);

    check_stacks(merged, "main 9223372036854775807\n");
    UNREF(a, b, merged);
}

TEST(merge, profiles_of_another_time_stay_apart_unless_asked)
{
    struct kiln_batch *a = batch_of_stacks_at(10 * (uint64_t)SECOND, "main 1\n");
    struct kiln_batch *b = batch_of_stacks_at(20 * (uint64_t)SECOND, "main 2\n");
    struct kiln_batch *apart = merge(a, b, NULL);
    struct kiln_batch *one = merge(a, b, &over_time);

    CHECK_EQ(apart->n_profiles, 2);
    CHECK_EQ(one->n_profiles, 1);
    check_stacks(one, "main 3\n");
    UNREF(a, b, apart, one);
}

/* The duration, in seconds, of profiles of 10 s that start at these seconds, merged. */
static uint64_t merged_duration(uint64_t first_s, uint64_t second_s)
{
    struct kiln_batch *a = batch_of_stacks_at(first_s * SECOND, "main 1\n");
    struct kiln_batch *b = batch_of_stacks_at(second_s * SECOND, "main 1\n");
    struct kiln_batch *merged = merge(a, b, &over_time);
    uint64_t duration = merged->profiles[0].duration_ns / SECOND;
    uint64_t start = merged->profiles[0].time_ns / SECOND;

    CHECK_EQ(merged->n_profiles, 1);
    CHECK_EQ(start, first_s && (!second_s || first_s < second_s) ? first_s : second_s);
    UNREF(a, b, merged);
    return duration;
}

TEST(merge, the_duration_is_the_time_covered)
{
    CHECK_EQ(merged_duration(100, 110), 20); /* one after the other */
    CHECK_EQ(merged_duration(110, 100), 20);
    CHECK_EQ(merged_duration(100, 100), 10); /* the same window */
    CHECK_EQ(merged_duration(100, 105), 15); /* half of it */
    CHECK_EQ(merged_duration(100, 300), 20); /* with a gap */
    CHECK_EQ(merged_duration(0, 0), 20);     /* nobody knows when */
    CHECK_EQ(merged_duration(0, 100), 20);
}

/* A batch of one timed sample at `at`, in a profile from `start` on, 10 long. */
static struct kiln_batch *timed(uint64_t start, uint64_t at, bool with_value)
{
    struct kiln_profile p = {.time_ns = start, .duration_ns = 10};
    struct kiln_batch *batch;
    struct kiln_builder *b;
    int64_t value = 7;

    CHECK_OK(kiln_builder_new(NULL, &b));
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    kiln_builder_add_profile(b, &p);
    kiln_builder_add_sample(b, 0, 0, 0, 0, with_value ? &value : NULL, &at, 1);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    return batch;
}

TEST(merge, observations_with_times_are_all_kept)
{
    struct kiln_batch *a = timed(100, 105, true), *b = timed(100, 103, true);
    struct kiln_batch *merged = merge(a, b, NULL);
    const struct kiln_sample *s = &merged->samples[0];

    CHECK_EQ(merged->n_samples, 1);
    CHECK_EQ(s->n, 2);
    CHECK_EQ(kiln_sample_values(merged, s)[1], 7);
    CHECK_EQ(kiln_sample_times(merged, s)[0], 105);
    CHECK_EQ(kiln_sample_times(merged, s)[1], 103);
    UNREF(a, b, merged);
}

TEST(merge, times_lie_inside_the_merged_profile_whatever_the_gap)
{
    struct kiln_batch *a = timed(100, 105, false), *b = timed(500, 509, false);
    struct kiln_batch *merged = merge(a, b, &over_time);

    CHECK_EQ(merged->profiles[0].time_ns, 100);
    CHECK_EQ(merged->profiles[0].duration_ns, 410);
    UNREF(a, b, merged);
}

TEST(merge, samples_of_different_shape_are_not_forced_together)
{
    struct kiln_batch *a = timed(100, 105, true), *b = timed(100, 103, false);
    struct kiln_batch *merged = merge(a, b, NULL);

    CHECK_EQ(merged->n_profiles, 2);
    CHECK_EQ(merged->n_samples, 2);
    CHECK(merged->samples[0].has_values && !merged->samples[1].has_values);
    UNREF(a, b, merged);
}

TEST(merge, several_values_without_times_become_their_sum)
{
    struct kiln_batch *merged, *batch;
    struct kiln_builder *b;

    CHECK_OK(kiln_builder_new(NULL, &b));
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    kiln_builder_add_profile(b, &(struct kiln_profile){0});
    kiln_builder_add_sample(b, 0, 0, 0, 0, (int64_t[]){1, 2, 3}, NULL, 3);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    CHECK_OK(kiln_merge(&batch, 1, NULL, &merged, NULL));
    CHECK_EQ(merged->samples[0].n, 1);
    CHECK_EQ(merged->observations[0], 6);
    UNREF(batch, merged);
}

/* A batch with one resource (host), one scope and one profile of this id. */
static struct kiln_batch *host_profile(const char *host, uint8_t id, struct kiln_str payload)
{
    struct kiln_profile p = {.id = {id}, .payload = payload};
    struct kiln_resource r = {0};
    struct kiln_batch *batch;
    struct kiln_builder *b;
    uint32_t attr;

    CHECK_OK(kiln_builder_new(NULL, &b));
    attr = kiln_builder_text_attr(b, KILN_STR("host.name"), kiln_str_of(host));
    r.attrs = kiln_builder_set(b, &attr, 1, NULL);
    r.dropped_attrs = id;
    kiln_builder_add_resource(b, &r);
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    if (payload.len)
        p.payload_format = kiln_builder_string(b, KILN_STR("pprof"));
    kiln_builder_add_profile(b, &p);
    draw_stacks(b, 0, "main 1\n");
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    return batch;
}

TEST(merge, other_resources_stay_apart)
{
    struct kiln_batch *a = host_profile("a", 0, KILN_STR_NONE);
    struct kiln_batch *b = host_profile("b", 0, KILN_STR_NONE);
    struct kiln_batch *merged = merge(a, b, NULL);

    CHECK_EQ(merged->n_resources, 2);
    CHECK_EQ(merged->n_scopes, 2);
    CHECK_EQ(merged->n_samples, 2);
    UNREF(a, b, merged);
}

TEST(merge, other_ids_and_payloads_keep_profiles_apart)
{
    struct kiln_batch *a = host_profile("a", 1, KILN_STR_NONE);
    struct kiln_batch *b = host_profile("a", 2, KILN_STR_NONE);
    struct kiln_batch *c = host_profile("a", 1, KILN_STR("bytes"));
    struct kiln_batch *ids = merge(a, b, NULL), *payloads = merge(c, c, NULL);

    CHECK_EQ(ids->n_resources, 1);
    CHECK_EQ(ids->resources[0].dropped_attrs, 2);
    CHECK_EQ(ids->n_profiles, 2);
    CHECK_EQ(payloads->n_profiles, 2);
    CHECK_STR(payloads->profiles[1].payload, "bytes");
    UNREF(a, b, c, ids, payloads);
}

TEST(merge, profiles_can_be_kept_apart)
{
    struct kiln_batch *a = batch_of_stacks("main 1\n");
    struct kiln_batch *merged = merge(a, a, &(struct kiln_merge_opts){.keep_profiles_apart = true});

    CHECK_EQ(merged->n_resources, 1);
    CHECK_EQ(merged->n_profiles, 2);
    check_stacks(merged, "main 1\nmain 1\n");
    UNREF(a, merged);
}

/* A sample at `address` in a mapping of 4096 bytes from `start` on, of this file and build id. */
static struct kiln_batch *loaded_at(uint64_t start, uint64_t address, const char *file,
                                    const char *build_id)
{
    struct kiln_mapping m = {.start = start, .limit = start + 4096, .offset = 512};
    struct kiln_location l = {.address = address};
    struct kiln_batch *batch;
    struct kiln_builder *b;
    uint32_t attr, location;

    CHECK_OK(kiln_builder_new(NULL, &b));
    attr = kiln_builder_text_attr(b, KILN_STR("process.executable.build_id.gnu"),
                                  kiln_str_of(build_id));
    m.filename = kiln_builder_string(b, kiln_str_of(file));
    m.attrs = *build_id ? kiln_builder_set(b, &attr, 1, NULL) : 0;
    l.mapping = kiln_builder_mapping(b, &m);
    location = kiln_builder_location(b, &l, NULL, 0);
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    kiln_builder_add_profile(b, &(struct kiln_profile){0});
    kiln_builder_add_value(b, 0, kiln_builder_stack(b, &location, 1), 0, 1);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    return batch;
}

/* How many samples two starts of a file make, 0x1010 and 0x7010 being the same distance inside. */
static uint32_t merged_starts(const char *file, const char *build_id, const char *other_build_id,
                              bool relocate)
{
    struct kiln_batch *a = loaded_at(0x1000, 0x1010, file, build_id);
    struct kiln_batch *b = loaded_at(0x7000, 0x7010, file, other_build_id);
    struct kiln_batch *merged = merge(a, b, &(struct kiln_merge_opts){.relocate = relocate});
    uint32_t n = merged->n_samples;

    CHECK_EQ(merged->dict.locations[1].address, 0x1010);
    UNREF(a, b, merged);
    return n;
}

TEST(merge, the_same_code_at_another_address_can_be_the_same)
{
    CHECK_EQ(merged_starts("/bin/app", "abc", "abc", true), 1);
    CHECK_EQ(merged_starts("/bin/app", "", "", true), 1);
    CHECK_EQ(merged_starts("/bin/app", "abc", "abc", false), 2);
    CHECK_EQ(merged_starts("/bin/app", "abc", "def", true), 2); /* another build */
    CHECK_EQ(merged_starts("[anon]", "", "", true), 2);         /* no file, no build id */
    CHECK_EQ(merged_starts("//anon", "", "", true), 2);
}

TEST(merge, with_relocation_memory_may_run_out_anywhere)
{
    struct kiln_batch *a = loaded_at(0x1000, 0x1010, "/bin/app", "abc");
    struct kiln_batch *b = loaded_at(0x7000, 0x7010, "/bin/app", "abc");
    struct kiln_batch *both[] = {a, b}, *merged = NULL;
    int64_t live = kiln_mem_live();
    int r = -1;

    for (uint64_t n = 1; r < 0; n++) {
        kiln_mem_fail_at(n);
        r = kiln_merge(both, 2, &(struct kiln_merge_opts){.relocate = true}, &merged, NULL);
        kiln_mem_fail_at(0);
        CHECK(r == 0 || kiln_mem_live() == live);
        assert_true(n < 1000);
    }
    UNREF(a, b, merged);
}

TEST(merge, the_multiset_of_resolved_samples_is_preserved)
{
    for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
        struct kiln_batch *a = random_batch(&(struct random_opts){.seed = seed, .orphans = true});
        struct kiln_batch *b = random_batch(&(struct random_opts){.seed = seed + 1000});
        struct kiln_batch *merged = merge(a, b, NULL);
        struct resolved parts = {0};
        char *expected, *actual;

        resolve_add(&parts, a, 0);
        resolve_add(&parts, b, 0);
        expected = resolve_text(&parts);
        actual = resolve_batch(merged, 0);
        CHECK_TEXT(actual, expected);
        check_no_orphans(merged);
        kiln_free(expected);
        kiln_free(actual);
        UNREF(a, b, merged);
    }
}

TEST(merge, over_time_only_the_profiles_times_change)
{
    for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
        struct kiln_batch *a = random_batch(&(struct random_opts){.seed = seed});
        struct kiln_batch *b = random_batch(&(struct random_opts){.seed = seed + 1000});
        struct kiln_batch *merged = merge(a, b, &over_time);
        struct resolved parts = {0};
        char *expected, *actual;

        resolve_add(&parts, a, RESOLVE_NO_PROFILE_TIME);
        resolve_add(&parts, b, RESOLVE_NO_PROFILE_TIME);
        expected = resolve_text(&parts);
        actual = resolve_batch(merged, RESOLVE_NO_PROFILE_TIME);
        CHECK_TEXT(actual, expected);
        kiln_free(expected);
        kiln_free(actual);
        UNREF(a, b, merged);
    }
}

TEST(merge, with_itself_keeps_the_tables_and_doubles_the_samples)
{
    for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
        struct kiln_batch *a = random_batch(&(struct random_opts){.seed = seed});
        struct kiln_batch *once = NULL, *twice = merge(a, a, NULL);
        struct resolved parts = {0};
        char *expected, *actual;

        CHECK_OK(kiln_merge(&a, 1, NULL, &once, NULL));
#define SAME(table) CHECK_EQ(once->dict.n_##table, twice->dict.n_##table)
        SAME(strings);
        SAME(functions);
        SAME(mappings);
        SAME(locations);
        SAME(lines);
        SAME(stacks);
        SAME(frames);
        SAME(links);
        SAME(attrs);
        SAME(nested);
        SAME(sets);
#undef SAME
        CHECK_EQ(once->n_resources, twice->n_resources);
        CHECK_EQ(once->n_scopes, twice->n_scopes);
        resolve_add(&parts, a, 0);
        resolve_add(&parts, a, 0);
        expected = resolve_text(&parts);
        actual = resolve_batch(twice, 0);
        CHECK_TEXT(actual, expected);
        kiln_free(expected);
        kiln_free(actual);
        UNREF(a, once, twice);
    }
}

TEST(merge, no_two_samples_of_a_profile_share_identity_and_shape)
{
    struct kiln_batch *a = random_batch(&(struct random_opts){.seed = 5, .samples = 300});
    struct kiln_batch *merged = merge(a, a, NULL);

    for (uint32_t p = 0; p < merged->n_profiles; p++) {
        const struct kiln_sample *s = merged->samples + merged->profiles[p].first_sample;

        for (uint32_t i = 0; i < merged->profiles[p].n_samples; i++) {
            for (uint32_t k = i + 1; k < merged->profiles[p].n_samples; k++)
                CHECK(s[i].stack != s[k].stack || s[i].attrs != s[k].attrs ||
                      s[i].link != s[k].link || s[i].has_values != s[k].has_values ||
                      s[i].has_times != s[k].has_times);
        }
    }
    UNREF(a, merged);
}

TEST(merge, running_out_of_memory_anywhere_leaks_nothing)
{
    struct kiln_batch *a = random_batch(&(struct random_opts){.seed = 3});
    struct kiln_batch *b = random_batch(&(struct random_opts){.seed = 4});
    struct kiln_batch *both[] = {a, b}, *merged = NULL;
    int64_t live = kiln_mem_live();
    int r = -1;

    for (uint64_t n = 1; r < 0; n++) {
        struct kiln_err err = {0};

        kiln_mem_fail_at(n);
        r = kiln_merge(both, 2, &over_time, &merged, &err);
        kiln_mem_fail_at(0);
        if (r < 0) {
            CHECK_EQ(kiln_mem_live(), live);
            CHECK_EQ(err.code, r);
            CHECK(merged == NULL);
        }
        assert_true(n < 10000);
    }
    UNREF(a, b, merged);
}

TEST(merge, limits_are_errors)
{
    struct kiln_batch *a = random_batch(&(struct random_opts){.seed = 3, .samples = 200});
    struct kiln_merge_opts opts = {.limits = kiln_limits_default};
    struct kiln_batch *merged;
    struct kiln_err err = {0};
    int64_t live = kiln_mem_live();

    opts.limits.memory_bytes = 20000;
    CHECK_EQ(kiln_merge(&a, 1, &opts, &merged, &err), KILN_E_LIMIT);
    CHECK_EQ(err.code, KILN_E_LIMIT);
    opts.limits = kiln_limits_default;
    opts.limits.table_count = 16;
    CHECK_EQ(kiln_merge(&a, 1, &opts, &merged, NULL), KILN_E_LIMIT);
    opts.limits = kiln_limits_default;
    opts.limits.stack_depth = 1;
    CHECK_EQ(kiln_merge(&a, 1, &opts, &merged, NULL), KILN_E_LIMIT);
    CHECK_EQ(kiln_mem_live(), live);
    kiln_batch_unref(a);
}

TEST(compact, nothing_resolved_changes_and_no_orphan_stays)
{
    for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
        struct kiln_batch *a = random_batch(&(struct random_opts){.seed = seed, .orphans = true});
        struct kiln_batch *compact, *again;

        CHECK_OK(kiln_compact(a, &compact, NULL));
        CHECK_OK(kiln_compact(compact, &again, NULL));
        CHECK(kiln_batch_equal(a, compact));
        CHECK(kiln_batch_equal(compact, again));
        CHECK_EQ(compact->n_samples, a->n_samples);
        check_invariants(compact);
        check_no_orphans(compact);
        UNREF(a, compact, again);
    }
}

TEST(compact, running_out_of_memory_anywhere_leaks_nothing)
{
    struct kiln_batch *a = random_batch(&(struct random_opts){.seed = 8, .orphans = true});
    struct kiln_batch *compact = NULL;
    int64_t live = kiln_mem_live();
    int r = -1;

    for (uint64_t n = 1; r < 0; n++) {
        kiln_mem_fail_at(n);
        r = kiln_compact(a, &compact, NULL);
        kiln_mem_fail_at(0);
        CHECK(r == 0 || kiln_mem_live() == live);
        assert_true(n < 10000);
    }
    UNREF(a, compact);
}
