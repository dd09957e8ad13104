/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dictionaries are read without the lock; what is found in them is noted under it.
 *
 * What a block lacks is told to the tenant's list (store/lacks.h) in the same look.  Where that
 * list forgot what a build id lacks, because there was too much of it or because its symbols were
 * dropped, blocks that have it are looked at again: those that were told in another round.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "core/frame.h"
#include "store/census_int.h"
#include "store/fund.h"
#include "store/rollup.h"

#define STALE_MAX 16384u /* names that are listed */
#define TEXT_MAX  (1u << 24)

/* ---- stale names ---- */

void kiln_stale_unref(struct kiln_stale *stale)
{
    if (stale && atomic_fetch_sub_explicit(&stale->refs, 1, memory_order_acq_rel) == 1)
        kiln_free(stale);
}

bool kiln_stale_has(const struct kiln_stale *stale, uint64_t hash)
{
    uint32_t low = 0, high = stale->n;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (stale->hashes[middle] < hash)
            low = middle + 1;
        else
            high = middle;
    }
    return stale->all || (low < stale->n && stale->hashes[low] == hash);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static uint32_t sort_hashes(uint64_t *hashes, uint32_t n)
{
    uint32_t kept = 0;

    qsort(hashes, n, sizeof(*hashes), compare);
    for (uint32_t i = 0; i < n; i++) {
        if (kept == 0 || hashes[kept - 1] != hashes[i])
            hashes[kept++] = hashes[i];
    }
    return kept;
}

/* The hash of the name a location has now, as roll-ups have it. */
static uint64_t hash_name(const struct kiln_batch *batch, const struct kiln_location *l,
                          struct kiln_buf *text)
{
    const struct kiln_dict *d = &batch->dict;
    struct kiln_str name = KILN_STR("");

    if (l->n)
        name = kiln_frame_function(d, &d->functions[d->lines[l->first].function]);
    if (name.len == 0)
        name = kiln_frame_unnamed(d->strings[d->mappings[l->mapping].filename],
                                  kiln_frame_address(batch, l), text);
    return kiln_rollup_hash(name);
}

/* Adds to a list that has twice the room. */
static void add_hash(struct kiln_stale *stale, uint64_t hash)
{
    if (stale->n == 2 * STALE_MAX) {
        stale->n = sort_hashes(stale->hashes, stale->n);
        stale->all = stale->n > STALE_MAX;
    }
    if (!stale->all)
        stale->hashes[stale->n++] = hash;
}

static int judge(struct kiln_census *census, const struct kiln_batch *batch,
                 struct kiln_stale *stale)
{
    struct kiln_symbol_found found;
    struct kiln_finder *finder;
    struct kiln_buf text;
    int r = kiln_finder_new(census->book, &finder);

    kiln_buf_init(&text, TEXT_MAX);
    for (uint32_t i = 1; r == 0 && finder && !stale->all && i < batch->dict.n_locations; i++) {
        const struct kiln_location *l = &batch->dict.locations[i];

        r = kiln_finder_get(finder, batch, l, &found);
        if (r > 0) {
            add_hash(stale, hash_name(batch, l, &text));
            r = text.error;
        }
    }
    kiln_buf_done(&text);
    kiln_finder_free(finder);
    return r;
}

static int judge_batch(struct kiln_census *census, const struct kiln_batch *batch,
                       struct kiln_stale **ret_stale)
{
    struct kiln_stale *stale =
                          kiln_calloc(1, sizeof(*stale) + 2 * STALE_MAX * sizeof(*stale->hashes)),
                      *small;
    int r = stale ? judge(census, batch, stale) : -ENOMEM;

    *ret_stale = NULL;
    if (r == 0 && stale->n) {
        stale->n = sort_hashes(stale->hashes, stale->n);
        stale->all = stale->all || stale->n > STALE_MAX;
        stale->n = stale->all ? 0 : stale->n;
        small = kiln_realloc(stale, sizeof(*stale) + stale->n * sizeof(*stale->hashes));
        stale = NULL;
        r = small ? 0 : -ENOMEM;
        if (small)
            atomic_init(&small->refs, 1);
        *ret_stale = small;
    }
    kiln_free(stale);
    return r;
}

/* ---- looking at blocks ---- */

int kiln_census_new(struct kiln_book *book, struct kiln_census **ret_census)
{
    struct kiln_census *census = kiln_calloc(1, sizeof(*census));
    int r = census ? kiln_lacks_new(book, &census->lacks) : -ENOMEM;

    if (r < 0) {
        kiln_free(census);
        return r;
    }
    census->book = book;
    census->budget.limit = SIZE_MAX;
    pthread_mutex_init(&census->lock, NULL);
    *ret_census = census;
    return 0;
}

void kiln_census_free(struct kiln_census *census)
{
    if (!census)
        return;
    kiln_lacks_free(census->lacks);
    kiln_free(census->rounds);
    kiln_free(census->of_head);
    kiln_free(census->idle);
    pthread_mutex_destroy(&census->lock);
    kiln_free(census);
}

void kiln_block_names_free(struct kiln_block_names *names)
{
    if (!names)
        return;
    kiln_stale_unref(names->stale);
    kiln_free(names->uses);
    kiln_free(names);
}

static int read_dict(const struct kiln_census_look *look, struct kiln_block_dict **ret_dict,
                     struct kiln_err *err)
{
    struct kiln_leash leash = {0};
    struct kiln_fund fund;
    int r;

    kiln_fund_init(&fund, &leash);
    r = kiln_block_dict(&look->store->cache, look->block, &fund, ret_dict, err);
    kiln_fund_done(&fund);
    return r;
}

int kiln_census_room(struct kiln_census *census, void **array, uint32_t *cap, uint32_t n,
                     size_t size)
{
    uint32_t before = *cap;
    int r = kiln_grow(&census->budget, array, cap, (uint64_t)n + 1, size, UINT32_MAX);

    if (r == 0 && *cap > before)
        memset((char *)*array + before * size, 0, (*cap - before) * size);
    return r;
}

/* Under the lock. */
static int note_block(struct kiln_census *census, struct kiln_block *block,
                      const struct kiln_batch *batch)
{
    struct kiln_lacks_range all = {0, batch->dict.n_locations};
    struct kiln_block_names *names = block->names;
    struct kiln_build_use *uses = NULL;
    uint32_t n = 0;
    int r = kiln_lacks_add(census->lacks, batch, all, &uses, &n);

    if (r == 0)
        r = kiln_census_room(census, (void **)&census->rounds, &census->cap_rounds,
                             kiln_lacks_count(census->lacks), sizeof(*census->rounds));
    if (r == 0 && !names) {
        names = kiln_calloc(1, sizeof(*names));
        r = names ? 0 : -ENOMEM;
    }
    if (r < 0) {
        kiln_free(uses);
        return r;
    }
    for (uint32_t i = 0; i < n; i++)
        uses[i].round = census->rounds[uses[i].build];
    if (!block->names)
        names->as_of = UINT64_MAX;
    kiln_free(names->uses); /* the same, but for the rounds */
    names->uses = uses;
    names->n = n;
    block->names = names;
    return 0;
}

bool kiln_census_knows(const struct kiln_census *census, const struct kiln_block *block, bool told)
{
    const struct kiln_block_names *names = block->names;

    for (uint32_t i = 0; told && names && i < names->n; i++) {
        if (names->uses[i].lacking && names->uses[i].round != census->rounds[names->uses[i].build])
            return false;
    }
    return names != NULL;
}

int kiln_census_look_at(const struct kiln_census_look *look, bool told, struct kiln_err *err)
{
    struct kiln_census *census = look->tenant->census;
    struct kiln_block_dict *dict;
    bool known;
    int r;

    pthread_mutex_lock(&census->lock);
    known = kiln_census_knows(census, look->block, told);
    pthread_mutex_unlock(&census->lock);
    if (known)
        return 0;
    r = read_dict(look, &dict, err);
    if (r < 0)
        return r;
    pthread_mutex_lock(&census->lock);
    if (!kiln_census_knows(census, look->block, told))
        r = note_block(census, look->block, dict->batch);
    pthread_mutex_unlock(&census->lock);
    kiln_block_dict_unref(dict);
    return r;
}

bool kiln_census_is_looked_at(const struct kiln_census_look *look)
{
    struct kiln_census *census = look->tenant->census;
    bool known;

    pthread_mutex_lock(&census->lock);
    known = look->block->names != NULL;
    pthread_mutex_unlock(&census->lock);
    return known;
}

/* ---- ages ---- */

/* Under the lock, of a block that was looked at. */
static uint64_t age_of(struct kiln_census *census, struct kiln_block_names *names)
{
    uint64_t last = kiln_book_last_age(census->book);

    if (names->as_of == last)
        return names->age;
    names->as_of = last;
    names->age = 0;
    for (uint32_t i = 0; i < names->n; i++) {
        uint64_t age = 0;

        if (names->uses[i].lacking)
            age = kiln_book_age(census->book,
                                kiln_lacks_build_id(census->lacks, names->uses[i].build));
        names->age = age > names->age ? age : names->age;
    }
    return names->age;
}

int kiln_census_age(const struct kiln_census_look *look, uint64_t *ret_age, struct kiln_err *err)
{
    struct kiln_census *census = look->tenant->census;
    int r;

    *ret_age = 0;
    if (kiln_book_last_age(census->book) == 0)
        return 0;
    r = kiln_census_look_at(look, false, err);
    if (r < 0)
        return r;
    pthread_mutex_lock(&census->lock);
    *ret_age = age_of(census, look->block->names);
    pthread_mutex_unlock(&census->lock);
    return 0;
}

uint64_t kiln_census_changed(const struct kiln_census_look *look)
{
    struct kiln_census *census = look->tenant->census;
    const struct kiln_block_names *names;
    uint64_t changed_ns = 0;

    pthread_mutex_lock(&census->lock);
    names = look->block->names;
    for (uint32_t i = 0; names && i < names->n; i++) {
        uint64_t ns = 0;

        if (names->uses[i].lacking)
            ns = kiln_book_changed(census->book,
                                   kiln_lacks_build_id(census->lacks, names->uses[i].build));
        changed_ns = ns > changed_ns ? ns : changed_ns;
    }
    pthread_mutex_unlock(&census->lock);
    return changed_ns;
}

bool kiln_census_is_stale(struct kiln_tenant *tenant, const struct kiln_block *block)
{
    bool stale;

    pthread_mutex_lock(&tenant->census->lock);
    stale = block->names && block->names->stale;
    pthread_mutex_unlock(&tenant->census->lock);
    return stale;
}

/* A reference to what was found for names of this age; false: nobody looked. */
static bool find_stale(struct kiln_census *census, const struct kiln_block *block, uint64_t age,
                       struct kiln_stale **ret_stale)
{
    const struct kiln_block_names *names = block->names;
    bool found;

    pthread_mutex_lock(&census->lock);
    found = age == 0 || (names->judged && names->judged_age == age);
    *ret_stale = found && age ? names->stale : NULL;
    if (*ret_stale)
        atomic_fetch_add_explicit(&(*ret_stale)->refs, 1, memory_order_relaxed);
    pthread_mutex_unlock(&census->lock);
    return found;
}

static void keep_stale(struct kiln_census *census, struct kiln_block *block, uint64_t age,
                       struct kiln_stale *stale)
{
    struct kiln_block_names *names = block->names;

    pthread_mutex_lock(&census->lock);
    if (!names->judged || names->judged_age < age) {
        kiln_stale_unref(names->stale);
        names->judged = true;
        names->judged_age = age;
        names->stale = stale;
        if (stale)
            atomic_fetch_add_explicit(&stale->refs, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&census->lock);
}

int kiln_census_stale(const struct kiln_census_look *look, struct kiln_stale **ret_stale,
                      struct kiln_err *err)
{
    struct kiln_census *census = look->tenant->census;
    struct kiln_block_dict *dict;
    uint64_t age;
    int r = kiln_census_age(look, &age, err);

    if (r < 0 || find_stale(census, look->block, age, ret_stale))
        return r;
    r = read_dict(look, &dict, err);
    if (r < 0)
        return r;
    r = judge_batch(census, dict->batch, ret_stale);
    kiln_block_dict_unref(dict);
    if (r == 0)
        keep_stale(census, look->block, age, *ret_stale);
    return r;
}
