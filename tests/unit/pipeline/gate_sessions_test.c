/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "pipeline/gate_int.h"
#include "test.h"

#define HOUR (3600 * KILN_NS_PER_S)

static const uint8_t anna[KILN_SHA256_BYTES] = "anna", ben[KILN_SHA256_BYTES] = "ben";

/* ---- the table ---- */

static const char *begin(struct kiln_sessions *s, const uint8_t *token, uint64_t now_ns)
{
    static char ids[4][KILN_SESSION_TEXT + 1];
    static int at;
    char *id = ids[at++ % 4];

    CHECK_OK(kiln_sessions_begin(s, token, now_ns, id));
    return id;
}

static bool is_of(struct kiln_sessions *s, const char *id, const uint8_t *token, uint64_t now_ns)
{
    uint8_t found[KILN_SHA256_BYTES] = {0};

    return kiln_sessions_find(s, kiln_str_of(id), now_ns, found) &&
           memcmp(found, token, sizeof(found)) == 0;
}

TEST(sessions, each_leads_to_its_token)
{
    struct kiln_sessions s;
    const char *a, *b;

    kiln_sessions_init(&s);
    a = begin(&s, anna, 1);
    b = begin(&s, ben, 2);
    CHECK_EQ(strlen(a), KILN_SESSION_TEXT);
    CHECK(strcmp(a, b) != 0);
    CHECK(is_of(&s, a, anna, 3));
    CHECK(is_of(&s, b, ben, 3));
    CHECK(!is_of(&s, a, ben, 3));
    kiln_sessions_end(&s, kiln_str_of(a));
    CHECK(!is_of(&s, a, anna, 3));
    CHECK(is_of(&s, b, ben, 3));
    kiln_sessions_done(&s);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(sessions, one_is_over_twelve_hours_after_it_began_however_much_it_is_used)
{
    struct kiln_sessions s;
    const char *early, *late;

    kiln_sessions_init(&s);
    early = begin(&s, anna, HOUR);
    late = begin(&s, anna, 3 * HOUR);
    for (uint64_t hour = 1; hour < 13; hour++)
        CHECK(is_of(&s, early, anna, hour * HOUR));
    CHECK(is_of(&s, early, anna, 13 * HOUR - 1));
    CHECK(!is_of(&s, early, anna, 13 * HOUR));
    CHECK(is_of(&s, late, anna, 13 * HOUR));
    CHECK(!is_of(&s, late, anna, 15 * HOUR));
    CHECK_EQ(s.n, 0);
    kiln_sessions_done(&s);
}

/* Two threads look at the clock, and the one that looked first comes second. */
TEST(sessions, a_clock_that_is_a_little_behind_ends_nothing)
{
    struct kiln_sessions s;
    const char *id;

    kiln_sessions_init(&s);
    id = begin(&s, anna, HOUR);
    CHECK(is_of(&s, id, anna, HOUR - 1));
    kiln_sessions_done(&s);
}

TEST(sessions, what_is_not_one_is_not_found)
{
    static const char *const garbage[] = {
        "",
        "x",
        "kiln_session",
        "../../etc/passwd",
        "\xff\xfe\x80",
        "0000000000000000000000000000000000000000000000000000000000000000",
        ("0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
         "0")};
    struct kiln_sessions s;
    const char *id;

    kiln_sessions_init(&s);
    for (size_t i = 0; i < KILN_ARRAY_LEN(garbage); i++)
        CHECK(!is_of(&s, garbage[i], anna, 1)); /* also where there is none at all */
    id = begin(&s, anna, 1);
    for (size_t i = 0; i < KILN_ARRAY_LEN(garbage); i++) {
        CHECK(!is_of(&s, garbage[i], anna, 1));
        kiln_sessions_end(&s, kiln_str_of(garbage[i]));
    }
    CHECK(is_of(&s, id, anna, 1));
    kiln_sessions_done(&s);
}

TEST(sessions, of_too_many_of_a_token_its_oldest_ends_and_nobody_elses)
{
    struct kiln_sessions s;
    char others[KILN_SESSION_TEXT + 1], first[KILN_SESSION_TEXT + 1], second[KILN_SESSION_TEXT + 1];

    kiln_sessions_init(&s);
    CHECK_OK(kiln_sessions_begin(&s, ben, 1, others));
    CHECK_OK(kiln_sessions_begin(&s, anna, 2, first));
    CHECK_OK(kiln_sessions_begin(&s, anna, 3, second));
    for (int i = 2; i < KILN_SESSIONS_OF_TOKEN + 1; i++)
        begin(&s, anna, 4);
    CHECK_EQ(s.n, KILN_SESSIONS_OF_TOKEN + 1);
    CHECK(!is_of(&s, first, anna, 5));
    CHECK(is_of(&s, second, anna, 5));
    CHECK(is_of(&s, others, ben, 5));
    kiln_sessions_done(&s);
}

TEST(sessions, there_are_never_more_than_so_many)
{
    struct kiln_sessions s;
    char last[KILN_SESSION_TEXT + 1];
    uint8_t token[KILN_SHA256_BYTES] = {0};

    kiln_sessions_init(&s);
    for (uint32_t i = 0; i < KILN_SESSIONS_MAX + 100; i++) {
        memcpy(token, &i, sizeof(i));
        CHECK_OK(kiln_sessions_begin(&s, token, i, last));
    }
    CHECK_EQ(s.n, KILN_SESSIONS_MAX);
    CHECK(is_of(&s, last, token, 2000));
    kiln_sessions_done(&s);
}

TEST(sessions, without_memory_signing_in_fails_and_others_stay)
{
    struct kiln_sessions s;
    char id[KILN_SESSION_TEXT + 1] = "untouched";

    kiln_sessions_init(&s);
    kiln_mem_fail_at(1);
    CHECK_EQ(kiln_sessions_begin(&s, anna, 1, id), -ENOMEM);
    kiln_mem_fail_at(0);
    CHECK_TEXT(id, "untouched");
    CHECK(is_of(&s, begin(&s, anna, 1), anna, 1));
    kiln_sessions_done(&s);
}

/* ---- the gate ---- */

static const char tokens[] = "- {token: reader-token, tenant: shop, access: read}\n"
                             "- {token: admin-token, access: admin}\n";

static char path[64];

static void write_tokens(const char *text)
{
    FILE *file = fopen(path, "w");

    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static struct kiln_gate *open_gate(bool tenants)
{
    struct kiln_gate *gate;
    int fd;

    snprintf(path, sizeof(path), "/tmp/kiln-sessions-XXXXXX");
    fd = mkstemp(path);
    CHECK(fd >= 0);
    close(fd);
    write_tokens(tokens);
    CHECK_OK(kiln_gate_new(
        &(struct kiln_gate_opts){.tokens_file = path, .tenants = tenants, .reload_interval_ms = 1},
        &gate, NULL));
    return gate;
}

static void close_gate(struct kiln_gate *gate)
{
    kiln_gate_free(gate);
    unlink(path);
    CHECK_EQ(kiln_mem_live(), 0);
}

/* The cookie of a session that a token began. */
static const char *sign_in(struct kiln_gate *gate, const char *token)
{
    static char cookie[128];
    char id[KILN_SESSION_TEXT + 1];
    struct kiln_request request = {0};
    struct kiln_caller caller;

    CHECK_OK(kiln_gate_sign_in(gate, &request, kiln_str_of(token), id, &caller));
    CHECK(caller.signed_in && caller.tokens);
    snprintf(cookie, sizeof(cookie), "kiln_session=%s", id);
    return cookie;
}

/* A request: lines "name: value" of its head. */
struct asked {
    struct kiln_header headers[8];
    struct kiln_request request;
};

static struct asked *asked(const char *method, const char *const *lines)
{
    static struct asked a;

    a = (struct asked){.request = {.method = kiln_str_of(method), .peer = {.address = "10.0.0.1"}}};
    a.request.headers = a.headers;
    for (; lines && *lines; lines++) {
        struct kiln_str rest = kiln_str_of(*lines), name = kiln_str_cut(&rest, ':');

        a.headers[a.request.n_headers++] = (struct kiln_header){name, kiln_str_trim(rest)};
    }
    return &a;
}

#define LINES(...) ((const char *const[]){__VA_ARGS__, NULL})

static int status_of(struct kiln_gate *gate, enum kiln_access access, const char *method,
                     const char *const *lines)
{
    struct kiln_guard guard = kiln_gate_guard(gate);
    struct kiln_reply reply = {.status = 200};

    (void)!guard.check(guard.context, &asked(method, lines)->request, access, &reply);
    return reply.status;
}

/* A header that says the cookie. */
static const char *cookie_line(const char *cookies)
{
    static char line[512];

    snprintf(line, sizeof(line), "cookie: %s", cookies);
    return line;
}

TEST(gate_sessions, a_session_may_what_its_token_may)
{
    struct kiln_gate *gate = open_gate(false);
    const char *cookie = cookie_line(sign_in(gate, "reader-token"));
    const char *page = "x-kiln-page: 1";

    CHECK_EQ(status_of(gate, KILN_ACCESS_READ, "GET", LINES(cookie)), 200);
    CHECK_TEXT(asked("GET", NULL)->request.tenant, "");
    CHECK_EQ(status_of(gate, KILN_ACCESS_SELF, "GET", LINES(cookie)), 200);
    CHECK_EQ(status_of(gate, KILN_ACCESS_WRITE, "POST", LINES(cookie, page)), 403);
    CHECK_EQ(status_of(gate, KILN_ACCESS_ADMIN, "DELETE", LINES(cookie, page)), 403);
    cookie = cookie_line(sign_in(gate, "admin-token"));
    CHECK_EQ(status_of(gate, KILN_ACCESS_ADMIN, "DELETE", LINES(cookie, page)), 200);
    close_gate(gate);
}

TEST(gate_sessions, a_session_is_of_the_tenant_of_its_token)
{
    struct kiln_gate *gate = open_gate(true);
    const char *cookie = cookie_line(sign_in(gate, "reader-token"));

    CHECK_EQ(status_of(gate, KILN_ACCESS_READ, "GET", LINES(cookie)), 200);
    CHECK_EQ(status_of(gate, KILN_ACCESS_READ, "GET", LINES(cookie, "x-scope-orgid: shop")), 200);
    CHECK_EQ(status_of(gate, KILN_ACCESS_READ, "GET", LINES(cookie, "x-scope-orgid: bank")), 403);
    CHECK_EQ(status_of(gate, KILN_ACCESS_READ, "GET", LINES(cookie, "x-scope-orgid: bank|shop")),
             403);
    close_gate(gate);
}

TEST(gate_sessions, what_is_more_than_reading_must_come_from_our_own_page)
{
    struct kiln_gate *gate = open_gate(false);
    const char *cookie = cookie_line(sign_in(gate, "admin-token"));
    const char *page = "x-kiln-page: 1", *host = "host: kiln.example";
    const struct {
        const char *line;
        int status;
    } cases[] = {
        {"origin: http://kiln.example", 200},
        {"origin: https://kiln.example", 200},
        {"origin: http://evil.example", 403},
        {"origin: http://kiln.example:81", 403},
        {"origin: null", 403},
        {"sec-fetch-site: same-origin", 200},
        {"sec-fetch-site: same-site", 403},
        {"sec-fetch-site: cross-site", 403},
        {"sec-fetch-site: none", 403},
        {"referer: http://kiln.example/", 200},
    };

    CHECK_EQ(status_of(gate, KILN_ACCESS_ADMIN, "DELETE", LINES(cookie)), 403);
    CHECK_EQ(status_of(gate, KILN_ACCESS_ADMIN, "DELETE", LINES(cookie, "x-kiln-page: 0")), 403);
    CHECK_EQ(status_of(gate, KILN_ACCESS_ADMIN, "DELETE", LINES(cookie, page)), 200);
    CHECK_EQ(status_of(gate, KILN_ACCESS_READ, "POST", LINES(cookie)), 403);
    CHECK_EQ(status_of(gate, KILN_ACCESS_READ, "HEAD", LINES(cookie)), 200);
    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++)
        CHECK_EQ(
            status_of(gate, KILN_ACCESS_ADMIN, "DELETE", LINES(cookie, page, host, cases[i].line)),
            cases[i].status);
    close_gate(gate);
}

/* Signing in is open to everybody; but a page of another site could sign somebody in as itself. */
TEST(gate_sessions, nobody_is_signed_in_by_another_site)
{
    struct kiln_gate *gate = open_gate(false);
    const char *host = "host: kiln.example";

    CHECK_EQ(status_of(gate, KILN_ACCESS_NONE, "POST", NULL), 200);
    CHECK_EQ(status_of(gate, KILN_ACCESS_NONE, "POST", LINES(host, "origin: https://kiln.example")),
             200);
    CHECK_EQ(status_of(gate, KILN_ACCESS_NONE, "POST", LINES(host, "origin: https://evil.example")),
             403);
    CHECK_EQ(status_of(gate, KILN_ACCESS_NONE, "POST", LINES(host, "sec-fetch-site: cross-site")),
             403);
    CHECK_EQ(status_of(gate, KILN_ACCESS_NONE, "GET", LINES(host, "origin: https://evil.example")),
             403);
    close_gate(gate);
}

TEST(gate_sessions, a_token_that_is_said_counts_more_than_the_cookie)
{
    struct kiln_gate *gate = open_gate(false);
    const char *admin = cookie_line(sign_in(gate, "admin-token"));

    CHECK_EQ(status_of(gate, KILN_ACCESS_ADMIN, "DELETE",
                       LINES(admin, "x-kiln-page: 1", "authorization: Bearer reader-token")),
             403);
    CHECK_EQ(status_of(gate, KILN_ACCESS_READ, "GET", LINES(admin, "authorization: Bearer wrong")),
             401);
    CHECK_EQ(status_of(gate, KILN_ACCESS_READ, "GET", LINES(admin, "authorization: Nonsense")),
             401);
    CHECK_EQ(status_of(gate, KILN_ACCESS_ADMIN, "DELETE",
                       LINES("cookie: kiln_session=x", "authorization: Bearer admin-token")),
             200);
    close_gate(gate);
}

TEST(gate_sessions, the_cookie_is_found_among_others_and_garbage_is_not_one)
{
    struct kiln_gate *gate = open_gate(false);
    char line[256], twice[256];
    const char *cookie = sign_in(gate, "reader-token");
    static const char *const garbage[] = {
        "cookie: ",
        "cookie: kiln_session",
        "cookie: kiln_session=",
        "cookie: kiln_session=;;;==;",
        "cookie: xkiln_session=0000000000000000000000000000000000000000000000000000000000000000",
        "cookie: kiln_session=0000000000000000000000000000000000000000000000000000000000000000",
        "cookie: kiln_session=reader-token",
        "cookie: \xff\xfe=\x01; kiln_session=\xff",
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(garbage); i++)
        CHECK_EQ(status_of(gate, KILN_ACCESS_READ, "GET", LINES(garbage[i])), 401);
    snprintf(line, sizeof(line), "cookie: a=b; theme=dark;%s ; c=d", cookie);
    CHECK_EQ(status_of(gate, KILN_ACCESS_READ, "GET", LINES(line)), 200);
    snprintf(line, sizeof(line), "cookie: %s", cookie);
    CHECK_EQ(status_of(gate, KILN_ACCESS_READ, "GET", LINES("cookie: a=b", line)), 200);
    snprintf(twice, sizeof(twice), "cookie: kiln_session=old; %s", cookie);
    CHECK_EQ(status_of(gate, KILN_ACCESS_READ, "GET", LINES(twice)), 200);
    snprintf(line, sizeof(line), "cookie: x%s", cookie);
    CHECK_EQ(status_of(gate, KILN_ACCESS_READ, "GET", LINES(line)), 401);
    close_gate(gate);
}

TEST(gate_sessions, signing_out_ends_it_and_signing_in_again_ends_the_one_before)
{
    struct kiln_gate *gate = open_gate(false);
    char first[256], id[KILN_SESSION_TEXT + 1];
    struct kiln_caller caller;

    snprintf(first, sizeof(first), "cookie: %s", sign_in(gate, "reader-token"));
    CHECK_OK(kiln_gate_sign_in(gate, &asked("POST", LINES(first))->request, KILN_STR("admin-token"),
                               id, &caller));
    CHECK_EQ(status_of(gate, KILN_ACCESS_READ, "GET", LINES(first)), 401);
    snprintf(first, sizeof(first), "cookie: kiln_session=%s", id);
    CHECK_EQ(status_of(gate, KILN_ACCESS_READ, "GET", LINES(first)), 200);
    kiln_gate_sign_out(gate, &asked("DELETE", LINES(first))->request);
    CHECK_EQ(status_of(gate, KILN_ACCESS_READ, "GET", LINES(first)), 401);
    kiln_gate_sign_out(gate, &asked("DELETE", LINES(first))->request);
    CHECK_EQ(kiln_gate_sign_in(gate, &asked("POST", NULL)->request, KILN_STR("wrong-token"), id,
                               &caller),
             -EKEYREJECTED);
    close_gate(gate);
}

TEST(gate_sessions, a_token_that_is_taken_away_takes_its_sessions_with_it)
{
    struct kiln_gate *gate = open_gate(false);
    char cookie[256], others[256];

    snprintf(cookie, sizeof(cookie), "cookie: %s", sign_in(gate, "reader-token"));
    snprintf(others, sizeof(others), "cookie: %s", sign_in(gate, "admin-token"));
    write_tokens("- {token: admin-token, access: read}\n");
    while (status_of(gate, KILN_ACCESS_READ, "GET", LINES(cookie)) == 200)
        kiln_gate_look_again(gate);
    CHECK_EQ(status_of(gate, KILN_ACCESS_READ, "GET", LINES(others)), 200);
    CHECK_EQ(status_of(gate, KILN_ACCESS_ADMIN, "DELETE", LINES(others, "x-kiln-page: 1")), 403);
    write_tokens(tokens); /* it is back; the session is not */
    while (status_of(gate, KILN_ACCESS_ADMIN, "DELETE", LINES(others, "x-kiln-page: 1")) == 403)
        kiln_gate_look_again(gate);
    CHECK_EQ(status_of(gate, KILN_ACCESS_READ, "GET", LINES(cookie)), 401);
    close_gate(gate);
}

static struct kiln_caller caller_of(struct kiln_gate *gate, const char *const *lines)
{
    struct kiln_caller caller;

    kiln_gate_caller(gate, &asked("GET", lines)->request, &caller);
    return caller;
}

TEST(gate_sessions, who_asks_is_told_what_they_may)
{
    struct kiln_gate *gate = open_gate(true);
    struct kiln_caller caller = caller_of(gate, LINES(cookie_line(sign_in(gate, "reader-token"))));

    CHECK(caller.tokens && caller.signed_in);
    CHECK_EQ(caller.access, 1u << KILN_ACCESS_READ);
    CHECK_TEXT(caller.tenant, "shop");
    caller = caller_of(gate, LINES("authorization: Bearer admin-token"));
    CHECK(caller.signed_in && caller.access >> KILN_ACCESS_ADMIN & 1);
    CHECK_TEXT(caller.tenant, "");
    caller = caller_of(gate, LINES("cookie: kiln_session=nonsense"));
    CHECK(caller.tokens && !caller.signed_in && !caller.access);
    close_gate(gate);
    CHECK_OK(kiln_gate_new(&(struct kiln_gate_opts){0}, &gate, NULL));
    caller = caller_of(gate, NULL);
    CHECK(!caller.tokens && !caller.signed_in && caller.access >> KILN_ACCESS_ADMIN & 1);
    kiln_gate_free(gate);
}

/* A browser that is asked for a password puts its own window before the page. */
TEST(gate_sessions, only_programs_are_asked_for_a_password)
{
    struct kiln_gate *gate = open_gate(false);
    struct kiln_guard guard = kiln_gate_guard(gate);
    struct kiln_reply reply = {0};

    CHECK(guard.check(gate, &asked("GET", NULL)->request, KILN_ACCESS_READ, &reply) < 0);
    CHECK(strstr(reply.headers[0].value.ptr, "Basic"));
    CHECK(guard.check(gate, &asked("GET", LINES("x-kiln-page: 1"))->request, KILN_ACCESS_READ,
                      &reply) < 0);
    CHECK(!strstr(reply.headers[0].value.ptr, "Basic"));
    close_gate(gate);
}

/* ---- all at once ---- */

enum { THREADS = 4, ROUNDS = 200 };

/* Each for itself: in, a look around, out.  A gate is asked from everywhere. */
static void *come_and_go(void *arg)
{
    struct kiln_gate *gate = arg;
    struct kiln_guard guard = kiln_gate_guard(gate);

    for (int i = 0; i < ROUNDS; i++) {
        char cookie[128], id[KILN_SESSION_TEXT + 1];
        struct kiln_header header = {KILN_STR("cookie"), KILN_STR_NONE};
        struct kiln_request request = {.method = KILN_STR("GET"), .headers = &header};
        struct kiln_reply reply = {0};
        struct kiln_caller caller;

        CHECK_OK(kiln_gate_sign_in(gate, &request, KILN_STR("admin-token"), id, &caller));
        snprintf(cookie, sizeof(cookie), "kiln_session=%s", id);
        header.value = kiln_str_of(cookie);
        request.n_headers = 1;
        CHECK_OK(guard.check(guard.context, &request, KILN_ACCESS_READ, &reply));
        kiln_gate_sign_out(gate, &request);
        CHECK(guard.check(guard.context, &request, KILN_ACCESS_READ, &reply) < 0);
    }
    return NULL;
}

TEST(gate_sessions, many_come_and_go_while_tokens_are_read_again)
{
    struct kiln_gate *gate = open_gate(false);
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        CHECK_OK(pthread_create(&threads[i], NULL, come_and_go, gate));
    for (int i = 0; i < 20; i++) {
        char more[256];

        snprintf(more, sizeof(more), "%s- {token: another-%d, access: read}\n", tokens, i);
        write_tokens(more);
        kiln_gate_look_again(gate);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_lock(&gate->sessions.lock); /* tokens may still be read again */
    CHECK_EQ(gate->sessions.n, 0);
    pthread_mutex_unlock(&gate->sessions.lock);
    close_gate(gate);
}
