/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard checks four things, in this order: where the request comes from (net/origin.h), the
 * token or the session of one, the tenant, and the bucket.  A refusal is a constant answer.
 *
 * A browser adds its cookie to whatever any page asks of us.  So what a cookie lets in may only
 * read, unless it carries a header that a page of another origin cannot set without asking us
 * first, and the browser does not say that it comes from elsewhere.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "pipeline/gate_int.h"

#define SECRET_MAX 4096u

/* name, label "reason", status, sentence */
#define REFUSAL_MAP(X)                                                                             \
    X(NO_TOKEN, "unauthenticated", 401,                                                            \
      "a token is needed: Authorization: Bearer TOKEN, or the password of basic authentication")   \
    X(BAD_TOKEN, "unauthenticated", 401, "this token is not known")                                \
    X(TOO_MANY, "throttled", 429, "there were too many wrong tokens from this address: wait")      \
    X(NO_ACCESS, "forbidden", 403, "this token may not do that")                                   \
    X(OTHER_TENANT, "forbidden", 403, "X-Scope-OrgID names another tenant than the token is for")  \
    X(OTHER_HOST, "host", KILN_ORIGIN_HOST_STATUS, KILN_ORIGIN_HOST_TEXT)                          \
    X(CROSS_SITE, "cross_site", KILN_ORIGIN_CROSS_SITE_STATUS, KILN_ORIGIN_CROSS_SITE_TEXT)        \
    X(NO_SESSION, "unauthenticated", 401, "this session is over: sign in again")                   \
    X(NO_PAGE, "cross_site", 403,                                                                  \
      "a session may change something only with the header X-Kiln-Page: 1")                        \
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
_Static_assert((int)N_REFUSALS <= (int)KILN_GATE_REFUSALS, "each has a counter");

static const struct {
    const char *reason;
    int status;
    const char *body;
} refusals[N_REFUSALS] = {
#define X(name, reason, status, sentence) [name] = {reason, status, sentence "\n"},
    REFUSAL_MAP(X)
#undef X
};

void kiln_gate_open_metrics(struct kiln_gate *gate)
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

/* ---- asking ---- */

bool kiln_peer_is_trusted(const struct kiln_peer *peer)
{
    return peer->local && (peer->uid == 0 || peer->uid == geteuid());
}

static bool only_reads(const struct kiln_request *request)
{
    return kiln_str_eq(request->method, KILN_STR("GET")) ||
           kiln_str_eq(request->method, KILN_STR("HEAD"));
}

static bool is_of_page(const struct kiln_request *request)
{
    return kiln_str_eq(kiln_request_header(request, "x-kiln-page"), KILN_STR("1"));
}

/* ---- who it is ---- */

/* The next session that the cookies of a request name; *at and *rest say where to go on. */
static bool next_cookie(const struct kiln_request *request, uint32_t *at, struct kiln_str *rest,
                        struct kiln_str *ret_id)
{
    for (;;) {
        while (rest->len) {
            struct kiln_str pair = kiln_str_trim(kiln_str_cut(rest, ';'));
            struct kiln_str name = kiln_str_cut(&pair, '=');

            if (kiln_str_eq(name, KILN_STR(KILN_SESSION_COOKIE)) && pair.ptr) {
                *ret_id = pair;
                return true;
            }
        }
        while (*at < request->n_headers &&
               !kiln_str_eq(request->headers[*at].name, KILN_STR("cookie")))
            ++*at;
        if (*at == request->n_headers)
            return false;
        *rest = request->headers[(*at)++].value;
    }
}

enum { COOKIES_MAX = 4 }; /* of a hundred of one name, that somebody set, the first few */

/* The token behind the cookies. */
static const struct kiln_token *find_session(struct kiln_gate *gate,
                                             const struct kiln_request *request, bool *ret_tried)
{
    struct kiln_str rest = KILN_STR_NONE, id;
    uint8_t digest[KILN_SHA256_BYTES];
    const struct kiln_token *token = NULL;
    uint32_t at = 0;

    for (int i = 0; !token && i < COOKIES_MAX && next_cookie(request, &at, &rest, &id); i++) {
        *ret_tried = true;
        if (kiln_sessions_find(&gate->sessions, id, kiln_clock_mono_ns(), digest))
            token = kiln_tokens_by_digest(&gate->tokens, digest);
    }
    return token;
}

/* What a request shows of who sends it. */
struct shown {
    const struct kiln_token *token; /* NULL: nothing that is known */
    bool session;                   /* the token is that of a session */
    enum refusal why;               /* without a token */
    uint32_t wait_s;                /* of TOO_MANY */
};

/* Under the lock of tokens: the token of a secret that came from a peer. */
static struct shown try_secret(struct kiln_gate *gate, const struct kiln_peer *peer,
                               struct kiln_str secret)
{
    uint64_t now_ns = kiln_clock_mono_ns();
    uint8_t digest[KILN_SHA256_BYTES];
    struct shown shown = {.why = BAD_TOKEN};

    kiln_sha256(secret, digest);
    shown.wait_s = kiln_throttle_wait(gate->throttle, peer, digest, now_ns);
    if (shown.wait_s) {
        shown.why = TOO_MANY;
        return shown;
    }
    shown.token = kiln_tokens_by_digest(&gate->tokens, digest);
    if (shown.token)
        kiln_throttle_passed(gate->throttle, peer, digest);
    else
        kiln_throttle_failed(gate->throttle, peer, digest, now_ns);
    return shown;
}

/* Under the lock of tokens.  A token that is said counts, whatever else is there. */
static struct shown look(struct kiln_gate *gate, const struct kiln_request *request)
{
    struct kiln_str header = kiln_request_header(request, "authorization");
    struct shown shown = {.why = NO_TOKEN};
    char room[SECRET_MAX];
    struct kiln_str secret;
    bool tried = false;

    if (header.len) {
        secret = kiln_token_secret(header, room, sizeof(room));
        return secret.len ? try_secret(gate, &request->peer, secret) : shown;
    }
    shown.token = find_session(gate, request, &tried);
    shown.session = shown.token != NULL;
    if (tried)
        shown.why = NO_SESSION;
    return shown;
}

/* What a cookie alone does not show: that our own page meant it. */
static enum refusal check_meant(const struct kiln_request *request)
{
    struct kiln_str site = kiln_request_header(request, "sec-fetch-site");

    if (only_reads(request))
        return WELCOME;
    if (kiln_origin_is_foreign(request) ||
        (site.len && !kiln_str_eq(site, KILN_STR("same-origin"))))
        return CROSS_SITE;
    return is_of_page(request) ? WELCOME : NO_PAGE;
}

/* Whether they may; `tenant` gets the one that the token is for, "" if any. */
static enum refusal check_token(struct kiln_gate *gate, const struct kiln_request *request,
                                enum kiln_access access, char tenant[KILN_TENANT_MAX + 1],
                                uint32_t *ret_wait_s)
{
    enum refusal answer = WELCOME;
    struct shown shown;

    tenant[0] = '\0';
    if (!gate->tokens_file || access == KILN_ACCESS_NONE || kiln_peer_is_trusted(&request->peer))
        return WELCOME;
    pthread_rwlock_rdlock(&gate->tokens_lock);
    shown = look(gate, request);
    *ret_wait_s = shown.wait_s;
    if (!shown.token)
        answer = shown.why;
    else if (shown.session)
        answer = check_meant(request);
    if (answer == WELCOME && !(shown.token->access >> access & 1))
        answer = NO_ACCESS;
    if (answer == WELCOME)
        memcpy(tenant, shown.token->tenant, sizeof(shown.token->tenant));
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

/* A browser that is asked for a password puts a window of its own before our page. */
static struct kiln_str challenge(const struct kiln_request *request)
{
    return is_of_page(request) ? KILN_STR("Bearer realm=\"kiln\"")
                               : KILN_STR("Bearer realm=\"kiln\", Basic realm=\"kiln\"");
}

static int refuse(struct kiln_gate *gate, const struct kiln_request *request, enum refusal why,
                  uint32_t wait_s, struct kiln_reply *reply)
{
    kiln_metric_add(gate->refused[why], 1);
    *reply = (struct kiln_reply){.status = refusals[why].status,
                                 .content_type = "text/plain; charset=utf-8",
                                 .body = kiln_str_of(refusals[why].body)};
    if (refusals[why].status == 401 && why != NO_TENANT)
        add_header(reply, KILN_STR("www-authenticate"), challenge(request));
    if (wait_s)
        add_header(reply, KILN_STR("retry-after"), seconds_text(wait_s));
    return -EACCES;
}

static enum refusal check_origin(const struct kiln_gate *gate, const struct kiln_request *request,
                                 enum kiln_access access)
{
    static const enum refusal refusal_of[] = {[KILN_ORIGIN_OK] = WELCOME,
                                              [KILN_ORIGIN_HOST] = OTHER_HOST,
                                              [KILN_ORIGIN_CROSS_SITE] = CROSS_SITE};

    return refusal_of[kiln_origin_check(&gate->origin, request, access)];
}

static int check(void *context, struct kiln_request *request, enum kiln_access access,
                 struct kiln_reply *reply)
{
    struct kiln_gate *gate = context;
    char bound[KILN_TENANT_MAX + 1];
    enum refusal answer = check_origin(gate, request, access);
    uint32_t wait_s = 0;

    if (answer == WELCOME)
        answer = check_token(gate, request, access == KILN_ACCESS_SELF ? KILN_ACCESS_READ : access,
                             bound, &wait_s);
    if (answer == WELCOME)
        answer = check_tenant(gate, request, access, bound);
    if (answer == WELCOME && access == KILN_ACCESS_WRITE)
        answer = check_bytes(gate, request, &wait_s);
    return answer == WELCOME ? 0 : refuse(gate, request, answer, wait_s, reply);
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

/* ---- sessions ---- */

static void fill_caller(const struct kiln_token *token, struct kiln_caller *caller)
{
    caller->signed_in = true;
    caller->access = token->access;
    memcpy(caller->name, token->name, sizeof(token->name));
    memcpy(caller->tenant, token->tenant, sizeof(token->tenant));
}

void kiln_gate_caller(struct kiln_gate *gate, const struct kiln_request *request,
                      struct kiln_caller *ret_caller)
{
    struct kiln_caller caller = {.tokens = gate->tokens_file != NULL,
                                 .trusted = kiln_peer_is_trusted(&request->peer)};
    struct shown shown;

    if (!caller.tokens || caller.trusted) {
        caller.access = KILN_ACCESS_EVERYTHING;
    } else {
        pthread_rwlock_rdlock(&gate->tokens_lock);
        shown = look(gate, request);
        if (shown.token)
            fill_caller(shown.token, &caller);
        pthread_rwlock_unlock(&gate->tokens_lock);
    }
    *ret_caller = caller;
}

bool kiln_caller_is_global(const struct kiln_caller *caller)
{
    return !caller->tokens || caller->trusted || (caller->signed_in && !caller->tenant[0]);
}

void kiln_gate_sign_out(struct kiln_gate *gate, const struct kiln_request *request)
{
    struct kiln_str rest = KILN_STR_NONE, id;
    uint32_t at = 0;

    for (int i = 0; i < COOKIES_MAX && next_cookie(request, &at, &rest, &id); i++)
        kiln_sessions_end(&gate->sessions, id);
}

int kiln_gate_sign_in(struct kiln_gate *gate, const struct kiln_request *request,
                      struct kiln_str secret, char ret_id[KILN_SESSION_TEXT + 1],
                      struct kiln_caller *ret_caller)
{
    struct kiln_caller caller = {.tokens = true};
    struct shown shown;
    int r;

    if (!gate->tokens_file)
        return -ENOENT;
    pthread_rwlock_rdlock(&gate->tokens_lock);
    shown = try_secret(gate, &request->peer, secret);
    caller.wait_s = shown.wait_s;
    r = shown.wait_s ? -EUSERS : -EKEYREJECTED;
    if (shown.token) {
        fill_caller(shown.token, &caller);
        r = kiln_sessions_begin(&gate->sessions, shown.token->digest, kiln_clock_mono_ns(), ret_id);
    } else {
        kiln_metric_add(gate->refused[shown.why], 1);
    }
    pthread_rwlock_unlock(&gate->tokens_lock);
    if (r == 0)
        kiln_gate_sign_out(gate, request);
    *ret_caller = caller;
    return r;
}

/* ---- records ---- */

static void name_caller(const struct kiln_caller *caller, const struct kiln_peer *peer, char *out,
                        size_t size)
{
    if (caller->trusted || (peer->local && !caller->signed_in))
        snprintf(out, size, "uid %u", (unsigned)peer->uid);
    else if (caller->signed_in)
        snprintf(out, size, "%s", caller->name[0] ? caller->name : "a token without name");
    else
        snprintf(out, size, "%s", caller->tokens ? "" : "anonymous");
}

void kiln_gate_audit(struct kiln_gate *gate, const struct kiln_request *request, const char *action,
                     struct kiln_str target, int status)
{
    struct kiln_caller caller;
    char who[80];

    if (!gate->opts.audit)
        return;
    kiln_gate_caller(gate, request, &caller);
    name_caller(&caller, &request->peer, who, sizeof(who));
    kiln_audit_write(gate->opts.audit,
                     &(struct kiln_audit_record){.action = action,
                                                 .tenant = request->tenant,
                                                 .target = target,
                                                 .who = who,
                                                 .peer = request->peer.address,
                                                 .result = kiln_audit_result(status)});
}
