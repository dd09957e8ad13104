/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_kit - a store on a simulated disk, and appends that are waited for.
 *
 * Helpers fail the test on any error they do not return.
 */
#ifndef KILN_TESTS_STORE_KIT_H
#define KILN_TESTS_STORE_KIT_H

#include "sim_io.h"
#include "store/store.h"

struct store_kit {
    struct kiln_io *io;
    struct kiln_store_opts opts; /* for the next open; `io` is filled in */
    struct kiln_engine *engine;  /* NULL: closed */
    uint64_t now_ns;             /* received_ns of appends */
};

/* A disk and an empty store that cuts only when told; the clock stands at `now_ns`. */
void kit_init(struct store_kit *kit, uint64_t now_ns);
void kit_done(struct store_kit *kit);

void kit_open(struct store_kit *kit);
void kit_close(struct store_kit *kit);
void kit_reopen(struct store_kit *kit);
/* Power fails and comes back; the store is closed. */
void kit_cut_power(struct store_kit *kit, uint64_t seed);

/* What became of an append. */
struct kit_outcome {
    int code;
    uint32_t rejected;
    struct kiln_err err;
};
/* Appends what stays the caller's, and waits until the store has said how it went. */
struct kit_outcome kit_append(struct store_kit *kit, const struct kiln_append *append);
/* The same for a batch alone. */
struct kit_outcome kit_append_to(struct store_kit *kit, const char *tenant,
                                 struct kiln_batch *batch);
/* The same for "anonymous", a batch that it takes over, and success. */
void kit_put(struct store_kit *kit, struct kiln_batch *batch);

/* All of "anonymous" in a time (0, 0: all); the caller unrefs. */
struct kiln_batch *kit_select(struct store_kit *kit, uint64_t start_ns, uint64_t end_ns);
struct kiln_engine_stats kit_stats(struct store_kit *kit);
/* What a selection draws, as collapsed stacks; lives until the next call. */
const char *kit_drawing(struct store_kit *kit, uint64_t start_ns, uint64_t end_ns);

#endif /* KILN_TESTS_STORE_KIT_H */
