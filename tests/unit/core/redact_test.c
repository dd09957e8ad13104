/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "core/redact.h"
#include "random_batch.h"
#include "resolve.h"
#include "test.h"

static struct kiln_redact *rules_of(const char *text)
{
    struct kiln_redact *rules = NULL;
    struct kiln_err err = {0};
    int r = kiln_redact_parse(kiln_str_of(text), &rules, &err);

    if (r < 0)
        fail_msg("%s: %s", err.where, err.text);
    return rules;
}

static struct kiln_batch *redact(const struct kiln_batch *batch, const char *text,
                                 struct kiln_redact_info *info)
{
    struct kiln_redact *rules = rules_of(text);
    struct kiln_err err = {0};
    struct kiln_batch *redacted = NULL;

    CHECK_OK(kiln_redact(rules, batch, &redacted, info, &err));
    kiln_redact_free(rules);
    check_invariants(redacted);
    return redacted;
}

/* ---- reading rules ---- */

static void check_bad(const char *text, const char *where, const char *part_of_text)
{
    struct kiln_redact *rules;
    struct kiln_err err = {0};
    int64_t live = kiln_mem_live();
    int r = kiln_redact_parse(kiln_str_of(text), &rules, &err);

    CHECK(r < 0);
    CHECK_EQ(err.code, r);
    CHECK_TEXT(err.where, where);
    if (!strstr(err.text, part_of_text))
        fail_msg("\"%s\" does not say \"%s\"", err.text, part_of_text);
    CHECK_EQ(kiln_mem_live(), live);
}

TEST(redact_rules, yaml_json_and_the_configuration_key_are_read)
{
    kiln_redact_free(rules_of("- {match: path, regex: ^/home, action: drop}\n"));
    kiln_redact_free(rules_of("redaction:\n  - match: name\n    regex: x\n    action: hash\n"));
    kiln_redact_free(rules_of("[{\"match\": \"attribute\", \"attribute\": \"\\\\.user$\",\n"
                              "  \"action\": \"replace\", \"replacement\": \"$$\"}]"));
    kiln_redact_free(rules_of("- {match: name, regex: (x), action: replace, replacement: $1$$}"));
    kiln_redact_free(rules_of("- {match: name, regex: x, action: replace, replacement: }"));
    kiln_redact_free(rules_of("[]"));
    kiln_redact_free(rules_of("# nothing yet\nredaction: []\n"));
}

TEST(redact_rules, errors_name_line_and_column)
{
    check_bad("- match: path\n  regexp: x\n", "line 2, column 3", "a rule has match");
    check_bad("- match: file\n", "line 1, column 10", "match is path, name or attribute");
    check_bad("- match: path\n  regex: x\n  action: burn\n", "line 3, column 11", "drop, hash");
    check_bad("- match: path\n  regex: a(b\n  action: drop\n", "line 2, column 10",
              "bad pattern \"a(b\"");
    check_bad("- match: path\n  match: name\n", "line 2, column 3", "twice");
    check_bad("- match: path\n  regex: [x]\n", "line 2, column 10", "a text belongs here");
    check_bad("- path\n", "line 1, column 3", "a rule");
    check_bad("rules: []\n", "line 1, column 1", "redaction");
    check_bad("redaction: []\nother: 1\n", "line 2, column 1", "nothing but");
    check_bad("just text\n", "line 1, column 1", "a list of rules");
    check_bad("", "line 1, column 1", "a list of rules");
    check_bad("- match: [\n", "line 2, column 1", "did not find expected node content");
    check_bad("- \"match\n", "line 2, column 1", "unexpected end");
    check_bad("[]\n---\n[]\n", "line 2, column 1", "second document");
    check_bad("- *alias\n", "line 1, column 3", "no anchor of this name");
}

TEST(redact_rules, fields_have_to_make_sense_together)
{
    check_bad("- regex: x\n  action: drop\n", "line 1, column 3", "lacks match or action");
    check_bad("- match: path\n  regex: x\n", "line 1, column 3", "lacks match or action");
    check_bad("- match: name\n  action: drop\n", "line 1, column 3", "no regex");
    check_bad("- {match: name, attribute: x, regex: x, action: drop}\n", "line 1, column 28",
              "only for match: attribute");
    check_bad("- {match: name, regex: x, action: replace}\n", "line 1, column 3", "go together");
    check_bad("- {match: name, regex: x, action: drop, replacement: y}\n", "line 1, column 3",
              "go together");
    check_bad("- {match: name, regex: (x), action: replace, replacement: $2}\n",
              "line 1, column 59", "group 2 of 1");
}

TEST(redact_rules, too_much_is_an_error)
{
    struct kiln_redact *rules;
    static char text[(1 << 20) + 1];

    memset(text, ' ', sizeof(text));
    CHECK_EQ(kiln_redact_parse((struct kiln_str){text, sizeof(text)}, &rules, NULL), KILN_E_LIMIT);
    for (size_t at = 0; at + 40 < sizeof(text); at += 40)
        memcpy(text + at, "- {match: name, regex: x, action: drop}\n", 40);
    CHECK_EQ(kiln_redact_parse((struct kiln_str){text, 1001 * 40}, &rules, NULL), KILN_E_LIMIT);
}

TEST(redact_rules, running_out_of_memory_anywhere_leaks_nothing)
{
    struct kiln_str text = KILN_STR(
        "- {match: attribute, attribute: k, regex: (x), action: replace, replacement: a$1}\n"
        "- {match: name, regex: y, action: drop}\n");
    struct kiln_redact *rules = NULL;
    int64_t live = kiln_mem_live();
    int r = -1;

    for (uint64_t n = 1; r < 0; n++) {
        kiln_mem_fail_at(n);
        r = kiln_redact_parse(text, &rules, NULL);
        kiln_mem_fail_at(0);
        CHECK(r == 0 || kiln_mem_live() == live);
        assert_true(n < 1000);
    }
    kiln_redact_free(rules);
}

/* ---- applying rules ---- */

/* A batch of one profile with this attribute in the place `where`. */
enum where { RESOURCE, SCOPE, PROFILE, SAMPLE, MAPPING, LOCATION, N_WHERE };

struct planted {
    struct kiln_builder *b;
    uint32_t set[N_WHERE];
    struct kiln_function function;
    struct kiln_str mapping_file;
    struct kiln_str payload;
};

static struct planted planted_new(void)
{
    struct planted p = {0};

    CHECK_OK(kiln_builder_new(NULL, &p.b));
    p.function.name = kiln_builder_string(p.b, KILN_STR("main"));
    return p;
}

static struct kiln_batch *planted_finish(struct planted *p)
{
    struct kiln_mapping m = {.start = 1, .limit = 2, .attrs = p->set[MAPPING]};
    struct kiln_location l = {.address = 1, .attrs = p->set[LOCATION]};
    struct kiln_line line = {0};
    struct kiln_profile profile = {.attrs = p->set[PROFILE], .payload = p->payload};
    struct kiln_batch *batch;
    uint32_t location, keys[2];

    m.filename = kiln_builder_string(p->b, p->mapping_file);
    l.mapping = kiln_builder_mapping(p->b, &m);
    line.function = kiln_builder_function(p->b, &p->function);
    location = kiln_builder_location(p->b, &l, &line, 1);
    kiln_builder_add_resource(p->b, &(struct kiln_resource){.attrs = p->set[RESOURCE]});
    keys[0] = kiln_builder_string(p->b, KILN_STR("key"));
    keys[1] = kiln_builder_string(p->b, KILN_STR("other"));
    kiln_builder_add_entity(p->b, 0, keys[1], keys, 2, keys, 1);
    kiln_builder_add_scope(p->b, &(struct kiln_scope){.attrs = p->set[SCOPE]});
    if (p->payload.len)
        profile.payload_format = kiln_builder_string(p->b, KILN_STR("pprof"));
    kiln_builder_add_profile(p->b, &profile);
    kiln_builder_add_value(p->b, 0, kiln_builder_stack(p->b, &location, 1), p->set[SAMPLE], 5);
    CHECK_OK(kiln_builder_finish(p->b, &batch, NULL));
    return batch;
}

/* A set of the one attribute key = value. */
static uint32_t one_attr(struct kiln_builder *b, const char *key, struct kiln_value value)
{
    uint32_t attr = kiln_builder_attr(b, kiln_builder_string(b, kiln_str_of(key)), value, 0);

    return kiln_builder_set(b, &attr, 1, NULL);
}

static struct kiln_value text_value(struct kiln_builder *b, const char *text)
{
    return kiln_value_string(kiln_builder_string(b, kiln_str_of(text)));
}

/* Fails if `needle` is in any string or payload of the batch. */
static void check_gone(const struct kiln_batch *batch, const char *needle)
{
    for (uint32_t i = 0; i < batch->dict.n_strings; i++) {
        if (kiln_str_contains(batch->dict.strings[i], kiln_str_of(needle)))
            fail_msg("string %u is still \"%.*s\"", i, KILN_STR_ARG(batch->dict.strings[i]));
    }
    for (uint32_t i = 0; i < batch->n_profiles; i++)
        CHECK(!kiln_str_contains(batch->profiles[i].payload, kiln_str_of(needle)));
}

/* The secret in every place that the rules can reach. */
static struct kiln_batch *plant_everywhere(void)
{
    struct planted p = planted_new();
    struct kiln_builder *b = p.b;
    struct kiln_value secret = text_value(b, "my SECRET text");
    struct kiln_value bytes = kiln_value_bytes(kiln_builder_string(b, KILN_STR("\xffSECRET\0")));
    struct kiln_value array = kiln_builder_array(b, (struct kiln_value[]){bytes, secret}, 2);
    struct kiln_attr entry = {.key = kiln_builder_string(b, KILN_STR("inner")), .value = array};

    p.function.name = kiln_builder_string(b, KILN_STR("do_SECRET"));
    p.function.system_name = kiln_builder_string(b, KILN_STR("_Z9do_SECRETv"));
    p.function.filename = kiln_builder_string(b, KILN_STR("/src/SECRET/a.c"));
    p.mapping_file = KILN_STR("/opt/SECRET/app");
    p.payload = KILN_STR("raw SECRET bytes");
    for (int i = 0; i < N_WHERE; i++)
        p.set[i] = one_attr(b, "key", i % 2 ? secret : kiln_builder_map(b, &entry, 1));
    p.set[RESOURCE] = one_attr(b, "process.executable.path", secret);
    return planted_finish(&p);
}

TEST(redact, a_secret_planted_everywhere_is_found_nowhere)
{
    static const char *const actions[] = {"drop", "hash", "replace, replacement: x"};

    for (size_t i = 0; i < KILN_ARRAY_LEN(actions); i++) {
        struct kiln_batch *batch = plant_everywhere(), *redacted;
        struct kiln_redact_info info = {0};
        char text[512];

        snprintf(text, sizeof(text),
                 "- {match: path, regex: SECRET, action: %s}\n"
                 "- {match: name, regex: SECRET, action: %s}\n"
                 "- {match: attribute, regex: SECRET, action: %s}\n",
                 actions[i], actions[i], actions[i]);
        redacted = redact(batch, text, &info);
        check_gone(redacted, "SECRET");
        CHECK_EQ(info.texts, 4);
        CHECK_EQ(info.payloads, 1);
        CHECK(info.attributes_changed + info.attributes_dropped >= 4);
        CHECK_EQ(redacted->observations[0], 5);
        CHECK_EQ(redacted->profiles[0].payload_format, 0);
        kiln_batch_unref(batch);
        kiln_batch_unref(redacted);
    }
}

/* What becomes of a function's file name. */
static void check_path(const char *rule, const char *path, const char *expected)
{
    struct planted p = planted_new();
    struct kiln_batch *batch, *redacted;

    p.function.filename = kiln_builder_string(p.b, kiln_str_of(path));
    batch = planted_finish(&p);
    redacted = redact(batch, rule, NULL);
    CHECK_STR(kiln_batch_str(redacted, redacted->dict.functions[1].filename), expected);
    CHECK_STR(kiln_batch_str(redacted, redacted->dict.functions[1].name), "main");
    kiln_batch_unref(batch);
    kiln_batch_unref(redacted);
}

TEST(redact, paths_are_dropped_hashed_or_changed)
{
    check_path("- {match: path, regex: ^/home/, action: drop}", "/home/ann/a.c", "[redacted]");
    check_path("- {match: path, regex: ^/home/, action: drop}", "/usr/a.c", "/usr/a.c");
    check_path("- {match: path, regex: ^/home/, action: hash}", "/home/ann/a.c",
               "9bc4b40bc3b01e7a");
    check_path("- {match: path, regex: '^/home/[^/]+', action: replace, replacement: '~'}",
               "/home/ann/a.c", "~/a.c");
    check_path("- {match: path, regex: '^/home/([^/])[^/]*', action: replace,\n"
               "   replacement: '/home/$1'}",
               "/home/ann/a.c", "/home/a/a.c");
    check_path("- {match: name, regex: home, action: drop}", "/home/ann/a.c", "/home/ann/a.c");
}

TEST(redact, rules_apply_in_order)
{
    check_path("- {match: path, regex: a, action: replace, replacement: b}\n"
               "- {match: path, regex: bb, action: replace, replacement: c}\n"
               "- {match: path, regex: c, action: replace, replacement: a}\n",
               "aab", "ab");
}

TEST(redact, hashes_are_the_same_for_equal_texts_only)
{
    const char *rule = "- {match: name, regex: ., action: hash}";
    struct planted p = planted_new(), q = planted_new();
    struct kiln_batch *a, *b, *x, *y;

    q.function.name = kiln_builder_string(q.b, KILN_STR("main2"));
    a = planted_finish(&p);
    b = planted_finish(&q);
    x = redact(a, rule, NULL);
    y = redact(b, rule, NULL);
    CHECK_STR(kiln_batch_str(x, x->dict.functions[1].name), "0d6e4079e36703eb"); /* of "main" */
    CHECK(!kiln_str_eq(kiln_batch_str(x, x->dict.functions[1].name),
                       kiln_batch_str(y, y->dict.functions[1].name)));
    kiln_batch_unref(a);
    kiln_batch_unref(b);
    kiln_batch_unref(x);
    kiln_batch_unref(y);
}

/* The attribute `key` of the one resource after a rule; *ret_value is copied out. */
static bool attr_after(const char *rule, struct kiln_value value, struct planted *p,
                       char ret_text[64])
{
    struct kiln_batch *batch, *redacted;
    const struct kiln_attr *attr;

    p->set[RESOURCE] = one_attr(p->b, "key", value);
    batch = planted_finish(p);
    redacted = redact(batch, rule, NULL);
    attr = kiln_set_find(redacted, redacted->resources[0].attrs, KILN_STR("key"));
    ret_text[0] = '\0';
    if (attr && attr->value.kind == KILN_VALUE_STRING)
        snprintf(ret_text, 64, "%.*s", KILN_STR_ARG(redacted->dict.strings[attr->value.str]));
    if (attr && attr->value.kind == KILN_VALUE_INT)
        snprintf(ret_text, 64, "number %lld", (long long)attr->value.i);
    CHECK_EQ(redacted->entities[0].n_id_keys, attr ? 2 : 1);
    kiln_batch_unref(batch);
    kiln_batch_unref(redacted);
    return attr != NULL;
}

TEST(redact, attributes_are_found_by_key_and_value)
{
    struct planted p = planted_new();
    char text[64];

    CHECK(!attr_after("- {match: attribute, attribute: ^k, action: drop}", text_value(p.b, "v"), &p,
                      text));
    p = planted_new();
    CHECK(attr_after("- {match: attribute, attribute: ^y, action: drop}", text_value(p.b, "v"), &p,
                     text));
    CHECK_TEXT(text, "v");
    p = planted_new();
    CHECK(attr_after("- {match: attribute, attribute: k, regex: '\\d+', action: replace,\n"
                     "   replacement: N}",
                     text_value(p.b, "id 12"), &p, text));
    CHECK_TEXT(text, "id N");
    p = planted_new();
    CHECK(attr_after("- {match: attribute, attribute: k, action: replace, replacement: gone}",
                     text_value(p.b, "\xff\xff"), &p, text));
    CHECK_TEXT(text, "gone");
}

TEST(redact, numbers_are_matched_as_text)
{
    struct planted p = planted_new();
    char text[64];

    CHECK(!attr_after("- {match: attribute, regex: ^42$, action: drop}", kiln_value_int(42), &p,
                      text));
    p = planted_new();
    CHECK(attr_after("- {match: attribute, regex: ^42$, action: drop}", kiln_value_int(421), &p,
                     text));
    CHECK_TEXT(text, "number 421");
    p = planted_new();
    CHECK(!attr_after("- {match: attribute, regex: ^true$, action: drop}", kiln_value_bool(true),
                      &p, text));
    p = planted_new();
    CHECK(!attr_after("- {match: attribute, regex: '^0[.]5$', action: drop}",
                      kiln_value_double(0.5), &p, text));
}

TEST(redact, a_rule_for_a_key_holds_for_all_inside_its_value)
{
    struct planted p = planted_new();
    struct kiln_attr entry = {.key = kiln_builder_string(p.b, KILN_STR("inner")),
                              .value = text_value(p.b, "SECRET")};
    struct kiln_batch *batch, *redacted;

    p.set[SAMPLE] = one_attr(p.b, "outer", kiln_builder_map(p.b, &entry, 1));
    batch = planted_finish(&p);
    redacted = redact(batch, "- {match: attribute, attribute: outer, action: hash}", NULL);
    check_gone(redacted, "SECRET");
    CHECK_EQ(kiln_set_find(redacted, redacted->samples[0].attrs, KILN_STR("outer"))->value.n, 1);
    kiln_batch_unref(redacted);
    redacted = redact(batch, "- {match: attribute, attribute: outer, action: drop}", NULL);
    CHECK_EQ(redacted->samples[0].attrs, 0);
    check_gone(redacted, "inner");
    kiln_batch_unref(redacted);
    redacted = redact(batch, "- {match: attribute, attribute: inner, action: drop}", NULL);
    CHECK_EQ(kiln_set_find(redacted, redacted->samples[0].attrs, KILN_STR("outer"))->value.n, 0);
    kiln_batch_unref(redacted);
    kiln_batch_unref(batch);
}

TEST(redact, an_expression_that_runs_away_stops_everything)
{
    struct kiln_redact *rules = rules_of("\n- {match: name, regex: '^(a+)+$', action: drop}");
    struct planted p = planted_new();
    struct kiln_batch *batch, *redacted = NULL;
    struct kiln_err err = {0};

    p.function.name = kiln_builder_string(p.b, KILN_STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"));
    batch = planted_finish(&p);
    CHECK_EQ(kiln_redact(rules, batch, &redacted, NULL, &err), KILN_E_LIMIT);
    CHECK(redacted == NULL);
    CHECK(strstr(err.text, "line 2") != NULL);
    kiln_redact_free(rules);
    kiln_batch_unref(batch);
}

TEST(redact, without_a_rule_nothing_changes)
{
    struct kiln_batch *batch = plant_everywhere();
    struct kiln_batch *redacted = redact(batch, "[]", NULL);

    CHECK(kiln_batch_equal(batch, redacted));
    kiln_batch_unref(batch);
    kiln_batch_unref(redacted);
}

TEST(redact, random_batches_keep_their_totals_and_lose_every_value)
{
    const char *rules = "- {match: attribute, regex: value, action: hash}\n"
                        "- {match: path, regex: ., action: drop}\n"
                        "- {match: name, regex: fn, action: replace, replacement: f}\n";

    for (uint64_t seed = 0; seed < 50; seed++) {
        struct kiln_batch *batch = random_batch(&(struct random_opts){.seed = seed});
        struct kiln_batch *redacted = redact(batch, rules, NULL);

        check_gone(redacted, "value");
        check_gone(redacted, "/src/");
        check_gone(redacted, "/usr/");
        check_gone(redacted, "fn");
        check_no_orphans(redacted);
        CHECK_EQ(batch->n_samples, redacted->n_samples);
        for (uint32_t i = 0; i < batch->n_samples; i++)
            CHECK_EQ(kiln_sample_total(batch, &batch->samples[i]),
                     kiln_sample_total(redacted, &redacted->samples[i]));
        kiln_batch_unref(batch);
        kiln_batch_unref(redacted);
    }
}

TEST(redact, running_out_of_memory_anywhere_leaks_nothing)
{
    struct kiln_redact *rules = rules_of("- {match: path, regex: S, action: hash}\n"
                                         "- {match: attribute, regex: S, action: replace,\n"
                                         "   replacement: a longer text than there was}\n");
    struct kiln_batch *batch = plant_everywhere(), *redacted = NULL;
    int64_t live = kiln_mem_live();
    int r = -1;

    for (uint64_t n = 1; r < 0; n++) {
        kiln_mem_fail_at(n);
        r = kiln_redact(rules, batch, &redacted, NULL, NULL);
        kiln_mem_fail_at(0);
        CHECK(r == 0 || kiln_mem_live() == live);
        assert_true(n < 1000);
    }
    check_gone(redacted, "SECRET text");
    kiln_batch_unref(batch);
    kiln_batch_unref(redacted);
    kiln_redact_free(rules);
}
