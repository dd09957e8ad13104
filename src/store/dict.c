/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader (store/block_reader.h) that has read its dictionary and nothing else, less what only
 * reading needs.
 */
#include "store/dict.h"

#include <errno.h>

#include "core/builder_int.h"
#include "store/block_reader.h"
#include "store/fund.h"

static void free_dict(struct kiln_cached *cached)
{
    struct kiln_block_dict *dict = (struct kiln_block_dict *)cached;

    kiln_block_reader_free(dict->reader);
    kiln_free(dict);
}

/* About what the sections of the dictionary take on disk. */
static uint64_t bytes_on_disk(const struct kiln_footer *f)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < f->n_sections; i++) {
        const struct kiln_section *s = &f->sections[i];

        if (s->kind <= KILN_SECTION_ROWS || s->kind >= KILN_SECTION_STACKS)
            continue;
        for (uint32_t p = 0; p < s->n_pages; p++)
            bytes += f->pages[s->first_page + p].size;
    }
    return bytes;
}

static int load(struct kiln_block *block, bool code, struct kiln_block_dict **ret_dict,
                struct kiln_err *err)
{
    struct kiln_block_read_opts opts = {.dict_only = true, .no_code = !code};
    struct kiln_block_dict *dict = kiln_calloc(1, sizeof(*dict));
    struct kiln_block_reader *r;
    int result;

    if (!dict)
        return -ENOMEM;
    result = kiln_block_read(block, &opts, NULL, &r, err);
    if (result < 0) {
        kiln_free(dict);
        return result;
    }
    kiln_reader_trim(r);
    *dict = (struct kiln_block_dict){
        .batch = kiln_builder_peek(r->own),
        .origins = r->origins,
        .moments = r->moments,
        .cpus = r->cpus,
        .n_origins = r->n_origins,
        .n_moments = r->n_moments,
        .reader = r,
        .cached = {.bytes = sizeof(*dict) + sizeof(*r) + r->budget.used + r->own->box->budget.used,
                   .free = free_dict},
    };
    atomic_init(&dict->cached.refs, 1);
    *ret_dict = dict;
    return 0;
}

static int get(struct kiln_cache *cache, struct kiln_block *block, bool code,
               struct kiln_fund *fund, struct kiln_block_dict **ret_dict, struct kiln_err *err)
{
    const struct kiln_block_id *id = &kiln_block_info(block)->id;
    uint32_t what = code ? KILN_CACHE_DICT : KILN_CACHE_META;
    struct kiln_block_dict *dict = (struct kiln_block_dict *)kiln_cache_find(cache, id, what, 0);
    bool kept;
    int r;

    if (!dict) {
        r = kiln_leash_read(fund->leash, bytes_on_disk(&block->footer));
        if (r == 0)
            r = load(block, code, &dict, err);
        if (r < 0)
            return r;
        kept = code ? kiln_cache_offer(cache, id, what, &dict->cached)
                    : kiln_cache_put(cache, id, what, 0, &dict->cached);
        /* One with code is let go soon, and was reserved for. */
        r = kept || code ? 0 : kiln_fund_take(fund, dict->cached.bytes);
        if (r < 0) {
            kiln_block_dict_unref(dict);
            return r;
        }
    }
    *ret_dict = dict;
    return 0;
}

int kiln_block_dict(struct kiln_cache *cache, struct kiln_block *block, struct kiln_fund *fund,
                    struct kiln_block_dict **ret_dict, struct kiln_err *err)
{
    return get(cache, block, true, fund, ret_dict, err);
}

int kiln_block_meta(struct kiln_cache *cache, struct kiln_block *block, struct kiln_fund *fund,
                    struct kiln_block_dict **ret_dict, struct kiln_err *err)
{
    return get(cache, block, false, fund, ret_dict, err);
}

void kiln_block_dict_done(struct kiln_block_dict *dict, struct kiln_fund *fund)
{
    if (dict && !dict->cached.home && atomic_load(&dict->cached.refs) == 1)
        kiln_fund_return(fund, dict->cached.bytes);
    kiln_block_dict_unref(dict);
}
