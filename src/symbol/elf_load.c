/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The content of sections that are loaded whole.
 */
#include <elf.h>
#include <errno.h>

#include "base/err.h"
#include "base/mem.h"
#include "symbol/elf.h"
#include "symbol/unpack.h"

static int load_packed(const struct kiln_elf *elf, const struct kiln_elf_section *section,
                       size_t max, void **ret_data, size_t *ret_size)
{
    struct kiln_packed packed;
    void *from, *data;
    int r = kiln_packed_read(elf, section, &packed);

    if (r < 0)
        return r;
    if (packed.size > max)
        return KILN_E_LIMIT;
    r = kiln_elf_load_plain(elf, packed.at, packed.n, max, &from);
    if (r < 0)
        return r;
    data = kiln_malloc(packed.size ? packed.size : 1);
    r = data ? kiln_unpack_whole(packed.packing, from, packed.n, data, packed.size) : -ENOMEM;
    kiln_free(from);
    if (r < 0) {
        kiln_free(data);
        return r;
    }
    *ret_data = data;
    *ret_size = packed.size;
    return 0;
}

int kiln_elf_load(const struct kiln_elf *elf, const struct kiln_elf_section *section, size_t max,
                  void **ret_data, size_t *ret_size)
{
    int r;

    if (section->type == SHT_NOBITS)
        return -ENOENT;
    if (kiln_section_is_packed(section))
        return load_packed(elf, section, max, ret_data, ret_size);
    r = kiln_elf_load_plain(elf, section->offset, section->size, max, ret_data);
    if (r == 0)
        *ret_size = section->size;
    return r;
}
