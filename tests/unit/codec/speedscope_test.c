/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/mem.h"
#include "codec/collapsed.h"
#include "codec/speedscope.h"
#include "decoded.h"

#define FRAMES                                                                                     \
    "\"shared\":{\"frames\":[{\"name\":\"main\",\"file\":\"a.c\",\"line\":3,\"col\":7},"           \
    "{\"name\":\"parse\",\"line\":null},{\"name\":\"re\\nad\"}]}"
#define FILE_OF(profiles) "{" FRAMES ",\"profiles\":[" profiles "]}"
#define SAMPLED(unit, samples, weights)                                                            \
    "{\"type\":\"sampled\",\"name\":\"t\",\"unit\":\"" unit "\",\"startValue\":0,\"endValue\":10," \
    "\"samples\":[" samples "],\"weights\":[" weights "]}"
#define EVENTED(unit, end, events)                                                                 \
    "{\"type\":\"evented\",\"name\":\"t\",\"unit\":\"" unit                                        \
    "\",\"startValue\":0,\"endValue\":" end ",\"events\":[" events "]}"
#define OPEN(frame, at)  "{\"type\":\"O\",\"frame\":" frame ",\"at\":" at "}"
#define CLOSE(frame, at) "{\"type\":\"C\",\"frame\":" frame ",\"at\":" at "}"

static struct kiln_batch *decode(const char *text)
{
    return kiln_test_decode(kiln_speedscope_decode, kiln_str_of(text));
}

static void check_stacks(const char *text, const char *stacks)
{
    struct kiln_batch *batch = decode(text);

    CHECK_TEXT(kiln_test_stacks(batch, 0), stacks);
    kiln_batch_unref(batch);
}

TEST(speedscope, samples_are_stacks_of_shared_frames_with_weights)
{
    struct kiln_batch *batch = decode(FILE_OF(SAMPLED("none", "[0,1],[0],[]", "3,4,1")));
    const struct kiln_dict *d = &batch->dict;
    const struct kiln_line *line;

    CHECK_TEXT(kiln_test_stacks(batch, 0), "main;parse 3\nmain 4\n 1\n");
    CHECK_STR(kiln_batch_str(batch, batch->profiles[0].sample_type.type), "samples");
    CHECK_EQ(batch->profiles[0].duration_ns, 0);
    line = &d->lines[d->locations[d->frames[d->stacks[batch->samples[1].stack].first]].first];
    CHECK_STR(d->strings[d->functions[line->function].filename], "a.c");
    CHECK_EQ(line->line, 3);
    CHECK_EQ(line->column, 7);
    kiln_batch_unref(batch);
}

TEST(speedscope, times_become_nanoseconds)
{
    struct kiln_batch *batch = decode(FILE_OF(SAMPLED("milliseconds", "[0],[1]", "1.5,2")));

    CHECK_TEXT(kiln_test_stacks(batch, 0), "main 1500000\nparse 2000000\n");
    CHECK_STR(kiln_batch_str(batch, batch->profiles[0].sample_type.type), "time");
    CHECK_STR(kiln_batch_str(batch, batch->profiles[0].sample_type.unit), "nanoseconds");
    CHECK_EQ(batch->profiles[0].duration_ns, 10000000);
    kiln_batch_unref(batch);
}

TEST(speedscope, parts_may_come_in_any_order_and_weights_be_absent)
{
    check_stacks("{\"profiles\":[{\"weights\":[5],\"samples\":[[0,2]],\"unit\":\"bytes\"}]," FRAMES
                 ",\"version\":\"0.0.1\"}",
                 "main;re\nad 5\n");
    check_stacks("{\"profiles\":[{\"samples\":[[0],[1]]}]," FRAMES "}", "main 1\nparse 1\n");
}

TEST(speedscope, several_profiles_are_threads)
{
    struct kiln_batch *batch =
        decode(FILE_OF(SAMPLED("none", "[0]", "1") "," SAMPLED("none", "[1]", "2")));

    CHECK_EQ(batch->n_profiles, 2);
    CHECK_TEXT(kiln_test_stacks(batch, 1), "parse 2\n");
    CHECK_STR(kiln_set_text(batch, batch->samples[1].attrs, KILN_STR("thread.name")), "t");
    kiln_batch_unref(batch);
}

TEST(speedscope, events_become_the_time_each_stack_was_on_top)
{
    check_stacks(FILE_OF(EVENTED("microseconds", "14",
                                 OPEN("0", "0") "," OPEN("1", "2") "," CLOSE("1", "5") "," OPEN(
                                     "1", "5.5") "," CLOSE("1", "6") "," CLOSE("0", "10"))),
                 "main 6500\nmain;parse 3500\n");
}

TEST(speedscope, frames_that_are_never_closed_last_until_the_end)
{
    check_stacks(FILE_OF(EVENTED("nanoseconds", "14", OPEN("0", "4"))), "main 10\n");
}

TEST(speedscope, errors_name_the_path)
{
    static const struct {
        const char *text, *where;
        int code;
    } cases[] = {
        {FILE_OF(SAMPLED("none", "[0],[3]", "1,1")), "profiles[0].samples[1]", KILN_E_RANGE},
        {FILE_OF(SAMPLED("none", "[-1]", "1")), "profiles[0].samples[0]", KILN_E_RANGE},
        {FILE_OF(SAMPLED("none", "[0],[1]", "1")), "profiles[0].samples[1]", KILN_E_MALFORMED},
        {FILE_OF(SAMPLED("none", "[0]", "1,2")), "profiles[0].samples[1]", KILN_E_MALFORMED},
        {FILE_OF(SAMPLED("seconds", "[0]", "1e300")), "profiles[0].samples[0]", -ERANGE},
        {FILE_OF(EVENTED("none", "9", CLOSE("0", "0"))), "profiles[0].events[0]", KILN_E_MALFORMED},
        {FILE_OF(EVENTED("none", "9", OPEN("0", "5") "," OPEN("1", "4"))), "profiles[0].events[1]",
         KILN_E_MALFORMED},
        {FILE_OF(EVENTED("none", "9", OPEN("0", "5") "," CLOSE("1", "6"))), "profiles[0].events[1]",
         KILN_E_MALFORMED},
        {FILE_OF(EVENTED("none", "9", "{\"type\":\"X\",\"at\":1,\"frame\":0}")),
         "profiles[0].events[0]", KILN_E_MALFORMED},
        {"{\"shared\":{\"frames\":[{},{\"name\":5}]},\"profiles\":[]}", "shared.frames[1]",
         KILN_E_MALFORMED},
        {"{" FRAMES "}", "", KILN_E_MALFORMED},
        {FILE_OF("") "x", "", KILN_E_MALFORMED},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        struct kiln_err err;
        int r = kiln_test_refused(kiln_speedscope_decode, kiln_str_of(cases[i].text), &err);

        CHECK_TEXT(err.where, cases[i].where);
        CHECK_EQ(r, cases[i].code);
    }
}

TEST(speedscope, running_out_of_memory_is_an_error_and_leaks_nothing)
{
    kiln_test_decode_starved(
        kiln_speedscope_decode,
        KILN_STR(FILE_OF(SAMPLED("none", "[0,2]", "1") "," EVENTED("none", "9", OPEN("0", "5")))));
}

/* ---- writing ---- */

static struct kiln_view *view_of(struct kiln_batch *batch)
{
    struct kiln_view_opts opts = {0};
    struct kiln_err err = {0};
    struct kiln_view *view;

    CHECK_OK(kiln_view_new(batch, &opts, &view, &err));
    return view;
}

TEST(speedscope, what_is_written_reads_back_the_same)
{
    static const char stacks[] = "[no stack] 5\nmain;parse;read 3\nmain;parse 4\n";
    struct kiln_batch *batch = kiln_test_decode(kiln_collapsed_decode, KILN_STR(stacks)), *again;
    struct kiln_view *view = view_of(batch);
    struct kiln_err err = {0};
    struct kiln_buf text;

    kiln_buf_init(&text, 1u << 20);
    CHECK_OK(kiln_speedscope_encode(view, &text, &err));
    CHECK(kiln_speedscope_detect(kiln_buf_str(&text)));
    again = kiln_test_decode(kiln_speedscope_decode, kiln_buf_str(&text));
    CHECK_TEXT(kiln_test_stacks(again, 0), " 5\nmain;parse;read 3\nmain;parse 4\n");
    CHECK_STR(kiln_batch_str(again, again->profiles[0].sample_type.type), "samples");
    kiln_buf_done(&text);
    kiln_view_free(view);
    kiln_batch_unref(batch);
    kiln_batch_unref(again);
}

TEST(speedscope, it_is_known_by_its_schema_or_its_frames)
{
    CHECK(kiln_speedscope_detect(
        KILN_STR("{\"x\":[],\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"")));
    CHECK(kiln_speedscope_detect(KILN_STR(FILE_OF(""))));
    CHECK(!kiln_speedscope_detect(KILN_STR("{\"$schema\":\"https://example.com\"}")));
    CHECK(!kiln_speedscope_detect(KILN_STR("{\"shared\":{}}")));
    CHECK(!kiln_speedscope_detect(KILN_STR("{\"shared\":5,\"shared\":{\"frames\":[]}}")));
    CHECK(!kiln_speedscope_detect(KILN_STR("[]")));
}
