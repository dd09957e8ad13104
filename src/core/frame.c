/* SPDX-License-Identifier: Apache-2.0 */
#include "core/frame.h"

const struct kiln_str kiln_frame_unknown = {"(unknown)", 9};

struct kiln_str kiln_frame_base(struct kiln_str path)
{
    for (size_t i = path.len; i > 0; i--) {
        if (path.ptr[i - 1] == '/' && i < path.len)
            return (struct kiln_str){path.ptr + i, path.len - i};
    }
    return path;
}

uint64_t kiln_frame_address(const struct kiln_batch *batch, const struct kiln_location *location)
{
    const struct kiln_mapping *m = &batch->dict.mappings[location->mapping];

    if (location->address >= m->start && location->address < m->limit)
        return location->address - m->start + m->offset;
    return location->address;
}

struct kiln_str kiln_frame_unnamed(struct kiln_str module, uint64_t address, struct kiln_buf *text)
{
    module = kiln_frame_base(module);
    kiln_buf_clear(text);
    if (!address && !module.len)
        return kiln_frame_unknown;
    if (!address) {
        kiln_buf_printf(text, module.ptr[0] == '[' ? "%.*s" : "[%.*s]", KILN_STR_ARG(module));
        return kiln_buf_str(text);
    }
    kiln_buf_add_str(text, module);
    kiln_buf_printf(text, module.len ? "+0x%llx" : "0x%llx", (unsigned long long)address);
    return kiln_buf_str(text);
}
