/* SPDX-License-Identifier: Apache-2.0 */
/*
 * go_info - what the Go tool writes into a program: its own version, and which module at which
 * version and commit it was built from.
 *
 * Only of Go 1.18 and later.  What is read is limited to 64 KiB; options of the build, which may
 * hold anything, are passed over.
 *
 * Threads: no state.
 */
#ifndef KILN_SYMBOL_GO_INFO_H
#define KILN_SYMBOL_GO_INFO_H

#include "base/str.h"
#include "symbol/elf.h"

struct kiln_go_info {
    char version[64];         /* "go1.22.1" */
    char module[256];         /* "example.com/shop" */
    char module_version[128]; /* "v1.4.0"; "" where it was built in its own source tree */
    char revision[72];        /* the commit; "" */
};

/* -ENOENT: the file has none; KILN_E_MALFORMED. */
KILN_CHECK int kiln_go_info_read(const struct kiln_elf *elf, struct kiln_go_info *ret_info);
/* The same of the bytes of the section. */
KILN_CHECK int kiln_go_info_parse(struct kiln_str section, struct kiln_go_info *ret_info);

#endif /* KILN_SYMBOL_GO_INFO_H */
