/* SPDX-License-Identifier: Apache-2.0 */
#include "store/fund.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"

#define PIECE ((size_t)1 << 20)

void kiln_fund_init(struct kiln_fund *fund, struct kiln_leash *leash)
{
    *fund = (struct kiln_fund){.leash = leash};
}

void kiln_fund_done(struct kiln_fund *fund)
{
    if (fund->budget.limit)
        kiln_leash_give(fund->leash, fund->budget.limit);
    fund->budget = (struct kiln_budget){0};
    fund->ahead = 0;
}

static void count(struct kiln_fund *fund, size_t bytes)
{
    fund->budget.limit += bytes;
    fund->budget.used += bytes;
}

int kiln_fund_take(struct kiln_fund *fund, size_t bytes)
{
    size_t known = fund->ahead < bytes ? fund->ahead : bytes;
    int r = bytes > known ? kiln_leash_take(fund->leash, bytes - known) : 0;

    if (r == 0) {
        count(fund, bytes - known);
        fund->ahead -= known;
    }
    return r;
}

void kiln_fund_return(struct kiln_fund *fund, size_t bytes)
{
    fund->ahead += bytes;
}

int kiln_fund_reserve(struct kiln_fund *fund, size_t bytes, size_t ahead, struct kiln_err *err)
{
    int r = kiln_leash_reserve(fund->leash, bytes + ahead, err);

    if (r == 0) {
        count(fund, bytes + ahead);
        fund->ahead = ahead;
    }
    return r;
}

/* Room for so many bytes more. */
static int fund_more(struct kiln_fund *fund, size_t bytes)
{
    size_t left = fund->budget.limit - fund->budget.used, more;
    int r;

    if (left >= bytes)
        return 0;
    more = bytes - left > PIECE ? bytes - left : PIECE;
    r = kiln_leash_take(fund->leash, more);
    if (r == 0)
        fund->budget.limit += more;
    return r;
}

int kiln_fund_grow(struct kiln_fund *fund, void **ptr, uint32_t *cap, uint64_t need, size_t size)
{
    int r = 0;

    if (need <= *cap)
        return 0;
    /* Capacity doubles at most, or is what is needed; while it moves both are there. */
    r = fund_more(fund, (size_t)(need > *cap * UINT64_C(2) ? need : *cap * UINT64_C(2)) * size +
                            64 * size);
    if (r < 0)
        return r;
    return kiln_grow(&fund->budget, ptr, cap, need, size, UINT32_MAX - 1);
}

/* ---- entries by key ---- */

void kiln_fund_table_init(struct kiln_fund_table *table, uint32_t key_size, uint32_t size)
{
    *table = (struct kiln_fund_table){.key_size = key_size, .size = size};
}

void kiln_fund_table_done(struct kiln_fund_table *table, struct kiln_fund *fund)
{
    kiln_intern_done(&table->index, &fund->budget);
    kiln_array_free(&fund->budget, &table->all, &table->cap, table->size);
    table->n = 0;
}

static int fund_index(struct kiln_fund *fund, struct kiln_intern *index)
{
    return index->n < index->max ? 0 : fund_more(fund, ((size_t)index->n + 64) * 40);
}

int kiln_fund_table_get(struct kiln_fund_table *table, struct kiln_fund *fund, const void *key,
                        uint32_t *ret_number)
{
    uint64_t hash = kiln_hash(key, table->key_size);
    char *entry;
    int r;

    for (struct kiln_probe p = kiln_intern_probe(&table->index, hash);
         kiln_intern_next(&table->index, &p);) {
        if (memcmp((char *)table->all + (size_t)p.entry * table->size, key, table->key_size) == 0) {
            *ret_number = p.entry;
            return 0;
        }
    }
    r = kiln_fund_grow(fund, &table->all, &table->cap, (uint64_t)table->n + 1, table->size);
    if (r == 0)
        r = fund_index(fund, &table->index);
    if (r == 0)
        r = kiln_intern_add(&table->index, &fund->budget, hash, table->n);
    if (r < 0)
        return r;
    entry = (char *)table->all + (size_t)table->n * table->size;
    memset(entry, 0, table->size);
    memcpy(entry, key, table->key_size);
    *ret_number = table->n++;
    return 0;
}

/* ---- texts ---- */

void kiln_fund_texts_init(struct kiln_fund_texts *names, struct kiln_fund *fund)
{
    *names = (struct kiln_fund_texts){0};
    kiln_arena_init(&names->arena, &fund->budget);
}

void kiln_fund_texts_done(struct kiln_fund_texts *names, struct kiln_fund *fund)
{
    kiln_intern_done(&names->index, &fund->budget);
    kiln_array_free(&fund->budget, (void **)&names->all, &names->cap, sizeof(*names->all));
    kiln_arena_done(&names->arena);
    names->n = 0;
}

int kiln_fund_texts_get(struct kiln_fund_texts *names, struct kiln_fund *fund, struct kiln_str text,
                        uint32_t *ret_number)
{
    uint64_t hash = kiln_hash(text.ptr, text.len);
    struct kiln_str copy;
    int r;

    for (struct kiln_probe p = kiln_intern_probe(&names->index, hash);
         kiln_intern_next(&names->index, &p);) {
        if (kiln_str_eq(names->all[p.entry], text)) {
            *ret_number = p.entry;
            return 0;
        }
    }
    r = kiln_fund_grow(fund, (void **)&names->all, &names->cap, (uint64_t)names->n + 1,
                       sizeof(*names->all));
    if (r == 0)
        r = fund_index(fund, &names->index);
    if (r == 0)
        r = fund_more(fund, text.len + PIECE / 4);
    if (r < 0)
        return r;
    copy = kiln_arena_copy(&names->arena, text);
    if (!copy.ptr)
        return -ENOMEM;
    r = kiln_intern_add(&names->index, &fund->budget, hash, names->n);
    if (r < 0)
        return r;
    names->all[names->n] = copy;
    *ret_number = names->n++;
    return 0;
}
