/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shelf - names that were found once, on disk: they survive restarts and are shared by all agents
 * of a host that run as the same user.
 *
 * One file for each build id, below one directory, bounded in all; what was not used for longest
 * goes first.  Files are only ever replaced as a whole, so that readers never wait and what is
 * mapped stays as it is; a damaged one is removed and made anew (docs/formats/symbol-cache.md).
 * Without room on the disk, or without the right to write, names are only not kept.
 *
 * What is put is written some time later: when there is enough of it, after a while, and on
 * closing.  A process that is killed loses what it put since.
 *
 * Threads: one owner at a time; any number of processes.
 */
#ifndef KILN_SYMBOL_SHELF_H
#define KILN_SYMBOL_SHELF_H

#include "symbol/resolver.h"

struct kiln_shelf_opts {
    const char *directory; /* made with mode 0700 where it is missing */
    uint64_t max_bytes;    /* 0: 256 MiB */
    struct kiln_metrics *metrics;
    struct kiln_log *log;
};

/* Whose names, and how good they would be if they were looked for now. */
struct kiln_shelf_key {
    struct kiln_str build_id; /* in hexadecimal */
    bool debug; /* there is a debug file: names without lines that were found without one are no
                   answer */
};

struct kiln_shelf;

/* Fails where the directory cannot be had, or where others may write to it. */
KILN_CHECK int kiln_shelf_open(const struct kiln_shelf_opts *opts, struct kiln_shelf **ret_shelf,
                               struct kiln_err *err);
/* Writes what is not written yet. */
void kiln_shelf_close(struct kiln_shelf *shelf);

/* Whether this can be a key: a build id, not a path. */
bool kiln_shelf_takes(struct kiln_str build_id);

/* 1: it is known; 0: it is not.  All of it lives until the next call. */
KILN_CHECK int kiln_shelf_get(struct kiln_shelf *shelf, const struct kiln_shelf_key *key,
                              uint64_t address, struct kiln_name *ret_name);

/*
 * Answers that are shallow are passed over, and those without a name: a copy of the program that
 * was stripped or damaged has the same build id as the one that has them.  0 or -ENOMEM.
 */
KILN_CHECK int kiln_shelf_put(struct kiln_shelf *shelf, const struct kiln_shelf_key *key,
                              const uint64_t *addresses, const struct kiln_name *names, uint32_t n);

/* Writes what is due, at most one file; cheap when nothing is. */
void kiln_shelf_turn(struct kiln_shelf *shelf);
/* Writes everything, now. */
void kiln_shelf_flush(struct kiln_shelf *shelf);

/* Bytes of memory that wait to be written. */
size_t kiln_shelf_bytes(const struct kiln_shelf *shelf);

#endif /* KILN_SYMBOL_SHELF_H */
