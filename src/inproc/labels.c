/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set is a row of texts in one arena: key NUL value NUL key NUL value NUL NUL, sorted by key.
 * Equal sets are found by their bytes, through a table of hashes.
 */
#include "inproc/labels.h"

#include <errno.h>
#include <kiln.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "inproc/thread/line.h"
#include "inproc/thread/map.h"
#include "inproc/thread/thread.h"

enum { SLOTS = 2 * KILN_IN_LABEL_SETS, SET_BYTES = KILN_IN_LABELS_MAX * 512 + 1 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct store {
    uint32_t starts[KILN_IN_LABEL_SETS], sizes[KILN_IN_LABEL_SETS]; /* of set i + 1 */
    uint16_t slots[SLOTS];                                          /* 0: empty */
    char bytes[KILN_IN_LABEL_MEMORY];
} * store;
static uint32_t n_bytes;
static _Atomic uint32_t n_sets;

/* ---- sets as lists ---- */

unsigned kiln_in_labels_get(uint16_t set, struct kiln_in_label ret_labels[KILN_IN_LABELS_MAX])
{
    const char *at;
    unsigned n = 0;

    if (set == 0 || set > atomic_load_explicit(&n_sets, memory_order_acquire))
        return 0;
    for (at = store->bytes + store->starts[set - 1]; *at && n < KILN_IN_LABELS_MAX; n++) {
        ret_labels[n].key = at;
        ret_labels[n].value = at += strlen(at) + 1;
        at += strlen(at) + 1;
    }
    return n;
}

static size_t put(char *to, size_t size, const char *text)
{
    size_t n = strlen(text) + 1;

    memcpy(to + size, text, n);
    return size + n;
}

static size_t pack(const struct kiln_in_label *labels, unsigned n, char *to)
{
    size_t size = 0;

    for (unsigned i = 0; i < n; i++)
        size = put(to, put(to, size, labels[i].key), labels[i].value);
    to[size++] = '\0';
    return size;
}

/* ---- the table ---- */

static uint32_t hash_of(const char *bytes, size_t n)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (uint8_t)bytes[i]) * 16777619u;
    return hash;
}

static int add(uint16_t *slot, const char *bytes, size_t n)
{
    uint32_t set = atomic_load_explicit(&n_sets, memory_order_relaxed);

    if (set == KILN_IN_LABEL_SETS || n > KILN_IN_LABEL_MEMORY - n_bytes)
        return -ENOSPC;
    memcpy(store->bytes + n_bytes, bytes, n);
    store->starts[set] = n_bytes;
    store->sizes[set] = (uint32_t)n;
    n_bytes += (uint32_t)n;
    *slot = (uint16_t)(set + 1);
    atomic_store_explicit(&n_sets, set + 1, memory_order_release);
    return (int)set + 1;
}

static int find(const char *bytes, size_t n)
{
    uint32_t at = hash_of(bytes, n) % SLOTS;

    if (!store)
        store = kiln_in_map(sizeof(*store));
    if (!store)
        return -ENOMEM;
    for (;; at = (at + 1) % SLOTS) {
        uint16_t set = store->slots[at];

        if (set == 0)
            return add(&store->slots[at], bytes, n);
        if (store->sizes[set - 1] == n &&
            memcmp(store->bytes + store->starts[set - 1], bytes, n) == 0)
            return set;
    }
}

/* Packed where there is room for it: stacks of threads may be small. */
static int set_of(const struct kiln_in_label *labels, unsigned n)
{
    static char bytes[SET_BYTES];
    int set;

    if (n == 0)
        return 0;
    pthread_mutex_lock(&lock);
    set = find(bytes, pack(labels, n, bytes));
    pthread_mutex_unlock(&lock);
    return set;
}

/* ---- with and without ---- */

static bool is_text(const char *text)
{
    return text && text[0] && strnlen(text, KILN_IN_LABEL_BYTES + 1) <= KILN_IN_LABEL_BYTES;
}

int kiln_in_labels_with(uint16_t set, const char *key, const char *value)
{
    struct kiln_in_label labels[KILN_IN_LABELS_MAX + 1];
    unsigned n = kiln_in_labels_get(set, labels), at = 0;

    if (!is_text(key) || !is_text(value))
        return -EINVAL;
    while (at < n && strcmp(labels[at].key, key) < 0)
        at++;
    if (at == n || strcmp(labels[at].key, key) != 0) {
        memmove(labels + at + 1, labels + at, (n++ - at) * sizeof(*labels));
        if (n > KILN_IN_LABELS_MAX)
            return -ENOSPC;
    }
    labels[at] = (struct kiln_in_label){key, value};
    return set_of(labels, n);
}

int kiln_in_labels_without(uint16_t set, const char *key)
{
    struct kiln_in_label labels[KILN_IN_LABELS_MAX];
    unsigned n = kiln_in_labels_get(set, labels), kept = 0;

    for (unsigned i = 0; key && i < n; i++) {
        if (strcmp(labels[i].key, key) != 0)
            labels[kept++] = labels[i];
    }
    return set_of(labels, kept);
}

void kiln_in_labels_forked(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    lock = fresh;
}

/* ---- the interface ---- */

/* A thread has labels only while the process is profiled: nobody else would see them. */
int kiln_label_set(const char *key, const char *value)
{
    struct kiln_in_thread *thread;
    int set;

    if (!is_text(key) || !is_text(value))
        return -EINVAL;
    thread = kiln_in_enter_as(NULL);
    if (!thread)
        return 0;
    set = kiln_in_labels_with(thread->labels, key, value);
    if (set >= 0)
        thread->labels = (uint16_t)set;
    kiln_in_leave(thread);
    return set < 0 ? set : 0;
}

void kiln_label_clear(const char *key)
{
    struct kiln_in_thread *thread = kiln_in_enter_as(NULL);
    int set;

    if (!thread)
        return;
    set = kiln_in_labels_without(thread->labels, key);
    if (set >= 0)
        thread->labels = (uint16_t)set;
    kiln_in_leave(thread);
}
