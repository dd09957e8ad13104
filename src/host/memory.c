/* SPDX-License-Identifier: Apache-2.0 */
#include "host/memory.h"

#include <errno.h>

#include "base/mem.h"

enum { ENTRY_BYTES = 1024 }; /* of rows and mappings, for one entry of the directory */

static int put_nothing(struct kiln_table_memory *memory, const struct kiln_dir_key *key,
                       const struct kiln_dir_entry *entry)
{
    (void)memory, (void)key, (void)entry;
    return 0;
}

static int drop_nothing(struct kiln_table_memory *memory, const struct kiln_dir_key *key)
{
    (void)memory, (void)key;
    return 0;
}

int kiln_table_memory_plain(size_t bytes, struct kiln_table_memory **ret_memory)
{
    struct kiln_table_memory *memory;

    if (bytes / sizeof(uint64_t) > UINT32_MAX)
        return -EINVAL;
    memory = kiln_calloc(1, sizeof(*memory));
    if (!memory)
        return -ENOMEM;
    memory->n_words = (uint32_t)(bytes / sizeof(uint64_t));
    memory->n_entries = (uint32_t)(bytes / ENTRY_BYTES);
    memory->put = put_nothing;
    memory->drop = drop_nothing;
    memory->words = kiln_calloc(memory->n_words, sizeof(uint64_t));
    if (!memory->words) {
        kiln_free(memory);
        return -ENOMEM;
    }
    *ret_memory = memory;
    return 0;
}

void kiln_table_memory_plain_free(struct kiln_table_memory *memory)
{
    if (!memory)
        return;
    kiln_free(memory->words);
    kiln_free(memory);
}
