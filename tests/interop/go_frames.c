/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that addresses of a Go program are in, by its own tables: go_frames_test.py.
 *
 * usage: interop_go_frames FILE FUNCTIONS BYTES
 *
 * Asks for every so many bytes of every so many functions, and prints "ADDRESS NAME FILE LINE" for
 * each function that an address is in, innermost first.  First of all where main.main begins.  Not
 * for the last byte of a function: the runtime would be asked for the address behind it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "symbol/gopcln.h"

enum { FRAMES_MAX = 64 };

static void print_address(struct kiln_gopcln *pcln, const struct kiln_go_func *func,
                          uint64_t address)
{
    struct kiln_go_frame frames[FRAMES_MAX];
    uint32_t n = kiln_gopcln_frames(pcln, func, address, frames, FRAMES_MAX);

    for (uint32_t i = 0; i < n; i++) {
        printf("%llx\t%.*s\t", (unsigned long long)address,
               KILN_STR_ARG(kiln_gopcln_name(pcln, frames[i].name)));
        printf("%.*s\t%u\n", KILN_STR_ARG(kiln_gopcln_file(pcln, func, frames[i].file)),
               frames[i].line);
    }
}

static void print_all(struct kiln_gopcln *pcln, uint32_t functions, uint32_t bytes, bool only_main)
{
    for (uint32_t i = 0; i < kiln_gopcln_count(pcln); i += functions) {
        struct kiln_go_func func;

        if (kiln_gopcln_func(pcln, i, &func) < 0)
            continue;
        if (only_main && kiln_str_eq(kiln_gopcln_name(pcln, func.name), KILN_STR("main.main")))
            printf("%llx\n", (unsigned long long)func.entry);
        for (uint64_t at = func.entry; !only_main && at + 1 < func.end; at += bytes)
            print_address(pcln, &func, at);
    }
}

int main(int argc, char **argv)
{
    int fd = argc == 4 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
    struct kiln_bytes bytes;
    struct kiln_elf *elf = NULL;
    struct kiln_gopcln *pcln = NULL;
    int r = fd < 0 ? -EINVAL : kiln_bytes_file(fd, &bytes);

    if (r == 0)
        r = kiln_elf_open(&bytes, &elf);
    if (r == 0)
        r = kiln_gopcln_open(elf, &pcln);
    if (r < 0) {
        fprintf(stderr, "interop_go_frames: %s\n", kiln_err_text(r));
        return 1;
    }
    print_all(pcln, 1, 1, true);
    print_all(pcln, (uint32_t)strtoul(argv[2], NULL, 10), (uint32_t)strtoul(argv[3], NULL, 10),
              false);
    kiln_gopcln_close(pcln);
    kiln_elf_close(elf);
    return 0;
}
