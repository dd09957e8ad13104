/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names - the names of one file's code, sorted by address, from wherever the file has them:
 * .symtab, .dynsym, .gnu_debugdata (a compressed .symtab), Go's pclntab (with lines),
 * /proc/kallsyms, a perf-map, a jitdump (with lines).
 *
 * This runs in the resolver's child.
 * Threads: one owner at a time.
 */
#ifndef KILN_SYMBOL_NAMES_H
#define KILN_SYMBOL_NAMES_H

#include "symbol/demangle.h"
#include "symbol/elf.h"
#include "symbol/resolver.h"

struct kiln_names;

/* What a file may make us read at most. */
struct kiln_names_limits {
    size_t memory_bytes; /* 0: 192 MiB */
    uint32_t symbols;    /* 0: 8 million */
};

/* `bytes` are read again when names are asked for.  -EACCES: the kernel hides its addresses.  A
 * file without names is no error. */
KILN_CHECK int kiln_names_open(enum kiln_source_kind kind, const struct kiln_bytes *bytes,
                               const struct kiln_names_limits *limits,
                               struct kiln_names **ret_names);
/*
 * A perf-map or jitdump that was opened before has more at its end now: only that is read.  On failure it has
 * to be opened anew: KILN_E_UNSUPPORTED where it is no such file.
 */
KILN_CHECK int kiln_names_grow(struct kiln_names *names, const struct kiln_bytes *bytes);
void kiln_names_close(struct kiln_names *names);

/* Memory that it holds. */
size_t kiln_names_bytes(const struct kiln_names *names);

/* False: no name; then perhaps where the function begins.  Texts live until the next call. */
bool kiln_names_find(struct kiln_names *names, uint64_t address, struct kiln_name *ret_name);

#endif /* KILN_SYMBOL_NAMES_H */
