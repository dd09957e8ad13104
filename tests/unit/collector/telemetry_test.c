/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/telemetry.h"

#include "collector/config.h"
#include "test.h"

struct bench {
    struct kiln_collector_config *config;
    struct kiln_telemetry telemetry;
    struct kiln_err err;
};

static int read_of(struct bench *b, const char *uri)
{
    const struct kiln_collector_sources sources = {.uris = &uri, .n_uris = 1};

    *b = (struct bench){0};
    CHECK_OK(kiln_collector_config_load(&sources, &b->config, &b->err));
    return kiln_telemetry_read(b->config->root, &b->telemetry, &b->err);
}

static void done(struct bench *b)
{
    kiln_collector_config_unref(b->config);
}

TEST(telemetry, without_a_word_metrics_are_at_port_8888_and_the_log_is_for_people)
{
    struct bench b;

    CHECK_OK(read_of(&b, "yaml:{}"));
    CHECK_EQ(b.telemetry.log_level, KILN_LOG_INFO);
    CHECK_EQ(b.telemetry.log_form, KILN_LOG_LOGFMT);
    CHECK(!b.telemetry.metrics_said);
    CHECK_TEXT(b.telemetry.metrics_address, "localhost:8888");
    CHECK(b.telemetry.left_out == NULL);
    done(&b);
}

TEST(telemetry, log_and_metrics_are_as_they_are_said)
{
    static const struct {
        const char *uri, *address;
        enum kiln_log_level level;
        enum kiln_log_form form;
    } cases[] = {
        {"yaml:service::telemetry: {logs: {level: DEBUG, encoding: json, sampling: {initial: 1}}}",
         "localhost:8888", KILN_LOG_DEBUG, KILN_LOG_JSON},
        {"yaml:service::telemetry::metrics: {level: none}", "", KILN_LOG_INFO, KILN_LOG_LOGFMT},
        {"yaml:service::telemetry::metrics: {level: detailed, address: ':9999'}", ":9999",
         KILN_LOG_INFO, KILN_LOG_LOGFMT},
        {"yaml:service::telemetry::metrics::readers: [{pull: {exporter: {prometheus: {host: "
         "0.0.0.0, port: 1234, without_units: true}}}}]",
         "0.0.0.0:1234", KILN_LOG_INFO, KILN_LOG_LOGFMT},
        {"yaml:service::telemetry::metrics::readers: [{pull: {exporter: {prometheus: {host: "
         "'::1'}}}}]",
         "[::1]:8888", KILN_LOG_INFO, KILN_LOG_LOGFMT},
        {"yaml:service::telemetry::metrics::readers: []", "", KILN_LOG_INFO, KILN_LOG_LOGFMT},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        struct bench b;

        CHECK_OK(read_of(&b, cases[i].uri));
        CHECK_TEXT(b.telemetry.metrics_address, cases[i].address);
        CHECK_EQ(b.telemetry.log_level, cases[i].level);
        CHECK_EQ(b.telemetry.log_form, cases[i].form);
        CHECK(b.telemetry.left_out == NULL);
        done(&b);
    }
}

TEST(telemetry, what_would_be_sent_is_left_out_and_told_of)
{
    struct bench b;

    CHECK_OK(read_of(&b, "yaml:service::telemetry::metrics::readers:\n"
                         "  - periodic: {exporter: {otlp: {endpoint: x}}}\n"));
    CHECK_EQ(b.telemetry.left_out->line, 2);
    CHECK_TEXT(b.telemetry.metrics_address, "");
    done(&b);
}

TEST(telemetry, faults_are_said_with_their_place)
{
    static const struct {
        const char *uri, *said;
    } cases[] = {
        {"yaml:service::telemetry::logs: {level: loud}",
         "service::telemetry::logs::level: unrecognized level: \"loud\" (debug, info, warn or "
         "error)"},
        {"yaml:service::telemetry::logs: {encoding: xml}",
         "service::telemetry::logs::encoding: \"xml\" is neither console nor json"},
        {"yaml:service::telemetry::metrics: {level: all}",
         "service::telemetry::metrics::level: unknown metrics level \"all\" (none, basic, normal "
         "or detailed)"},
        {"yaml:service::telemetry::metrics::readers: [{pul: {}}]",
         "unknown key pul (did you mean pull?)"},
        {"yaml:service::telemetry::metrics::readers: [{pull: {exporter: {prometeus: {}}}}]",
         "unknown key prometeus (did you mean prometheus?)"},
        {"yaml:service::telemetry::metrics::readers: [{pull: {exporter: {prometheus: {hots: a}}}}]",
         "unknown key hots (did you mean host?)"},
        {"yaml:service::telemetry::metrics::readers: [{periodic: {intervall: 1}}]",
         "unknown key intervall (did you mean interval?)"},
        {"yaml:service::telemetry: {metric: {}}", "unknown key metric (did you mean metrics?)"},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        struct bench b;

        CHECK_EQ(read_of(&b, cases[i].uri), KILN_E_MALFORMED);
        CHECK_TEXT(b.err.text, cases[i].said);
        CHECK(kiln_str_contains(kiln_str_of(b.err.where), KILN_STR("line 1, column")));
        done(&b);
    }
}
