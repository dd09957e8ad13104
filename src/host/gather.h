/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather - samples of an interval, equal ones added up: (process, thread, stack, what it did) ->
 * how many, or how long.
 *
 * A frame is a place in code that outlives the process: an object and an address of its own, a
 * kernel address, or JIT code by its mapping.  Holding a frame holds its object; a gathering holds
 * the identities of its processes, so that it can be published when they are gone.
 *
 * Threads: filled by the reader's thread, then given to the publisher's as a whole.
 */
#ifndef KILN_HOST_GATHER_H
#define KILN_HOST_GATHER_H

#include "core/batch.h"
#include "host/process.h"
#include "host/wait_reason.h"

enum kiln_frame_kind {
    KILN_FRAME_NATIVE, /* object, and an address of its own */
    KILN_FRAME_KERNEL, /* address as the kernel has it, already moved into the calling instruction
                        */
    KILN_FRAME_JIT,    /* `address` of the process, for its perf-map or jitdump alone; `map`; the
                        object is the jitdump, NULL: there is none */
    KILN_FRAME_LOST,   /* an address of which nothing is known: "[unknown]" */
};

struct kiln_gframe {
    uint64_t address;
    struct kiln_object *object;
    uint32_t map; /* JIT: kiln_map.id */
    uint32_t kind;
};

struct kiln_gstack {
    uint64_t hash;
    uint32_t first, n; /* of frames: leaf first */
};

struct kiln_gsample {
    int64_t value;    /* CPU: samples; WAIT: nanoseconds */
    uint32_t process; /* of identities */
    uint32_t hz;      /* CPU: the rate of this process; WAIT: 0 */
    uint32_t stack;
    uint32_t tid;
    uint32_t since_s; /* WAIT that is older than this batch: second in which it began, monotonic */
    uint8_t kind;     /* enum kiln_record_kind */
    uint8_t end;      /* enum kiln_end: a stack that is not complete says so */
    uint8_t state;    /* WAIT: enum kiln_thread_state */
    uint8_t reason;   /* WAIT: enum kiln_wait_reason */
    char comm[KILN_COMM_LEN];
    struct kiln_link link; /* the span that it was in; zeroes: none */
};

struct kiln_gathering {
    uint64_t begin_unix_ns, end_unix_ns;
    uint64_t waits_begin_unix_ns; /* where that is earlier: waits stand for all since then */
    uint64_t to_unix_ns;          /* what makes a Unix time of a monotonic one */
    struct kiln_identity **identities;
    struct kiln_gframe *frames;
    struct kiln_gstack *stacks;
    struct kiln_gsample *samples; /* sorted by process, kind, rate and age */
    uint32_t n_identities, n_frames, n_stacks, n_samples;
    uint64_t n_counted; /* samples that were added up */
};
void kiln_gathering_free(struct kiln_gathering *gathering);

struct kiln_gather;
/* `bytes_max`: of one interval, with the identities that it holds; what does not fit is counted as
 * lost.  0: 64 MiB. */
KILN_CHECK int kiln_gather_new(size_t bytes_max, struct kiln_gather **ret_gather);
void kiln_gather_free(struct kiln_gather *gather);

struct kiln_gather_sample {
    struct kiln_identity *identity;
    uint32_t tid;
    const char *comm;
    const struct kiln_gframe *frames; /* kernel's, then user's, leaf first */
    uint32_t n_frames;
    uint8_t end, kind, state, reason;
    uint32_t hz, since_s;
    int64_t value;
    struct kiln_link link;
};
size_t kiln_gather_bytes(const struct kiln_gather *gather);
/* -ENOMEM, KILN_E_LIMIT: not taken. */
KILN_CHECK int kiln_gather_add(struct kiln_gather *gather, const struct kiln_gather_sample *sample);
/* What was gathered, and begins anew.  NULL in *ret: nothing was. */
KILN_CHECK int kiln_gather_take(struct kiln_gather *gather, struct kiln_gathering **ret_gathering);

#endif /* KILN_HOST_GATHER_H */
