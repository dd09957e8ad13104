/* SPDX-License-Identifier: Apache-2.0 */
/*
 * depot_int - the inside of naming/depot.h.
 *
 *   depot.c          the list of files; retention, looking up
 *   depot_room.c     what each tenant has; quotas
 *   depot_load.c     what is found at the start; the small file beside each file
 *   depot_upload.c   uploads: parts, and from the last part to a file
 *
 * Threads: `lock` protects the lists; files are written and synced without it, by whoever made the
 * upload busy.
 */
#ifndef KILN_NAMING_DEPOT_INT_H
#define KILN_NAMING_DEPOT_INT_H

#include <pthread.h>

#include "base/mem.h"
#include "naming/depot.h"

enum {
    KILN_DEPOT_FILES_MAX = 16384,
    KILN_DEPOT_UPLOADS_MAX = 256,
    KILN_DEPOT_UPLOADS_TENANT = 32, /* of one tenant at once */
    KILN_DEPOT_PATH_MAX = 512,
};

struct kiln_depot_entry {
    struct kiln_depot_file file;
    uint64_t saved_ns; /* `used_ns` as the disk has it */
};

struct kiln_depot_upload {
    char tenant[KILN_TENANT_MAX + 1];
    char sha256[65];
    uint64_t received;
    uint64_t held;  /* what it is charged with: received, or what is being written too */
    uint64_t total; /* 0: found at the start, not known yet */
    uint64_t touched_ns;
    bool busy; /* somebody writes, or looks at the whole */
};

/* Usage of one tenant. */
struct kiln_depot_had {
    uint64_t bytes;
    uint32_t files, uploads;
};

struct kiln_depot_owner {
    char tenant[KILN_TENANT_MAX + 1];
    struct kiln_depot_had had; /* never nothing */
};

struct kiln_depot {
    struct kiln_depot_opts opts;
    pthread_mutex_t lock;
    struct kiln_depot_entry **files;
    struct kiln_depot_upload *uploads;
    struct kiln_depot_owner *owners;
    uint32_t n_files, cap_files, n_uploads, cap_uploads, n_owners, cap_owners;
    uint64_t bytes; /* of all files, and of uploads so far */
    struct kiln_budget budget;
    void (*uploaded)(void *context, const struct kiln_depot_file *file);
    void *context;
    struct kiln_metric *evicted, *retired, *taken, *refused;
};

/* ---- depot.c; all with the lock ---- */

KILN_CHECK int kiln_depot_add(struct kiln_depot *depot, const struct kiln_depot_file *file);
KILN_CHECK int kiln_depot_remove_at(struct kiln_depot *depot, uint32_t i);
/* A file that has just got its name: replaces what was there under it. */
KILN_CHECK int kiln_depot_replace(struct kiln_depot *depot, const struct kiln_depot_file *file);
/* NULL: none. */
struct kiln_depot_entry *kiln_depot_find(struct kiln_depot *depot, const char *tenant,
                                         struct kiln_str build_id, enum kiln_debug_kind kind);

/* ---- depot_room.c; all with the lock ---- */

/* Fails, changing nothing, only where the tenant had nothing. */
KILN_CHECK int kiln_depot_charge(struct kiln_depot *depot, const char *tenant,
                                 struct kiln_depot_had had);
void kiln_depot_release(struct kiln_depot *depot, const char *tenant, struct kiln_depot_had had);
struct kiln_depot_had kiln_depot_had(const struct kiln_depot *depot, const char *tenant);
/* Whether a file of this size may come at all, of which so much is missing; nothing goes for it. */
KILN_CHECK int kiln_depot_check_total(struct kiln_depot *depot, const char *tenant, uint64_t total,
                                      uint64_t missing, struct kiln_err *err);
/* Room for so many bytes more, on the disk and in the quotas; others go for it. */
KILN_CHECK int kiln_depot_make_room(struct kiln_depot *depot, const char *tenant, uint64_t bytes,
                                    struct kiln_err *err);
/* A place for one more upload; -EDQUOT. */
KILN_CHECK int kiln_depot_make_place(struct kiln_depot *depot, const char *tenant);

/* ---- depot_load.c ---- */

KILN_CHECK int kiln_depot_load(struct kiln_depot *depot, struct kiln_err *err);
/* What an open file is. */
KILN_CHECK int kiln_depot_inspect(struct kiln_io *io, int fd, struct kiln_debug_facts *ret_facts,
                                  struct kiln_err *err);
/* debug/TENANT, made if it is not there. */
KILN_CHECK int kiln_depot_folder(struct kiln_depot *depot, const char *tenant);
void kiln_depot_path(const struct kiln_depot_file *file, const char *ending,
                     char ret_path[KILN_DEPOT_PATH_MAX]);
KILN_CHECK int kiln_depot_save(struct kiln_depot *depot, const struct kiln_depot_file *file);

/* ---- depot_upload.c ---- */

void kiln_depot_upload_path(const struct kiln_depot_upload *upload,
                            char ret_path[KILN_DEPOT_PATH_MAX]);
void kiln_depot_drop_upload(struct kiln_depot *depot, struct kiln_depot_upload *upload);
/* Gives up what nobody went on with since. */
void kiln_depot_forget_uploads(struct kiln_depot *depot, uint64_t before_ns);

#endif /* KILN_NAMING_DEPOT_INT_H */
