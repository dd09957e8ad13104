/* SPDX-License-Identifier: Apache-2.0 */
#include "core/series.h"

#include "base/mem.h"
#include "base/regex.h"
#include "drawn.h"
#include "test.h"

/* The key of the first profile of a resource, with NULs as '|'; lives until the next call. */
static const char *key_with(const struct kiln_series_rule *rule, const char *resource)
{
    static char text[512];
    struct kiln_drawn drawn = {
        .stacks = "main 1\n", .type = "cpu", .unit = "nanoseconds", .resource = resource};
    struct kiln_batch *batch = kiln_test_batch(&drawn, 1);
    struct kiln_type *types;
    struct kiln_buf buf;

    kiln_buf_init(&buf, sizeof(text) - 1);
    CHECK_OK(kiln_types_of_batch(batch, false, &types));
    kiln_series_key(rule, batch, 0, &types[0], &buf);
    CHECK_OK(buf.error);
    for (size_t i = 0; i < buf.len; i++)
        text[i] = buf.ptr[i] ? buf.ptr[i] : '|';
    text[buf.len] = 0;
    kiln_buf_done(&buf);
    kiln_free(types);
    kiln_batch_unref(batch);
    return text;
}

static const char *key_of(const char *resource)
{
    struct kiln_series_rule *rule;
    const char *key;

    CHECK_OK(kiln_series_rule_new(NULL, 0, &rule));
    key = key_with(rule, resource);
    kiln_series_rule_free(rule);
    return key;
}

TEST(series, a_key_is_service_type_and_sorted_labels)
{
    CHECK_TEXT(key_of("k8s.pod.name=p,service.name=shop,host.name=h"),
               "shop|process_cpu:cpu:nanoseconds:cpu:nanoseconds|host.name|h|k8s.pod.name|p|");
}

TEST(series, processes_and_threads_make_no_series)
{
    CHECK_TEXT(key_of("service.name=shop,process.pid=7,thread.name=x,hostname=h"),
               "shop|process_cpu:cpu:nanoseconds:cpu:nanoseconds|");
}

TEST(series, what_tells_deployments_apart_makes_series)
{
    CHECK_TEXT(
        key_of("service.name=shop,git.commit=3f9a,version=2,deployment_id=d,deployment.id=e"),
        "shop|process_cpu:cpu:nanoseconds:cpu:nanoseconds|"
        "deployment.id|e|deployment_id|d|git.commit|3f9a|version|2|");
}

TEST(series, numbers_are_labels_as_text_and_empty_values_are_none)
{
    CHECK_TEXT(key_of("service.name=shop,k8s.a=-12,k8s.b="),
               "shop|process_cpu:cpu:nanoseconds:cpu:nanoseconds|k8s.a|-12|");
}

TEST(series, without_a_service_name_the_executable_names_it)
{
    CHECK_TEXT(key_of("process.executable.name=nginx"),
               "unknown_service:nginx|process_cpu:cpu:nanoseconds:cpu:nanoseconds|");
    CHECK_TEXT(key_of("process.executable.path=/usr/bin/java"),
               "unknown_service:java|process_cpu:cpu:nanoseconds:cpu:nanoseconds|");
    CHECK_TEXT(key_of("x=y"), "unknown_service|process_cpu:cpu:nanoseconds:cpu:nanoseconds|");
}

TEST(series, a_rule_may_name_more_attributes)
{
    struct kiln_str more[] = {KILN_STR("team"), KILN_STR("cloud.*")};
    struct kiln_series_rule *rule;

    CHECK_OK(kiln_series_rule_new(more, 2, &rule));
    CHECK_TEXT(key_with(rule, "service.name=s,team=t,teams=u,cloud.zone=z,host.name=h"),
               "s|process_cpu:cpu:nanoseconds:cpu:nanoseconds|cloud.zone|z|host.name|h|team|t|");
    kiln_series_rule_free(rule);
}

TEST(series, nuls_and_broken_utf8_cannot_forge_a_key)
{
    struct kiln_series_rule *rule;
    struct kiln_resource resource = {0};
    struct kiln_type type = {.name = KILN_STR("a\0b"), .type = KILN_STR("t\xff")};
    struct kiln_builder *b;
    struct kiln_buf buf;
    uint32_t attr;

    CHECK_OK(kiln_series_rule_new(NULL, 0, &rule));
    CHECK_OK(kiln_builder_new(NULL, &b));
    attr = kiln_builder_text_attr(b, KILN_STR("service.name"), KILN_STR("x\0y\0"));
    resource.attrs = kiln_builder_set(b, &attr, 1, NULL);
    kiln_builder_add_resource(b, &resource);
    kiln_buf_init(&buf, 256);
    kiln_series_key(rule, kiln_builder_peek(b), 0, &type, &buf);
#define BAD "\xef\xbf\xbd"
    CHECK_TEXT(buf.ptr, "x" BAD "y" BAD);
    CHECK_EQ(memcmp(buf.ptr + strlen(buf.ptr) + 1, "a" BAD "b:t" BAD ":::", 13), 0);
    kiln_buf_done(&buf);
    kiln_builder_free(b);
    kiln_series_rule_free(rule);
}

TEST(series, however_long_the_texts_a_key_stays_short)
{
    struct kiln_series_rule *rule;
    struct kiln_resource resource = {0};
    struct kiln_type type = {.name = KILN_STR("cpu"), .type = KILN_STR("cpu")};
    struct kiln_series series;
    uint32_t attrs[401];
    struct kiln_builder *b;
    struct kiln_buf buf;
    char text[4096];

    CHECK_OK(kiln_series_rule_new(NULL, 0, &rule));
    CHECK_OK(kiln_builder_new(NULL, &b));
    for (size_t i = 0; i + 2 < sizeof(text); i += 2)
        memcpy(text + i, "\xc3\xa4", 2);
    attrs[400] = kiln_builder_text_attr(b, KILN_STR("service.name"), (struct kiln_str){text, 3001});
    for (int i = 0; i < 400; i++) {
        char name[32];

        snprintf(name, sizeof(name), "k8s.%03d", i);
        attrs[i] =
            kiln_builder_text_attr(b, kiln_str_of(name), (struct kiln_str){text, (size_t)i * 2});
    }
    resource.attrs = kiln_builder_set(b, attrs, 401, NULL);
    kiln_builder_add_resource(b, &resource);
    kiln_buf_init(&buf, 1 << 20);
    kiln_series_key(rule, kiln_builder_peek(b), 0, &type, &buf);
    CHECK(buf.len < 20000);
    CHECK_OK(kiln_series_parse(kiln_buf_str(&buf), &series));
    CHECK_EQ(series.service.len, 1024);
    CHECK(kiln_utf8_valid(series.service));
    CHECK_EQ(kiln_series_get(&series, KILN_STR("k8s.003")).len, 6);
    kiln_buf_done(&buf);
    kiln_builder_free(b);
    kiln_series_rule_free(rule);
}

#define KEY KILN_STR("shop\0process_cpu:cpu\0host.name\0h\0k8s.pod\0p\0")

TEST(series, a_key_can_be_read_back)
{
    struct kiln_series s;

    CHECK_OK(kiln_series_parse(KEY, &s));
    CHECK_STR(s.service, "shop");
    CHECK_STR(kiln_series_get(&s, KILN_STR("service.name")), "shop");
    CHECK_STR(kiln_series_get(&s, KILN_STR("__profile_type__")), "process_cpu:cpu");
    CHECK_STR(kiln_series_get(&s, KILN_STR("k8s.pod")), "p");
    CHECK(kiln_series_get(&s, KILN_STR("k8s")).ptr == NULL);
}

TEST(series, what_is_no_key_is_refused)
{
    struct kiln_series s;

    CHECK_EQ(kiln_series_parse(KILN_STR(""), &s), KILN_E_MALFORMED);
    CHECK_EQ(kiln_series_parse(KILN_STR("a\0b"), &s), KILN_E_MALFORMED);
    CHECK_EQ(kiln_series_parse(KILN_STR("a\0b\0c"), &s), KILN_E_MALFORMED);
    CHECK_EQ(kiln_series_parse(KILN_STR("a\0b\0c\0"), &s), KILN_E_MALFORMED);
    CHECK_OK(kiln_series_parse(KILN_STR("a\0b\0"), &s));
}

TEST(series, past_the_limit_service_and_type_stay)
{
    struct kiln_series s;
    struct kiln_buf buf;

    kiln_buf_init(&buf, 256);
    kiln_series_overflow_key(KEY, &buf);
    CHECK_OK(kiln_series_parse(kiln_buf_str(&buf), &s));
    CHECK_STR(s.service, "shop");
    CHECK_STR(s.type, "process_cpu:cpu");
    CHECK_STR(kiln_series_get(&s, KILN_STR("kiln.overflow")), "true");
    CHECK(kiln_series_get(&s, KILN_STR("host.name")).ptr == NULL);
    kiln_buf_clear(&buf);
    kiln_series_last_key(KEY, &buf);
    CHECK_OK(kiln_series_parse(kiln_buf_str(&buf), &s));
    CHECK_STR(s.service, "unknown_service");
    CHECK_STR(s.type, "process_cpu:cpu");
    CHECK(kiln_series_is_overflow(kiln_buf_str(&buf)));
    CHECK(!kiln_series_is_overflow(KEY));
    kiln_buf_done(&buf);
}

static bool match(const char *name, enum kiln_match_op op, const char *value)
{
    struct kiln_matcher m = {kiln_str_of(name), kiln_str_of(value), op, NULL};
    struct kiln_series s;
    bool matches;

    CHECK_OK(kiln_series_parse(KEY, &s));
    if (op == KILN_MATCH_RE || op == KILN_MATCH_NRE)
        CHECK_OK(kiln_regex_new(m.value, KILN_REGEX_WHOLE, &m.regex, NULL));
    matches = kiln_series_match(&s, &m, 1);
    kiln_regex_free(m.regex);
    return matches;
}

TEST(series, matchers_compare_labels_and_absent_ones_are_empty)
{
    CHECK(match("service.name", KILN_MATCH_EQ, "shop"));
    CHECK(!match("service.name", KILN_MATCH_EQ, "sho"));
    CHECK(match("host.name", KILN_MATCH_NE, "g"));
    CHECK(match("team", KILN_MATCH_EQ, ""));
    CHECK(!match("team", KILN_MATCH_NE, ""));
    CHECK(match("k8s.pod", KILN_MATCH_RE, "p|q"));
    CHECK(!match("service.name", KILN_MATCH_RE, "sho"));
    CHECK(match("service.name", KILN_MATCH_NRE, "sho"));
    CHECK(match("team", KILN_MATCH_RE, ".*"));
}
