/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate - who may come in, as which tenant, and how much they may bring.
 *
 * Tokens stand in a file, YAML (or JSON, which is YAML): a list, or a map with the one key
 * `tokens` that holds the list.
 *
 *   - name: ci               # for logs
 *     token: 3f0c...         # as clients send it: "Authorization: Bearer 3f0c...", or as the
 *                            # password of basic authentication
 *     tenant: shop           # whose data; "*" (or left out): any
 *     access: write          # read, write, control (tell agents what to do), admin (everything)
 *   - name: page
 *     sha256: 9b71...        # instead of the token: 64 digits of its SHA-256
 *     access: [read, write]
 *
 * The file is looked at again when it changes.  A file that cannot be read any more leaves the
 * tokens as they were, and says so in the log.
 *
 * Tenants: with `tenants` on, X-Scope-OrgID names one (at most 150 of [A-Za-z0-9!-_.*'()], neither
 * "." nor ".."), and a request without it is refused; otherwise the header means nothing and
 * everything is of the tenant "anonymous".  A token of one tenant stands for that tenant; a header
 * that says another is refused.  What only reads may name up to 16 at once, "a|b"; handlers see
 * them in order, each once.
 *
 * People who sit before the page sign in with their token once and get a session, which the cookie
 * kiln_session names: random, kept in memory alone, over after twelve hours, when the token is
 * taken out of the file, or when they sign out.  It may do what its token may; changes only where
 * our own page asks for them (X-Kiln-Page: 1, and no word of the browser that says otherwise).  A
 * request with an Authorization header is judged by that alone.
 *
 * Peers on a Unix socket that are root or of our own user may do everything.  Without a file of
 * tokens everybody may: kiln_gate_check_listen() keeps that to loopback, and only known host names
 * are accepted (net/origin.h).  Pages of other sites may do nothing.
 *
 * A source of many wrong tokens is refused with 429 for a while, unless the token was accepted
 * from the same address before (gate_throttle.c).
 *
 * Refusals are counted: kiln_refused_total{reason}.
 *
 * Threads: set up by one; check and charge from anywhere.
 */
#ifndef KILN_PIPELINE_GATE_H
#define KILN_PIPELINE_GATE_H

#include "base/log.h"
#include "net/server.h"
#include "pipeline/audit.h"

struct kiln_gate;

/* Of each tenant. */
struct kiln_gate_limits {
    uint64_t bytes_per_s; /* of bodies as received; 0: no limit */
    uint64_t burst_bytes; /* 0: what five seconds bring, but not below body_max */
    size_t body_max;      /* as received; 0: the server's */
};

struct kiln_gate_opts {
    const char *tokens_file;     /* NULL: everybody may do everything */
    uint32_t reload_interval_ms; /* how often it is looked at; 0: 5,000 */
    bool tenants;                /* X-Scope-OrgID counts */
    /* Without tokens: accepted host names (borrowed), and whether programs may write under any. */
    const char *const *host_names;
    uint32_t n_host_names;
    bool allow_anonymous;
    struct kiln_gate_limits limits;
    struct kiln_metrics *metrics; /* NULL: not measured */
    struct kiln_log *log;         /* NULL: silent */
    struct kiln_audit *audit;     /* NULL: no records; else it lives longer */
};

/* Fails, naming the line, if the file is no list of tokens. */
KILN_CHECK int kiln_gate_new(const struct kiln_gate_opts *opts, struct kiln_gate **ret_gate,
                             struct kiln_err *err);
void kiln_gate_free(struct kiln_gate *gate);

/* Looks at the file now instead of at the next interval. */
void kiln_gate_look_again(struct kiln_gate *gate);

/* For kiln_router_guard(). */
struct kiln_guard kiln_gate_guard(struct kiln_gate *gate);

/* ---- who is there ---- */

#define KILN_SESSION_COOKIE "kiln_session"
enum { KILN_SESSION_S = 12 * 3600, KILN_SESSION_BYTES = 32, KILN_SESSION_TEXT = 64 };

struct kiln_caller {
    bool tokens;                      /* the server has them */
    bool trusted;                     /* root, or our own user, on a Unix socket */
    bool signed_in;                   /* by a token or a session that is known */
    unsigned access;                  /* bits: 1 << enum kiln_access */
    char tenant[KILN_TENANT_MAX + 1]; /* whose token it is; "": any, or nobody's */
    char name[64];                    /* of the token; "": none */
    uint32_t wait_s;                  /* seconds for which its token is not looked at; 0: it was */
};

/*
 * Root, or the user of this process, on a Unix socket: peers that could read its files and memory
 * anyway.  The only place where credentials of a socket are judged.
 */
bool kiln_peer_is_trusted(const struct kiln_peer *peer);

void kiln_gate_caller(struct kiln_gate *gate, const struct kiln_request *request,
                      struct kiln_caller *ret_caller);
/*
 * Whether it may act on the whole server and see what is of all tenants: a peer that is trusted, a
 * token without tenant, or anybody where there are no tokens.  False also for a token that went
 * since the guard saw it.
 */
bool kiln_caller_is_global(const struct kiln_caller *caller);
/*
 * Begins a session, and ends the one that the request has.  -EKEYREJECTED: there is no such token;
 * -EUSERS: there were too many wrong ones, and ret_caller->wait_s says for how long; -ENOENT: there
 * are no tokens at all; -ENOMEM, -EIO.
 */
KILN_CHECK int kiln_gate_sign_in(struct kiln_gate *gate, const struct kiln_request *request,
                                 struct kiln_str secret, char ret_id[KILN_SESSION_TEXT + 1],
                                 struct kiln_caller *ret_caller);
/* Ends the session of a request, where it has one. */
void kiln_gate_sign_out(struct kiln_gate *gate, const struct kiln_request *request);

/* ---- the rest ---- */

/* A record of what a request did, or was not let do, with the status of its answer. */
void kiln_gate_audit(struct kiln_gate *gate, const struct kiln_request *request, const char *action,
                     struct kiln_str target, int status);

/*
 * Counts the body of a request that had no Content-Length (what had one was counted by the guard).
 * Returns 0, or KILN_E_LIMIT where it is larger than a tenant's body may be.
 */
KILN_CHECK int kiln_gate_charge(struct kiln_gate *gate, const struct kiln_request *request);

/*
 * Refuses, in one clear sentence, to listen where strangers can connect without tokens: anything
 * but loopback addresses and Unix sockets.  `allow_anonymous` takes the risk.
 */
KILN_CHECK int kiln_gate_check_listen(const char *address, bool has_tokens, bool allow_anonymous,
                                      struct kiln_err *err);

#endif /* KILN_PIPELINE_GATE_H */
