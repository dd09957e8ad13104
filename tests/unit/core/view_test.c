/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>

#include "base/mem.h"
#include "drawn.h"
#include "test.h"

#define VIEW(...) (&(struct kiln_view_opts){__VA_ARGS__})

/* Draws stacks, looks at them with the options, compares the rows. */
static void check_view(const char *stacks, const struct kiln_view_opts *opts, const char *expected)
{
    struct kiln_view *view = kiln_test_view(kiln_test_stacks(stacks), opts);

    CHECK_TEXT(kiln_test_view_text(view), expected);
    kiln_view_free(view);
}

/* ---- rows ---- */

TEST(view, equal_stacks_are_one_row)
{
    struct kiln_view *view =
        kiln_test_view(kiln_test_stacks("main;read 3\nmain;write 1\nmain;read 4 t=1\n"), NULL);

    CHECK_TEXT(kiln_test_view_text(view), "main;read 7\nmain;write 1\n");
    CHECK_EQ(view->n_frames, 3);
    CHECK_EQ(view->total, 8);
    CHECK_EQ(view->total_unfiltered, 8);
    CHECK_EQ(view->n_profiles, 1);
    kiln_view_free(view);
}

TEST(view, functions_of_one_name_are_one_frame)
{
    struct kiln_view *view = kiln_test_view(
        kiln_test_stacks("main@a.c:1;read@b.c:2 3\nmain@a.c:9;read@c.c:7 4\n"), NULL);

    CHECK_TEXT(kiln_test_view_text(view), "main;read 7\n");
    CHECK_STR(view->frames[view->path[1]].file, "b.c");
    CHECK_EQ(view->frames[view->path[1]].line, 0);
    kiln_view_free(view);
}

TEST(view, inlined_lines_are_frames_of_their_own)
{
    struct kiln_view *view = kiln_test_view(kiln_test_stacks("main;parse>next>peek 3\n"), NULL);

    CHECK_TEXT(kiln_test_view_text(view), "main;parse;next;peek 3\n");
    CHECK(!view->frames[view->path[1]].inlined);
    CHECK(view->frames[view->path[2]].inlined);
    CHECK(view->frames[view->path[3]].inlined);
    kiln_view_free(view);
}

TEST(view, a_function_that_is_not_inlined_everywhere_is_not_inlined)
{
    struct kiln_view *view =
        kiln_test_view(kiln_test_stacks("main;parse>next 3\nmain;next 1\n"), NULL);

    CHECK_STR(view->frames[view->path[2]].name, "next");
    CHECK(!view->frames[view->path[2]].inlined);
    kiln_view_free(view);
}

TEST(view, an_unnamed_frame_is_named_by_its_address_in_its_module)
{
    struct kiln_view *view =
        kiln_test_view(kiln_test_stacks("/usr/lib/libc.so.6+0x1234;0xabc 3\n"), NULL);

    CHECK_TEXT(kiln_test_view_text(view), "libc.so.6+0x1234;0xabc 3\n");
    CHECK(view->frames[view->path[0]].unnamed);
    CHECK_STR(view->frames[view->path[0]].module, "/usr/lib/libc.so.6");
    CHECK_EQ(view->frames[view->path[0]].address, 0x1234);
    kiln_view_free(view);
}

TEST(view, a_frame_without_anything_is_unknown)
{
    check_view(";main 3\n", NULL, "(unknown);main 3\n");
}

TEST(view, rows_of_zero_are_left_out_and_the_empty_stack_is_kept)
{
    check_view("main;idle 0\nmain;run 2\nmain;up 3\nmain;up -3\n- 4\n", NULL, "- 4\nmain;run 2\n");
}

TEST(view, a_batch_of_empty_profiles_has_no_rows)
{
    struct kiln_view *view = kiln_test_view(kiln_test_stacks(""), NULL);

    CHECK_EQ(view->n_rows, 0);
    CHECK_EQ(view->n_frames, 0);
    CHECK_EQ(view->total, 0);
    kiln_view_free(view);
}

TEST(view, sums_saturate)
{
    struct kiln_view *view = kiln_test_view(
        kiln_test_stacks("main;a 9223372036854775807\nmain;a 5\nmain;b 9223372036854775807\n"),
        NULL);

    CHECK_TEXT(kiln_test_view_text(view),
               "main;a 9223372036854775807\nmain;b 9223372036854775807\n");
    CHECK(view->total == INT64_MAX);
    kiln_view_free(view);
}

TEST(view, counted_samples_are_multiplied_by_their_period_and_saturate)
{
    const struct kiln_drawn drawn = {
        .stacks = "main;a 3\nmain;b @1 @2\nmain;c 9223372036854775807\n",
        .type = "samples",
        .unit = "count",
        .period_type = "cpu",
        .period_unit = "nanoseconds",
        .period = 10,
    };
    struct kiln_view *view = kiln_test_view(kiln_test_batch(&drawn, 1), NULL);

    CHECK_TEXT(kiln_test_view_text(view), "main;a 30\nmain;b 20\nmain;c 9223372036854775807\n");
    CHECK_STR(view->type.type, "cpu");
    CHECK_EQ(view->rows[0].count, 3);
    CHECK_EQ(view->rows[1].count, 2);
    kiln_view_free(view);
    view = kiln_test_view(kiln_test_batch(&drawn, 1), VIEW(.sample_type = KILN_STR("samples")));
    CHECK_STR(view->type.type, "samples");
    CHECK_EQ(view->rows[0].value, 3);
    kiln_view_free(view);
}

/* ---- granularity ---- */

static const char drawn_lines[] = "main@/src/main.c:3;parse@/src/json.c:12 1\n"
                                  "main@/src/main.c:3;parse@/src/json.c:13 2\n"
                                  "main@/src/main.c:4;/lib/libc.so.6+0x10 4\n";

TEST(view, by_line_file_and_address)
{
    check_view(drawn_lines, VIEW(.granularity = KILN_BY_FUNCTION),
               "main;libc.so.6+0x10 4\nmain;parse 3\n");
    check_view(drawn_lines, VIEW(.granularity = KILN_BY_LINE),
               "main main.c:3;parse json.c:12 1\n"
               "main main.c:3;parse json.c:13 2\n"
               "main main.c:4;libc.so.6+0x10 4\n");
    check_view(drawn_lines, VIEW(.granularity = KILN_BY_FILE),
               "/src/main.c;/src/json.c 3\n"
               "/src/main.c;[libc.so.6] 4\n");
}

TEST(view, lines_of_files_of_one_name_stay_apart)
{
    struct kiln_view *view = kiln_test_view(kiln_test_stacks("f@a/x.c:1 1\nf@b/x.c:1 2\n"),
                                            VIEW(.granularity = KILN_BY_LINE));

    CHECK_EQ(view->n_frames, 2);
    CHECK_TEXT(kiln_test_view_text(view), "f x.c:1 1\nf x.c:1 2\n");
    kiln_view_free(view);
}

TEST(view, by_address_equal_functions_stay_apart)
{
    struct kiln_line line = {0};
    struct kiln_location location = {0};
    struct kiln_builder *b;
    struct kiln_batch *batch;
    struct kiln_view *view;
    uint32_t stack[2];

    CHECK_OK(kiln_builder_new(NULL, &b));
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    kiln_builder_add_profile(b, &(struct kiln_profile){0});
    line.function = kiln_builder_function(
        b, &(struct kiln_function){.system_name = kiln_builder_string(b, KILN_STR("_Zf"))});
    location.mapping = kiln_builder_mapping(
        b, &(struct kiln_mapping){.start = 0x400000, .limit = 0x500000, .offset = 0x1000});
    location.address = 0x400010;
    stack[0] = kiln_builder_location(b, &location, &line, 1);
    location.address = 0x600020;
    stack[1] = kiln_builder_location(b, &location, &line, 1);
    kiln_builder_add_value(b, 0, kiln_builder_stack(b, stack, 2), 0, 5);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    view = kiln_test_view(kiln_batch_ref(batch), VIEW(.granularity = KILN_BY_ADDRESS));
    CHECK_TEXT(kiln_test_view_text(view), "0x600020 _Zf;0x1010 _Zf 5\n");
    kiln_view_free(view);
    view = kiln_test_view(batch, NULL);
    CHECK_TEXT(kiln_test_view_text(view), "_Zf;_Zf 5\n");
    CHECK_EQ(view->frames[0].address, 0);
    kiln_view_free(view);
}

TEST(view, addresses_of_a_made_up_function_are_one_frame_without_a_symbol)
{
    struct kiln_function made_up = {0};
    struct kiln_line line = {0};
    struct kiln_builder *b;
    struct kiln_batch *batch;
    struct kiln_view *view;

    CHECK_OK(kiln_builder_new(NULL, &b));
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    kiln_builder_add_profile(b, &(struct kiln_profile){0});
    made_up.name = kiln_builder_string(b, KILN_STR("lib.so+0x10"));
    line.function = kiln_builder_function(b, &made_up);
    for (uint64_t address = 0x14; address <= 0x18; address += 4) {
        struct kiln_location location = {.address = address};
        uint32_t frame = kiln_builder_location(b, &location, &line, 1);

        kiln_builder_add_value(b, 0, kiln_builder_stack(b, &frame, 1), 0, 5);
    }
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    view = kiln_test_view(kiln_batch_ref(batch), NULL);
    CHECK_TEXT(kiln_test_view_text(view), "lib.so+0x10 10\n");
    CHECK_EQ(view->n_frames, 1);
    CHECK(view->frames[0].unnamed);
    kiln_view_free(view);
    view = kiln_test_view(batch, VIEW(.granularity = KILN_BY_ADDRESS));
    CHECK_TEXT(kiln_test_view_text(view), "0x14 lib.so+0x10 5\n0x18 lib.so+0x10 5\n");
    kiln_view_free(view);
}

/* ---- filters ---- */

static const char drawn_filters[] = "main;parse@json.c:1;read 1\n"
                                    "main;parse@json.c:1>next@lex.c:2 2\n"
                                    "main;write 4\n"
                                    "idle 8\n"
                                    "- 16\n";

TEST(view, focus_keeps_stacks_with_a_matching_frame)
{
    check_view(drawn_filters, VIEW(.focus = KILN_STR("^(read|write)$")),
               "main;parse;read 1\nmain;write 4\n");
    check_view(drawn_filters, VIEW(.focus = KILN_STR("json\\.c")),
               "main;parse;next 2\nmain;parse;read 1\n");
    check_view(drawn_filters, VIEW(.focus = KILN_STR("nothing")), "");
}

TEST(view, ignore_drops_stacks_with_a_matching_frame)
{
    check_view(drawn_filters, VIEW(.ignore = KILN_STR("main")), "- 16\nidle 8\n");
    check_view(drawn_filters, VIEW(.ignore = KILN_STR("lex"), .focus = KILN_STR("parse")),
               "main;parse;read 1\n");
}

TEST(view, show_keeps_only_matching_frames_and_hide_removes_them)
{
    check_view(drawn_filters, VIEW(.show = KILN_STR("parse|idle")), "- 16\nidle 8\nparse 3\n");
    check_view(drawn_filters, VIEW(.hide = KILN_STR("parse|idle")),
               "- 16\nmain;next 2\nmain;read 1\nmain;write 4\n");
}

TEST(view, filters_look_at_functions_whatever_the_granularity)
{
    check_view(drawn_filters, VIEW(.focus = KILN_STR("next"), .granularity = KILN_BY_FILE),
               "(unknown);json.c;lex.c 2\n");
}

TEST(view, hidden_frames_still_focus)
{
    check_view(drawn_filters, VIEW(.focus = KILN_STR("read"), .hide = KILN_STR("read")),
               "main;parse 1\n");
}

TEST(view, a_module_matches_where_there_is_no_function)
{
    check_view("main;/lib/libz.so+0x10 3\nmain 1\n", VIEW(.focus = KILN_STR("/lib/libz")),
               "main;libz.so+0x10 3\n");
}

TEST(view, what_filters_drop_is_in_the_unfiltered_total)
{
    struct kiln_view *view =
        kiln_test_view(kiln_test_stacks(drawn_filters), VIEW(.focus = KILN_STR("write")));

    CHECK_EQ(view->total, 4);
    CHECK_EQ(view->n_frames, 2);
    CHECK_EQ(view->total_unfiltered, 31);
    CHECK_EQ(view->count, 4);
    kiln_view_free(view);
}

TEST(view, a_pattern_that_runs_away_is_an_error)
{
    struct kiln_batch *batch = kiln_test_stacks("main;aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab 3\n");
    struct kiln_err err = {0};
    struct kiln_view *view;

    CHECK_EQ(kiln_view_new(batch, VIEW(.hide = KILN_STR("^(a+|a|aa)+$")), &view, &err),
             KILN_E_LIMIT);
    CHECK_TEXT(err.where, "hide");
    CHECK_TEXT(err.text, "the pattern takes too many steps");
    kiln_batch_unref(batch);
}

/* ---- labels ---- */

static void check_labels(const char *condition, const char *expected)
{
    const struct kiln_drawn drawn[] = {
        {.stacks = "a 1 thread=main,n=7\nb 2 thread=worker\n", .resource = "service.name=web"},
        {.stacks = "c 4 thread=main\nd 8 service.name=web\n",
         .resource = "service.name=db",
         .attrs = "n=7"},
    };
    const struct kiln_str label = kiln_str_of(condition);
    struct kiln_view *view =
        kiln_test_view(kiln_test_batch(drawn, 2), VIEW(.labels = &label, .n_labels = 1));

    CHECK_TEXT(kiln_test_view_text(view), expected);
    CHECK_EQ(view->total_unfiltered, 15);
    kiln_view_free(view);
}

TEST(view, labels_are_those_of_the_sample_then_profile_scope_and_resource)
{
    check_labels("thread=main", "a 1\nc 4\n");
    check_labels("thread!=main", "b 2\nd 8\n");
    check_labels("thread=~main|work.*", "a 1\nb 2\nc 4\n");
    check_labels("thread!~work", "a 1\nb 2\nc 4\nd 8\n");
    check_labels("n=7", "a 1\nc 4\nd 8\n");
    check_labels("service.name=web", "a 1\nb 2\nd 8\n");
    check_labels("missing=", "a 1\nb 2\nc 4\nd 8\n");
}

TEST(view, a_process_that_labels_rule_out_covers_no_time)
{
    const struct kiln_drawn drawn[] = {
        {.stacks = "a 1\n", .resource = "service.name=web", .time_ns = 100, .duration_ns = 10},
        {.stacks = "b 1 thread=x\n",
         .resource = "service.name=db",
         .time_ns = 200,
         .duration_ns = 30},
    };
    struct kiln_str label = KILN_STR("service.name=web");
    struct kiln_view *view =
        kiln_test_view(kiln_test_batch(drawn, 2), VIEW(.labels = &label, .n_labels = 1));

    CHECK_EQ(view->duration_ns, 10);
    CHECK_EQ(view->n_profiles, 1);
    kiln_view_free(view);
    label = KILN_STR("thread=x");
    view = kiln_test_view(kiln_test_batch(drawn, 2), VIEW(.labels = &label, .n_labels = 1));
    CHECK_EQ(view->duration_ns, 40);
    kiln_view_free(view);
}

/* ---- sample types ---- */

static int view_error(const char *sample_type, const char *focus, const char *label,
                      struct kiln_err *err)
{
    const struct kiln_drawn drawn[] = {
        {.stacks = "a 1\n", .type = "alloc_space", .unit = "bytes"},
        {.stacks = "a 1\n", .type = "delay", .unit = "nanoseconds"},
        {.stacks = "a 1\n", .type = "delay", .unit = "nanoseconds", .scope = "block"},
    };
    struct kiln_batch *batch = kiln_test_batch(drawn, 3);
    const struct kiln_str text = kiln_str_of(label);
    struct kiln_view *view = NULL;
    int r;

    *err = (struct kiln_err){0};
    r = kiln_view_new(batch,
                      VIEW(.sample_type = kiln_str_of(sample_type), .focus = kiln_str_of(focus),
                           .labels = &text, .n_labels = label != NULL),
                      &view, err);
    CHECK(view == NULL);
    CHECK_EQ(err->code, r);
    kiln_batch_unref(batch);
    return r;
}

TEST(view, an_unknown_sample_type_is_an_error_that_lists_those_there_are)
{
    struct kiln_err err;

    CHECK_EQ(view_error("cpu", NULL, NULL, &err), KILN_E_NOMATCH);
    CHECK_TEXT(err.text, "no profile has the sample type \"cpu\"; there is alloc_space:bytes, "
                         "delay:nanoseconds, delay:nanoseconds");
}

TEST(view, an_ambiguous_sample_type_is_an_error_that_lists_the_candidates)
{
    struct kiln_err err;

    CHECK_EQ(view_error("delay", NULL, NULL, &err), KILN_E_AMBIGUOUS);
    CHECK_TEXT(err.text, "the sample type \"delay\" may be "
                         "mutex:delay:nanoseconds:contentions:count or "
                         "block:delay:nanoseconds:contentions:count");
}

TEST(view, a_bad_pattern_or_condition_is_an_error)
{
    struct kiln_err err;

    CHECK_EQ(view_error("alloc_space", "(", NULL, &err), KILN_E_PATTERN);
    CHECK_TEXT(err.where, "focus");
    CHECK_EQ(view_error("alloc_space", NULL, "thread", &err), KILN_E_PATTERN);
    CHECK_EQ(view_error("alloc_space", NULL, "=x", &err), KILN_E_PATTERN);
    CHECK_EQ(view_error("alloc_space", NULL, "a=~(", &err), KILN_E_PATTERN);
}

TEST(view, profiles_of_one_type_are_added_up_over_resources)
{
    const struct kiln_drawn drawn[] = {
        {.stacks = "main;a 1\n", .resource = "pid=1"},
        {.stacks = "main;a 2\n", .resource = "pid=2"},
        {.stacks = "main;a 4\n", .type = "delay", .unit = "nanoseconds"},
    };
    struct kiln_view *view = kiln_test_view(kiln_test_batch(drawn, 3), NULL);

    CHECK_TEXT(kiln_test_view_text(view), "main;a 3\n");
    CHECK_EQ(view->n_profiles, 2);
    kiln_view_free(view);
}

#define COUNTED_CPU                                                                                \
    .type = "samples", .unit = "count", .period_type = "cpu", .period_unit = "nanoseconds"
#define OFF_CPU .type = "off_cpu", .unit = "nanoseconds"

TEST(view, wall_time_is_what_is_spent_on_processors_and_off_them)
{
    const struct kiln_drawn drawn[] = {
        {.stacks = "main;a 3\nmain;read 1\n", COUNTED_CPU, .period = 10},
        {.stacks = "main;a 2\n", COUNTED_CPU, .period = 5},
        {.stacks = "main;read 500\n", OFF_CPU},
    };
    struct kiln_view *view =
        kiln_test_view(kiln_test_batch(drawn, 3), VIEW(.sample_type = KILN_STR("wall")));
    struct kiln_batch *batch;

    CHECK_TEXT(kiln_test_view_text(view), "main;a 40\nmain;read 510\n");
    CHECK_STR(view->type.name, "wall");
    CHECK_STR(view->type.unit, "nanoseconds");
    CHECK_EQ(view->n_profiles, 3);
    kiln_view_free(view);
    batch = kiln_test_batch(drawn, 2); /* nothing is known of the time off processors */
    CHECK_EQ(kiln_view_new(batch, VIEW(.sample_type = KILN_STR("wall")), &view, NULL),
             KILN_E_NOMATCH);
    kiln_batch_unref(batch);
}

TEST(view, a_part_of_wall_time_may_have_any_period)
{
    const struct kiln_drawn drawn[] = {
        {.stacks = "main;a 30\n",
         .type = "cpu",
         .unit = "nanoseconds",
         .period_type = "cpu",
         .period_unit = "nanoseconds",
         .period = 10},
        {.stacks = "main;read 500\n",
         OFF_CPU,
         .period_type = "cpu",
         .period_unit = "nanoseconds",
         .period = 10}, /* as pprof has it */
    };
    struct kiln_view *view =
        kiln_test_view(kiln_test_batch(drawn, 2), VIEW(.sample_type = KILN_STR("wall")));

    CHECK_TEXT(kiln_test_view_text(view), "main;a 30\nmain;read 500\n");
    kiln_view_free(view);
}

TEST(view, wall_time_that_is_there_is_not_made_of_others)
{
    const struct kiln_drawn drawn[] = {
        {.stacks = "main;a 3\n", COUNTED_CPU, .period = 10},
        {.stacks = "main;read 500\n", OFF_CPU},
        {.stacks = "main;read 7\n", .type = "wall", .unit = "nanoseconds"},
    };
    struct kiln_view *view =
        kiln_test_view(kiln_test_batch(drawn, 3), VIEW(.sample_type = KILN_STR("wall")));

    CHECK_TEXT(kiln_test_view_text(view), "main;read 7\n");
    kiln_view_free(view);
}

TEST(view, a_batch_without_profiles_has_nothing_to_see)
{
    struct kiln_batch *batch = kiln_test_batch(NULL, 0);
    struct kiln_err err = {0};
    struct kiln_view *view;

    CHECK_EQ(kiln_view_new(batch, VIEW(0), &view, &err), -ENODATA);
    kiln_batch_unref(batch);
}

/* ---- time ---- */

static uint64_t duration_of(const struct kiln_drawn *drawn, uint32_t n)
{
    struct kiln_view *view = kiln_test_view(kiln_test_batch(drawn, n), NULL);
    uint64_t duration_ns = view->duration_ns;

    kiln_view_free(view);
    return duration_ns;
}

TEST(view, time_is_the_union_of_what_the_profiles_cover)
{
    const struct kiln_drawn consecutive[] = {{.time_ns = 110, .duration_ns = 10},
                                             {.time_ns = 100, .duration_ns = 10}};
    const struct kiln_drawn together[] = {{.time_ns = 100, .duration_ns = 10, .resource = "pid=1"},
                                          {.time_ns = 102, .duration_ns = 4, .resource = "pid=2"},
                                          {.time_ns = 105, .duration_ns = 10, .resource = "pid=3"}};
    const struct kiln_drawn endless[] = {{.time_ns = 100, .duration_ns = UINT64_MAX},
                                         {.time_ns = 1, .duration_ns = UINT64_MAX}};

    CHECK_EQ(duration_of(consecutive, 2), 20);
    CHECK_EQ(duration_of(together, 3), 15);
    CHECK(duration_of(endless, 2) == UINT64_MAX - 1);
}

TEST(view, durations_without_a_time_are_added_up_by_resource)
{
    const struct kiln_drawn untimed[] = {
        {.duration_ns = 10, .resource = "pid=1"},
        {.duration_ns = 10},
        {.duration_ns = 15, .resource = "pid=2"},
    };

    CHECK_EQ(duration_of(untimed, 3), 20);
    CHECK_EQ(duration_of(untimed, 1), 10);
}

/* ---- observations ---- */

static double count_of(const struct kiln_drawn *drawn, uint32_t n, const char *type)
{
    struct kiln_view *view =
        kiln_test_view(kiln_test_batch(drawn, n), VIEW(.sample_type = kiln_str_of(type)));
    double count = view->count;

    kiln_view_free(view);
    return count;
}

TEST(view, observations_are_counted_beside_the_values_where_both_line_up)
{
    struct kiln_drawn drawn[] = {
        {.stacks = "a 3\nb 4\n", .type = "samples", .unit = "count"},
        {.stacks = "a 300\nb 400\n", .type = "cpu", .unit = "nanoseconds"},
    };

    CHECK_EQ(count_of(drawn, 2, "cpu"), 7);
    drawn[0].stacks = "b 3\na 4\n";
    CHECK_EQ(count_of(drawn, 2, "cpu"), 2);
}

TEST(view, a_period_says_what_one_observation_weighs)
{
    const struct kiln_drawn drawn[] = {
        {.stacks = "a 5\n",
         .type = "alloc_objects",
         .unit = "count",
         .period_type = "space",
         .period_unit = "bytes",
         .period = 100},
        {.stacks = "a 1000\n",
         .type = "alloc_space",
         .unit = "bytes",
         .period_type = "space",
         .period_unit = "bytes",
         .period = 100},
        {.stacks = "a 1000\n",
         .type = "wall",
         .unit = "nanoseconds",
         .period_type = "wall",
         .period_unit = "nanoseconds",
         .period = 1},
    };

    CHECK_EQ(count_of(drawn, 3, "alloc_space"), 10);
    CHECK_EQ(count_of(drawn, 3, "alloc_objects"), 10);
    CHECK_EQ(count_of(drawn, 3, "wall"), 1);
}

TEST(view, a_timestamp_is_one_observation)
{
    const struct kiln_drawn drawn = {
        .stacks = "a 50@1 60@2\nb 70@3\n", .type = "off_cpu", .unit = "nanoseconds"};

    CHECK_EQ(count_of(&drawn, 1, "off_cpu"), 3);
}

/* ---- limits ---- */

TEST(view, memory_is_limited)
{
    struct kiln_batch *batch = kiln_test_stacks("main;parse;read 3\n");
    int64_t live = kiln_mem_live();
    struct kiln_err err = {0};
    struct kiln_view *view;

    CHECK_EQ(kiln_view_new(batch, VIEW(.memory_bytes = 100), &view, &err), KILN_E_LIMIT);
    CHECK_EQ(kiln_mem_live(), live);
    kiln_batch_unref(batch);
}

TEST(view, running_out_of_memory_anywhere_leaks_nothing)
{
    struct kiln_batch *batch =
        kiln_test_stacks("main@a.c:1;parse@b.c:2>next@b.c:3 3 t=1\nmain@a.c:1;0x12 4 t=2\n");
    const struct kiln_str label = KILN_STR("t=~[12]");
    int64_t live = kiln_mem_live();
    uint32_t failures = 0;

    /* Not until the first success: where the JIT has no memory, matching goes on without it. */
    for (uint64_t n = 1; n < 100; n++) {
        struct kiln_view *view = NULL;
        int r;

        kiln_mem_fail_at(n);
        r = kiln_view_new(batch,
                          VIEW(.focus = KILN_STR("parse"), .granularity = KILN_BY_LINE,
                               .labels = &label, .n_labels = 1),
                          &view, NULL);
        kiln_mem_fail_at(0);
        failures += r < 0;
        if (r == 0)
            CHECK_TEXT(kiln_test_view_text(view), "main a.c:1;parse b.c:2;next b.c:3 3\n");
        kiln_view_free(view);
        CHECK_EQ(kiln_mem_live(), live);
    }
    CHECK(failures > 15);
    kiln_batch_unref(batch);
}
