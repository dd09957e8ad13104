/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aside - the files in aside/, and which answers lack what is in them.
 *
 * Beside a file that held profiles stands a note, FILE.json, with its tenant, its times and what
 * was lost.  Where a note is missing (versions up to 0.1 wrote none), the file says it itself, or
 * its name does.  An answer of that tenant and time mentions the file until it is salvaged or
 * removed; the list is renewed about once a minute.
 *
 * Threads: as noted; a struct of zeros is empty, its lock must be initialised.
 */
#ifndef KILN_STORE_ASIDE_H
#define KILN_STORE_ASIDE_H

#include <pthread.h>

#include "base/err.h"
#include "base/mem.h"
#include "core/tenant.h"

struct kiln_store;
struct kiln_block;

#define KILN_ASIDE_PATH_MAX 256u

struct kiln_aside_entry {
    char name[KILN_ASIDE_PATH_MAX];   /* in aside/ */
    char tenant[KILN_TENANT_MAX + 1]; /* "": any */
    uint64_t min_ns, max_ns;          /* of what may be missing from answers */
    uint64_t profiles;                /* that are missing; 0: not known */
};

struct kiln_aside {
    pthread_mutex_t lock;
    struct kiln_aside_entry *all;
    uint32_t n, cap;
    struct kiln_budget budget;
};

void kiln_aside_init(struct kiln_aside *aside);
void kiln_aside_done(struct kiln_aside *aside);

/* Removes what a crash left half written; before anything else is done in aside/. */
void kiln_aside_sweep(struct kiln_store *store);
/* Reads aside/ again.  Notes without a file are removed, unless the store is read only. */
KILN_CHECK int kiln_aside_load(struct kiln_store *store);
/* Calls `each` for what may be missing from answers of a tenant. */
void kiln_aside_each(struct kiln_aside *aside, const char *tenant,
                     void (*each)(void *context, uint64_t min_ns, uint64_t max_ns), void *context);

/* What the list has of a file; false if it does not have it. */
bool kiln_aside_get(struct kiln_aside *aside, const char *name, struct kiln_aside_entry *ret_entry);

/* What is known of a file for its note. */
struct kiln_aside_note {
    struct kiln_aside_entry entry;
    const char *why;              /* a sentence; may be NULL */
    struct kiln_str services[16]; /* of what was lost: the first of them */
    uint32_t n_services;
    bool all_lost; /* else the store still has the rest of the file's profiles */
};
/* Writes the note of a file, which the list has from now on. */
KILN_CHECK int kiln_aside_put(struct kiln_store *store, const struct kiln_aside_note *note);
/* The file of a block, its tenant and times. */
void kiln_aside_note_block(struct kiln_aside_note *note, const struct kiln_block *block);
/* Adds a service, unless it is there, or there are too many. */
void kiln_aside_note_service(struct kiln_aside_note *note, struct kiln_str service);
/* Whether the note of a file says that the rest of its profiles is in the store still; times are
 * those of the part that is not. */
bool kiln_aside_is_partial(struct kiln_store *store, const char *name,
                           struct kiln_aside_entry *ret_entry);

/* Removes a file of aside/ and its note. */
KILN_CHECK int kiln_aside_remove(struct kiln_store *store, const char *name);

/* "blocks/t/x.kb" -> "t-x.kb" */
void kiln_aside_name(const char *path, char ret_name[KILN_ASIDE_PATH_MAX]);
/* The tenant in a name, TENANT-WORD.ENDING; "" if there is none. */
void kiln_aside_tenant(const char *name, char ret_tenant[KILN_TENANT_MAX + 1]);
/* Whether a file held profiles, by its name: a block, a segment of the log, OTLP. */
bool kiln_aside_has_profiles(const char *name);

#endif /* KILN_STORE_ASIDE_H */
