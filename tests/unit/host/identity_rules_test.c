/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "host/identity_int.h"
#include "test.h"

static struct kiln_facts facts;
static struct kiln_err err;

static void begin(void)
{
    facts = (struct kiln_facts){.dir = -1};
    kiln_attrs_init(&facts.attrs);
    kiln_buf_init(&facts.env, 4096);
    kiln_attrs_set(&facts.attrs, KILN_STR("service.name"), KILN_STR("python3"));
    kiln_attrs_set(&facts.attrs, KILN_STR("process.executable.path"),
                   KILN_STR("/srv/shop/v7/bin/python3"));
    kiln_attrs_set(&facts.attrs, KILN_STR("container.name"), KILN_STR("shop-eu-1"));
    kiln_buf_add(&facts.env, "TIER=front\0REGION=\0", 19);
    facts.n_env = 2;
}

/* Reads rules and lays them over; an error is in `err`. */
static int apply(const char *yaml)
{
    struct kiln_identity_rules *rules = NULL;
    struct kiln_config *config;
    int r;

    err = (struct kiln_err){0};
    CHECK_OK(kiln_config_parse(kiln_str_of(yaml), &config, &err));
    r = kiln_identity_rules_read(kiln_config_root(config), &rules, &err);
    if (r == 0)
        kiln_facts_apply(&facts, rules);
    kiln_identity_rules_free(rules);
    kiln_config_free(config);
    return r;
}

static const char *said(const char *key)
{
    static char text[4097];
    struct kiln_str value = kiln_attrs_get(&facts.attrs, kiln_str_of(key));

    snprintf(text, sizeof(text), "%.*s", KILN_STR_ARG(value));
    return text;
}

static void end(void)
{
    kiln_attrs_done(&facts.attrs);
    kiln_buf_done(&facts.env);
}

TEST(identity_rules, stars_name_parts_of_what_they_match)
{
    begin();
    CHECK_OK(apply(
        "- match: {process.executable.path: '/srv/*/*/bin/*'}\n"
        "  set: {service.name: '{1}', service.version: '{2}', tool: '{3}-{container.name}'}"));
    CHECK_TEXT(said("service.name"), "shop");
    CHECK_TEXT(said("service.version"), "v7");
    CHECK_TEXT(said("tool"), "python3-shop-eu-1");
    end();
}

TEST(identity_rules, all_that_a_rule_names_must_match)
{
    begin();
    CHECK_OK(apply("- match: {container.name: 'shop-?u-*', service.name: python}\n"
                   "  set: {a: '1'}\n"
                   "- match: {container.name: 'shop-?u-*', service.name: 'p*3'}\n"
                   "  set: {b: '{1}{2}'}\n"
                   "- match: {git.commit: '*'}\n"
                   "  set: {c: '1'}\n"
                   "- match: {git.commit: ''}\n"
                   "  set: {d: '1'}\n"
                   "- set: {e: '1'}\n"));
    CHECK_TEXT(said("a"), "");
    CHECK_TEXT(said("b"), "1ython");
    CHECK_TEXT(said("c"), "");
    CHECK_TEXT(said("d"), "1");
    CHECK_TEXT(said("e"), "1");
    end();
}

TEST(identity_rules, apply_in_order_each_to_what_the_one_before_left)
{
    begin();
    CHECK_OK(apply("- set: {service.name: a}\n"
                   "- match: {service.name: a}\n"
                   "  set: {service.name: 'b-{service.name}'}\n"
                   "- match: {service.name: python3}\n"
                   "  set: {service.name: c}\n"));
    CHECK_TEXT(said("service.name"), "b-a");
    end();
}

TEST(identity_rules, variables_are_matched_and_filled_in)
{
    begin();
    CHECK_OK(apply("- match: {'env:TIER': 'f*'}\n"
                   "  set: {service.name: 'shop-{env:TIER}', rest: '{1}', gone: '{env:REGION}x',"
                   " braces: '{{{env:TIER}}'}"));
    CHECK_TEXT(said("service.name"), "shop-front");
    CHECK_TEXT(said("rest"), "ront");
    CHECK_TEXT(said("gone"), "");
    CHECK_TEXT(said("braces"), "{front}");
    end();
}

TEST(identity_rules, an_empty_text_takes_an_attribute_away)
{
    begin();
    CHECK_OK(apply("- set: {container.name: '', not.there: ''}\n"));
    CHECK_TEXT(said("container.name"), "");
    CHECK_EQ(facts.attrs.n, 2);
    end();
}

TEST(identity_rules, texts_may_be_made_of_what_is_set)
{
    begin();
    CHECK_OK(apply("- match: {process.executable.path: '*'}\n"
                   "  set: {a: '{1}{1}', b: '{1}{1}{1}', process.executable.path: x, c: '{1}'}\n"));
    CHECK_TEXT(said("process.executable.path"), "x");
    CHECK_TEXT(said("c"), "/srv/shop/v7/bin/python3");
    end();
}

TEST(identity_rules, name_the_variables_that_they_need)
{
    struct kiln_identity_rules *rules;
    struct kiln_config *config;

    CHECK_OK(kiln_config_parse(KILN_STR("- match: {'env:A': x}\n"
                                        "  set: {b: '{env:B}{env:A}'}\n"),
                               &config, NULL));
    CHECK_OK(kiln_identity_rules_read(kiln_config_root(config), &rules, NULL));
    CHECK_TEXT(kiln_identity_rules_env(rules, 0), "A");
    CHECK_TEXT(kiln_identity_rules_env(rules, 1), "B");
    CHECK(!kiln_identity_rules_env(rules, 2));
    kiln_identity_rules_free(rules);
    kiln_config_free(config);
}

static void refused(const char *yaml, const char *why)
{
    begin();
    CHECK_EQ(apply(yaml), KILN_E_MALFORMED);
    if (!strstr(err.text, why))
        fail_msg("\"%s\" does not say \"%s\"", err.text, why);
    end();
}

TEST(identity_rules, mistakes_are_told_with_their_place)
{
    refused("set: {a: b}", "list of rules");
    refused("- x", "a rule is a map");
    refused("- match: {a: b}", "what to set");
    refused("- match: {a: b}\n  sett: {a: b}", "set");
    refused("- set: {a: '{b'}", "brace");
    refused("- set: {a: '{}'}", "brace");
    refused("- match: {a: '*'}\n  set: {b: '{2}'}", "no star 2");
    refused("- match: {a: '**********'}\n  set: {b: c}", "nine stars");
    refused("- set: {process.pid: '1'}", "cannot be set");
    refused("- set: {host.name: x}", "agent.resource");
    refused("- match: {'env:': x}\n  set: {b: c}", "no variable");
    refused("- set: {a: b}\n- set: {a: [c]}", "");
    CHECK_TEXT(err.where, "line 2, column 12");
}

TEST(identity_rules, a_pattern_full_of_stars_takes_no_longer_than_it_must)
{
    char text[4001];

    begin();
    memset(text, 'a', 4000);
    text[4000] = '\0';
    kiln_attrs_set(&facts.attrs, KILN_STR("long"), kiln_str_of(text));
    CHECK_OK(apply("- match: {long: '*a*a*a*a*a*a*a*a*b'}\n"
                   "  set: {x: y}\n"));
    CHECK_TEXT(said("x"), "");
    end();
}

TEST(attrs, each_name_is_there_once)
{
    begin();
    kiln_attrs_set(&facts.attrs, KILN_STR("a"), KILN_STR("1"));
    kiln_attrs_set(&facts.attrs, KILN_STR("a"), KILN_STR("2"));
    kiln_attrs_default(&facts.attrs, "a", KILN_STR("3"));
    kiln_attrs_default(&facts.attrs, "b", kiln_attrs_get(&facts.attrs, KILN_STR("a")));
    CHECK_TEXT(said("a"), "2");
    CHECK_TEXT(said("b"), "2");
    CHECK_EQ(facts.attrs.n, 5);
    end();
}

TEST(attrs, what_does_not_fit_is_left_out)
{
    static char text[5000];
    char key[16];

    begin();
    memset(text, 'x', sizeof(text));
    kiln_attrs_set(&facts.attrs, KILN_STR("a"), (struct kiln_str){text, sizeof(text)});
    CHECK_TEXT(said("a"), "");
    for (int i = 0; i < 500; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        kiln_attrs_set(&facts.attrs, kiln_str_of(key), KILN_STR("v"));
    }
    CHECK_EQ(facts.attrs.n, KILN_ATTRS_MAX);
    for (int i = 0; i < 100; i++)
        kiln_attrs_set(&facts.attrs, KILN_STR("k1"), (struct kiln_str){text, 4000});
    CHECK(facts.attrs.texts.len <= KILN_ATTRS_BYTES_MAX + 100);
    CHECK_EQ(facts.attrs.texts.error, 0);
    end();
}
