/* SPDX-License-Identifier: Apache-2.0 */
#include "net/origin.h"
#include "test.h"

static const char *const names[] = {"Kiln.example", "pyroscope", "dotted.example."};
static const struct kiln_origin_policy policy = {
    .host_names = names, .n_host_names = KILN_ARRAY_LEN(names), .host_text = "refused\n"};

/* What is said to METHOD with headers of the form "name: value", up to the first NULL. */
static enum kiln_origin_verdict ask(const struct kiln_origin_policy *p, enum kiln_access access,
                                    const char *method, const char *const *lines)
{
    struct kiln_header headers[8];
    struct kiln_request request = {.method = kiln_str_of(method), .headers = headers};

    for (; *lines; lines++) {
        struct kiln_str value = kiln_str_of(*lines);
        struct kiln_str name = kiln_str_cut(&value, ':');

        headers[request.n_headers++] = (struct kiln_header){name, kiln_str_trim(value)};
    }
    return kiln_origin_check(p, &request, access);
}

#define ASK(p, access, method, ...)                                                                \
    ask((p), KILN_ACCESS_##access, (method), (const char *const[]){__VA_ARGS__, NULL})

static bool takes_host(const char *host)
{
    char line[400];

    snprintf(line, sizeof(line), "host: %s", host);
    return ASK(&policy, READ, "GET", line) == KILN_ORIGIN_OK;
}

TEST(origin, unix_sockets_have_no_host_names)
{
    struct kiln_header header = {KILN_STR("host"), KILN_STR("%2Frun%2Fkiln%2Fotlp.sock")};
    struct kiln_request request = {
        .method = KILN_STR("POST"), .headers = &header, .n_headers = 1, .peer.address = "unix"};

    CHECK_EQ(kiln_origin_check(&policy, &request, KILN_ACCESS_WRITE), KILN_ORIGIN_OK);
    snprintf(request.peer.address, sizeof(request.peer.address), "127.0.0.1:5555");
    CHECK_EQ(kiln_origin_check(&policy, &request, KILN_ACCESS_WRITE), KILN_ORIGIN_HOST);
}

TEST(origin, hosts_that_no_foreign_page_can_have_are_accepted)
{
    static const char *const good[] = {
        "localhost",
        "LocalHost:4040",
        "localhost.:4040",
        "a.b.localhost:1",
        "127.0.0.1",
        "127.0.0.1:4040",
        "127.255.0.9",
        "[::1]",
        "[::1]:4040",
        "10.1.2.3:4040",
        "[2001:db8::5]:80",
        "[::ffff:127.0.0.1]:4040",
        "kiln.example",
        "KILN.EXAMPLE:4040",
        "kiln.example.",
        "pyroscope:4040",
        "dotted.example:1",
        "dotted.example.:1",
        "",
        "localhost:",
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(good); i++)
        CHECK_EQ(takes_host(good[i]), true);
}

TEST(origin, other_hosts_are_refused)
{
    static const char *const bad[] = {
        "evil.example",
        "evil.example:4040",
        "localhost.evil.example",
        "127.0.0.1.evil.com",
        "xlocalhost",
        ".localhost",
        "kiln.example.evil",
        "sub.kiln.example",
        "kiln.example..",
        "127.0.0.1:x",
        "127.0.0.1:4040:4040",
        "127.0.0.1:99999",
        "127.1",
        "0x7f.0.0.1",
        "2130706433",
        "::1",
        "[::1",
        "[evil.example]:80",
        "[::1]evil.example",
        "[::1]:80x",
        "[]",
        "localhost@evil",
        "localhost:80@evil.com",
        "user@localhost",
        "localhost/evil",
        "localhost, evil",
        "pyroscope.evil.example",
        "[127.0.0.1]:4040",
        ":4040",
        "localhost:-1",
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(bad); i++)
        CHECK_EQ(takes_host(bad[i]), false);
}

TEST(origin, every_host_of_a_request_counts)
{
    CHECK_EQ(ASK(&policy, READ, "GET", "host: localhost", "host: evil.example"), KILN_ORIGIN_HOST);
    CHECK_EQ(ASK(&policy, READ, "GET", "host: evil.example", "host: localhost"), KILN_ORIGIN_HOST);
    CHECK_EQ(ASK(&policy, READ, "GET", NULL), KILN_ORIGIN_OK);
}

TEST(origin, a_unix_socket_and_authenticated_requests_have_any_host)
{
    struct kiln_header host = {KILN_STR("host"), KILN_STR("evil.example")};
    struct kiln_request request = {.method = KILN_STR("GET"), .headers = &host, .n_headers = 1};
    struct kiln_origin_policy any = {.any_host = true};

    CHECK_EQ(kiln_origin_check(&policy, &request, KILN_ACCESS_READ), KILN_ORIGIN_HOST);
    CHECK_EQ(kiln_origin_check(&any, &request, KILN_ACCESS_READ), KILN_ORIGIN_OK);
    request.peer.local = true;
    CHECK_EQ(kiln_origin_check(&policy, &request, KILN_ACCESS_READ), KILN_ORIGIN_OK);
}

TEST(origin, programs_write_under_any_name_where_that_is_allowed)
{
    struct kiln_origin_policy open = policy;
    const char *host = "host: collector:4317";

    open.programs_write = true;
    CHECK_EQ(ASK(&policy, WRITE, "POST", host), KILN_ORIGIN_HOST);
    CHECK_EQ(ASK(&open, WRITE, "POST", host), KILN_ORIGIN_OK);
    CHECK_EQ(ASK(&open, WRITE, "GET", host), KILN_ORIGIN_HOST);
    CHECK_EQ(ASK(&open, READ, "POST", host), KILN_ORIGIN_HOST);
    CHECK_EQ(ASK(&open, CONTROL, "POST", host), KILN_ORIGIN_HOST);
    CHECK_EQ(ASK(&open, ADMIN, "POST", host), KILN_ORIGIN_HOST);
    CHECK_EQ(ASK(&open, NONE, "POST", host), KILN_ORIGIN_HOST);
    CHECK_EQ(ASK(&open, WRITE, "POST", host, "origin: http://collector:4317"), KILN_ORIGIN_HOST);
    CHECK_EQ(ASK(&open, WRITE, "POST", host, "origin: "), KILN_ORIGIN_HOST);
    CHECK_EQ(ASK(&open, WRITE, "DELETE", host, "sec-fetch-site: same-origin"), KILN_ORIGIN_HOST);
}

TEST(origin, pages_of_other_sites_may_do_nothing)
{
    static const char *const foreign[] = {
        "sec-fetch-site: cross-site",  "sec-fetch-site: same-site",     "sec-fetch-site: what",
        "origin: http://evil.example", "origin: http://127.0.0.1:3000", "origin: null"};
    static const char *const ours[] = {"sec-fetch-site: same-origin", "sec-fetch-site: none",
                                       "origin: http://127.0.0.1:4040",
                                       "origin: https://127.0.0.1:4040"};
    const char *host = "host: 127.0.0.1:4040";

    for (size_t i = 0; i < KILN_ARRAY_LEN(foreign); i++) {
        CHECK_EQ(ASK(&policy, READ, "GET", host, foreign[i]), KILN_ORIGIN_CROSS_SITE);
        CHECK_EQ(ASK(&policy, WRITE, "POST", host, foreign[i]), KILN_ORIGIN_CROSS_SITE);
        CHECK_EQ(ASK(&policy, NONE, "GET", host, foreign[i]), KILN_ORIGIN_CROSS_SITE);
    }
    for (size_t i = 0; i < KILN_ARRAY_LEN(ours); i++) {
        CHECK_EQ(ASK(&policy, READ, "GET", host, ours[i]), KILN_ORIGIN_OK);
        CHECK_EQ(ASK(&policy, ADMIN, "DELETE", host, ours[i]), KILN_ORIGIN_OK);
    }
}

TEST(origin, a_link_opens_a_page_and_nothing_else)
{
    const char *host = "host: 127.0.0.1:4040", *site = "sec-fetch-site: cross-site";
    const char *mode = "sec-fetch-mode: navigate", *dest = "sec-fetch-dest: document";

    CHECK_EQ(ASK(&policy, NONE, "GET", host, site, mode, dest), KILN_ORIGIN_OK);
    CHECK_EQ(ASK(&policy, READ, "GET", host, site, mode, dest), KILN_ORIGIN_CROSS_SITE);
    CHECK_EQ(ASK(&policy, NONE, "POST", host, site, mode, dest), KILN_ORIGIN_CROSS_SITE);
    CHECK_EQ(ASK(&policy, NONE, "GET", host, site, mode, "sec-fetch-dest: iframe"),
             KILN_ORIGIN_CROSS_SITE);
    CHECK_EQ(ASK(&policy, NONE, "GET", host, site, "sec-fetch-mode: no-cors", dest),
             KILN_ORIGIN_CROSS_SITE);
    CHECK_EQ(ASK(&policy, NONE, "GET", "host: evil.example", site, mode, dest), KILN_ORIGIN_HOST);
}

TEST(origin, a_guard_says_what_to_do)
{
    struct kiln_guard guard = kiln_origin_guard(&policy);
    struct kiln_header headers[] = {{KILN_STR("host"), KILN_STR("evil.example")},
                                    {KILN_STR("sec-fetch-site"), KILN_STR("cross-site")}};
    struct kiln_request request = {.method = KILN_STR("GET"), .headers = headers, .n_headers = 1};
    struct kiln_reply reply = {0};

    CHECK(guard.check(guard.context, &request, KILN_ACCESS_READ, &reply) < 0);
    CHECK_EQ(reply.status, 421);
    CHECK(kiln_str_eq(reply.body, KILN_STR("refused\n")));
    headers[0].value = KILN_STR("localhost");
    CHECK_OK(guard.check(guard.context, &request, KILN_ACCESS_READ, &reply));
    request.n_headers = 2;
    CHECK(guard.check(guard.context, &request, KILN_ACCESS_READ, &reply) < 0);
    CHECK_EQ(reply.status, 403);
}

TEST(origin, names_have_no_port_and_no_scheme)
{
    CHECK(kiln_origin_name_valid(KILN_STR("kiln.example.com")));
    CHECK(kiln_origin_name_valid(KILN_STR("my_kiln-1.")));
    CHECK(!kiln_origin_name_valid(KILN_STR("")));
    CHECK(!kiln_origin_name_valid(KILN_STR("kiln:4040")));
    CHECK(!kiln_origin_name_valid(KILN_STR("http://kiln")));
    CHECK(!kiln_origin_name_valid(KILN_STR("*.example.com")));
    CHECK(!kiln_origin_name_valid(KILN_STR(".example.com")));
    CHECK(!kiln_origin_name_valid(KILN_STR(" kiln")));
}
