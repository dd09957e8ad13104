/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening reads the head, the tail and the footer (block_write.c has their bytes), nothing else.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "store/block_int.h"

#define FOOTER_MEMORY ((size_t)1 << 30)
#define REST_NS       (6 * 3600 * KILN_NS_PER_S)

int kiln_block_fail(const struct kiln_block *block, struct kiln_err *err, int code)
{
    kiln_err_set(err, code, NULL, "%s", kiln_err_text(code));
    if (err && strncmp(err->where, block->path, strlen(block->path)) != 0)
        kiln_err_within(err, "%s", block->path);
    return code;
}

bool kiln_block_is_damage(int code)
{
    return code == KILN_E_CORRUPT || code == KILN_E_TRUNCATED || code == KILN_E_MALFORMED ||
           code == KILN_E_RANGE || code == KILN_E_UTF8 || code == KILN_E_UNKNOWN;
}

static uint32_t get_u32(const char *at)
{
    uint32_t v;

    memcpy(&v, at, sizeof(v));
    return v;
}

static int read_at(const struct kiln_block *block, uint64_t offset, char *buf, size_t n,
                   struct kiln_err *err)
{
    ssize_t got = block->io->pread(block->io, block->fd, buf, n, offset);

    if (got < 0)
        return kiln_err_set(err, (int)got, NULL, "cannot be read: %s", kiln_err_text((int)got));
    if ((size_t)got != n)
        return kiln_err_set(err, KILN_E_TRUNCATED, NULL, "the file is cut off");
    return 0;
}

static int check_version(uint32_t version, struct kiln_err *err)
{
    if (version == 0)
        return kiln_err_set(err, KILN_E_CORRUPT, NULL, "there is no block format 0");
    if (version > KILN_BLOCK_VERSION)
        return kiln_err_set(err, KILN_E_UNSUPPORTED, NULL,
                            "block format %u is newer than this kiln (%u): use a newer kiln",
                            version, KILN_BLOCK_VERSION);
    return 0;
}

static int check_head(const struct kiln_block *block, struct kiln_err *err)
{
    char head[KILN_BLOCK_HEAD];
    int r = read_at(block, 0, head, sizeof(head), err);

    if (r < 0)
        return r;
    if (memcmp(head, KILN_BLOCK_MAGIC, 8) != 0)
        return kiln_err_set(err, KILN_E_UNKNOWN, NULL, "this is no block: its magic is missing");
    if (get_u32(head + 12) != kiln_crc32c(0, head, 12) && !kiln_page_trusts_all)
        return kiln_err_set(err, KILN_E_CORRUPT, NULL, "head: the checksum does not match");
    return check_version(get_u32(head + 8), err);
}

/* Where the footer begins, and its size. */
static int check_tail(struct kiln_block *block, uint64_t *ret_offset, uint64_t *ret_size,
                      struct kiln_err *err)
{
    char tail[KILN_BLOCK_TAIL];
    uint64_t size, footer;
    int r = block->io->size(block->io, block->fd, &size);

    if (r < 0)
        return kiln_err_set(err, r, NULL, "cannot be read: %s", kiln_err_text(r));
    if (size < KILN_BLOCK_HEAD + KILN_PAGE_HEAD + KILN_BLOCK_TAIL)
        return kiln_err_set(err, KILN_E_TRUNCATED, NULL, "the file is cut off");
    r = read_at(block, size - sizeof(tail), tail, sizeof(tail), err);
    if (r < 0)
        return r;
    if (memcmp(tail + 12, KILN_BLOCK_MAGIC, 8) != 0 && !block->lenient)
        return kiln_err_set(err, KILN_E_TRUNCATED, NULL, "the file is cut off: its end is missing");
    if (get_u32(tail + 8) != kiln_crc32c(0, tail, 8) && !kiln_page_trusts_all && !block->lenient)
        return kiln_err_set(err, KILN_E_CORRUPT, NULL, "tail: the checksum does not match");
    r = check_version(get_u32(tail + 4), err);
    if (r < 0)
        return r;
    footer = get_u32(tail);
    if (footer > size - KILN_BLOCK_HEAD - KILN_BLOCK_TAIL)
        return kiln_err_set(err, KILN_E_CORRUPT, NULL, "tail: the footer lies outside the file");
    block->footer.info.bytes = size;
    *ret_size = footer;
    *ret_offset = size - KILN_BLOCK_TAIL - footer;
    return 0;
}

static int read_footer(struct kiln_block *block, struct kiln_err *err)
{
    struct kiln_page_in in;
    uint64_t offset, size;
    int r = block->lenient ? 0 : check_head(block, err);

    if (r == 0)
        r = check_tail(block, &offset, &size, err);
    if (r < 0)
        return r;
    r = kiln_page_in_init(&in, &block->budget);
    if (r == 0) {
        r = kiln_page_load(&in, block->io, block->fd, offset, size, err);
        if (r < 0)
            kiln_err_within(err, "footer");
    }
    if (r == 0)
        r = kiln_footer_decode(&block->footer, &in, offset, err);
    kiln_page_in_done(&in);
    return r;
}

static void close_block(struct kiln_block *block)
{
    if (block->fd >= 0)
        (void)block->io->close(block->io, block->fd);
    kiln_footer_done(&block->footer);
    kiln_block_names_free(block->names);
    kiln_free(block->path);
    kiln_free(block);
}

static int open_block(struct kiln_io *io, const char *path, bool lenient,
                      struct kiln_block **ret_block, struct kiln_err *err)
{
    size_t len = strlen(path) + 1;
    struct kiln_block *block = kiln_calloc(1, sizeof(*block));
    int r = 0;

    if (!block)
        return kiln_err_set(err, -ENOMEM, path, "no memory for opening a block");
    *block =
        (struct kiln_block){.io = io, .fd = -1, .lenient = lenient, .budget.limit = FOOTER_MEMORY};
    atomic_store(&block->refs, 1);
    kiln_footer_init(&block->footer, &block->budget);
    block->path = kiln_malloc(len);
    if (!block->path) {
        r = kiln_err_set(err, -ENOMEM, path, "no memory for opening a block");
    } else {
        memcpy(block->path, path, len);
        block->fd = io->open(io, path, O_RDONLY);
        r = block->fd < 0 ? kiln_err_set(err, block->fd, path, "%s", kiln_err_text(block->fd)) : 0;
        if (r == 0) {
            r = read_footer(block, err);
            if (r < 0)
                kiln_block_fail(block, err, r);
        }
    }
    if (r < 0)
        close_block(block);
    else
        *ret_block = block;
    return r;
}

int kiln_block_open(struct kiln_io *io, const char *path, struct kiln_block **ret_block,
                    struct kiln_err *err)
{
    return open_block(io, path, false, ret_block, err);
}

int kiln_block_open_damaged(struct kiln_io *io, const char *path, struct kiln_block **ret_block,
                            struct kiln_err *err)
{
    int r = open_block(io, path, false, ret_block, err);
    struct kiln_err again = {0};

    return kiln_block_is_damage(r) ? open_block(io, path, true, ret_block, &again) : r;
}

struct kiln_block *kiln_block_ref(struct kiln_block *block)
{
    atomic_fetch_add_explicit(&block->refs, 1, memory_order_relaxed);
    return block;
}

void kiln_block_unref(struct kiln_block *block)
{
    if (block && atomic_fetch_sub_explicit(&block->refs, 1, memory_order_acq_rel) == 1)
        close_block(block);
}

const struct kiln_block_info *kiln_block_info(const struct kiln_block *block)
{
    return &block->footer.info;
}

void kiln_block_rest(struct kiln_block *block)
{
    block->rests_until_ns = kiln_clock_mono_ns() + REST_NS;
}

bool kiln_block_rests(const struct kiln_block *block)
{
    return kiln_clock_mono_ns() < block->rests_until_ns;
}

int kiln_block_series(const struct kiln_block *block, uint32_t i,
                      struct kiln_block_series *ret_series)
{
    if (i >= block->footer.info.n_series)
        return KILN_E_RANGE;
    *ret_series = block->footer.series[i];
    return 0;
}
