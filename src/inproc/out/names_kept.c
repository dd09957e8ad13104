/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/out/names_kept.h"

#include "base/mem.h"
#include "inproc/out/names.h"

enum {
    SLOTS_MIN = 1 << 9, /* a power of two */
    SLOTS_MAX = 1 << 15,
    TEXTS_MAX = KILN_IN_NAMES_KEPT - SLOTS_MAX * (int)sizeof(struct kiln_in_kept_slot),
};

void kiln_in_kept_init(struct kiln_in_kept *kept)
{
    *kept = (struct kiln_in_kept){0};
    kiln_buf_init(&kept->texts, TEXTS_MAX);
}

void kiln_in_kept_done(struct kiln_in_kept *kept)
{
    kiln_free(kept->slots);
    kiln_buf_done(&kept->texts);
    kept->slots = NULL;
    kept->n = kept->n_slots = 0;
}

static struct kiln_in_kept_slot *look(const struct kiln_in_kept *kept, uint64_t key)
{
    uint32_t i = (uint32_t)(key >> 32) & (kept->n_slots - 1);

    while (kept->slots[i].key && kept->slots[i].key != key)
        i = (i + 1) & (kept->n_slots - 1);
    return &kept->slots[i];
}

bool kiln_in_kept_find(const struct kiln_in_kept *kept, uint64_t key, struct kiln_str *ret_function,
                       struct kiln_str *ret_system_name)
{
    const struct kiln_in_kept_slot *slot = kept->slots ? look(kept, key) : NULL;

    if (!slot || !slot->key)
        return false;
    *ret_function = *ret_system_name = KILN_STR_NONE;
    if (slot->at == UINT32_MAX)
        return true;
    *ret_function = (struct kiln_str){kept->texts.ptr + slot->at, slot->function};
    *ret_system_name =
        (struct kiln_str){kept->texts.ptr + slot->at + slot->function, slot->system_name};
    return true;
}

static bool is_full(const struct kiln_in_kept *kept)
{
    return kept->n >= kept->n_slots / 4 * 3;
}

static void grow(struct kiln_in_kept *kept)
{
    struct kiln_in_kept larger = *kept;

    larger.n_slots = kept->n_slots ? 2 * kept->n_slots : SLOTS_MIN;
    larger.slots = kiln_calloc(larger.n_slots, sizeof(*larger.slots));
    if (!larger.slots)
        return;
    for (uint32_t i = 0; i < kept->n_slots; i++) {
        if (kept->slots[i].key)
            *look(&larger, kept->slots[i].key) = kept->slots[i];
    }
    kiln_free(kept->slots);
    *kept = larger;
}

static bool make_room(struct kiln_in_kept *kept, size_t more)
{
    if (is_full(kept) && kept->n_slots < SLOTS_MAX)
        grow(kept);
    if (kept->slots && (is_full(kept) || kept->texts.len + more > TEXTS_MAX)) {
        memset(kept->slots, 0, kept->n_slots * sizeof(*kept->slots));
        kiln_buf_clear(&kept->texts);
        kept->n = 0;
    }
    return kept->slots != NULL;
}

void kiln_in_kept_put(struct kiln_in_kept *kept, uint64_t key, struct kiln_str function,
                      struct kiln_str system_name)
{
    struct kiln_in_kept_slot *slot;
    size_t at;

    if (!key || !make_room(kept, function.len + system_name.len))
        return;
    slot = look(kept, key);
    if (slot->key)
        return;
    at = kept->texts.len;
    kiln_buf_add_str(&kept->texts, function);
    kiln_buf_add_str(&kept->texts, system_name);
    if (kept->texts.error) {
        kept->texts.error = 0;
        kept->texts.len = at;
        return;
    }
    *slot = (struct kiln_in_kept_slot){.key = key,
                                       .at = function.len ? (uint32_t)at : UINT32_MAX,
                                       .function = (uint32_t)function.len,
                                       .system_name = (uint32_t)system_name.len};
    kept->n++;
}
