/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The content of sections.  A compressed one (SHF_COMPRESSED) begins with a header of 24 bytes:
 * type (1: zlib, 2: zstd), a hole, the size of what comes out, its alignment.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include <libdeflate.h>
#include <zstd.h>

#include "base/err.h"
#include "base/mem.h"
#include "symbol/elf.h"

enum { TYPE_ZLIB = 1, TYPE_ZSTD = 2 };

static int load_plain(const struct kiln_elf *elf, const struct kiln_elf_section *section,
                      size_t max, void **ret_data, size_t *ret_size)
{
    void *data;
    int r;

    if (section->size > elf->bytes.size || section->offset > elf->bytes.size - section->size)
        return KILN_E_TRUNCATED;
    if (section->size > max)
        return KILN_E_LIMIT;
    data = kiln_malloc(section->size ? section->size : 1);
    if (!data)
        return -ENOMEM;
    r = elf->bytes.read(&elf->bytes, section->offset, data, section->size);
    if (r < 0) {
        kiln_free(data);
        return r;
    }
    *ret_data = data;
    *ret_size = section->size;
    return 0;
}

static int inflate(const void *from, size_t n_from, void *to, size_t n_to)
{
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    enum libdeflate_result result;

    if (!d)
        return -ENOMEM;
    result = libdeflate_zlib_decompress(d, from, n_from, to, n_to, NULL);
    libdeflate_free_decompressor(d);
    return result == LIBDEFLATE_SUCCESS ? 0 : KILN_E_CORRUPT;
}

static int unzstd(const void *from, size_t n_from, void *to, size_t n_to)
{
    return ZSTD_decompress(to, n_to, from, n_from) == n_to ? 0 : KILN_E_CORRUPT;
}

static int unpack(const uint8_t *packed, size_t n, size_t max, void **ret_data, size_t *ret_size)
{
    Elf64_Chdr header;
    void *data;
    int r;

    if (n < sizeof(header))
        return KILN_E_TRUNCATED;
    memcpy(&header, packed, sizeof(header));
    packed += sizeof(header);
    n -= sizeof(header);
    if (header.ch_type != TYPE_ZLIB && header.ch_type != TYPE_ZSTD)
        return KILN_E_UNSUPPORTED;
    if (header.ch_size > max)
        return KILN_E_LIMIT;
    data = kiln_malloc(header.ch_size ? header.ch_size : 1);
    if (!data)
        return -ENOMEM;
    r = header.ch_type == TYPE_ZLIB ? inflate(packed, n, data, header.ch_size)
                                    : unzstd(packed, n, data, header.ch_size);
    if (r < 0) {
        kiln_free(data);
        return r;
    }
    *ret_data = data;
    *ret_size = header.ch_size;
    return 0;
}

int kiln_elf_load(const struct kiln_elf *elf, const struct kiln_elf_section *section, size_t max,
                  void **ret_data, size_t *ret_size)
{
    void *packed;
    size_t n;
    int r;

    if (section->type == SHT_NOBITS)
        return -ENOENT;
    r = load_plain(elf, section, max, section->flags & SHF_COMPRESSED ? &packed : ret_data,
                   section->flags & SHF_COMPRESSED ? &n : ret_size);
    if (r < 0 || !(section->flags & SHF_COMPRESSED))
        return r;
    r = unpack(packed, n, max, ret_data, ret_size);
    kiln_free(packed);
    return r;
}
