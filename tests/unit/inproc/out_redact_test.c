/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "codec/otlp.h"
#include "codec/pprof.h"
#include "drawn.h"
#include "inproc/out/redact.h"
#include "test.h"

static const char stacks[] =
    "main;/opt/shop/lib.so+0x10 3 thread.name=worker-7,user=alice,tier=web\n"
    "main;pay_hunter2@/home/hunter2/pay.c:12 4 note=for_hunter2_only\n";

static struct kiln_batch *drawn(void)
{
    return kiln_test_batch(&(struct kiln_drawn){.stacks = stacks,
                                                .resource =
                                                    "service.name=shop,process.command_line="
                                                    "/bin/shop--key:hunter2",
                                                .scope = "kiln"},
                           1);
}

/* All bytes that would leave, by the rules. */
static struct kiln_buf sent(const char *text)
{
    struct kiln_in_redact *rules = NULL;
    struct kiln_batch *batch = drawn(), *redacted = NULL;
    struct kiln_err err = {0};
    struct kiln_buf out;

    kiln_buf_init(&out, 1 << 20);
    CHECK_OK(kiln_in_redact_parse(kiln_str_of(text), &rules, &err));
    CHECK_OK(kiln_in_redact_batch(rules, batch, &redacted, &err));
    CHECK_OK(kiln_otlp_encode(redacted, NULL, &out, &err));
    CHECK_OK(kiln_pprof_encode(redacted, NULL, &out, &err));
    kiln_batch_unref(redacted);
    kiln_batch_unref(batch);
    kiln_in_redact_free(rules);
    return out;
}

/* The value of an attribute that is not in a batch; "-": it goes. */
static const char *value_by(const char *text, const char *key, const char *value)
{
    static char said[256];
    struct kiln_in_redact *rules = NULL;
    struct kiln_buf out;
    bool stays;

    kiln_buf_init(&out, 1 << 10);
    CHECK_OK(kiln_in_redact_parse(kiln_str_of(text), &rules, NULL));
    stays = kiln_in_redact_value(rules, kiln_str_of(key), kiln_str_of(value), &out);
    snprintf(said, sizeof(said), "%.*s", stays ? (int)out.len : 1, stays ? out.ptr : "-");
    kiln_buf_done(&out);
    kiln_in_redact_free(rules);
    return said;
}

TEST(out_redact, values_alone_are_as_in_a_batch)
{
    CHECK_TEXT(value_by("", "team", "blue"), "blue");
    CHECK_TEXT(value_by("attribute:team", "team", "blue"), "-");
    CHECK_TEXT(value_by("attribute:team=bl", "team", "blue"), "[redacted]ue");
    CHECK_TEXT(value_by("*lu*", "team", "blue"), "[redacted]");
    CHECK_TEXT(value_by("name:b,path:b", "team", "blue"), "blue");
    CHECK_EQ(kiln_mem_live(), 0);
}

static bool says(const char *rules, const char *text)
{
    struct kiln_buf out = sent(rules);
    bool found = kiln_str_contains(kiln_buf_str(&out), kiln_str_of(text));

    kiln_buf_done(&out);
    CHECK_EQ(kiln_mem_live(), 0);
    return found;
}

TEST(out_redact, without_rules_all_is_said)
{
    CHECK(says("", "hunter2"));
    CHECK(says("", "worker-7"));
}

TEST(out_redact, a_bare_glob_takes_a_secret_out_of_everything)
{
    CHECK(!says("*hunter2*", "hunter2"));
    CHECK(says("*hunter2*", "[redacted]"));
    CHECK(says("*hunter2*", "worker-7"));
}

TEST(out_redact, a_prefix_leaves_the_rest)
{
    CHECK(!says("path:/home/hunter2", "/home/hunter2"));
    CHECK(says("path:/home/hunter2", "[redacted]/pay.c"));
    CHECK(says("path:/home/hunter2", "pay_hunter2"));
}

TEST(out_redact, each_kind_of_rule_is_for_its_own)
{
    CHECK(!says("thread:worker-*", "worker-7"));
    CHECK(says("thread:alice", "alice"));
    CHECK(!says("name:pay_*", "pay_hunter2"));
    CHECK(!says("attribute:user", "alice"));
    CHECK(!says("attribute:us*", "alice"));
    CHECK(says("attribute:use", "alice"));
    CHECK(!says("attribute:note=*hunter*", "for_hunter2"));
    CHECK(says("attribute:note=*nobody*", "for_hunter2"));
    CHECK(!says("path:/opt,attribute:user\nthread:w*", "/opt"));
    CHECK(!says("path:*--key:*", "--key"));
}

TEST(out_redact, rules_that_say_nothing_are_refused)
{
    struct kiln_in_redact *rules = NULL;
    struct kiln_err err = {0};
    char many[2048];
    size_t n = 0;

    CHECK_EQ(kiln_in_redact_parse(KILN_STR("a,path:"), &rules, &err), KILN_E_PATTERN);
    CHECK_TEXT(err.text, "rule 2 says nothing");
    CHECK_EQ(kiln_in_redact_parse(KILN_STR("attribute:"), &rules, NULL), KILN_E_PATTERN);
    for (int i = 0; i < 300; i++)
        n += (size_t)snprintf(many + n, sizeof(many) - n, "a,");
    CHECK_EQ(kiln_in_redact_parse((struct kiln_str){many, n}, &rules, NULL), KILN_E_LIMIT);
    CHECK_EQ(kiln_mem_live(), 0);
}
