/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/mem.h"
#include "codec/perf.h"
#include "decoded.h"

static struct kiln_batch *decode(const char *text)
{
    return kiln_test_decode(kiln_perf_decode, kiln_str_of(text));
}

static void check_stacks(const char *text, const char *stacks)
{
    struct kiln_batch *batch = decode(text);

    CHECK_TEXT(kiln_test_stacks(batch, 0), stacks);
    kiln_batch_unref(batch);
}

static void check_type(const struct kiln_batch *batch, uint32_t profile, const char *type,
                       const char *unit)
{
    CHECK_STR(kiln_batch_str(batch, batch->profiles[profile].sample_type.type), type);
    CHECK_STR(kiln_batch_str(batch, batch->profiles[profile].sample_type.unit), unit);
}

static int64_t number(const struct kiln_batch *batch, uint32_t sample, const char *key)
{
    const struct kiln_attr *attr =
        kiln_set_find(batch, batch->samples[sample].attrs, kiln_str_of(key));

    return attr ? attr->value.i : -1;
}

#define BURN                                                                                       \
    "burn 17338/17340 [001]  1846.411485:   10101010 cpu-clock: \n"                                \
    "\t    55f482112175 hot+0x2c (/bin/burn)\n"                                                    \
    "\t    55f4821121d4 main+0x2a (/bin/burn)\n"                                                   \
    "\t           2724a __libc_start_call_main+0x7a (/usr/lib/libc.so.6)\n"                        \
    "\n"

TEST(perf, a_sample_has_its_stack_its_thread_and_its_time_on_the_cpu)
{
    struct kiln_batch *batch = decode(
        "# hostname : box\n#\n" BURN "burn 17338/17341 [000]  1846.421485:   10101010 cpu-clock: \n"
        "\tffffffff821f8703 schedule+0x23 ([kernel.kallsyms])\n");
    const struct kiln_dict *d = &batch->dict;

    CHECK_TEXT(kiln_test_stacks(batch, 0),
               "__libc_start_call_main@native;main@native;hot@native 10101010\n"
               "schedule@kernel 10101010\n");
    check_type(batch, 0, "cpu", "nanoseconds");
    CHECK_EQ(batch->profiles[0].period, 10101010);
    CHECK_EQ(batch->profiles[0].duration_ns, 10000000);
    CHECK_EQ(batch->profiles[0].time_ns, 0); /* not since 1970 */
    CHECK_STR(kiln_set_text(batch, batch->samples[0].attrs, KILN_STR("thread.name")), "burn");
    CHECK_EQ(number(batch, 0, "process.pid"), 17338);
    CHECK_EQ(number(batch, 0, "thread.id"), 17340);
    CHECK_EQ(number(batch, 0, "cpu.logical_number"), 1);
    CHECK_EQ(number(batch, 1, "thread.id"), 17341);
    CHECK_STR(kiln_set_text(batch, batch->resources[0].attrs, KILN_STR("host.name")), "box");
    CHECK(d->locations[1].address == 0x55f482112175);
    CHECK_STR(d->strings[d->mappings[d->locations[1].mapping].filename], "/bin/burn");
    kiln_batch_unref(batch);
}

TEST(perf, fields_may_be_absent)
{
    struct kiln_batch *batch = decode("burn 17338  1846.411485:   500 cycles:u: \n\t1175 hot\n\n");

    CHECK_TEXT(kiln_test_stacks(batch, 0), "hot 500\n");
    check_type(batch, 0, "cycles", "count");
    CHECK_EQ(number(batch, 0, "thread.id"), 17338);
    CHECK_EQ(number(batch, 0, "process.pid"), -1);
    CHECK_EQ(number(batch, 0, "cpu.logical_number"), -1);
    kiln_batch_unref(batch);
    check_stacks("burn 17338 cycles: \n\t1175 hot\n\t11d4 main\n\nburn 1 cycles: \n\t1175 hot\n",
                 "main;hot 1\nhot 1\n");
    check_stacks("burn 17338 700 cycles: \n\t1175 hot\n", "hot 700\n");
    check_stacks("burn 17338\n\t1175 hot\n", "hot 1\n");
    check_stacks("burn 17338  1846.411485: \n\t1175 hot\n", "hot 1\n");
    check_stacks("\t1175 hot\n\t11d4 main\n\n\n\t1175 hot\n\n", "main;hot 1\nhot 1\n");
    check_stacks(
        "   burn 17640  1858.909082:   10 cpu-clock:   55f482112171 hot+0x28 (/bin/burn)\n"
        "   burn 17640  1858.919188:   20 cpu-clock:   55f482112171 [unknown] (/bin/burn)\n",
        "hot@native 10\n0x55f482112171@native 20\n");
}

TEST(perf, a_comm_may_hold_blanks_digits_and_colons)
{
    static const struct {
        const char *line, *comm;
        int64_t tid;
    } cases[] = {
        {"Chrome IO Thread 77 [003] 5.000001: 1 cycles: \n", "Chrome IO Thread", 77},
        {"worker 3 1234 [000] 5.000001: 1 cycles: \n", "worker 3", 1234},
        {"kworker/0:1-events: 12 [000] 5.000001: 1 cycles: \n", "kworker/0:1-events:", 12},
        {"[1] 12 [000] 5.000001: 1 cycles: \n", "[1]", 12},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        struct kiln_batch *batch = decode(cases[i].line);

        CHECK_STR(kiln_set_text(batch, batch->samples[0].attrs, KILN_STR("thread.name")),
                  cases[i].comm);
        CHECK_EQ(number(batch, 0, "thread.id"), cases[i].tid);
        CHECK_EQ(number(batch, 0, "cpu.logical_number"), cases[i].tid == 77 ? 3 : 0);
        kiln_batch_unref(batch);
    }
}

TEST(perf, symbols_may_hold_blanks_and_parentheses)
{
    check_stacks("a 1 1.0: 1 cycles: \n"
                 "\t10 operator new(unsigned long)+0x1c (/usr/lib/libstdc++.so.6)\n"
                 "\t20 (anonymous namespace)::run(int) const (/memfd:x (deleted))\n"
                 "\t30 foo(int)\n",
                 "foo(int);(anonymous namespace)::run(int) const@native;"
                 "operator new(unsigned long)@native 1\n");
}

TEST(perf, what_is_unknown_keeps_its_address)
{
    check_stacks("a 1 1.0: 1 cycles: \n\t146f2c [unknown] (/usr/bin/perf)\n\t7f01 [unknown] "
                 "([unknown])\n",
                 "0x7f01;0x146f2c@native 1\n");
}

TEST(perf, inlined_frames_are_lines_of_the_frame_they_are_in)
{
    check_stacks("a 1 1.0: 1 cycles: \n"
                 "\t1175 mix (inlined)\n\t1175 turn (inlined)\n\t1175 hot+0x2c (/bin/burn)\n"
                 "\t11d4 main+0x2a (/bin/burn)\n",
                 "main@native;hot;(turn);(mix)@native 1\n");
}

TEST(perf, source_lines_belong_to_the_frame_before)
{
    struct kiln_batch *batch = decode("a 1 1.0: 1 cycles: \n"
                                      "\t1175 hot+0x2c (/bin/burn)\n  burn.c:4 (discriminator 2)\n"
                                      "\tffffffff82 schedule ([kernel.kallsyms])\n"
                                      "  [kernel.kallsyms][ffffffff821f8703]\n");
    const struct kiln_dict *d = &batch->dict;
    const struct kiln_line *line = &d->lines[d->locations[1].first];

    CHECK_EQ(line->line, 4);
    CHECK_STR(d->strings[d->functions[line->function].filename], "burn.c");
    CHECK_TEXT(kiln_test_stacks(batch, 0), "schedule@kernel;hot@native 1\n");
    kiln_batch_unref(batch);
}

TEST(perf, every_event_is_a_profile_of_its_own)
{
    struct kiln_batch *batch =
        decode("a 1 [000] 1.0: 10 cpu-clock: \n\t10 f (/x)\n\n"
               "a 1 [000] 2.0: 1 sched:sched_switch: prev_comm=a prev_pid=1 ==> next_comm=b\n"
               "\t20 g (/x)\n\n"
               "a 1 [000] 3.0: 12 cpu-clock: \n\t10 f (/x)\n\n"
               "a 1 [000] 4.0: 7 task-clock:u: \n\t10 f (/x)\n\n");

    CHECK_EQ(batch->n_profiles, 3);
    CHECK_TEXT(kiln_test_stacks(batch, 0), "f@native 10\nf@native 12\n");
    CHECK_TEXT(kiln_test_stacks(batch, 1), "g@native 1\n");
    check_type(batch, 0, "cpu", "nanoseconds");
    check_type(batch, 1, "sched.sched_switch", "count");
    check_type(batch, 2, "task-clock", "nanoseconds"); /* cpu is taken: nothing is counted twice */
    CHECK_EQ(batch->profiles[0].period, 0);            /* it varies */
    CHECK_EQ(batch->profiles[1].period, 1);
    CHECK(batch->profiles[0].duration_ns == 3000000000u);
    kiln_batch_unref(batch);
}

TEST(perf, other_records_are_passed_over)
{
    check_stacks("a 1 [000] 1.0: PERF_RECORD_MMAP2 -1/0: [0x1(0x2) @ 0 00:00 0 0]: ---p x\n"
                 "a 1 [000] 1.0: 10 cpu-clock: \n\t10 f (/x)\n\n",
                 "f@native 10\n");
}

TEST(perf, code_made_by_a_jit_is_known_by_its_map)
{
    check_stacks("node 1 1.0: 1 cycles: \n\t10 LazyCompile:*f /a.js:1 (/tmp/perf-1.map)\n",
                 "LazyCompile:*f /a.js:1@jit 1\n");
}

TEST(perf, a_line_that_is_neither_is_an_error_that_names_it)
{
    struct kiln_err err;

    CHECK_EQ(kiln_test_refused(kiln_perf_decode, KILN_STR(BURN "what is this\n"), &err),
             KILN_E_MALFORMED);
    CHECK_TEXT(err.where, "line 6");
    CHECK_TEXT(err.text, "neither a sample nor a frame: what is this");
}

TEST(perf, running_out_of_memory_is_an_error_and_leaks_nothing)
{
    kiln_test_decode_starved(kiln_perf_decode,
                             KILN_STR("# hostname : b\xff\n" BURN "\t1 f (inlined)\n"));
}

TEST(perf, it_is_known_by_its_first_sample)
{
    CHECK(kiln_perf_detect(KILN_STR(BURN)));
    CHECK(kiln_perf_detect(KILN_STR("# ========\n# hostname : x\n\n" BURN)));
    CHECK(kiln_perf_detect(KILN_STR("burn 17338 cycles: \n\t1175 hot\n")));
    CHECK(kiln_perf_detect(KILN_STR(
        "  burn 17640  1858.909082:   10 cpu-clock:   55f482112171 hot+0x28 (/bin/burn)\n")));
    CHECK(!kiln_perf_detect(KILN_STR("")));
    CHECK(!kiln_perf_detect(KILN_STR("main;parse;read 3\n")));
    CHECK(!kiln_perf_detect(KILN_STR("# only a comment\n")));
    CHECK(!kiln_perf_detect(KILN_STR("Note: this is text\n\tand more\n")));
    CHECK(!kiln_perf_detect(KILN_STR("{\"a\": 1}")));
    CHECK(!kiln_perf_detect(KILN_STR("12 34 56\n")));
}
