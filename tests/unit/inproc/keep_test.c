/* SPDX-License-Identifier: Apache-2.0 */
/* What the keeper makes of records: counts, differences of counts, windows. */
#include <kiln.h>

#include "base/mem.h"
#include "core/schema.h"
#include "core/type.h"
#include "inproc/keep/keep.h"
#include "inproc/start.h"
#include "inproc/thread/line.h"
#include "inproc/thread/stacks.h"
#include "inproc/thread/thread.h"
#include "test.h"

static void begin(void)
{
    CHECK_OK(kiln_in_threads_init(1));
    kiln_in_settings.samples_max = 100;
    kiln_in_settings.alloc_bytes = 512 << 10;
    kiln_in_settings.cpu_hz = 100;
    kiln_in_settings.attributes[0] = (struct kiln_attribute){"service.name", "shop"};
    kiln_in_settings.n_attributes = 1;
    kiln_in_on = KILN_IN_ON;
}

/* One function of this test, so that there is a mapping to find. */
static uint32_t stack_of(uint64_t offset)
{
    uint64_t pcs[] = {(uint64_t)(uintptr_t)begin + offset, (uint64_t)(uintptr_t)begin + 2};

    return kiln_in_stack_id(pcs, 2);
}

static void happen(enum kiln_in_kind kind, uint32_t stack, double count, double value)
{
    struct kiln_in_thread *thread = kiln_in_enter();
    struct kiln_in_record record;

    CHECK(thread);
    kiln_in_record_begin(&record, kind);
    record.stack = stack;
    record.count = count;
    record.value = value;
    CHECK_OK(kiln_in_ring_put(thread, &record));
    kiln_in_leave(thread);
}

/* The sum of a profile's values; -1: there is no such. */
static int64_t sum(const struct kiln_batch *batch, const char *type)
{
    int64_t total = 0;

    for (uint32_t i = 0; i < batch->n_profiles; i++) {
        const struct kiln_profile *p = &batch->profiles[i];

        if (!kiln_str_eq(kiln_batch_str(batch, p->sample_type.type), kiln_str_of(type)))
            continue;
        for (uint32_t s = 0; s < p->n_samples; s++)
            total += kiln_sample_total(batch, &batch->samples[p->first_sample + s]);
        return total;
    }
    return -1;
}

static struct kiln_batch *window(void)
{
    struct kiln_batch *batch;

    CHECK_OK(kiln_in_keep_window(false, &batch, NULL));
    return batch;
}

TEST(keep, the_window_has_what_was_since_the_last)
{
    struct kiln_batch *batch;

    begin();
    kiln_batch_unref(window());
    happen(KILN_IN_ALLOC, stack_of(0), 2, 200);
    happen(KILN_IN_ALLOC, stack_of(0), 1, 100);
    happen(KILN_IN_CPU, stack_of(4), 1, 10000000);
    batch = window();
    CHECK_EQ(sum(batch, "alloc_objects"), 3);
    CHECK_EQ(sum(batch, "alloc_space"), 300);
    CHECK_EQ(sum(batch, "cpu"), 10000000);
    CHECK_EQ(sum(batch, "samples"), -1);
    CHECK_EQ(sum(batch, "delay"), -1);
    CHECK_EQ(batch->n_samples, 3);
    kiln_batch_unref(batch);
    batch = window();
    CHECK_EQ(batch->n_samples, 0);
    kiln_batch_unref(batch);
}

TEST(keep, resource_and_scope_say_by_which_conventions_they_are_named)
{
    struct kiln_batch *batch;

    begin();
    kiln_batch_unref(window());
    happen(KILN_IN_ALLOC, stack_of(0), 1, 1);
    happen(KILN_IN_BLOCK, stack_of(0), 1, 10);
    batch = window();
    CHECK_STR(kiln_batch_str(batch, batch->resources[0].schema_url), KILN_SCHEMA_URL);
    CHECK_EQ(batch->n_scopes, 2);
    for (uint32_t i = 0; i < batch->n_scopes; i++) {
        CHECK_STR(kiln_batch_str(batch, batch->scopes[i].name), "kiln");
        CHECK_STR(kiln_batch_str(batch, batch->scopes[i].version), KILN_VERSION);
        CHECK_STR(kiln_batch_str(batch, batch->scopes[i].schema_url), KILN_SCHEMA_URL);
    }
    kiln_batch_unref(batch);
}

TEST(keep, samples_have_the_files_own_addresses)
{
    struct kiln_batch *batch;
    const struct kiln_location *leaf;
    const struct kiln_mapping *mapping;

    begin();
    kiln_batch_unref(window());
    happen(KILN_IN_ALLOC, stack_of(0), 1, 1);
    batch = window();
    leaf = &batch->dict.locations[batch->dict.frames[batch->dict.stacks[1].first]];
    mapping = &batch->dict.mappings[leaf->mapping];
    CHECK(leaf->mapping);
    CHECK(leaf->address >= mapping->start && leaf->address < mapping->limit);
    CHECK_EQ(leaf->address & 4095, (uint64_t)(uintptr_t)begin & 4095);
    CHECK(kiln_set_find(batch, mapping->attrs, KILN_STR("process.executable.build_id.gnu")) ||
          kiln_set_find(batch, mapping->attrs, KILN_STR("process.executable.build_id.htlhash")));
    CHECK_STR(kiln_set_text(batch, batch->resources[0].attrs, KILN_STR("service.name")), "shop");
    kiln_batch_unref(batch);
}

TEST(keep, fractions_are_not_lost_over_time)
{
    int64_t total = 0;

    begin();
    kiln_batch_unref(window());
    for (unsigned i = 0; i < 10; i++) {
        struct kiln_batch *batch;

        happen(KILN_IN_MUTEX, stack_of(0), 0.25, 1000.4);
        happen(KILN_IN_MUTEX, stack_of(8), 0.25, 1000.4);
        batch = window();
        total += sum(batch, "delay");
        kiln_batch_unref(batch);
    }
    CHECK(total >= 20007 && total <= 20009);
}

TEST(keep, a_profile_is_the_difference_of_two_snapshots)
{
    struct kiln_in_counts *from, *to;
    struct kiln_batch *batch;

    begin();
    happen(KILN_IN_CPU, stack_of(0), 1, 10);
    CHECK_OK(kiln_in_keep_counts(&from));
    happen(KILN_IN_CPU, stack_of(0), 2, 20);
    happen(KILN_IN_CPU, stack_of(16), 4, 40);
    happen(KILN_IN_ALLOC, stack_of(16), 4, 40);
    CHECK_OK(kiln_in_keep_counts(&to));
    CHECK_OK(kiln_in_keep_profile(from, to, KILN_IN_TYPE(CPU), &batch, NULL));
    CHECK_EQ(sum(batch, "samples"), 6);
    CHECK_EQ(sum(batch, "cpu"), 60);
    CHECK_EQ(sum(batch, "alloc_space"), -1);
    kiln_batch_unref(batch);
    CHECK_OK(kiln_in_keep_profile(NULL, to, KILN_IN_TYPE(CPU), &batch, NULL));
    CHECK(sum(batch, "cpu") >= 70);
    kiln_batch_unref(batch);
    CHECK_OK(kiln_in_keep_profile(from, from, KILN_IN_TYPE(CPU), &batch, NULL));
    CHECK_EQ(sum(batch, "cpu"), 0);
    CHECK_EQ(batch->n_samples, 0);
    kiln_batch_unref(batch);
    kiln_in_counts_free(from);
    kiln_in_counts_free(to);
}

TEST(keep, more_than_may_be_is_counted_as_lost)
{
    uint64_t before = kiln_in_lost_total(KILN_IN_LOST_WINDOW);
    struct kiln_batch *batch;

    begin();
    kiln_batch_unref(window());
    kiln_in_settings.samples_max = 10;
    for (unsigned i = 0; i < 15; i++)
        happen(KILN_IN_WAIT, stack_of(i), 1, 100);
    batch = window();
    CHECK_EQ(sum(batch, "off_cpu"), 1000);
    CHECK_EQ(kiln_in_lost_total(KILN_IN_LOST_WINDOW) - before, 5);
    kiln_batch_unref(batch);
}

TEST(keep, links_and_roles_keep_samples_apart)
{
    static const uint8_t trace[16] = "trace", span_id[8] = "span";
    struct kiln_span span;
    struct kiln_batch *batch;
    unsigned linked = 0;

    begin();
    kiln_batch_unref(window());
    happen(KILN_IN_MUTEX, stack_of(0), 1, 10);
    happen(KILN_IN_HOLDER, stack_of(0), 1, 10);
    kiln_span_enter(&span, trace, span_id, 0);
    happen(KILN_IN_MUTEX, stack_of(0), 1, 10);
    kiln_span_leave(&span);
    batch = window();
    CHECK_EQ(batch->profiles[0].n_samples, 3);
    for (uint32_t i = 0; i < 3; i++)
        linked += batch->samples[batch->profiles[0].first_sample + i].link != 0;
    CHECK_EQ(linked, 1);
    kiln_batch_unref(batch);
}

TEST(keep, blocks_are_a_family_of_their_own)
{
    struct kiln_batch *batch;
    struct kiln_type *types;

    begin();
    kiln_batch_unref(window());
    happen(KILN_IN_BLOCK, stack_of(0), 1, 10);
    batch = window();
    CHECK_OK(kiln_types_of_batch(batch, false, &types));
    CHECK_STR(types[0].name, "block");
    kiln_free(types);
    kiln_batch_unref(batch);
}
