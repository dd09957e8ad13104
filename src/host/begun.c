/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash of chains by thread, and a list of all of them by age.  An entry is one
 * block: its head, and the frames behind it.
 */
#include "host/begun.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"

#define BYTES_DEFAULT ((size_t)4 << 20)

enum { BUCKETS = 1024 };

struct entry {
    struct entry *next; /* of the chain */
    struct entry *older, *younger;
    uint64_t began_ns;
    size_t size;
    struct kiln_gather_sample sample;
    char comm[KILN_COMM_LEN];
    struct kiln_gframe frames[];
};

struct kiln_begun {
    struct kiln_budget budget;
    struct entry *oldest, *youngest;
    struct entry *chains[BUCKETS];
    struct entry *shown; /* out of all of it, for whoever asked last */
    uint64_t lost;
};

int kiln_begun_new(size_t bytes_max, struct kiln_begun **ret_begun)
{
    struct kiln_begun *begun = kiln_calloc(1, sizeof(*begun));

    if (!begun)
        return -ENOMEM;
    begun->budget.limit = bytes_max ? bytes_max : BYTES_DEFAULT;
    *ret_begun = begun;
    return 0;
}

/* ---- entries ---- */

static struct entry **chain_of(struct kiln_begun *begun, uint32_t tid)
{
    return &begun->chains[tid % BUCKETS];
}

static void release(struct kiln_begun *begun, struct entry *entry)
{
    if (!entry)
        return;
    for (uint32_t i = 0; i < entry->sample.n_frames; i++)
        if (entry->frames[i].object)
            kiln_object_unref(entry->frames[i].object);
    kiln_identity_unref(entry->sample.identity);
    kiln_budget_give(&begun->budget, entry->size);
    kiln_free(entry);
}

static void list(struct kiln_begun *begun, struct entry *entry)
{
    entry->younger = NULL;
    entry->older = begun->youngest;
    *(entry->older ? &entry->older->younger : &begun->oldest) = entry;
    begun->youngest = entry;
}

static void unlist(struct kiln_begun *begun, struct entry *entry)
{
    *(entry->older ? &entry->older->younger : &begun->oldest) = entry->younger;
    *(entry->younger ? &entry->younger->older : &begun->youngest) = entry->older;
}

/* Out of the hash and the list. */
static struct entry *take(struct kiln_begun *begun, uint32_t tid)
{
    for (struct entry **at = chain_of(begun, tid); *at; at = &(*at)->next) {
        struct entry *entry = *at;

        if (entry->sample.tid != tid)
            continue;
        *at = entry->next;
        unlist(begun, entry);
        return entry;
    }
    return NULL;
}

static void lose(struct kiln_begun *begun, struct entry *entry)
{
    begun->lost += entry != NULL;
    release(begun, entry);
}

static struct entry *make(struct kiln_begun *begun, uint32_t n_frames)
{
    size_t size = sizeof(struct entry) + n_frames * sizeof(struct kiln_gframe);
    struct entry *entry;

    while (kiln_budget_take(&begun->budget, size) < 0) {
        if (!begun->oldest)
            return NULL;
        lose(begun, take(begun, begun->oldest->sample.tid));
    }
    entry = kiln_malloc(size);
    if (!entry)
        kiln_budget_give(&begun->budget, size);
    else
        entry->size = size;
    return entry;
}

/* ---- waits ---- */

int kiln_begun_add(struct kiln_begun *begun, const struct kiln_record *record,
                   const struct kiln_gather_sample *sample)
{
    struct entry **chain = chain_of(begun, sample->tid);
    struct entry *entry;

    lose(begun, take(begun, sample->tid));
    entry = make(begun, sample->n_frames);
    if (!entry) {
        begun->lost++;
        return -ENOMEM;
    }
    entry->began_ns = record->began_ns;
    entry->sample = *sample;
    kiln_identity_ref(sample->identity);
    memcpy(entry->comm, record->comm, sizeof(entry->comm));
    entry->sample.comm = entry->comm;
    entry->sample.frames = entry->frames;
    for (uint32_t i = 0; i < sample->n_frames; i++) {
        entry->frames[i] = sample->frames[i];
        if (entry->frames[i].object)
            kiln_object_ref(entry->frames[i].object);
    }
    entry->next = *chain;
    *chain = entry;
    list(begun, entry);
    return 0;
}

const struct kiln_gather_sample *kiln_begun_take(struct kiln_begun *begun,
                                                 const struct kiln_record *record)
{
    struct entry *entry = take(begun, record->tid);

    release(begun, begun->shown);
    begun->shown = NULL;
    if (!entry || entry->began_ns != record->began_ns) {
        lose(begun, entry);
        return NULL;
    }
    begun->shown = entry;
    return &entry->sample;
}

/* ---- the rest ---- */

void kiln_begun_free(struct kiln_begun *begun)
{
    if (!begun)
        return;
    release(begun, begun->shown);
    while (begun->oldest)
        release(begun, take(begun, begun->oldest->sample.tid));
    kiln_free(begun);
}

size_t kiln_begun_bytes(const struct kiln_begun *begun)
{
    return begun->budget.used;
}

uint64_t kiln_begun_lost(const struct kiln_begun *begun)
{
    return begun->lost;
}
