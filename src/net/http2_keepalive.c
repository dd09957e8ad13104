/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a connection of HTTP/2 lives, by the rules of grpc-go, which its clients know: it ends
 * when it rests too long and when it is too old; who is silent is asked, by a ping, whether he is
 * still there; who pings too often is told so in the words that make grpc's clients ping less.
 */
#include "base/hash.h"
#include "net/http2_int.h"

#define STRIKES_MAX     2u
#define PING_RESTING_MS (2 * 60 * 60 * 1000u) /* who has no stream and may not ping without */

static uint64_t later(uint64_t from, uint64_t span)
{
    return span < KILN_NEVER - from ? from + span : KILN_NEVER;
}

static const struct kiln_keepalive *rules(const struct kiln_conn *conn)
{
    return &conn->listener->keepalive;
}

/* Connections that were opened together shall not end together. */
static uint64_t draw_age(const struct kiln_conn *conn)
{
    uint64_t age = rules(conn)->age_ms, tenth = age / 10;

    if (age == 0 || age == KILN_NEVER)
        return KILN_NEVER;
    return age - tenth + kiln_hash_mix((uintptr_t)conn, conn->loop->now_ms) % (2 * tenth + 1);
}

void kiln_http2_live(struct kiln_conn *conn)
{
    struct kiln_http2_life *life = &conn->h2->life;

    life->heard_ms = conn->loop->now_ms;
    life->old_ms = later(conn->loop->now_ms, draw_age(conn));
    kiln_conn_arm(conn, life->old_ms);
    kiln_conn_arm(conn, kiln_http2_rest_deadline(conn));
    if (rules(conn)->ping_after_ms)
        kiln_conn_arm(conn, later(life->heard_ms, rules(conn)->ping_after_ms));
}

void kiln_http2_heard(struct kiln_conn *conn)
{
    struct kiln_http2_life *life = &conn->h2->life;

    life->heard_ms = conn->loop->now_ms;
    if (life->asked) /* the timer is set for who does not answer */
        kiln_conn_arm(conn, later(life->heard_ms, rules(conn)->ping_after_ms));
    life->asked = false;
}

/* ---- pings of the client ---- */

static bool is_too_soon(const struct kiln_conn *conn)
{
    const struct kiln_http2_life *life = &conn->h2->life;
    bool may = conn->h2->n_streams || rules(conn)->ping_resting;
    uint64_t apart = may ? rules(conn)->ping_min_ms : PING_RESTING_MS;

    return life->pinged && conn->loop->now_ms < later(life->pinged_ms, apart);
}

bool kiln_http2_may_ping(struct kiln_conn *conn)
{
    struct kiln_http2 *h2 = conn->h2;
    struct kiln_http2_life *life = &h2->life;

    if (!rules(conn)->ping_min_ms || h2->goaway)
        return false;
    if (life->answered)
        life->strikes = 0;
    else if (is_too_soon(conn))
        life->strikes++;
    life->answered = false;
    life->pinged = true;
    life->pinged_ms = conn->loop->now_ms;
    if (life->strikes <= STRIKES_MAX)
        return true;
    kiln_server_refused(conn->loop->server, "pings");
    kiln_http2_end(conn, NGHTTP2_ENHANCE_YOUR_CALM, KILN_STR("too_many_pings"));
    return true;
}

/* ---- deadlines ---- */

uint64_t kiln_http2_rest_deadline(const struct kiln_conn *conn)
{
    uint64_t span = rules(conn)->idle_ms;

    return later(conn->idle_ms, span ? span : conn->loop->server->opts.idle_timeout_ms);
}

static uint64_t age_deadline(struct kiln_conn *conn, uint64_t now_ms)
{
    const struct kiln_http2_life *life = &conn->h2->life;
    uint64_t grace = rules(conn)->grace_ms;
    uint64_t end_ms = grace ? later(life->old_ms, grace) : KILN_NEVER;

    if (now_ms < life->old_ms)
        return life->old_ms;
    if (now_ms >= end_ms)
        kiln_conn_kill(conn);
    else if (!conn->h2->goaway)
        kiln_http2_end(conn, NGHTTP2_NO_ERROR, KILN_STR("max_age"));
    return end_ms;
}

/* We hear nothing where we do not listen. */
static bool listens(const struct kiln_conn *conn)
{
    return !conn->paused && !event_pending(&conn->on_relief, EV_TIMEOUT, NULL);
}

static uint64_t silence_deadline(struct kiln_conn *conn, uint64_t now_ms)
{
    const struct kiln_keepalive *keep = rules(conn);
    struct kiln_http2_life *life = &conn->h2->life;

    if (!keep->ping_after_ms)
        return KILN_NEVER;
    if (!listens(conn))
        kiln_http2_heard(conn);
    if (life->asked && now_ms >= later(life->asked_ms, keep->ping_timeout_ms)) {
        kiln_server_refused(conn->loop->server, "silence");
        kiln_conn_kill(conn);
        return KILN_NEVER;
    }
    if (!life->asked && now_ms < later(life->heard_ms, keep->ping_after_ms))
        return later(life->heard_ms, keep->ping_after_ms);
    if (!life->asked) {
        nghttp2_submit_ping(conn->h2->session, 0, NULL);
        kiln_http2_dirty(conn);
        life->asked = true;
        life->asked_ms = now_ms;
    }
    return later(life->asked_ms, keep->ping_timeout_ms);
}

uint64_t kiln_http2_life_deadline(struct kiln_conn *conn, uint64_t now_ms)
{
    uint64_t age = age_deadline(conn, now_ms);
    uint64_t silence = conn->dead ? KILN_NEVER : silence_deadline(conn, now_ms);

    return age < silence ? age : silence;
}
