/* SPDX-License-Identifier: Apache-2.0 */
/*
 * salvage - recovers what can be read of the files in aside/: damaged blocks, damaged segments of
 * the log, and profiles that no block could hold.
 *
 * Profiles go back through an append, which leaves out what the store has already: doing it twice
 * is harmless, and so is a crash.  A file that has nothing more to give is removed with its note.
 *
 * Threads: no state but the store's; one at a time for a store.
 */
#ifndef KILN_STORE_SALVAGE_H
#define KILN_STORE_SALVAGE_H

#include "base/buf.h"
#include "core/tenant.h"
#include "store/aside.h"
#include "store/engine.h"
#include "store/io.h"
#include "store/store.h"

enum kiln_salvage_state {
    KILN_SALVAGE_WHOLE,  /* all of it is in the store (or the folder) now: the file is removed */
    KILN_SALVAGE_PARTLY, /* something cannot be read: the file is kept */
    KILN_SALVAGE_FAILED, /* nothing of it can be read: likewise */
};

/* The result for one file; counts are of profiles. */
struct kiln_salvage_file {
    char name[KILN_ASIDE_PATH_MAX]; /* in aside/ */
    char tenant[KILN_TENANT_MAX + 1];
    uint64_t recovered;  /* are in the store now, and were not before */
    uint64_t present;    /* were there already */
    uint64_t too_old;    /* for retention */
    uint64_t unreadable; /* as far as they can be counted */
    enum kiln_salvage_state state;
    bool removed;
    struct kiln_err why; /* of the first damage */
};

struct kiln_salvage {
    struct kiln_salvage_file *files;
    uint32_t n, cap;
    struct kiln_budget budget;
};

struct kiln_salvage_opts {
    bool dry_run;           /* only says what would be done */
    bool discard;           /* removes also what cannot be read */
    struct kiln_str tenant; /* only files of this one; empty: all */
    size_t memory_bytes;    /* for reading; 0: 256 MiB */
    kiln_follow *follow;    /* only for kiln_salvage_extract(); else the store's */
    void (*progress)(void *context, uint32_t done, uint32_t all); /* NULL: none */
    void *context;
};

/* Into the store.  Damage is no failure: it is in `ret`, which kiln_salvage_done() frees. */
KILN_CHECK int kiln_store_salvage(struct kiln_engine *engine, const struct kiln_salvage_opts *opts,
                                  struct kiln_salvage *ret, struct kiln_err *err);

/*
 * Into batches that `each` takes (a negative answer ends it), whatever the store has already; no
 * store need be open, and nothing is changed.
 */
struct kiln_salvaged {
    const char *name; /* of the file in aside/ */
    const char *tenant;
    uint64_t received_ns;     /* 0: not known */
    struct kiln_batch *batch; /* borrowed */
};
KILN_CHECK int kiln_salvage_extract(struct kiln_io *io, const struct kiln_salvage_opts *opts,
                                    int (*each)(void *context, const struct kiln_salvaged *batch,
                                                struct kiln_err *err),
                                    void *context, struct kiln_salvage *ret, struct kiln_err *err);

void kiln_salvage_done(struct kiln_salvage *salvage);
/* The worst of all files. */
enum kiln_salvage_state kiln_salvage_worst(const struct kiln_salvage *salvage);
/* As a JSON object: docs/formats/cli-json.md. */
void kiln_salvage_format(const struct kiln_salvage *salvage, struct kiln_buf *out);

#endif /* KILN_STORE_SALVAGE_H */
