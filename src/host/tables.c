/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a page are made by symbol/cfi.h and packed into words; what their bits cannot say becomes
 * KILN_CFA_NONE, and equal neighbours become one.  Mappings of a process are those with
 * code of which it is known what they are; neighbours that are one piece of one file become one.
 */
#include "host/tables.h"

#include <errno.h>

#include "base/err.h"
#include "base/metric.h"
#include "host/bpf/arch.h"
#include "host/tables_int.h"

enum { MAPS_MAX = 65536 };

_Static_assert((int)KILN_CFI_BX_LOST == (int)KILN_BX_LOST, "rows say it in the same way");

/* ---- rows ---- */

static bool fits(int32_t n, int bits)
{
    return n >= -(1 << (bits - 1)) && n < 1 << (bits - 1);
}

static uint32_t pack_cfa(const struct kiln_cfi_row *row)
{
    switch (row->rule) {
    case KILN_RULE_END:
        return KILN_CFA_END;
    case KILN_RULE_PLT:
        return KILN_CFA_PLT;
    case KILN_RULE_SIGNAL:
        return KILN_CFA_SIGNAL;
    case KILN_RULE_FRAME:
        return KILN_CFA_FRAME;
    case KILN_RULE_REG:
        if (row->reg == KILN_ARCH_SP)
            return KILN_CFA_SP;
        return row->reg == KILN_ARCH_FP ? KILN_CFA_FP : KILN_CFA_REG + row->reg;
    case KILN_RULE_DEREF:
        if (row->more != 0 && row->more != 8)
            return KILN_CFA_NONE;
        if (row->reg == KILN_ARCH_SP)
            return row->more ? KILN_CFA_SP_DEREF8 : KILN_CFA_SP_DEREF;
        if (row->reg == KILN_ARCH_FP)
            return row->more ? KILN_CFA_FP_DEREF8 : KILN_CFA_FP_DEREF;
        return KILN_CFA_NONE;
    default:
        return KILN_CFA_NONE;
    }
}

/* A row without its address. */
static uint64_t pack_rule(const struct kiln_cfi_row *row)
{
    uint32_t cfa = pack_cfa(row), fp = KILN_FP_SAME;
    int32_t fp_off = 0;

    if (row->rule != KILN_RULE_REG && row->rule != KILN_RULE_DEREF)
        return kiln_row_pack(0, cfa, KILN_FP_SAME, 0, 0);
    if (row->fp == KILN_SAVED_CFA || row->fp == KILN_SAVED_FP) {
        fp = row->fp == KILN_SAVED_CFA ? KILN_FP_AT_CFA : KILN_FP_AT_FP;
        fp_off = row->fp_off;
    }
    if (row->ra_reg != 0xff) {
        if (fp != KILN_FP_SAME)
            return 0;
        fp = KILN_FP_RA_REG;
        fp_off = row->ra_reg;
    }
    if (cfa == KILN_CFA_NONE || !fits(row->cfa_off, KILN_CFA_OFF_BITS) ||
        !fits(fp_off, KILN_FP_OFF_BITS))
        return 0;
    return kiln_row_with_bx(kiln_row_pack(0, cfa, fp, row->cfa_off, fp_off), row->bx);
}

/* Packs rows, of which the first is at the page's beginning.  `words` NULL: only counts them. */
static uint32_t pack_rows(const struct kiln_cfi_row *rows, uint32_t n, uint64_t *words)
{
    uint64_t last = 0;
    uint32_t n_words = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint64_t rule = pack_rule(&rows[i]);

        if (i && rule == last)
            continue;
        last = rule;
        if (words)
            __atomic_store_n(&words[n_words], rule | (rows[i].address & (KILN_ROWS_MAX - 1)),
                             __ATOMIC_RELAXED);
        n_words++;
    }
    return n_words;
}

struct page {
    const struct kiln_cfi_row *rows;
    uint32_t n;
};

static void write_page(void *context, uint64_t *words)
{
    const struct page *page = context;

    pack_rows(page->rows, page->n, words);
}

static int put_page(struct kiln_tables *tables, const struct kiln_dir_key *key,
                    const struct page *page, struct kiln_dir_entry *ret_entry)
{
    struct kiln_slot_new wanted = {.key = *key};
    struct kiln_slot *slot;
    int r;

    wanted.n = wanted.n_words = pack_rows(page->rows, page->n, NULL);
    r = kiln_slot_put(tables, &wanted, write_page, (void *)page, &slot);
    if (r < 0)
        return r;
    *ret_entry = slot->entry;
    return 0;
}

static struct kiln_cfi *cfi_of(struct kiln_tables *tables, struct kiln_object *object)
{
    if (object->cfi_tried || !object->elf)
        return object->cfi;
    object->cfi_tried = true;
    if (kiln_cfi_open(object->elf, &object->cfi) < 0) {
        object->cfi = NULL;
        tables->stats.bad_objects++;
        kiln_metric_add(tables->bad_objects, 1);
    }
    return object->cfi;
}

/* A file that was closed may be opened again: nothing is kept of it. */
static bool is_closed(const struct kiln_object *object)
{
    return object->kind == KILN_OBJECT_ELF && !object->elf && object->fd < 0;
}

int kiln_tables_page(struct kiln_tables *tables, struct kiln_object *object, uint32_t page,
                     struct kiln_dir_entry *ret_entry)
{
    const struct kiln_cfi_row none = {.rule = KILN_RULE_NONE};
    struct kiln_dir_key key = {.file = object->id, .page = page};
    uint64_t begin = (uint64_t)page << KILN_PAGE_BITS;
    const struct kiln_slot *slot = kiln_slot_find(tables, &key);
    struct kiln_dir_entry entry;
    struct kiln_cfi *cfi;
    int n;

    if (is_closed(object) && !slot)
        return -ENOENT;
    cfi = cfi_of(tables, object);
    if (slot) {
        *ret_entry = slot->entry;
        return cfi || is_closed(object) ? 0 : -ENOENT;
    }
    if (!cfi) {
        n = put_page(tables, &key, &(struct page){&none, 1}, &entry);
        return n < 0 ? n : -ENOENT;
    }
    if (!tables->rows)
        tables->rows = kiln_malloc(KILN_ROWS_MAX * sizeof(*tables->rows));
    if (!tables->rows)
        return -ENOMEM;
    n = kiln_cfi_rows(cfi, begin, begin + KILN_ROWS_MAX, tables->rows, KILN_ROWS_MAX);
    if (n < 0)
        return n;
    return put_page(tables, &key, &(struct page){tables->rows, (uint32_t)n}, ret_entry);
}

/* ---- processes ---- */

/* Whether it is known what a mapping is, and what to say of it. */
static bool map_of(const struct kiln_map *map, struct kiln_table_map *ret_map)
{
    struct kiln_table_map to = {.start = map->start, .end = map->end};

    switch (map->kind) {
    case KILN_MAP_FILE:
    case KILN_MAP_VDSO:
        if (!map->object && !map->tried)
            return false;
        if (map->object && map->object->kind != KILN_OBJECT_OTHER) {
            to.bias = map->bias;
            to.file = map->object->id;
        } else {
            to.flags = KILN_MAP_JIT;
        }
        break;
    case KILN_MAP_ANONYMOUS:
        to.flags = KILN_MAP_JIT;
        break;
    default:
        return false;
    }
    *ret_map = to;
    return true;
}

static bool is_one_piece(const struct kiln_table_map *a, const struct kiln_table_map *b)
{
    return a->end == b->start && a->file == b->file && a->bias == b->bias && a->flags == b->flags;
}

static void write_map(uint64_t *words, const struct kiln_table_map *map)
{
    __atomic_store_n(&words[0], map->start, __ATOMIC_RELAXED);
    __atomic_store_n(&words[1], map->end, __ATOMIC_RELAXED);
    __atomic_store_n(&words[2], map->bias, __ATOMIC_RELAXED);
    __atomic_store_n(&words[3], (uint64_t)map->flags << 32 | map->file, __ATOMIC_RELAXED);
}

/* Returns how many mappings there are to write; writes them unless `words` is NULL. */
static uint32_t pack_maps(const struct kiln_process *process, uint64_t *words, uint32_t *ret_source)
{
    struct kiln_table_map last = {0}, map;
    uint32_t n = 0, source = 0;

    for (uint32_t i = 0; i < process->n_maps; i++) {
        if (!map_of(&process->maps[i], &map))
            continue;
        source++;
        if (n && is_one_piece(&last, &map)) {
            last.end = map.end;
        } else if (n < MAPS_MAX) {
            n++;
            last = map;
        } else {
            break;
        }
        if (words)
            write_map(words + (size_t)(n - 1) * KILN_MAP_WORDS, &last);
    }
    *ret_source = source;
    return n;
}

static void write_maps(void *context, uint64_t *words)
{
    uint32_t unused;

    pack_maps(context, words, &unused);
}

int kiln_tables_process(struct kiln_tables *tables, struct kiln_process *process,
                        struct kiln_dir_entry *ret_entry)
{
    struct kiln_slot_new wanted = {.key = {.file = 0, .page = process->pid}, .era = process->era};
    struct kiln_slot *slot = kiln_slot_find(tables, &wanted.key);
    int r;

    wanted.n = pack_maps(process, NULL, &wanted.n_source);
    if (!slot || slot->entry.era != process->era || slot->version != process->version ||
        slot->n_source != wanted.n_source) {
        wanted.n_words = wanted.n * KILN_MAP_WORDS;
        wanted.version = process->version;
        r = kiln_slot_put(tables, &wanted, write_maps, process, &slot);
        if (r < 0)
            return r;
        process->installed_version = process->version;
    }
    *ret_entry = slot->entry;
    return 0;
}

void kiln_tables_drop_process(struct kiln_tables *tables, struct kiln_process *process)
{
    struct kiln_dir_key key = {.file = 0, .page = process->pid};
    struct kiln_slot *slot = kiln_slot_find(tables, &key);

    if (slot)
        kiln_slot_drop(tables, slot);
    process->installed_version = 0;
}

void kiln_tables_drop_object(struct kiln_tables *tables, struct kiln_object *object)
{
    for (uint32_t i = 1; i < tables->n_slots; i++) {
        struct kiln_slot *slot = &tables->slots[i];

        if (slot->entry.generation && slot->key.file == object->id)
            kiln_slot_drop(tables, slot);
    }
}

/* ---- all of it ---- */

uint64_t kiln_tables_word(const struct kiln_tables *tables, uint32_t index)
{
    if (index >= tables->memory->n_words)
        return 0;
    return __atomic_load_n(&tables->memory->words[index], __ATOMIC_RELAXED);
}

void kiln_tables_stats(const struct kiln_tables *tables, struct kiln_tables_stats *ret_stats)
{
    *ret_stats = tables->stats;
    ret_stats->bytes = (uint64_t)tables->memory->n_words * sizeof(uint64_t);
    ret_stats->used_bytes = (uint64_t)tables->buddy.used_words * sizeof(uint64_t);
}

static uint32_t chains_for(uint32_t n_entries)
{
    uint32_t n = 1024;

    while (n < n_entries && n < KILN_BUDDY_OWNERS)
        n *= 2;
    return n;
}

int kiln_tables_new(struct kiln_table_memory *memory, struct kiln_metrics *metrics,
                    struct kiln_tables **ret_tables)
{
    struct kiln_tables *tables = kiln_calloc(1, sizeof(*tables));
    uint32_t n_chains = chains_for(memory->n_entries);
    int r;

    if (!tables)
        return -ENOMEM;
    tables->memory = memory;
    tables->loaded = kiln_metric_counter(metrics, "kiln_host_unwind_loaded_total",
                                         "Unwind tables that were loaded: pages and mappings.");
    tables->evicted = kiln_metric_counter(metrics, "kiln_host_unwind_evicted_total",
                                          "Unwind tables that made room for others.");
    tables->bad_objects =
        kiln_metric_counter(metrics, "kiln_host_unwind_bad_files_total",
                            "Files whose unwind tables could not be read, or that have none.");
    tables->random = 0x9e3779b97f4a7c15u;
    tables->budget.limit = SIZE_MAX;
    tables->chain_mask = n_chains - 1;
    tables->chains = kiln_calloc(n_chains, sizeof(*tables->chains));
    r = tables->chains ? kiln_buddy_init(&tables->buddy, memory->words, memory->n_words) : -ENOMEM;
    if (r < 0)
        kiln_tables_free(tables);
    else
        *ret_tables = tables;
    return r;
}

void kiln_tables_free(struct kiln_tables *tables)
{
    if (!tables)
        return;
    kiln_buddy_done(&tables->buddy);
    kiln_array_free(&tables->budget, (void **)&tables->slots, &tables->cap_slots,
                    sizeof(*tables->slots));
    kiln_free(tables->chains);
    kiln_free(tables->rows);
    kiln_free(tables);
}
