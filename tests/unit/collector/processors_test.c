/* SPDX-License-Identifier: Apache-2.0 */
/* What processors say to their part of a configuration; that they are made, started and stopped. */
#include <stdlib.h>

#include "base/mem.h"
#include "collector/graph.h"
#include "drawn.h"
#include "pipeline/processors/counts.h"
#include "test.h"

/* "" where a pipeline with this processor could be made, started and stopped; else the error. */
static const char *said(const char *type, const char *settings)
{
    static char answer[512];
    char text[2048];
    struct kiln_config *config;
    struct kiln_graph *graph;
    struct kiln_err err = {0};
    int64_t live = kiln_mem_live();

    snprintf(text, sizeof(text),
             "processors: {%s: %s}\n"
             "receivers: {nop: }\nexporters: {nop: }\n"
             "service: {pipelines: {profiles: {receivers: [nop], processors: [%s], "
             "exporters: [nop]}}}\n",
             type, settings, type);
    answer[0] = '\0';
    CHECK_OK(kiln_config_parse(kiln_str_of(text), &config, &err));
    if (kiln_graph_new(kiln_config_root(config), &(struct kiln_graph_opts){0}, &graph, &err) == 0) {
        CHECK_OK(kiln_graph_start(graph, &err));
        kiln_graph_stop(graph, 0);
        kiln_graph_free(graph);
    } else {
        snprintf(answer, sizeof(answer), "%s", err.text);
    }
    kiln_config_free(config);
    CHECK_EQ(kiln_mem_live(), live);
    return answer;
}

#define SAYS(type, settings, what) CHECK(strstr(said(type, settings), what))
#define RUNS(type, settings)       CHECK_TEXT(said(type, settings), "")

TEST(processors, batch)
{
    RUNS("batch", "");
    RUNS("batch/2", "{timeout: 15s, send_batch_size: 500}");
    RUNS("batch", "{timeout: 0s, send_batch_max_size: 10000, metadata_keys: [x], "
                  "metadata_cardinality_limit: 10}");
    SAYS("batch", "{send_batch_size: 10, send_batch_max_size: 5}",
         "send_batch_max_size must be greater or equal to send_batch_size");
    SAYS("batch", "{send_batch_sise: 10}", "send_batch_size");
    SAYS("batch", "{metadata_keys: [x-team, X-Team]}",
         "duplicate entry in metadata_keys: \"X-Team\" (case-insensitive)");
    SAYS("batch", "{metadata_keys: [a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q]}",
         "metadata_keys: at most 16");
}

TEST(processors, memory_limiter)
{
    RUNS("memory_limiter", "{check_interval: 1s, limit_mib: 400, spike_limit_mib: 80}");
    RUNS("memory_limiter", "{check_interval: 1s, limit_percentage: 75}");
    SAYS("memory_limiter", "", "'check_interval' must be greater than zero");
    SAYS("memory_limiter", "{check_interval: 1s}", "'limit_mib' or 'limit_percentage'");
    SAYS("memory_limiter", "{check_interval: 1s, limit_mib: 4, spike_limit_mib: 8}",
         "'spike_limit_mib' must be smaller than 'limit_mib'");
}

TEST(processors, resource)
{
    RUNS("resource", "{attributes: [{key: a, value: b, action: upsert}]}");
    RUNS("resource", "{attributes: [{key: a, value: b, action: INSERT}]}");
    SAYS("resource", "", "attributes");
    SAYS("resource", "{attributes: [{key: a, action: ups}]}", "action is insert");
}

TEST(processors, attributes)
{
    RUNS("attributes", "{actions: [{key: thread.name, action: hash}]}");
    SAYS("attributes", "{actions: [{key: thread.name}]}", "action is insert");
    SAYS("attributes", "", "actions: a list of actions belongs here");
}

TEST(processors, filter)
{
    RUNS("filter", "{error_mode: ignore, profile_conditions: ['profile.period == 1', "
                   "{context: sample, conditions: ['values[0] == 1']}]}");
    RUNS("filter", "{profiles: {profile: ['attributes[\"a\"] == \"b\"'], "
                   "resource: ['attributes[\"a\"] == \"b\"']}}");
    SAYS("filter", "{profile_conditions: ['profile.perod == 1']}",
         "column 1: there is no such path: \"profile.perod == 1\"");
    SAYS("filter", "{error_mode: maybe}", "error_mode is ignore, silent or propagate");
    SAYS("filter", "{profiles: {span: ['a == b']}}", "profiles has lists for");
}

TEST(processors, transform)
{
    RUNS("transform", "{error_mode: silent, profile_statements: ["
                      "'set(resource.attributes[\"a\"], \"b\")', {context: profile, "
                      "conditions: ['period > 1', 'period < 0'], statements: ['set(period, 5)', "
                      "'set(period, 6)']}]}");
    SAYS("transform", "{profile_statements: ['sett(profile.period, 1)']}",
         "column 1: there is no such editor");
    SAYS("transform", "{profile_statements: [{context: span, statements: []}]}",
         "context is resource, scope, profile or sample");
    SAYS("transform",
         "{profile_statements: [{context: profile, conditions: ['x'], "
         "statements: ['set(period, 5)']}]}",
         "there is no such path");
    SAYS("transform", "{trace_statements: []}", "trace_statements");
    SAYS("transform",
         "{profile_statements: ['set(resource.cache[\"a\"], 1)', 'set(profile.period, 1)']}",
         "the cache is that of the innermost context");
}

TEST(processors, symbolize)
{
    RUNS("symbolize", "");
    RUNS("symbolize", "{timeout: 1s}");
    SAYS("symbolize", "{timeout: soon}", "timeout");
}

/* Where deliveries end, and what came last. */
static struct kiln_batch *came;

static void take(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    (void)consumer;
    came = kiln_batch_ref(delivery->batch);
    kiln_delivery_end(delivery, &(struct kiln_outcome){0});
}

static void ended(struct kiln_delivery *delivery, const struct kiln_outcome *outcome)
{
    (void)delivery;
    CHECK_EQ(outcome->code, 0);
}

/* Sends a batch, which it takes over, through the redaction of these settings. */
static struct kiln_processor_counts redacted(const char *yaml, struct kiln_batch *batch,
                                             struct kiln_metrics *metrics)
{
    const struct kiln_component_type *type =
        kiln_component_find(KILN_PROCESSOR, KILN_STR("redaction"));
    struct kiln_consumer end = {.consume = take};
    struct kiln_component_env env = {
        .id = "redaction/a", .metrics = metrics, .next[KILN_SIGNAL_PROFILES] = &end};
    struct kiln_delivery delivery = {.batch = batch, .done = ended};
    void *settings = calloc(1, type->settings_size);
    struct kiln_component *component;
    struct kiln_config *config;
    struct kiln_err err = {0};

    CHECK_OK(kiln_config_parse(kiln_str_of(yaml), &config, &err));
    CHECK_OK(type->read(kiln_config_root(config), settings, &err));
    CHECK_OK(type->make(&env, settings, &component, &err));
    component->in->consume(component->in, &delivery);
    component->ops->free(component);
    free(settings);
    kiln_config_free(config);
    return kiln_processor_counts(
        &(struct kiln_processor_opts){.id = "redaction/a", .metrics = metrics});
}

/* Two sets of rules are one processor, and what passes both is counted once. */
TEST(processors, redaction_counts_what_comes_and_goes)
{
    static const char yaml[] = "{rules: [{match: name, regex: customer, action: hash}], "
                               "allow_all_keys: true, blocked_values: [x]}";
    struct kiln_processor_counts counts;
    struct kiln_metrics *metrics;

    CHECK_OK(kiln_metrics_new(&metrics));
    counts = redacted(yaml, kiln_test_stacks("a 1\nb 2\n"), metrics);
    CHECK_EQ(kiln_metric_value(counts.incoming), 2);
    CHECK_EQ(kiln_metric_value(counts.outgoing), 2);
    kiln_batch_unref(came);
    kiln_metrics_free(metrics);
}

/* What redaction leaves of the attributes card, id (a number), note, token and url: "k=v ...". */
static const char *left(const char *yaml)
{
    static const struct kiln_drawn profile = {
        .resource = "card=n4111111111111,id=4111111111111,note=x4111111111111y,token=abc,"
                    "url=https://host7/api/v1/users/42/posts?id=7",
        .stacks = "a 1\n"};
    static const char *const keys[] = {"card", "id", "note", "token", "url"};
    static char text[1024];
    struct kiln_metrics *metrics;

    CHECK_OK(kiln_metrics_new(&metrics));
    redacted(yaml, kiln_test_batch(&profile, 1), metrics);
    text[0] = '\0';
    for (size_t i = 0; i < KILN_ARRAY_LEN(keys); i++) {
        const struct kiln_attr *attr =
            kiln_set_find(came, came->resources[0].attrs, kiln_str_of(keys[i]));
        size_t at = strlen(text);

        if (attr && attr->value.kind == KILN_VALUE_INT)
            snprintf(text + at, sizeof(text) - at, "%s=%lld ", keys[i], (long long)attr->value.i);
        else if (attr)
            snprintf(text + at, sizeof(text) - at, "%s=%.*s ", keys[i],
                     KILN_STR_ARG(kiln_batch_str(came, (uint32_t)attr->value.str)));
    }
    kiln_batch_unref(came);
    kiln_metrics_free(metrics);
    CHECK_EQ(kiln_mem_live(), 0);
    return text;
}

#define URL "url=https://host7/api/v1/users/42/posts?id=7 "

TEST(processors, redaction_of_attributes_is_as_in_the_collector)
{
    CHECK_TEXT(left("{allow_all_keys: true, blocked_values: ['4[0-9]{12}']}"),
               "card=n**** id=4111111111111 note=x****y token=abc " URL);
    CHECK_TEXT(left("{allow_all_keys: true, blocked_values: ['4[0-9]{12}'], "
                    "redact_all_types: true}"),
               "card=n**** id=**** note=x****y token=abc " URL);
    CHECK_TEXT(left("{allow_all_keys: true, blocked_values: ['4[0-9]{12}'], "
                    "allowed_values: ['^x'], ignored_keys: [card]}"),
               "card=n4111111111111 id=4111111111111 note=x4111111111111y token=abc " URL);
    CHECK_TEXT(left("{allowed_keys: [note, url], ignored_key_patterns: ['^tok'], "
                    "blocked_values: ['4[0-9]{12}', abc]}"),
               "note=x****y token=abc " URL);
    CHECK_TEXT(left("{allowed_keys: [], ignored_keys: [id]}"), "id=4111111111111 ");
    CHECK_TEXT(left("{allow_all_keys: true, blocked_key_patterns: ['tok', '^id$']}"),
               "card=n4111111111111 id=**** note=x4111111111111y token=**** " URL);
    CHECK_TEXT(left("{allowed_keys: [url], url_sanitizer: {enabled: true, attributes: [url]}}"),
               "url=https://host7/api/v1/users/*/posts ");
    CHECK_TEXT(left("{allowed_keys: [url], url_sanitizer: {enabled: false, attributes: [url]}}"),
               URL);
}

/* Digests of "abc", and of what matches alone; what was hashed once is not looked at again. */
TEST(processors, redaction_hashes)
{
#define HASHED(function)                                                                           \
    "{allowed_keys: [token], blocked_key_patterns: [tok], blocked_values: ['[0-9]'], "             \
    "hash_function: " function "}"
    CHECK_TEXT(left(HASHED("sha1")), "token=a9993e364706816aba3e25717850c26c9cd0d89d ");
    CHECK_TEXT(left(HASHED("MD5")), "token=900150983cd24fb0d6963f7d28e17f72 ");
    CHECK_TEXT(left(HASHED("sha3")), "token=3a985da74fe225b2045c172d6bd390bd"
                                     "855f086e3e9d525b46bfe24511431532 ");
    CHECK_TEXT(left(HASHED("hmac-sha256, hmac_key: 01234567890123456789012345678901")),
               "token=d5c75dc69d8243aa0882a04342d9ff7c73537a0311a7950800607be225594009 ");
    CHECK_TEXT(left("{allowed_keys: [token], blocked_values: [b], hash_function: md5}"),
               "token=a92eb5ffee6ae2fec3ad71c777531578fc ");
#undef HASHED
}

TEST(processors, redaction)
{
    RUNS("redaction", "{rules: [{match: name, regex: customer, action: hash}]}");
    RUNS("redaction", "{allow_all_keys: true, blocked_values: ['4[0-9]{12}'], "
                      "blocked_key_patterns: ['.*token.*'], summary: debug}");
    RUNS("redaction", "{allowed_keys: [service.name, a], ignored_keys: [b]}");
    SAYS("redaction", "", "nothing says what to redact");
    SAYS("redaction", "{allow_all_keys: true, blocked_values: ['(']}", "bad pattern");
    SAYS("redaction", "{rules: [{match: name}]}", "lacks match or action");
    SAYS("redaction", "{allow_all_keys: true, hash_function: sha9}", "hash_function is sha1");
    SAYS("redaction", "{allow_all_keys: true, hash_function: hmac-sha512, hmac_key: short}",
         "hmac_key must be at least 64 bytes long for \"hmac-sha512\", got 5 bytes");
    SAYS("redaction", "{allow_all_keys: true, summary: loud}", "summary is silent, info or debug");
    SAYS("redaction", "{allow_all_keys: true, url_sanitizer: {enable: true}}", "enabled");
    SAYS("redaction", "{allow_all_keys: true, db_sanitizer: {}}", "db_sanitizer");
    SAYS("redaction", "{allowed_keys: [[a]]}", "a text belongs here");
}
