/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes stand where the hash of tenant and build id says, or in one of the next few places.  Where
 * all of these are taken one of them is forgotten, which costs no more than looking once more.
 */
#include <string.h>

#include "base/hash.h"
#include "naming/job_int.h"

enum { PLACES = 8 };

static uint64_t key_of(const char *tenant, struct kiln_str build_id)
{
    uint64_t key =
        kiln_hash_mix(kiln_hash(tenant, strlen(tenant)), kiln_hash(build_id.ptr, build_id.len));

    return key ? key : 1;
}

static bool is_of(const struct kiln_note *note, uint64_t key, const char *tenant,
                  struct kiln_str build_id)
{
    return note->key == key && strcmp(note->tenant, tenant) == 0 &&
           kiln_str_eq(kiln_str_of(note->build_id), build_id);
}

struct kiln_note *kiln_note_find(struct kiln_notes *notes, const char *tenant,
                                 struct kiln_str build_id)
{
    uint64_t key = key_of(tenant, build_id);

    for (uint32_t i = 0; i < PLACES; i++) {
        struct kiln_note *note = &notes->items[(key + i) % KILN_NOTES];

        if (is_of(note, key, tenant, build_id))
            return note;
    }
    return NULL;
}

struct kiln_note *kiln_note_get(struct kiln_notes *notes, const char *tenant,
                                struct kiln_str build_id)
{
    uint64_t key = key_of(tenant, build_id);
    struct kiln_note *note = kiln_note_find(notes, tenant, build_id);

    if (note)
        return note;
    note = &notes->items[key % KILN_NOTES];
    for (uint32_t i = 0; i < PLACES && note->key; i++)
        note = &notes->items[(key + (i + 1) % PLACES) % KILN_NOTES];
    *note = (struct kiln_note){.key = key};
    strncpy(note->tenant, tenant, sizeof(note->tenant) - 1);
    if (build_id.len < sizeof(note->build_id))
        memcpy(note->build_id, build_id.ptr, build_id.len);
    return note;
}
