/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A damaged block is rewritten without what cannot be read (ADR 35):
 *
 *   1. its file gets a second name in aside/, and a note that all of it is missing;
 *   2. the new block is written, read back and committed as any other; it replaces the old one;
 *   3. the note says what is missing, or, if that is nothing, both names in aside/ are removed.
 *
 * A crash before 2 leaves the damaged block where it was, and all of this is done again when it is
 * found again.  A crash after 2 leaves a note that says too much, until `kiln store salvage`.
 *
 * Only a block of which nothing can be told apart goes to aside/ as a whole.  What lacks is no
 * evidence against the block (memory, space) is tried again in an hour.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "core/series.h"
#include "store/compact.h"
#include "store/keep.h"
#include "store/store_int.h"

#define LOGGED_MAX 16u /* pages of one block */

struct rescue {
    struct kiln_store *store;
    struct kiln_block *block;
    struct kiln_aside_note note;
    uint64_t min_ns, max_ns, profiles;
    uint32_t n_logged;
};

static void log_lost(const struct rescue *r, const struct kiln_block_lost *lost)
{
    kiln_log(r->store->opts.log, KILN_LOG_ERROR, "part of a block is damaged", "tenant", "%s",
             r->note.entry.tenant, "block", "%s", r->note.entry.name, "where", "%s[%u]",
             lost->section, lost->page, "why", "%s", lost->why->text, "profiles_lost", "%llu",
             (unsigned long long)lost->n_profiles, "from_ns", "%llu",
             (unsigned long long)lost->min_ns, "to_ns", "%llu", (unsigned long long)lost->max_ns,
             NULL);
}

static void note_services(struct rescue *r, uint32_t first, uint32_t last)
{
    for (uint32_t i = first; i <= last && r->note.n_services < KILN_ARRAY_LEN(r->note.services);
         i++) {
        struct kiln_block_series s;
        struct kiln_series parsed;

        if (kiln_block_series(r->block, i, &s) == 0 && kiln_series_parse(s.key, &parsed) == 0)
            kiln_aside_note_service(&r->note, parsed.service);
    }
}

static void note_lost(void *context, const struct kiln_block_lost *lost)
{
    struct rescue *r = context;

    if (r->n_logged++ < LOGGED_MAX)
        log_lost(r, lost);
    if (lost->n_profiles == 0)
        return; /* profiles that refer to it come one by one */
    note_services(r, lost->first_series, lost->last_series);
    r->profiles += lost->n_profiles;
    r->min_ns = lost->min_ns < r->min_ns ? lost->min_ns : r->min_ns;
    r->max_ns = lost->max_ns > r->max_ns ? lost->max_ns : r->max_ns;
}

/* For file systems without links. */
static int copy(struct kiln_io *io, const char *path, const char *to)
{
    char tmp[KILN_PATH_MAX + 32];
    int r;

    snprintf(tmp, sizeof(tmp), "%s.tmp", to);
    r = io->unlink(io, tmp);
    if (r == 0 || r == -ENOENT)
        r = kiln_io_copy_across(io, path, io, tmp);
    return r < 0 ? r : io->rename(io, tmp, to);
}

/* Step 1. */
static int keep_original(struct rescue *r)
{
    char from[KILN_PATH_MAX], to[KILN_PATH_MAX + 16];
    struct kiln_io *io = r->store->io;
    int result = io->mkdir(io, "aside");

    if (result < 0)
        return result;
    kiln_block_path(r->note.entry.tenant, &kiln_block_info(r->block)->id, from);
    snprintf(to, sizeof(to), "aside/%s", r->note.entry.name);
    result = io->link(io, from, to);
    if (result == -EPERM || result == -EMLINK || result == -EOPNOTSUPP)
        result = copy(io, from, to);
    result = result == -EEXIST ? 0 : result;
    result = result < 0 ? result : io->sync_dir(io, ".");
    result = result < 0 ? result : io->sync_dir(io, "aside");
    return result < 0 ? result : kiln_aside_put(r->store, &r->note);
}

/* Step 3. */
static int settle_note(struct rescue *r)
{
    if (r->profiles == 0)
        return kiln_aside_remove(r->store, r->note.entry.name);
    r->note.all_lost = false;
    r->note.entry.min_ns = r->min_ns;
    r->note.entry.max_ns = r->max_ns;
    r->note.entry.profiles = r->profiles;
    return kiln_aside_put(r->store, &r->note);
}

/* Not with less memory than it needs, unless it needs more than it can ever get. */
static int rewrite(struct rescue *r, struct kiln_tenant *tenant, struct kiln_err *err)
{
    size_t need = kiln_compact_memory(kiln_block_info(r->block)->dict_bytes, 1);
    struct kiln_rewrite w = {.tenant = tenant,
                             .blocks = &r->block,
                             .n = 1,
                             .level = kiln_block_info(r->block)->level,
                             .whatever = need > r->store->pool->limit / 2,
                             .lost = note_lost,
                             .context = r};

    return kiln_keep_rewrite(r->store, &w, err);
}

static void report(struct rescue *r, struct kiln_tenant *tenant, const struct kiln_err *why)
{
    struct kiln_store *store = r->store;

    if (r->profiles)
        kiln_store_count_aside(store);
    kiln_store_forget_seen(store, tenant);
    kiln_log(store->opts.log, KILN_LOG_ERROR, "damaged block rewritten without what is lost",
             "tenant", "%s", tenant->name, "block", "%s", r->note.entry.name, "where", "%s",
             why->where, "why", "%s", why->text, "profiles_lost", "%llu",
             (unsigned long long)r->profiles, NULL);
}

static int try_rescue(struct rescue *r, struct kiln_tenant *tenant, struct kiln_err *err)
{
    int result = keep_original(r);

    if (result < 0)
        return kiln_err_set(err, result, "aside", "%s", kiln_err_text(result));
    result = rewrite(r, tenant, err);
    if (result == 0 && settle_note(r) < 0)
        kiln_log(r->store->opts.log, KILN_LOG_WARN, "note of a damaged block could not be written",
                 "tenant", "%s", tenant->name, "block", "%s", r->note.entry.name, NULL);
    return result;
}

void kiln_keep_rescue(struct kiln_store *store, struct kiln_tenant *tenant,
                      struct kiln_block *block, const struct kiln_err *why)
{
    struct rescue r = {.store = store, .block = kiln_block_ref(block), .min_ns = UINT64_MAX};
    struct kiln_err err = {0};
    int result;

    kiln_aside_note_block(&r.note, block);
    r.note.why = why->text;
    result = kiln_keep_is_skipped(store, block) ? -EBUSY : try_rescue(&r, tenant, &err);
    if (result == 0) {
        report(&r, tenant, why);
    } else if (kiln_block_is_damage(result) || result == -ENOTRECOVERABLE ||
               result == KILN_E_LIMIT) {
        kiln_keep_set_aside(store, tenant, block, why);
    } else if (result != -EBUSY && result != -ECANCELED) {
        kiln_keep_skip(store, block);
        kiln_log(store->opts.log, KILN_LOG_ERROR, "damaged block could not be rewritten yet",
                 "tenant", "%s", tenant->name, "block", "%s", r.note.entry.name, "where", "%s",
                 err.where, "why", "%s", err.text, NULL);
    }
    kiln_block_unref(r.block);
}

/* ---- blocks that readers found ---- */

void kiln_keep_damaged(struct kiln_store *store, struct kiln_tenant *tenant,
                       struct kiln_block *block, const struct kiln_err *why)
{
    struct kiln_keep *keep = &store->keep;
    bool found = false;

    if (store->opts.read_only)
        return;
    if (!store->opts.no_background) {
        pthread_mutex_lock(&keep->sleep);
        for (uint32_t i = 0; i < keep->n_found; i++)
            found |= keep->found[i].block == block;
        if (!found && keep->n_found < KILN_KEEP_FOUND)
            keep->found[keep->n_found++] =
                (struct kiln_keep_found){tenant, kiln_block_ref(block), *why};
        pthread_cond_signal(&keep->wake);
        pthread_mutex_unlock(&keep->sleep);
        return;
    }
    if (pthread_mutex_trylock(&keep->merging) != 0)
        return;
    if (kiln_tenant_has_block(tenant, block))
        kiln_keep_rescue(store, tenant, block, why);
    pthread_mutex_unlock(&keep->merging);
}

void kiln_keep_rescue_found(struct kiln_store *store)
{
    struct kiln_keep_found found[KILN_KEEP_FOUND];
    struct kiln_keep *keep = &store->keep;
    uint32_t n;

    pthread_mutex_lock(&keep->sleep);
    n = keep->n_found;
    memcpy(found, keep->found, n * sizeof(found[0]));
    keep->n_found = 0;
    pthread_mutex_unlock(&keep->sleep);
    for (uint32_t i = 0; i < n; i++) {
        if (!atomic_load(&keep->stop) && kiln_tenant_has_block(found[i].tenant, found[i].block))
            kiln_keep_rescue(store, found[i].tenant, found[i].block, &found[i].why);
        kiln_block_unref(found[i].block);
    }
}
