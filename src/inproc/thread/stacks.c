/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks lie in an arena of 8-byte words, mapped chunk by chunk.  A stack is
 *
 *   word 0      its hash in the upper half, the number of addresses in the lower
 *   words 1..n  the addresses, leaf first
 *
 * and its id is the index of word 0.  No stack crosses the end of a chunk.
 *
 * They are found through tables of slots, each twice as large as the one before and made when that
 * one has no room: a slot is hash << 32 | id, and goes from 0 to that once.  A stack lies in the
 * first table that had room in its window of slots when it came; so a window with an empty slot
 * ends the search.  Two threads that bring the same new stack at once both write it, one of them
 * gets the slot, and the words of the other are lost.
 *
 * Nobody waits for anybody: a handler may interrupt any of this on its own thread.
 */
#include "inproc/thread/stacks.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "inproc/thread/map.h"
#include "inproc/thread/thread.h"

enum {
    CHUNK_WORDS = 1 << 13, /* 64 KiB */
    CHUNKS = 512,          /* 32 MiB */
    FIRST_BITS = 10,       /* slots of the first table */
    TABLES = 8,            /* of 8 KiB to 1 MiB */
    WINDOW = 16
};

_Static_assert(KILN_IN_DEPTH_MAX + 1 < CHUNK_WORDS, "a stack fits into a chunk");

static _Atomic(_Atomic uint64_t *) chunks[CHUNKS];
static _Atomic(_Atomic uint64_t *) tables[TABLES];
static _Atomic uint64_t next_word = 1;
static _Atomic uint32_t count;

/* The array behind *place, made by whoever comes first.  NULL: no memory. */
static _Atomic uint64_t *made(_Atomic(_Atomic uint64_t *) *place, size_t bytes)
{
    _Atomic uint64_t *array = atomic_load_explicit(place, memory_order_acquire);
    _Atomic uint64_t *fresh;

    if (array)
        return array;
    fresh = kiln_in_map(bytes);
    if (!fresh)
        return NULL;
    if (atomic_compare_exchange_strong(place, &array, fresh))
        return fresh;
    kiln_in_unmap((void *)fresh, bytes);
    return array;
}

static size_t table_bytes(unsigned table)
{
    return sizeof(uint64_t) << (FIRST_BITS + table);
}

static uint64_t hash_of(const uint64_t *pcs, unsigned n)
{
    uint64_t hash = 0x9e3779b97f4a7c15 ^ n;

    for (unsigned i = 0; i < n; i++) {
        hash = (hash ^ pcs[i]) * 0xff51afd7ed558ccd;
        hash ^= hash >> 29;
    }
    return hash ^ hash >> 32;
}

/* Word 0 of a stack that was published. */
static _Atomic uint64_t *at(uint32_t id)
{
    _Atomic uint64_t *chunk;

    if (id == 0 || id >= (uint64_t)CHUNKS * CHUNK_WORDS)
        return NULL;
    chunk = atomic_load_explicit(&chunks[id / CHUNK_WORDS], memory_order_acquire);
    return chunk ? chunk + id % CHUNK_WORDS : NULL;
}

static bool is(uint32_t id, uint32_t hash, const uint64_t *pcs, unsigned n)
{
    _Atomic uint64_t *words = at(id);

    if (!words || words[0] != ((uint64_t)hash << 32 | n))
        return false;
    return memcmp((const void *)(words + 1), pcs, n * sizeof(*pcs)) == 0;
}

/* Room for `words` in one chunk; 0: none is left. */
static uint64_t reserve(unsigned words)
{
    uint64_t word = atomic_load_explicit(&next_word, memory_order_relaxed);
    uint64_t begin;

    do {
        begin = word;
        if (begin % CHUNK_WORDS + words > CHUNK_WORDS)
            begin += CHUNK_WORDS - begin % CHUNK_WORDS;
        if (begin + words > (uint64_t)CHUNKS * CHUNK_WORDS)
            return 0;
    } while (!atomic_compare_exchange_weak(&next_word, &word, begin + words));
    return begin;
}

static uint32_t write_stack(uint32_t hash, const uint64_t *pcs, unsigned n)
{
    uint64_t begin = reserve(n + 1);
    _Atomic uint64_t *chunk;

    if (begin == 0)
        return 0;
    chunk = made(&chunks[begin / CHUNK_WORDS], CHUNK_WORDS * sizeof(uint64_t));
    if (!chunk)
        return 0;
    chunk += begin % CHUNK_WORDS;
    memcpy((void *)(chunk + 1), pcs, n * sizeof(*pcs));
    atomic_store_explicit(chunk, (uint64_t)hash << 32 | n, memory_order_release);
    return (uint32_t)begin;
}

/*
 * Looks into the window of one table, and puts the stack into its first empty slot.  `*fresh` is
 * where this call has written the stack, 0 so far.  True: *ret is the id, 0 where there is no
 * memory.
 */
static bool look_in(_Atomic uint64_t *slots, unsigned bits, uint64_t hash, const uint64_t *pcs,
                    unsigned n, uint32_t *ret)
{
    uint32_t tag = (uint32_t)(hash >> 32);
    uint64_t mask = ((uint64_t)1 << bits) - 1;

    for (unsigned i = 0; i < WINDOW; i++) {
        _Atomic uint64_t *slot = &slots[(hash + i) & mask];
        uint64_t seen = atomic_load_explicit(slot, memory_order_acquire);

        if (seen == 0) {
            uint32_t id = write_stack(tag, pcs, n);

            *ret = id;
            if (id == 0)
                return true;
            if (atomic_compare_exchange_strong(slot, &seen, (uint64_t)tag << 32 | id)) {
                atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
                return true;
            }
        }
        *ret = (uint32_t)seen;
        if (seen >> 32 == tag && is(*ret, tag, pcs, n))
            return true;
    }
    return false;
}

uint32_t kiln_in_stack_id(const uint64_t *pcs, unsigned n)
{
    uint64_t hash = hash_of(pcs, n);
    uint32_t id;

    if (n == 0 || n > KILN_IN_DEPTH_MAX)
        return 0;
    for (unsigned i = 0; i < TABLES; i++) {
        _Atomic uint64_t *slots = made(&tables[i], table_bytes(i));

        if (!slots)
            return 0;
        if (look_in(slots, FIRST_BITS + i, hash, pcs, n, &id))
            return id;
    }
    return 0;
}

unsigned kiln_in_stack_get(uint32_t id, const uint64_t **ret_pcs)
{
    _Atomic uint64_t *words = at(id);

    if (!words)
        return 0;
    *ret_pcs = (const uint64_t *)(words + 1);
    return (uint32_t)atomic_load_explicit(words, memory_order_acquire);
}

uint32_t kiln_in_stack_count(void)
{
    return atomic_load_explicit(&count, memory_order_relaxed);
}

uint64_t kiln_in_stack_bytes(void)
{
    uint64_t bytes = atomic_load_explicit(&next_word, memory_order_relaxed) * sizeof(uint64_t);

    for (unsigned i = 0; i < TABLES; i++)
        bytes += atomic_load(&tables[i]) ? table_bytes(i) : 0;
    return bytes;
}

void kiln_in_stack_forget(void)
{
    for (unsigned i = 0; i < TABLES; i++) {
        if (tables[i])
            kiln_in_unmap((void *)tables[i], table_bytes(i));
        tables[i] = NULL;
    }
    for (unsigned i = 0; i < CHUNKS; i++) {
        if (chunks[i])
            kiln_in_unmap((void *)chunks[i], CHUNK_WORDS * sizeof(uint64_t));
        chunks[i] = NULL;
    }
    next_word = 1;
    count = 0;
}
