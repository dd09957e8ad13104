/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the one block of a store, its checksums trusted, and questions about it: of what
 * verifies everything is counted, of what does not nothing, and every tree adds up.
 */
#include "fuzz.h"
#include "one_file.h"
#include "store/page.h"
#include "store/store_int.h"

#define POOL ((size_t)64 << 20)

static const struct kiln_str tenant_name = {"anonymous", 9};

/* As much of a store as questions look at. */
static int make_store(struct kiln_store *store, struct kiln_block *block)
{
    struct kiln_tenant *tenant;
    int r;

    store->opts.read_only = true;
    kiln_pool_init(&store->own_pool, "fuzz", POOL, NULL);
    store->pool = &store->own_pool;
    kiln_cache_init(&store->cache, store->pool, POOL / 4);
    pthread_mutex_init(&store->lock, NULL);
    kiln_aside_init(&store->aside);
    pthread_mutex_init(&store->keeping, NULL);
    pthread_mutex_init(&store->keep.merging, NULL);
    r = kiln_tenant_get(store, tenant_name, &tenant);
    if (r == 0)
        r = kiln_catalog_swap(tenant, NULL, 0, &block, 1);
    if (r < 0)
        kiln_block_unref(block);
    return r;
}

static void drop_store(struct kiln_store *store)
{
    while (store->tenants) {
        struct kiln_tenant *next = store->tenants->next;

        kiln_tenant_free(store->tenants);
        store->tenants = next;
    }
    kiln_aside_done(&store->aside);
    kiln_cache_done(&store->cache);
    kiln_free(store);
}

static void check_tree(const struct kiln_merged *merged)
{
    const struct kiln_flame *f = merged->flame;

    FUZZ_CHECK(f->total == merged->total && f->nodes[0].total == merged->total);
    for (uint32_t i = 0; i < f->n_nodes; i++) {
        uint64_t sum = (uint64_t)f->nodes[i].self;

        FUZZ_CHECK(f->nodes[i].name < f->n_names && f->nodes[i].end > i);
        for (uint32_t k = i + 1; k < f->nodes[i].end; k = f->nodes[k].end)
            sum += (uint64_t)f->nodes[k].total;
        FUZZ_CHECK(sum == (uint64_t)f->nodes[i].total);
    }
}

static int ask(struct kiln_store *store, const struct kiln_question *q, bool *ret_damaged)
{
    static const struct kiln_merge_wants wants = {
        .nodes_max = 10, .functions = true, .profile = true, .exact = true};
    struct kiln_merged *merged = NULL;
    int r = kiln_store_merge(&store->engine, q, &wants, &merged, NULL);

    if (r < 0)
        return r;
    check_tree(merged);
    *ret_damaged = merged->basis.n_damaged;
    kiln_merged_free(merged);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct kiln_str with = {"main", 4};
    static const struct kiln_matcher matcher = {
        .name = {"thread", 6}, .value = {"main", 4}, .op = KILN_MATCH_NE};
    static const uint8_t trace[16] = {1};
    const struct kiln_window window = {1, UINT64_MAX / 2};
    struct kiln_leash leash = {.memory_max = POOL};
    struct kiln_question q = {.tenants = &tenant_name, .n_tenants = 1, .leash = &leash};
    struct file_io file = file_of(data, size);
    struct kiln_store *store;
    struct kiln_block *block;
    bool damaged = false;
    int sound, r;

    kiln_page_trusts_all = true;
    if (kiln_block_open(&file.io, "x.kb", &block, NULL) < 0)
        return 0;
    sound = kiln_block_verify(block, NULL);
    store = kiln_calloc(1, sizeof(*store));
    if (!store) {
        kiln_block_unref(block);
        return 0;
    }
    store->io = &file.io;
    if (make_store(store, block) == 0) {
        q.matchers = &matcher;
        q.n_matchers = data[size - 1] & 1;
        q.windows = &window;
        q.n_windows = data[size - 1] >> 1 & 1;
        q.stacks.with = &with;
        q.stacks.n_with = data[size - 1] >> 2 & 1;
        q.trace_ids = &trace;
        q.n_trace_ids = data[size - 1] >> 3 & 1;
        r = ask(store, &q, &damaged);
        FUZZ_CHECK(sound < 0 || (!damaged && (r == 0 || r == KILN_E_LIMIT)));
        q.n_matchers = q.n_windows = q.stacks.n_with = q.n_trace_ids = 0;
        r = ask(store, &q, &damaged);
        FUZZ_CHECK(sound < 0 || (!damaged && (r == 0 || r == KILN_E_LIMIT)));
        q.average = true;
        r = ask(store, &q, &damaged);
        FUZZ_CHECK(sound < 0 || (!damaged && (r == 0 || r == KILN_E_LIMIT)));
    }
    drop_store(store);
    return 0;
}
