/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/out/names_kept.h"

#include "base/mem.h"
#include "inproc/out/names.h"

enum {
    SLOTS = 1 << 15, /* a power of two */
    FULL = SLOTS / 4 * 3,
    TEXTS_MAX = KILN_IN_NAMES_KEPT - SLOTS * (int)sizeof(struct kiln_in_kept_slot),
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
    kept->n = 0;
}

static struct kiln_in_kept_slot *look(const struct kiln_in_kept *kept, uint64_t key)
{
    uint32_t i = (uint32_t)(key >> 32) & (SLOTS - 1);

    while (kept->slots[i].key && kept->slots[i].key != key)
        i = (i + 1) & (SLOTS - 1);
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

static bool make_room(struct kiln_in_kept *kept, size_t more)
{
    if (!kept->slots)
        kept->slots = kiln_calloc(SLOTS, sizeof(*kept->slots));
    if (!kept->slots)
        return false;
    if (kept->n >= FULL || kept->texts.len + more > TEXTS_MAX) {
        memset(kept->slots, 0, SLOTS * sizeof(*kept->slots));
        kiln_buf_clear(&kept->texts);
        kept->n = 0;
    }
    return true;
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
