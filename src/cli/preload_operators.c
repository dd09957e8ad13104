/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocators are known by the names of their libraries: in LD_PRELOAD, and among the strings of the
 * program's dynamic section, which has the names of all that it needs.  What only a library of the
 * program needs is not looked for.
 */
#include "cli/preload_operators.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "symbol/elf.h"

enum { STRINGS_MAX = 64 << 20 };

static const char *const allocators[] = {"libjemalloc", "libtcmalloc", "libmimalloc"};
/* From the folder of the library: in the build tree, and as installed. */
static const char *const variants[] = {"new", "kiln/new"};

static bool names_one(const void *text, size_t n)
{
    for (size_t i = 0; i < KILN_ARRAY_LEN(allocators); i++) {
        if (memmem(text, n, allocators[i], strlen(allocators[i])))
            return true;
    }
    return false;
}

static bool needs_one(const struct kiln_elf *elf)
{
    const struct kiln_elf_section *section = kiln_elf_section(elf, ".dynstr");
    void *strings = NULL;
    size_t n = 0;
    bool found;

    if (!section || kiln_elf_load(elf, section, STRINGS_MAX, &strings, &n) < 0)
        return false;
    found = names_one(strings, n);
    kiln_free(strings);
    return found;
}

bool kiln_preload_has_operators(const char *path, const char *preloaded)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct kiln_bytes bytes;
    struct kiln_elf *elf;
    bool found = preloaded && names_one(preloaded, strlen(preloaded));

    if (fd < 0)
        return found;
    if (!found && kiln_bytes_file(fd, &bytes) == 0 && kiln_elf_open(&bytes, &elf) == 0) {
        found = needs_one(elf);
        kiln_elf_close(elf);
    }
    close(fd);
    return found;
}

void kiln_preload_take_variant(char library[PATH_MAX])
{
    const char *slash = strrchr(library, '/');
    char path[PATH_MAX];

    for (size_t i = 0; slash && i < KILN_ARRAY_LEN(variants); i++) {
        int n = snprintf(path, sizeof(path), "%.*s/%s%s", (int)(slash - library), library,
                         variants[i], slash);

        if (n > 0 && n < (int)sizeof(path) && access(path, R_OK) == 0) {
            memcpy(library, path, (size_t)n + 1);
            return;
        }
    }
}
