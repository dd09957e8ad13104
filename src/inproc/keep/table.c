/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/keep/table.h"

#include <string.h>

#include "base/hash.h"

#define MEMORY_MAX ((size_t)16 << 20)

_Static_assert(sizeof(struct kiln_in_key) == 32, "a key has no padding");

static struct kiln_in_row *find(struct kiln_in_table *table, const struct kiln_in_key *key,
                                uint64_t hash)
{
    for (struct kiln_probe p = kiln_intern_probe(&table->index, hash);
         kiln_intern_next(&table->index, &p);) {
        if (memcmp(&table->rows[p.entry].key, key, sizeof(*key)) == 0)
            return &table->rows[p.entry];
    }
    return NULL;
}

static int append(struct kiln_in_table *table, const struct kiln_in_key *key, uint64_t hash,
                  uint32_t max)
{
    int r;

    table->budget.limit = MEMORY_MAX;
    r = kiln_grow(&table->budget, (void **)&table->rows, &table->cap, (uint64_t)table->n + 1,
                  sizeof(*table->rows), max);
    if (r == 0)
        r = kiln_intern_add(&table->index, &table->budget, hash, table->n);
    if (r == 0)
        table->rows[table->n++] = (struct kiln_in_row){.key = *key};
    return r;
}

int kiln_in_table_add(struct kiln_in_table *table, const struct kiln_in_key *key, double count,
                      double value, uint32_t max)
{
    uint64_t hash = kiln_hash(key, sizeof(*key));
    struct kiln_in_row *row = find(table, key, hash);
    int r;

    if (!row) {
        r = append(table, key, hash, max);
        if (r < 0)
            return r;
        row = &table->rows[table->n - 1];
    }
    row->count += count;
    row->value += value;
    return 0;
}

struct kiln_in_row *kiln_in_table_take(struct kiln_in_table *table, uint32_t *ret_n)
{
    struct kiln_in_row *rows = table->rows;

    *ret_n = table->n;
    kiln_intern_done(&table->index, &table->budget);
    *table = (struct kiln_in_table){0};
    return rows;
}

void kiln_in_table_done(struct kiln_in_table *table)
{
    uint32_t n;

    kiln_free(kiln_in_table_take(table, &n));
}
