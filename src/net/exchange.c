/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exchange is one block: the structure, its headers, the bytes of the head and the decoded
 * path.  Its body grows as it arrives, each byte taken from the pool first: what a client promises
 * (Content-Length) is believed only as far as it has been kept.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/params.h"
#include "net/server_int.h"

#define BODY_AT_ONCE (64u << 10) /* a promise that is believed */
#define GROW_FIRST   1024u

/* ---- memory ---- */

static bool take_spare(struct kiln_server *server, size_t bytes)
{
    size_t taken = atomic_load(&server->spare_taken);

    do {
        if (bytes > KILN_NET_SPARE || taken > KILN_NET_SPARE - bytes)
            return false;
    } while (!atomic_compare_exchange_weak(&server->spare_taken, &taken, taken + bytes));
    return true;
}

int kiln_net_take(struct kiln_server *server, size_t bytes, bool vital)
{
    if (!server->opts.pool || kiln_pool_take(server->opts.pool, bytes) == 0)
        return 0;
    return vital && take_spare(server, bytes) ? 0 : KILN_E_LIMIT;
}

bool kiln_net_is_short(struct kiln_server *server)
{
    struct kiln_pool *pool = server->opts.waits ? server->opts.pool : NULL;

    return pool && !kiln_pool_could(pool, pool->limit / 8);
}

bool kiln_net_has_room(struct kiln_server *server, bool has_begun)
{
    if (has_begun)
        return kiln_pool_has(server->opts.pool, (size_t)2 * KILN_LOOP_SCRATCH);
    return atomic_load(&server->spare_taken) < KILN_NET_SPARE / 2;
}

/* What was taken from either is taken from their sum: the spare part is filled up first. */
void kiln_net_give(struct kiln_server *server, size_t bytes)
{
    size_t taken = atomic_load(&server->spare_taken), back;

    if (!server->opts.pool)
        return;
    do
        back = bytes < taken ? bytes : taken;
    while (back && !atomic_compare_exchange_weak(&server->spare_taken, &taken, taken - back));
    kiln_pool_give(server->opts.pool, bytes - back);
}

static size_t next_cap(const struct kiln_buf *buf, size_t need, size_t hint)
{
    size_t cap = buf->cap ? buf->cap * 2 : hint < BODY_AT_ONCE ? hint : BODY_AT_ONCE;

    if (cap > hint && hint >= need)
        cap = hint;
    if (cap > buf->max)
        cap = buf->max;
    return cap < need ? need : cap;
}

static int grow(struct kiln_server *server, struct kiln_buf *buf, size_t more, size_t hint,
                bool is_body)
{
    size_t cap, bytes;
    char *grown;

    if (more <= buf->cap - buf->len)
        return 0;
    if (more > buf->max - buf->len)
        return KILN_E_LIMIT;
    cap = next_cap(buf, buf->len + more, hint);
    bytes = cap - buf->cap;
    if (kiln_net_take(server, bytes, !is_body && cap <= KILN_NET_SMALL) < 0) {
        /* What has been read must go somewhere; there is no more of it until there is room. */
        if (!is_body || !server->opts.waits)
            return -ENOBUFS;
        cap = buf->len + more;
        bytes = cap - buf->cap;
        if (kiln_net_take(server, bytes, true) < 0)
            return -ENOBUFS;
    }
    grown = kiln_realloc(buf->ptr, cap);
    if (!grown) {
        kiln_net_give(server, bytes);
        return -ENOMEM;
    }
    buf->ptr = grown;
    buf->cap = cap;
    return 0;
}

int kiln_net_grow(struct kiln_server *server, struct kiln_buf *buf, size_t more)
{
    return grow(server, buf, more, GROW_FIRST, false);
}

int kiln_net_add(struct kiln_server *server, struct kiln_buf *buf, struct kiln_str data)
{
    int r = kiln_net_grow(server, buf, data.len);

    if (r == 0)
        kiln_buf_add_str(buf, data);
    return r;
}

void kiln_net_done(struct kiln_server *server, struct kiln_buf *buf)
{
    if (!buf->ptr)
        return;
    kiln_net_give(server, buf->cap);
    kiln_buf_done(buf);
}

/* ---- making one ---- */

/* Absolute targets ("http://host/path") lose what stands before the path. */
static struct kiln_str origin_form(struct kiln_str target)
{
    struct kiln_str rest = target;

    if (target.len && target.ptr[0] == '/')
        return target;
    if (kiln_str_starts(target, KILN_STR("http://")))
        rest.ptr += 7, rest.len -= 7;
    else if (kiln_str_starts(target, KILN_STR("https://")))
        rest.ptr += 8, rest.len -= 8;
    else
        return target;
    kiln_str_cut(&rest, '/');
    if (!rest.ptr)
        return KILN_STR("/");
    return (struct kiln_str){rest.ptr - 1, rest.len + 1};
}

static struct kiln_str copy_str(char **at, struct kiln_str s)
{
    struct kiln_str mine = {*at, s.len};

    if (s.len)
        memcpy(*at, s.ptr, s.len);
    *at += s.len;
    return mine;
}

static size_t head_bytes(const struct kiln_http_head *head, struct kiln_str target)
{
    size_t n = head->method.len + 2 * target.len;

    for (uint32_t i = 0; i < head->n_headers; i++)
        n += head->headers[i].name.len + head->headers[i].value.len;
    return n;
}

/* Cuts the target into path and query; the path is decoded in place, at the end of the block. */
static int set_target(struct kiln_exchange *x, struct kiln_str target, char *room)
{
    struct kiln_buf path = {.ptr = room, .cap = target.len, .max = target.len};
    struct kiln_str raw = kiln_str_cut(&target, '?');

    if (kiln_percent_decode(raw, false, &path) < 0 || memchr(room, 0, path.len))
        return KILN_E_MALFORMED;
    x->request.path = kiln_buf_str(&path);
    x->request.query = target.ptr ? target : KILN_STR("");
    return 0;
}

static int fill(struct kiln_exchange *x, const struct kiln_http_head *head, struct kiln_str target)
{
    struct kiln_header *headers = (struct kiln_header *)(x + 1);
    char *at = (char *)(headers + head->n_headers);

    x->request.method = copy_str(&at, head->method);
    x->request.headers = headers;
    x->request.n_headers = head->n_headers;
    for (uint32_t i = 0; i < head->n_headers; i++) {
        headers[i].name = copy_str(&at, head->headers[i].name);
        headers[i].value = copy_str(&at, head->headers[i].value);
    }
    target = copy_str(&at, target);
    return set_target(x, target, at);
}

int kiln_exchange_new(struct kiln_conn *conn, const struct kiln_http_head *head,
                      struct kiln_exchange **ret_x)
{
    struct kiln_server *server = conn->loop->server;
    struct kiln_router *instead = atomic_load_explicit(&server->instead, memory_order_acquire);
    struct kiln_str target = origin_form(head->target);
    size_t size = sizeof(struct kiln_exchange) + head->n_headers * sizeof(struct kiln_header) +
                  head_bytes(head, target) + 1;
    struct kiln_exchange *x;

    if (kiln_net_take(server, size, size <= KILN_NET_SMALL) < 0)
        return KILN_E_LIMIT;
    x = kiln_malloc(size);
    if (!x) {
        kiln_net_give(server, size);
        return -ENOMEM;
    }
    *x = (struct kiln_exchange){.server = server,
                                .loop = conn->loop,
                                .conn = conn,
                                .router = instead ? instead : conn->listener->router,
                                .charged = size,
                                .started_ms = conn->loop->now_ms,
                                .progress_ms = conn->loop->now_ms};
    atomic_fetch_add(&server->refs, 1);
    x->request.peer = conn->peer;
    x->request.http_version = conn->protocol == KILN_CONN_HTTP2 ? 2 : 1;
    x->head_only = kiln_str_eq(head->method, KILN_STR("HEAD"));
    if (fill(x, head, target) < 0) {
        kiln_exchange_free(x);
        return KILN_E_MALFORMED;
    }
    *ret_x = x;
    return 0;
}

void kiln_exchange_free(struct kiln_exchange *x)
{
    struct kiln_server *server = x->server;

    kiln_response_free(server, x->answer);
    kiln_net_done(server, &x->body);
    kiln_net_give(server, x->charged);
    kiln_free(x);
    kiln_server_unref(server);
}

void kiln_exchange_abandon(struct kiln_exchange *x)
{
    x->conn = NULL;
    atomic_store_explicit(&x->gone, true, memory_order_relaxed);
    if (x->stage != KILN_STAGE_HANDLED)
        kiln_exchange_free(x);
}

/* ---- refusals ---- */

struct kiln_response *kiln_exchange_refusal(struct kiln_exchange *x, const struct kiln_reply *reply)
{
    struct kiln_reply mine = *reply;
    struct kiln_response *refusal;
    struct kiln_buf scratch;

    kiln_buf_init(&scratch, 64 << 10);
    if (x->router->translate)
        x->router->translate(&x->request, &mine, &scratch);
    refusal = kiln_response_new(x->server, x, &mine);
    kiln_buf_done(&scratch);
    return refusal;
}

void kiln_exchange_refuse(struct kiln_exchange *x, const struct kiln_reply *reply)
{
    x->answer = kiln_exchange_refusal(x, reply);
    x->stage = KILN_STAGE_ANSWERED;
    x->discard = !x->body_done;
    kiln_net_done(x->server, &x->body);
}

void kiln_exchange_refuse_text(struct kiln_exchange *x, int status, const char *reason,
                               const char *text)
{
    struct kiln_reply reply = {
        .status = status, .content_type = "text/plain; charset=utf-8", .body = kiln_str_of(text)};

    kiln_server_refused(x->server, reason);
    if (status == 503)
        reply.headers[reply.n_headers++] =
            (struct kiln_header){KILN_STR("retry-after"), KILN_STR("1")};
    else if (status == 415)
        reply.headers[reply.n_headers++] =
            (struct kiln_header){KILN_STR("accept-encoding"), KILN_STR("gzip, zstd")};
    kiln_exchange_refuse(x, &reply);
}

void kiln_exchange_refuse_late(struct kiln_exchange *x)
{
    if (x->held_back || kiln_net_is_short(x->server))
        kiln_exchange_refuse_text(x, 503, "memory", "no memory for this body now, try again\n");
    else
        kiln_exchange_refuse_text(x, 408, "timeout", "the body took too long\n");
}

static void refuse_route(struct kiln_exchange *x, int status)
{
    struct kiln_reply reply = {.status = status, .content_type = "text/plain; charset=utf-8"};
    struct kiln_buf allow;

    if (status == 404) {
        kiln_exchange_refuse_text(x, 404, "not_found", "there is nothing at this path\n");
        return;
    }
    kiln_server_refused(x->server, "method");
    kiln_buf_init(&allow, 1024);
    kiln_router_allow(x->router, x->request.path, &allow);
    reply.body = KILN_STR("this path does not take this method\n");
    reply.headers[reply.n_headers++] =
        (struct kiln_header){KILN_STR("allow"), kiln_buf_str(&allow)};
    kiln_exchange_refuse(x, &reply);
    kiln_buf_done(&allow);
}

static void refuse_size(struct kiln_exchange *x)
{
    char text[96];

    snprintf(text, sizeof(text), "the body has more than %zu bytes, the limit of this path\n",
             x->body_max);
    kiln_exchange_refuse_text(x, 413, "too_large", text);
}

/* ---- the way to a handler ---- */

static bool read_encoding(struct kiln_exchange *x)
{
    struct kiln_str value = kiln_request_header(&x->request, "content-encoding");

    if (value.len == 0 || kiln_str_eq(value, KILN_STR("identity")))
        x->request.encoding = KILN_PLAIN;
    else if (kiln_str_eq(value, KILN_STR("gzip")) || kiln_str_eq(value, KILN_STR("x-gzip")))
        x->request.encoding = KILN_GZIP;
    else if (kiln_str_eq(value, KILN_STR("zstd")))
        x->request.encoding = KILN_ZSTD;
    else
        return false;
    return true;
}

bool kiln_exchange_ask(struct kiln_exchange *x, bool late, struct kiln_reply *ret_reply)
{
    const struct kiln_guard *guard = &x->router->guard;
    int r;

    *ret_reply = (struct kiln_reply){0};
    if (!guard->check)
        return true;
    r = (late ? guard->late : guard->check)(guard->context, &x->request, x->route->access,
                                            ret_reply);
    x->unsure = r == KILN_GUARD_LATER && guard->late && !late;
    if (r == 0 || x->unsure)
        return true;
    kiln_server_refused(x->server, "guard");
    if (ret_reply->status == 0)
        ret_reply->status = 403;
    return false;
}

/* Of two credentials, or two tenants, another party on the way may check the one we do not. */
static bool is_ambiguous(const struct kiln_request *request)
{
    uint32_t credentials = 0, tenants = 0;

    for (uint32_t i = 0; i < request->n_headers; i++) {
        credentials += kiln_str_eq(request->headers[i].name, KILN_STR("authorization"));
        tenants += kiln_str_eq(request->headers[i].name, KILN_STR("x-scope-orgid"));
    }
    return credentials > 1 || tenants > 1;
}

/* Where senders wait for memory, none waits for more than there is in all. */
static size_t largest_body(const struct kiln_exchange *x)
{
    const struct kiln_server_opts *opts = &x->server->opts;
    size_t most = x->route->body_max ? x->route->body_max : opts->body_max;

    return opts->waits && opts->pool && opts->pool->limit < most ? opts->pool->limit : most;
}

bool kiln_exchange_admit(struct kiln_exchange *x, const struct kiln_http_head *head,
                         bool *ret_early)
{
    struct kiln_reply reply;
    int status = 404;

    x->route =
        kiln_router_find(x->router, x->request.method, x->request.path, &x->request.rest, &status);
    if (!x->route) {
        refuse_route(x, status);
        return false;
    }
    if (is_ambiguous(&x->request)) {
        kiln_exchange_refuse_text(x, 400, "malformed",
                                  "Authorization and X-Scope-OrgID may be sent only once\n");
        return false;
    }
    x->request.context = x->route->context;
    *ret_early = x->route == &x->router->fallback;
    if (*ret_early)
        return false;
    if (!kiln_exchange_ask(x, false, &reply)) {
        kiln_exchange_refuse(x, &reply);
        return false;
    }
    x->body_max = largest_body(x);
    x->body_expected = head->length;
    kiln_buf_init(&x->body, x->body_max);
    if (head->length > x->body_max) {
        refuse_size(x);
        return false;
    }
    if (!read_encoding(x)) {
        kiln_exchange_refuse_text(x, 415, "encoding", "bodies may be plain, gzip or zstd\n");
        return false;
    }
    return true;
}

bool kiln_exchange_body(struct kiln_exchange *x, struct kiln_str piece)
{
    int r = grow(x->server, &x->body, piece.len, (size_t)x->body_expected, true);

    x->progress_ms = x->loop->now_ms;
    x->held_back = false;
    if (r == 0) {
        kiln_buf_add_str(&x->body, piece);
        return true;
    }
    if (r == KILN_E_LIMIT)
        refuse_size(x);
    else
        kiln_exchange_refuse_text(x, 503, "memory", "no memory for this body now, try again\n");
    return false;
}

bool kiln_exchange_ready(struct kiln_exchange *x)
{
    enum kiln_lane lane = x->unsure ? KILN_LANE_LONG : x->route->lane;

    x->body_done = !x->discard;
    x->request.body = kiln_buf_str(&x->body);
    x->request.received_ns = kiln_clock_unix_ns();
    x->stage = KILN_STAGE_HANDLED;
    if (!x->unsure && x->route->at_once && x->request.body.len <= KILN_AT_ONCE_BYTES &&
        x->route->at_once(&x->request))
        return true;
    if (kiln_crew_give(&x->server->crews[lane], x))
        return true;
    kiln_exchange_refuse_text(x, 503, lane == KILN_LANE_LONG ? "long_queue" : "queue",
                              "too many requests wait, try again\n");
    return false;
}

/* ---- what handlers ask ---- */

struct kiln_str kiln_request_header(const struct kiln_request *request, const char *name)
{
    struct kiln_str wanted = kiln_str_of(name);

    for (uint32_t i = 0; i < request->n_headers; i++)
        if (kiln_str_eq(request->headers[i].name, wanted))
            return request->headers[i].value;
    return KILN_STR_NONE;
}

int kiln_request_param(const struct kiln_request *request, const char *name, struct kiln_buf *ret)
{
    struct kiln_params params;
    int r;

    kiln_params_init(&params, request->query);
    while ((r = kiln_params_next(&params)) > 0 && !kiln_str_eq(params.name, kiln_str_of(name)))
        ;
    if (r > 0) {
        kiln_buf_add_str(ret, params.value);
        r = ret->error ? ret->error : 1;
    }
    kiln_params_done(&params);
    return r;
}

void kiln_request_watch(struct kiln_request *request)
{
    struct kiln_exchange *x = (struct kiln_exchange *)request;

    atomic_store_explicit(&x->watched, true, memory_order_relaxed);
}

const _Atomic bool *kiln_request_gone(const struct kiln_request *request)
{
    return &((const struct kiln_exchange *)request)->gone;
}
