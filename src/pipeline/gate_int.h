/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_int - what the files of the gate share:
 *
 *   gate.c           the gate itself; reading tokens again; listening
 *   gate_check.c     the guard; who a caller is; signing in and out
 *   gate_tokens.c, gate_sessions.c, gate_buckets.c, gate_throttle.c   what it asks
 *
 * Threads: a set of tokens is constant once read; sessions, buckets and sources have a lock.
 */
#ifndef KILN_PIPELINE_GATE_INT_H
#define KILN_PIPELINE_GATE_INT_H

#include <pthread.h>
#include <sys/stat.h>

#include "base/sha256.h"
#include "net/origin.h"
#include "pipeline/gate.h"

/* What an administrator may. */
enum {
    KILN_ACCESS_EVERYTHING = 1u << KILN_ACCESS_READ | 1u << KILN_ACCESS_WRITE |
                             1u << KILN_ACCESS_CONTROL | 1u << KILN_ACCESS_ADMIN
};

/* ---- tokens ---- */

struct kiln_token {
    uint8_t digest[KILN_SHA256_BYTES];
    unsigned access;                  /* bits: 1 << enum kiln_access */
    char tenant[KILN_TENANT_MAX + 1]; /* "": any */
    char name[64];
};

struct kiln_tokens {
    struct kiln_token *list;
    uint32_t n;
};

KILN_CHECK int kiln_tokens_load(const char *path, struct kiln_tokens *ret_tokens,
                                struct kiln_err *err);
void kiln_tokens_done(struct kiln_tokens *tokens);

/* The token of this digest, or NULL; takes the same time whatever is wrong with it. */
const struct kiln_token *kiln_tokens_by_digest(const struct kiln_tokens *tokens,
                                               const uint8_t digest[KILN_SHA256_BYTES]);
bool kiln_token_same_digest(const uint8_t *a, const uint8_t *b); /* in constant time */

/* The secret in an Authorization header: a bearer's token, or a password, decoded into `room`.
 * KILN_STR_NONE where there is none. */
struct kiln_str kiln_token_secret(struct kiln_str header, char *room, size_t size);

/* ---- sessions ---- */

enum { KILN_SESSIONS_MAX = 1024, KILN_SESSIONS_OF_TOKEN = 64 };

struct kiln_session {
    uint8_t id[KILN_SHA256_BYTES];    /* of its text: nobody who reads memory can use it */
    uint8_t token[KILN_SHA256_BYTES]; /* as struct kiln_token has it */
    uint64_t began_ns;                /* monotonic */
};

/* Where there are too many, the oldest ends. */
struct kiln_sessions {
    pthread_mutex_t lock;
    struct kiln_session *list; /* by `began_ns` */
    uint32_t n, cap;
};

void kiln_sessions_init(struct kiln_sessions *sessions);
void kiln_sessions_done(struct kiln_sessions *sessions);
/* -ENOMEM, or -EIO where the system has no random numbers. */
KILN_CHECK int kiln_sessions_begin(struct kiln_sessions *sessions,
                                   const uint8_t token[KILN_SHA256_BYTES], uint64_t now_ns,
                                   char ret_id[KILN_SESSION_TEXT + 1]);
/* The token that it was begun with; false: there is no such session, or it is over. */
bool kiln_sessions_find(struct kiln_sessions *sessions, struct kiln_str id, uint64_t now_ns,
                        uint8_t ret_token[KILN_SHA256_BYTES]);
void kiln_sessions_end(struct kiln_sessions *sessions, struct kiln_str id);
/* Ends those whose token is not among these. */
void kiln_sessions_keep(struct kiln_sessions *sessions, const struct kiln_tokens *tokens);

/* ---- buckets ---- */

struct kiln_buckets;

KILN_CHECK int kiln_buckets_new(uint64_t bytes_per_s, uint64_t burst_bytes,
                                struct kiln_buckets **ret_buckets);
void kiln_buckets_free(struct kiln_buckets *buckets);

/*
 * Takes `bytes` from a tenant's bucket, which may go below empty once: the next one waits.  Returns
 * 0, or how many seconds it takes until there is something again (`bytes` are not taken then).
 */
uint32_t kiln_buckets_take(struct kiln_buckets *buckets, const char *tenant, uint64_t bytes);
/* Takes them in any case. */
void kiln_buckets_charge(struct kiln_buckets *buckets, const char *tenant, uint64_t bytes);

/* ---- failed sign-ins ---- */

struct kiln_throttle;

KILN_CHECK int kiln_throttle_new(struct kiln_audit *audit, struct kiln_throttle **ret_throttle);
/* Reports what was not reported yet. */
void kiln_throttle_free(struct kiln_throttle *throttle);
/* How many seconds this token is not looked at; 0: it is.  Counts the attempt where it is not. */
uint32_t kiln_throttle_wait(struct kiln_throttle *throttle, const struct kiln_peer *peer,
                            const uint8_t digest[KILN_SHA256_BYTES], uint64_t now_ns);
void kiln_throttle_passed(struct kiln_throttle *throttle, const struct kiln_peer *peer,
                          const uint8_t digest[KILN_SHA256_BYTES]);
void kiln_throttle_failed(struct kiln_throttle *throttle, const struct kiln_peer *peer,
                          const uint8_t digest[KILN_SHA256_BYTES], uint64_t now_ns);
/* Reports what is due; now and then. */
void kiln_throttle_flush(struct kiln_throttle *throttle, uint64_t now_ns);

/* ---- the gate ---- */

enum { KILN_GATE_REFUSALS = 16 };

struct kiln_gate {
    struct kiln_gate_opts opts;
    char *tokens_file; /* NULL: no tokens */
    struct kiln_origin_policy origin;
    struct kiln_tokens tokens;
    pthread_rwlock_t tokens_lock;
    struct kiln_buckets *buckets; /* NULL: no limit */
    struct kiln_sessions sessions;
    struct kiln_throttle *throttle; /* NULL: no tokens */
    struct kiln_metric *refused[KILN_GATE_REFUSALS];
    struct kiln_metric *reloads, *bad_reloads;

    pthread_t reloader;
    pthread_mutex_t stop_lock;
    pthread_cond_t stop_cond;
    bool reloading, stop;
    struct stat seen;
};

void kiln_gate_open_metrics(struct kiln_gate *gate);

#endif /* KILN_PIPELINE_GATE_INT_H */
