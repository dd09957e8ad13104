/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * context - reads which span a thread works for, from where its process keeps that (OTEP 4947): a
 * variable of each thread, which points to a record or nowhere.
 *
 *   bytes  0-15  id of the trace
 *         16-23  id of the span
 *            24  1: valid; all else: it is being written
 *            25  flags, 26-27 size of attributes, which follow: not read
 *
 * The thread stands still while it is read.  Nothing of this is to be trusted: what cannot be read,
 * or is not valid, is no span.
 *
 * A thread has its variables in blocks, one a module.  Blocks of what was there at start lie at a
 * fixed distance from the thread pointer; others are found by the thread's vector of blocks, whose
 * address is beside the thread pointer:
 *
 *   glibc   16 bytes an entry: the block, and what to free; 0 is how new the vector is, -1 has the
 *           number of entries.  A block that was not needed yet is -1
 *   musl     8 bytes an entry: the block; 0 is the number of entries
 *
 * Compiled for BPF and for user space, after kiln_walk_read() (host/walk.h).
 *
 * Threads: as whoever includes it.
 */
#ifndef KILN_HOST_BPF_CONTEXT_H
#define KILN_HOST_BPF_CONTEXT_H

#include "host/bpf/arch.h"
#include "host/bpf/record.h"

enum {
    KILN_CONTEXT_BYTES = 28,
    KILN_CONTEXT_VALID_AT = 24,
    KILN_CONTEXT_BLOCK_NONE = -1, /* glibc's */
};

static inline __attribute__((always_inline)) int
kiln_context_block(struct kiln_walk_env *env, const struct kiln_context_place *place, __u64 thread,
                   __u64 *ret_block)
{
    __u64 vector, head[4], block;
    int is_glibc = place->entry_bytes == KILN_CONTEXT_GLIBC;
    if (kiln_walk_read(env, thread + KILN_ARCH_BLOCKS_AT, &vector, sizeof(vector)) || !vector)
        return -1;
    if (is_glibc) {
        if (kiln_walk_read(env, vector - 16, head, sizeof(head)) || head[2] < place->generation)
            return -1;
    } else if (kiln_walk_read(env, vector, head, 8)) {
        return -1;
    }
    if (place->module > head[0] ||
        kiln_walk_read(env, vector + (__u64)place->module * place->entry_bytes, &block,
                       sizeof(block)) ||
        !block || block == (__u64)KILN_CONTEXT_BLOCK_NONE)
        return -1;
    *ret_block = block;
    return 0;
}

/* Where the thread has its variable; -1: it has none yet. */
static inline __attribute__((always_inline)) int
kiln_context_locate(struct kiln_walk_env *env, const struct kiln_context_place *place, __u64 thread,
                    __u64 *ret_address)
{
    __u64 base = thread;
    if (place->module && kiln_context_block(env, place, thread, &base))
        return -1;
    *ret_address = base + (__u64)place->offset;
    return 0;
}

/* The ids of the thread's span; -1, and nothing is written: it works for none. */
static inline __attribute__((always_inline)) int
kiln_context_read(struct kiln_walk_env *env, const struct kiln_context_place *place, __u64 thread,
                  struct kiln_record *to)
{
    __u64 address, pointer, ids[4];
    const __u8 *bytes = (const __u8 *)ids;
    if (kiln_context_locate(env, place, thread, &address) ||
        kiln_walk_read(env, address, &pointer, sizeof(pointer)) || !pointer ||
        kiln_walk_read(env, pointer, ids, KILN_CONTEXT_BYTES))
        return -1;
    if (bytes[KILN_CONTEXT_VALID_AT] != 1 || !(ids[0] | ids[1]) || !ids[2])
        return -1;
    __builtin_memcpy(to->trace_id, ids, sizeof(to->trace_id));
    __builtin_memcpy(to->span_id, &ids[2], sizeof(to->span_id));
    return 0;
}

#endif /* KILN_HOST_BPF_CONTEXT_H */
