/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a block: opened, verified, and read whole, its checksums trusted so that the fuzzer
 * gets behind them.  What verifies must also be readable, and what does not without its damage.
 */
#include "fuzz.h"
#include "one_file.h"
#include "store/block.h"
#include "store/page.h"

#define MEMORY ((size_t)8 << 20)

static void count_lost(void *context, const struct kiln_block_lost *lost)
{
    FUZZ_CHECK(lost->why->code && lost->section);
    ++*(uint64_t *)context;
}

/* Returns 0 if all of it could be read, or a limit was in the way.  `lost`: without what is
 * damaged. */
static int read_all(struct kiln_block *block, struct kiln_builder *b, uint64_t *lost)
{
    struct kiln_block_read_opts opts = {
        .memory_bytes = MEMORY, .lost = lost ? count_lost : NULL, .lost_context = lost};
    struct kiln_block_reader *reader;
    struct kiln_block_profile p;
    int r = kiln_block_read(block, &opts, b, &reader, NULL);

    if (r < 0)
        return r;
    while ((r = kiln_block_next(reader, &p, NULL)) > 0) {
        uint32_t index;

        if (kiln_block_add_resource(reader, p.resource, &index) == 0)
            (void)kiln_block_scope(reader, p.scope);
        for (uint32_t i = 0; i < p.head.n_samples; i++)
            FUZZ_CHECK(p.samples[i].stack < kiln_builder_peek(b)->dict.n_stacks &&
                       p.samples[i].attrs < kiln_builder_peek(b)->dict.n_sets);
    }
    kiln_block_reader_free(reader);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct file_io file = file_of(data, size);
    struct kiln_limits limits = kiln_limits_default;
    struct kiln_err err = {0};
    struct kiln_block *block;
    struct kiln_builder *b;
    uint64_t lost = 0;
    int sound, read;

    kiln_page_trusts_all = true;
    if (kiln_block_open(&file.io, "x.kb", &block, &err) < 0) {
        FUZZ_CHECK(err.text[0]);
        return 0;
    }
    sound = kiln_block_verify(block, &err);
    FUZZ_CHECK(sound == 0 || err.text[0]);
    limits.memory_bytes = MEMORY;
    if (kiln_builder_new(&limits, &b) == 0) {
        read = read_all(block, b, NULL);
        FUZZ_CHECK(sound < 0 || read == 0 || read == KILN_E_LIMIT);
        kiln_builder_free(b);
    }
    if (kiln_builder_new(&limits, &b) == 0) {
        read = read_all(block, b, &lost);
        FUZZ_CHECK(!kiln_block_is_damage(read));
        FUZZ_CHECK(sound < 0 || lost == 0);
        kiln_builder_free(b);
    }
    kiln_block_unref(block);
    return 0;
}
