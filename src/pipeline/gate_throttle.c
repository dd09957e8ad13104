/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failed sign-ins are counted by source: an IPv4 address, a /64 of IPv6, a user on a Unix socket.
 * The first FREE wrong tokens of a source cost nothing; each further one blocks the source for a
 * second, then two, four, up to a minute, and after FORGET_NS without one it begins anew.  While a
 * source is blocked, no token from it is looked at, so that a right guess is not told from a wrong
 * one; but a token that was accepted from this source before is always accepted: who guesses behind
 * a proxy does not lock out the clients that work behind it.  The same wrong token again is no
 * guess, and counts once.
 *
 * Sources are in sets of a few places: where a set is full, the one that failed least recently
 * goes.  Of the pairs of source and token that were accepted only a hash is kept.
 *
 * Reports are lines of the audit log with a count: one for a source at its first failure, then at
 * most one a minute, and LINES_MAX of all sources a minute; what goes beyond is one line for all.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "pipeline/gate_int.h"

#define FREE      10u
#define FORGET_NS (900 * KILN_NS_PER_S)
#define REPORT_NS (60 * KILN_NS_PER_S)
enum {
    SETS = 256, /* powers of two */
    WAYS = 4,
    GOOD = 4096,
    RECENT = 4,
    LONGEST_S = 60,
    LINES_MAX = 60,
    KEY_BYTES = 17
};

struct source {
    uint8_t key[KEY_BYTES];
    uint32_t failures;       /* wrong tokens, each once; 0: the place is free */
    uint64_t last_ns;        /* monotonic: of the last attempt */
    uint64_t until_ns;       /* blocked */
    uint64_t recent[RECENT]; /* hashes of wrong tokens */
    uint64_t pending;        /* attempts that no line has told of */
    uint64_t told_ns;        /* 0: there was no line */
    char address[64];        /* of the last attempt */
};

struct kiln_throttle {
    pthread_mutex_t lock;
    struct kiln_audit *audit;
    struct source sources[SETS][WAYS];
    uint64_t good[GOOD];
    uint64_t minute_ns; /* when the count of lines began */
    uint32_t lines;
    uint64_t others; /* attempts of sources that went, or had no line left */
};

int kiln_throttle_new(struct kiln_audit *audit, struct kiln_throttle **ret_throttle)
{
    struct kiln_throttle *t = kiln_calloc(1, sizeof(*t));

    if (!t)
        return -ENOMEM;
    t->audit = audit;
    pthread_mutex_init(&t->lock, NULL);
    *ret_throttle = t;
    return 0;
}

/* ---- sources ---- */

static struct kiln_str host_of(const char *address)
{
    struct kiln_str host = kiln_str_of(address);
    const char *colon = strrchr(address, ':');

    if (colon)
        host.len = (size_t)(colon - address);
    if (host.len >= 2 && host.ptr[0] == '[')
        host = (struct kiln_str){host.ptr + 1, host.len - 2};
    return host;
}

static bool is_unix(const struct kiln_peer *peer)
{
    return strcmp(peer->address, "unix") == 0;
}

static void key_of(const struct kiln_peer *peer, uint8_t key[KEY_BYTES])
{
    struct kiln_str host = host_of(peer->address);
    char text[INET6_ADDRSTRLEN];
    struct in6_addr six;

    memset(key, 0, KEY_BYTES);
    snprintf(text, sizeof(text), "%.*s", KILN_STR_ARG(host));
    text[strcspn(text, "%")] = '\0'; /* of a link */
    if (is_unix(peer)) {
        key[0] = 'u';
        memcpy(key + 1, &peer->uid, sizeof(peer->uid));
    } else if (inet_pton(AF_INET, text, key + 1) == 1) {
        key[0] = '4';
    } else if (inet_pton(AF_INET6, text, &six) == 1) {
        key[0] = '6';
        memcpy(key + 1, &six, 8);
    }
}

static uint64_t hash_of(const uint8_t key[KEY_BYTES], const uint8_t digest[KILN_SHA256_BYTES])
{
    uint8_t both[KEY_BYTES + KILN_SHA256_BYTES];

    memcpy(both, key, KEY_BYTES);
    memcpy(both + KEY_BYTES, digest, KILN_SHA256_BYTES);
    return kiln_hash((const char *)both, sizeof(both)) | 1; /* 0: none */
}

static struct source *set_of(struct kiln_throttle *t, const uint8_t key[KEY_BYTES])
{
    return t->sources[kiln_hash((const char *)key, KEY_BYTES) & (SETS - 1)];
}

/* Threads that read the clock one after the other may come here in another order. */
static uint64_t since(uint64_t then_ns, uint64_t now_ns)
{
    return now_ns > then_ns ? now_ns - then_ns : 0;
}

static struct source *find(struct kiln_throttle *t, const uint8_t key[KEY_BYTES], uint64_t now_ns)
{
    struct source *set = set_of(t, key);

    for (int i = 0; i < WAYS; i++) {
        if (set[i].last_ns == 0 || memcmp(set[i].key, key, KEY_BYTES) != 0)
            continue;
        if (since(set[i].last_ns, now_ns) > FORGET_NS)
            set[i].failures = 0;
        return &set[i];
    }
    return NULL;
}

/* A place for a new one: free, or that of the one that tried least recently. */
static struct source *claim(struct kiln_throttle *t, const uint8_t key[KEY_BYTES])
{
    struct source *set = set_of(t, key), *oldest = set;

    for (int i = 1; i < WAYS; i++)
        if (set[i].last_ns < oldest->last_ns)
            oldest = &set[i];
    t->others += oldest->pending;
    *oldest = (struct source){.failures = 0};
    memcpy(oldest->key, key, KEY_BYTES);
    return oldest;
}

/* ---- reports ---- */

static void write_line(struct kiln_throttle *t, const char *peer, uint64_t count)
{
    kiln_audit_write(t->audit, &(struct kiln_audit_record){.action = "sign in",
                                                           .tenant = "",
                                                           .target = KILN_STR(""),
                                                           .who = "",
                                                           .peer = peer,
                                                           .result = "refused",
                                                           .count = count});
}

static bool has_line(struct kiln_throttle *t, uint64_t now_ns)
{
    if (!t->minute_ns || since(t->minute_ns, now_ns) >= REPORT_NS) {
        t->minute_ns = now_ns;
        t->lines = 0;
    }
    return t->lines < LINES_MAX ? ++t->lines : false;
}

/* With the lock, which is held for the line too: lines of one source stay in order. */
static void report(struct kiln_throttle *t, struct source *source, uint64_t now_ns, bool now)
{
    bool due = !source->told_ns || since(source->told_ns, now_ns) >= REPORT_NS;

    if (!source->pending || !(due || now) || !has_line(t, now_ns))
        return;
    write_line(t, source->address, source->pending);
    source->pending = 0;
    source->told_ns = now_ns;
}

static void note(struct kiln_throttle *t, struct source *source, const struct kiln_peer *peer,
                 uint64_t now_ns)
{
    source->last_ns = now_ns;
    source->pending++;
    if (is_unix(peer))
        snprintf(source->address, sizeof(source->address), "unix uid %u", (unsigned)peer->uid);
    else
        snprintf(source->address, sizeof(source->address), "%s", peer->address);
    report(t, source, now_ns, false);
}

static void flush(struct kiln_throttle *t, uint64_t now_ns, bool now)
{
    for (int i = 0; i < SETS * WAYS; i++) {
        struct source *source = &t->sources[i / WAYS][i % WAYS];

        report(t, source, now_ns, now);
        if (now) {
            t->others += source->pending;
            source->pending = 0;
        }
    }
    if (t->others && (now || has_line(t, now_ns))) {
        write_line(t, "others", t->others);
        t->others = 0;
    }
}

void kiln_throttle_flush(struct kiln_throttle *throttle, uint64_t now_ns)
{
    pthread_mutex_lock(&throttle->lock);
    flush(throttle, now_ns, false);
    pthread_mutex_unlock(&throttle->lock);
}

void kiln_throttle_free(struct kiln_throttle *throttle)
{
    if (!throttle)
        return;
    flush(throttle, kiln_clock_mono_ns(), true);
    pthread_mutex_destroy(&throttle->lock);
    kiln_free(throttle);
}

/* ---- attempts ---- */

static uint32_t seconds_left(const struct source *source, uint64_t now_ns)
{
    uint64_t left = source->until_ns > now_ns ? source->until_ns - now_ns : 0;

    return (uint32_t)((left + KILN_NS_PER_S - 1) / KILN_NS_PER_S);
}

uint32_t kiln_throttle_wait(struct kiln_throttle *throttle, const struct kiln_peer *peer,
                            const uint8_t digest[KILN_SHA256_BYTES], uint64_t now_ns)
{
    uint8_t key[KEY_BYTES];
    struct source *source;
    uint32_t wait_s = 0;
    uint64_t hash;

    key_of(peer, key);
    hash = hash_of(key, digest);
    pthread_mutex_lock(&throttle->lock);
    source = find(throttle, key, now_ns);
    if (source && throttle->good[hash % GOOD] != hash)
        wait_s = seconds_left(source, now_ns);
    if (wait_s)
        note(throttle, source, peer, now_ns);
    pthread_mutex_unlock(&throttle->lock);
    return wait_s;
}

void kiln_throttle_passed(struct kiln_throttle *throttle, const struct kiln_peer *peer,
                          const uint8_t digest[KILN_SHA256_BYTES])
{
    uint8_t key[KEY_BYTES];
    uint64_t hash;

    key_of(peer, key);
    hash = hash_of(key, digest);
    pthread_mutex_lock(&throttle->lock);
    throttle->good[hash % GOOD] = hash;
    pthread_mutex_unlock(&throttle->lock);
}

static bool is_repeated(const struct source *source, uint64_t hash)
{
    for (int i = 0; i < RECENT; i++)
        if (source->recent[i] == hash)
            return true;
    return false;
}

static void count(struct source *source, uint64_t hash, uint64_t now_ns)
{
    uint32_t over;

    source->recent[source->failures++ % RECENT] = hash;
    if (source->failures <= FREE)
        return;
    over = source->failures - FREE - 1;
    source->until_ns = now_ns + (over < 6 ? UINT64_C(1) << over : LONGEST_S) * KILN_NS_PER_S;
}

void kiln_throttle_failed(struct kiln_throttle *throttle, const struct kiln_peer *peer,
                          const uint8_t digest[KILN_SHA256_BYTES], uint64_t now_ns)
{
    uint8_t key[KEY_BYTES];
    struct source *source;
    uint64_t hash;

    key_of(peer, key);
    hash = hash_of(key, digest);
    pthread_mutex_lock(&throttle->lock);
    source = find(throttle, key, now_ns);
    if (!source)
        source = claim(throttle, key);
    if (!is_repeated(source, hash))
        count(source, hash, now_ns);
    note(throttle, source, peer, now_ns);
    pthread_mutex_unlock(&throttle->lock);
}
