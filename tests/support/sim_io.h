/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_io - a file system in memory that loses power, space and bits when told to.
 *
 * A file has what is durable and a list of writes since its last sync; a name made, renamed or
 * removed is durable only after its folder was synced (syncing the file does not do it).  A power
 * cut lets each of these survive wholly, in part or not at all: writes torn at sectors of 512
 * bytes, length grown over zeros or garbage, renames without the content they were to commit,
 * removals before renames.  After a failed sync the writes are gone from the cache as far as any
 * later sync knows, though reading still shows them: a retry that succeeds proves nothing.
 *
 * Everything is decided by seeds, so that a run with one thread repeats exactly.
 * Threads: safe from anywhere, but for new, cut and free.  Uses malloc itself: kiln_mem_fail_at()
 * and kiln_mem_live() do not see it.
 */
#ifndef KILN_TESTS_SIM_IO_H
#define KILN_TESTS_SIM_IO_H

#include "store/io.h"

struct kiln_io *kiln_sim_new(void);
void kiln_sim_free(struct kiln_io *io);

/* Power fails now, if it has not before, and comes back: what is left is durable, descriptors are
 * void. */
void kiln_sim_cut(struct kiln_io *io, uint64_t seed);

/* Power fails during the n-th operation that changes something from now on (0: never): it and all
 * after it answer -EIO, until kiln_sim_cut(). */
void kiln_sim_cut_at(struct kiln_io *io, uint64_t n);
bool kiln_sim_is_dead(struct kiln_io *io);
/* Operations that changed something, and calls of any kind, so far. */
uint64_t kiln_sim_operations(struct kiln_io *io);
uint64_t kiln_sim_calls(struct kiln_io *io);

/* The n-th call from now on fails with this code (a write: after half of it); 0: none. */
void kiln_sim_fail_at(struct kiln_io *io, uint64_t n, int code);
/* What that call was, for messages: "unlink wal/x.log"; "" before.  Not while others call. */
const char *kiln_sim_last_failure(struct kiln_io *io);
/* The next `n` syncs, of files and folders, fail. */
void kiln_sim_fail_syncs(struct kiln_io *io, uint32_t n, int code);
/* Truncating fails from now on. */
void kiln_sim_fail_truncate(struct kiln_io *io, int code);
/* Syncs answer 0 and do nothing: a disk that lies. */
void kiln_sim_lie(struct kiln_io *io, bool lie);
/* Bytes of all files together; UINT64_MAX: no limit. */
void kiln_sim_limit(struct kiln_io *io, uint64_t bytes);
uint64_t kiln_sim_used(struct kiln_io *io);

/* Turns one bit of a file, on the disk and in the cache.  False: it has no such byte. */
bool kiln_sim_flip(struct kiln_io *io, const char *path, uint64_t offset, int bit);

/* The generator the simulator uses: for tests that want to be as random, and as repeatable. */
uint64_t kiln_sim_random(uint64_t *state);

#endif /* KILN_TESTS_SIM_IO_H */
