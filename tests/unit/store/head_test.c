/* SPDX-License-Identifier: Apache-2.0 */
#include "store/head.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/merge.h"
#include "drawn.h"
#include "random_batch.h"
#include "resolve.h"
#include "test.h"

#define NOW (UINT64_C(1700000000) * KILN_NS_PER_S)

static struct kiln_series_rule *rule;

static struct kiln_head *new_head(struct kiln_pool *pool)
{
    struct kiln_head_opts opts = {.seed = 42, .pool = pool, .memory_bytes = (size_t)256 << 20};
    struct kiln_head *head;

    if (!rule)
        CHECK_OK(kiln_series_rule_new(NULL, 0, &rule));
    opts.rule = rule;
    CHECK_OK(kiln_head_new(&opts, &head));
    return head;
}

static void free_head(struct kiln_head *head)
{
    kiln_head_unref(head);
    kiln_series_rule_free(rule);
    rule = NULL;
}

/* Applies a batch, which it takes over. */
static struct kiln_head_batch apply(struct kiln_head *head, struct kiln_batch *batch)
{
    static uint64_t number;
    struct kiln_head_batch in = {.batch = batch, .number = ++number, .received_ns = NOW};

    CHECK_OK(kiln_head_apply(head, &in));
    kiln_batch_unref(batch);
    return in;
}

static struct kiln_batch *drawn(const char *stacks, uint64_t time_ns, const char *resource)
{
    struct kiln_drawn p = {.stacks = stacks, .time_ns = time_ns, .resource = resource};

    return kiln_test_batch(&p, 1);
}

static struct kiln_batch *chosen(struct kiln_head *head, uint64_t start_ns, uint64_t end_ns)
{
    struct kiln_head_choice choice = {start_ns, end_ns, NULL, 0};
    struct kiln_batch *batch;

    CHECK_OK(kiln_head_select(head, &choice, NULL, &batch, NULL));
    return batch;
}

/* What the chosen profiles of the head draw. */
static const char *drawing(struct kiln_head *head, uint64_t start_ns, uint64_t end_ns)
{
    struct kiln_batch *batch = chosen(head, start_ns, end_ns);
    struct kiln_view *view;
    const char *text;

    if (!batch)
        return "";
    view = kiln_test_view(batch, NULL);
    text = kiln_test_view_text(view);
    kiln_view_free(view);
    return text;
}

TEST(head, gives_back_what_was_put_in)
{
    struct kiln_head *head = new_head(NULL);

    apply(head, drawn("main;parse 3\nmain;idle 1\n", NOW, "service.name=a"));
    apply(head, drawn("main;parse 4\n", NOW + 1, "service.name=a"));
    CHECK_EQ(kiln_head_info(head)->n_profiles, 2);
    CHECK_EQ(kiln_head_info(head)->n_series, 1);
    CHECK_TEXT(drawing(head, 0, 0), "main;idle 1\nmain;parse 7\n");
    CHECK_TEXT(drawing(head, NOW, NOW + 1), "main;idle 1\nmain;parse 3\n");
    CHECK_TEXT(drawing(head, NOW + 2, NOW + 3), "");
    free_head(head);
}

TEST(head, leaves_observations_outside_the_time_out)
{
    struct kiln_head *head = new_head(NULL);
    char text[128];

    snprintf(text, sizeof(text), "main 5@%llu 6@%llu\nidle 7@%llu\n", (unsigned long long)NOW + 10,
             (unsigned long long)NOW + 20, (unsigned long long)NOW + 30);
    apply(head, drawn(text, NOW, "service.name=a"));
    CHECK_TEXT(drawing(head, NOW + 20, NOW + 31), "idle 7\nmain 6\n");
    CHECK_TEXT(drawing(head, NOW + 20, NOW + 30), "main 6\n");
    CHECK(chosen(head, NOW + 11, NOW + 20) == NULL);
    free_head(head);
}

TEST(head, the_same_profile_again_is_counted_and_not_kept)
{
    struct kiln_head *head = new_head(NULL);
    struct kiln_head_batch in;

    apply(head, drawn("a;b 3\nc 1\n", NOW, "service.name=a,process.pid=1"));
    in = apply(head, drawn("a;b 3\nc 1\n", NOW, "service.name=a,process.pid=1"));
    CHECK_EQ(in.n_duplicates, 1);
    CHECK_EQ(in.n_profiles, 0);
    in = apply(head, drawn("c 1\na;b 3\n", NOW, "service.name=a,process.pid=1"));
    CHECK_EQ(in.n_duplicates, 1); /* the order of samples says nothing */
    CHECK_TEXT(drawing(head, 0, 0), "a;b 3\nc 1\n");
    free_head(head);
}

static bool everything_is_known(void *context, struct kiln_str key, uint64_t time_ns,
                                struct kiln_content_hash hash)
{
    (void)context;
    (void)key;
    (void)time_ns;
    (void)hash;
    return true;
}

/* What a start would have to replay makes a cut: of a head with nothing in it, the log needs none.
 */
TEST(head, duplicates_count_as_work_from_the_first_profile_on)
{
    struct kiln_head *head = new_head(NULL);
    struct kiln_batch *batch = drawn("a;b 3\n", NOW, "service.name=shop");
    struct kiln_head_batch in = {
        .batch = batch, .number = 1, .received_ns = NOW, .is_known = everything_is_known};
    uint64_t one;

    CHECK_OK(kiln_head_apply(head, &in));
    CHECK_EQ(kiln_head_info(head)->raw_bytes, 0);
    apply(head, kiln_batch_ref(batch));
    one = kiln_head_info(head)->raw_bytes;
    CHECK(one > 0);
    CHECK_EQ(apply(head, kiln_batch_ref(batch)).n_duplicates, 1);
    CHECK_EQ(kiln_head_info(head)->raw_bytes, 2 * one);
    kiln_batch_unref(batch);
    free_head(head);
}

TEST(head, whatever_differs_is_kept)
{
    static const struct {
        const char *stacks, *resource;
        uint64_t time_ns;
    } others[] = {
        {"a;b 4\n", "service.name=a,process.pid=1", NOW},
        {"a;b 3\n", "service.name=a,process.pid=2", NOW},
        {"a;b 3\n", "service.name=a,process.pid=1", NOW + 1},
        {"a;c 3\n", "service.name=a,process.pid=1", NOW},
        {"a;b 3 thread=x\n", "service.name=a,process.pid=1", NOW},
        {"a;b@x.c:1 3\n", "service.name=a,process.pid=1", NOW},
        {"a;b 3\na;b 3\n", "service.name=a,process.pid=1", NOW},
        {"a;b @1\n", "service.name=a,process.pid=1", NOW},
        {"b;a 3\n", "service.name=a,process.pid=1", NOW},
    };
    struct kiln_head *head = new_head(NULL);

    apply(head, drawn("a;b 3\n", NOW, "service.name=a,process.pid=1"));
    for (size_t i = 0; i < KILN_ARRAY_LEN(others); i++) {
        struct kiln_head_batch in =
            apply(head, drawn(others[i].stacks, others[i].time_ns, others[i].resource));

        CHECK_EQ(in.n_duplicates, 0);
        CHECK_EQ(in.n_profiles, 1);
    }
    free_head(head);
}

TEST(head, profiles_without_their_own_time_get_ours_and_are_never_the_same)
{
    struct kiln_head *head = new_head(NULL);
    struct kiln_head_batch in;
    struct kiln_batch *all;

    for (int i = 0; i < 2; i++) {
        in = apply(head, drawn("a 3\n", 0, "service.name=a"));
        CHECK_EQ(in.n_time_set, 1);
        in = apply(head, drawn("a 3\n", NOW + 601 * KILN_NS_PER_S, "service.name=a"));
        CHECK_EQ(in.n_time_set, 1);
    }
    in = apply(head, drawn("a 3\n", NOW + 600 * KILN_NS_PER_S, "service.name=a"));
    CHECK_EQ(in.n_time_set, 0);
    all = chosen(head, NOW, NOW + 1);
    CHECK_EQ(all->n_profiles, 4);
    kiln_batch_unref(all);
    free_head(head);
}

static void check_range(struct kiln_head *head, uint64_t min_ns, uint64_t max_ns)
{
    CHECK_EQ(kiln_head_info(head)->min_ns, min_ns);
    CHECK_EQ(kiln_head_info(head)->max_ns, max_ns);
    free_head(head);
}

TEST(head, timestamps_are_clamped_to_the_range_of_their_profile)
{
    struct kiln_drawn p = {.stacks = "a 1@100 2@1700000000000000007 4@9223372036854775807\nb @3\n",
                           .time_ns = NOW,
                           .duration_ns = 10,
                           .resource = "service.name=a"};
    struct kiln_head *head = new_head(NULL);
    struct kiln_head_batch in = apply(head, kiln_test_batch(&p, 1));

    CHECK_EQ(in.n_clamped, 3);
    CHECK_TEXT(drawing(head, NOW, NOW + 1), "a 1\nb 1\n");
    CHECK_TEXT(drawing(head, NOW + 7, NOW + 8), "a 2\n");
    CHECK_TEXT(drawing(head, NOW + 10, NOW + 11), "a 4\n");
    in = apply(head, kiln_test_batch(&p, 1)); /* the same again is still recognised */
    CHECK_EQ(in.n_duplicates, 1);
    check_range(head, NOW, NOW + 10);
}

TEST(head, without_a_duration_timestamps_end_ten_minutes_ahead)
{
    uint64_t latest = NOW + 600 * KILN_NS_PER_S;
    struct kiln_drawn p = {
        .stacks = "a @9223372036854775807\n", .time_ns = NOW - 5, .resource = "service.name=a"};
    struct kiln_head *head = new_head(NULL);

    CHECK_EQ(apply(head, kiln_test_batch(&p, 1)).n_clamped, 1);
    p.duration_ns = UINT64_MAX; /* no such profile was measured */
    CHECK_EQ(apply(head, kiln_test_batch(&p, 1)).n_clamped, 1);
    check_range(head, NOW - 5, latest);
}

TEST(head, timestamps_move_with_a_profile_that_gets_our_time)
{
    struct kiln_drawn p = {.stacks = "a 1@4000000000000000003\n",
                           .time_ns = UINT64_C(4000000000000000000),
                           .duration_ns = 10,
                           .resource = "service.name=a"};
    struct kiln_head *head = new_head(NULL);
    struct kiln_head_batch in = apply(head, kiln_test_batch(&p, 1));

    CHECK_EQ(in.n_time_set, 1);
    CHECK_EQ(in.n_clamped, 0);
    CHECK_TEXT(drawing(head, NOW + 3, NOW + 4), "a 1\n");
    p.time_ns = 0; /* its timestamps are all that it has */
    p.stacks = "a 1@100\n";
    CHECK_EQ(apply(head, kiln_test_batch(&p, 1)).n_clamped, 1);
    check_range(head, NOW, NOW + 3);
}

TEST(head, profiles_that_are_too_old_are_left_out)
{
    struct kiln_head *head = new_head(NULL);
    struct kiln_batch *batch = drawn("a 3\n", NOW - 5, "service.name=a");
    struct kiln_head_batch in = {
        .batch = batch, .number = 1, .received_ns = NOW, .oldest_ns = NOW - 4};

    CHECK_OK(kiln_head_apply(head, &in));
    CHECK_EQ(in.n_too_old, 1);
    CHECK_EQ(kiln_head_info(head)->n_profiles, 0);
    in.oldest_ns = NOW - 5;
    CHECK_OK(kiln_head_apply(head, &in));
    CHECK_EQ(in.n_profiles, 1);
    kiln_batch_unref(batch);
    free_head(head);
}

static bool at_most_two(void *context, struct kiln_str key)
{
    uint32_t *n = context;

    (void)key;
    return (*n)++ < 2;
}

TEST(head, past_the_limit_one_series_of_the_service_takes_the_rest)
{
    struct kiln_head *head = new_head(NULL);
    uint32_t opened = 0;

    for (int i = 0; i < 5; i++) {
        char resource[64];
        struct kiln_head_batch in = {
            .number = 1, .received_ns = NOW, .may_open = at_most_two, .context = &opened};

        snprintf(resource, sizeof(resource), "service.name=a,host.name=h%d", i);
        in.batch = drawn("a 3\n", NOW, resource);
        CHECK_OK(kiln_head_apply(head, &in));
        CHECK_EQ(in.n_overflow, i >= 2);
        CHECK_EQ(in.n_profiles, 1);
        kiln_batch_unref((struct kiln_batch *)(uintptr_t)in.batch);
    }
    CHECK_EQ(kiln_head_info(head)->n_series, 3);
    CHECK_TEXT(drawing(head, 0, 0), "a 15\n");
    free_head(head);
}

/* A sample at `address` in a mapping of a file that is loaded at `start`. */
static struct kiln_batch *loaded_at(uint64_t start, uint64_t address, uint64_t time_ns)
{
    struct kiln_mapping m = {.start = start, .limit = start + 4096, .offset = 512};
    struct kiln_location l = {.address = address};
    struct kiln_profile p = {.time_ns = time_ns};
    struct kiln_batch *batch;
    struct kiln_builder *b;
    uint32_t location;

    CHECK_OK(kiln_builder_new(NULL, &b));
    m.filename = kiln_builder_string(b, KILN_STR("/bin/x"));
    l.mapping = kiln_builder_mapping(b, &m);
    location = kiln_builder_location(b, &l, NULL, 0);
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    kiln_builder_add_profile(b, &p);
    kiln_builder_add_value(b, 0, kiln_builder_stack(b, &location, 1), 0, 7);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    return batch;
}

TEST(head, the_same_code_loaded_elsewhere_is_the_same_stack)
{
    struct kiln_head *head = new_head(NULL);
    const struct kiln_batch *batch = kiln_rows_batch(kiln_head_rows(head));

    apply(head, loaded_at(0x10000, 0x10010, NOW));
    apply(head, loaded_at(0x70000, 0x70010, NOW));
    CHECK_EQ(kiln_head_info(head)->n_profiles, 1);
    apply(head, loaded_at(0x70000, 0x70010, NOW + 1));
    CHECK_EQ(batch->dict.n_stacks, 2);
    CHECK_EQ(batch->dict.locations[1].address, 0x10 + 512);
    CHECK_EQ(batch->dict.mappings[1].start, 512);
    CHECK_EQ(batch->dict.mappings[1].limit, 512 + 4096);
    apply(head, loaded_at(0x70000, 0x10, NOW + 2)); /* outside: stays where it is */
    CHECK_EQ(batch->dict.locations[2].address, 0x10);
    free_head(head);
}

TEST(head, says_the_same_as_merging_all_that_came)
{
    struct kiln_merge_opts opts = {.keep_profiles_apart = true};

    for (uint64_t seed = 1; seed < 60; seed++) {
        struct kiln_head *head = new_head(NULL);
        struct kiln_batch *batches[4], *merged, *all;
        char *want, *got;

        for (uint32_t i = 0; i < 4; i++) {
            batches[i] = random_batch(
                &(struct random_opts){.seed = seed * 4 + i, .plain_profiles = seed % 2 == 0});
            for (uint32_t p = 0; p < batches[i]->n_profiles; p++)
                batches[i]->profiles[p].id[0] = (uint8_t)(1 + i), /* none like another */
                    batches[i]->profiles[p].id[1] = (uint8_t)p;
            for (uint32_t k = 0; k < batches[i]->dict.n_mappings; k++)
                batches[i]->dict.mappings[k].offset = batches[i]->dict.mappings[k].start;
            apply(head, kiln_batch_ref(batches[i]));
        }
        CHECK_OK(kiln_merge(batches, 4, &opts, &merged, NULL));
        all = chosen(head, 0, 0);
        check_invariants(all);
        check_no_orphans(all);
        want = resolve_batch(merged, 0);
        got = resolve_batch(all, 0);
        CHECK_TEXT(got, want);
        kiln_free(want);
        kiln_free(got);
        for (uint32_t i = 0; i < 4; i++)
            kiln_batch_unref(batches[i]);
        kiln_batch_unref(merged);
        kiln_batch_unref(all);
        free_head(head);
    }
}

TEST(head, charges_its_memory_and_gives_it_back)
{
    struct kiln_pool pool;
    struct kiln_head *head;

    kiln_pool_init(&pool, "test", (size_t)1 << 30, NULL);
    head = new_head(&pool);
    apply(head, drawn("a 3\n", NOW, "service.name=a"));
    CHECK(pool.used >= kiln_head_bytes(head));
    CHECK(kiln_head_is_charged(head));
    free_head(head);
    CHECK_EQ(pool.used, 0);
}

TEST(head, a_failure_leaves_what_was_there_and_nothing_of_the_batch)
{
    int64_t live = kiln_mem_live();

    for (uint64_t n = 1;; n++) {
        struct kiln_head *head = new_head(NULL);
        struct kiln_batch *batch = drawn("a;b;c 1\nd;e;f 2 t=1\n", NOW + 1, "service.name=b");
        struct kiln_head_batch in = {.batch = batch, .number = 2, .received_ns = NOW};
        int r;

        apply(head, drawn("x 9\n", NOW, "service.name=a"));
        kiln_mem_fail_at(n);
        r = kiln_head_apply(head, &in);
        if (!kiln_mem_failed()) {
            kiln_mem_fail_at(0);
            CHECK_OK(r);
            kiln_batch_unref(batch);
            free_head(head);
            CHECK(n > 4);
            break;
        }
        kiln_mem_fail_at(0);
        CHECK(r < 0);
        CHECK(kiln_head_is_full(head));
        CHECK_TEXT(drawing(head, 0, 0), "x 9\n");
        kiln_batch_unref(batch);
        free_head(head);
    }
    CHECK_EQ(kiln_mem_live(), live);
}
