/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a census tells: addresses that lack a name, and symbols that nothing refers to.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/frame.h"
#include "store/census_int.h"

#define LOOK_BYTES (UINT64_C(512) << 20)   /* of dictionaries that one call looks at */
#define SLICE      16384u                  /* locations of a head under its lock */
#define IDLE_NS    (86400 * KILN_NS_PER_S) /* before symbols that nothing refers to go */

/* ---- what lacks names ---- */

/* Forgets what a build id lacks, so that it is told again.  Under the lock. */
static void forget(struct kiln_census *census, uint32_t build)
{
    kiln_lacks_forget(census->lacks, build);
    if (build < census->cap_rounds)
        census->rounds[build]++;
    census->n_told = 0;
}

void kiln_census_restart(struct kiln_census *census, struct kiln_str build_id)
{
    uint32_t build;

    pthread_mutex_lock(&census->lock);
    build = kiln_lacks_find(census->lacks, build_id);
    if (build != UINT32_MAX)
        forget(census, build);
    pthread_mutex_unlock(&census->lock);
}

/* A slice of a head; false: that was the last.  Under the lock, and the tenant's. */
static int tell_slice(struct kiln_census *census, const struct kiln_head *head, bool *ret_more)
{
    const struct kiln_batch *batch = kiln_rows_batch(kiln_head_rows(head));
    uint32_t n = batch->dict.n_locations, n_uses = 0;
    struct kiln_lacks_range range = {census->n_told, n};
    struct kiln_build_use *uses = NULL;
    int r;

    if (range.end - range.first > SLICE)
        range.end = range.first + SLICE;
    *ret_more = range.end < n;
    if (range.first == range.end)
        return 0;
    r = kiln_lacks_add(census->lacks, batch, range, &uses, &n_uses);
    if (r == 0)
        r = kiln_census_room(census, (void **)&census->of_head, &census->cap_of_head,
                             kiln_lacks_count(census->lacks), sizeof(*census->of_head));
    for (uint32_t i = 0; r == 0 && i < n_uses; i++)
        census->of_head[uses[i].build] |= uses[i].lacking;
    if (r == 0)
        census->n_told = range.end;
    kiln_free(uses);
    return r;
}

/* Under the lock; a head only grows, so what was told of it is passed over. */
static int tell_head(struct kiln_census *census, struct kiln_tenant *tenant, uint64_t *ret_samples,
                     uint64_t *ret_newest)
{
    bool more = true;
    int r = 0;

    while (r == 0 && more) {
        const struct kiln_head_info *info;

        pthread_mutex_lock(&tenant->lock);
        info = kiln_head_info(tenant->head);
        if (census->head != info->serial) {
            census->head = info->serial;
            census->n_told = 0;
            if (census->of_head)
                memset(census->of_head, 0, census->cap_of_head);
        }
        r = tell_slice(census, tenant->head, &more);
        *ret_samples = info->n_samples;
        *ret_newest = info->max_ns;
        pthread_mutex_unlock(&tenant->lock);
    }
    return r;
}

/* What all blocks and the head have of a build id. */
struct weight {
    uint64_t samples, newest_ns;
};

static void weigh(struct weight *w, uint64_t samples, uint64_t newest_ns)
{
    w->samples += samples;
    w->newest_ns = newest_ns > w->newest_ns ? newest_ns : w->newest_ns;
}

/* Under the lock. */
static struct weight *weigh_all(struct kiln_census *census, const struct kiln_block_list *list,
                                const struct weight *head)
{
    uint32_t n = kiln_lacks_count(census->lacks);
    struct weight *all = kiln_calloc((size_t)n + 1, sizeof(*all));
    uint64_t now = kiln_clock_unix_ns();

    for (uint32_t i = 0; all && i < n && i < census->cap_of_head; i++) {
        if (census->of_head[i])
            weigh(&all[i], head->samples, head->newest_ns);
    }
    for (uint32_t i = 0; all && i < list->n; i++) {
        const struct kiln_block_info *info = kiln_block_info(list->blocks[i]);
        const struct kiln_block_names *names = list->blocks[i]->names;

        for (uint32_t k = 0; names && k < names->n; k++) {
            if (names->uses[k].lacking)
                weigh(&all[names->uses[k].build], info->n_samples,
                      kiln_block_newest(info, info->max_ns, now));
        }
    }
    return all;
}

/* The newest first, as far as one call goes. */
static int look_at_all(struct kiln_store *store, struct kiln_tenant *tenant,
                       const struct kiln_block_list *list, bool told)
{
    uint64_t bytes = 0;
    int r = 0;

    for (uint32_t i = list->n; r == 0 && i > 0 && bytes < LOOK_BYTES; i--) {
        struct kiln_block *block = list->blocks[i - 1];
        struct kiln_census_look look = {.store = store, .tenant = tenant, .block = block};
        struct kiln_census *census = tenant->census;
        bool known;

        pthread_mutex_lock(&census->lock);
        known = kiln_census_knows(census, block, told);
        pthread_mutex_unlock(&census->lock);
        bytes += known ? 0 : kiln_block_info(block)->dict_bytes;
        if (!known)
            r = kiln_census_look_at(&look, told, NULL);
        if (kiln_block_is_damage(r) || r == KILN_E_LIMIT)
            r = 0; /* others find out */
    }
    return r;
}

/* A copy for who asks, which lives until it is freed; NULL, and 0: there is nothing. */
static int copy_unnamed(struct kiln_census *census, uint32_t build, const struct weight *weight,
                        uint64_t **ret_addresses, struct kiln_unnamed *ret)
{
    int r;

    *ret_addresses = NULL;
    pthread_mutex_lock(&census->lock);
    if (weight->samples == 0)
        kiln_lacks_forget(census->lacks, build);
    r = kiln_lacks_get(census->lacks, build, ret);
    if (r == 0 && ret->n == 0 && ret->more)
        forget(census, build); /* there are others, which are told next time */
    if (r == 0 && ret->n) {
        *ret_addresses = kiln_malloc(ret->n * sizeof(**ret_addresses));
        r = *ret_addresses ? 0 : -ENOMEM;
    }
    if (*ret_addresses)
        ret->addresses = memcpy(*ret_addresses, ret->addresses, ret->n * sizeof(*ret->addresses));
    pthread_mutex_unlock(&census->lock);
    ret->samples = weight->samples;
    ret->newest_ns = weight->newest_ns;
    return r;
}

static int tell_all(struct kiln_census *census, const struct weight *weights, uint32_t n,
                    int (*each)(void *, const struct kiln_unnamed *), void *context)
{
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < n; i++) {
        struct kiln_unnamed unnamed;
        uint64_t *addresses;

        r = copy_unnamed(census, i, &weights[i], &addresses, &unnamed);
        if (r == 0 && addresses)
            r = each(context, &unnamed);
        kiln_free(addresses);
    }
    return r;
}

int kiln_census_unnamed(struct kiln_store *store, struct kiln_tenant *tenant,
                        int (*each)(void *context, const struct kiln_unnamed *unnamed),
                        void *context, struct kiln_err *err)
{
    struct kiln_census *census = tenant->census;
    struct weight *weights = NULL, head = {0};
    struct kiln_block_list list;
    uint32_t n = 0;
    int r = kiln_catalog_list(tenant, &list);

    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    r = look_at_all(store, tenant, &list, true);
    if (r == 0) {
        pthread_mutex_lock(&census->lock);
        r = tell_head(census, tenant, &head.samples, &head.newest_ns);
        n = kiln_lacks_count(census->lacks);
        weights = r == 0 ? weigh_all(census, &list, &head) : NULL;
        pthread_mutex_unlock(&census->lock);
        r = r == 0 && !weights ? -ENOMEM : r;
    }
    kiln_block_list_done(&list);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    r = tell_all(census, weights, n, each, context);
    kiln_free(weights);
    return r;
}

/* ---- symbols that nothing refers to ---- */

static void use_build(struct kiln_census *census, struct kiln_str id, uint8_t *used)
{
    uint32_t build = kiln_lacks_find(census->lacks, id);

    if (build != UINT32_MAX)
        used[build] = 1;
}

/* Under the lock, and the tenant's. */
static void use_head(struct kiln_census *census, const struct kiln_head *head, uint8_t *used)
{
    const struct kiln_batch *batch = head ? kiln_rows_batch(kiln_head_rows(head)) : NULL;

    for (uint32_t i = 1; batch && i < batch->dict.n_mappings; i++)
        use_build(census, kiln_frame_build_id(batch, batch->dict.mappings[i].attrs), used);
}

/* Which build ids something refers to; false: not all blocks were looked at.  Under the lock. */
static bool mark_used(struct kiln_census *census, struct kiln_tenant *tenant,
                      const struct kiln_block_list *list, uint8_t *used)
{
    for (uint32_t i = 0; i < list->n; i++) {
        const struct kiln_block_names *names = list->blocks[i]->names;

        if (!names)
            return false;
        for (uint32_t k = 0; k < names->n; k++)
            used[names->uses[k].build] = 1;
    }
    pthread_mutex_lock(&tenant->lock);
    use_head(census, tenant->head, used);
    use_head(census, tenant->cutting, used);
    pthread_mutex_unlock(&tenant->lock);
    return true;
}

/* Whether the symbols of a build id go now.  Under the lock. */
static bool is_out(struct kiln_census *census, uint32_t number, struct kiln_str id,
                   const uint8_t *used, uint64_t now_ns)
{
    uint32_t build = kiln_lacks_find(census->lacks, id);
    uint64_t *since = &census->idle[number];

    if (build != UINT32_MAX && used[build])
        *since = 0;
    else if (*since == 0)
        *since = now_ns;
    return *since && now_ns >= *since && now_ns - *since >= IDLE_NS;
}

/* The next symbols, from number *number on, that go; false: there are no more. */
static int next_out(struct kiln_census *census, uint32_t *number, const uint8_t *used,
                    uint64_t now_ns, struct kiln_str *ret_id)
{
    int r = 0;

    pthread_mutex_lock(&census->lock);
    for (; r == 0 && kiln_book_list(census->book, *number, ret_id); ++*number) {
        r = kiln_census_room(census, (void **)&census->idle, &census->cap_idle, *number,
                             sizeof(*census->idle));
        if (r == 0 && ret_id->len && is_out(census, *number, *ret_id, used, now_ns))
            r = 1;
    }
    pthread_mutex_unlock(&census->lock);
    return r;
}

static int retire(struct kiln_census *census, const uint8_t *used, uint64_t now_ns,
                  struct kiln_err *err)
{
    struct kiln_str id;
    uint32_t number = 0;
    int r;

    while ((r = next_out(census, &number, used, now_ns, &id)) > 0) {
        r = kiln_book_drop(census->book, id, err);
        if (r < 0)
            return r;
    }
    return r;
}

/* By build: something refers to it.  *ret_used is NULL where that is not known of all blocks. */
static int find_used(struct kiln_store *store, struct kiln_tenant *tenant, uint8_t **ret_used,
                     uint32_t *ret_n)
{
    struct kiln_census *census = tenant->census;
    struct kiln_block_list list;
    uint8_t *used = NULL;
    bool known = false;
    int r = kiln_catalog_list(tenant, &list);

    if (r < 0)
        return r;
    r = look_at_all(store, tenant, &list, false);
    if (r == 0) {
        pthread_mutex_lock(&census->lock);
        *ret_n = kiln_lacks_count(census->lacks);
        used = kiln_calloc((size_t)*ret_n + 1, 1);
        known = used && mark_used(census, tenant, &list, used);
        pthread_mutex_unlock(&census->lock);
        r = used ? 0 : -ENOMEM;
    }
    kiln_block_list_done(&list);
    if (!known) {
        kiln_free(used);
        used = NULL;
    }
    *ret_used = used;
    return r;
}

int kiln_census_retire(struct kiln_store *store, struct kiln_tenant *tenant, uint64_t now_ns,
                       struct kiln_err *err)
{
    uint8_t *used = NULL;
    uint32_t n;
    int r = kiln_book_count(tenant->book) ? find_used(store, tenant, &used, &n) : 0;

    if (r == 0 && used)
        r = retire(tenant->census, used, now_ns, err);
    kiln_free(used);
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

int kiln_census_used(struct kiln_store *store, struct kiln_tenant *tenant,
                     int (*each)(void *context, struct kiln_str build_id), void *context,
                     struct kiln_err *err)
{
    struct kiln_census *census = tenant->census;
    uint8_t *used = NULL;
    uint32_t n;
    int r = find_used(store, tenant, &used, &n);

    if (r == 0 && !used)
        r = -EAGAIN;
    for (uint32_t i = 0; r >= 0 && i < n; i++) {
        struct kiln_str id;

        if (!used[i])
            continue;
        pthread_mutex_lock(&census->lock);
        id = kiln_lacks_build_id(census->lacks, i);
        pthread_mutex_unlock(&census->lock);
        r = each(context, id);
    }
    kiln_free(used);
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}
