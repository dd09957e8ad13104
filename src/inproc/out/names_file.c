/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is read once for symbols that cover an address.  Where one does not, and there are
 * symbols without a size, it is read again for those before it.
 *
 * A file is believed to be the one that is mapped if it has the build id that the mapping tells.
 */
#include "inproc/out/names_file.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytetext.h"
#include "base/err.h"
#include "inproc/out/names.h"
#include "symbol/names_int.h"

enum { SYMBOLS_MAX = 4 << 20 };

/* ---- files ---- */

/* By GNU's build id, or where it has none by OpenTelemetry's hash. */
static bool is_same_file(const struct kiln_elf *elf, struct kiln_str build_id)
{
    uint8_t id[KILN_BUILD_ID_MAX];
    char text[2 * KILN_BUILD_ID_MAX + 1];
    uint8_t n;

    if (!build_id.len)
        return true;
    if (kiln_elf_build_id(elf, id, &n) == 0) {
        kiln_hex_encode(id, n, text);
        return kiln_str_eq(build_id, (struct kiln_str){text, 2 * (size_t)n});
    }
    return kiln_elf_hash(&elf->bytes, text) == 0 && kiln_str_eq(build_id, kiln_str_of(text));
}

static int open_path(const char *path, int *ret_fd)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return -ENOENT;
    }
    *ret_fd = fd;
    return 0;
}

/* The vDSO is in memory alone: mappings of a batch say where things are in their files. */
static int open_vdso(struct kiln_in_names_file *file)
{
    const ElfW(Ehdr) *head = (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);

    if (!head)
        return -ENOENT;
    file->bytes =
        kiln_bytes_memory(head, head->e_shoff + (size_t)head->e_shnum * head->e_shentsize);
    return kiln_elf_open(&file->bytes, &file->elf);
}

/* `path` is a file of this build id, or it is of no use. */
static int try_file(const char *path, struct kiln_str build_id, struct kiln_in_names_file *file)
{
    int r = open_path(path, &file->fd);

    if (r == 0)
        r = kiln_bytes_file(file->fd, &file->bytes);
    if (r == 0)
        r = kiln_elf_open(&file->bytes, &file->elf);
    if (r == 0 && is_same_file(file->elf, build_id))
        return 0;
    kiln_elf_close(file->elf);
    if (file->fd >= 0)
        close(file->fd);
    file->elf = NULL;
    file->fd = -1;
    return r < 0 ? r : -ENOENT;
}

/* A program that was replaced while it runs is still to be had as such. */
static int try_files(struct kiln_str path, struct kiln_str build_id,
                     struct kiln_in_names_file *file)
{
    char text[4096];
    int r;

    if (path.len >= sizeof(text))
        return -ENAMETOOLONG;
    snprintf(text, sizeof(text), "%.*s", KILN_STR_ARG(path));
    r = try_file(text, build_id, file);
    return r < 0 && r != -ENOMEM && build_id.len ? try_file("/proc/thread-self/exe", build_id, file)
                                                 : r;
}

int kiln_in_names_file_open(struct kiln_str path, struct kiln_str build_id,
                            struct kiln_in_names_file *file)
{
    file->fd = -1; /* the table is set up by whoever asks */
    file->elf = NULL;
    return kiln_str_eq(path, KILN_STR("[vdso]")) ? open_vdso(file)
                                                 : try_files(path, build_id, file);
}

void kiln_in_names_file_close(struct kiln_in_names_file *file)
{
    kiln_elf_close(file->elf);
    if (file->fd >= 0)
        close(file->fd);
}

/* ---- names ---- */

/* What is packed comes first: symbols without a size reach farther where it has all of them. */
static int read_symbols(struct kiln_in_names_file *file, const uint64_t *addresses, uint32_t n,
                        bool near)
{
    int r;

    kiln_symtab_init(&file->table, KILN_IN_NAMES_TABLE, SYMBOLS_MAX);
    kiln_symtab_want(&file->table, addresses, n, near);
    r = kiln_names_read_packed(&file->table, file->elf);
    if (r != -ENOMEM && r != KILN_E_LIMIT)
        r = kiln_names_read_elf(&file->table, file->elf);
    return r == -ENOMEM ? r : kiln_symtab_finish(&file->table);
}

/* Those that have no name yet come first afterwards; returns how many, or a negative errno. */
static int64_t tell_names(struct kiln_in_names_file *file, struct kiln_in_asked *asked, uint32_t n,
                          int (*tell)(void *, uint32_t, struct kiln_str), void *context)
{
    const struct kiln_symtab_entry *symbol;
    struct kiln_str name;
    uint32_t left = 0;
    int r = 0;

    for (uint32_t i = 0; i < n && r == 0; i++) {
        if (kiln_symtab_find(&file->table, asked[i].address, &symbol, &name))
            r = tell(context, asked[i].who, name);
        else
            asked[left++] = asked[i];
    }
    return r < 0 ? r : (int64_t)left;
}

static int by_address(const void *left, const void *right)
{
    const struct kiln_in_asked *a = left, *b = right;

    return a->address < b->address ? -1 : a->address > b->address;
}

/* As they nearly always are: who asks has sorted them by where they are in the file. */
static bool are_sorted(const struct kiln_in_asked *asked, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        if (asked[i].address < asked[i - 1].address)
            return false;
    return true;
}

int kiln_in_names_file_ask(struct kiln_in_names_file *file, struct kiln_in_asked *asked, uint32_t n,
                           int (*tell)(void *context, uint32_t who, struct kiln_str system_name),
                           void *context)
{
    uint64_t *addresses = kiln_malloc((n + 1) * sizeof(*addresses));
    int64_t left = addresses ? (int64_t)n : -ENOMEM;
    bool unsized = true;

    if (!are_sorted(asked, n))
        qsort(asked, n, sizeof(*asked), by_address);
    for (int near = 0; near < 2 && left > 0 && unsized; near++) {
        int r;

        for (int64_t i = 0; i < left; i++)
            addresses[i] = asked[i].address;
        r = read_symbols(file, addresses, (uint32_t)left, near);
        left =
            r < 0 ? (r == -ENOMEM ? r : 0) : tell_names(file, asked, (uint32_t)left, tell, context);
        unsized = file->table.unsized;
        kiln_symtab_done(&file->table);
    }
    kiln_free(addresses);
    return left < 0 ? (int)left : 0;
}
