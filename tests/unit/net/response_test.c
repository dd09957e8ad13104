/* SPDX-License-Identifier: Apache-2.0 */
/* What answers look like on the wire. */
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compress.h"
#include "base/metric.h"
#include "net.h"
#include "test.h"

#define HEAD(line) line " HTTP/1.1\r\nhost: x\r\n"
#define LAST       "connection: close\r\n\r\n"

/* "gzip", "zstd" or "plain": how a text of 64,000 bytes comes to a client that accepts this. */
static const char *coding_for(uint16_t port, const char *accept)
{
    char request[256];
    const char *answer;

    snprintf(request, sizeof(request), HEAD("GET /big") "accept-encoding: %s\r\n" LAST, accept);
    answer = net_talk(port, request);
    CHECK_EQ(net_status(answer), 200);
    CHECK(strstr(answer, "vary: accept-encoding\r\n"));
    return strstr(answer, "content-encoding: gzip\r\n")   ? "gzip"
           : strstr(answer, "content-encoding: zstd\r\n") ? "zstd"
                                                          : "plain";
}

TEST(response, is_compressed_as_the_client_likes_it)
{
    struct net_fixture f = {0};

    net_start(&f, NULL);
    CHECK_TEXT(coding_for(f.port, "gzip"), "gzip");
    CHECK_TEXT(coding_for(f.port, "zstd"), "zstd");
    CHECK_TEXT(coding_for(f.port, "gzip, deflate, br, zstd"), "zstd");
    CHECK_TEXT(coding_for(f.port, "GZIP;q=1.0, zstd;q=0.5"), "gzip");
    CHECK_TEXT(coding_for(f.port, "gzip; q=0, zstd;q=0.001"), "zstd");
    CHECK_TEXT(coding_for(f.port, "gzip;q=0"), "plain");
    CHECK_TEXT(coding_for(f.port, "*"), "zstd");
    CHECK_TEXT(coding_for(f.port, "*;q=0.5, zstd;q=0"), "gzip");
    CHECK_TEXT(coding_for(f.port, "identity, br"), "plain");
    CHECK_TEXT(coding_for(f.port, ",;,q=,;q=x,gzip;q=2"), "gzip");
    net_stop(&f);
}

TEST(response, no_answer_may_be_embedded_by_other_origins)
{
    static const char *const requests[] = {
        HEAD("GET /hello") LAST, HEAD("HEAD /hello") LAST, HEAD("GET /nothing") LAST,
        HEAD("PUT /hello") LAST, "GET /hello\r\n\r\n",
    };
    static const int statuses[] = {200, 200, 404, 405, 400};
    struct net_fixture f = {0};

    net_start(&f, NULL);
    for (size_t i = 0; i < KILN_ARRAY_LEN(requests); i++) {
        const char *answer = net_talk(f.port, requests[i]);

        CHECK_EQ(net_status(answer), statuses[i]);
        CHECK(strstr(answer, "cross-origin-resource-policy: same-origin\r\n"));
    }
    net_stop(&f);
}

TEST(response, uncompressed_is_what_it_was)
{
    struct net_fixture f = {0};
    struct kiln_buf plain;
    struct kiln_str body;
    const char *answer;
    int fd;

    net_start(&f, NULL);
    fd = net_connect(f.port);
    net_send(fd, HEAD("GET /big") "accept-encoding: gzip\r\n\r\n");
    answer = net_read_answer(fd);
    body = kiln_str_of(net_body(answer));
    body.len = (size_t)strtoul(strstr(answer, "content-length: ") + 16, NULL, 10);
    kiln_buf_init(&plain, 1 << 20);
    CHECK_OK(kiln_decompress(KILN_GZIP, body, &plain, NULL));
    CHECK_EQ(plain.len, 64000);
    kiln_buf_done(&plain);
    close(fd);
    net_stop(&f);
}

TEST(response, what_is_short_or_of_unknown_type_is_left_alone)
{
    struct net_fixture f = {0};
    const char *answer;

    net_start(&f, NULL);
    answer = net_talk(f.port, HEAD("GET /hello") "accept-encoding: gzip\r\n" LAST);
    CHECK(!strstr(answer, "content-encoding"));
    CHECK(!strstr(answer, "vary"));
    net_stop(&f);
}

static void odd(struct kiln_request *request)
{
    struct kiln_reply reply = {
        .status = 204,
        .headers = {{KILN_STR("X-Odd"), KILN_STR("a\r\nset-cookie: b\n\x01")}},
        .n_headers = 1,
        .trailers = {{KILN_STR("t"), KILN_STR("u")}},
        .n_trailers = 1,
    };

    kiln_request_reply(request, &reply);
}

TEST(response, a_value_cannot_start_another_line)
{
    struct net_fixture f = {0};
    const char *answer;

    net_routes(&f);
    CHECK_OK(kiln_router_add(f.router, &(struct kiln_route){.path = "/odd", .handler = odd}));
    net_start(&f, NULL);
    answer = net_talk(f.port, HEAD("GET /odd") LAST);
    CHECK_EQ(net_status(answer), 204);
    CHECK(strstr(answer, "\r\nx-odd: a  set-cookie: b  \r\n"));
    CHECK(!strstr(answer, "content-length"));
    CHECK(!strstr(answer, "\r\nt: u"));
    net_stop(&f);
}

TEST(response, has_the_date)
{
    struct net_fixture f = {0};

    net_start(&f, NULL);
    kiln_clock_set(784111777 * KILN_NS_PER_S);
    CHECK(strstr(net_talk(f.port, HEAD("GET /hello") LAST),
                 "\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
    kiln_clock_set(0);
    net_stop(&f);
}

TEST(response, is_counted)
{
    struct net_fixture f = {0};
    struct kiln_metrics *metrics;
    struct kiln_buf text;

    CHECK_OK(kiln_metrics_new(&metrics));
    net_start(&f, &(struct kiln_server_opts){.metrics = metrics});
    net_talk(f.port, HEAD("GET /hello") LAST);
    net_talk(f.port, HEAD("GET /hello") LAST);
    net_talk(f.port, HEAD("GET /none") LAST);
    net_stop(&f);
    kiln_buf_init(&text, 1 << 20);
    kiln_metrics_format(metrics, &text);
    kiln_buf_putc(&text, 0);
    CHECK(strstr(text.ptr, "kiln_http_requests_total{status=\"2xx\"} 2\n"));
    CHECK(strstr(text.ptr, "kiln_http_requests_total{status=\"4xx\"} 1\n"));
    CHECK(strstr(text.ptr, "kiln_http_refused_total{reason=\"not_found\"} 1\n"));
    CHECK(strstr(text.ptr, "kiln_http_connections 0\n"));
    CHECK(strstr(text.ptr, "kiln_http_connections_total 3\n"));
    kiln_buf_done(&text);
    kiln_metrics_free(metrics);
}
