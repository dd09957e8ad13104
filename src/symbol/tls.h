/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls - where a variable that each thread has its own of is to be found, as far as a file says it:
 * a fixed distance from the thread pointer, or a word that the dynamic linker fills in when it
 * loads the file.  x86-64.
 *
 * Threads: plain data.
 */
#ifndef KILN_SYMBOL_TLS_H
#define KILN_SYMBOL_TLS_H

#include "symbol/elf.h"

enum kiln_tls_kind {
    KILN_TLS_FIXED,      /* thread pointer + add: of a program */
    KILN_TLS_OFFSET,     /* the word is a distance from the thread pointer */
    KILN_TLS_PAIR,       /* two words: module, and the offset in its block */
    KILN_TLS_MODULE,     /* the word is the module; `add` is the offset in its block */
    KILN_TLS_DESCRIPTOR, /* two words: a function of the dynamic linker's, and its argument */
};

struct kiln_tls_variable {
    uint32_t kind; /* enum kiln_tls_kind */
    uint64_t word; /* the file's own address of it */
    int64_t add;   /* to what the word leads to */
};

/*
 * Looks for a definition in the dynamic symbols, by their hash table, and where the file has none
 * (a static program) among all symbols.  `is_program`: it is what the process was started with, and
 * no library.  -ENOENT: it is not defined here; KILN_E_UNSUPPORTED: it is, but nothing says where;
 * KILN_E_LIMIT: too many symbols or relocations.
 */
KILN_CHECK int kiln_tls_find(const struct kiln_elf *elf, const char *name, bool is_program,
                             struct kiln_tls_variable *ret_variable);

#endif /* KILN_SYMBOL_TLS_H */
