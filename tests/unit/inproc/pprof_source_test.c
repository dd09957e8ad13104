/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the library, as profiles of /debug/pprof. */
#include <inttypes.h>
#include <kiln.h>

#include "inproc/pprof/source.h"
#include "inproc/start.h"
#include "inproc/thread/stacks.h"
#include "inproc/thread/thread.h"
#include "test.h"

static const struct kiln_in_source *const own = &kiln_in_source_own;

/* Has a name of its own in this program. */
__attribute__((noinline)) static void at_this_place(void)
{
    CHECK_OK(kiln_in_threads_init(1));
    kiln_in_settings.samples_max = 100;
    kiln_in_settings.cpu_hz = 100;
    kiln_in_settings.profiles = KILN_PROFILE_LOCK;
    kiln_in_on = KILN_IN_ON;
}

static uint64_t place(void)
{
    return (uint64_t)(uintptr_t)at_this_place + 1;
}

static void happen(enum kiln_in_kind kind, double count, double value)
{
    uint64_t pcs[] = {place()};
    struct kiln_in_thread *thread = kiln_in_enter();
    struct kiln_in_record record;

    CHECK(thread);
    kiln_in_record_begin(&record, kind);
    record.stack = kiln_in_stack_id(pcs, 1);
    record.count = count;
    record.value = value;
    CHECK_OK(kiln_in_ring_put(thread, &record));
    kiln_in_leave(thread);
}

static struct kiln_in_mark *mark(enum kiln_in_profile which)
{
    struct kiln_in_mark *fresh = NULL;

    kiln_in_source_forget(); /* who comes later has a reading of his own */
    CHECK_OK(own->mark(which, &fresh, NULL));
    return fresh;
}

static struct kiln_batch *read_now(enum kiln_in_profile which, const struct kiln_in_mark *from)
{
    struct kiln_batch *batch = NULL;

    kiln_in_source_forget();
    CHECK_OK(own->read(which, from, &batch, NULL));
    return batch;
}

/* The sum of the last column, which is shown first. */
static int64_t sum(enum kiln_in_profile which, const struct kiln_in_mark *from)
{
    struct kiln_batch *batch = read_now(which, from);
    const struct kiln_profile *p = &batch->profiles[batch->n_profiles - 1];
    int64_t total = 0;

    for (uint32_t i = 0; i < p->n_samples; i++)
        total += kiln_sample_total(batch, &batch->samples[p->first_sample + i]);
    kiln_batch_unref(batch);
    return total;
}

TEST(pprof_source, windows_overlap_and_each_has_its_own)
{
    struct kiln_in_mark *first, *second;
    int64_t before;

    at_this_place();
    happen(KILN_IN_BLOCK, 1, 100);
    before = sum(KILN_IN_PROFILE_BLOCK, NULL);
    first = mark(KILN_IN_PROFILE_BLOCK);
    happen(KILN_IN_BLOCK, 1, 30);
    second = mark(KILN_IN_PROFILE_BLOCK);
    happen(KILN_IN_BLOCK, 1, 7);
    CHECK_EQ(sum(KILN_IN_PROFILE_BLOCK, first), 37);
    CHECK_EQ(sum(KILN_IN_PROFILE_BLOCK, second), 7);
    CHECK_EQ(sum(KILN_IN_PROFILE_BLOCK, NULL), before + 37);
    own->drop(first);
    CHECK_EQ(sum(KILN_IN_PROFILE_BLOCK, second), 7);
    own->drop(second);
    kiln_in_source_forget();
}

TEST(pprof_source, who_waited_and_who_held_are_profiles_of_their_own)
{
    struct kiln_in_mark *from;

    at_this_place();
    from = mark(KILN_IN_PROFILE_MUTEX);
    happen(KILN_IN_MUTEX, 2, 20);
    happen(KILN_IN_HOLDER, 3, 30);
    CHECK_EQ(sum(KILN_IN_PROFILE_MUTEX, from), 20);
    CHECK_EQ(sum(KILN_IN_PROFILE_HOLDERS, from), 30);
    own->drop(from);
    kiln_in_source_forget();
}

TEST(pprof_source, frames_have_names_and_addresses_in_memory)
{
    uint64_t address = place();
    struct kiln_in_mark *from;
    struct kiln_batch *batch;
    const struct kiln_dict *d;
    const struct kiln_location *l;
    struct kiln_str file;

    at_this_place();
    from = mark(KILN_IN_PROFILE_BLOCK);
    happen(KILN_IN_BLOCK, 1, 100);
    batch = read_now(KILN_IN_PROFILE_BLOCK, from);
    d = &batch->dict;
    CHECK_EQ(batch->profiles[0].n_samples, 1);
    l = &d->locations[d->frames[d->stacks[batch->samples[0].stack].first]];
    CHECK_EQ(l->address, address);
    CHECK_EQ(l->mapping, 1); /* the program is the first */
    CHECK(address >= d->mappings[1].start && address < d->mappings[1].limit);
    file = d->strings[d->mappings[1].filename];
    CHECK(kiln_str_ends(file, KILN_STR("pprof_source")));
    CHECK(l->n == 1);
    CHECK_STR(d->strings[d->functions[d->lines[l->first].function].name], "at_this_place");
    kiln_batch_unref(batch);
    own->drop(from);
    kiln_in_source_forget();
}

TEST(pprof_source, addresses_are_named_one_by_one)
{
    uint64_t addresses[] = {place(), 16, place() + 1};
    char wanted[128];
    struct kiln_buf out;

    at_this_place();
    kiln_buf_init(&out, 4096);
    CHECK_OK(own->name(addresses, KILN_ARRAY_LEN(addresses), &out));
    snprintf(wanted, sizeof(wanted), "0x%" PRIx64 " at_this_place\n0x%" PRIx64 " at_this_place\n",
             addresses[0], addresses[2]);
    CHECK_STR(kiln_buf_str(&out), wanted);
    kiln_buf_done(&out);
}

TEST(pprof_source, what_is_off_says_so)
{
    struct kiln_batch *batch;
    const struct kiln_attr *comment;

    at_this_place();
    batch = read_now(KILN_IN_PROFILE_LOOP, NULL);
    comment = kiln_set_find(batch, batch->profiles[0].attrs, KILN_STR("pprof.profile.comment"));
    CHECK(comment && comment->value.n >= 1);
    CHECK(kiln_str_contains(
        kiln_batch_str(batch, (uint32_t)batch->dict.nested[comment->value.first].value.str),
        KILN_STR("KILN_PROFILES lacks loop")));
    kiln_batch_unref(batch);
    kiln_in_source_forget();
}
