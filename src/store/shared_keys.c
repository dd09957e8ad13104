/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table with chains; its memory goes with the last key.
 */
#include "store/shared_keys.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

#define CHAINS_MIN 64u

struct shared {
    struct shared *next;
    uint64_t hash;
    uint32_t refs, len;
    char text[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct shared **chains;
static size_t n_chains, n_keys;

static struct shared **chain_of(uint64_t hash)
{
    return &chains[hash & (n_chains - 1)];
}

/* Room for one more key; where memory lacks, chains become longer. */
static bool grow(void)
{
    size_t before = n_chains;
    struct shared **old = chains, **larger;

    if (n_keys < n_chains)
        return true;
    larger = kiln_calloc(n_chains ? n_chains * 2 : CHAINS_MIN, sizeof(*larger));
    if (!larger)
        return n_chains > 0;
    chains = larger;
    n_chains = n_chains ? n_chains * 2 : CHAINS_MIN;
    for (size_t i = 0; i < before; i++) {
        for (struct shared *key = old[i], *next; key; key = next) {
            next = key->next;
            key->next = *chain_of(key->hash);
            *chain_of(key->hash) = key;
        }
    }
    kiln_free(old);
    return true;
}

static struct shared *find(uint64_t hash, struct kiln_str text)
{
    struct shared *key = n_chains ? *chain_of(hash) : NULL;

    while (key && (key->hash != hash || !kiln_str_eq((struct kiln_str){key->text, key->len}, text)))
        key = key->next;
    return key;
}

static struct shared *add(uint64_t hash, struct kiln_str text)
{
    struct shared *key = NULL;

    if (text.len < UINT32_MAX && grow())
        key = kiln_malloc(sizeof(*key) + text.len);
    if (!key)
        return NULL;
    *key = (struct shared){.next = *chain_of(hash), .hash = hash, .len = (uint32_t)text.len};
    if (text.len)
        memcpy(key->text, text.ptr, text.len);
    *chain_of(hash) = key;
    n_keys++;
    return key;
}

static void drop_table(void)
{
    kiln_free(chains);
    chains = NULL;
    n_chains = 0;
}

struct kiln_str kiln_shared_key_get(struct kiln_str text)
{
    uint64_t hash = kiln_hash(text.ptr, text.len);
    struct shared *key;

    pthread_mutex_lock(&lock);
    key = find(hash, text);
    if (!key)
        key = add(hash, text);
    if (key)
        key->refs++;
    else if (n_keys == 0)
        drop_table();
    pthread_mutex_unlock(&lock);
    return key ? (struct kiln_str){key->text, key->len} : KILN_STR_NONE;
}

void kiln_shared_key_put(struct kiln_str text)
{
    /* The text is the end of its key. */
    struct shared *key = (struct shared *)((uintptr_t)text.ptr - offsetof(struct shared, text));
    struct shared **at;

    pthread_mutex_lock(&lock);
    if (--key->refs == 0) {
        at = chain_of(key->hash);
        while (*at != key)
            at = &(*at)->next;
        *at = key->next;
        kiln_free(key);
        if (--n_keys == 0)
            drop_table();
    }
    pthread_mutex_unlock(&lock);
}
