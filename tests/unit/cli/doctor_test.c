/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor.h"

#include "test.h"

static const char metrics[] = "# HELP kiln_host_cpu_seconds_total What it took.\n"
                              "# TYPE kiln_host_cpu_seconds_total counter\n"
                              "kiln_host_cpu_seconds_total 1.25\n"
                              "kiln_host_memory_bytes 31457280\n"
                              "kiln_host_rate_hertz 19\n"
                              "kiln_host_samples_total 1893\n"
                              "kiln_host_lost_samples_total 7\n"
                              "kiln_host_dropped_samples_total 5\n"
                              "kiln_host_foreign_samples_total 1000\n"
                              "kiln_export_dropped_samples_total{reason=\"memory\"} 20\n"
                              "kiln_export_dropped_samples_total{reason=\"spool_full\"} 30\n"
                              "kiln_host_stacks_total{end=\"complete\"} 900\n"
                              "kiln_host_stacks_total{end=\"no_user\"} 5000\n"
                              "kiln_host_stacks_total{end=\"compat\"} 300\n"
                              "kiln_host_stacks_total{end=\"jit\"} 100\n";

TEST(doctor, what_an_agent_costs_is_read_from_its_metrics)
{
    struct kiln_doctor_agent agent = {.cpu_s = -1};

    kiln_doctor_read_metrics(KILN_STR(metrics), &agent);
    CHECK(agent.cpu_s == 1.25);
    CHECK_EQ(agent.memory_bytes, 31457280);
    CHECK_EQ(agent.hz, 19);
    CHECK_EQ(agent.samples, 1893);
    CHECK_EQ(agent.lost, 62);
    CHECK_EQ(agent.complete, 900);
    CHECK_EQ(agent.stacks, 1012);
}

TEST(doctor, metrics_that_are_cut_off_or_strange_do_no_harm)
{
    struct kiln_doctor_agent agent = {.cpu_s = -1};

    for (size_t n = 0; n < sizeof(metrics); n++)
        kiln_doctor_read_metrics((struct kiln_str){metrics, n}, &agent);
    kiln_doctor_read_metrics(
        KILN_STR("kiln_host_samples_total{ 1\nkiln_host_rate_hertz -4\n"
                 "kiln_host_memory_bytes 1e300\nkiln_host_samples_total nan\n"),
        &agent);
    CHECK_EQ(agent.hz, 0);
    CHECK_EQ(agent.memory_bytes, 0);
    CHECK_EQ(agent.samples, 0);
}

TEST(doctor, what_is_missing_comes_with_what_it_costs_and_how_to_have_it)
{
    static const struct kiln_term term;
    struct kiln_survey survey = {0};
    struct kiln_doctor_agent agent = {0};
    struct kiln_finding *f;
    struct kiln_buf out;

    f = kiln_survey_add(&survey, "kernel", "btf", KILN_FINDING_OK);
    kiln_finding_say(f, "%d types", 3);
    CHECK(kiln_doctor_works(&survey));
    f = kiln_survey_add(&survey, "kernel", "clocks", KILN_FINDING_OK);
    kiln_finding_say(f, "refused");
    kiln_finding_lacks(f, KILN_FINDING_LESS, "less is seen", "run as root");
    CHECK(kiln_doctor_works(&survey));
    f->state = KILN_FINDING_MISSING;
    CHECK(!kiln_doctor_works(&survey));
    kiln_buf_init(&out, 1 << 16);
    kiln_doctor_say(&survey, &agent, &term, &out);
    CHECK(
        kiln_str_contains(kiln_buf_str(&out), KILN_STR("does not work here: 1 thing is missing")));
    CHECK(kiln_str_contains(kiln_buf_str(&out),
                            KILN_STR("  ok      btf                    3 types\n")));
    CHECK(kiln_str_contains(kiln_buf_str(&out), KILN_STR("without: less is seen\n")));
    CHECK(kiln_str_contains(kiln_buf_str(&out), KILN_STR("to have: run as root\n")));
    kiln_buf_clear(&out);
    kiln_doctor_say_json(&survey, &agent, &out);
    CHECK(kiln_str_contains(kiln_buf_str(&out), KILN_STR("\"works\": false")));
    CHECK(kiln_str_contains(kiln_buf_str(&out), KILN_STR("\"agent\": null")));
    kiln_buf_done(&out);
}

/* As kallsyms_show_value() of the kernel decides. */
TEST(doctor, what_hides_the_kernels_addresses_is_what_is_to_be_changed)
{
    struct kiln_str neither = kiln_str_of(kiln_survey_symbols_advice(false, 2));

    CHECK_TEXT(kiln_survey_symbols_advice(false, 0), "grant CAP_SYSLOG");
    CHECK_TEXT(kiln_survey_symbols_advice(false, 1), "grant CAP_SYSLOG");
    CHECK(strncmp(kiln_survey_symbols_advice(true, 2), "sudo sysctl kernel.kptr_restrict=1", 34) ==
          0);
    CHECK(kiln_str_contains(neither, KILN_STR("CAP_SYSLOG")) &&
          kiln_str_contains(neither, KILN_STR("kptr_restrict=1")));
}

TEST(doctor, one_finding_too_many_does_no_harm)
{
    struct kiln_survey survey = {0};

    for (uint32_t i = 0; i < KILN_FINDINGS_MAX + 3; i++)
        kiln_finding_say(kiln_survey_add(&survey, "a", "b", KILN_FINDING_OK), "%u", i);
    CHECK_EQ(survey.n, KILN_FINDINGS_MAX);
}
