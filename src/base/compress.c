/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip is base/gzip.h; zstd streams frame after frame.
 */
#include <errno.h>

#include <zstd.h>

#include "base/compress.h"
#include "base/gzip.h"

#define ZSTD_LEVEL     3
#define WINDOW_LOG_MAX 27 /* a frame may ask for gigabytes; this is what the zstd tool takes */
#define GZIP_DENSE     10
#define BLOCK_HEAD     3u  /* of each block of zstd */
#define RATIO          32u /* a claim of more is not believed at once: bombs and cut files make it */

enum kiln_compression kiln_compression_of(struct kiln_str data)
{
    if (kiln_gzip_detect(data))
        return KILN_GZIP;
    if (data.len >= 4 && memcmp(data.ptr, "\x28\xb5\x2f\xfd", 4) == 0)
        return KILN_ZSTD;
    return KILN_PLAIN;
}

const char *kiln_compression_name(enum kiln_compression compression)
{
    static const char *const names[] = {"plain", "gzip", "zstd"};

    return names[compression];
}

static int too_large(const struct kiln_buf *out, struct kiln_err *err)
{
    return kiln_err_set(err, KILN_E_LIMIT, NULL, "more than %zu MiB when uncompressed",
                        out->max >> 20);
}

static size_t zstd_size_hint(struct kiln_str data)
{
    unsigned long long claimed = ZSTD_getFrameContentSize(data.ptr, data.len);
    size_t usual = data.len > SIZE_MAX / RATIO ? SIZE_MAX : data.len * RATIO;

    if (claimed == ZSTD_CONTENTSIZE_UNKNOWN || claimed == ZSTD_CONTENTSIZE_ERROR)
        return usual / 4;
    return claimed < usual ? (size_t)claimed : usual;
}

size_t kiln_decompressed_hint(enum kiln_compression compression, struct kiln_str data)
{
    switch (compression) {
    case KILN_GZIP:
        return kiln_gzip_size_hint(data);
    case KILN_ZSTD:
        return zstd_size_hint(data);
    default:
        return data.len;
    }
}

/*
 * A frame begins with its magic number, a byte of flags and, unless flag 5 says that the content is
 * one segment, a byte with the size of the window: 5 bits of exponent, 3 of mantissa (RFC 8878).
 */
static uint64_t window_of(struct kiln_str frame)
{
    uint64_t content = ZSTD_getFrameContentSize(frame.ptr, frame.len), base;
    uint8_t size;

    if (kiln_compression_of(frame) != KILN_ZSTD || frame.len < 6)
        return 0;
    if (frame.ptr[4] & 0x20)
        return content;
    size = (uint8_t)frame.ptr[5];
    base = UINT64_C(1) << (10 + (size >> 3));
    base += base / 8 * (size & 7);
    return base < content ? base : content; /* a content that is not known is the largest number */
}

size_t kiln_decompress_window(enum kiln_compression compression, struct kiln_str data)
{
    uint64_t largest = 0;

    while (compression == KILN_ZSTD && data.len) {
        size_t n = ZSTD_findFrameCompressedSize(data.ptr, data.len);
        uint64_t window = window_of(data);

        largest = window > largest ? window : largest;
        if (ZSTD_isError(n) || n == 0)
            break;
        data = (struct kiln_str){data.ptr + n, data.len - n};
    }
    return (size_t)largest;
}

static int unzstd_into(ZSTD_DCtx *dctx, struct kiln_str data, struct kiln_buf *out,
                       struct kiln_err *err)
{
    ZSTD_inBuffer in = {data.ptr, data.len, 0};
    size_t left = 1;

    while (in.pos < in.size || left) {
        size_t room = ZSTD_DStreamOutSize();
        size_t before = in.pos;
        ZSTD_outBuffer to;

        if (room > out->max - out->len)
            room = out->max - out->len;
        to = (ZSTD_outBuffer){kiln_buf_reserve(out, room ? room : 1), room, 0};
        if (!to.dst)
            return out->error == KILN_E_LIMIT ? too_large(out, err) : out->error;
        left = ZSTD_decompressStream(dctx, &to, &in);
        if (ZSTD_isError(left))
            return kiln_err_set(err, KILN_E_CORRUPT, NULL, "the zstd data is damaged: %s",
                                ZSTD_getErrorName(left));
        out->len += to.pos;
        if (to.pos == 0 && in.pos == before && left)
            return room ? kiln_err_set(err, KILN_E_TRUNCATED, NULL, "the zstd data is cut off")
                        : too_large(out, err);
    }
    return 0;
}

static int unzstd_within(struct kiln_str data, struct kiln_buf *out, struct kiln_err *err)
{
    ZSTD_DCtx *dctx = ZSTD_createDCtx();
    int r;

    if (!dctx)
        return -ENOMEM;
    ZSTD_DCtx_setParameter(dctx, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
    r = unzstd_into(dctx, data, out, err);
    ZSTD_freeDCtx(dctx);
    return r;
}

static int unzstd(struct kiln_str data, struct kiln_buf *out, struct kiln_err *err)
{
    size_t window = kiln_decompress_window(KILN_ZSTD, data);
    int r;

    if (window > (size_t)1 << WINDOW_LOG_MAX)
        return kiln_err_set(
            err, KILN_E_LIMIT, NULL,
            "the zstd window is %zu MiB, and may be 128 MiB: compress without --long",
            window >> 20);
    if (out->pool && kiln_pool_take(out->pool, window) < 0)
        return kiln_err_set(err, KILN_E_LIMIT, NULL,
                            "there is no memory for the zstd window of %zu MiB", window >> 20);
    r = unzstd_within(data, out, err);
    if (out->pool)
        kiln_pool_give(out->pool, window);
    return r;
}

int kiln_decompress(enum kiln_compression compression, struct kiln_str data, struct kiln_buf *out,
                    struct kiln_err *err)
{
    switch (compression) {
    case KILN_GZIP:
        return kiln_gunzip(data, out, err);
    case KILN_ZSTD:
        return unzstd(data, out, err);
    default:
        kiln_buf_add_str(out, data);
        return out->error;
    }
}

/*
 * What zstd's levels stand for depends on how long the data is, and none of them is made for
 * profiles: tables of short entries, nearly alike.  Those gain from the best way through short
 * matches, little from looking for longer ones.
 */
static void set_level(ZSTD_CCtx *cctx, int level)
{
    static const struct {
        ZSTD_cParameter parameter;
        int value;
    } dense[] = {
        {ZSTD_c_strategy, ZSTD_btopt}, {ZSTD_c_minMatch, 3}, {ZSTD_c_searchLog, 2},
        {ZSTD_c_targetLength, 32},     {ZSTD_c_hashLog, 17}, {ZSTD_c_chainLog, 18},
        {ZSTD_c_windowLog, 20},
    };

    ZSTD_CCtx_setParameter(cctx, ZSTD_c_compressionLevel, level ? level : ZSTD_LEVEL);
    for (size_t i = 0; level == KILN_DENSE && i < sizeof(dense) / sizeof(dense[0]); i++)
        ZSTD_CCtx_setParameter(cctx, dense[i].parameter, dense[i].value);
}

/* Ends a block at each joint.  What it returns is an error, or 0: there is room for all. */
static size_t zstd_joined(ZSTD_CCtx *cctx, struct kiln_str data, const struct kiln_joints *joints,
                          ZSTD_outBuffer *to)
{
    ZSTD_inBuffer in = {data.ptr, 0, 0};
    size_t left = ZSTD_CCtx_setPledgedSrcSize(cctx, data.len);

    for (uint32_t i = 0; left == 0 && i < joints->n; i++) {
        in.size = joints->at[i];
        left = ZSTD_compressStream2(cctx, to, &in, ZSTD_e_flush);
    }
    in.size = data.len;
    return left ? left : ZSTD_compressStream2(cctx, to, &in, ZSTD_e_end);
}

static int zstd(int level, struct kiln_str data, const struct kiln_joints *joints,
                struct kiln_buf *out)
{
    size_t room = ZSTD_compressBound(data.len) + BLOCK_HEAD * joints->n, left = 0;
    ZSTD_outBuffer to = {kiln_buf_reserve(out, room), room, 0};
    ZSTD_CCtx *cctx;

    if (!to.dst)
        return out->error;
    cctx = ZSTD_createCCtx();
    if (!cctx)
        return -ENOMEM;
    set_level(cctx, level);
    if (joints->n)
        left = zstd_joined(cctx, data, joints, &to);
    else /* spares the copy that a stream makes */
        to.pos = ZSTD_compress2(cctx, to.dst, room, data.ptr, data.len);
    ZSTD_freeCCtx(cctx);
    if (left || ZSTD_isError(to.pos))
        return -ENOMEM;
    out->len += to.pos;
    return 0;
}

int kiln_compress(enum kiln_compression compression, int level, struct kiln_str data,
                  struct kiln_buf *out)
{
    return kiln_compress_joined(compression, level, data, &(struct kiln_joints){.n = 0}, out);
}

int kiln_compress_joined(enum kiln_compression compression, int level, struct kiln_str data,
                         const struct kiln_joints *joints, struct kiln_buf *out)
{
    switch (compression) {
    case KILN_GZIP:
        return kiln_gzip(level == KILN_DENSE ? GZIP_DENSE : level, data, out);
    case KILN_ZSTD:
        return zstd(level, data, joints, out);
    default:
        kiln_buf_add_str(out, data);
        return out->error;
    }
}
