/* SPDX-License-Identifier: Apache-2.0 */
/* Exporters that say who they are, and look at who answers: authenticators, TLS on both sides. */
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "folder.h"
#include "identity.h"
#include "net.h"
#include "net/rpc.h"
#include "test.h"
#include "ways_kit.h"

#define PATIENCE_NS (60 * KILN_NS_PER_S) /* which no working test needs */

/* A receiver that notes who called; the graph that sends to it has a way in for folded stacks. */
struct secure {
    struct net_fixture net;
    struct ways kit;
    struct identity ca, host, stranger;
    char folder[FOLDER_NAME];
};

static _Atomic uint32_t answered;
static char seen[512]; /* who, and the tenant */

static void note(struct kiln_rpc *rpc)
{
    struct kiln_request *request = rpc->request;

    snprintf(seen, sizeof(seen), "%.*s %.*s",
             KILN_STR_ARG(kiln_request_header(request, "authorization")),
             KILN_STR_ARG(kiln_request_header(request, "x-scope-orgid")));
    atomic_fetch_add(&answered, 1);
    kiln_rpc_reply(rpc, KILN_STR(""));
}

static void path_in(const struct secure *s, const char *name, char ret[128])
{
    snprintf(ret, 128, "%s/%s", s->folder, name);
}

static void make_identities(struct secure *s)
{
    char ca[128], other[128], cert[128], key[128];

    s->ca = make_identity("authority", NULL);
    s->host = make_identity("kiln.test", &s->ca);
    s->stranger = make_identity("stranger", NULL);
    path_in(s, "ca.pem", ca);
    path_in(s, "other.pem", other);
    path_in(s, "cert.pem", cert);
    path_in(s, "key.pem", key);
    save_identity(&s->ca, ca, NULL);
    save_identity(&s->stranger, other, NULL);
    save_identity(&s->host, cert, key);
}

static void add_routes(struct net_fixture *net)
{
    static const struct kiln_rpc_route routes[] = {
        {.path = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
         .handler = note},
        {.path = "/push.v1.PusherService/Push", .handler = note},
        {.path = "/v1development/profiles", .handler = note, .http_only = true},
    };

    CHECK_OK(kiln_router_new(&net->router));
    for (size_t i = 0; i < KILN_ARRAY_LEN(routes); i++)
        CHECK_OK(kiln_rpc_add(net->router, &routes[i]));
}

static void begin(struct secure *s, bool tls)
{
    char ca[128], cert[128], key[128];
    struct kiln_listen_opts listen = {.address = "127.0.0.1:0"};

    *s = (struct secure){0};
    answered = 0;
    seen[0] = '\0';
    folder_make(s->folder);
    make_identities(s);
    path_in(s, "ca.pem", ca);
    path_in(s, "cert.pem", cert);
    path_in(s, "key.pem", key);
    add_routes(&s->net);
    listen.router = s->net.router;
    if (tls)
        listen.tls =
            (struct kiln_tls_opts){.cert_file = cert, .key_file = key, .client_ca_file = ca};
    CHECK_OK(kiln_server_new(NULL, &s->net.server));
    CHECK_OK(kiln_server_listen(s->net.server, &listen, &s->net.port, NULL));
    CHECK_OK(kiln_server_start(s->net.server, NULL));
}

/* `%s` of the settings are the folder; all of them have the same endpoint. */
static void open_graph(struct secure *s, const char *type, const char *extension,
                       const char *settings)
{
    char yaml[2048], own[1024];

    snprintf(own, sizeof(own), settings, s->folder, s->folder, s->folder);
    snprintf(yaml, sizeof(yaml),
             "extensions: {%s}\n"
             "receivers: {pyroscope: {endpoint: '127.0.0.1:0'}}\n"
             "exporters: {%s: {endpoint: '%s://127.0.0.1:%u', retry_on_failure: {enabled: false},\n"
             "  timeout: 60s, headers: {X-Scope-OrgID: shop}, %s}}\n"
             "service: {extensions: [%.*s],\n"
             "  pipelines: {profiles: {receivers: [pyroscope], exporters: [%s]}}}\n",
             extension, type, strstr(settings, "tls") ? "https" : "http", s->net.port, own,
             (int)strcspn(extension, ":"), extension, type);
    ways_start_graph(&s->kit, yaml);
}

static double count(struct secure *s, const char *name, const char *type)
{
    return kiln_metric_value(
        kiln_metric_get(s->kit.metrics, KILN_COUNTER, name, "", KILN_LABELS("exporter", type)));
}

/* One profile; whether it arrived. */
static bool sends(struct secure *s, const char *type)
{
    uint64_t patience = kiln_clock_mono_ns() + PATIENCE_NS;
    double sent = count(s, "otelcol_exporter_sent_profile_samples", type);
    double failed = count(s, "otelcol_exporter_send_failed_profile_samples", type);

    ways_call(&s->kit, "pyroscope",
              &(struct kiln_call){.path = "/ingest?name=app&format=folded",
                                  .content_type = "text/plain",
                                  .body = KILN_STR("main;read 3\n")});
    CHECK_EQ(s->kit.answer.status, 200);
    while (kiln_clock_mono_ns() < patience) {
        if (count(s, "otelcol_exporter_sent_profile_samples", type) > sent)
            return true;
        if (count(s, "otelcol_exporter_send_failed_profile_samples", type) > failed)
            return false;
        usleep(1000);
    }
    fail_msg("nothing was sent, and nothing was given up");
    return false;
}

static void end(struct secure *s)
{
    net_stop(&s->net);
    free_identity(&s->ca);
    free_identity(&s->host);
    free_identity(&s->stranger);
    ways_stop(&s->kit);
    folder_remove(s->folder);
}

static const char *const types[] = {"otlp_grpc", "otlp_http", "pyroscope"};

TEST(otlp_secure, exporters_send_what_their_authenticator_says)
{
    static const char *const extensions[] = {
        "bearertokenauth: {token: secret}",
        "basicauth/out: {client_auth: {username: kiln, password: pass}}"};
    static const char *const says[] = {"Bearer secret shop", "Basic a2lsbjpwYXNz shop"};

    for (size_t i = 0; i < KILN_ARRAY_LEN(types); i++) {
        for (size_t j = 0; j < KILN_ARRAY_LEN(extensions); j++) {
            struct secure s;
            char settings[128];

            begin(&s, false);
            snprintf(settings, sizeof(settings), "auth: {authenticator: %.*s}",
                     (int)strcspn(extensions[j], ":"), extensions[j]);
            open_graph(&s, types[i], extensions[j], settings);
            CHECK(sends(&s, types[i]));
            CHECK_TEXT(seen, says[j]);
            end(&s);
        }
    }
}

/* A token that is written anew counts from the next request on. */
TEST(otlp_secure, a_token_in_a_file_may_change)
{
    for (size_t i = 0; i < KILN_ARRAY_LEN(types); i++) {
        struct secure s;
        char extension[256], file[128];

        begin(&s, false);
        path_in(&s, "token", file);
        CHECK_OK(kiln_file_write(file, KILN_STR("one\n"), NULL));
        snprintf(extension, sizeof(extension), "bearertokenauth: {filename: '%s'}", file);
        open_graph(&s, types[i], extension, "auth: {authenticator: bearertokenauth}");
        CHECK(sends(&s, types[i]));
        CHECK_TEXT(seen, "Bearer one shop");
        CHECK_OK(kiln_file_write(file, KILN_STR("another\n"), NULL));
        CHECK(sends(&s, types[i]));
        CHECK_TEXT(seen, "Bearer another shop");
        end(&s);
    }
}

#define MINE  "cert_file: '%s/cert.pem', key_file: '%s/key.pem'"
#define NAMED "server_name_override: kiln.test"

TEST(otlp_secure, tls_settings_of_exporters_do_what_they_say)
{
    static const struct {
        const char *settings;
        bool arrives;
    } cases[] = {
        {"tls: {" MINE ", ca_file: '%s/ca.pem', " NAMED "}", true},
        {"tls: {" MINE ", ca_file: '%s/ca.pem', " NAMED ", min_version: '1.3'}", true},
        {"tls: {" MINE ", ca_file: '%s/ca.pem', " NAMED ", reload_interval: 1s}", true},
        {"tls: {" MINE ", ca_file: '%s/ca.pem', include_system_ca_certs_pool: true, " NAMED "}",
         true},
        {"tls: {" MINE ", insecure_skip_verify: true}", true},
        {"tls: {" MINE ", ca_file: '%s/other.pem', " NAMED "}", false},
        {"tls: {" MINE ", ca_file: '%s/ca.pem', server_name_override: other.test}", false},
        {"tls: {" MINE ", " NAMED "}", false},             /* the system knows nobody */
        {"tls: {ca_file: '%s/ca.pem', " NAMED "}", false}, /* it shows no certificate */
        {"tls: {insecure_skip_verify: true, " NAMED "}", false},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(types) * KILN_ARRAY_LEN(cases); i++) {
        const char *type = types[i % KILN_ARRAY_LEN(types)];
        size_t which = i / KILN_ARRAY_LEN(types);
        struct secure s;

        begin(&s, true);
        open_graph(&s, type, "", cases[which].settings);
        if (sends(&s, type) != cases[which].arrives)
            fail_msg("%s with %s", type, cases[which].settings);
        end(&s);
    }
}

static const char *refusal(const char *type, const char *settings)
{
    char yaml[1024];

    snprintf(yaml, sizeof(yaml),
             "extensions: {basicauth: {htpasswd: {inline: 'a:b'}}}\n"
             "receivers: {nop: }\nexporters: {%s: {endpoint: 'https://host:1', %s}}\n"
             "service: {extensions: [basicauth],\n"
             "  pipelines: {profiles: {receivers: [nop], exporters: [%s]}}}\n",
             type, settings, type);
    return ways_graph_refusal(yaml);
}

TEST(otlp_secure, what_cannot_be_meant_is_named)
{
    CHECK_TEXT(refusal("otlp", "auth: {authenticator: basicauth}"),
               "line 3, column 19: exporters::otlp: auth: \"basicauth\" is for receivers: it has "
               "no client_auth");
    CHECK_TEXT(refusal("pyroscope", "auth: {authenticator: nobody}"),
               "line 3, column 24: exporters::pyroscope: auth: failed to resolve authenticator "
               "\"nobody\": it is no "
               "extension that authenticates and is named in service::extensions");
    CHECK_TEXT(refusal("otlp_http", "tls: {ca_file: /nowhere}"),
               "line 3, column 24: exporters::otlp_http: ca_file: \"/nowhere\" cannot be read: No "
               "such file or "
               "directory");
    CHECK(strstr(refusal("otlp", "tls: {cert_file: a}"), "cert_file and key_file belong together"));
    CHECK(
        strstr(refusal("otlp", "tls: {ca_pem: x}"), "write it to a file and name that in ca_file"));
}
