/* SPDX-License-Identifier: Apache-2.0 */
#include "core/code.h"
#include "base/hash.h"
#include "core/builder_int.h"

static bool has_build_id(const struct kiln_batch *batch, uint32_t set)
{
    const struct kiln_dict *d = &batch->dict;
    struct kiln_range range = d->sets[set];

    for (uint32_t i = 0; i < range.n; i++) {
        struct kiln_str key = d->strings[d->attrs[d->members[range.first + i]].key];

        if (kiln_str_starts(key, KILN_STR("process.executable.build_id.")))
            return true;
    }
    return false;
}

/* Whether a mapping says which code it holds.  "//anon" and "[heap]" are no files. */
static bool is_code(const struct kiln_batch *batch, const struct kiln_mapping *m)
{
    struct kiln_str file = kiln_batch_str(batch, m->filename);

    return has_build_id(batch, m->attrs) ||
           (kiln_str_starts(file, KILN_STR("/")) && !kiln_str_starts(file, KILN_STR("//")));
}

static bool same_code(const struct kiln_mapping *a, const struct kiln_mapping *b)
{
    return a->filename == b->filename && a->attrs == b->attrs && a->offset == b->offset &&
           a->limit - a->start == b->limit - b->start;
}

uint32_t kiln_code_mapping(struct kiln_code *code, struct kiln_builder *b,
                           const struct kiln_mapping *mapping)
{
    const struct kiln_batch *batch = kiln_builder_peek(b);
    uint64_t hash = kiln_hash_mix(mapping->filename | (uint64_t)mapping->attrs << 32,
                                  mapping->limit - mapping->start);
    uint32_t added;
    int r;

    if (!is_code(batch, mapping))
        return kiln_builder_mapping(b, mapping);
    hash = kiln_hash_mix(hash, mapping->offset);
    for (struct kiln_probe p = kiln_intern_probe(&code->index, hash);
         kiln_intern_next(&code->index, &p);) {
        if (same_code(&batch->dict.mappings[p.entry], mapping))
            return p.entry;
    }
    added = kiln_builder_mapping(b, mapping);
    r = kiln_intern_add(&code->index, &b->box->budget, hash, added);
    if (r < 0)
        kiln_builder_fail(b, r);
    return added;
}

void kiln_code_to_file(const struct kiln_batch *batch, struct kiln_mapping *mapping)
{
    uint64_t limit;

    if (mapping->limit <= mapping->start || mapping->start == mapping->offset ||
        __builtin_add_overflow(mapping->offset, mapping->limit - mapping->start, &limit) ||
        !is_code(batch, mapping))
        return;
    mapping->start = mapping->offset;
    mapping->limit = limit;
}

void kiln_code_done(struct kiln_code *code, struct kiln_builder *b)
{
    kiln_intern_done(&code->index, &b->box->budget);
}
