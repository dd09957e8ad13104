/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of a file as they are; those who need no more are spared the libraries that unpack.
 */
#include <errno.h>

#include "base/err.h"
#include "base/mem.h"
#include "symbol/elf.h"

int kiln_elf_load_plain(const struct kiln_elf *elf, uint64_t at, uint64_t n, size_t max,
                        void **ret_data)
{
    void *data;
    int r;

    if (n > elf->bytes.size || at > elf->bytes.size - n)
        return KILN_E_TRUNCATED;
    if (n > max)
        return KILN_E_LIMIT;
    data = kiln_malloc(n ? n : 1);
    if (!data)
        return -ENOMEM;
    r = elf->bytes.read(&elf->bytes, at, data, n);
    if (r < 0)
        kiln_free(data);
    else
        *ret_data = data;
    return r;
}
