/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: what the program asks for, and over it what variables say. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "inproc/options.h"
#include "test.h"

static struct kiln_in_settings settings;

static void fill(const struct kiln_options *options)
{
    kiln_in_options_fill(options, &settings);
}

static const char *value_of(const char *key)
{
    for (uint32_t i = 0; i < settings.n_attributes; i++) {
        if (strcmp(settings.attributes[i].key, key) == 0)
            return settings.attributes[i].value;
    }
    return "";
}

TEST(options, have_defaults)
{
    fill(NULL);
    CHECK_EQ(settings.profiles, KILN_PROFILE_DEFAULT);
    CHECK_EQ(settings.cpu_hz, 100);
    CHECK_EQ(settings.alloc_bytes, 512 << 10);
    CHECK_EQ(settings.depth, 128);
    CHECK_EQ(settings.samples_max, 10000);
    CHECK_EQ(settings.timeout_ms, 10000);
    CHECK_TEXT(settings.out_dir, "");
    CHECK_TEXT(settings.attributes[0].key, "service.name");
    CHECK_TEXT(settings.attributes[0].value, "unit_inproc_options");
}

TEST(options, of_the_program_count_where_no_variable_is_set)
{
    struct kiln_options options = {
        .service_name = "shop", .cpu_hz = 19, .alloc_bytes = 1000, .out_dir = "/x"};

    fill(&options);
    CHECK_EQ(settings.cpu_hz, 19);
    CHECK_EQ(settings.alloc_bytes, 1000);
    CHECK_TEXT(settings.out_dir, "/x");
    CHECK_TEXT(value_of("service.name"), "shop");
    setenv("KILN_CPU_HZ", "37", 1);
    setenv("KILN_ALLOC_BYTES", "1MiB", 1);
    setenv("KILN_OUT_DIR", "/y", 1);
    setenv("OTEL_SERVICE_NAME", "store", 1);
    fill(&options);
    CHECK_EQ(settings.cpu_hz, 37);
    CHECK_EQ(settings.alloc_bytes, 1 << 20);
    CHECK_TEXT(settings.out_dir, "/y");
    CHECK_TEXT(value_of("service.name"), "store");
    unsetenv("KILN_CPU_HZ");
    unsetenv("KILN_ALLOC_BYTES");
    unsetenv("KILN_OUT_DIR");
    unsetenv("OTEL_SERVICE_NAME");
}

TEST(options, numbers_that_are_none_or_beyond_sense_do_no_harm)
{
    setenv("KILN_CPU_HZ", "many", 1);
    fill(NULL);
    CHECK_EQ(settings.cpu_hz, 100);
    setenv("KILN_CPU_HZ", "-5", 1);
    fill(NULL);
    CHECK_EQ(settings.cpu_hz, 100);
    setenv("KILN_CPU_HZ", "18446744073709551615k", 1);
    fill(NULL);
    CHECK_EQ(settings.cpu_hz, 100);
    setenv("KILN_CPU_HZ", "4000000000", 1);
    fill(NULL);
    CHECK_EQ(settings.cpu_hz, 1000);
    setenv("KILN_CPU_HZ", "0", 1);
    fill(&(struct kiln_options){.cpu_hz = 19});
    CHECK_EQ(settings.cpu_hz, 19);
    unsetenv("KILN_CPU_HZ");
    setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "700", 1);
    setenv("OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT", "0", 1);
    fill(NULL);
    CHECK_EQ(settings.timeout_ms, 700);
    unsetenv("OTEL_EXPORTER_OTLP_TIMEOUT");
    unsetenv("OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT");
}

TEST(options, profiles_are_words)
{
    setenv("KILN_PROFILES", "cpu, heap", 1);
    fill(NULL);
    CHECK_EQ(settings.profiles, KILN_PROFILE_CPU | KILN_PROFILE_HEAP);
    setenv("KILN_PROFILES", "none", 1);
    fill(NULL);
    CHECK_EQ(settings.profiles, 0);
    setenv("KILN_PROFILES", "all", 1);
    fill(NULL);
    CHECK_EQ(settings.profiles, KILN_PROFILE_DEFAULT | KILN_PROFILE_MMAP);
    unsetenv("KILN_PROFILES");
}

TEST(options, the_endpoint_of_profiles_is_taken_as_it_is)
{
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4318", 1);
    fill(NULL);
    CHECK_TEXT(settings.endpoint, "http://a:4318");
    CHECK(settings.endpoint_is_base);
    setenv("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "http://b/profiles", 1);
    fill(NULL);
    CHECK_TEXT(settings.endpoint, "http://b/profiles");
    CHECK(!settings.endpoint_is_base);
    unsetenv("OTEL_EXPORTER_OTLP_ENDPOINT");
    unsetenv("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT");
}

TEST(options, a_text_that_is_too_long_is_left_out)
{
    char text[KILN_IN_TEXT_MAX + 1];

    memset(text, 'x', KILN_IN_TEXT_MAX);
    text[KILN_IN_TEXT_MAX] = '\0';
    setenv("KILN_OUT_DIR", text, 1);
    fill(NULL);
    CHECK_TEXT(settings.out_dir, "");
    text[KILN_IN_TEXT_MAX - 1] = '\0';
    setenv("KILN_OUT_DIR", text, 1);
    fill(NULL);
    CHECK_TEXT(settings.out_dir, text);
    unsetenv("KILN_OUT_DIR");
}

TEST(options, a_folder_is_where_the_program_is_when_it_starts)
{
    char here[KILN_IN_TEXT_MAX], wanted[2 * KILN_IN_TEXT_MAX];

    CHECK(getcwd(here, sizeof(here)) != NULL);
    snprintf(wanted, sizeof(wanted), "%s/a/b", here);
    fill(&(struct kiln_options){.out_dir = "a/b"});
    CHECK_TEXT(settings.out_dir, wanted);
}

TEST(options, attributes_of_variables_come_before_those_of_the_program)
{
    struct kiln_attribute own[] = {{"git.commit", "abc"}, {"a", "program"}};
    struct kiln_options options = {.resource = own, .n_resource = 2};

    setenv("OTEL_RESOURCE_ATTRIBUTES", "a=x%2Cy, service.name = till ,b=", 1);
    fill(&options);
    CHECK_TEXT(value_of("a"), "x,y");
    CHECK_TEXT(value_of("git.commit"), "abc");
    CHECK_TEXT(value_of("b"), "");
    CHECK_TEXT(settings.attributes[0].value, "till");
    setenv("OTEL_RESOURCE_ATTRIBUTES", "a=x,b", 1);
    fill(&options);
    CHECK_TEXT(value_of("a"), "program");
    setenv("OTEL_RESOURCE_ATTRIBUTES", "a=%2", 1);
    fill(&options);
    CHECK_TEXT(value_of("a"), "program");
    unsetenv("OTEL_RESOURCE_ATTRIBUTES");
}
