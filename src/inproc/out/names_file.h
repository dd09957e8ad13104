/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names_file - what addresses in one file that is mapped here are called by: .symtab, .dynsym,
 * mini-debuginfo; of the vDSO what is in memory.
 *
 * Only symbols that an address may be named by are kept: a large program has hundreds of thousands,
 * and a profile asks for hundreds.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_INPROC_OUT_NAMES_FILE_H
#define KILN_INPROC_OUT_NAMES_FILE_H

#include "symbol/elf.h"
#include "symbol/symtab.h"

struct kiln_in_names_file {
    int fd;
    struct kiln_bytes bytes;
    struct kiln_elf *elf;
    struct kiln_symtab table;
};

/* An address, and what its asker knows it by. */
struct kiln_in_asked {
    uint64_t address; /* in the file's own terms */
    uint32_t who;
};

/* A file that has another build id than this, if it is told, is not the one.  Negative errno. */
KILN_CHECK int kiln_in_names_file_open(struct kiln_str path, struct kiln_str build_id,
                                       struct kiln_in_names_file *file);
void kiln_in_names_file_close(struct kiln_in_names_file *file);

/*
 * Tells each address that has a name; addresses are put into another order.  0, -ENOMEM, or an
 * error of `tell`; a file that cannot be read has no names.
 */
KILN_CHECK int
kiln_in_names_file_ask(struct kiln_in_names_file *file, struct kiln_in_asked *asked, uint32_t n,
                       int (*tell)(void *context, uint32_t who, struct kiln_str system_name),
                       void *context);

#endif /* KILN_INPROC_OUT_NAMES_FILE_H */
