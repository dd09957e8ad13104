/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/mem.h"
#include "host/merge.h"
#include "test.h"

/* What was shown: 's' or 'e', time and number, as text. */
struct shown {
    uint64_t times[4096];
    uint64_t numbers[4096];
    uint32_t n;
    char text[512];
};

static void note(struct shown *shown, const char *kind, uint64_t time, uint64_t number)
{
    size_t len = strlen(shown->text);

    snprintf(shown->text + len, sizeof(shown->text) - len, "%s%llu ", kind,
             (unsigned long long)time);
    shown->times[shown->n] = time;
    shown->numbers[shown->n++] = number;
}

static void on_event(void *context, const struct kiln_event *event)
{
    note(context, event->name ? event->name : "e", event->time_ns, event->n);
}

static void on_sample(void *context, const struct kiln_record *record)
{
    note(context, "s", record->time_ns, record->frames[0]);
}

static struct kiln_merge *open_merge(struct shown *shown, size_t bytes_max)
{
    struct kiln_merge_visitor visitor = {on_event, on_sample, shown};
    struct kiln_merge *merge;

    CHECK_OK(kiln_merge_new(bytes_max, &visitor, &merge));
    return merge;
}

static void add_event(struct kiln_merge *merge, uint64_t time, uint64_t number, const char *name)
{
    kiln_merge_add_event(merge, &(struct kiln_event){.time_ns = time, .n = number, .name = name});
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
    struct shown shown = {0};
    struct kiln_merge *merge = open_merge(&shown, 0);

    kiln_merge_begin(merge, 100);
    add_sample(merge, 30, 0, 16);
    add_event(merge, 20, 0, "map");
    add_event(merge, 40, 0, NULL);
    add_sample(merge, 10, 0, 16);
    kiln_merge_flush(merge);
    CHECK_TEXT(shown.text, "s10 map20 s30 e40 ");
    CHECK_EQ(kiln_merge_late(merge), 0);
    kiln_merge_free(merge);
}

TEST(merge, what_is_younger_than_the_round_before_waits)
{
    struct shown shown = {0};
    struct kiln_merge *merge = open_merge(&shown, 0);

    kiln_merge_begin(merge, 100);
    add_event(merge, 90, 0, "a");
    kiln_merge_end(merge);
    CHECK_TEXT(shown.text, "");
    kiln_merge_begin(merge, 200);
    add_event(merge, 80, 0, "b");
    add_event(merge, 150, 0, "c");
    kiln_merge_end(merge);
    CHECK_TEXT(shown.text, "b80 a90 ");
    kiln_merge_begin(merge, 300);
    kiln_merge_end(merge);
    CHECK_TEXT(shown.text, "b80 a90 c150 ");
    kiln_merge_free(merge);
}

TEST(merge, of_equal_times_the_first_that_came_is_shown_first)
{
    struct shown shown = {0};
    struct kiln_merge *merge = open_merge(&shown, 0);

    for (uint64_t i = 0; i < 64; i++)
        add_event(merge, 7, i, NULL);
    kiln_merge_flush(merge);
    for (uint64_t i = 0; i < 64; i++)
        CHECK_EQ(shown.numbers[i], i);
    kiln_merge_free(merge);
}

TEST(merge, past_its_bound_the_oldest_is_shown_early_and_nothing_is_lost)
{
    struct shown shown = {0};
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
    struct shown shown = {0};
    struct kiln_merge *merge = open_merge(&shown, 4096);

    add_event(merge, 5, 0, "a");
    add_event(merge, 15, 0, "b");
    add_sample(merge, 10, 0, 8192);
    CHECK_TEXT(shown.text, "a5 s10 ");
    kiln_merge_flush(merge);
    CHECK_TEXT(shown.text, "a5 s10 b15 ");
    CHECK_EQ(kiln_merge_late(merge), 0);
    kiln_merge_free(merge);
}

TEST(merge, without_memory_everything_is_still_shown)
{
    struct shown shown = {0};
    struct kiln_merge *merge = open_merge(&shown, 0);

    for (uint64_t at = 1; at <= 8; at++) {
        kiln_mem_fail_at(at);
        for (uint64_t i = 0; i < 8; i++)
            add_event(merge, i, i, NULL);
    }
    kiln_mem_fail_at(0);
    kiln_merge_flush(merge);
    CHECK_EQ(shown.n, 64);
    kiln_merge_free(merge);
}

/* ---- against a plain sort ---- */

struct plain {
    uint64_t time, number;
};

static int by_time(const void *a, const void *b)
{
    const struct plain *x = a, *y = b;

    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/*
 * Three buffers, each in order of time; a round sees of each what was written before some moment
 * after the round began.  Whatever the rounds, what is shown is what a stable sort makes of all
 * that was added, in the order it was added.
 */
static void interleave(unsigned seed)
{
    struct shown shown = {0};
    struct kiln_merge *merge = open_merge(&shown, 0);
    struct plain *plain = calloc(4096, sizeof(*plain));
    uint64_t next[3] = {0};
    uint32_t n = 0;

    srand(seed);
    for (uint64_t now = 50; now < 1500; now += 1 + (uint64_t)rand() % 100) {
        kiln_merge_begin(merge, now);
        for (int buffer = 0; buffer < 3; buffer++) {
            uint64_t until = now + (uint64_t)rand() % 30;

            for (; next[buffer] < until; next[buffer] += (uint64_t)rand() % 8) {
                plain[n] = (struct plain){next[buffer], n};
                if (rand() & 1)
                    add_event(merge, next[buffer], n, "x");
                else
                    add_sample(merge, next[buffer], n, 8u * ((uint32_t)rand() % 4));
                n++;
            }
        }
        kiln_merge_end(merge);
    }
    kiln_merge_flush(merge);
    qsort(plain, n, sizeof(*plain), by_time);
    CHECK_EQ(shown.n, n);
    for (uint32_t i = 0; i < n; i++) {
        CHECK_EQ(shown.times[i], plain[i].time);
        CHECK_EQ(shown.numbers[i], plain[i].number);
    }
    CHECK_EQ(kiln_merge_late(merge), 0);
    CHECK_EQ(kiln_merge_early(merge), 0);
    kiln_merge_free(merge);
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
