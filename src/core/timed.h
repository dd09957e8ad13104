/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timed - samples in the order of their timestamps, with their threads, and their stacks as one
 * tree: what ran when.
 *
 * A row is one observation.  Where there are more than are wanted, every n-th of them stays, so
 * that any part of the time keeps its share.  Samples without a timestamp are only counted.
 *
 * Threads are told apart by resource, id and name.  The first there is of thread.id, thread_id and
 * tid is the id, and the first of thread.name, thread_name and thread the name, of the attributes
 * of the sample, the profile, the scope and the resource.
 *
 * Threads: immutable once made.
 */
#ifndef KILN_CORE_TIMED_H
#define KILN_CORE_TIMED_H

#include "base/arena.h"
#include "base/err.h"
#include "core/batch.h"
#include "core/flame.h"
#include "core/type.h"

enum { KILN_THREAD_KEYS = 3 };
extern const struct kiln_str kiln_thread_id_keys[KILN_THREAD_KEYS];
extern const struct kiln_str kiln_thread_name_keys[KILN_THREAD_KEYS];

struct kiln_timed_row {
    uint64_t time_ns;
    int64_t value;
    uint32_t node; /* where the stack ends; 0: it is empty */
    uint32_t thread;
};

struct kiln_timed_thread {
    struct kiln_str id, name; /* either may be "" */
};

/* A function in the context of its callers; 0 is the root, whose parent is itself. */
struct kiln_timed_node {
    uint32_t name, parent; /* a parent comes before its children */
};

struct kiln_timed {
    struct kiln_timed_row *rows; /* by time */
    struct kiln_timed_thread *threads;
    struct kiln_timed_node *nodes;
    struct kiln_flame_name *names; /* [0]: "total"; texts are borrowed from the batch */
    uint32_t n_rows, n_threads, n_nodes, n_names;
    uint64_t n_all, n_timed; /* observations; of these, with a time */
};

struct kiln_timed_opts {
    const struct kiln_type *type; /* NULL: that of the first profile */
    uint32_t limit;               /* rows; 0: all */
    size_t memory_bytes;          /* 0: 1 GiB */
};

/* 0, KILN_E_LIMIT or -ENOMEM.  Holds a reference to the batch. */
KILN_CHECK int kiln_timed_new(struct kiln_batch *batch, const struct kiln_timed_opts *opts,
                              struct kiln_timed **ret_timed, struct kiln_err *err);
void kiln_timed_free(struct kiln_timed *timed);

#endif /* KILN_CORE_TIMED_H */
