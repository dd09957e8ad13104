/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of a tenant's open blocks, and the files behind it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytetext.h"
#include "store/store_int.h"

void kiln_block_path(const char *tenant, const struct kiln_block_id *id,
                     char ret_path[KILN_PATH_MAX])
{
    char hex[2 * sizeof(id->bytes) + 1];

    kiln_hex_encode(id->bytes, sizeof(id->bytes), hex);
    hex[2 * sizeof(id->bytes)] = '\0';
    snprintf(ret_path, KILN_PATH_MAX, "blocks/%s/%s" KILN_BLOCK_ENDING, tenant, hex);
}

int kiln_catalog_open_block(struct kiln_store *store, const char *tenant,
                            const struct kiln_block_id *id, struct kiln_block **ret_block,
                            struct kiln_err *err)
{
    char path[KILN_PATH_MAX];
    int r;

    kiln_block_path(tenant, id, path);
    r = kiln_block_open(store->io, path, ret_block, err);
    if (r < 0)
        kiln_err_within(err, "%s", path);
    return r;
}

/* ---- reading the list ---- */

/* Under the tenant's lock. */
int kiln_catalog_list_locked(const struct kiln_tenant *tenant, struct kiln_block_list *ret_list)
{
    struct kiln_block_list list = {
        .blocks = kiln_malloc(((size_t)tenant->n_blocks + 1) * sizeof(struct kiln_block *))};

    if (!list.blocks)
        return -ENOMEM;
    for (; list.n < tenant->n_blocks; list.n++)
        list.blocks[list.n] = kiln_block_ref(tenant->blocks[list.n]);
    *ret_list = list;
    return 0;
}

int kiln_catalog_list(struct kiln_tenant *tenant, struct kiln_block_list *ret_list)
{
    int r;

    pthread_mutex_lock(&tenant->lock);
    r = kiln_catalog_list_locked(tenant, ret_list);
    pthread_mutex_unlock(&tenant->lock);
    return r;
}

void kiln_block_list_done(struct kiln_block_list *list)
{
    for (uint32_t i = 0; i < list->n; i++)
        kiln_block_unref(list->blocks[i]);
    kiln_free(list->blocks);
    *list = (struct kiln_block_list){0};
}

/* ---- changing the list ---- */

static int by_id(const void *a, const void *b)
{
    const struct kiln_block *const *x = a, *const *y = b;

    return memcmp(&kiln_block_info(*x)->id, &kiln_block_info(*y)->id, sizeof(struct kiln_block_id));
}

static bool holds(struct kiln_block *const *blocks, uint32_t n, const struct kiln_block *block)
{
    for (uint32_t i = 0; i < n; i++) {
        if (blocks[i] == block)
            return true;
    }
    return false;
}

/* The list after a change; `gone` keep their references. */
static int changed_list(const struct kiln_tenant *tenant, const struct kiln_catalog_change *change,
                        struct kiln_block_list *ret_list)
{
    struct kiln_block_list list = {0};

    list.blocks =
        kiln_malloc(((size_t)tenant->n_blocks + change->n_added + 1) * sizeof(struct kiln_block *));
    if (!list.blocks)
        return -ENOMEM;
    for (uint32_t i = 0; i < tenant->n_blocks; i++) {
        if (!holds(change->gone, change->n_gone, tenant->blocks[i]))
            list.blocks[list.n++] = tenant->blocks[i];
    }
    if (tenant->n_blocks - list.n != change->n_gone) {
        kiln_free(list.blocks);
        return -ENOENT;
    }
    for (uint32_t i = 0; i < change->n_added; i++)
        list.blocks[list.n++] = change->added[i];
    qsort(list.blocks, list.n, sizeof(*list.blocks), by_id);
    *ret_list = list;
    return 0;
}

/* A merge keeps every profile, and so every series. */
static bool loses_profiles(const struct kiln_catalog_change *change)
{
    uint64_t gone = 0, added = 0;

    for (uint32_t i = 0; i < change->n_gone; i++)
        gone += kiln_block_info(change->gone[i])->n_profiles;
    for (uint32_t i = 0; i < change->n_added; i++)
        added += kiln_block_info(change->added[i])->n_profiles;
    return gone > added;
}

/* Under the tenant's lock.  Who calls it drops the references of `gone` when it is let go. */
int kiln_catalog_change_locked(struct kiln_tenant *tenant, const struct kiln_catalog_change *change)
{
    struct kiln_block_list list;
    int r = changed_list(tenant, change, &list);

    if (r < 0)
        return r;
    kiln_seen_change(&tenant->seen, change->gone, change->n_gone);
    kiln_free(tenant->blocks);
    tenant->blocks = list.blocks;
    tenant->n_blocks = list.n;
    tenant->known_stale |= loses_profiles(change);
    for (uint32_t i = 0; i < change->n_added; i++) {
        const struct kiln_block_info *info = kiln_block_info(change->added[i]);

        if (info->log_to > tenant->covered)
            tenant->covered = info->log_to;
    }
    return 0;
}

int kiln_catalog_swap(struct kiln_tenant *tenant, struct kiln_block *const *gone, uint32_t n_gone,
                      struct kiln_block *const *added, uint32_t n_added)
{
    struct kiln_catalog_change change = {gone, added, n_gone, n_added};
    int r;

    pthread_mutex_lock(&tenant->lock);
    r = kiln_catalog_change_locked(tenant, &change);
    pthread_mutex_unlock(&tenant->lock);
    for (uint32_t i = 0; r == 0 && i < n_gone; i++)
        kiln_block_unref(gone[i]);
    return r;
}

/* ---- files ---- */

static int sync_folder(struct kiln_store *store, const char *tenant)
{
    char path[KILN_PATH_MAX];

    snprintf(path, sizeof(path), "blocks/%s", tenant);
    return store->io->sync_dir(store->io, path);
}

int kiln_catalog_unlink(struct kiln_store *store, struct kiln_tenant *tenant,
                        struct kiln_block *const *blocks, uint32_t n)
{
    char path[KILN_PATH_MAX];
    int first = 0, r;

    for (uint32_t i = 0; i < n; i++) {
        kiln_block_path(tenant->name, &kiln_block_info(blocks[i])->id, path);
        kiln_cache_forget(&store->cache, &kiln_block_info(blocks[i])->id);
        r = store->io->unlink(store->io, path);
        if (r < 0 && r != -ENOENT && first == 0)
            first = r;
    }
    r = n ? sync_folder(store, tenant->name) : 0;
    return first < 0 ? first : r;
}

int kiln_catalog_cover(struct kiln_store *store, struct kiln_tenant *tenant)
{
    char path[KILN_PATH_MAX], text[32];
    int n;

    pthread_mutex_lock(&tenant->lock);
    n = snprintf(text, sizeof(text), "%llu\n", (unsigned long long)tenant->covered);
    pthread_mutex_unlock(&tenant->lock);
    snprintf(path, sizeof(path), "blocks/%s/" KILN_COVERED_NAME, tenant->name);
    return kiln_io_put(store->io, path, text, (size_t)n);
}

void kiln_store_count_aside(struct kiln_store *store)
{
    atomic_fetch_add(&store->set_aside, 1);
    kiln_metric_add(store->metrics.set_aside, 1);
}

void kiln_store_set_aside(struct kiln_store *store, const char *path, const struct kiln_err *why)
{
    char name[KILN_ASIDE_PATH_MAX], to[KILN_ASIDE_PATH_MAX + 8], folder[KILN_PATH_MAX];
    struct kiln_io *io = store->io;
    int r = 0;

    kiln_aside_name(path, name);
    snprintf(to, sizeof(to), "aside/%s", name);
    snprintf(folder, sizeof(folder), "%s", strchr(path, '/') ? path : "./");
    *strrchr(folder, '/') = '\0';
    if (!store->opts.read_only) {
        r = io->mkdir(io, "aside");
        r = r < 0 ? r : io->sync_dir(io, ".");
        r = r < 0 ? r : io->rename(io, path, to);
        if (r == 0)
            (void)io->unlink(io, path); /* two links of one file are not renamed */
        r = r < 0 ? r : io->sync_dir(io, "aside");
        r = r < 0 ? r : io->sync_dir(io, folder);
    }
    kiln_store_count_aside(store);
    kiln_log(store->opts.log, KILN_LOG_ERROR, "damaged file set aside", "path", "%s", path, "why",
             "%s", why ? why->text : "", "where", "%s", why ? why->where : "", "moved", "%s",
             r < 0 ? kiln_err_text(r) : "yes", NULL);
}
