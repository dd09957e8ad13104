/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/settings.h"

#include "base/clock.h"
#include "test.h"

static struct kiln_config *parsed(const char *text)
{
    struct kiln_config *config = NULL;
    struct kiln_err err = {0};

    if (kiln_config_parse(kiln_str_of(text), &config, &err) < 0)
        fail_msg("%s: %s: %s", text, err.where, err.text);
    return config;
}

static void check_said(const struct kiln_err *err, const char *expected)
{
    char said[512];

    snprintf(said, sizeof(said), "%s: %s", err->where, err->text);
    CHECK_TEXT(said, expected);
}

typedef int read_fn(const struct kiln_node *node, struct kiln_tls_settings *ret,
                    struct kiln_err *err);

static void check_refused(read_fn *read, const char *text, const char *expected)
{
    struct kiln_config *config = parsed(text);
    struct kiln_tls_settings tls = {0};
    struct kiln_err err = {0};

    CHECK(read(kiln_config_root(config), &tls, &err) < 0);
    check_said(&err, expected);
    kiln_config_free(config);
}

TEST(settings, tls_of_a_server)
{
    struct kiln_config *config =
        parsed("{cert_file: c.pem, key_file: k.pem, client_ca_file: ca.pem, min_version: 1.3,\n"
               " reload_interval: 1m30s}");
    struct kiln_tls_settings tls = {0};
    struct kiln_tls_opts opts;
    struct kiln_err err = {0};

    CHECK_EQ(kiln_settings_tls_server(NULL, &tls, &err), 0);
    CHECK(!tls.present);
    CHECK_EQ(kiln_settings_tls_server(kiln_config_root(config), &tls, &err), 0);
    CHECK(tls.present);
    opts = kiln_settings_tls_opts(&tls);
    CHECK_TEXT(opts.cert_file, "c.pem");
    CHECK_TEXT(opts.key_file, "k.pem");
    CHECK_TEXT(opts.client_ca_file, "ca.pem");
    CHECK_EQ(opts.min_version, KILN_TLS_1_3);
    CHECK_EQ(opts.max_version, KILN_TLS_ANY);
    CHECK_EQ(opts.reload_interval_ms, 90000);
    kiln_config_free(config);
}

TEST(settings, tls_of_a_server_that_cannot_be)
{
    check_refused(kiln_settings_tls_server, "{min_version: \"1.2\"}",
                  "line 1, column 1: a server with tls needs cert_file and key_file");
    check_refused(
        kiln_settings_tls_server, "{cert_file: c.pem}",
        "line 1, column 1: cert_file and key_file belong together: one of them is missing");
    check_refused(kiln_settings_tls_server, "cert_file: a\nkey_file: b\ninsecure: true",
                  "line 3, column 1: unknown key insecure");
    check_refused(kiln_settings_tls_server, "cert_file: a\nkey_pem: b",
                  "line 2, column 10: key_pem: write it to a file and name that in key_file");
    check_refused(kiln_settings_tls_server, "{cert_file: a, key_file: b, min_version: 1.1}",
                  "line 1, column 42: min_version: \"1.1\" is not a version of TLS that is safe; "
                  "1.2 and 1.3 are");
    check_refused(kiln_settings_tls_server,
                  "{cert_file: a, key_file: b, min_version: 1.3, max_version: 1.2}",
                  "line 1, column 1: min_version is above max_version");
}

TEST(settings, tls_of_a_client)
{
    struct kiln_config *config =
        parsed("{insecure: true, insecure_skip_verify: true, ca_file: ca.pem,\n"
               " server_name_override: other, include_system_ca_certs_pool: true}");
    struct kiln_tls_settings tls = {0};
    struct kiln_err err = {0};

    CHECK_EQ(kiln_settings_tls_client(kiln_config_root(config), &tls, &err), 0);
    CHECK(tls.insecure && tls.insecure_skip_verify && tls.include_system_ca_certs_pool);
    CHECK_TEXT(tls.ca_file, "ca.pem");
    CHECK_TEXT(tls.server_name_override, "other");
    kiln_config_free(config);
}

TEST(settings, auth_names_an_extension)
{
    struct kiln_config *good = parsed("authenticator: basicauth/server"), *bad = parsed("{}");
    struct kiln_err err = {0};
    const char *id = NULL;

    CHECK_EQ(kiln_settings_auth(NULL, &id, &err), 0);
    CHECK(!id);
    CHECK_EQ(kiln_settings_auth(kiln_config_root(good), &id, &err), 0);
    CHECK_TEXT(id, "basicauth/server");
    id = NULL;
    CHECK(kiln_settings_auth(kiln_config_root(bad), &id, &err) < 0);
    check_said(&err, "line 1, column 1: auth needs an authenticator, which names an extension");
    kiln_config_free(good);
    kiln_config_free(bad);
}

static void join_headers(const char *text, char *out, size_t size)
{
    struct kiln_config *config = parsed(text);
    const struct kiln_node *node = kiln_config_root(config), *at = node;
    struct kiln_header_setting header;
    struct kiln_err err = {0};
    size_t len = 0;

    *out = '\0';
    if (kiln_settings_headers(node, &err) < 0)
        snprintf(out, size, "%s: %s", err.where, err.text);
    else
        while (kiln_settings_header(node, &at, &header))
            len += (size_t)snprintf(out + len, size - len, "%s=%s;", header.name, header.value);
    kiln_config_free(config);
}

TEST(settings, headers_are_a_map_or_a_list)
{
    static const char *const rows[][2] = {
        {"{X-A: one, x-b: \"two three\"}", "X-A=one;x-b=two three;"},
        {"[{name: a, value: b}, {name: c}]", "a=b;c=;"},
        {"{}", ""},
        {"", ""},
        {"text", "line 1, column 1: headers are a map of names and values"},
        {"{\"a b\": c}", "line 1, column 9: \"a b\" is no name of a header"},
        {"{a: \"b\\nc\"}", "line 1, column 5: the value of a has a line's end"},
        {"[{name: a, worth: b}]", "line 1, column 12: unknown key worth"},
    };
    char said[512];

    for (size_t i = 0; i < KILN_ARRAY_LEN(rows); i++) {
        join_headers(rows[i][0], said, sizeof(said));
        CHECK_TEXT(said, rows[i][1]);
    }
}

static void join_texts(const char *text, char *out, size_t size)
{
    struct kiln_config *config = parsed(text);
    struct kiln_texts at = {.node = kiln_config_root(config)};
    struct kiln_err err = {0};
    struct kiln_str one;
    size_t len = 0;

    *out = '\0';
    if (kiln_settings_texts(at.node, &err) < 0)
        snprintf(out, size, "%s: %s", err.where, err.text);
    else
        while (kiln_texts_next(&at, &one))
            len += (size_t)snprintf(out + len, size - len, "%.*s;", (int)one.len, one.ptr);
    kiln_config_free(config);
}

TEST(settings, lists_of_texts)
{
    static const char *const rows[][2] = {
        {"[a, \"b,c\"]", "a;b,c;"},
        {"a, b,", "a;b;"},
        {"[]", ""},
        {"", ""},
        {"{a: b}", "line 1, column 1: this is a map, not a list of texts"},
        {"[a, [b]]", "line 1, column 5: this is a list, not a text"},
    };
    char said[512];

    for (size_t i = 0; i < KILN_ARRAY_LEN(rows); i++) {
        join_texts(rows[i][0], said, sizeof(said));
        CHECK_TEXT(said, rows[i][1]);
    }
}

TEST(settings, keys_without_a_value_are_there)
{
    struct kiln_config *config = parsed("{grpc: , http: null}");
    const struct kiln_node *root = kiln_config_root(config);

    CHECK(kiln_settings_has(root, "grpc"));
    CHECK(kiln_settings_has(root, "http"));
    CHECK(!kiln_settings_has(root, "thrift"));
    CHECK(!kiln_settings_has(NULL, "grpc"));
    kiln_config_free(config);
}
