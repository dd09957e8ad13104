/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading blocks/ when the store is opened.  What a block says that it replaces is removed: a crash
 * came between its rename and that.  Temporary files are removed; damaged blocks are set aside.
 */
#include <errno.h>
#include <stdio.h>

#include "store/names.h"
#include "store/store_int.h"

#define NAMES_BYTES_MAX ((size_t)64 << 20)

/* The paths in a folder; what is no folder has none. */
static int list(struct kiln_store *store, const char *path, struct kiln_names *names)
{
    int r;

    kiln_names_init(names, NAMES_BYTES_MAX);
    r = kiln_names_in(names, store->io, path);
    if (r == -ENOTDIR)
        r = 0;
    if (r < 0)
        kiln_names_done(names);
    return r;
}

/* Whether a failure to open says that the file is bad, and not that we lack something. */
static bool is_bad_file(int code)
{
    return code != -ENOMEM && code != -EMFILE && code != -ENFILE && code != -EACCES &&
           code != KILN_E_UNSUPPORTED;
}

static int load_block(struct kiln_store *store, struct kiln_tenant *tenant, const char *path,
                      struct kiln_err *err)
{
    struct kiln_err why = {0};
    struct kiln_block *block;
    struct kiln_catalog_change change = {.added = &block, .n_added = 1};
    int r;

    r = kiln_block_open(store->io, path, &block, &why);
    if (r == -EIO) { /* a bad moment of the disk, or a bad place on it */
        why = (struct kiln_err){0};
        r = kiln_block_open(store->io, path, &block, &why);
    }
    if (r < 0 && is_bad_file(r)) {
        kiln_store_set_aside(store, path, &why);
        return 0;
    }
    if (r < 0)
        return kiln_err_set(err, r, path, "%s", why.text);
    r = kiln_catalog_change_locked(tenant, &change);
    if (r < 0)
        kiln_block_unref(block);
    return r;
}

/* Removes the first block that another one replaces; 1 if there was one. */
static int drop_replaced(struct kiln_store *store, struct kiln_tenant *tenant,
                         const struct kiln_block_info *by)
{
    for (uint32_t i = 0; i < tenant->n_blocks; i++) {
        struct kiln_block *block = tenant->blocks[i];
        struct kiln_catalog_change change = {.gone = &block, .n_gone = 1};

        for (uint32_t k = 0; k < by->n_replaces; k++) {
            int r;

            if (memcmp(&by->replaces[k], &kiln_block_info(block)->id, sizeof(by->id)) != 0)
                continue;
            r = store->opts.read_only ? 0 : kiln_catalog_unlink(store, tenant, &block, 1);
            if (r < 0)
                kiln_log(store->opts.log, KILN_LOG_WARN, "replaced block could not be removed",
                         "tenant", "%s", tenant->name, "why", "%s", kiln_err_text(r), NULL);
            r = kiln_catalog_change_locked(tenant, &change);
            if (r < 0)
                return r;
            kiln_block_unref(block);
            return 1;
        }
    }
    return 0;
}

static int honour_replaces(struct kiln_store *store, struct kiln_tenant *tenant)
{
    for (uint32_t i = 0; i < tenant->n_blocks;) {
        int r = drop_replaced(store, tenant, kiln_block_info(tenant->blocks[i]));

        if (r < 0)
            return r;
        i = r ? 0 : i + 1; /* the list is another one now */
    }
    return 0;
}

/* What kiln_catalog_cover() wrote. */
static int read_covered(struct kiln_store *store, struct kiln_tenant *tenant)
{
    char path[KILN_PATH_MAX];
    uint64_t covered = 0;
    void *data;
    size_t n;
    int r;

    snprintf(path, sizeof(path), "blocks/%s/" KILN_COVERED_NAME, tenant->name);
    r = kiln_io_get(store->io, path, 64, &data, &n);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    r = kiln_str_parse_u64(kiln_str_trim((struct kiln_str){data, n}), &covered);
    kiln_free(data);
    if (r < 0) {
        struct kiln_err why = {.code = r, .text = "this is no number"};

        kiln_store_set_aside(store, path, &why);
    } else if (covered > tenant->covered) {
        tenant->covered = covered;
    }
    return 0;
}

static int load_files(struct kiln_store *store, struct kiln_tenant *tenant,
                      const struct kiln_names *files, struct kiln_err *err)
{
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < files->n; i++) {
        const char *path = kiln_names_get(files, i);
        struct kiln_str name = kiln_str_of(path);

        if (kiln_store_is_cancelled(store))
            return -ECANCELED;
        if (kiln_str_ends(name, KILN_STR(KILN_BLOCK_ENDING)))
            r = load_block(store, tenant, path, err);
        else if (kiln_str_ends(name, KILN_STR(".tmp")) && !store->opts.read_only)
            (void)store->io->unlink(store->io, path);
    }
    return r;
}

static int load_tenant(struct kiln_store *store, const char *path, struct kiln_str name,
                       struct kiln_err *err)
{
    struct kiln_tenant *tenant;
    struct kiln_names files;
    int r;

    r = list(store, path, &files);
    if (r < 0)
        return kiln_err_set(err, r, path, "%s", kiln_err_text(r));
    r = kiln_tenant_get(store, name, &tenant);
    if (r == 0)
        r = load_files(store, tenant, &files, err);
    kiln_names_done(&files);
    if (r == 0)
        r = honour_replaces(store, tenant);
    if (r == 0)
        r = read_covered(store, tenant);
    if (r == 0)
        r = kiln_tenant_count_series(tenant);
    if (r == 0)
        kiln_seen_clear(&tenant->seen, tenant->covered);
    return r;
}

int kiln_catalog_load(struct kiln_store *store, struct kiln_err *err)
{
    struct kiln_names tenants;
    int r = list(store, "blocks", &tenants);

    if (r < 0)
        return kiln_err_set(err, r, "blocks", "%s", kiln_err_text(r));
    for (uint32_t i = 0; r == 0 && i < tenants.n; i++) {
        const char *path = kiln_names_get(&tenants, i);
        struct kiln_str name = kiln_str_of(path + strlen("blocks/"));

        if (kiln_tenant_valid(name))
            r = load_tenant(store, path, name, err);
    }
    kiln_names_done(&tenants);
    if (r < 0)
        kiln_err_set(err, r, "blocks", "%s", kiln_err_text(r));
    return r;
}
