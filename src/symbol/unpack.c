/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A compressed section begins with a header:
 *
 *   SHF_COMPRESSED, 24 bytes:  4 type (1: zlib, 2: zstd)   4 a hole   8 size of what comes out
 *                              8 its alignment
 *   .zdebug_*, 12 bytes:       "ZLIB"   8 size of what comes out, big-endian
 *
 * Small ones go through libdeflate at once; large ones piece by piece (symbol/inflate.h).  zstd may
 * ask for a window of gigabytes to look back into; linkers and objcopy make one of 2 MiB, and up to
 * 8 MiB are given.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include <libdeflate.h>
#include <zstd.h>

#include "base/err.h"
#include "base/mem.h"
#include "symbol/inflate.h"
#include "symbol/unpack.h"

enum {
    TYPE_ZLIB = 1,
    TYPE_ZSTD = 2,
    OLD_HEADER = 12,
    IN_BYTES = 64 << 10,
    ZSTD_WINDOW_LOG = 23,
    ZSTD_BYTES = 512 << 10,
    ZLIB_RATIO = 1032, /* a byte of deflate cannot become more */
};

struct kiln_unpack {
    struct kiln_inflate *inflate; /* one of both */
    ZSTD_DStream *zstd;
    const uint8_t *piece; /* of `inflate`: what is left of the last one */
    size_t n_piece;
    const struct kiln_bytes *bytes; /* of `zstd`, borrowed */
    uint64_t at, left;              /* of the compressed bytes in the file */
    size_t n_in, used_in;
    uint8_t in[IN_BYTES];
};

bool kiln_section_is_packed(const struct kiln_elf_section *section)
{
    return (section->flags & SHF_COMPRESSED) ||
           (section->name && strncmp(section->name, ".zdebug_", 8) == 0);
}

static int check_claim(const struct kiln_packed *packed)
{
    if (packed->packing == KILN_PACKING_ZLIB && packed->size / ZLIB_RATIO > packed->n)
        return KILN_E_CORRUPT;
    return 0;
}

static int read_old(const struct kiln_elf *elf, const struct kiln_elf_section *section,
                    struct kiln_packed *packed)
{
    uint8_t head[OLD_HEADER];
    int r;

    if (section->size < sizeof(head))
        return KILN_E_TRUNCATED;
    r = elf->bytes.read(&elf->bytes, section->offset, head, sizeof(head));
    if (r < 0)
        return r;
    if (memcmp(head, "ZLIB", 4) != 0)
        return KILN_E_UNSUPPORTED;
    packed->packing = KILN_PACKING_ZLIB;
    packed->size = 0;
    for (int i = 4; i < OLD_HEADER; i++)
        packed->size = packed->size << 8 | head[i];
    packed->at = section->offset + sizeof(head);
    packed->n = section->size - sizeof(head);
    return 0;
}

static int read_new(const struct kiln_elf *elf, const struct kiln_elf_section *section,
                    struct kiln_packed *packed)
{
    Elf64_Chdr head;
    int r;

    if (section->size < sizeof(head))
        return KILN_E_TRUNCATED;
    r = elf->bytes.read(&elf->bytes, section->offset, &head, sizeof(head));
    if (r < 0)
        return r;
    if (head.ch_type != TYPE_ZLIB && head.ch_type != TYPE_ZSTD)
        return KILN_E_UNSUPPORTED;
    packed->packing = head.ch_type == TYPE_ZLIB ? KILN_PACKING_ZLIB : KILN_PACKING_ZSTD;
    packed->size = head.ch_size;
    packed->at = section->offset + sizeof(head);
    packed->n = section->size - sizeof(head);
    return 0;
}

int kiln_packed_read(const struct kiln_elf *elf, const struct kiln_elf_section *section,
                     struct kiln_packed *ret_packed)
{
    struct kiln_packed packed;
    int r;

    if (section->size > elf->bytes.size || section->offset > elf->bytes.size - section->size)
        return KILN_E_TRUNCATED;
    r = section->flags & SHF_COMPRESSED ? read_new(elf, section, &packed)
                                        : read_old(elf, section, &packed);
    if (r == 0)
        r = check_claim(&packed);
    if (r == 0)
        *ret_packed = packed;
    return r;
}

static int inflate_whole(const void *from, size_t n, void *to, size_t n_to)
{
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    enum libdeflate_result result;

    if (!d)
        return -ENOMEM;
    result = libdeflate_zlib_decompress(d, from, n, to, n_to, NULL);
    libdeflate_free_decompressor(d);
    return result == LIBDEFLATE_SUCCESS ? 0 : KILN_E_CORRUPT;
}

int kiln_unpack_whole(enum kiln_packing packing, const void *from, size_t n, void *to, size_t n_to)
{
    if (packing == KILN_PACKING_ZLIB)
        return inflate_whole(from, n, to, n_to);
    return ZSTD_decompress(to, n_to, from, n) == n_to ? 0 : KILN_E_CORRUPT;
}

static int begin_zstd(struct kiln_unpack *unpack, const struct kiln_bytes *bytes,
                      const struct kiln_packed *packed)
{
    unpack->bytes = bytes;
    unpack->at = packed->at;
    unpack->left = packed->n;
    unpack->zstd = ZSTD_createDStream();
    if (!unpack->zstd)
        return -ENOMEM;
    ZSTD_DCtx_setParameter(unpack->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG);
    return 0;
}

int kiln_unpack_open(const struct kiln_bytes *bytes, const struct kiln_packed *packed,
                     struct kiln_unpack **ret_unpack)
{
    struct kiln_unpack *unpack = kiln_calloc(1, sizeof(*unpack));
    int r;

    if (!unpack)
        return -ENOMEM;
    r = packed->packing == KILN_PACKING_ZLIB
            ? kiln_inflate_open(bytes, packed->at, packed->n, &unpack->inflate)
            : begin_zstd(unpack, bytes, packed);
    if (r < 0)
        kiln_free(unpack);
    else
        *ret_unpack = unpack;
    return r;
}

void kiln_unpack_close(struct kiln_unpack *unpack)
{
    if (!unpack)
        return;
    kiln_inflate_close(unpack->inflate);
    ZSTD_freeDStream(unpack->zstd);
    kiln_free(unpack);
}

size_t kiln_unpack_bytes(enum kiln_packing packing)
{
    return sizeof(struct kiln_unpack) + (packing == KILN_PACKING_ZLIB
                                             ? kiln_inflate_bytes()
                                             : ((size_t)1 << ZSTD_WINDOW_LOG) + ZSTD_BYTES);
}

static int refill(struct kiln_unpack *unpack)
{
    size_t n = unpack->left < IN_BYTES ? (size_t)unpack->left : IN_BYTES;
    int r;

    if (n == 0)
        return KILN_E_TRUNCATED;
    r = unpack->bytes->read(unpack->bytes, unpack->at, unpack->in, n);
    if (r < 0)
        return r;
    unpack->at += n;
    unpack->left -= n;
    unpack->n_in = n;
    unpack->used_in = 0;
    return 0;
}

/* Up to `n` bytes, *ret_made of them. */
static int inflate_some(struct kiln_unpack *unpack, uint8_t *to, size_t n, size_t *ret_made)
{
    int r = 0;

    if (unpack->n_piece == 0)
        r = kiln_inflate_next(unpack->inflate, &unpack->piece, &unpack->n_piece);
    if (r < 0)
        return r;
    if (unpack->n_piece == 0)
        return KILN_E_CORRUPT;
    if (n > unpack->n_piece)
        n = unpack->n_piece;
    memcpy(to, unpack->piece, n);
    unpack->piece += n;
    unpack->n_piece -= n;
    *ret_made = n;
    return 0;
}

static int unzstd_some(struct kiln_unpack *unpack, uint8_t *to, size_t n, size_t *ret_made)
{
    ZSTD_inBuffer in = {unpack->in, unpack->n_in, unpack->used_in};
    ZSTD_outBuffer out = {to, n, 0};
    size_t left = ZSTD_decompressStream(unpack->zstd, &out, &in);

    unpack->used_in = in.pos;
    *ret_made = out.pos;
    if (ZSTD_isError(left))
        return KILN_E_CORRUPT;
    if (out.pos > 0)
        return 0;
    return in.pos < in.size ? KILN_E_CORRUPT : refill(unpack);
}

int kiln_unpack_read(struct kiln_unpack *unpack, void *to, size_t n)
{
    uint8_t *at = to;

    while (n > 0) {
        size_t made = 0;
        int r = unpack->inflate ? inflate_some(unpack, at, n, &made)
                                : unzstd_some(unpack, at, n, &made);

        if (r < 0)
            return r;
        at += made;
        n -= made;
    }
    return 0;
}
