/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a page in a builder, which has the block's dictionary as far as it was needed, and keeps
 * it when the rows go.  Profiles that come a second time come in numbers, so the last readers stay
 * open: a dictionary is read once for many pages.
 */
#include <errno.h>

#include "store/block_reader.h"
#include "store/seen_block.h"

#define READ_BYTES ((size_t)16 << 20) /* for a page, beside the dictionary */
#define DICT_TIMES 3u                 /* of its bytes: as it was read, brought over, and hashed */

/* What a damaged block has lost is not there. */
static void pass_over(void *context, const struct kiln_block_lost *lost)
{
    (void)context;
    (void)lost;
}

static void close_reader(struct kiln_seen *seen, struct kiln_seen_reader *r)
{
    kiln_block_reader_free(r->reader);
    kiln_content_done(&r->content);
    kiln_rows_done(&r->rows);
    kiln_pool_give(seen->pool, r->charged);
    kiln_free(r);
}

static int fill_reader(struct kiln_seen *seen, struct kiln_seen_reader *r)
{
    struct kiln_block_read_opts opts = {.lost = pass_over};
    struct kiln_limits limits = kiln_limits_default;
    int result;

    limits.memory_bytes = r->charged;
    result = kiln_rows_init(&r->rows, &limits);
    if (result == 0)
        result = kiln_block_read(r->block, &opts, r->rows.b, &r->reader, NULL);
    kiln_content_init(&r->content, seen->seed);
    seen->work.dicts++;
    return result;
}

static int take(struct kiln_seen *seen, size_t bytes)
{
    bool more = true;

    if (kiln_pool_take(seen->pool, bytes) == 0)
        return 0;
    kiln_seen_close_readers(seen, NULL);
    while (more && !kiln_pool_has(seen->pool, bytes))
        more = kiln_seen_drop_oldest(seen);
    return kiln_pool_take(seen->pool, bytes);
}

static int open_reader(struct kiln_seen *seen, struct kiln_block *block,
                       struct kiln_seen_reader **ret_reader)
{
    size_t bytes = (size_t)kiln_block_info(block)->dict_bytes * DICT_TIMES + READ_BYTES;
    struct kiln_seen_reader *r;
    int result;

    if (take(seen, bytes) < 0)
        return KILN_E_LIMIT;
    r = kiln_calloc(1, sizeof(*r));
    if (!r) {
        kiln_pool_give(seen->pool, bytes);
        return -ENOMEM;
    }
    r->block = block;
    r->charged = bytes;
    result = fill_reader(seen, r);
    if (result < 0)
        close_reader(seen, r);
    else
        *ret_reader = r;
    return result;
}

void kiln_seen_close_readers(struct kiln_seen *seen, const struct kiln_block *block)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < KILN_SEEN_READERS; i++) {
        struct kiln_seen_reader *r = seen->readers[i];

        seen->readers[i] = NULL;
        if (r && (!block || r->block == block))
            close_reader(seen, r);
        else if (r)
            seen->readers[kept++] = r;
    }
}

void kiln_seen_rest(struct kiln_seen *seen)
{
    for (uint32_t i = KILN_SEEN_READERS; i-- > 0;) {
        struct kiln_seen_reader *r = seen->readers[i];

        if (r && !r->used)
            kiln_seen_close_readers(seen, r->block);
        else if (r)
            r->used = false;
    }
}

static void put_first(struct kiln_seen *seen, struct kiln_seen_reader *r)
{
    uint32_t i = 0;

    while (i < KILN_SEEN_READERS - 1 && seen->readers[i] && seen->readers[i] != r)
        i++;
    if (seen->readers[i] && seen->readers[i] != r)
        close_reader(seen, seen->readers[i]);
    memmove(&seen->readers[1], &seen->readers[0], i * sizeof(seen->readers[0]));
    seen->readers[0] = r;
}

/* The rows of the page before go; what they referred to stays. */
static void clear_rows(struct kiln_rows *rows)
{
    while (rows->n) {
        kiln_builder_drop_profile(rows->b);
        rows->n--;
    }
}

static int read_rows(struct kiln_seen_reader *r, uint32_t page)
{
    int result;

    clear_rows(&r->rows);
    kiln_reader_choose_page(r->reader, page);
    result = kiln_rows_read(&r->rows, r->reader, NULL, NULL);
    if (result == 0)
        result = kiln_content_learn(&r->content, kiln_rows_batch(&r->rows));
    return result;
}

int kiln_seen_read_page(struct kiln_seen *seen, struct kiln_block *block, uint32_t page,
                        struct kiln_seen_reader **ret_reader)
{
    int result = KILN_E_LIMIT;

    for (uint32_t i = 0; i < KILN_SEEN_READERS && seen->readers[i]; i++) {
        if (seen->readers[i]->block == block)
            put_first(seen, seen->readers[i]);
    }
    seen->work.contents++;
    if (seen->readers[0] && seen->readers[0]->block == block) {
        result = read_rows(seen->readers[0], page);
        if (result < 0) /* full, perhaps: a new one has room for this page */
            kiln_seen_close_readers(seen, block);
    }
    if (result < 0) {
        struct kiln_seen_reader *fresh;

        result = open_reader(seen, block, &fresh);
        if (result < 0)
            return result;
        put_first(seen, fresh);
        result = read_rows(fresh, page);
        if (result < 0)
            kiln_seen_close_readers(seen, block);
    }
    if (result == 0) {
        seen->readers[0]->used = true;
        *ret_reader = seen->readers[0];
    }
    return result;
}
