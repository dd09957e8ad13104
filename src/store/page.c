/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A column is packed in the one or two ways that can be best, each is compressed, and the smallest
 * is kept; of a long column a sample decides.  What was best is trusted for the next few pages of
 * the same kind: trying costs as much as writing.
 */
#include "store/page.h"

#include <errno.h>

#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include "base/crc32c.h"

#define LEVEL         3
#define LEVEL_QUICK   1 /* for what will soon be written anew */
#define COMPRESSED    0x80u
#define SAMPLE        2048u /* numbers */
#define SAMPLE_QUICK  512u
#define TRUST_PAGES   7u  /* before all packings are tried again */
#define COMPRESS_FROM 16u /* bytes; less never gets smaller */

bool kiln_page_trusts_all;

/* ---- columns ---- */

int kiln_column_grow(struct kiln_column *column, struct kiln_budget *budget, uint64_t need)
{
    return kiln_grow(budget, (void **)&column->v, &column->cap, need, sizeof(*column->v),
                     UINT32_MAX);
}

void kiln_column_done(struct kiln_column *column, struct kiln_budget *budget)
{
    kiln_array_free(budget, (void **)&column->v, &column->cap, sizeof(*column->v));
    column->n = 0;
}

/* ---- zstd ---- */

static void *zstd_alloc(void *opaque, size_t size)
{
    (void)opaque;
    return kiln_malloc(size);
}

static void zstd_free(void *opaque, void *ptr)
{
    (void)opaque;
    kiln_free(ptr);
}

static const ZSTD_customMem zstd_mem = {zstd_alloc, zstd_free, NULL};

/* ---- writing ---- */

int kiln_page_out_init(struct kiln_page_out *out, size_t max_bytes)
{
    *out = (struct kiln_page_out){0};
    kiln_buf_init(&out->page, max_bytes);
    kiln_buf_init(&out->packed, max_bytes);
    kiln_buf_init(&out->pressed, max_bytes);
    kiln_buf_init(&out->best, max_bytes);
    out->zstd = ZSTD_createCCtx_advanced(zstd_mem);
    return out->zstd ? 0 : -ENOMEM;
}

void kiln_page_out_done(struct kiln_page_out *out)
{
    ZSTD_freeCCtx(out->zstd);
    kiln_buf_done(&out->page);
    kiln_buf_done(&out->packed);
    kiln_buf_done(&out->pressed);
    kiln_buf_done(&out->best);
    out->zstd = NULL;
}

void kiln_page_begin(struct kiln_page_out *out, struct kiln_page_habit *habit)
{
    char *head;

    kiln_buf_clear(&out->page);
    out->habit = habit;
    out->n_columns = 0;
    head = kiln_buf_reserve(&out->page, KILN_PAGE_HEAD);
    if (head) {
        memset(head, 0, KILN_PAGE_HEAD);
        out->page.len += KILN_PAGE_HEAD;
    }
}

static void put_varint(struct kiln_buf *out, uint64_t v)
{
    kiln_pack_encode(KILN_PACK_VARINT, &v, 1, out);
}

/* Compresses `plain` into `pressed`; false if that does not make it smaller. */
static bool press(struct kiln_page_out *out, struct kiln_str plain)
{
    size_t room = ZSTD_compressBound(plain.len);
    char *at;
    size_t n;

    kiln_buf_clear(&out->pressed);
    if (plain.len < COMPRESS_FROM)
        return false;
    at = kiln_buf_reserve(&out->pressed, room);
    if (!at)
        return false; /* it stays as it is */
    n = ZSTD_compressCCtx(out->zstd, at, room, plain.ptr, plain.len,
                          out->quick ? LEVEL_QUICK : LEVEL);
    if (ZSTD_isError(n))
        return false;
    out->pressed.len = n;
    return n + n / 16 < plain.len;
}

/* A column in its final form, into `to`. */
static void put_column(struct kiln_page_out *out, enum kiln_pack how, uint64_t n,
                       struct kiln_str plain, struct kiln_buf *to)
{
    bool pressed = how != KILN_PACK_SAME && press(out, plain);

    kiln_buf_putc(to, (char)((unsigned)how | (pressed ? COMPRESSED : 0)));
    put_varint(to, n);
    put_varint(to, plain.len);
    if (pressed) {
        put_varint(to, out->pressed.len);
        plain = kiln_buf_str(&out->pressed);
    }
    kiln_buf_add_str(to, plain);
}

static void try_packing(struct kiln_page_out *out, enum kiln_pack how, const uint64_t *numbers,
                        uint32_t n, struct kiln_buf *to)
{
    kiln_buf_clear(&out->packed);
    kiln_pack_encode(how, numbers, n, &out->packed);
    if (out->packed.error) {
        out->page.error = out->packed.error;
        return;
    }
    put_column(out, how, n, kiln_buf_str(&out->packed), to);
}

/* All that may be best, into the page; returns the best. */
static enum kiln_pack try_all(struct kiln_page_out *out, const uint64_t *numbers, uint32_t n)
{
    enum kiln_pack best = KILN_PACK_VARINT;
    size_t start = out->page.len;

    try_packing(out, best, numbers, n, &out->page);
    for (enum kiln_pack how = KILN_PACK_BITS; how < KILN_N_PACKS; how++) {
        kiln_buf_clear(&out->best);
        try_packing(out, how, numbers, n, &out->best);
        if (out->best.error || out->page.error || out->best.len >= out->page.len - start)
            continue;
        out->page.len = start;
        kiln_buf_add_str(&out->page, kiln_buf_str(&out->best));
        best = how;
    }
    return best;
}

/* The best, into the page; of many numbers, some in the middle tell which one that is. */
static enum kiln_pack find_best(struct kiln_page_out *out, const uint64_t *numbers, uint32_t n)
{
    uint32_t sample = out->quick ? SAMPLE_QUICK : SAMPLE;
    size_t start = out->page.len;
    enum kiln_pack best;

    if (n < 2 * sample)
        return try_all(out, numbers, n);
    best = try_all(out, numbers + (n - sample) / 2, sample);
    out->page.len = start;
    try_packing(out, best, numbers, n, &out->page);
    return best;
}

/* The smallest before compression: for few numbers, where trying costs more than it saves. */
static enum kiln_pack smallest(const uint64_t *numbers, uint32_t n)
{
    struct kiln_pack_sizes sizes = kiln_pack_measure(numbers, n);

    if (sizes.varint <= sizes.bits && sizes.varint <= sizes.planes)
        return KILN_PACK_VARINT;
    return sizes.bits <= sizes.planes ? KILN_PACK_BITS : KILN_PACK_PLANES;
}

void kiln_page_add(struct kiln_page_out *out, const uint64_t *numbers, uint32_t n)
{
    uint32_t c = out->n_columns;
    bool same = true;

    for (uint32_t i = 1; same && i < n; i++)
        same = numbers[i] == numbers[0];
    if (n == 0) {
        put_column(out, KILN_PACK_BYTES, 0, KILN_STR(""), &out->page);
    } else if (same) {
        try_packing(out, KILN_PACK_SAME, numbers, n, &out->page);
    } else if (n < KILN_PACK_GROUP) {
        try_packing(out, smallest(numbers, n), numbers, n, &out->page);
    } else if (out->habit->trusted[c] > 0) {
        out->habit->trusted[c]--;
        try_packing(out, out->habit->best[c], numbers, n, &out->page);
    } else {
        out->habit->best[c] = (uint8_t)find_best(out, numbers, n);
        out->habit->trusted[c] = TRUST_PAGES;
    }
    out->n_columns++;
}

void kiln_page_add_bytes(struct kiln_page_out *out, struct kiln_str bytes)
{
    put_column(out, KILN_PACK_BYTES, bytes.len, bytes, &out->page);
    out->n_columns++;
}

int kiln_page_finish(struct kiln_page_out *out, struct kiln_str *ret_page)
{
    uint32_t crc, len;

    if (out->page.error)
        return out->page.error;
    if (out->page.len - KILN_PAGE_HEAD > UINT32_MAX)
        return KILN_E_LIMIT;
    len = (uint32_t)(out->page.len - KILN_PAGE_HEAD);
    memcpy(out->page.ptr + 4, &len, sizeof(len));
    crc = kiln_crc32c(0, out->page.ptr + 4, out->page.len - 4);
    memcpy(out->page.ptr, &crc, sizeof(crc));
    *ret_page = kiln_buf_str(&out->page);
    return 0;
}

/* ---- reading ---- */

int kiln_page_in_init(struct kiln_page_in *in, struct kiln_budget *budget)
{
    *in = (struct kiln_page_in){.budget = budget};
    in->zstd = ZSTD_createDCtx_advanced(zstd_mem);
    return in->zstd ? 0 : -ENOMEM;
}

void kiln_page_in_done(struct kiln_page_in *in)
{
    kiln_array_free(in->budget, (void **)&in->page, &in->cap_page, 1);
    kiln_array_free(in->budget, (void **)&in->plain, &in->cap_plain, 1);
    ZSTD_freeDCtx(in->zstd);
    in->zstd = NULL;
}

static int damaged(struct kiln_err *err, const char *what)
{
    return kiln_err_set(err, KILN_E_CORRUPT, NULL, "%s", what);
}

int kiln_page_load(struct kiln_page_in *in, struct kiln_io *io, int fd, uint64_t offset,
                   uint64_t size, struct kiln_err *err)
{
    uint32_t crc, len;
    ssize_t got;
    int r;

    if (size < KILN_PAGE_HEAD || size - KILN_PAGE_HEAD > UINT32_MAX)
        return damaged(err, "the page has no possible size");
    r = kiln_reserve(in->budget, (void **)&in->page, &in->cap_page, size, 1, UINT32_MAX);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "no memory for a page of %llu bytes",
                            (unsigned long long)size);
    got = io->pread(io, fd, in->page, (size_t)size, offset);
    if (got == -EIO) /* a bad moment of the disk, or a bad place on it */
        got = io->pread(io, fd, in->page, (size_t)size, offset);
    if (got == -EIO)
        return damaged(err, "the disk cannot read it");
    if (got < 0)
        return kiln_err_set(err, (int)got, NULL, "cannot be read: %s", kiln_err_text((int)got));
    if ((uint64_t)got != size)
        return damaged(err, "the file ends in the middle of the page");
    memcpy(&crc, in->page, sizeof(crc));
    memcpy(&len, in->page + 4, sizeof(len));
    if (crc != kiln_crc32c(0, in->page + 4, (size_t)size - 4) && !kiln_page_trusts_all)
        return damaged(err, "the checksum does not match");
    if (len != size - KILN_PAGE_HEAD)
        return damaged(err, "the length of the page is not that of the index");
    in->at = (const unsigned char *)in->page + KILN_PAGE_HEAD;
    in->end = in->at + len;
    return 0;
}

static int get_varint(struct kiln_page_in *in, uint64_t *ret, struct kiln_err *err)
{
    const unsigned char *start = in->at;

    while (in->at < in->end) {
        if (*in->at++ < 0x80)
            return kiln_pack_decode(
                       KILN_PACK_VARINT,
                       (struct kiln_str){(const char *)start, (size_t)(in->at - start)}, 1,
                       ret) == 0
                       ? 0
                       : damaged(err, "a number of a column's head has too many bytes");
    }
    return damaged(err, "the page ends in the head of a column");
}

struct head {
    enum kiln_pack how;
    bool compressed;
    uint64_t n, plain_len;
    struct kiln_str plain;
};

/* Uncompresses a column into memory that was paid for. */
static int unpress(struct kiln_page_in *in, struct kiln_str stored, uint64_t plain_len,
                   struct kiln_str *ret_plain, struct kiln_err *err)
{
    size_t n;
    int r =
        kiln_reserve(in->budget, (void **)&in->plain, &in->cap_plain, plain_len + 1, 1, UINT32_MAX);

    if (r < 0)
        return kiln_err_set(err, r, NULL, "no memory for a column of %llu bytes",
                            (unsigned long long)plain_len);
    n = ZSTD_decompressDCtx(in->zstd, in->plain, (size_t)plain_len, stored.ptr, stored.len);
    if (ZSTD_isError(n) || n != plain_len)
        return damaged(err, "a compressed column is damaged");
    *ret_plain = (struct kiln_str){in->plain, n};
    return 0;
}

/* The head of the next column and its bytes, as they are. */
static int get_head(struct kiln_page_in *in, uint64_t max, struct head *ret, struct kiln_err *err)
{
    uint64_t stored_len;
    unsigned tag;
    int r;

    if (in->at == in->end)
        return damaged(err, "the page lacks a column");
    tag = *in->at++;
    ret->how = tag & ~COMPRESSED;
    ret->compressed = tag & COMPRESSED;
    r = get_varint(in, &ret->n, err);
    if (r == 0)
        r = get_varint(in, &ret->plain_len, err);
    stored_len = ret->plain_len;
    if (r == 0 && ret->compressed)
        r = get_varint(in, &stored_len, err);
    if (r < 0)
        return r;
    if (ret->n > max || ret->n > UINT32_MAX)
        return damaged(err, "a column has more entries than there can be");
    if (stored_len > (uint64_t)(in->end - in->at))
        return damaged(err, "a column is longer than its page");
    ret->plain = (struct kiln_str){(const char *)in->at, (size_t)stored_len};
    in->at += stored_len;
    return 0;
}

/* The same, uncompressed. */
static int get_column(struct kiln_page_in *in, uint64_t max, struct head *ret, struct kiln_err *err)
{
    int r = get_head(in, max, ret, err);

    if (r < 0 || !ret->compressed)
        return r;
    /* No packing takes more than ten bytes a number and eleven a group. */
    if (ret->plain_len > ret->n * 22 + 16)
        return damaged(err, "a column is longer than its entries");
    return unpress(in, ret->plain, ret->plain_len, &ret->plain, err);
}

int kiln_page_skip(struct kiln_page_in *in, uint32_t *ret_n, struct kiln_err *err)
{
    struct head head = {0};
    int r = get_head(in, UINT32_MAX, &head, err);

    if (r == 0)
        *ret_n = (uint32_t)head.n;
    return r;
}

int kiln_page_get(struct kiln_page_in *in, struct kiln_column *column, uint64_t max,
                  struct kiln_err *err)
{
    struct head head = {0};
    int r = get_column(in, max, &head, err);

    if (r < 0)
        return r;
    column->n = 0;
    r = kiln_column_grow(column, in->budget, head.n + 1); /* never nothing, so that it is there */
    if (r < 0)
        return kiln_err_set(err, r, NULL, "no memory for %llu numbers", (unsigned long long)head.n);
    if (head.n == 0)
        return head.plain.len ? damaged(err, "an empty column has bytes") : 0;
    if (kiln_pack_decode(head.how, head.plain, (uint32_t)head.n, column->v) < 0)
        return damaged(err, "a column of numbers is damaged");
    column->n = (uint32_t)head.n;
    return 0;
}

int kiln_page_get_bytes(struct kiln_page_in *in, uint64_t max, struct kiln_str *ret,
                        struct kiln_err *err)
{
    struct head head = {0};
    int r = get_column(in, max, &head, err);

    if (r < 0)
        return r;
    if (head.how != KILN_PACK_BYTES || head.n != head.plain.len)
        return damaged(err, "a column of bytes is damaged");
    *ret = head.plain;
    return 0;
}
