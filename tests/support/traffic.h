/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traffic - a store that many threads use at once: how much was begun, how much was acknowledged,
 * who still runs, and whether anybody saw what must not be.
 *
 * Threads: everything may be called from anywhere.
 */
#ifndef KILN_TESTS_TRAFFIC_H
#define KILN_TESTS_TRAFFIC_H

#include <stdatomic.h>
#include <stdio.h>

#include "store_kit.h"

struct traffic {
    struct store_kit kit;
    _Atomic int64_t begun, acknowledged;
    _Atomic uint32_t running; /* appenders */
    _Atomic bool failed;
};

/* One of the threads; its number is below how many of its kind there are. */
struct traffic_thread {
    struct traffic *t;
    uint32_t number;
};

/* An assertion of a test must not fail in a thread of its own: notes what did. */
#define EXPECT(t, condition)                                                                       \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            atomic_store(&(t)->failed, true);                                                      \
        }                                                                                          \
    } while (0)

/* Appends to "anonymous".  Where compaction is behind, appends are told to come again: cuts may
 * outrun merges here. */
int traffic_append(struct traffic *t, struct kiln_batch *batch);

/* A thread, of a struct traffic: cuts and merges as long as anybody appends. */
void *traffic_cut(void *t);

#endif /* KILN_TESTS_TRAFFIC_H */
