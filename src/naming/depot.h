/* SPDX-License-Identifier: Apache-2.0 */
/*
 * depot - debug files on disk: by tenant, build id and kind.
 *
 *   debug/TENANT/ID.KIND        a file; ID is GNU's build id, else OpenTelemetry's hash; KIND
 *                               executable, debuginfo or dwp (naming/debug_file.h)
 *   debug/TENANT/ID.KIND.json   when it came, when it was used, its SHA-256
 *   debug/TENANT/SHA256.part    an upload that is under way: as much as has come of it
 *   debug/+shared/...           what was fetched for whoever has profiles of it
 *
 * A file is there entirely or not at all, also after kill -9 and a power cut: an upload is written,
 * synced, compared with its SHA-256 and looked at before it gets its name.  What no profile uses
 * for the time of retention goes.
 *
 * All files together, with what has come of uploads, stay within a quota, and those of a tenant
 * within the quota of a tenant: the least recently used go first, the tenant's own, and those of
 * another tenant only where that one has more than its share and this one less
 * (naming/depot_room.c).  An upload that is announced takes no room; what has come of it may go for
 * others once it rests.
 *
 * Uploads come in parts, in order.  One is known by its SHA-256, so that two who send the same file
 * do not harm each other, and one that was cut off goes on where it ended.
 *
 * Threads: everything may be called from anywhere at once.
 */
#ifndef KILN_NAMING_DEPOT_H
#define KILN_NAMING_DEPOT_H

#include "base/buf.h"
#include "base/log.h"
#include "base/metric.h"
#include "core/tenant.h"
#include "naming/debug_file.h"
#include "store/io.h"

struct kiln_depot;

struct kiln_depot_opts {
    struct kiln_io *io;          /* of the data folder; borrowed */
    uint64_t quota_bytes;        /* 0: 10 GiB */
    uint64_t tenant_quota_bytes; /* of one tenant; 0: the same */
    uint64_t min_free_bytes;     /* of the disk, beside an upload; 0: 128 MiB */
    uint64_t upload_rest_ns;     /* without a part: the upload rests; 0: ten minutes */
    struct kiln_metrics *metrics;
    struct kiln_log *log;
};

/* Looks at what is there; damaged files are removed. */
KILN_CHECK int kiln_depot_open(const struct kiln_depot_opts *opts, struct kiln_depot **ret_depot,
                               struct kiln_err *err);
void kiln_depot_close(struct kiln_depot *depot);

#define KILN_DEPOT_SHARED "+shared" /* no tenant has this name */

/* One file, as it is listed. */
struct kiln_depot_file {
    char tenant[KILN_TENANT_MAX + 1];
    struct kiln_debug_facts facts;
    char of[KILN_DEBUG_ID_MAX + 1]; /* of a dwp: the build id of its program */
    char name[128];                 /* as whoever sent it called it; "": not known */
    uint8_t sha256[32];             /* all zero: not known */
    uint64_t came_ns, used_ns;
};
/* The build id that a file is asked for by. */
const char *kiln_depot_file_id(const struct kiln_depot_file *file);

/* ---- in ---- */

struct kiln_depot_part {
    const char *tenant;
    struct kiln_str build_id; /* that the file must have */
    struct kiln_str sha256;   /* 64 digits of the whole; empty: only of an upload in one part */
    uint64_t offset, total;
    struct kiln_str bytes;
    struct kiln_str name;
};

struct kiln_depot_state {
    uint64_t received, total;
    bool complete; /* and then: */
    bool known;    /* the same file was there already */
    enum kiln_debug_kind kind;
    char build_id[KILN_DEBUG_ID_MAX + 1]; /* as kiln_depot_file_id() */
};

/*
 * One part.  What has come already is passed over.  Fills *ret_state also where -ESTALE: the part
 * begins behind what has come, `received` says where to go on.  Others: -EINVAL (parameters),
 * KILN_E_LIMIT (larger than a quota), -EDQUOT (uploads have all of a quota), -ENOSPC, -EAGAIN
 * (another part of it is being written), KILN_E_CORRUPT (not the announced SHA-256), -EKEYREJECTED
 * (not of this build id), and those of kiln_debug_inspect().  A whole file that is refused is gone.
 */
KILN_CHECK int kiln_depot_put(struct kiln_depot *depot, const struct kiln_depot_part *part,
                              struct kiln_depot_state *ret_state, struct kiln_err *err);

/*
 * A file that somebody else writes: begin gives a descriptor, and in `max` how much it may hold (at
 * most what was asked for); end takes what is in it by then, or forgets it (`keep` false).
 */
struct kiln_depot_fetch {
    int fd;
    uint64_t max;
    char path[256];
};
KILN_CHECK int kiln_depot_fetch_begin(struct kiln_depot *depot, const char *tenant, uint64_t max,
                                      struct kiln_depot_fetch *ret_fetch, struct kiln_err *err);
KILN_CHECK int kiln_depot_fetch_end(struct kiln_depot *depot, struct kiln_depot_fetch *fetch,
                                    const char *tenant, struct kiln_str build_id, bool keep,
                                    struct kiln_err *err);

/* ---- out ---- */

/* A descriptor to read from; it counts as use.  -ENOENT. */
KILN_CHECK int kiln_depot_get(struct kiln_depot *depot, const char *tenant,
                              struct kiln_str build_id, enum kiln_debug_kind kind, int *ret_fd);
/* Whether there is one, and what it has; -ENOENT. */
KILN_CHECK int kiln_depot_look(struct kiln_depot *depot, const char *tenant,
                               struct kiln_str build_id, enum kiln_debug_kind kind,
                               struct kiln_depot_file *ret_file);

/* All files of a tenant (NULL: of all), in no order.  `each` must not call the depot. */
void kiln_depot_each(struct kiln_depot *depot, const char *tenant,
                     void (*each)(void *context, const struct kiln_depot_file *file),
                     void *context);

/* Removes all files of a build id; how many there were. */
KILN_CHECK int kiln_depot_delete(struct kiln_depot *depot, const char *tenant,
                                 struct kiln_str build_id, uint32_t *ret_n, struct kiln_err *err);

/* ---- keeping ---- */

/* A profile of the tenant has code of this build id. */
void kiln_depot_use(struct kiln_depot *depot, const char *tenant, struct kiln_str build_id,
                    uint64_t now_ns);
/* Removes what was not used for so long, and uploads that nobody goes on with. */
void kiln_depot_retire(struct kiln_depot *depot, uint64_t now_ns, uint64_t age_ns);

struct kiln_depot_stats {
    uint64_t quota_bytes, used_bytes, files, uploads;
};
/* Of one tenant, or of all (NULL). */
void kiln_depot_stats(struct kiln_depot *depot, const char *tenant,
                      struct kiln_depot_stats *ret_stats);

/* Called, without locks, after a file was uploaded; NULL: nobody.  Set while nobody uploads. */
void kiln_depot_on_upload(struct kiln_depot *depot,
                          void (*uploaded)(void *context, const struct kiln_depot_file *file),
                          void *context);

#endif /* KILN_NAMING_DEPOT_H */
