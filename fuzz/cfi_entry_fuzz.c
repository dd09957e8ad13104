/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a piece of .eh_frame, as a walk inside of a process reads it: eight bytes of an
 * address, then entries; the first FDE with its CIE gives a row.
 */
#include <string.h>

#include "symbol/cfi_entry.h"
#include "symbol/cursor.h"

enum { AT = 0x10000, ADDRESS = 8 };

static bool read_entry(const uint8_t *data, size_t size, uint64_t at, struct kiln_cfi_head *head)
{
    size_t n = size - (size_t)(at - AT);

    return kiln_cfi_head_take(data + (at - AT), n < KILN_CFI_HEAD_MAX ? n : KILN_CFI_HEAD_MAX,
                              false, &(struct kiln_cfi_head){.at = at, .end = AT + size},
                              head) == 0 &&
           head->end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct kiln_cfi_room room;
    struct kiln_cfi_head fde, cie;
    struct kiln_cfi_row row;
    uint64_t begin, address, at = AT;

    if (size < ADDRESS)
        return 0;
    address = kiln_get_64(data);
    data += ADDRESS;
    size -= ADDRESS;
    while (at < AT + size && read_entry(data, size, at, &fde)) {
        at = fde.end;
        if (fde.is_cie || fde.cie < AT || fde.cie >= AT + size ||
            !read_entry(data, size, fde.cie, &cie) || !cie.is_cie)
            continue;
        struct kiln_cfi_entry entry = {
            .fde = data + (fde.body - AT),
            .cie = data + (cie.body - AT),
            .n_fde = (size_t)(fde.end - fde.body),
            .n_cie = (size_t)(cie.end - cie.body),
            .fde_at = fde.body,
            .cie_at = cie.body,
        };
        if (kiln_cfi_entry_row(&entry, address, &room, &begin, &row) == 0 && row.rule > 15)
            __builtin_trap();
    }
    return 0;
}
