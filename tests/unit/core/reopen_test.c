/* SPDX-License-Identifier: Apache-2.0 */
#include "core/reopen.h"

#include "base/buf.h"
#include "base/mem.h"
#include "codec/otlp.h"
#include "core/draft.h"
#include "drawn.h"
#include "random_batch.h"
#include "resolve.h"
#include "test.h"

static struct kiln_batch *two_hosts(void)
{
    struct kiln_drawn profiles[] = {
        {.resource = "env=dev,zone=dev", .stacks = "main 1 env=dev,thread=1\n"},
        {.resource = "env=dev,zone=x", .stacks = "main 2 env=dev\n"},
    };

    return kiln_test_batch(profiles, 2);
}

static int set_env(struct kiln_batch **batch, const char *to)
{
    struct kiln_draft draft = {0};
    struct kiln_builder *b;
    int r = kiln_reopen(*batch, &b, NULL);

    *batch = NULL;
    if (r < 0)
        return r;
    kiln_draft_open(&draft, b, kiln_builder_resource(b, 0)->attrs);
    kiln_draft_put(&draft, KILN_STR("env"),
                   kiln_value_string(kiln_builder_string(b, kiln_str_of(to))));
    kiln_reopened_resource(b, 0, kiln_draft_close(&draft));
    kiln_draft_done(&draft);
    return kiln_builder_finish(b, batch, NULL);
}

static struct kiln_str env_of(const struct kiln_batch *batch, uint32_t set)
{
    return kiln_set_text(batch, set, KILN_STR("env"));
}

TEST(reopen, a_change_is_nobody_elses)
{
    struct kiln_batch *batch = two_hosts();

    CHECK_OK(set_env(&batch, "prod"));
    check_invariants(batch);
    CHECK_STR(env_of(batch, batch->resources[0].attrs), "prod");
    CHECK_STR(kiln_set_text(batch, batch->resources[0].attrs, KILN_STR("zone")), "dev");
    CHECK_STR(env_of(batch, batch->resources[1].attrs), "dev");
    CHECK_STR(env_of(batch, batch->samples[0].attrs), "dev");
    kiln_batch_unref(batch);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(reopen, a_batch_that_others_hold_is_copied)
{
    struct kiln_batch *batch = two_hosts(), *other = kiln_batch_ref(batch);

    CHECK_OK(set_env(&batch, "prod"));
    CHECK(batch != other);
    CHECK_STR(env_of(batch, batch->resources[0].attrs), "prod");
    CHECK_STR(env_of(other, other->resources[0].attrs), "dev");
    kiln_batch_unref(batch);
    kiln_batch_unref(other);
}

TEST(reopen, a_batch_that_has_nothing_to_add_stays_as_it_is)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct random_opts opts = {.seed = seed, .orphans = seed & 1};
        struct kiln_batch *batch = random_batch(&opts), *same = random_batch(&opts);
        struct kiln_builder *b;

        CHECK_OK(kiln_reopen(batch, &b, NULL));
        CHECK_OK(kiln_builder_finish(b, &batch, NULL));
        check_invariants(batch);
        CHECK(kiln_batch_equal(batch, same));
        kiln_batch_unref(batch);
        kiln_batch_unref(same);
    }
}

/* Everything that is there is found again, and not added twice. */
TEST(reopen, entries_are_found_where_they_are)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct kiln_batch *batch = random_batch(&(struct random_opts){.seed = seed});
        struct kiln_dict before = batch->dict;
        const struct kiln_dict *d = &batch->dict;
        struct kiln_builder *b;

        CHECK_OK(kiln_reopen(batch, &b, NULL));
        for (uint32_t i = 1; i < before.n_strings; i++)
            CHECK_EQ(kiln_builder_string(b, d->strings[i]), i);
        for (uint32_t i = 1; i < before.n_attrs; i++) {
            struct kiln_attr attr = d->attrs[i];

            CHECK_EQ(kiln_builder_attr(b, attr.key, attr.value, attr.unit), i);
            if (attr.value.kind == KILN_VALUE_ARRAY && attr.value.n)
                CHECK_EQ(kiln_builder_nested(b, KILN_VALUE_ARRAY, d->nested + attr.value.first,
                                             attr.value.n)
                             .first,
                         attr.value.first);
        }
        for (uint32_t i = 1; i < before.n_sets; i++)
            CHECK_EQ(kiln_builder_set(b, d->members + d->sets[i].first, d->sets[i].n, NULL), i);
        for (uint32_t i = 1; i < before.n_mappings; i++)
            CHECK_EQ(kiln_builder_mapping(b, &d->mappings[i]), i);
        for (uint32_t i = 1; i < before.n_links; i++)
            CHECK_EQ(kiln_builder_link(b, &d->links[i]), i);
        CHECK_OK(kiln_builder_finish(b, &batch, NULL));
        kiln_batch_unref(batch);
    }
}

/* What nothing refers to any more is not sent. */
/* Sets that all samples have are asked about once, however many profiles there are. */
static int count_asked(void *context, struct kiln_builder *b, uint32_t *attrs)
{
    struct kiln_draft draft = {0};

    ++*(uint32_t *)context;
    kiln_draft_open(&draft, b, *attrs);
    kiln_draft_put(&draft, KILN_STR("env"),
                   kiln_value_string(kiln_builder_string(b, KILN_STR("prod"))));
    *attrs = kiln_draft_close(&draft);
    kiln_draft_done(&draft);
    return 0;
}

TEST(reopen, a_set_is_asked_about_once)
{
    struct kiln_drawn profiles[] = {
        {.resource = "host=a", .stacks = "main 1 env=dev\nread 2 env=dev,thread=1\n"},
        {.resource = "host=b", .stacks = "main 3 env=dev\n"},
        {.resource = "host=c", .stacks = "main 4 env=dev,thread=1\n"},
    };
    struct kiln_batch *batch = kiln_test_batch(profiles, KILN_ARRAY_LEN(profiles));
    struct kiln_builder *b;
    uint32_t asked = 0;

    CHECK_OK(kiln_reopen(batch, &b, NULL));
    CHECK_OK(kiln_reopened_samples(b, count_asked, &asked));
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    CHECK_EQ(asked, 2);
    check_invariants(batch);
    CHECK_EQ(batch->n_samples, 4);
    for (uint32_t i = 0; i < batch->n_samples; i++)
        CHECK_STR(env_of(batch, batch->samples[i].attrs), "prod");
    kiln_batch_unref(batch);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(reopen, what_was_taken_out_is_not_written)
{
    for (int refs = 0; refs < 2; refs++) {
        struct kiln_otlp_encode_opts opts = {.string_refs = refs};
        struct kiln_batch *batch = kiln_test_batch(
            &(struct kiln_drawn){.resource = "env=secret-text", .stacks = "main 1\n"}, 1);
        struct kiln_buf out;

        CHECK_OK(set_env(&batch, "prod"));
        kiln_buf_init(&out, 1 << 20);
        CHECK_OK(kiln_otlp_encode(batch, &opts, &out, NULL));
        CHECK(kiln_str_contains(kiln_buf_str(&out), KILN_STR("prod")));
        CHECK(!kiln_str_contains(kiln_buf_str(&out), KILN_STR("secret-text")));
        kiln_buf_done(&out);
        kiln_batch_unref(batch);
    }
}

TEST(reopen, without_memory_is_an_error)
{
    struct kiln_batch *held = two_hosts();
    int64_t live = kiln_mem_live();
    uint64_t n = 0;
    bool failed;

    do {
        struct kiln_batch *batch = kiln_batch_ref(held);
        int r;

        kiln_mem_fail_at(++n);
        r = set_env(&batch, "prod");
        failed = kiln_mem_failed();
        kiln_mem_fail_at(0);
        CHECK(r == 0 || failed);
        kiln_batch_unref(batch);
        CHECK_EQ(kiln_mem_live(), live);
    } while (failed);
    CHECK(n > 10);
    kiln_batch_unref(held);
}
