/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard asks three things, in this order: may they (token), as whom (tenant), and how much
 * (bucket).  A refusal is a constant answer.
 *
 * A thread looks at the file of tokens now and then and reads it again when its time, size or
 * inode changed; the guard only ever waits for one copy of a pointer's worth of list.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "pipeline/gate_int.h"

#define RELOAD_MS_DEFAULT 5000u
#define BURST_SECONDS     5u
#define BODY_MAX_DEFAULT  ((size_t)64 << 20)
#define SECRET_MAX        4096u

/* name, label "reason", status, sentence */
#define REFUSAL_MAP(X)                                                                             \
    X(NO_TOKEN, "unauthenticated", 401,                                                            \
      "a token is needed: Authorization: Bearer TOKEN, or the password of basic authentication")   \
    X(BAD_TOKEN, "unauthenticated", 401, "this token is not known")                                \
    X(NO_ACCESS, "forbidden", 403, "this token may not do that")                                   \
    X(OTHER_TENANT, "forbidden", 403, "X-Scope-OrgID names another tenant than the token is for")  \
    X(CROSS_SITE, "cross_site", 403, "a page of another site may not do this")                     \
    X(NO_TENANT, "tenant", 401, "no org id: X-Scope-OrgID says the tenant")                        \
    X(BAD_TENANT, "tenant", 400,                                                                   \
      "X-Scope-OrgID has at most 150 of the characters A-Z a-z 0-9 ! - _ . * ' ( )"                \
      " (or, for questions, at most 16 such names with | between them)")                           \
    X(TOO_LARGE, "body", 413, "the body is larger than this tenant may send")                      \
    X(TOO_FAST, "rate", 429, "this tenant sends more bytes a second than it may")

enum refusal {
#define X(name, reason, status, sentence) name,
    REFUSAL_MAP(X)
#undef X
        N_REFUSALS,
    WELCOME
};

static const struct {
    const char *reason;
    int status;
    const char *body;
} refusals[N_REFUSALS] = {
#define X(name, reason, status, sentence) [name] = {reason, status, sentence "\n"},
    REFUSAL_MAP(X)
#undef X
};

struct kiln_gate {
    struct kiln_gate_opts opts;
    char *tokens_file; /* NULL: no tokens */
    struct kiln_tokens tokens;
    pthread_rwlock_t tokens_lock;
    struct kiln_buckets *buckets; /* NULL: no limit */
    struct kiln_metric *refused[N_REFUSALS];
    struct kiln_metric *reloads, *bad_reloads;

    pthread_t reloader;
    pthread_mutex_t stop_lock;
    pthread_cond_t stop_cond;
    bool reloading, stop;
    struct stat seen;
};

/* ---- reloading ---- */

static bool has_changed(struct kiln_gate *gate)
{
    struct stat now;

    if (stat(gate->tokens_file, &now) < 0)
        return false; /* being replaced, or gone: what we have stays */
    if (now.st_mtim.tv_sec == gate->seen.st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == gate->seen.st_mtim.tv_nsec && now.st_size == gate->seen.st_size &&
        now.st_ino == gate->seen.st_ino)
        return false;
    gate->seen = now;
    return true;
}

static void reload(struct kiln_gate *gate)
{
    struct kiln_tokens fresh, old;
    struct kiln_err err = {0};

    if (kiln_tokens_load(gate->tokens_file, &fresh, &err) < 0) {
        kiln_metric_add(gate->bad_reloads, 1);
        kiln_log(gate->opts.log, KILN_LOG_ERROR, "tokens not read again, the old ones stay",
                 "where", "%s", err.where, "why", "%s", err.text, NULL);
        return;
    }
    pthread_rwlock_wrlock(&gate->tokens_lock);
    old = gate->tokens;
    gate->tokens = fresh;
    pthread_rwlock_unlock(&gate->tokens_lock);
    kiln_tokens_done(&old);
    kiln_metric_add(gate->reloads, 1);
    kiln_log(gate->opts.log, KILN_LOG_INFO, "tokens read again", "file", "%s", gate->tokens_file,
             "tokens", "%u", fresh.n, NULL);
}

static void *watch(void *context)
{
    struct kiln_gate *gate = context;
    uint64_t ms = gate->opts.reload_interval_ms ? gate->opts.reload_interval_ms : RELOAD_MS_DEFAULT;
    struct timespec until;

    pthread_mutex_lock(&gate->stop_lock);
    while (!gate->stop) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += (time_t)(ms / 1000);
        until.tv_nsec += (long)(ms % 1000 * KILN_NS_PER_MS);
        if (until.tv_nsec >= (long)KILN_NS_PER_S) {
            until.tv_nsec -= (long)KILN_NS_PER_S;
            until.tv_sec++;
        }
        pthread_cond_timedwait(&gate->stop_cond, &gate->stop_lock, &until);
        if (!gate->stop && has_changed(gate))
            reload(gate);
    }
    pthread_mutex_unlock(&gate->stop_lock);
    return NULL;
}

void kiln_gate_look_again(struct kiln_gate *gate)
{
    pthread_mutex_lock(&gate->stop_lock);
    pthread_cond_signal(&gate->stop_cond);
    pthread_mutex_unlock(&gate->stop_lock);
}

/* ---- making ---- */

static int open_tokens(struct kiln_gate *gate, struct kiln_err *err)
{
    size_t size = strlen(gate->opts.tokens_file) + 1;
    int r;

    gate->tokens_file = kiln_malloc(size);
    if (!gate->tokens_file)
        return -ENOMEM;
    memcpy(gate->tokens_file, gate->opts.tokens_file, size);
    gate->opts.tokens_file = gate->tokens_file;
    (void)has_changed(gate);
    r = kiln_tokens_load(gate->tokens_file, &gate->tokens, err);
    if (r < 0)
        return r;
    r = kiln_thread_start("kiln-gate", watch, gate, &gate->reloader);
    gate->reloading = r == 0;
    return r < 0 ? kiln_err_set(err, r, NULL, "no thread for reading tokens: %s", kiln_err_text(r))
                 : 0;
}

static int open_buckets(struct kiln_gate *gate)
{
    const struct kiln_gate_limits *limits = &gate->opts.limits;
    uint64_t body = limits->body_max ? limits->body_max : BODY_MAX_DEFAULT;
    uint64_t burst = limits->burst_bytes;

    if (!limits->bytes_per_s)
        return 0;
    if (!burst) {
        burst = limits->bytes_per_s < UINT64_MAX / BURST_SECONDS
                    ? limits->bytes_per_s * BURST_SECONDS
                    : UINT64_MAX;
        burst = burst < body ? body : burst;
    }
    return kiln_buckets_new(limits->bytes_per_s, burst, &gate->buckets);
}

static void get_metrics(struct kiln_gate *gate)
{
    for (int i = 0; i < N_REFUSALS; i++)
        gate->refused[i] = kiln_metric_get(gate->opts.metrics, KILN_COUNTER, "kiln_refused_total",
                                           "Requests refused before they were read.",
                                           KILN_LABELS("reason", refusals[i].reason));
    gate->reloads = kiln_metric_get(gate->opts.metrics, KILN_COUNTER, "kiln_tokens_reloads_total",
                                    "How often the file of tokens was read again.",
                                    KILN_LABELS("result", "ok"));
    gate->bad_reloads = kiln_metric_get(
        gate->opts.metrics, KILN_COUNTER, "kiln_tokens_reloads_total",
        "How often the file of tokens was read again.", KILN_LABELS("result", "failed"));
}

int kiln_gate_new(const struct kiln_gate_opts *opts, struct kiln_gate **ret_gate,
                  struct kiln_err *err)
{
    struct kiln_gate *gate = kiln_calloc(1, sizeof(*gate));
    pthread_condattr_t monotonic;
    int r;

    if (!gate)
        return -ENOMEM;
    gate->opts = *opts;
    pthread_rwlock_init(&gate->tokens_lock, NULL);
    pthread_mutex_init(&gate->stop_lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&gate->stop_cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
    get_metrics(gate);
    r = open_buckets(gate);
    if (r == 0 && opts->tokens_file)
        r = open_tokens(gate, err);
    if (r < 0) {
        kiln_gate_free(gate);
        return r;
    }
    *ret_gate = gate;
    return 0;
}

void kiln_gate_free(struct kiln_gate *gate)
{
    if (!gate)
        return;
    pthread_mutex_lock(&gate->stop_lock);
    gate->stop = true;
    pthread_cond_signal(&gate->stop_cond);
    pthread_mutex_unlock(&gate->stop_lock);
    if (gate->reloading)
        pthread_join(gate->reloader, NULL);
    kiln_tokens_done(&gate->tokens);
    kiln_buckets_free(gate->buckets);
    pthread_cond_destroy(&gate->stop_cond);
    pthread_mutex_destroy(&gate->stop_lock);
    pthread_rwlock_destroy(&gate->tokens_lock);
    kiln_free(gate->tokens_file);
    kiln_free(gate);
}

/* ---- asking ---- */

/* Peers that could read our files and memory anyway. */
static bool is_trusted(const struct kiln_peer *peer)
{
    return peer->local && (peer->uid == 0 || peer->uid == geteuid());
}

/*
 * A page of another site that is open in somebody's browser can make it call a server on loopback;
 * browsers then say where the page is from.  Programs say nothing of the kind.
 */
static bool is_cross_site(const struct kiln_request *request)
{
    struct kiln_str origin = kiln_request_header(request, "origin");
    struct kiln_str host = kiln_request_header(request, "host");

    if (!origin.len)
        return false;
    if (kiln_str_starts(origin, KILN_STR("http://")))
        origin = (struct kiln_str){origin.ptr + 7, origin.len - 7};
    else if (kiln_str_starts(origin, KILN_STR("https://")))
        origin = (struct kiln_str){origin.ptr + 8, origin.len - 8};
    return !kiln_str_eq(origin, host);
}

/* Whether they may; `tenant` gets the one that the token is for, "" if any. */
static enum refusal check_token(struct kiln_gate *gate, const struct kiln_request *request,
                                enum kiln_access access, char tenant[KILN_TENANT_MAX + 1])
{
    char room[SECRET_MAX];
    struct kiln_str secret;
    const struct kiln_token *token;
    enum refusal answer = WELCOME;

    tenant[0] = '\0';
    if (!gate->tokens_file || access == KILN_ACCESS_NONE || is_trusted(&request->peer))
        return WELCOME;
    secret = kiln_token_secret(kiln_request_header(request, "authorization"), room, sizeof(room));
    if (!secret.len)
        return NO_TOKEN;
    pthread_rwlock_rdlock(&gate->tokens_lock);
    token = kiln_tokens_find(&gate->tokens, secret);
    if (!token)
        answer = BAD_TOKEN;
    else if (!(token->access >> access & 1))
        answer = NO_ACCESS;
    else
        memcpy(tenant, token->tenant, sizeof(token->tenant));
    pthread_rwlock_unlock(&gate->tokens_lock);
    return answer;
}

/* One tenant; of a question, several. */
static bool take_tenants(struct kiln_request *request, enum kiln_access access,
                         struct kiln_str asked)
{
    if (access == KILN_ACCESS_READ)
        return kiln_tenants_sort(asked, request->tenant) == 0;
    if (!kiln_tenant_valid(asked))
        return false;
    memcpy(request->tenant, asked.ptr, asked.len);
    request->tenant[asked.len] = '\0';
    return true;
}

static enum refusal check_tenant(struct kiln_gate *gate, struct kiln_request *request,
                                 enum kiln_access access, const char *bound)
{
    struct kiln_str asked = kiln_request_header(request, "x-scope-orgid");
    bool any = access == KILN_ACCESS_NONE || access == KILN_ACCESS_SELF;

    if (!gate->opts.tenants && !bound[0])
        asked = KILN_STR("anonymous");
    else if (!gate->opts.tenants)
        asked = kiln_str_of(bound);
    else if (!asked.len && bound[0])
        asked = kiln_str_of(bound);
    if (!asked.len)
        return any ? WELCOME : NO_TENANT;
    if (!take_tenants(request, access, asked))
        return any ? WELCOME : BAD_TENANT;
    return bound[0] && strcmp(request->tenant, bound) != 0 ? OTHER_TENANT : WELCOME;
}

static enum refusal check_bytes(struct kiln_gate *gate, const struct kiln_request *request,
                                uint32_t *ret_wait_s)
{
    struct kiln_str length = kiln_request_header(request, "content-length");
    uint64_t bytes = 0;

    if (kiln_str_parse_u64(length, &bytes) < 0)
        bytes = 0;
    if (gate->opts.limits.body_max && bytes > gate->opts.limits.body_max)
        return TOO_LARGE;
    if (gate->buckets)
        *ret_wait_s = kiln_buckets_take(gate->buckets, request->tenant, bytes);
    return *ret_wait_s ? TOO_FAST : WELCOME;
}

/* ---- answering ---- */

/* A constant text for a number of seconds, rounded up. */
static struct kiln_str seconds_text(uint32_t s)
{
    return s <= 1    ? KILN_STR("1")
           : s <= 2  ? KILN_STR("2")
           : s <= 5  ? KILN_STR("5")
           : s <= 10 ? KILN_STR("10")
           : s <= 30 ? KILN_STR("30")
                     : KILN_STR("60");
}

static void add_header(struct kiln_reply *reply, struct kiln_str name, struct kiln_str value)
{
    reply->headers[reply->n_headers++] = (struct kiln_header){name, value};
}

static int refuse(struct kiln_gate *gate, enum refusal why, uint32_t wait_s,
                  struct kiln_reply *reply)
{
    kiln_metric_add(gate->refused[why], 1);
    *reply = (struct kiln_reply){.status = refusals[why].status,
                                 .content_type = "text/plain; charset=utf-8",
                                 .body = kiln_str_of(refusals[why].body)};
    if (why == NO_TOKEN || why == BAD_TOKEN)
        add_header(reply, KILN_STR("www-authenticate"),
                   KILN_STR("Bearer realm=\"kiln\", Basic realm=\"kiln\""));
    if (why == TOO_FAST)
        add_header(reply, KILN_STR("retry-after"), seconds_text(wait_s));
    return -EACCES;
}

static bool is_change(enum kiln_access access)
{
    return access == KILN_ACCESS_WRITE || access == KILN_ACCESS_ADMIN;
}

static int check(void *context, struct kiln_request *request, enum kiln_access access,
                 struct kiln_reply *reply)
{
    struct kiln_gate *gate = context;
    char bound[KILN_TENANT_MAX + 1];
    enum refusal answer =
        check_token(gate, request, access == KILN_ACCESS_SELF ? KILN_ACCESS_READ : access, bound);
    uint32_t wait_s = 0;

    if (answer == WELCOME && is_change(access) && is_cross_site(request))
        answer = CROSS_SITE;
    if (answer == WELCOME)
        answer = check_tenant(gate, request, access, bound);
    if (answer == WELCOME && access == KILN_ACCESS_WRITE)
        answer = check_bytes(gate, request, &wait_s);
    return answer == WELCOME ? 0 : refuse(gate, answer, wait_s, reply);
}

struct kiln_guard kiln_gate_guard(struct kiln_gate *gate)
{
    return (struct kiln_guard){.check = check, .context = gate};
}

int kiln_gate_charge(struct kiln_gate *gate, const struct kiln_request *request)
{
    if (kiln_request_header(request, "content-length").len)
        return 0;
    if (gate->buckets)
        kiln_buckets_charge(gate->buckets, request->tenant, request->body.len);
    if (gate->opts.limits.body_max && request->body.len > gate->opts.limits.body_max) {
        kiln_metric_add(gate->refused[TOO_LARGE], 1);
        return KILN_E_LIMIT;
    }
    return 0;
}

/* ---- listening ---- */

static bool is_loopback(struct kiln_str host)
{
    char text[INET6_ADDRSTRLEN + 1];
    struct in_addr four;
    struct in6_addr six;

    if (host.len >= 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']')
        host = (struct kiln_str){host.ptr + 1, host.len - 2};
    if (kiln_str_eq(host, KILN_STR("localhost")))
        return true;
    if (host.len == 0 || host.len >= sizeof(text))
        return false;
    memcpy(text, host.ptr, host.len);
    text[host.len] = '\0';
    if (inet_pton(AF_INET, text, &four) == 1)
        return ntohl(four.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, text, &six) != 1)
        return false;
    return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
}

int kiln_gate_check_listen(const char *address, bool has_tokens, bool allow_anonymous,
                           struct kiln_err *err)
{
    struct kiln_str s = kiln_str_of(address);
    const char *colon = strrchr(address, ':');

    if (has_tokens || allow_anonymous || kiln_str_starts(s, KILN_STR("unix:")))
        return 0;
    if (colon)
        s.len = (size_t)(colon - address);
    if (is_loopback(s))
        return 0;
    return kiln_err_set(err, -EACCES, address,
                        "everybody who can reach this address could read and write profiles: give "
                        "a file of tokens, or allow anonymous access if that is meant");
}
