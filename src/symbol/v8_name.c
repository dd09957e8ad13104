/* SPDX-License-Identifier: Apache-2.0 */
/*
 * V8 writes the file last, behind a blank.  Function names contain blanks ("get total"), and so may
 * paths: the last blank is taken, which may leave a path without its beginning.
 */
#include "symbol/v8_name.h"

static const struct kiln_str js = {"JS:", 3};

struct kiln_str kiln_v8_name(struct kiln_str text, char *buffer, size_t size)
{
    static const struct kiln_str old[] = {{"Function:", 9}, {"LazyCompile:", 12}};

    for (size_t i = 0; i < sizeof(old) / sizeof(old[0]); i++) {
        size_t rest = text.len - old[i].len;

        if (!kiln_str_starts(text, old[i]) || js.len + rest > size)
            continue;
        memcpy(buffer, js.ptr, js.len);
        memcpy(buffer + js.len, text.ptr + old[i].len, rest);
        return (struct kiln_str){buffer, js.len + rest};
    }
    return text;
}

bool kiln_v8_name_is_bytecode(struct kiln_str name)
{
    return kiln_str_starts(name, KILN_STR("JS:^")) || kiln_str_starts(name, KILN_STR("JS:~"));
}

/* Takes ":NUMBER" off the end of a text.  False: there is none. */
static bool cut_number(struct kiln_str *text, uint32_t *ret_number)
{
    const char *colon = text->len ? memrchr(text->ptr, ':', text->len) : NULL;
    struct kiln_str digits;
    uint64_t number;

    if (!colon)
        return false;
    digits = (struct kiln_str){colon + 1, text->len - (size_t)(colon + 1 - text->ptr)};
    if (kiln_str_parse_u64(digits, &number) < 0 || number > UINT32_MAX)
        return false;
    text->len = (size_t)(colon - text->ptr);
    *ret_number = (uint32_t)number;
    return true;
}

static bool has_place(struct kiln_str name)
{
    return kiln_str_starts(name, js) || kiln_str_starts(name, KILN_STR("Eval:")) ||
           kiln_str_starts(name, KILN_STR("Script:"));
}

bool kiln_v8_name_place(struct kiln_str name, struct kiln_str *ret_file, uint32_t *ret_line)
{
    const char *blank = has_place(name) ? memrchr(name.ptr, ' ', name.len) : NULL;
    struct kiln_str file;
    uint32_t line, column;

    if (!blank)
        return false;
    file = (struct kiln_str){blank + 1, name.len - (size_t)(blank + 1 - name.ptr)};
    if (!cut_number(&file, &line))
        return false;
    column = line;
    if (!cut_number(&file, &line))
        line = column; /* there is no column */
    if (!file.len)
        return false;
    *ret_file = file;
    *ret_line = line;
    return true;
}
