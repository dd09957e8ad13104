/* SPDX-License-Identifier: Apache-2.0 */
/*
 * harvest - what libkiln writes into a folder of its own, taken out while programs still write.
 *
 * What is counted since the last file (allocations, waits) adds up; of what is in use now, only
 * each process' last word stays.
 *
 * Threads: only the main thread.
 */
#ifndef KILN_CLI_HARVEST_H
#define KILN_CLI_HARVEST_H

#include "base/mem.h"
#include "cli/cli.h"
#include "cli/tape.h"
#include "core/batch.h"

/* Which of the values are wanted. */
#define KILN_HARVEST_ALLOC (1u << 0)
#define KILN_HARVEST_HEAP  (1u << 1)
#define KILN_HARVEST_LOCK  (1u << 2)

enum { KILN_HARVEST_FOLDER = 64 };

struct kiln_harvest_heap;

struct kiln_harvest {
    const struct kiln_cli *cli;
    uint32_t wanted; /* KILN_HARVEST_* */
    char folder[KILN_HARVEST_FOLDER];
    struct kiln_budget budget;
    struct kiln_tape tape;
    struct kiln_harvest_heap *heaps; /* by process */
    uint32_t n_heaps, cap_heaps;
    uint32_t files;
    uint64_t lost; /* samples, as the library counts them: since its start */
};

/* Makes the folder. */
KILN_CHECK int kiln_harvest_open(struct kiln_harvest *harvest, const struct kiln_cli *cli,
                                 uint32_t wanted, struct kiln_err *err);
/* Removes it, with all that is in it. */
void kiln_harvest_close(struct kiln_harvest *harvest);

/* Takes the files that are complete. */
KILN_CHECK int kiln_harvest_gather(struct kiln_harvest *harvest, struct kiln_err *err);

/* Everything as one batch, the caller's; NULL in *ret_batch: nothing came. */
KILN_CHECK int kiln_harvest_take(struct kiln_harvest *harvest, struct kiln_batch **ret_batch,
                                 struct kiln_err *err);

#endif /* KILN_CLI_HARVEST_H */
