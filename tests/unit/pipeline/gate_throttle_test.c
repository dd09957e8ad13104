/* SPDX-License-Identifier: Apache-2.0 */
/* Guessing tokens: how many are looked at, who else suffers, and what the audit log says. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "pipeline/gate_int.h"
#include "test.h"

#define S KILN_NS_PER_S

enum { TRIED, WAITS };

static struct kiln_throttle *throttle;
static struct kiln_log *log_;
static struct kiln_audit *audit;
static int pipe_[2];
static uint64_t now_ns;

static void start(void)
{
    CHECK_EQ(pipe(pipe_), 0);
    CHECK_OK(kiln_log_new(pipe_[1], KILN_LOG_INFO, KILN_LOG_LOGFMT, &log_));
    CHECK_OK(kiln_audit_new(log_, &audit));
    CHECK_OK(kiln_throttle_new(audit, &throttle));
    now_ns = 1000 * S;
}

/* Ends it, and returns what the log has, one line after the other. */
static const char *stop(void)
{
    static char said[1 << 16];
    ssize_t n;

    kiln_throttle_free(throttle);
    kiln_audit_free(audit);
    kiln_log_free(log_);
    close(pipe_[1]);
    n = read(pipe_[0], said, sizeof(said) - 1);
    CHECK(n >= 0);
    said[n] = '\0';
    close(pipe_[0]);
    CHECK_EQ(kiln_mem_live(), 0);
    return said;
}

static struct kiln_peer at(const char *address)
{
    struct kiln_peer peer = {.local = false};

    snprintf(peer.address, sizeof(peer.address), "%s", address);
    return peer;
}

static void digest_of(uint32_t secret, uint8_t digest[KILN_SHA256_BYTES])
{
    kiln_sha256((struct kiln_str){(const char *)&secret, sizeof(secret)}, digest);
}

/* Shows a wrong token; the seconds to wait, where it was not looked at. */
static uint32_t guess(const struct kiln_peer *peer, uint32_t secret)
{
    uint8_t digest[KILN_SHA256_BYTES];
    uint32_t wait_s;

    digest_of(secret, digest);
    wait_s = kiln_throttle_wait(throttle, peer, digest, now_ns);
    if (!wait_s)
        kiln_throttle_failed(throttle, peer, digest, now_ns);
    return wait_s;
}

/* How many of so many different guesses were looked at. */
static uint32_t looked_at(const char *address, uint32_t guesses)
{
    struct kiln_peer peer = at(address);
    static uint32_t secret;
    uint32_t n = 0;

    for (uint32_t i = 0; i < guesses; i++)
        n += guess(&peer, ++secret) == 0;
    return n;
}

/* The sum of all counts. */
static uint64_t counted(const char *said)
{
    uint64_t sum = 0;

    while ((said = strstr(said, "count=")))
        sum += strtoull(said += 6, NULL, 10);
    return sum;
}

static uint32_t lines(const char *said)
{
    uint32_t n = 0;

    for (; *said; said++)
        n += *said == '\n';
    return n;
}

TEST(throttle, of_many_guesses_few_are_looked_at)
{
    const char *said;

    start();
    CHECK_EQ(looked_at("10.0.0.7:1000", 10000), 11);
    CHECK_EQ(looked_at("10.0.0.7:2000", 10), 0); /* another connection */
    CHECK_EQ(looked_at("10.0.0.8:1000", 5), 5);  /* another address */
    said = stop();
    CHECK(strstr(said, "msg=audit action=\"sign in\" tenant=\"\" target=\"\" who=\"\" "
                       "peer=10.0.0.7:1000 result=refused count=1\n"));
    CHECK_EQ(counted(said), 10015);
    CHECK_EQ(lines(said), 4);
}

TEST(throttle, the_block_doubles_up_to_a_minute_and_is_forgotten)
{
    static const uint32_t waits[] = {1, 2, 4, 8, 16, 32, 60, 60};
    struct kiln_peer peer = at("10.0.0.7:1");
    uint32_t secret = 1000000;

    start();
    for (int i = 0; i < 10; i++)
        CHECK_EQ(guess(&peer, secret++), 0);
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(waits); i++) {
        CHECK_EQ(guess(&peer, secret++), 0);
        CHECK_EQ(guess(&peer, secret++), waits[i]);
        now_ns += waits[i] * S;
    }
    now_ns += 901 * S;
    CHECK_EQ(looked_at("10.0.0.7:1", 100), 11);
    stop();
}

TEST(throttle, a_token_that_was_accepted_there_goes_on_and_a_new_one_waits)
{
    struct kiln_peer peer = at("10.0.0.7:1"), other = at("10.0.0.8:1");
    uint8_t known[KILN_SHA256_BYTES], fresh[KILN_SHA256_BYTES];

    digest_of(1u << 31, known);
    digest_of((1u << 31) + 1, fresh);
    start();
    kiln_throttle_passed(throttle, &peer, known);
    kiln_throttle_passed(throttle, &other, fresh);
    (void)looked_at("10.0.0.7:9", 100);
    CHECK_EQ(kiln_throttle_wait(throttle, &peer, known, now_ns), 0);
    CHECK_EQ(kiln_throttle_wait(throttle, &peer, fresh, now_ns), 1);
    CHECK_EQ(kiln_throttle_wait(throttle, &other, fresh, now_ns), 0);
    now_ns += S;
    CHECK_EQ(kiln_throttle_wait(throttle, &peer, fresh, now_ns), 0);
    stop();
}

TEST(throttle, the_same_wrong_token_again_is_no_guess)
{
    struct kiln_peer peer = at("10.0.0.7:1");

    start();
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(guess(&peer, 77), 0);
    CHECK_EQ(counted(stop()), 1000);
}

TEST(throttle, a_source_is_a_network_of_ipv6_or_a_user)
{
    struct kiln_peer ann = {.address = "unix", .local = true, .uid = 1000},
                     bob = {.address = "unix", .local = true, .uid = 1001};
    uint32_t n = 0;

    start();
    CHECK_EQ(looked_at("[2001:db8:1:2::1]:1", 8), 8);
    CHECK_EQ(looked_at("[2001:db8:1:2:ffff::2]:1", 100), 3);
    CHECK_EQ(looked_at("[2001:db8:1:3::1]:1", 8), 8);
    for (uint32_t i = 0; i < 100; i++)
        n += guess(&ann, i) == 0;
    CHECK_EQ(n, 11);
    CHECK_EQ(guess(&bob, 1), 0);
    CHECK(strstr(stop(), "peer=\"unix uid 1000\""));
}

TEST(throttle, many_sources_take_no_more_memory_and_few_lines)
{
    const char *said;
    char address[64];
    size_t live;

    start();
    live = kiln_mem_live();
    for (uint32_t i = 0; i < 50000; i++) {
        snprintf(address, sizeof(address), "10.%u.%u.%u:1", i >> 16, i >> 8 & 255, i & 255);
        CHECK_EQ(looked_at(address, 1), 1);
    }
    CHECK_EQ(kiln_mem_live(), live);
    said = stop();
    CHECK_EQ(counted(said), 50000);
    CHECK(lines(said) <= 122); /* the end counts as another minute */
}

/* What the gate answers to a token, as asked by another connection of one address. */
static int ask(struct kiln_gate *gate, const char *token, enum kiln_access access)
{
    struct kiln_header header = {KILN_STR("authorization"), kiln_str_of(token)};
    struct kiln_request request = {
        .headers = &header, .n_headers = 1, .peer = {.address = "10.0.0.7:1"}};
    struct kiln_guard guard = kiln_gate_guard(gate);
    struct kiln_reply reply = {.status = 200};

    (void)!guard.check(guard.context, &request, access, &reply);
    if (reply.status == 429)
        CHECK(kiln_str_eq(reply.headers[reply.n_headers - 1].name, KILN_STR("retry-after")));
    return reply.status;
}

TEST(throttle, the_gate_refuses_with_429)
{
    static const char tokens[] = "[{token: right-token, access: read}]";
    char path[] = "/tmp/kiln-throttle-XXXXXX", wrong[32];
    struct kiln_gate *gate;
    int fd = mkstemp(path), refused = 0, status;

    CHECK(fd >= 0);
    CHECK_EQ(write(fd, tokens, sizeof(tokens) - 1), (ssize_t)sizeof(tokens) - 1);
    close(fd);
    CHECK_OK(kiln_gate_new(&(struct kiln_gate_opts){.tokens_file = path}, &gate, NULL));
    CHECK_EQ(ask(gate, "Bearer right-token", KILN_ACCESS_READ), 200);
    for (int i = 0; i < 100; i++) {
        snprintf(wrong, sizeof(wrong), "Bearer guess-%d", i);
        status = ask(gate, wrong, KILN_ACCESS_READ);
        CHECK(status == 401 || (i > 10 && status == 429));
        refused += status == 429;
    }
    CHECK(refused > 0);
    CHECK_EQ(ask(gate, "Bearer right-token", KILN_ACCESS_READ), 200);
    CHECK_EQ(ask(gate, "", KILN_ACCESS_READ), 401);
    kiln_gate_free(gate);
    unlink(path);
}
