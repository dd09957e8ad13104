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

uint64_t kiln_frame_offset(const struct kiln_mapping *mapping, uint64_t address)
{
    if (address >= mapping->start && address < mapping->limit)
        return address - mapping->start + mapping->offset;
    return address;
}

uint64_t kiln_frame_address(const struct kiln_batch *batch, const struct kiln_location *location)
{
    return kiln_frame_offset(&batch->dict.mappings[location->mapping], location->address);
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

static bool is_digit(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

bool kiln_frame_is_made_up(const struct kiln_dict *dict, const struct kiln_function *function)
{
    struct kiln_str name = dict->strings[function->name];
    size_t n = name.len;

    if (function->system_name || function->filename)
        return false;
    while (n > 0 && is_digit(name.ptr[n - 1]))
        n--;
    return n < name.len && name.len - n <= 16 && n > 3 && memcmp(name.ptr + n - 3, "+0x", 3) == 0;
}

bool kiln_frame_lacks_name(const struct kiln_dict *dict, const struct kiln_location *location)
{
    if (location->n != 1)
        return location->n == 0;
    return kiln_frame_is_made_up(dict, &dict->functions[dict->lines[location->first].function]);
}

const struct kiln_str kiln_build_id_keys[KILN_BUILD_ID_KEYS] = {
    {"process.executable.build_id.gnu", 31},
    {"process.executable.build_id.go", 30},
    {"process.executable.build_id.htlhash", 35},
};

struct kiln_str kiln_frame_build_id(const struct kiln_batch *batch, uint32_t set)
{
    struct kiln_str id = KILN_STR_NONE;

    for (size_t i = 0; set && i < KILN_ARRAY_LEN(kiln_build_id_keys) && id.len == 0; i++)
        id = kiln_set_text(batch, set, kiln_build_id_keys[i]);
    return id;
}

/* Whether a kind of frame is that of machine code in a file. */
static bool is_of_file(struct kiln_str kind)
{
    return kind.len == 0 || kiln_str_eq(kind, KILN_STR("native")) ||
           kiln_str_eq(kind, KILN_STR("go")) || kiln_str_eq(kind, KILN_STR("rust"));
}

enum kiln_frame_lack kiln_frame_lack(const struct kiln_batch *batch,
                                     const struct kiln_location *location)
{
    const struct kiln_dict *d = &batch->dict;
    const struct kiln_line *line;

    if (d->mappings[location->mapping].attrs == 0)
        return KILN_LACKS_NOTHING;
    if (kiln_frame_lacks_name(d, location))
        return KILN_LACKS_NAME;
    line = &d->lines[location->first];
    if (location->n > 1 || line->line || d->functions[line->function].filename ||
        !is_of_file(kiln_set_text(batch, location->attrs, KILN_STR("profile.frame.type"))))
        return KILN_LACKS_NOTHING;
    return KILN_LACKS_LINES;
}
