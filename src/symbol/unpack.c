/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A compressed section begins with a header:
 *
 *   SHF_COMPRESSED, 24 bytes:  4 type (1: zlib, 2: zstd)   4 a hole   8 size of what comes out
 *                              8 its alignment
 *   .zdebug_*, 12 bytes:       "ZLIB"   8 size of what comes out, big-endian
 *
 * Small ones go through libdeflate at once, which is three times as fast as zlib but wants all in
 * memory; large ones are streamed by zlib.  zstd may ask for a window of gigabytes to look back
 * into; linkers and objcopy make one of 2 MiB, and up to 8 MiB are given.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include <libdeflate.h>
#include <zlib.h>
#include <zstd.h>

#include "base/err.h"
#include "base/mem.h"
#include "symbol/unpack.h"

enum {
    TYPE_ZLIB = 1,
    TYPE_ZSTD = 2,
    OLD_HEADER = 12,
    IN_BYTES = 64 << 10,
    ZSTD_WINDOW_LOG = 23,
    ZLIB_BYTES = 64 << 10, /* of its window and tables */
    ZSTD_BYTES = 512 << 10,
    ZLIB_RATIO = 1032, /* a byte of deflate cannot become more */
};

struct kiln_unpack {
    const struct kiln_bytes *bytes; /* borrowed */
    enum kiln_packing packing;
    uint64_t at, left; /* of the compressed bytes in the file */
    z_stream zlib;
    ZSTD_DStream *zstd;
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

static void *zlib_alloc(void *unused, unsigned n, unsigned size)
{
    (void)unused;
    return kiln_calloc(n, size);
}

static void zlib_free(void *unused, void *ptr)
{
    (void)unused;
    kiln_free(ptr);
}

static int begin(struct kiln_unpack *unpack)
{
    if (unpack->packing == KILN_PACKING_ZLIB) {
        unpack->zlib = (z_stream){.zalloc = zlib_alloc, .zfree = zlib_free};
        return inflateInit(&unpack->zlib) == Z_OK ? 0 : -ENOMEM;
    }
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
    unpack->bytes = bytes;
    unpack->packing = packed->packing;
    unpack->at = packed->at;
    unpack->left = packed->n;
    r = begin(unpack);
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
    if (unpack->packing == KILN_PACKING_ZLIB)
        inflateEnd(&unpack->zlib);
    ZSTD_freeDStream(unpack->zstd);
    kiln_free(unpack);
}

size_t kiln_unpack_bytes(enum kiln_packing packing)
{
    return sizeof(struct kiln_unpack) + (packing == KILN_PACKING_ZLIB
                                             ? ZLIB_BYTES
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

/* What can be made of the input that is there: *ret_made bytes, perhaps none. */
static int inflate_some(struct kiln_unpack *unpack, uint8_t *to, size_t n, size_t *ret_made)
{
    z_stream *z = &unpack->zlib;
    unsigned room = n < (1u << 30) ? (unsigned)n : 1u << 30;
    int r;

    z->next_in = unpack->in + unpack->used_in;
    z->avail_in = (unsigned)(unpack->n_in - unpack->used_in);
    z->next_out = to;
    z->avail_out = room;
    r = inflate(z, Z_NO_FLUSH);
    unpack->used_in = unpack->n_in - z->avail_in;
    *ret_made = room - z->avail_out;
    if (r == Z_MEM_ERROR)
        return -ENOMEM;
    if (r == Z_STREAM_END && *ret_made < n)
        return KILN_E_CORRUPT;
    return r == Z_OK || r == Z_STREAM_END || r == Z_BUF_ERROR ? 0 : KILN_E_CORRUPT;
}

static int unzstd_some(struct kiln_unpack *unpack, uint8_t *to, size_t n, size_t *ret_made)
{
    ZSTD_inBuffer in = {unpack->in, unpack->n_in, unpack->used_in};
    ZSTD_outBuffer out = {to, n, 0};
    size_t r = ZSTD_decompressStream(unpack->zstd, &out, &in);

    unpack->used_in = in.pos;
    *ret_made = out.pos;
    return ZSTD_isError(r) ? KILN_E_CORRUPT : 0;
}

int kiln_unpack_read(struct kiln_unpack *unpack, void *to, size_t n)
{
    uint8_t *at = to;

    while (n > 0) {
        size_t made = 0;
        int r = unpack->packing == KILN_PACKING_ZLIB ? inflate_some(unpack, at, n, &made)
                                                     : unzstd_some(unpack, at, n, &made);

        if (r == 0 && made == 0) {
            if (unpack->used_in < unpack->n_in)
                return KILN_E_CORRUPT;
            r = refill(unpack);
        }
        if (r < 0)
            return r;
        at += made;
        n -= made;
    }
    return 0;
}
