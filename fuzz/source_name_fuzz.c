/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of source files as profiles have them: up to the first line break a prefix, then a name.
 * Whatever is looked for must stay beneath a directory.
 */
#include <string.h>

#include "api/sources.h"
#include "fuzz.h"

/* Parts with one slash between them, none of them empty, "." or "..". */
static void check_path(const char *path)
{
    struct kiln_str rest = {path, strlen(path)};

    while (rest.ptr) {
        struct kiln_str part = kiln_str_cut(&rest, '/');

        FUZZ_CHECK(part.len > 0);
        FUZZ_CHECK(!kiln_str_eq(part, KILN_STR(".")) && !kiln_str_eq(part, KILN_STR("..")));
    }
}

static void check_open(const char *path)
{
    check_path(path);
    FUZZ_CHECK(path[0] != '.' && !strstr(path, "/."));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct kiln_source_name prefix, name;
    struct kiln_str rest = {(const char *)data, size};
    struct kiln_str before = kiln_str_cut(&rest, '\n');
    const char *behind;

    if (!rest.ptr || kiln_source_name_parse(rest, &name) < 0)
        return 0;
    FUZZ_CHECK(name.n > 0 && name.first_open <= name.n);
    check_path(name.text);
    for (uint32_t i = name.first_open; i < name.n; i++)
        check_open(name.text + name.starts[i]);
    if (kiln_source_name_parse(before, &prefix) < 0)
        return 0;
    behind = kiln_source_name_behind(&name, &prefix);
    if (behind)
        check_open(behind);
    return 0;
}
