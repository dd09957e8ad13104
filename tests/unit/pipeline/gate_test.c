/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "intake.h"
#include "pipeline/gate.h"
#include "pipeline/gate_int.h"
#include "test.h"

/* ---- asking without a server ---- */

/* What the gate says to these headers: "200 tenant", or "401 reason...". */
static const char *ask(struct kiln_gate *gate, enum kiln_access access, const char *authorization,
                       const char *tenant, const char *length)
{
    static char said[2048];
    struct kiln_header headers[3];
    struct kiln_request request = {.headers = headers, .peer = {.address = "127.0.0.1:1"}};
    struct kiln_guard guard = kiln_gate_guard(gate);
    struct kiln_reply reply = {0};

    if (authorization)
        headers[request.n_headers++] =
            (struct kiln_header){KILN_STR("authorization"), kiln_str_of(authorization)};
    if (tenant)
        headers[request.n_headers++] =
            (struct kiln_header){KILN_STR("x-scope-orgid"), kiln_str_of(tenant)};
    if (length)
        headers[request.n_headers++] =
            (struct kiln_header){KILN_STR("content-length"), kiln_str_of(length)};
    if (guard.check(guard.context, &request, access, &reply) == 0)
        snprintf(said, sizeof(said), "200 %s", request.tenant);
    else
        snprintf(said, sizeof(said), "%d %.*s", reply.status, KILN_STR_ARG(reply.body));
    for (uint32_t i = 0; i < reply.n_headers; i++)
        snprintf(said + strlen(said), sizeof(said) - strlen(said), "%.*s: %.*s\n",
                 KILN_STR_ARG(reply.headers[i].name), KILN_STR_ARG(reply.headers[i].value));
    return said;
}

static int status_of(const char *said)
{
    return (int)strtol(said, NULL, 10);
}

#define READ(gate, ...)  ask(gate, KILN_ACCESS_READ, __VA_ARGS__)
#define WRITE(gate, ...) ask(gate, KILN_ACCESS_WRITE, __VA_ARGS__)

static struct kiln_gate *gate_of(const struct kiln_gate_opts *opts)
{
    struct kiln_err err = {0};
    struct kiln_gate *gate;

    CHECK_OK(kiln_gate_new(opts, &gate, &err));
    return gate;
}

/* A temporary file with this content; its name lives until the next call. */
static const char *file_of(const char *text)
{
    static char path[64];
    int fd;

    snprintf(path, sizeof(path), "/tmp/kiln-gate-XXXXXX");
    fd = mkstemp(path);
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    return path;
}

/* What it says to a browser's request, made by a page of `origin`, to http://127.0.0.1:4040. */
static int asked_by_page(struct kiln_gate *gate, enum kiln_access access, const char *origin)
{
    struct kiln_header headers[] = {{KILN_STR("host"), KILN_STR("127.0.0.1:4040")},
                                    {KILN_STR("origin"), kiln_str_of(origin)}};
    struct kiln_request request = {.headers = headers, .n_headers = 2};
    struct kiln_guard guard = kiln_gate_guard(gate);
    struct kiln_reply reply = {.status = 200};

    (void)!guard.check(guard.context, &request, access, &reply);
    return reply.status;
}

TEST(gate, a_page_of_another_site_may_do_nothing)
{
    struct kiln_gate *gate = gate_of(&(struct kiln_gate_opts){0});

    CHECK_EQ(asked_by_page(gate, KILN_ACCESS_ADMIN, "https://elsewhere.example"), 403);
    CHECK_EQ(asked_by_page(gate, KILN_ACCESS_WRITE, "http://127.0.0.1:3000"), 403);
    CHECK_EQ(asked_by_page(gate, KILN_ACCESS_WRITE, "null"), 403);
    CHECK_EQ(asked_by_page(gate, KILN_ACCESS_ADMIN, "http://127.0.0.1:4040"), 200);
    CHECK_EQ(asked_by_page(gate, KILN_ACCESS_READ, "https://elsewhere.example"), 403);
    CHECK_EQ(asked_by_page(gate, KILN_ACCESS_READ, "http://127.0.0.1:4040"), 200);
    kiln_gate_free(gate);
}

/* What it says to POST with this Host, of a program. */
static int asked_as(const struct kiln_gate_opts *opts, enum kiln_access access, const char *host)
{
    struct kiln_gate *gate = gate_of(opts);
    struct kiln_header header = {KILN_STR("host"), kiln_str_of(host)};
    struct kiln_request request = {.method = KILN_STR("POST"), .headers = &header, .n_headers = 1};
    struct kiln_guard guard = kiln_gate_guard(gate);
    struct kiln_reply reply = {.status = 200};

    (void)!guard.check(guard.context, &request, access, &reply);
    kiln_gate_free(gate);
    return reply.status;
}

TEST(gate, without_tokens_the_host_name_must_be_known)
{
    static const char *const names[] = {"kiln.example"};
    const struct kiln_gate_opts closed = {.host_names = names, .n_host_names = 1};
    struct kiln_gate_opts open = {.allow_anonymous = true};

    CHECK_EQ(asked_as(&closed, KILN_ACCESS_READ, "kiln.example:4040"), 200);
    CHECK_EQ(asked_as(&closed, KILN_ACCESS_READ, "localhost:4040"), 200);
    CHECK_EQ(asked_as(&closed, KILN_ACCESS_READ, "evil.example:4040"), 421);
    CHECK_EQ(asked_as(&closed, KILN_ACCESS_WRITE, "evil.example:4040"), 421);
    CHECK_EQ(asked_as(&open, KILN_ACCESS_WRITE, "pyroscope:4040"), 200);
    CHECK_EQ(asked_as(&open, KILN_ACCESS_READ, "pyroscope:4040"), 421);
    CHECK_EQ(asked_as(&open, KILN_ACCESS_ADMIN, "pyroscope:4040"), 421);
}

TEST(gate, with_tokens_any_host_name_will_do)
{
    const char *path = file_of("- {token: root-secret, access: admin}\n");
    struct kiln_gate_opts opts = {.tokens_file = path};

    CHECK_EQ(asked_as(&opts, KILN_ACCESS_READ, "kiln.example"), 401);
    CHECK_EQ(asked_as(&opts, KILN_ACCESS_NONE, "kiln.example"), 200);
    unlink(path);
}

TEST(gate, what_the_server_says_of_itself_needs_no_tenant)
{
    struct kiln_gate *gate = gate_of(&(struct kiln_gate_opts){.tenants = true});

    CHECK_EQ(status_of(READ(gate, NULL, NULL, NULL)), 401);
    CHECK_EQ(status_of(ask(gate, KILN_ACCESS_SELF, NULL, NULL, NULL)), 200);
    kiln_gate_free(gate);
}

/* printf %s page-token | sha256sum */
static const char tokens[] = "tokens:\n"
                             "- {name: ci, token: ci-secret, tenant: shop, access: write}\n"
                             "- name: page\n"
                             "  sha256: "
                             "8e6780cc7aa5b6a65a6b03d06b6e98465cf4ab02f84528f97c24ba8650d40126\n"
                             "  access: [read, write]\n"
                             "- {token: root-secret, access: admin}\n";

/* ---- tokens ---- */

TEST(gate, without_tokens_everybody_may_do_everything)
{
    struct kiln_gate *gate = gate_of(&(struct kiln_gate_opts){0});

    CHECK_TEXT(READ(gate, NULL, NULL, NULL), "200 anonymous");
    CHECK_TEXT(WRITE(gate, "Bearer whatever", "ignored", "100"), "200 anonymous");
    CHECK_TEXT(ask(gate, KILN_ACCESS_ADMIN, NULL, NULL, NULL), "200 anonymous");
    kiln_gate_free(gate);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(gate, tokens_say_what_one_may)
{
    const char *path = file_of(tokens);
    struct kiln_gate *gate = gate_of(&(struct kiln_gate_opts){.tokens_file = path});

    CHECK_TEXT(WRITE(gate, "Bearer ci-secret", NULL, NULL), "200 shop");
    CHECK_TEXT(WRITE(gate, "bearer   ci-secret ", NULL, NULL), "200 shop");
    CHECK_TEXT(WRITE(gate, "Basic dXNlcjpjaS1zZWNyZXQ=", NULL, NULL), "200 shop");
    CHECK_EQ(status_of(READ(gate, "Bearer ci-secret", NULL, NULL)), 403);
    CHECK_TEXT(READ(gate, "Bearer page-token", NULL, NULL), "200 anonymous");
    CHECK_EQ(status_of(ask(gate, KILN_ACCESS_ADMIN, "Bearer page-token", NULL, NULL)), 403);
    CHECK_TEXT(READ(gate, "Bearer root-secret", NULL, NULL), "200 anonymous");
    CHECK_TEXT(ask(gate, KILN_ACCESS_ADMIN, "Bearer root-secret", NULL, NULL), "200 anonymous");
    CHECK_TEXT(ask(gate, KILN_ACCESS_NONE, NULL, NULL, NULL), "200 anonymous");
    CHECK_EQ(status_of(WRITE(gate, "Bearer ci-secre", NULL, NULL)), 401);
    CHECK_EQ(status_of(WRITE(gate, "Bearer", NULL, NULL)), 401);
    CHECK_EQ(status_of(WRITE(gate, "Basic ?", NULL, NULL)), 401);
    CHECK_EQ(status_of(WRITE(gate, "Digest ci-secret", NULL, NULL)), 401);
    CHECK(strstr(WRITE(gate, NULL, NULL, NULL), "www-authenticate: Bearer realm=\"kiln\""));
    kiln_gate_free(gate);
    unlink(path);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(gate, root_and_we_ourselves_need_no_token_on_a_unix_socket)
{
    const struct {
        bool local;
        uid_t uid;
        int code;
    } cases[] = {
        {true, 0, 0}, {true, geteuid(), 0}, {true, geteuid() + 1, -EACCES}, {false, 0, -EACCES}};
    const char *path = file_of(tokens);
    struct kiln_gate *gate = gate_of(&(struct kiln_gate_opts){.tokens_file = path});
    struct kiln_guard guard = kiln_gate_guard(gate);

    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        struct kiln_request request = {.peer = {.local = cases[i].local, .uid = cases[i].uid}};
        struct kiln_reply reply = {0};

        CHECK_EQ(guard.check(guard.context, &request, KILN_ACCESS_ADMIN, &reply), cases[i].code);
    }
    kiln_gate_free(gate);
    unlink(path);
}

TEST(gate, a_hash_stands_for_its_token)
{
    struct kiln_tokens list = {0};
    struct kiln_buf text;
    uint8_t digest[KILN_SHA256_BYTES];
    const char *path;

    kiln_sha256(KILN_STR("page-token"), digest);
    kiln_buf_init(&text, 1000);
    kiln_buf_puts(&text, "[{\"sha256\": \"");
    kiln_buf_add_hex(&text, digest, sizeof(digest));
    kiln_buf_puts(&text, "\", \"access\": \"read\", \"tenant\": \"*\"}]");
    kiln_buf_putc(&text, '\0');
    path = file_of(text.ptr);
    CHECK_OK(kiln_tokens_load(path, &list, NULL));
    CHECK(kiln_tokens_by_digest(&list, digest) == &list.list[0]);
    kiln_sha256(KILN_STR("page-toke"), digest);
    CHECK(!kiln_tokens_by_digest(&list, digest));
    CHECK_TEXT(list.list[0].tenant, "");
    kiln_tokens_done(&list);
    kiln_buf_done(&text);
    unlink(path);
}

TEST(gate, bad_files_say_where)
{
    static const char *const cases[][2] = {
        {"- {token: long-enough}\n", "access"},
        {"- {token: long-enough, access: everything}\n", "access is read, write, control or admin"},
        {"- {token: short, access: read}\n", "at least 8 bytes"},
        {"- {access: read}\n", "either a token or its sha256"},
        {"- {token: long-enough, sha256: 00, access: read}\n", "either a token or its sha256"},
        {"- {sha256: 00, access: read}\n", "64 hexadecimal digits"},
        {"- {token: long-enough, access: read, tenant: a/b}\n", "tenant"},
        {"- {token: long-enough, acess: read}\n", "acess"},
        {"tokens: 3\n", "list"},
        {"", "no tokens"},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        const char *path = file_of(cases[i][0]);
        struct kiln_err err = {0};
        struct kiln_gate *gate;

        CHECK(kiln_gate_new(&(struct kiln_gate_opts){.tokens_file = path}, &gate, &err) < 0);
        CHECK(strstr(err.text, cases[i][1]));
        CHECK(strstr(err.where, path));
        unlink(path);
    }
    CHECK_EQ(kiln_mem_live(), 0);
}

/* Asks until the answer is this: the file is looked at by a thread. */
static void await(struct kiln_gate *gate, const char *token, int status)
{
    while (status_of(WRITE(gate, token, NULL, NULL)) != status)
        usleep(1000);
}

TEST(gate, the_file_is_read_again_when_it_changes)
{
    char path[64], other[64];
    struct kiln_gate *gate;

    snprintf(path, sizeof(path), "%s", file_of("- {token: first-one, access: write}\n"));
    gate = gate_of(&(struct kiln_gate_opts){.tokens_file = path, .reload_interval_ms = 1});
    await(gate, "Bearer first-one", 200);
    snprintf(other, sizeof(other), "%s", file_of("- {token: second-one, access: write}\n"));
    CHECK_OK(rename(other, path));
    await(gate, "Bearer second-one", 200);
    CHECK_EQ(status_of(WRITE(gate, "Bearer first-one", NULL, NULL)), 401);
    snprintf(other, sizeof(other), "%s", file_of("this is no list\n"));
    CHECK_OK(rename(other, path));
    CHECK_EQ(status_of(WRITE(gate, "Bearer second-one", NULL, NULL)), 200);
    snprintf(other, sizeof(other), "%s", file_of("- {token: third-one, access: write}\n"));
    CHECK_OK(rename(other, path));
    await(gate, "Bearer third-one", 200);
    kiln_gate_free(gate);
    unlink(path);
}

/* ---- tenants ---- */

TEST(gate, a_header_names_the_tenant)
{
    struct kiln_gate *gate = gate_of(&(struct kiln_gate_opts){.tenants = true});
    char longest[153];

    CHECK_TEXT(WRITE(gate, NULL, "shop", NULL), "200 shop");
    CHECK_TEXT(WRITE(gate, NULL, "a!b-c_d.e*f'g(h)I9", NULL), "200 a!b-c_d.e*f'g(h)I9");
    CHECK_EQ(status_of(WRITE(gate, NULL, NULL, NULL)), 401);
    CHECK_EQ(status_of(WRITE(gate, NULL, "", NULL)), 401);
    CHECK_EQ(status_of(WRITE(gate, NULL, ".", NULL)), 400);
    CHECK_EQ(status_of(WRITE(gate, NULL, "..", NULL)), 400);
    CHECK_EQ(status_of(WRITE(gate, NULL, "a/b", NULL)), 400);
    CHECK_EQ(status_of(WRITE(gate, NULL, "a|b", NULL)), 400);
    memset(longest, 'x', sizeof(longest));
    longest[151] = '\0';
    CHECK_EQ(status_of(WRITE(gate, NULL, longest, NULL)), 400);
    longest[150] = '\0';
    CHECK_EQ(status_of(WRITE(gate, NULL, longest, NULL)), 200);
    CHECK_EQ(status_of(ask(gate, KILN_ACCESS_NONE, NULL, NULL, NULL)), 200);
    kiln_gate_free(gate);
}

TEST(gate, a_token_of_a_tenant_stands_for_it)
{
    const char *path = file_of(tokens);
    struct kiln_gate *gate =
        gate_of(&(struct kiln_gate_opts){.tokens_file = path, .tenants = true});

    CHECK_TEXT(WRITE(gate, "Bearer ci-secret", NULL, NULL), "200 shop");
    CHECK_TEXT(WRITE(gate, "Bearer ci-secret", "shop", NULL), "200 shop");
    CHECK_EQ(status_of(WRITE(gate, "Bearer ci-secret", "bank", NULL)), 403);
    CHECK_TEXT(WRITE(gate, "Bearer root-secret", "bank", NULL), "200 bank");
    CHECK_EQ(status_of(WRITE(gate, "Bearer root-secret", NULL, NULL)), 401);
    kiln_gate_free(gate);
    unlink(path);
}

/* ---- how much ---- */

TEST(gate, questions_may_be_about_several_tenants)
{
    struct kiln_gate *gate = gate_of(&(struct kiln_gate_opts){.tenants = true});

    CHECK_TEXT(READ(gate, NULL, "shop", NULL), "200 shop");
    CHECK_TEXT(READ(gate, NULL, "b|a|b|c", NULL), "200 a|b|c");
    CHECK_EQ(status_of(READ(gate, NULL, "a|", NULL)), 400);
    CHECK_EQ(status_of(READ(gate, NULL, "|a", NULL)), 400);
    CHECK_EQ(status_of(READ(gate, NULL, "a|b/c", NULL)), 400);
    CHECK_EQ(status_of(WRITE(gate, NULL, "a|b", NULL)), 400);
    CHECK_EQ(status_of(ask(gate, KILN_ACCESS_ADMIN, NULL, "a|b", NULL)), 400);
    CHECK_EQ(status_of(ask(gate, KILN_ACCESS_SELF, NULL, "a|b", NULL)), 200);
    CHECK_TEXT(READ(gate, NULL, "p|o|n|m|l|k|j|i|h|g|f|e|d|c|b|a|a", NULL),
               "200 a|b|c|d|e|f|g|h|i|j|k|l|m|n|o|p");
    CHECK_EQ(status_of(READ(gate, NULL, "a|b|c|d|e|f|g|h|i|j|k|l|m|n|o|p|q", NULL)), 400);
    kiln_gate_free(gate);
}

TEST(gate, a_token_of_a_tenant_reads_no_other)
{
    const char *path = file_of("- {token: shop-secret, tenant: shop, access: read}\n");
    struct kiln_gate *gate =
        gate_of(&(struct kiln_gate_opts){.tenants = true, .tokens_file = path});

    CHECK_TEXT(READ(gate, "Bearer shop-secret", "shop|shop", NULL), "200 shop");
    CHECK_EQ(status_of(READ(gate, "Bearer shop-secret", "shop|other", NULL)), 403);
    kiln_gate_free(gate);
    unlink(path);
}

TEST(gate, a_tenant_has_a_rate_with_a_burst)
{
    struct kiln_gate *gate = gate_of(&(struct kiln_gate_opts){
        .tenants = true, .limits = {.bytes_per_s = 1, .burst_bytes = 1000}});

    CHECK_EQ(status_of(WRITE(gate, NULL, "a", "900")), 200);
    CHECK_EQ(status_of(WRITE(gate, NULL, "a", "900")), 200); /* below empty once */
    CHECK(strstr(WRITE(gate, NULL, "a", "1"), "retry-after: 60"));
    CHECK_EQ(status_of(WRITE(gate, NULL, "a", "1")), 429);
    CHECK_EQ(status_of(READ(gate, NULL, "a", NULL)), 200); /* reading is free */
    CHECK_EQ(status_of(WRITE(gate, NULL, "b", "1")), 200);
    kiln_gate_free(gate);
}

TEST(gate, bodies_without_a_length_are_counted_when_they_are_there)
{
    struct kiln_gate *gate = gate_of(
        &(struct kiln_gate_opts){.limits = {.bytes_per_s = 1, .burst_bytes = 10, .body_max = 100}});
    struct kiln_request request = {.tenant = "anonymous", .body = {"", 50}};

    CHECK_EQ(status_of(WRITE(gate, NULL, NULL, "101")), 413);
    CHECK_EQ(status_of(WRITE(gate, NULL, NULL, NULL)), 200);
    CHECK_OK(kiln_gate_charge(gate, &request));
    CHECK_EQ(status_of(WRITE(gate, NULL, NULL, NULL)), 429);
    request.body.len = 101;
    CHECK_EQ(kiln_gate_charge(gate, &request), KILN_E_LIMIT);
    kiln_gate_free(gate);
}

/* ---- listening ---- */

TEST(gate, strangers_need_tokens)
{
    static const char *const near[] = {"127.0.0.1:4040",      "127.8.8.8:1",
                                       "[::1]:4040",          "localhost:4040",
                                       "unix:/run/kiln.sock", "[::ffff:127.0.0.1]:1"};
    static const char *const far[] = {":4040", "0.0.0.0:4040", "[::]:4040", "10.0.0.1:4040",
                                      "kiln.example:4040"};
    struct kiln_err err = {0};

    for (size_t i = 0; i < KILN_ARRAY_LEN(near); i++)
        CHECK_OK(kiln_gate_check_listen(near[i], false, false, &err));
    for (size_t i = 0; i < KILN_ARRAY_LEN(far); i++) {
        err = (struct kiln_err){0};
        CHECK_EQ(kiln_gate_check_listen(far[i], false, false, &err), -EACCES);
        CHECK_TEXT(err.where, far[i]);
        CHECK(strstr(err.text, "tokens"));
        CHECK_OK(kiln_gate_check_listen(far[i], true, false, NULL));
        CHECK_OK(kiln_gate_check_listen(far[i], false, true, NULL));
    }
}

/* ---- in front of receivers ---- */

TEST(gate, too_much_is_told_to_wait_in_every_protocol)
{
    struct kiln_gate *gate =
        gate_of(&(struct kiln_gate_opts){.limits = {.bytes_per_s = 1, .burst_bytes = 5}});
    struct intake in;

    intake_start(&in, &(struct intake_opts){.guard = kiln_gate_guard(gate), .gate = gate});
    intake_grpc(&in, "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
                KILN_STR("bogus, but it counts"));
    CHECK_EQ(in.answer.rpc_code, KILN_RPC_INVALID_ARGUMENT);
    intake_grpc(&in, "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
                KILN_STR_NONE);
    CHECK_EQ(in.answer.rpc_code, KILN_RPC_UNAVAILABLE);
    CHECK(in.answer.retryable);
    CHECK_EQ(in.answer.retry_after_ms, 30000);
    CHECK_TEXT(in.answer.message, "this tenant sends more bytes a second than it may");
    intake_post(&in, "/ingest?name=a", NULL, KILN_STR("main 1\n"));
    CHECK_EQ(in.answer.status, 429);
    CHECK(in.answer.retryable);
    intake_stop(&in);
    kiln_gate_free(gate);
}

TEST(gate, refuses_before_the_body_is_read)
{
    const char *path = file_of(tokens);
    struct kiln_gate *gate = gate_of(&(struct kiln_gate_opts){.tokens_file = path});
    struct intake in;

    intake_start(&in, &(struct intake_opts){.guard = kiln_gate_guard(gate), .gate = gate});
    intake_post(&in, "/ingest?name=a", NULL, KILN_STR("main 1\n"));
    CHECK_EQ(in.answer.status, 401);
    CHECK(kiln_str_contains(kiln_buf_str(&in.answer.body), KILN_STR("a token is needed")));
    intake_grpc(&in, "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
                KILN_STR_NONE);
    CHECK_EQ(in.answer.rpc_code, KILN_RPC_UNAUTHENTICATED);
    CHECK(!in.answer.retryable);
    CHECK_EQ(in.n, 0);
    intake_stop(&in);
    intake_start(&in, &(struct intake_opts){
                          .guard = kiln_gate_guard(gate), .gate = gate, .token = "ci-secret"});
    intake_post(&in, "/ingest?name=a", NULL, KILN_STR("main 1\n"));
    CHECK_EQ(in.answer.status, 200);
    CHECK_TEXT(in.got[0].tenant, "shop");
    intake_stop(&in);
    kiln_gate_free(gate);
    unlink(path);
}
