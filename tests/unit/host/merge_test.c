/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/mem.h"
#include "host/merge.h"
#include "test.h"

enum { MANY = 4096 };

struct plain {
    uint64_t time, number;
    bool is_sample;
};

/* In order of time; of the same time events first, then as they came. */
static int by_time(const void *a, const void *b)
{
    const struct plain *x = a, *y = b;

    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->is_sample != y->is_sample)
        return x->is_sample ? 1 : -1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Events that wait, and what was shown, also as text: "e20 s30 ". */
struct shown {
    struct kiln_merge *merge;
    struct plain events[MANY], all[MANY];
    uint32_t n_events, n;
    char text[512];
};

static void note(struct shown *shown, struct plain what)
{
    size_t len = strlen(shown->text);

    snprintf(shown->text + len, sizeof(shown->text) - len, "%c%llu ", what.is_sample ? 's' : 'e',
             (unsigned long long)what.time);
    shown->all[shown->n++] = what;
}

static void on_before(void *context, uint64_t time_ns)
{
    struct shown *shown = context;
    uint32_t n = 0;

    qsort(shown->events, shown->n_events, sizeof(shown->events[0]), by_time);
    for (; n < shown->n_events && shown->events[n].time < time_ns; n++) {
        kiln_merge_saw(shown->merge, shown->events[n].time);
        note(shown, shown->events[n]);
    }
    shown->n_events -= n;
    memmove(shown->events, shown->events + n, shown->n_events * sizeof(shown->events[0]));
}

static void on_sample(void *context, const struct kiln_record *record)
{
    note(context, (struct plain){record->time_ns, record->frames[0], true});
}

static struct kiln_merge *open_merge(struct shown *shown, size_t bytes_max)
{
    struct kiln_merge_visitor visitor = {on_before, on_sample, shown};

    CHECK_OK(kiln_merge_new(bytes_max, &visitor, &shown->merge));
    return shown->merge;
}

static void add_event(struct shown *shown, uint64_t time, uint64_t number)
{
    shown->events[shown->n_events++] = (struct plain){time, number, false};
}

/* A raw record with a slice of `slice` bytes. */
static void add_sample(struct kiln_merge *merge, uint64_t time, uint64_t number, uint32_t slice)
{
    uint32_t size = sizeof(struct kiln_record) + 8 + sizeof(struct kiln_registers) + slice;
    struct kiln_record *record = calloc(1, size);

    record->size = size;
    record->time_ns = time;
    record->n_user = 1;
    record->flags = KILN_RECORD_RAW;
    record->slice = slice;
    record->frames[0] = number;
    kiln_merge_add_sample(merge, record);
    free(record);
}

TEST(merge, samples_and_events_come_in_order_of_time)
{
    static struct shown shown;
    struct kiln_merge *merge = open_merge(&shown, 0);

    kiln_merge_begin(merge, 100);
    add_sample(merge, 30, 0, 16);
    add_event(&shown, 20, 0);
    add_event(&shown, 40, 0);
    add_event(&shown, 30, 0);
    add_sample(merge, 10, 0, 16);
    kiln_merge_flush(merge);
    CHECK_TEXT(shown.text, "s10 e20 e30 s30 e40 ");
    CHECK_EQ(kiln_merge_late(merge), 0);
    kiln_merge_free(merge);
}

TEST(merge, what_is_younger_than_the_round_before_waits)
{
    static struct shown shown;
    struct kiln_merge *merge = open_merge(&shown, 0);

    kiln_merge_begin(merge, 100);
    add_sample(merge, 90, 0, 16);
    kiln_merge_end(merge);
    CHECK_TEXT(shown.text, "");
    kiln_merge_begin(merge, 200);
    add_event(&shown, 80, 0);
    add_event(&shown, 95, 0);
    add_event(&shown, 160, 0);
    add_sample(merge, 150, 0, 16);
    kiln_merge_end(merge);
    CHECK_TEXT(shown.text, "e80 s90 e95 ");
    kiln_merge_begin(merge, 300);
    kiln_merge_end(merge);
    CHECK_TEXT(shown.text, "e80 s90 e95 s150 e160 ");
    kiln_merge_free(merge);
}

TEST(merge, of_equal_times_the_first_that_came_is_shown_first)
{
    static struct shown shown;
    struct kiln_merge *merge = open_merge(&shown, 0);

    for (uint64_t i = 0; i < 64; i++)
        add_sample(merge, 7, i, 16);
    kiln_merge_flush(merge);
    for (uint64_t i = 0; i < 64; i++)
        CHECK_EQ(shown.all[i].number, i);
    kiln_merge_free(merge);
}

TEST(merge, an_event_that_comes_behind_a_younger_sample_is_late)
{
    static struct shown shown;
    struct kiln_merge *merge = open_merge(&shown, 0);

    add_sample(merge, 20, 0, 16);
    kiln_merge_flush(merge);
    add_event(&shown, 10, 0);
    kiln_merge_flush(merge);
    CHECK_TEXT(shown.text, "s20 e10 ");
    CHECK_EQ(kiln_merge_late(merge), 1);
    kiln_merge_free(merge);
}

TEST(merge, past_its_bound_the_oldest_is_shown_early_and_nothing_is_lost)
{
    static struct shown shown;
    struct kiln_merge *merge = open_merge(&shown, 4096);

    kiln_merge_begin(merge, 1000);
    for (uint64_t i = 0; i < 50; i++)
        add_sample(merge, 50 - i, i, 256);
    CHECK(shown.n > 30 && shown.n < 50);
    CHECK(kiln_merge_early(merge) == shown.n);
    kiln_merge_flush(merge);
    CHECK_EQ(shown.n, 50);
    CHECK(kiln_merge_late(merge) > 0);
    kiln_merge_free(merge);
}

TEST(merge, a_record_larger_than_the_bound_is_shown_behind_older_ones)
{
    static struct shown shown;
    struct kiln_merge *merge = open_merge(&shown, 4096);

    add_sample(merge, 5, 0, 16);
    add_event(&shown, 7, 0);
    add_event(&shown, 15, 0);
    add_sample(merge, 10, 0, 8192);
    CHECK_TEXT(shown.text, "s5 e7 s10 ");
    kiln_merge_flush(merge);
    CHECK_TEXT(shown.text, "s5 e7 s10 e15 ");
    CHECK_EQ(kiln_merge_late(merge), 0);
    kiln_merge_free(merge);
}

TEST(merge, without_memory_everything_is_still_shown)
{
    static struct shown shown;
    struct kiln_merge *merge = open_merge(&shown, 0);

    for (uint64_t at = 1; at <= 8; at++) {
        kiln_mem_fail_at(at);
        for (uint64_t i = 0; i < 8; i++)
            add_sample(merge, i, i, 16);
    }
    kiln_mem_fail_at(0);
    kiln_merge_flush(merge);
    CHECK_EQ(shown.n, 64);
    kiln_merge_free(merge);
}

/* ---- against a plain sort ---- */

/*
 * Three buffers, each in order of time; a round sees of each what was written before some moment
 * after the round began.  Whatever the rounds, what is shown is what a stable sort makes of all
 * that was added, in the order it was added.
 */
static void interleave(unsigned seed)
{
    static struct shown shown;
    struct kiln_merge *merge = open_merge(&shown, 0);
    struct plain *plain = calloc(MANY, sizeof(*plain));
    uint64_t next[3] = {0};
    uint32_t n = 0;

    srand(seed);
    for (uint64_t now = 50; now < 1500; now += 1 + (uint64_t)rand() % 100) {
        kiln_merge_begin(merge, now);
        for (int buffer = 0; buffer < 3; buffer++) {
            uint64_t until = now + (uint64_t)rand() % 30;

            for (; next[buffer] < until; next[buffer] += (uint64_t)rand() % 8) {
                plain[n] = (struct plain){next[buffer], n, rand() & 1};
                if (plain[n].is_sample)
                    add_sample(merge, next[buffer], n, 8u * ((uint32_t)rand() % 4));
                else
                    add_event(&shown, next[buffer], n);
                n++;
            }
        }
        kiln_merge_end(merge);
    }
    kiln_merge_flush(merge);
    qsort(plain, n, sizeof(*plain), by_time);
    CHECK_EQ(shown.n, n);
    for (uint32_t i = 0; i < n; i++) {
        CHECK_EQ(shown.all[i].time, plain[i].time);
        CHECK_EQ(shown.all[i].number, plain[i].number);
    }
    CHECK_EQ(kiln_merge_late(merge), 0);
    CHECK_EQ(kiln_merge_early(merge), 0);
    kiln_merge_free(merge);
    shown.n = shown.n_events = 0;
    free(plain);
}

TEST(merge, any_interleaving_is_shown_as_a_stable_sort_has_it)
{
    for (unsigned seed = 1; seed <= 200; seed++)
        interleave(seed);
}

TEST(merge, of_a_raw_record_registers_and_slice_are_wiped_and_nothing_else)
{
    uint32_t size = sizeof(struct kiln_record) + 2 * 8 + sizeof(struct kiln_registers) + 64;
    struct kiln_record *record = calloc(1, size);
    const unsigned char *bytes = (const unsigned char *)(record->frames + 2);

    memset(record->frames, 0xaa, size - sizeof(*record));
    record->size = size;
    record->n_kernel = record->n_user = 1;
    kiln_record_wipe(record);
    CHECK_EQ(bytes[0], 0xaa);
    record->flags = KILN_RECORD_RAW;
    kiln_record_wipe(record);
    CHECK_EQ(record->frames[1], 0xaaaaaaaaaaaaaaaa);
    for (size_t i = 0; i < sizeof(struct kiln_registers) + 64; i++)
        CHECK_EQ(bytes[i], 0);
    free(record);
}
