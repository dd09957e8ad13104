/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call is pending until there is a connection to make it on, active until its stream is closed,
 * and ended until somebody who holds no lock has told its owner.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "net/h2client_int.h"

#define TIMEOUT_MS 10000u
#define ANSWER_MAX ((size_t)4 << 20)
#define REST_MAX   ((size_t)1 << 30)

/* ---- lists ---- */

void kiln_h2_put(struct kiln_h2call *call, struct kiln_h2call ***last)
{
    call->next = NULL;
    call->at = *last;
    **last = call;
    *last = &call->next;
}

void kiln_h2_take(struct kiln_h2client *client, struct kiln_h2call *call)
{
    *call->at = call->next;
    if (call->next)
        call->next->at = call->at;
    else if (client->last_pending == &call->next)
        client->last_pending = call->at;
    else if (client->last_active == &call->next)
        client->last_active = call->at;
}

void kiln_h2_postpone(struct kiln_h2client *client, struct kiln_h2call *call)
{
    call->stream = 0;
    kiln_h2_take(client, call);
    kiln_h2_put(call, &client->last_pending);
}

void kiln_h2_end(struct kiln_h2client *client, struct kiln_h2call *call, int code, const char *why)
{
    call->code = code;
    if (why)
        kiln_err_set(&call->err, code, client->server, "%s", why);
    kiln_h2_take(client, call);
    kiln_h2_put(call, &client->last_ended);
}

/* Takes the lock's place: tells those whose calls have ended, without it, and frees them. */
static void tell_ended(struct kiln_h2client *client)
{
    struct kiln_h2call *call = client->ended;

    client->ended = NULL;
    client->last_ended = &client->ended;
    pthread_mutex_unlock(&client->lock);
    while (call) {
        struct kiln_h2call *next = call->next;

        call->ended(call->context, call->code, &call->answer, &call->err);
        kiln_collected_done(&call->collected);
        kiln_answer_done(&call->answer);
        kiln_free(call);
        call = next;
    }
}

static void signal_to(int fd)
{
    uint64_t one = 1;

    (void)!write(fd, &one, sizeof(one));
}

/* ---- the thread ---- */

static bool is_open(const struct kiln_h2client *client)
{
    return client->session && !client->draining && !client->broken;
}

/* Under the lock: makes a pending call on the connection. */
static void make_call(struct kiln_h2client *client, struct kiln_h2call *call)
{
    int r;

    client->was_busy = true;
    kiln_h2_take(client, call);
    kiln_h2_put(call, &client->last_active);
    r = kiln_h2_submit(client, call);
    if (r == -EADDRNOTAVAIL) { /* all numbers of streams were used: the next connection has more */
        client->draining = true;
        kiln_h2_postpone(client, call);
        signal_to(client->wake_fd);
    } else if (r < 0) {
        kiln_h2_end(client, call, r, kiln_err_text(r));
    }
}

static void say_why(struct kiln_h2client *client, int code, char *why, size_t size)
{
    char last;

    if (client->wire.ssl && code != -ECANCELED) /* perhaps writing failed before it was read */
        (void)!kiln_h2wire_read(&client->wire, &last, sizeof(last));
    if (client->wire.alert)
        snprintf(why, size, "TLS: %s", client->wire.alert);
    else
        snprintf(why, size, "%s",
                 code == -ECANCELED ? "the call was given up" : kiln_err_text(code));
}

static void close_connection(struct kiln_h2client *client, int code)
{
    char why[128];

    say_why(client, code, why, sizeof(why));
    while (client->active) {
        nghttp2_session_set_stream_user_data(client->session, client->active->stream, NULL);
        kiln_h2_end(client, client->active, code, why);
    }
    nghttp2_session_del(client->session);
    client->session = NULL;
    kiln_h2wire_close(&client->wire);
    kiln_buf_clear(&client->rest);
    client->n_pieces = 0;
    client->heads_used = 0;
    client->draining = false;
    client->broken = 0;
}

static void fail_pending(struct kiln_h2client *client, int code, const struct kiln_err *err)
{
    while (client->pending) {
        struct kiln_h2call *call = client->pending;

        call->err = *err;
        kiln_h2_end(client, call, code, NULL);
    }
}

/* Each connection has the certificates that the files hold by then; without them, the last good. */
static void renew_context(struct kiln_h2client *client)
{
    SSL_CTX *ctx = NULL;

    if (!client->address.tls || kiln_h2wire_context(&client->opts, &ctx, NULL) < 0)
        return;
    SSL_CTX_free(client->ctx);
    client->ctx = ctx;
}

/* Under the lock, which it lets go of meanwhile: what it uses is the thread's alone. */
static void open_connection(struct kiln_h2client *client)
{
    uint64_t deadline = client->pending->deadline_ns;
    struct kiln_h2wire wire = {.fd = -1};
    struct kiln_err err = {0};
    int r;

    pthread_mutex_unlock(&client->lock);
    renew_context(client);
    r = kiln_h2wire_open(&client->address, client->opts.server_name, client->ctx, deadline,
                         client->cancel_fd, &wire, &err);
    pthread_mutex_lock(&client->lock);
    if (r == 0) {
        client->wire = wire;
        r = kiln_h2_session_new(client);
        if (r < 0)
            close_connection(client, r);
    }
    if (r < 0) {
        kiln_err_set(&err, r, client->server, "%s", kiln_err_text(r));
        fail_pending(client, r, &err);
    }
}

/* Nothing came since the call began: whoever was there is gone, and nobody told us. */
static bool is_silent(const struct kiln_h2client *client, const struct kiln_h2call *call)
{
    return client->received_ns + client->timeout_ms * KILN_NS_PER_MS < call->deadline_ns;
}

/*
 * A socket that takes nothing for so long is of no use, and frames of the call may wait before it;
 * else nothing of the call is on its way out, and it can be forgotten.
 */
static void expire(struct kiln_h2client *client, struct kiln_h2call *first, uint64_t now)
{
    char why[64];

    if (first && first->deadline_ns <= now && first->stream && client->rest.len) {
        client->broken = -ETIMEDOUT;
        return;
    }
    snprintf(why, sizeof(why), "no answer within %g s", client->timeout_ms / 1000.0);
    while (first && first->deadline_ns <= now) {
        struct kiln_h2call *next = first->next;

        if (first->stream && client->session) {
            if (is_silent(client, first))
                client->broken = -ETIMEDOUT;
            nghttp2_session_set_stream_user_data(client->session, first->stream, NULL);
            nghttp2_submit_rst_stream(client->session, NGHTTP2_FLAG_NONE, first->stream,
                                      NGHTTP2_CANCEL);
        }
        kiln_h2_end(client, first, -ETIMEDOUT, why);
        first = next;
    }
}

/* ---- whether the server is there ---- */

/* When it is to be asked, or to be given up; UINT64_MAX: neither. */
static uint64_t ping_due(const struct kiln_h2client *client)
{
    const struct kiln_h2client_opts *opts = &client->opts;
    uint64_t last = client->received_ns ? client->received_ns : client->opened_ns;

    if (!client->session || !opts->ping_after_ms)
        return UINT64_MAX;
    if (client->pinged_ns)
        return client->pinged_ns + opts->ping_timeout_ms * KILN_NS_PER_MS;
    return client->active || opts->pings_idle ? last + opts->ping_after_ms * KILN_NS_PER_MS
                                              : UINT64_MAX;
}

static void keep_alive(struct kiln_h2client *client, uint64_t now)
{
    if (client->broken || ping_due(client) > now)
        return;
    if (client->pinged_ns) {
        client->broken = -ETIMEDOUT;
        return;
    }
    client->pinged_ns = now;
    if (nghttp2_submit_ping(client->session, NGHTTP2_FLAG_NONE, NULL) != 0)
        client->broken = -ENOMEM;
}

/* The next time-out in milliseconds; -1: there is none. */
static int next_timeout(const struct kiln_h2client *client, uint64_t now)
{
    uint64_t first = client->active ? client->active->deadline_ns : UINT64_MAX;
    uint64_t ping = ping_due(client);

    if (client->pending && client->pending->deadline_ns < first)
        first = client->pending->deadline_ns;
    first = ping < first ? ping : first;
    if (first == UINT64_MAX)
        return -1;
    return first <= now ? 0 : (int)((first - now) / KILN_NS_PER_MS) + 1;
}

/* Under the lock, which it lets go of while it waits. */
static short wait_for_events(struct kiln_h2client *client)
{
    int timeout = next_timeout(client, kiln_clock_mono_ns());
    bool rests = timeout < 0 && !client->was_busy;
    struct pollfd fds[2] = {
        {.fd = client->wake_fd, .events = POLLIN},
        {.fd = client->wire.fd, .events = (short)(POLLIN | (client->rest.len ? POLLOUT : 0))}};
    uint64_t woken;

    /* Calls that begin while it rests wake it, for their time-out; but not between two calls. */
    if (timeout < 0 && client->was_busy)
        timeout = (int)client->timeout_ms / 2;
    client->was_busy = false;
    client->asleep = rests;
    pthread_mutex_unlock(&client->lock);
    (void)!poll(fds, 2, timeout);
    if (fds[0].revents)
        (void)!read(client->wake_fd, &woken, sizeof(woken));
    pthread_mutex_lock(&client->lock);
    client->asleep = false;
    return fds[1].revents;
}

static void work(struct kiln_h2client *client, short events)
{
    uint64_t now = kiln_clock_mono_ns();

    if (client->session && (events & (POLLIN | POLLHUP | POLLERR)))
        kiln_h2_receive(client);
    expire(client, client->active, now);
    expire(client, client->pending, now);
    keep_alive(client, now);
    if (client->cancelled && client->session)
        client->broken = -ECANCELED;
    if (client->session && !client->broken)
        kiln_h2_flush(client);
    if (client->session && client->draining && !client->active)
        client->broken = -ECONNRESET;
    if (client->session && client->broken)
        close_connection(client, client->broken);
    if (client->cancelled) {
        struct kiln_err err = {0};

        kiln_err_set(&err, -ECANCELED, client->server, "the call was given up");
        fail_pending(client, -ECANCELED, &err);
    }
    if (!client->session && client->pending)
        open_connection(client);
    while (is_open(client) && client->pending)
        make_call(client, client->pending);
    if (is_open(client))
        kiln_h2_flush(client);
}

static void *run(void *context)
{
    struct kiln_h2client *client = context;

    pthread_mutex_lock(&client->lock);
    while (!client->end) {
        short events = wait_for_events(client);

        work(client, events);
        tell_ended(client);
        pthread_mutex_lock(&client->lock);
    }
    pthread_mutex_unlock(&client->lock);
    return NULL;
}

/* ---- starting ---- */

/* Under the lock: nobody who only reads a configuration needs it. */
static bool has_thread(struct kiln_h2client *client)
{
    if (!client->started)
        client->started = kiln_thread_start("kiln-h2", run, client, &client->thread) == 0;
    return client->started;
}

static struct kiln_h2call *new_call(struct kiln_h2client *client, const struct kiln_call *request)
{
    struct kiln_h2call *call = kiln_calloc(1, sizeof(*call));

    if (!call)
        return NULL;
    call->request = request;
    call->deadline_ns = kiln_clock_mono_ns() + client->timeout_ms * KILN_NS_PER_MS;
    kiln_answer_init(&call->answer);
    kiln_collected_init(&call->collected, &call->answer, client->server, client->answer_max);
    return call;
}

void kiln_h2client_start(struct kiln_h2client *client, const struct kiln_call *request,
                         void (*ended)(void *context, int code, const struct kiln_answer *answer,
                                       const struct kiln_err *err),
                         void *context)
{
    struct kiln_h2call *call = request->body.len < UINT32_MAX ? new_call(client, request) : NULL;
    bool must_wake;

    if (!call) {
        struct kiln_err err = {0};

        kiln_err_set(&err, -ENOMEM, client->server, "there is no memory for the request");
        ended(context, -ENOMEM, NULL, &err);
        return;
    }
    call->ended = ended;
    call->context = context;
    pthread_mutex_lock(&client->lock);
    kiln_h2_put(call, &client->last_pending);
    if (client->cancelled)
        kiln_h2_end(client, call, -ECANCELED, "the call was given up");
    else if (!has_thread(client))
        kiln_h2_end(client, call, -EAGAIN, "no thread could be started");
    else if (is_open(client))
        make_call(client, call);
    if (is_open(client))
        kiln_h2_flush(client);
    must_wake = client->asleep || client->pending || client->rest.len || client->broken;
    tell_ended(client);
    if (must_wake)
        signal_to(client->wake_fd);
}

/* ---- made and ended ---- */

static char *copy_of(const char *text, int *r)
{
    size_t n = text ? strlen(text) + 1 : 0;
    char *copy = text ? kiln_malloc(n) : NULL;

    if (text && !copy)
        *r = -ENOMEM;
    return copy ? memcpy(copy, text, n) : NULL;
}

static void destroy(struct kiln_h2client *client)
{
    if (client->session)
        close_connection(client, -ECANCELED);
    SSL_CTX_free(client->ctx);
    if (client->wake_fd >= 0)
        close(client->wake_fd);
    if (client->cancel_fd >= 0)
        close(client->cancel_fd);
    kiln_buf_done(&client->rest);
    kiln_free(client->server);
    pthread_mutex_destroy(&client->lock);
    kiln_free(client);
}

/* Whose name is asked for, and is to be in the certificate unless that has one of its own. */
static int name_authority(struct kiln_h2client *client, const char *authority, struct kiln_err *err)
{
    struct kiln_h2address named;
    int r = strlen(authority) < sizeof(named.authority)
                ? kiln_h2address_parse(authority, &named, NULL)
                : -EINVAL;

    if (r < 0)
        return kiln_err_set(err, -EINVAL, authority, "this is no authority (say host:port)");
    memcpy(client->address.authority, named.authority, sizeof(named.authority));
    memcpy(client->certified, named.host, sizeof(named.host));
    if (!client->opts.server_name)
        client->opts.server_name = client->certified;
    return 0;
}

static int prepare(struct kiln_h2client *client, const struct kiln_h2client_opts *opts,
                   struct kiln_err *err)
{
    int r = 0;

    client->opts = *opts;
    client->server = copy_of(opts->server, &r);
    client->timeout_ms = opts->timeout_ms ? opts->timeout_ms : TIMEOUT_MS;
    client->answer_max = opts->answer_max ? opts->answer_max : ANSWER_MAX;
    snprintf(client->timeout_text, sizeof(client->timeout_text), "%um", client->timeout_ms);
    client->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    client->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (r == 0 && (client->wake_fd < 0 || client->cancel_fd < 0))
        r = -errno;
    if (r == 0)
        r = kiln_h2address_parse(opts->server, &client->address, err);
    if (r == 0 && opts->authority)
        r = name_authority(client, opts->authority, err);
    if (r == 0 && client->address.tls)
        r = kiln_h2wire_context(opts, &client->ctx, err);
    return r;
}

int kiln_h2client_new(const struct kiln_h2client_opts *opts, struct kiln_h2client **ret_client,
                      struct kiln_err *err)
{
    struct kiln_h2client *client = kiln_calloc(1, sizeof(*client));
    int r;

    if (!client)
        return kiln_err_set(err, -ENOMEM, NULL, "out of memory");
    pthread_mutex_init(&client->lock, NULL);
    kiln_buf_init(&client->rest, REST_MAX);
    client->last_pending = &client->pending;
    client->last_active = &client->active;
    client->last_ended = &client->ended;
    client->wire.fd = client->wake_fd = client->cancel_fd = -1;
    r = prepare(client, opts, err);
    if (r < 0) {
        destroy(client);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    *ret_client = client;
    return 0;
}

void kiln_h2client_cancel(struct kiln_h2client *client)
{
    pthread_mutex_lock(&client->lock);
    client->cancelled = true;
    pthread_mutex_unlock(&client->lock);
    signal_to(client->cancel_fd);
    signal_to(client->wake_fd);
}

void kiln_h2client_free(struct kiln_h2client *client)
{
    if (!client)
        return;
    pthread_mutex_lock(&client->lock);
    client->end = true;
    pthread_mutex_unlock(&client->lock);
    signal_to(client->wake_fd);
    if (client->started)
        pthread_join(client->thread, NULL);
    destroy(client);
}
