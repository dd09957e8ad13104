/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cold FILE: reads addresses (0x..., one a line) and prints the functions, files and lines of
 * each, as addr2line -a -f -i does, from the debug information of the file (and what dwz moved out
 * of it) alone and in this very process.  How long it took and how much memory is for who started
 * it to see; the last line says what the reader kept at most.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/dwarf.h"
#include "symbol/section.h"

enum { BUDGET = 48 << 20 };

static void die(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static void show(const struct kiln_dwarf_frame *frame)
{
    struct kiln_str name = frame->linkage.len ? frame->linkage : frame->name;

    printf("%.*s\n", KILN_STR_ARG(name.len ? name : KILN_STR("\?\?")));
    printf("%.*s:%u\n", KILN_STR_ARG(frame->file.len ? frame->file : KILN_STR("\?\?")),
           frame->line);
}

static void find(struct kiln_dwarf *dwarf, uint64_t address)
{
    const struct kiln_dwarf_frame *frames;
    uint32_t n = 0;

    printf("0x%016" PRIx64 "\n", address);
    if (kiln_dwarf_find(dwarf, address, &frames, &n) < 0 || n == 0) {
        puts("\?\?\n\?\?:0");
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        show(&frames[i]);
}

static struct kiln_elf *open_elf(const char *path)
{
    int fd = open(path, O_RDONLY); /* until the end */
    struct kiln_bytes bytes;
    struct kiln_elf *elf;

    if (fd < 0 || kiln_bytes_file(fd, &bytes) < 0 || kiln_elf_open(&bytes, &elf) < 0)
        return NULL;
    return elf;
}

/* The file that dwz made is named as seen from the folder of this one.  NULL: none. */
static struct kiln_elf *attach(struct kiln_dwarf *dwarf, const char *path)
{
    const char *slash = strrchr(path, '/');
    struct kiln_elf *found = NULL;
    struct kiln_wanted wanted;
    char name[4096];

    while (!found && kiln_dwarf_wants(dwarf, &wanted)) {
        bool is_near = slash && wanted.name.len && wanted.name.ptr[0] != '/';

        if (wanted.kind != KILN_WANTED_ALTERNATE)
            continue;
        snprintf(name, sizeof(name), "%.*s%.*s", is_near ? (int)(slash + 1 - path) : 0, path,
                 KILN_STR_ARG(wanted.name));
        found = open_elf(name);
        if (found && kiln_dwarf_attach(dwarf, KILN_WANTED_ALTERNATE, found) < 0)
            die("the file that dwz made does not fit");
    }
    return found;
}

int main(int argc, char **argv)
{
    struct kiln_elf *elf = argc == 2 ? open_elf(argv[1]) : NULL, *alternate;
    FILE *scratch = tmpfile();
    struct kiln_budget budget = {.limit = BUDGET};
    struct kiln_dwarf_opts opts = {.budget = &budget};
    struct kiln_dwarf *dwarf;
    uint64_t address;

    if (!elf || !scratch)
        die("usage: bench_cold FILE < ADDRESSES");
    opts.scratch = &(struct kiln_scratch){.fd = fileno(scratch), .max = UINT64_C(4) << 30};
    if (kiln_dwarf_open(elf, &opts, &dwarf) < 0)
        die("the file has no debug information that could be read");
    alternate = attach(dwarf, argv[1]);
    while (scanf("%" SCNx64, &address) == 1)
        find(dwarf, address);
    kiln_dwarf_close(dwarf);
    kiln_elf_close(elf);
    kiln_elf_close(alternate);
    fprintf(stderr, "kept_bytes %zu\n", budget.peak);
    fclose(scratch);
    return 0;
}
