/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session is 256 random bits, which its owner has as 64 hexadecimal digits; here stands only
 * their hash, beside that of the token.  They are few, so that every one is compared, in a time
 * that says nothing about where it differs.
 *
 * The list is in the order in which sessions began, so that those which are over stand first.
 */
#include <errno.h>
#include <sys/random.h>

#include "base/bytetext.h"
#include "base/clock.h"
#include "base/mem.h"
#include "pipeline/gate_int.h"

#define LIFE_NS ((uint64_t)KILN_SESSION_S * KILN_NS_PER_S)

void kiln_sessions_init(struct kiln_sessions *sessions)
{
    *sessions = (struct kiln_sessions){0};
    pthread_mutex_init(&sessions->lock, NULL);
}

void kiln_sessions_done(struct kiln_sessions *sessions)
{
    kiln_free(sessions->list);
    pthread_mutex_destroy(&sessions->lock);
}

static void cut(struct kiln_sessions *s, uint32_t at)
{
    s->n--;
    memmove(&s->list[at], &s->list[at + 1], (s->n - at) * sizeof(*s->list));
}

static void forget_old(struct kiln_sessions *s, uint64_t now_ns)
{
    while (s->n && now_ns >= s->list[0].began_ns + LIFE_NS)
        cut(s, 0);
}

/* One more of this token fits afterwards: nobody's script ends the sessions of everybody else. */
static void make_room(struct kiln_sessions *s, const uint8_t *token)
{
    uint32_t n = 0, oldest = 0;

    for (uint32_t i = s->n; i-- > 0;) {
        if (kiln_token_same_digest(s->list[i].token, token)) {
            oldest = i;
            n++;
        }
    }
    if (n >= KILN_SESSIONS_OF_TOKEN)
        cut(s, oldest);
    else if (s->n == KILN_SESSIONS_MAX)
        cut(s, 0);
}

static int grow(struct kiln_sessions *s)
{
    uint32_t cap = s->cap ? s->cap * 2 : 16;
    struct kiln_session *list;

    if (s->n < s->cap)
        return 0;
    list = kiln_realloc(s->list, cap * sizeof(*list));
    if (!list)
        return -ENOMEM;
    s->list = list;
    s->cap = cap;
    return 0;
}

static int add(struct kiln_sessions *s, const struct kiln_session *session)
{
    int r;

    pthread_mutex_lock(&s->lock);
    forget_old(s, session->began_ns);
    make_room(s, session->token);
    r = grow(s);
    if (r == 0)
        s->list[s->n++] = *session;
    pthread_mutex_unlock(&s->lock);
    return r;
}

int kiln_sessions_begin(struct kiln_sessions *sessions, const uint8_t token[KILN_SHA256_BYTES],
                        uint64_t now_ns, char ret_id[KILN_SESSION_TEXT + 1])
{
    struct kiln_session session = {.began_ns = now_ns};
    uint8_t bytes[KILN_SESSION_BYTES];
    char id[KILN_SESSION_TEXT + 1] = "";
    int r;

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return -EIO;
    kiln_hex_encode(bytes, sizeof(bytes), id);
    kiln_sha256((struct kiln_str){id, KILN_SESSION_TEXT}, session.id);
    memcpy(session.token, token, sizeof(session.token));
    r = add(sessions, &session);
    if (r == 0)
        memcpy(ret_id, id, sizeof(id));
    return r;
}

/* Under the lock: its place, or `n`. */
static uint32_t find(const struct kiln_sessions *s, struct kiln_str id)
{
    uint8_t digest[KILN_SHA256_BYTES];
    uint32_t found = s->n;

    if (id.len != KILN_SESSION_TEXT)
        return s->n;
    kiln_sha256(id, digest);
    for (uint32_t i = 0; i < s->n; i++) {
        if (kiln_token_same_digest(s->list[i].id, digest))
            found = i;
    }
    return found;
}

bool kiln_sessions_find(struct kiln_sessions *sessions, struct kiln_str id, uint64_t now_ns,
                        uint8_t ret_token[KILN_SHA256_BYTES])
{
    uint32_t at;
    bool found;

    pthread_mutex_lock(&sessions->lock);
    forget_old(sessions, now_ns);
    at = find(sessions, id);
    found = at < sessions->n;
    if (found)
        memcpy(ret_token, sessions->list[at].token, KILN_SHA256_BYTES);
    pthread_mutex_unlock(&sessions->lock);
    return found;
}

void kiln_sessions_end(struct kiln_sessions *sessions, struct kiln_str id)
{
    uint32_t at;

    pthread_mutex_lock(&sessions->lock);
    at = find(sessions, id);
    if (at < sessions->n)
        cut(sessions, at);
    pthread_mutex_unlock(&sessions->lock);
}

void kiln_sessions_keep(struct kiln_sessions *sessions, const struct kiln_tokens *tokens)
{
    uint32_t kept = 0;

    pthread_mutex_lock(&sessions->lock);
    for (uint32_t i = 0; i < sessions->n; i++) {
        if (kiln_tokens_by_digest(tokens, sessions->list[i].token))
            sessions->list[kept++] = sessions->list[i];
    }
    sessions->n = kept;
    pthread_mutex_unlock(&sessions->lock);
}
