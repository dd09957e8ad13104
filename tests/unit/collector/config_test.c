/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of a configuration, drawn as JSON.  What substitution does is a table, after the
 * Collector's own tests of it (confmap) and the table of its RFC about environment variables.
 */
#include "collector/config.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "test.h"

enum { SOURCES = 4 };

struct bench {
    struct kiln_collector_config *config;
    struct kiln_err err;
    char warned[256];
};

static void note(void *context, const struct kiln_node *place, const char *text)
{
    struct bench *b = context;

    snprintf(b->warned, sizeof(b->warned), "%u: %s", place ? place->line : 0, text);
}

static int load(struct bench *b, const char *const *uris, const char *const *sets)
{
    struct kiln_collector_sources sources = {
        .uris = uris, .sets = sets, .warn = note, .context = b};

    while (uris && uris[sources.n_uris])
        sources.n_uris++;
    while (sets && sets[sources.n_sets])
        sources.n_sets++;
    *b = (struct bench){0};
    return kiln_collector_config_load(&sources, &b->config, &b->err);
}

#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void check_tree(const char *const *uris, const char *const *sets, const char *expected)
{
    struct kiln_buf out;
    bool line_begins = false;
    struct bench b;
    size_t n = 0;

    if (load(&b, uris, sets) < 0)
        fail_msg("%s: %s: %s", uris[0], b.err.where, b.err.text);
    kiln_buf_init(&out, 1 << 16);
    kiln_collector_config_format_json(b.config, false, &out);
    for (size_t i = 0; i < out.len; i++) { /* on one line */
        line_begins = out.ptr[i] == '\n' || (line_begins && out.ptr[i] == ' ');
        if (!line_begins)
            out.ptr[n++] = out.ptr[i];
    }
    out.len = n;
    CHECK_STR(kiln_buf_str(&out), expected);
    kiln_buf_done(&out);
    kiln_collector_config_unref(b.config);
}

static void check_refused(const char *const *uris, const char *const *sets, const char *expected)
{
    char said[512];
    struct bench b;

    CHECK(load(&b, uris, sets) < 0);
    snprintf(said, sizeof(said), "%s%s%s", b.err.where, b.err.where[0] ? ": " : "", b.err.text);
    CHECK_TEXT(said, expected);
}

/* ---- sources and merging ---- */

TEST(config, maps_are_merged_and_all_else_is_replaced)
{
    check_tree(TEXTS("yaml:{a: {b: 1, c: [1, 2]}, d: x}", "yaml:{a: {c: [3], e: 5}}"), NULL,
               "{\"a\": {\"b\": 1,\"c\": [3],\"e\": 5},\"d\": \"x\"}");
    check_tree(TEXTS("yaml:{a: {b: 1}}", "yaml:{a: 2}"), NULL, "{\"a\": 2}");
    check_tree(TEXTS("yaml:{a: 2}", "yaml:{a: {b: 1}}"), NULL, "{\"a\": {\"b\": 1}}");
}

TEST(config, null_wipes_a_map_and_an_empty_map_does_not)
{
    check_tree(TEXTS("yaml:{p: {nop: }, q: 1}", "yaml:{p: }"), NULL, "{\"p\": null,\"q\": 1}");
    check_tree(TEXTS("yaml:{p: {nop: }}", "yaml:{p: {}}"), NULL, "{\"p\": {\"nop\": null}}");
    check_tree(TEXTS("yaml:{p: }", "yaml:{p: {nop: }}"), NULL, "{\"p\": {\"nop\": null}}");
}

TEST(config, sources_that_are_empty_add_nothing)
{
    check_tree(TEXTS("yaml:", "yaml:{a: 1}", "yaml:# a remark"), NULL, "{\"a\": 1}");
    check_tree(TEXTS("yaml:"), NULL, "{}");
}

TEST(config, keys_with_colons_are_paths)
{
    check_tree(TEXTS("yaml:{a::b: 1, a::c::d: 2, a: {e::f: 3}}"), NULL,
               "{\"a\": {\"b\": 1,\"c\": {\"d\": 2},\"e\": {\"f\": 3}}}");
    check_tree(TEXTS("yaml:processors::batch/x::timeout: 2s", "yaml:processors::batch/x::n: 5"),
               NULL, "{\"processors\": {\"batch/x\": {\"timeout\": \"2s\",\"n\": 5}}}");
    check_refused(TEXTS("yaml:{a::: 1}"), NULL,
                  "--config yaml:{a::: 1}: line 1, column 7: \"a::\" is no path of keys (a::b::c)");
}

TEST(config, sets_come_last_and_are_yaml)
{
    check_tree(TEXTS("yaml:{a: {b: 1, c: 2}}"), TEXTS("a.b=[x, y]", "a::c = {d: 1}", "e.f="),
               "{\"a\": {\"b\": [\"x\",\"y\"],\"c\": {\"d\": 1}},\"e\": {\"f\": null}}");
    check_refused(TEXTS("yaml:{}"), TEXTS("a.b"),
                  "--set a.b: missing equal sign (say --set=processors.batch.timeout=2s)");
    check_refused(TEXTS("yaml:{}"), TEXTS("a=[1"),
                  "--set a=[1: line 2, column 1: did not find expected ',' or ']'");
}

TEST(config, variables_can_be_a_source)
{
    setenv("KILN_TEST_SOURCE", "a: 1\nb: [x]\n", 1);
    check_tree(TEXTS("env:KILN_TEST_SOURCE"), NULL, "{\"a\": 1,\"b\": [\"x\"]}");
}

TEST(config, what_is_no_source_is_said)
{
    check_refused(TEXTS("https://example.com/x"), NULL,
                  "unable to download the file via https https://example.com/x: nothing is fetched "
                  "here");
    check_refused(
        TEXTS("s3://example/x"), NULL,
        "unsupported scheme on URI \"s3://example/x\" (file:, env:, yaml:, http: and https: are "
        "known)");
    check_refused(TEXTS("/nonexistent/kiln.yaml"), NULL,
                  "unable to read the file /nonexistent/kiln.yaml: No such file or directory");
    check_refused(TEXTS("yaml:[1]"), NULL,
                  "--config yaml:[1]: line 1, column 1: retrieved value (type=list) cannot be used "
                  "as a Conf: it is no map");
    check_refused(TEXTS("yaml:{a: 1"), NULL,
                  "--config yaml:{a: 1: line 2, column 1: did not find expected ',' or '}'");
}

/* ---- substitution ---- */

enum wanted { NUMBER, TEXT, INLINE, TRUTH, LIST };

struct row {
    const char *value; /* of the variable ENV */
    enum wanted as;
    const char *expected; /* NULL: it is not that */
};

/* Of a Collector's own tests: the value of ENV, the field it is for, what arrives there. */
static const struct row rows[] = {
    {"123", NUMBER, "123"},
    {"123", TEXT, "123"},
    {"123", INLINE, "inline 123 end"},
    {"0123", NUMBER, "83"},
    {"0123", TEXT, "0123"},
    {"0123", INLINE, "inline 0123 end"},
    {"0xdeadbeef", NUMBER, "3735928559"},
    {"0xdeadbeef", TEXT, "0xdeadbeef"},
    {"0xdeadbeef", INLINE, "inline 0xdeadbeef end"},
    {"\"0123\"", TEXT, "\"0123\""},
    {"\"0123\"", NUMBER, NULL},
    {"\"0123\"", INLINE, "inline \"0123\" end"},
    {"!!str 0123", TEXT, "!!str 0123"},
    {"!!str 0123", INLINE, "inline !!str 0123 end"},
    {"t", TRUTH, NULL},
    {"23", TRUTH, NULL},
    {"true", TRUTH, "true"},
    {"True", TRUTH, "true"},
    {"{\"field\": 123}", INLINE, "inline {\"field\": 123} end"},
    {"1111:1111:1111:1111:1111::", TEXT, "1111:1111:1111:1111:1111::"},
    {"1111:1111:1111:1111:1111::", INLINE, "inline 1111:1111:1111:1111:1111:: end"},
    {"2006-01-02T15:04:05Z07:00", TEXT, "2006-01-02T15:04:05Z07:00"},
    {"2023-03-20T03:17:55.432328Z", INLINE, "inline 2023-03-20T03:17:55.432328Z end"},
    {"true # with a ${env:hello.world} reference", TRUTH, "true"},
    {"[\"a\",", TEXT, "[\"a\","},
    {"[\"a\",", INLINE, "inline [\"a\", end"},
    {"[filelog,windowseventlog/application]", LIST, "filelog windowseventlog/application "},
    {"[filelog,windowseventlog/application]", TEXT, "[filelog,windowseventlog/application]"},
    {"[filelog,windowseventlog/application]", INLINE,
     "inline [filelog,windowseventlog/application] end"},
    {"$$ENV", TEXT, "$ENV"},
    {"$$ENV", INLINE, "inline $ENV end"},
    {"$${ENV}", TEXT, "${ENV}"},
    {"$${env:ENV}", INLINE, "inline ${env:ENV} end"},
    {"[filelog,${env:ENV_VALUE}]", TEXT, "[filelog,testreceiver]"},
    {"[filelog,${ENV_VALUE}]", TEXT, "[filelog,testreceiver]"},
    {"[\"filelog\",\"${ENV_VALUE}\"]", LIST, "filelog testreceiver "},
    {"[\"filelog\",\"$${env:ENV_VALUE}\"]", TEXT, "[\"filelog\",\"${env:ENV_VALUE}\"]"},
    {"[\"filelog\",\"$${ENV_VALUE}\"]", LIST, "filelog ${ENV_VALUE} "},
    {"[\"filelog\",\"$ENV_VALUE\"]", TEXT, "[\"filelog\",\"$ENV_VALUE\"]"},
    {"", NUMBER, NULL},
    {"", INLINE, "inline  end"},
};

/* What a field of this kind gets, in `said`; false: nothing. */
static bool ask(const struct kiln_node *node, enum wanted as, char *said, size_t size)
{
    const char *text = NULL;
    uint64_t number = 0;
    bool yes = false;

    said[0] = '\0';
    switch (as) {
    case NUMBER:
        if (kiln_node_u64(node, &number, NULL) < 0)
            return false;
        snprintf(said, size, "%llu", (unsigned long long)number);
        return true;
    case TRUTH:
        if (kiln_node_bool(node, &yes, NULL) < 0)
            return false;
        snprintf(said, size, "%s", yes ? "true" : "false");
        return true;
    case LIST:
        for (const struct kiln_node *m = node->first; m; m = m->next)
            snprintf(said + strlen(said), size - strlen(said), "%s ", m->text);
        return node->kind == KILN_NODE_LIST;
    default:
        if (kiln_node_text(node, &text, NULL) < 0)
            return false;
        snprintf(said, size, "%s", text);
        return true;
    }
}

static void check_row(const struct row *row, const char *how)
{
    char said[256];
    struct bench b;

    if (load(&b,
             row->as == INLINE ? TEXTS("yaml:{field: \"inline ${env:ENV} end\"}")
                               : TEXTS("yaml:field: ${env:ENV}"),
             NULL) < 0)
        fail_msg("%s, %s: %s: %s", row->value, how, b.err.where, b.err.text);
    if (ask(b.config->root->first, row->as, said, sizeof(said)) != (row->expected != NULL))
        fail_msg("%s as %d, %s: \"%s\"", row->value, row->as, how, said);
    if (row->expected && strcmp(said, row->expected) != 0)
        fail_msg("%s as %d, %s: \"%s\", not \"%s\"", row->value, row->as, how, said, row->expected);
    kiln_collector_config_unref(b.config);
}

TEST(config, a_substituted_value_is_typed_and_keeps_its_text)
{
    setenv("ENV_VALUE", "testreceiver", 1);
    for (size_t i = 0; i < KILN_ARRAY_LEN(rows); i++) {
        setenv("ENV", rows[i].value, 1);
        check_row(&rows[i], "direct");
        setenv("ENV", "${env:ENV2}", 1);
        setenv("ENV2", rows[i].value, 1);
        check_row(&rows[i], "indirect");
    }
}

TEST(config, references_have_many_forms)
{
    setenv("A", "one", 1);
    setenv("EMPTY", "", 1);
    setenv("NAME", "A", 1);
    unsetenv("ABSENT");
    check_tree(
        TEXTS("yaml:{a: \"${A}\", b: \"${env:A}\", c: \"x${A}y${A}z\", d: \"${env:${NAME}}\"}"),
        NULL, "{\"a\": \"one\",\"b\": \"one\",\"c\": \"xoneyonez\",\"d\": \"one\"}");
    check_tree(TEXTS("yaml:{a: \"${env:ABSENT:-5}\", b: \"${ABSENT:-x:-y}\", c: "
                     "\"${env:EMPTY:-no}\", d: \"${env:ABSENT:-${A}}\", e: \"${env:ABSENT:-}\"}"),
               NULL, "{\"a\": 5,\"b\": \"x:-y\",\"c\": null,\"d\": \"one\",\"e\": \"\"}");
    check_tree(TEXTS("yaml:{a: \"${yaml:{x: [1, true]}}\", b: \"<${yaml:x}>\"}"), NULL,
               "{\"a\": \"{x: [1, true]}\",\"b\": \"<x>\"}");
    check_tree(TEXTS("yaml:{a: \"${yaml:[1, true]}\"}"), NULL, "{\"a\": [1,true]}");
}

TEST(config, dollars_that_name_nothing_stay)
{
    setenv("A", "one", 1);
    check_tree(TEXTS("yaml:{a: $A, b: \"$\", c: $$A, d: \"$${A} ${A}\", e: \"$$${A}\", f: \"${A\", "
                     "g: \"a}b\", h: $$$$}"),
               NULL,
               "{\"a\": \"$A\",\"b\": \"$\",\"c\": \"$A\",\"d\": \"${A} one\",\"e\": \"$one\","
               "\"f\": \"${A\",\"g\": \"a}b\",\"h\": \"$$\"}");
}

TEST(config, keys_are_not_substituted)
{
    check_tree(TEXTS("yaml:{\"${A}\": 1}"), NULL, "{\"${A}\": 1}");
}

TEST(config, maps_that_are_put_in_are_put_into_again)
{
    setenv("ENV", "{env: \"${env:ENV2}\", inline: \"inline ${env:ENV2}\"}", 1);
    setenv("ENV2", "{env2: \"${env:ENV3}\"}", 1);
    setenv("ENV3", "{value: 123}", 1);
    check_tree(TEXTS("yaml:field: ${env:ENV}"), NULL,
               "{\"field\": {\"env\": {\"env2\": {\"value\": 123}},\"inline\": \"inline {env2: "
               "\\\"{value: 123}\\\"}\"}}");
}

TEST(config, files_are_put_in_and_know_their_lines)
{
    char dir[] = "/tmp/kiln-config-XXXXXX", path[64], value[128], where[160];
    struct bench b;
    uint64_t number;
    FILE *f;

    CHECK(mkdtemp(dir) != NULL);
    snprintf(path, sizeof(path), "%s/part.yaml", dir);
    f = fopen(path, "w");
    CHECK(f != NULL);
    fputs("# a part\nbatch:\n  timeout: five\n", f);
    CHECK_OK(fclose(f));
    snprintf(value, sizeof(value), "yaml:processors: ${file:%s}", path);
    CHECK_OK(load(&b, TEXTS(value), NULL));
    CHECK_EQ(kiln_node_u64(b.config->root->first->first->first, &number, &b.err), KILN_E_MALFORMED);
    snprintf(where, sizeof(where), "%s: line 3, column 12", path);
    CHECK_TEXT(b.err.where, where);
    kiln_collector_config_unref(b.config);
    f = fopen(path, "w");
    fputs("secret\n", f);
    CHECK_OK(fclose(f));
    snprintf(value, sizeof(value), "yaml:a: Bearer ${file:%s}", path);
    check_tree(TEXTS(value), NULL, "{\"a\": \"Bearer secret\"}");
    CHECK_OK(unlink(path));
    CHECK_OK(rmdir(dir));
}

TEST(config, what_a_variable_brings_stands_where_it_is_asked_for)
{
    struct bench b;
    uint64_t number;

    setenv("ENV", "a:\n\n  - x\n", 1);
    CHECK_OK(load(&b, TEXTS("yaml:p: 1\nq: ${ENV}\n"), NULL));
    CHECK_EQ(kiln_node_u64(b.config->root->first->next->first->first, &number, &b.err),
             KILN_E_MALFORMED);
    CHECK_TEXT(b.err.where, "--config yaml:p: 1\nq: ${ENV}\n: line 2, column 4");
    kiln_collector_config_unref(b.config);
}

TEST(config, a_variable_that_is_not_set_is_empty_and_told_of)
{
    struct bench b;

    unsetenv("ABSENT");
    CHECK_OK(load(&b, TEXTS("yaml:a: 1\nb: ${env:ABSENT}"), NULL));
    CHECK(kiln_node_is_null(b.config->root->first->next));
    CHECK_TEXT(b.warned, "2: Configuration references unset environment variable \"ABSENT\"");
    kiln_collector_config_unref(b.config);
}

TEST(config, references_that_name_nothing_are_errors_with_their_place)
{
    static const struct {
        const char *uri, *said;
    } cases[] = {
        {"yaml:a: ${1}", "environment variable \"1\" has invalid name: must match regex "
                         "^[a-zA-Z_][a-zA-Z0-9_]*$ (a dollar is $$)"},
        {"yaml:a: x${}", "environment variable \"\" has invalid name: must match regex "
                         "^[a-zA-Z_][a-zA-Z0-9_]*$ (a dollar is $$)"},
        {"yaml:a: ${s3:x}",
         "scheme \"s3\" is not supported for uri \"s3:x\" (file:, env:, yaml:, http: and https: "
         "are known; a dollar is $$)"},
        {"yaml:a: ${env:A$B}", "the uri \"env:A$B\" contains unsupported characters ('$')"},
        {"yaml:a: ${x:y}", "invalid uri: \"x:y\""},
        {"yaml:a: ${file:/nonexistent}",
         "unable to read the file /nonexistent: No such file or directory"},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        struct bench b;

        CHECK(load(&b, TEXTS(cases[i].uri), NULL) < 0);
        CHECK_TEXT(b.err.text, cases[i].said);
        CHECK(kiln_str_ends(kiln_str_of(b.err.where), KILN_STR(": line 1, column 4")));
    }
}

TEST(config, what_never_ends_is_stopped)
{
    struct bench b;

    setenv("ENV", "${env:ENV}", 1);
    CHECK_EQ(load(&b, TEXTS("yaml:a: ${ENV}"), NULL), KILN_E_LIMIT);
    CHECK_TEXT(b.err.text, "too many recursive expansions (at most 100 in a value)");
    setenv("ENV", "[\"${env:ENV}\", \"${env:ENV}\"]", 1);
    CHECK_EQ(load(&b, TEXTS("yaml:a: ${ENV}"), NULL), KILN_E_LIMIT);
    setenv("ENV", "${env:ENV}${env:ENV}", 1);
    CHECK_EQ(load(&b, TEXTS("yaml:a: x ${ENV}"), NULL), KILN_E_LIMIT);
}

/* ---- typed values ---- */

TEST(config, what_is_in_quotes_is_no_number_and_not_true)
{
    static const char *const texts[] = {"\"5\"", "'true'", "!!str 5"};
    uint64_t number;
    bool yes;

    for (size_t i = 0; i < KILN_ARRAY_LEN(texts); i++) {
        char uri[64];
        struct bench b;

        snprintf(uri, sizeof(uri), "yaml:a: %s", texts[i]);
        CHECK_OK(load(&b, TEXTS(uri), NULL));
        CHECK(kiln_node_u64(b.config->root->first, &number, NULL) < 0);
        CHECK(kiln_node_bool(b.config->root->first, &yes, NULL) < 0);
        kiln_collector_config_unref(b.config);
    }
}

TEST(config, numbers_have_many_forms)
{
    check_tree(TEXTS("yaml:{a: 017, b: 0o17, c: 0b11, d: 1_000, e: -0x10, f: +5, g: 0, h: 08}"),
               NULL,
               "{\"a\": 15,\"b\": 15,\"c\": 3,\"d\": 1000,\"e\": -16,\"f\": 5,\"g\": 0,\"h\": "
               "\"08\"}");
}

TEST(config, aliases_and_merge_keys_work)
{
    check_tree(TEXTS("yaml:{x: &q {enabled: true}, a: *q, b: {<<: *q, n: 1}}"), NULL,
               "{\"x\": {\"enabled\": true},\"a\": {\"enabled\": true},\"b\": {\"n\": "
               "1,\"enabled\": true}}");
}

/* ---- printing ---- */

static void check_printed(const char *uri, bool redacted, const char *expected)
{
    struct kiln_buf out;
    struct bench b;

    CHECK_OK(load(&b, TEXTS(uri), NULL));
    kiln_buf_init(&out, 1 << 16);
    kiln_collector_config_format(b.config, redacted, &out);
    CHECK_STR(kiln_buf_str(&out), expected);
    kiln_buf_done(&out);
    kiln_collector_config_unref(b.config);
}

TEST(config, what_is_printed_can_be_read_again)
{
    check_printed("yaml:{a: {b: [x, {c: 1, d: {}}], e: }, f: 0x1F, g: \"5\", h: \"a: b\", i: yes}",
                  false,
                  "a:\n  b:\n    - x\n    -\n      c: 1\n      d: {}\n  e: null\nf: 0x1F\ng: "
                  "\"5\"\nh: \"a: b\"\ni: \"yes\"\n");
    check_printed("yaml:", false, "{}\n");
}

TEST(config, secrets_are_hidden)
{
    check_printed("yaml:{headers: {Authorization: Bearer x}, token: abc, password: , file: x}",
                  true,
                  "headers:\n  Authorization: \"[REDACTED]\"\ntoken: \"[REDACTED]\"\npassword: "
                  "null\nfile: x\n");
    check_printed("yaml:{tokens: [a, b], response_headers: {x: y}, allowed_headers: [z]}", true,
                  "tokens:\n  - \"[REDACTED]\"\n  - \"[REDACTED]\"\nresponse_headers:\n  x: "
                  "\"[REDACTED]\"\nallowed_headers:\n  - z\n");
}

TEST(config, out_of_memory_is_an_ordinary_error)
{
    setenv("ENV", "[1, \"${A}\"]", 1);
    setenv("A", "one", 1);
    for (uint64_t n = 1;; n++) {
        struct bench b;
        int r;

        kiln_mem_fail_at(n);
        r = load(&b, TEXTS("yaml:{a: &x {b::c: \"${ENV}\"}, d: 0x5, e: {<<: *x}}", "yaml:{d: $$}"),
                 TEXTS("a.b=5"));
        if (!kiln_mem_failed()) {
            CHECK_EQ(r, 0);
            kiln_collector_config_unref(b.config);
            break;
        }
        CHECK_EQ(r, -ENOMEM);
    }
    kiln_mem_fail_at(0);
    CHECK_EQ(kiln_mem_live(), 0);
}
