/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_int - the simulated disk behind sim_io.h: files (sim_file.c) and names (sim_names.c).
 */
#ifndef KILN_TESTS_SIM_INT_H
#define KILN_TESTS_SIM_INT_H

#include <pthread.h>

#include "sim_io.h"

enum { SIM_PATH = 256, SIM_SECTOR = 512 };

/* ---- content ---- */

struct sim_bytes {
    uint8_t *ptr;
    uint64_t n, cap;
};

/* A write or, without data, a truncation. */
struct sim_write {
    struct sim_write *next;
    uint64_t offset; /* of a truncation: the new size */
    uint64_t n;
    uint8_t data[];
};

struct sim_file {
    struct sim_file *next;    /* of all files */
    struct sim_bytes now;     /* what reading shows */
    struct sim_bytes durable; /* what the disk has */
    struct sim_write *pending, **pending_end;
    uint32_t open;
    bool used; /* while collecting */
};

enum sim_fate { SIM_KEEP, SIM_LOSE, SIM_MIX };

struct sim_file *sim_file_new(void);
void sim_file_free(struct sim_file *file);
void sim_file_write(struct sim_file *file, const void *data, uint64_t n, uint64_t offset);
void sim_file_truncate(struct sim_file *file, uint64_t size);
/* Everything pending becomes durable. */
void sim_file_sync(struct sim_file *file);
/* What is pending survives by its fate, or by chance, and nothing is pending any more. */
void sim_file_settle(struct sim_file *file, enum sim_fate fate, uint64_t *random);
/* The cache is empty: what reading shows is what the disk has. */
void sim_file_forget(struct sim_file *file);

/* ---- names ---- */

struct sim_name {
    char path[SIM_PATH];
    struct sim_file *file; /* NULL: a folder */
};

struct sim_tree {
    struct sim_name *names;
    uint32_t n, cap;
};

/* A change of names that is not durable yet.  A rename within a folder is one change; between
 * folders it is an addition and a removal, of which the removal never survives alone. */
struct sim_change {
    struct sim_change *next;
    char remove[SIM_PATH]; /* "": nothing */
    char add[SIM_PATH];
    struct sim_file *file;    /* added; NULL: a folder */
    struct sim_change *needs; /* lost with this one */
    bool lost;
};

struct sim_name *sim_tree_find(struct sim_tree *tree, const char *path);
void sim_tree_put(struct sim_tree *tree, const char *path, struct sim_file *file);
void sim_tree_remove(struct sim_tree *tree, const char *path);
void sim_tree_apply(struct sim_tree *tree, const struct sim_change *change);
/* Removes names whose folder is not there. */
void sim_tree_prune(struct sim_tree *tree);
void sim_tree_copy(struct sim_tree *to, const struct sim_tree *from);
/* Whether a path is directly in a folder; "." is the root. */
bool sim_is_in(const char *path, const char *folder);

/* ---- the disk ---- */

struct sim_descriptor {
    int fd;
    struct sim_file *file;
    struct sim_descriptor *next;
};

struct sim {
    struct kiln_io table;
    pthread_mutex_t lock;
    struct sim_file *files;
    struct sim_tree now, durable;
    struct sim_change *changes, **changes_end;
    struct sim_descriptor *descriptors;
    int next_fd;
    uint64_t limit;
    uint64_t operations, calls;
    uint64_t cut_at, fail_at; /* counts down; 0: never */
    int fail_code, sync_code, truncate_code;
    uint32_t fail_syncs;
    char last_failure[SIM_PATH + 16];
    bool dead, lie;
    uint64_t random;
};

extern const struct kiln_io sim_table;

static inline struct sim *sim_of(struct kiln_io *io)
{
    return (struct sim *)(void *)io;
}

/* Frees files that nothing refers to. */
void sim_collect(struct sim *sim);
/* Of files that have a name or are open. */
uint64_t sim_used_bytes(struct sim *sim);

#endif /* KILN_TESTS_SIM_INT_H */
