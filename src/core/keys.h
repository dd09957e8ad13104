/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys - lists of numbers, each kept once: which resource, scope or profile is the same as one that
 * was met before, where "the same" is a list of indexes that are equal.
 *
 *   kiln_keys_add(keys, b, attrs);
 *   kiln_keys_add(keys, b, schema_url);
 *   found = kiln_keys_take(keys, b);     == the count before: it is new
 *
 * Memory is charged to a builder, and failures stick there.
 * Threads: one owner at a time.
 */
#ifndef KILN_CORE_KEYS_H
#define KILN_CORE_KEYS_H

#include "core/builder_int.h"

/* Zero is empty. */
struct kiln_keys {
    struct kiln_intern index;
    struct kiln_range *ranges;
    uint32_t *numbers;
    uint32_t *key; /* the one being written */
    uint32_t n, n_numbers, n_key, cap_ranges, cap_numbers, cap_key;
};

/* Appends a number to the key being written. */
static inline void kiln_keys_add(struct kiln_keys *keys, struct kiln_builder *b, uint32_t number)
{
    if (kiln_builder_room(b, (void **)&keys->key, &keys->cap_key, (uint64_t)keys->n_key + 1,
                          sizeof(*keys->key)))
        keys->key[keys->n_key++] = number;
}

static inline void kiln_keys_add64(struct kiln_keys *keys, struct kiln_builder *b, uint64_t number)
{
    kiln_keys_add(keys, b, (uint32_t)number);
    kiln_keys_add(keys, b, (uint32_t)(number >> 32));
}

/* Finds the written key, or adds it; the next one begins. */
uint32_t kiln_keys_take(struct kiln_keys *keys, struct kiln_builder *b);

void kiln_keys_done(struct kiln_keys *keys, struct kiln_builder *b);

#endif /* KILN_CORE_KEYS_H */
