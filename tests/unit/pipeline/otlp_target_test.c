/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/exporters/otlp_target.h"

#include <errno.h>

#include "base/clock.h"
#include "base/mem.h"
#include "pipeline/exporters/sender.h"
#include "test.h"

/* The environment of a test: NAME=VALUE lines without OTEL_EXPORTER_OTLP_. */
static const char *const *environment;

static char *variable(const char *name)
{
    for (const char *const *line = environment; line && *line; line++) {
        const char *equals = strchr(*line, '=');
        size_t n = (size_t)(equals - *line);

        if (strncmp(name, "OTEL_EXPORTER_OTLP_", 19) == 0 && strlen(name + 19) == n &&
            strncmp(name + 19, *line, n) == 0)
            return (char *)(uintptr_t)(equals + 1);
    }
    return NULL;
}

#define ENV(...) ((const char *const[]){__VA_ARGS__, NULL})

/* "protocol server path" of what was read, or the error. */
static const char *where(const struct kiln_otlp_export_opts *opts, const char *const *env)
{
    static const char *const protocols[] = {"grpc", "http", "json"};
    static char text[8192];
    struct kiln_otlp_target target;
    struct kiln_err err = {0};

    environment = env;
    if (kiln_otlp_target_read(opts, variable, &target, &err) < 0)
        snprintf(text, sizeof(text), "%s: %s", err.where, err.text);
    else
        snprintf(text, sizeof(text), "%s %s %s", protocols[target.protocol], target.server,
                 strstr(target.path, "ProfilesService") ? "Export" : target.path);
    kiln_otlp_target_done(&target);
    CHECK_EQ(kiln_mem_live(), 0);
    return text;
}

static const char *where_of(const char *endpoint)
{
    return where(&(struct kiln_otlp_export_opts){.endpoint = endpoint}, NULL);
}

TEST(otlp_target, port_4317_is_grpc_and_all_else_is_http)
{
    CHECK_TEXT(where_of(NULL), "grpc http://127.0.0.1:4317 Export");
    CHECK_TEXT(where_of("http://collector:4317"), "grpc http://collector:4317 Export");
    CHECK_TEXT(where_of("collector:4317"), "grpc http://collector:4317 Export");
    CHECK_TEXT(where_of("https://[::1]:4317/"), "grpc https://[::1]:4317 Export");
    CHECK_TEXT(where_of("http://collector:4318"),
               "http http://collector:4318 /v1development/profiles");
    CHECK_TEXT(where_of("https://otel.example"),
               "http https://otel.example /v1development/profiles");
    CHECK_TEXT(where_of("http://h:14317"), "http http://h:14317 /v1development/profiles");
    CHECK_TEXT(where_of("unix:/run/kiln/kiln.sock"),
               "http unix:/run/kiln/kiln.sock /v1development/profiles");
    CHECK_TEXT(
        where(&(struct kiln_otlp_export_opts){.endpoint = "http://h:9", .protocol = "grpc"}, NULL),
        "grpc http://h:9 Export");
    CHECK_TEXT(
        where(&(struct kiln_otlp_export_opts){.endpoint = "http://h:4317", .protocol = "http/json"},
              NULL),
        "json http://h:4317 /v1development/profiles");
}

TEST(otlp_target, a_base_gets_the_path_and_an_endpoint_for_profiles_is_the_very_address)
{
    const struct kiln_otlp_export_opts none = {0};

    CHECK_TEXT(where_of("http://h:4318/otlp/"), "http http://h:4318 /otlp/v1development/profiles");
    CHECK_TEXT(where(&none, ENV("ENDPOINT=http://h:4318/x")),
               "http http://h:4318 /x/v1development/profiles");
    CHECK_TEXT(where(&none, ENV("PROFILES_ENDPOINT=http://h:4318/my/profiles?a=b")),
               "http http://h:4318 /my/profiles?a=b");
    CHECK_TEXT(where(&none, ENV("PROFILES_ENDPOINT=http://h:4318")), "http http://h:4318 /");
    CHECK_TEXT(where(&none, ENV("PROFILES_ENDPOINT=http://h:4318?a=b")),
               "http http://h:4318 /?a=b");
    CHECK_TEXT(where(&none, ENV("PROFILES_ENDPOINT=http://h:4318/a#b")), "http http://h:4318 /a");
    CHECK_TEXT(where(&none, ENV("PROFILES_ENDPOINT=http://h:4317/x")), "grpc http://h:4317 Export");
}

TEST(otlp_target, options_count_more_than_variables_and_those_for_profiles_more_than_the_rest)
{
    const char *const *env = ENV("ENDPOINT=http://a:1", "PROFILES_ENDPOINT=http://b:2",
                                 "PROTOCOL=http/protobuf", "PROFILES_PROTOCOL=grpc");

    CHECK_TEXT(where(&(struct kiln_otlp_export_opts){0}, env), "grpc http://b:2 Export");
    CHECK_TEXT(
        where(&(struct kiln_otlp_export_opts){.endpoint = "http://c:3", .protocol = "http/json"},
              env),
        "json http://c:3 /v1development/profiles");
}

TEST(otlp_target, without_a_scheme_it_is_plain_unless_that_is_said_to_be_wrong)
{
    const struct kiln_otlp_export_opts none = {0};

    CHECK_TEXT(where(&none, ENV("ENDPOINT=h:4317", "INSECURE=true")), "grpc http://h:4317 Export");
    CHECK_TEXT(where(&none, ENV("ENDPOINT=h:4317", "INSECURE=false")),
               "grpc https://h:4317 Export");
    CHECK_TEXT(where(&none, ENV("ENDPOINT=http://h:4317", "INSECURE=false")),
               "grpc http://h:4317 Export");
}

TEST(otlp_target, the_rest_is_read_too)
{
    struct kiln_otlp_target target;
    struct kiln_err err = {0};

    environment =
        ENV("HEADERS=Authorization=Bearer%20a%2Cb, x-scope-orgid = shop ,,", "COMPRESSION=zstd",
            "TIMEOUT=1500", "CERTIFICATE=/ca", "CLIENT_KEY=/k", "PROFILES_CLIENT_CERTIFICATE=/c");
    CHECK_OK(kiln_otlp_target_read(&(struct kiln_otlp_export_opts){0}, variable, &target, &err));
    CHECK_EQ(target.n_headers, 2);
    CHECK_STR(target.headers[0].name, "authorization");
    CHECK_STR(target.headers[0].value, "Bearer a,b");
    CHECK_STR(target.headers[1].name, "x-scope-orgid");
    CHECK_STR(target.headers[1].value, "shop");
    CHECK_EQ(target.compression, KILN_ZSTD);
    CHECK_EQ(target.timeout_ms, 1500);
    CHECK_TEXT(target.ca_file, "/ca");
    CHECK_TEXT(target.cert_file, "/c");
    CHECK_TEXT(target.key_file, "/k");
    kiln_otlp_target_done(&target);

    environment = NULL;
    CHECK_OK(kiln_otlp_target_read(
        &(struct kiln_otlp_export_opts){.compression = "none", .timeout_ns = 2 * KILN_NS_PER_S},
        variable, &target, &err));
    CHECK_EQ(target.compression, KILN_PLAIN);
    CHECK_EQ(target.timeout_ms, 2000);
    CHECK_EQ(target.n_headers, 0);
    CHECK(!target.ca_file);
    kiln_otlp_target_done(&target);
}

TEST(otlp_target, a_user_in_the_address_goes_into_a_header)
{
    struct kiln_otlp_target target;
    struct kiln_err err = {0};

    environment = ENV("ENDPOINT=http://al%40ice:p@ss@kiln:4318/otlp");
    CHECK_OK(kiln_otlp_target_read(&(struct kiln_otlp_export_opts){0}, variable, &target, &err));
    CHECK_TEXT(target.server, "http://kiln:4318");
    CHECK_TEXT(target.path, "/otlp/v1development/profiles");
    CHECK_EQ(target.n_headers, 1);
    CHECK_STR(target.headers[0].name, "authorization");
    CHECK_STR(target.headers[0].value, "Basic YWxAaWNlOnBAc3M="); /* al@ice:p@ss */
    kiln_otlp_target_done(&target);

    environment = ENV("ENDPOINT=http://u:p@kiln", "HEADERS=Authorization=Bearer%20x");
    CHECK_OK(kiln_otlp_target_read(&(struct kiln_otlp_export_opts){0}, variable, &target, &err));
    CHECK_EQ(target.n_headers, 1);
    CHECK_STR(target.headers[0].value, "Bearer x");
    kiln_otlp_target_done(&target);
    CHECK_TEXT(where_of("http://kiln/a@b"), "http http://kiln /a@b/v1development/profiles");
}

TEST(otlp_target, mistakes_are_named_with_their_variable_and_without_secrets)
{
    const struct kiln_otlp_export_opts none = {0};

    CHECK_TEXT(where(&none, ENV("PROTOCOL=carrier-pigeon")),
               "OTEL_EXPORTER_OTLP_PROTOCOL: \"carrier-pigeon\" is no protocol of OTLP (say grpc, "
               "http/protobuf or http/json)");
    CHECK_TEXT(where(&none, ENV("PROFILES_COMPRESSION=lzma")),
               "OTEL_EXPORTER_OTLP_PROFILES_COMPRESSION: \"lzma\" is no compression of OTLP (say "
               "gzip, zstd or none)");
    CHECK_TEXT(where(&none, ENV("TIMEOUT=10s")),
               "OTEL_EXPORTER_OTLP_TIMEOUT: \"10s\" is no number of milliseconds");
    CHECK_TEXT(where(&none, ENV("HEADERS=a=b,secret")),
               "OTEL_EXPORTER_OTLP_HEADERS: header 2 is not as headers must be (say "
               "name=value,name=value, at most 64 of them)");
    CHECK(strstr(where(&none, ENV("HEADERS=a=b%0d%0ac")), "header 1"));
    CHECK(strstr(where(&none, ENV("HEADERS=a b=c")), "header 1"));
    CHECK(strstr(where(&none, ENV("HEADERS=a=%zz")), "header 1"));
    CHECK_TEXT(where_of("ftp://h"),
               ": \"ftp://h\" is no address for OTLP (say http://127.0.0.1:4317)");
    CHECK(strstr(where_of("http://"), "no address"));
    CHECK(strstr(where_of("http://h:99999"), "no address: ports are 1 to 65535"));
    CHECK(strstr(where_of("http://h:/x"), "ports"));
    CHECK(strstr(where_of("[::1]:0"), "ports"));
    CHECK(strstr(where_of("h:$PORT"), "ports"));
    CHECK(strstr(where_of("http://[::1]"), "http http://[::1] "));
    CHECK(strstr(where_of("http://a b"), "space or control"));
    CHECK(strstr(where_of("http://a/b?c"), "question mark"));
    CHECK(strstr(where_of("#a"), "no address"));
    CHECK(!strstr(where_of("ftp://u:hunter2@h"), "hunter2"));
    CHECK(!strstr(where_of("http://u:hunter2@"), "hunter2"));
    CHECK(!strstr(where_of("http://u:hunter2@a/b?c"), "hunter2"));
    CHECK(!strstr(where_of("http://u:hunter2@a b"), "hunter2"));
    CHECK(!strstr(where_of("http://u:%zz@a"), "zz"));
}

/* Who said that he has it is not sent it again, whatever he meant to say beside. */
TEST(otlp_answer, what_grpc_has_accepted_is_sent_also_where_its_message_cannot_be_read)
{
    const struct kiln_answer said_ok = {.status = 200, .rpc_ok = true}, nothing = {0};
    const struct kiln_err err = {.code = KILN_E_MALFORMED, .text = "not one gRPC message"};
    struct kiln_export_verdict verdict;

    kiln_export_judge(KILN_OTLP_GRPC, KILN_E_MALFORMED, &said_ok, &err, &verdict);
    CHECK_EQ(verdict.fate, KILN_EXPORT_SENT);
    CHECK_TEXT(verdict.result.message, "not one gRPC message");
    kiln_export_judge(KILN_OTLP_GRPC, KILN_E_MALFORMED, &nothing, &err, &verdict);
    CHECK_EQ(verdict.fate, KILN_EXPORT_AGAIN);
}
