/* SPDX-License-Identifier: Apache-2.0 */
/* Readings, as Go's clients know them; and the same for people. */
#include "base/mem.h"
#include "codec/pprof.h"
#include "drawn.h"
#include "inproc/pprof/shape.h"
#include "inproc/pprof/text.h"
#include "test.h"

static struct kiln_batch *shape(enum kiln_in_profile which, struct kiln_batch *to,
                                struct kiln_batch *from)
{
    struct kiln_in_part parts[] = {{to, 1}, {from, -1}};
    struct kiln_in_shape_opts opts = {.time_ns = 5,
                                      .duration_ns = 7,
                                      .period = 11,
                                      .program = KILN_STR("/bin/shop"),
                                      .program_mapping = {.start = 0x400000, .limit = 0x500000},
                                      .program_build_id = KILN_STR("abcd"),
                                      .comments = KILN_STR("lost: 3 samples\nsecond\n")};
    struct kiln_batch *batch = NULL;

    CHECK_OK(kiln_in_shape(which, parts, from ? 2 : 1, &opts, &batch, NULL));
    kiln_batch_unref(to);
    kiln_batch_unref(from);
    return batch;
}

/* There and back through a pprof. */
static struct kiln_batch *through_pprof(struct kiln_batch *batch, struct kiln_buf *bytes)
{
    struct kiln_builder *b = NULL;
    struct kiln_batch *back = NULL;

    kiln_buf_init(bytes, 1 << 20);
    CHECK_OK(kiln_pprof_encode(batch, NULL, bytes, NULL));
    CHECK_OK(kiln_builder_new(NULL, &b));
    CHECK_OK(kiln_pprof_decode(kiln_buf_str(bytes), b, NULL));
    CHECK_OK(kiln_builder_finish(b, &back, NULL));
    kiln_batch_unref(batch);
    return back;
}

/* "type/unit type/unit", in the order of the pprof. */
static const char *types_of(const struct kiln_batch *batch)
{
    static char text[256];
    const struct kiln_attr *order =
        kiln_set_find(batch, batch->scopes[0].attrs, KILN_STR("pprof.scope.sample_type_order"));
    size_t len = 0;

    text[0] = 0;
    for (uint32_t want = 0; want < batch->n_profiles; want++) {
        for (uint32_t i = 0; i < batch->n_profiles; i++) {
            struct kiln_value_type t = batch->profiles[i].sample_type;

            if (order && batch->dict.nested[order->value.first + i].value.i != want)
                continue;
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%.*s/%.*s", len ? " " : "",
                                    KILN_STR_ARG(kiln_batch_str(batch, t.type)),
                                    KILN_STR_ARG(kiln_batch_str(batch, t.unit)));
            break;
        }
    }
    return text;
}

static struct kiln_batch *drawn_cpu(const char *counts, const char *times)
{
    struct kiln_drawn cpu[] = {{.stacks = counts, .type = "samples", .unit = "count"},
                               {.stacks = times, .type = "cpu", .unit = "nanoseconds"}};

    return kiln_test_batch(cpu, 2);
}

TEST(pprof_shape, cpu_time_is_as_go_has_it)
{
    struct kiln_buf bytes;
    struct kiln_batch *batch = through_pprof(
        shape(KILN_IN_PROFILE_CPU, drawn_cpu("main;a 2\nmain;b 1", "main;a 20\nmain;b 10"), NULL),
        &bytes);
    const struct kiln_profile *p = &batch->profiles[0];
    const struct kiln_attr *comment =
        kiln_set_find(batch, p->attrs, KILN_STR("pprof.profile.comment"));
    struct kiln_view_opts opts = {.sample_type = KILN_STR("cpu")};
    struct kiln_view *view;

    CHECK_TEXT(types_of(batch), "samples/count cpu/nanoseconds");
    CHECK_STR(kiln_batch_str(batch, p->period_type.type), "cpu");
    CHECK_EQ(p->period, 11);
    CHECK_EQ(p->time_ns, 5);
    CHECK_EQ(p->duration_ns, 7);
    CHECK(comment && comment->value.n == 2);
    CHECK_STR(kiln_batch_str(batch, batch->dict.mappings[1].filename), "/bin/shop");
    CHECK(kiln_set_text(batch, p->attrs, KILN_STR("pprof.profile.drop_frames")).len > 0);
    view = kiln_test_view(batch, &opts);
    CHECK_TEXT(kiln_test_view_text(view), "main;a 20\nmain;b 10\n");
    kiln_view_free(view);
    kiln_buf_done(&bytes);
}

TEST(pprof_shape, wall_is_time_on_and_off_processors)
{
    struct kiln_drawn parts[] = {
        {.stacks = "main;a 2", .type = "samples", .unit = "count", .resource = ""},
        {.stacks = "main;a 20", .type = "cpu", .unit = "nanoseconds"},
        {.stacks = "main;a 1\nmain;wait 1", .type = "waits", .unit = "count", .scope = "off_cpu"},
        {.stacks = "main;a 5\nmain;wait 100", .type = "off_cpu", .unit = "nanoseconds"},
    };
    struct kiln_batch *batch = shape(KILN_IN_PROFILE_WALL, kiln_test_batch(parts, 4), NULL);
    struct kiln_view_opts opts = {.sample_type = KILN_STR("wall")};
    struct kiln_view *view;

    CHECK_TEXT(types_of(batch), "samples/count wall/nanoseconds");
    view = kiln_test_view(batch, &opts);
    CHECK_TEXT(kiln_test_view_text(view), "main;a 25\nmain;wait 100\n");
    kiln_view_free(view);
}

static struct kiln_batch *drawn_heap(const char *objects, const char *space, const char *inuse,
                                     const char *inuse_space)
{
    struct kiln_drawn heap[] = {{.stacks = objects, .type = "alloc_objects", .unit = "count"},
                                {.stacks = space, .type = "alloc_space", .unit = "bytes"},
                                {.stacks = inuse, .type = "inuse_objects", .unit = "count"},
                                {.stacks = inuse_space, .type = "inuse_space", .unit = "bytes"}};

    return kiln_test_batch(heap, 4);
}

TEST(pprof_shape, heap_and_allocs_differ_in_what_is_shown_first)
{
    static const enum kiln_in_profile both[] = {KILN_IN_PROFILE_HEAP, KILN_IN_PROFILE_ALLOCS};

    for (size_t i = 0; i < 2; i++) {
        struct kiln_buf bytes;
        struct kiln_batch *batch = through_pprof(
            shape(both[i], drawn_heap("main;a 5", "main;a 160", "main;a 3", "main;a 96"), NULL),
            &bytes);
        struct kiln_view *view;

        CHECK_TEXT(types_of(batch),
                   "alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes");
        view = kiln_test_view(batch, NULL);
        CHECK_TEXT(kiln_test_view_text(view), i ? "main;a 160\n" : "main;a 96\n");
        kiln_view_free(view);
        kiln_buf_done(&bytes);
    }
}

TEST(pprof_shape, levels_are_taken_away_from_each_other)
{
    struct kiln_batch *batch =
        shape(KILN_IN_PROFILE_HEAP,
              drawn_heap("main;a 5\nmain;b 1", "main;a 160\nmain;b 8", "main;a 3", "main;a 96"),
              drawn_heap("main;b 1\nmain;a 4", "main;b 8\nmain;a 100", "main;a 4", "main;a 100"));
    struct kiln_view_opts opts = {.sample_type = KILN_STR("inuse_space")};
    struct kiln_view *view;

    CHECK_EQ(batch->profiles[0].n_samples, 1); /* b is as it was */
    view = kiln_test_view(batch, &opts);
    CHECK_TEXT(kiln_test_view_text(view), "main;a -4\n");
    kiln_view_free(view);
}

TEST(pprof_shape, what_has_no_samples_is_still_a_profile)
{
    for (enum kiln_in_profile which = 0; which < KILN_IN_PROFILES; which++) {
        struct kiln_buf bytes;
        struct kiln_batch *batch = through_pprof(shape(which, kiln_test_stacks(""), NULL), &bytes);

        CHECK(batch->n_profiles >= 1 && batch->n_samples == 0);
        kiln_batch_unref(batch);
        kiln_buf_done(&bytes);
    }
}

/* lib.so is at 0x7000 in memory. */
static bool place(struct kiln_str file, uint64_t address, struct kiln_in_place *ret)
{
    if (!kiln_str_eq(file, KILN_STR("lib.so")))
        return false;
    *ret = (struct kiln_in_place){{.start = 0x7000, .limit = 0x8000, .offset = 0x100},
                                  0x7000 - address};
    return true;
}

TEST(pprof_shape, addresses_are_those_in_memory)
{
    struct kiln_batch *from = kiln_test_stacks("lib.so+0x10;0x99 1"), *batch = NULL;
    struct kiln_in_part part = {from, 1};
    struct kiln_in_shape_opts opts = {.place = place};
    const struct kiln_dict *d;
    struct kiln_range stack;
    const struct kiln_location *caller;

    CHECK_OK(kiln_in_shape(KILN_IN_PROFILE_CPU, &part, 1, &opts, &batch, NULL));
    d = &batch->dict;
    stack = d->stacks[batch->samples[0].stack];
    CHECK_EQ(stack.n, 2);
    CHECK_EQ(d->locations[d->frames[stack.first]].address, 0x99);
    caller = &d->locations[d->frames[stack.first + 1]];
    CHECK_EQ(caller->address, 0x7010);
    CHECK_EQ(d->mappings[caller->mapping].start, 0x7000);
    CHECK_EQ(d->mappings[caller->mapping].limit, 0x8000);
    CHECK_EQ(d->mappings[caller->mapping].offset, 0x100);
    kiln_batch_unref(batch);
    kiln_batch_unref(from);
}

TEST(pprof_shape, labels_keep_rows_apart)
{
    struct kiln_drawn parts[] = {
        {.stacks = "main;a 2 role=waiter\nmain;a 3 role=holder", .type = "contentions"},
        {.stacks = "main;a 20 role=waiter\nmain;a 30 role=holder",
         .type = "delay",
         .unit = "nanoseconds"},
    };
    struct kiln_batch *batch = shape(KILN_IN_PROFILE_MUTEX, kiln_test_batch(parts, 2), NULL);

    CHECK_EQ(batch->profiles[0].n_samples, 2);
    kiln_batch_unref(batch);
}

/* ---- for people ---- */

static const char *text_of(enum kiln_in_profile which, struct kiln_batch *batch, int64_t debug)
{
    static char text[4096];
    struct kiln_buf out;

    kiln_buf_init(&out, sizeof(text) - 1);
    CHECK_OK(kiln_in_text(which, batch, debug, &out));
    memcpy(text, out.ptr, out.len);
    text[out.len] = 0;
    kiln_buf_done(&out);
    kiln_batch_unref(batch);
    return text;
}

TEST(pprof_text, a_heap_lists_the_largest_first)
{
    struct kiln_batch *batch = shape(KILN_IN_PROFILE_HEAP,
                                     drawn_heap("0x20;0x10 5\n0x30 1", "0x20;0x10 160\n0x30 900",
                                                "0x20;0x10 3\n0x30 1", "0x20;0x10 96\n0x30 900"),
                                     NULL);

    CHECK_TEXT(text_of(KILN_IN_PROFILE_HEAP, batch, 1),
               "heap profile: 4: 996 [6: 1060] @ heapprofile\n"
               "1: 900 [1: 900] @ 0x30\n#\t0x30\t?\n\n"
               "3: 96 [5: 160] @ 0x10 0x21\n#\t0x10\t?\n#\t0x21\t?\n\n"
               "--- Memory map: ---\n"
               "00400000-00500000 r-xp 00000000 00:00 0 /bin/shop\n");
}

TEST(pprof_text, locks_say_how_long_and_how_often)
{
    struct kiln_drawn parts[] = {
        {.stacks = "0x10 2", .type = "contentions"},
        {.stacks = "0x10 20", .type = "delay", .unit = "nanoseconds"},
    };

    CHECK(strncmp(text_of(KILN_IN_PROFILE_MUTEX,
                          shape(KILN_IN_PROFILE_MUTEX, kiln_test_batch(parts, 2), NULL), 1),
                  "--- mutex:\ncycles/second=1000000000\nsampling period=1\n20 2 @ 0x10\n",
                  66) == 0);
    CHECK(strncmp(text_of(KILN_IN_PROFILE_BLOCK,
                          shape(KILN_IN_PROFILE_BLOCK, kiln_test_batch(parts, 2), NULL), 1),
                  "--- contention:\ncycles/second=", 30) == 0);
}

TEST(pprof_text, threads_are_counted_or_listed)
{
    struct kiln_drawn threads = {
        .stacks = "start;serve 7\nmain 1", .type = "threads", .unit = "count"};
    const char *text =
        text_of(KILN_IN_PROFILE_THREADS,
                shape(KILN_IN_PROFILE_THREADS, kiln_test_batch(&threads, 1), NULL), 1);

    CHECK(strncmp(text, "goroutine profile: total 8\n7 @ 0x", 33) == 0);
    text = text_of(KILN_IN_PROFILE_THREADS,
                   shape(KILN_IN_PROFILE_THREADS, kiln_test_batch(&threads, 1), NULL), 2);
    CHECK(strncmp(text, "7 threads:\nserve\n\t0x", 20) == 0);
    CHECK(strstr(text, "\n1 thread:\nmain\n") != NULL);
}

TEST(pprof_text, threads_have_names_and_labels)
{
    struct kiln_drawn threads = {.stacks = "0x10 2 thread.name=work,kiln.thread.seen=waiting",
                                 .type = "threads",
                                 .unit = "count"};
    const char *text =
        text_of(KILN_IN_PROFILE_THREADS,
                shape(KILN_IN_PROFILE_THREADS, kiln_test_batch(&threads, 1), NULL), 2);

    CHECK_TEXT(text, "2 threads \"work\" [waiting]:\n?\n\t0x10\n\n");
    text = text_of(KILN_IN_PROFILE_THREADS,
                   shape(KILN_IN_PROFILE_THREADS, kiln_test_batch(&threads, 1), NULL), 1);
    CHECK(strstr(text, "2 @ 0x10\n# labels: {\"thread.name\":\"work\",") != NULL);
}
