/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room for what comes.  Only bytes that have come take room; what an upload announces (its total)
 * is compared with the quotas and the disk, and takes nothing.
 *
 * A tenant beyond its own quota gives up its own files.  Where all tenants together are beyond the
 * quota, each has a share: the quota divided by the number of tenants that have anything.  A tenant
 * beyond its share gives up its own files; one within its share takes room from the tenant that has
 * the most, which is then beyond its share.  So no tenant can push another below its share.
 *
 * A tenant gives up stalled uploads first, then the files that were used least
 * recently, and for another tenant also uploads that are under way.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "naming/depot_int.h"

/* ---- what each tenant has; with the lock ---- */

static struct kiln_depot_owner *find_owner(const struct kiln_depot *depot, const char *tenant)
{
    for (uint32_t i = 0; i < depot->n_owners; i++)
        if (strcmp(depot->owners[i].tenant, tenant) == 0)
            return &depot->owners[i];
    return NULL;
}

int kiln_depot_charge(struct kiln_depot *depot, const char *tenant, struct kiln_depot_had had)
{
    struct kiln_depot_owner *owner = find_owner(depot, tenant);
    int r;

    if (!owner) {
        r = kiln_grow(&depot->budget, (void **)&depot->owners, &depot->cap_owners,
                      depot->n_owners + UINT64_C(1), sizeof(*depot->owners),
                      KILN_DEPOT_FILES_MAX + KILN_DEPOT_UPLOADS_MAX);
        if (r < 0)
            return r;
        owner = &depot->owners[depot->n_owners++];
        *owner = (struct kiln_depot_owner){.had = {0}};
        snprintf(owner->tenant, sizeof(owner->tenant), "%s", tenant);
    }
    owner->had.bytes += had.bytes;
    owner->had.files += had.files;
    owner->had.uploads += had.uploads;
    depot->bytes += had.bytes;
    return 0;
}

void kiln_depot_release(struct kiln_depot *depot, const char *tenant, struct kiln_depot_had had)
{
    struct kiln_depot_owner *owner = find_owner(depot, tenant);

    depot->bytes -= had.bytes;
    owner->had.bytes -= had.bytes;
    owner->had.files -= had.files;
    owner->had.uploads -= had.uploads;
    if (owner->had.files + owner->had.uploads == 0)
        *owner = depot->owners[--depot->n_owners];
}

struct kiln_depot_had kiln_depot_had(const struct kiln_depot *depot, const char *tenant)
{
    const struct kiln_depot_owner *owner = find_owner(depot, tenant);

    return owner ? owner->had : (struct kiln_depot_had){0};
}

/* ---- giving up ---- */

static bool is_resting(const struct kiln_depot *depot, const struct kiln_depot_upload *upload,
                       uint64_t now_ns)
{
    return !upload->busy && upload->touched_ns < now_ns &&
           now_ns - upload->touched_ns >= depot->opts.upload_rest_ns;
}

/* The upload of a tenant that was touched least recently and is not being written; NULL: none. */
static struct kiln_depot_upload *find_upload(struct kiln_depot *depot, const char *tenant,
                                             bool resting)
{
    struct kiln_depot_upload *found = NULL;
    uint64_t now_ns = kiln_clock_unix_ns();

    for (uint32_t i = 0; i < depot->n_uploads; i++) {
        struct kiln_depot_upload *upload = &depot->uploads[i];

        if (upload->busy || strcmp(upload->tenant, tenant) != 0 ||
            (resting && !is_resting(depot, upload, now_ns)))
            continue;
        if (!found || upload->touched_ns < found->touched_ns)
            found = upload;
    }
    return found;
}

/* The file of a tenant that was used least recently; depot->n_files: it has none. */
static uint32_t find_file(const struct kiln_depot *depot, const char *tenant)
{
    uint32_t found = depot->n_files;

    for (uint32_t i = 0; i < depot->n_files; i++) {
        const struct kiln_depot_file *file = &depot->files[i]->file;

        if (strcmp(file->tenant, tenant) == 0 &&
            (found == depot->n_files || file->used_ns < depot->files[found]->file.used_ns))
            found = i;
    }
    return found;
}

/* One upload or file of a tenant; -EDQUOT: all that it has is being uploaded. */
static int give_up_one(struct kiln_depot *depot, const char *tenant, bool for_another)
{
    struct kiln_depot_upload *upload = find_upload(depot, tenant, true);
    uint32_t i = find_file(depot, tenant);
    char path[KILN_DEPOT_PATH_MAX];
    int r;

    if (!upload && i == depot->n_files && for_another)
        upload = find_upload(depot, tenant, false);
    if (upload) {
        kiln_depot_drop_upload(depot, upload);
        return 0;
    }
    if (i == depot->n_files)
        return -EDQUOT;
    kiln_depot_path(&depot->files[i]->file, "", path);
    r = kiln_depot_remove_at(depot, i);
    if (r < 0)
        return r;
    kiln_metric_add(depot->evicted, 1);
    kiln_log(depot->opts.log, KILN_LOG_INFO, "a debug file made room for another", "path", "%s",
             path, NULL);
    return 0;
}

/* ---- whose turn it is ---- */

static const struct kiln_depot_owner *largest(const struct kiln_depot *depot, bool by_files)
{
    const struct kiln_depot_owner *found = &depot->owners[0];

    for (uint32_t i = 1; i < depot->n_owners; i++) {
        const struct kiln_depot_had *had = &depot->owners[i].had, *most = &found->had;

        if (by_files ? had->files > most->files : had->bytes > most->bytes)
            found = &depot->owners[i];
    }
    return found;
}

/* Copies: giving up moves the list of owners. */
static void choose(const struct kiln_depot *depot, const char *tenant, uint64_t bytes,
                   bool by_files, char ret_tenant[KILN_TENANT_MAX + 1])
{
    struct kiln_depot_had own = kiln_depot_had(depot, tenant);
    uint32_t n = depot->n_owners + (own.files + own.uploads == 0);
    bool within = by_files ? own.files < KILN_DEPOT_FILES_MAX / n
                           : own.bytes + bytes <= depot->opts.quota_bytes / n;

    snprintf(ret_tenant, KILN_TENANT_MAX + 1, "%s",
             within && depot->n_owners ? largest(depot, by_files)->tenant : tenant);
}

/* ---- room ---- */

/* Names fetched for all tenants have no tenant's quota. */
static uint64_t quota_of(const struct kiln_depot *depot, const char *tenant)
{
    return strcmp(tenant, KILN_DEPOT_SHARED) == 0 ? depot->opts.quota_bytes
                                                  : depot->opts.tenant_quota_bytes;
}

static int within_own(struct kiln_depot *depot, const char *tenant, uint64_t bytes)
{
    int r = 0;

    while (r == 0 && kiln_depot_had(depot, tenant).bytes + bytes > quota_of(depot, tenant))
        r = give_up_one(depot, tenant, false);
    return r;
}

static int within_all(struct kiln_depot *depot, const char *tenant, uint64_t bytes)
{
    char victim[KILN_TENANT_MAX + 1];
    int r = 0;

    while (r == 0) {
        bool too_many = depot->n_files >= KILN_DEPOT_FILES_MAX - KILN_DEPOT_UPLOADS_MAX;

        if (!too_many && depot->bytes + bytes <= depot->opts.quota_bytes)
            return 0;
        choose(depot, tenant, bytes, too_many, victim);
        r = give_up_one(depot, victim, strcmp(victim, tenant) != 0);
    }
    return r;
}

static int check_disk(struct kiln_depot *depot, uint64_t bytes, struct kiln_err *err)
{
    struct kiln_io *io = depot->opts.io;
    uint64_t free_bytes, all_bytes;
    int r = io->space(io, &free_bytes, &all_bytes);

    if (r == 0 && (free_bytes < depot->opts.min_free_bytes ||
                   free_bytes - depot->opts.min_free_bytes < bytes))
        return kiln_err_set(err, -ENOSPC, NULL,
                            "the disk is too full for it: %llu MiB are free, and %llu MiB must "
                            "stay free",
                            (unsigned long long)(free_bytes >> 20),
                            (unsigned long long)(depot->opts.min_free_bytes >> 20));
    return 0;
}

int kiln_depot_check_total(struct kiln_depot *depot, const char *tenant, uint64_t total,
                           uint64_t missing, struct kiln_err *err)
{
    uint64_t own = quota_of(depot, tenant), all = depot->opts.quota_bytes;

    if (total > all)
        return kiln_err_set(err, KILN_E_LIMIT, NULL,
                            "the file has %llu bytes, and all debug files together may have %llu "
                            "(--symbols-quota)",
                            (unsigned long long)total, (unsigned long long)all);
    if (total > own)
        return kiln_err_set(err, KILN_E_LIMIT, NULL,
                            "the file has %llu bytes, and the debug files of one tenant may have "
                            "%llu (--symbols-tenant-quota)",
                            (unsigned long long)total, (unsigned long long)own);
    return check_disk(depot, missing, err);
}

int kiln_depot_make_room(struct kiln_depot *depot, const char *tenant, uint64_t bytes,
                         struct kiln_err *err)
{
    int r = check_disk(depot, bytes, err);

    if (r < 0)
        return r;
    r = within_own(depot, tenant, bytes);
    if (r < 0)
        return kiln_err_set(err, r, NULL,
                            r == -EDQUOT ? "the tenant's quota of debug files is full of its own "
                                           "uploads that are under way (--symbols-tenant-quota)"
                                         : "an older debug file cannot be removed: %s",
                            kiln_err_text(r));
    r = within_all(depot, tenant, bytes);
    if (r < 0)
        return kiln_err_set(err, r, NULL,
                            r == -EDQUOT ? "the quota of all debug files is full, and this tenant "
                                           "has its share of it (--symbols-quota)"
                                         : "an older debug file cannot be removed: %s",
                            kiln_err_text(r));
    return 0;
}

/* ---- a place in the list of uploads ---- */

static struct kiln_depot_upload *crowding_upload(struct kiln_depot *depot, const char *tenant)
{
    uint32_t own = kiln_depot_had(depot, tenant).uploads, most = own + 1;
    const char *whose = NULL;

    for (uint32_t i = 0; i < depot->n_owners; i++) {
        if (depot->owners[i].had.uploads > most) {
            most = depot->owners[i].had.uploads;
            whose = depot->owners[i].tenant;
        }
    }
    return whose ? find_upload(depot, whose, false) : NULL;
}

int kiln_depot_make_place(struct kiln_depot *depot, const char *tenant)
{
    struct kiln_depot_upload *upload = NULL;
    bool own = kiln_depot_had(depot, tenant).uploads >= KILN_DEPOT_UPLOADS_TENANT;

    if (!own && depot->n_uploads < KILN_DEPOT_UPLOADS_MAX)
        return 0;
    upload = find_upload(depot, tenant, true);
    if (!upload && !own)
        upload = crowding_upload(depot, tenant);
    if (!upload)
        return -EDQUOT;
    kiln_depot_drop_upload(depot, upload);
    return 0;
}
