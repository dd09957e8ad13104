/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip goes member by member through libdeflate, which wants to know the size of the result: the
 * trailer of the last member tells it (modulo 2^32), and where that is wrong the room is doubled
 * until it fits or the limit of the output is reached.
 */
#include "base/gzip.h"

#include <errno.h>

#include <libdeflate.h>

#define LEVEL    4 /* for speed: profiles gain little beyond */
#define ROOM_MIN 4096u
#define RATIO    32u /* a claim of more is not believed at once: bombs and cut files make it */

bool kiln_gzip_detect(struct kiln_str data)
{
    return data.len >= 3 && memcmp(data.ptr, "\x1f\x8b\x08", 3) == 0;
}

static int too_large(const struct kiln_buf *out, struct kiln_err *err)
{
    return kiln_err_set(err, KILN_E_LIMIT, NULL, "more than %zu MiB when uncompressed",
                        out->max >> 20);
}

/* What the trailer says about the size of the content; a first guess, believed only so far. */
size_t kiln_gzip_size_hint(struct kiln_str data)
{
    uint32_t claimed;
    size_t usual;

    if (data.len < 18)
        return ROOM_MIN;
    memcpy(&claimed, data.ptr + data.len - 4, 4);
    usual = data.len > SIZE_MAX / RATIO ? SIZE_MAX : data.len * RATIO;
    return claimed < usual ? claimed : usual;
}

/* One member from the front of *data into the room at the end of `out`. */
static int gunzip_member(struct libdeflate_decompressor *d, struct kiln_str *data,
                         struct kiln_buf *out, size_t room, struct kiln_err *err)
{
    for (;;) {
        size_t consumed, produced;
        enum libdeflate_result result;
        char *at;

        if (room > out->max - out->len)
            room = out->max - out->len;
        at = kiln_buf_reserve(out, room ? room : 1);
        if (!at)
            return out->error == KILN_E_LIMIT ? too_large(out, err) : out->error;
        result =
            libdeflate_gzip_decompress_ex(d, data->ptr, data->len, at, room, &consumed, &produced);
        if (result == LIBDEFLATE_SUCCESS) {
            out->len += produced;
            data->ptr += consumed;
            data->len -= consumed;
            return 0;
        }
        if (result != LIBDEFLATE_INSUFFICIENT_SPACE)
            return kiln_err_set(err, KILN_E_CORRUPT, NULL, "the gzip data is damaged or cut off");
        if (room >= out->max - out->len)
            return too_large(out, err);
        room = room < SIZE_MAX / 2 ? room * 2 : SIZE_MAX;
        if (room < ROOM_MIN)
            room = ROOM_MIN;
    }
}

int kiln_gunzip(struct kiln_str data, struct kiln_buf *out, struct kiln_err *err)
{
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    size_t room = kiln_gzip_size_hint(data);
    int r = d ? 0 : -ENOMEM;

    do {
        if (r == 0)
            r = gunzip_member(d, &data, out, room, err);
        room = ROOM_MIN;
    } while (r == 0 && kiln_gzip_detect(data));
    libdeflate_free_decompressor(d);
    return r;
}

int kiln_gzip(int level, struct kiln_str data, struct kiln_buf *out)
{
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(level ? level : LEVEL);
    size_t room, n;
    char *at;

    if (!c)
        return -ENOMEM;
    room = libdeflate_gzip_compress_bound(c, data.len);
    at = kiln_buf_reserve(out, room);
    n = at ? libdeflate_gzip_compress(c, data.ptr, data.len, at, room) : 0;
    libdeflate_free_compressor(c);
    out->len += n;
    return out->error;
}
