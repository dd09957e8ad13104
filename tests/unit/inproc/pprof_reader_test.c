/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "inproc/pprof/args.h"
#include "inproc/pprof/reader.h"
#include "test.h"

#define HOST "Host: h\r\n"

/* Gives `bytes` in pieces of at most `step`, until a request is whole or refused. */
static int feed(struct kiln_in_reader *reader, const char *bytes, size_t step)
{
    size_t left = strlen(bytes);
    int found = KILN_IN_READ_MORE;

    while (left && (found == KILN_IN_READ_MORE || found == KILN_IN_READ_HEAD)) {
        size_t room, n;
        char *at = kiln_in_reader_room(reader, &room);

        n = left < step ? left : step;
        n = n < room ? n : room;
        CHECK(n > 0);
        memcpy(at, bytes, n);
        bytes += n;
        left -= n;
        found = kiln_in_reader_took(reader, n);
        if (found == KILN_IN_READ_HEAD)
            found = kiln_in_reader_took(reader, 0);
    }
    return found;
}

static int read_one(struct kiln_in_reader *reader, const char *bytes, size_t step)
{
    CHECK_OK(kiln_in_reader_init(reader));
    return feed(reader, bytes, step);
}

TEST(pprof_reader, a_request_comes_in_any_pieces)
{
    static const char bytes[] =
        "GET /debug/pprof/heap?gc=1&debug=1 HTTP/1.1\r\n" HOST "Authorization: Bearer abc\r\n\r\n";

    for (size_t step = 1; step < sizeof(bytes); step += 7) {
        struct kiln_in_reader reader;

        CHECK_EQ(read_one(&reader, bytes, step), KILN_IN_READ_WHOLE);
        CHECK_STR(reader.request.method, "GET");
        CHECK_STR(reader.request.path, "/debug/pprof/heap");
        CHECK_STR(reader.request.query, "gc=1&debug=1");
        CHECK_STR(reader.request.authorization, "Bearer abc");
        CHECK(!reader.request.has_body && reader.keep_alive);
        kiln_in_reader_done(&reader);
    }
}

TEST(pprof_reader, a_body_has_a_length_or_comes_in_chunks)
{
    static const char *const all[] = {
        "POST /s HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\n0x10+0x20",
        "POST /s HTTP/1.1\r\n" HOST
        "Transfer-Encoding: chunked\r\n\r\n5\r\n0x10+\r\n4\r\n0x20\r\n0\r\n\r\n",
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(all); i++) {
        for (size_t step = 1; step < 200; step += 13) {
            struct kiln_in_reader reader;

            CHECK_EQ(read_one(&reader, all[i], step), KILN_IN_READ_WHOLE);
            CHECK(reader.request.has_body);
            CHECK_STR(reader.request.body, "0x10+0x20");
            kiln_in_reader_done(&reader);
        }
    }
}

TEST(pprof_reader, what_follows_a_request_is_the_next)
{
    struct kiln_in_reader reader;
    int found;

    CHECK_EQ(read_one(&reader,
                      "POST /a HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nxy"
                      "GET /b HTTP/1.1\r\n" HOST "\r\nGET /c HT",
                      4096),
             KILN_IN_READ_WHOLE);
    CHECK_STR(reader.request.body, "xy");
    found = kiln_in_reader_next(&reader);
    CHECK_EQ(found, KILN_IN_READ_HEAD);
    CHECK_STR(reader.request.path, "/b");
    CHECK_EQ(kiln_in_reader_took(&reader, 0), KILN_IN_READ_WHOLE);
    CHECK_EQ(kiln_in_reader_next(&reader), KILN_IN_READ_MORE);
    CHECK_EQ(feed(&reader, "TP/1.0\r\n\r\n", 1), KILN_IN_READ_WHOLE);
    CHECK_STR(reader.request.path, "/c");
    CHECK(!reader.keep_alive);
    CHECK_EQ(kiln_in_reader_next(&reader), KILN_IN_READ_MORE);
    kiln_in_reader_done(&reader);
}

TEST(pprof_reader, clients_of_proxies_send_whole_addresses)
{
    struct kiln_in_reader reader;

    CHECK_EQ(read_one(&reader, "GET http://h:6060/debug/pprof/?a=/ HTTP/1.1\r\n" HOST "\r\n", 99),
             KILN_IN_READ_WHOLE);
    CHECK_STR(reader.request.path, "/debug/pprof/");
    CHECK_STR(reader.request.query, "a=/");
    kiln_in_reader_done(&reader);
    CHECK_EQ(read_one(&reader, "GET http://h:6060 HTTP/1.1\r\n" HOST "\r\n", 99),
             KILN_IN_READ_WHOLE);
    CHECK_STR(reader.request.path, "/");
    kiln_in_reader_done(&reader);
}

TEST(pprof_reader, what_is_too_much_is_refused)
{
    static char many[64 << 10];
    struct kiln_in_reader reader;

    memset(many, 'a', sizeof(many) - 1);
    memcpy(many, "GET /", 5);
    CHECK_EQ(read_one(&reader, many, 1000), 431);
    kiln_in_reader_done(&reader);
    CHECK_EQ(read_one(&reader, "POST /s HTTP/1.1\r\n" HOST "Content-Length: 2000000\r\n\r\n", 99),
             413);
    CHECK(reader.body.cap == 0);
    kiln_in_reader_done(&reader);
    CHECK_EQ(read_one(&reader, "rubbish\r\n\r\n", 99), 400);
    kiln_in_reader_done(&reader);
    CHECK_EQ(read_one(&reader, "GET / HTTP/2.0\r\n" HOST "\r\n", 99), 505);
    kiln_in_reader_done(&reader);
}

static struct kiln_in_args args_of(const char *query)
{
    struct kiln_in_args args;

    kiln_in_args_parse(kiln_str_of(query), &args);
    return args;
}

TEST(pprof_args, say_how_long_and_for_whom)
{
    CHECK(!args_of("").has_seconds && args_of("").debug == 0);
    CHECK_EQ(args_of("gc=1&seconds=5").seconds, 5);
    CHECK_EQ(args_of("seconds=5&seconds=7").seconds, 5);
    CHECK_EQ(args_of("debug=2").debug, 2);
    CHECK_EQ(args_of("debug=x&seconds=%35").seconds, 5);
    CHECK(args_of("seconds=-1").has_seconds && args_of("seconds=-1").seconds == 0);
    CHECK(args_of("seconds=1.5").has_seconds && args_of("seconds=1.5").seconds == 0);
    CHECK(!args_of("seconds=").has_seconds);
    CHECK_EQ(args_of("seconds=3&%zz").seconds, 3);
}
