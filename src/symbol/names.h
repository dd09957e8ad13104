/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names - the names of one file's code, sorted by address, from wherever the file has them:
 * .symtab, .dynsym, .gnu_debugdata (a compressed .symtab), Go's pclntab (with lines),
 * /proc/kallsyms, a perf-map, a jitdump (with lines); and over them lines and inlines of its debug
 * information, in the file or in another that is wanted then.
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
struct kiln_scratch;

/* What a file may make us read at most. */
struct kiln_names_limits {
    size_t memory_bytes;          /* of symbols; 0: 192 MiB */
    uint32_t symbols;             /* 0: 8 million */
    bool shallow;                 /* no debug information */
    size_t deep_bytes;            /* of debug information; 0: 48 MiB */
    struct kiln_scratch *scratch; /* for what of it is inflated: section.h; borrowed; NULL: none */
};

/* `bytes` are read again when names are asked for.  -EACCES: the kernel hides its addresses.  A
 * file without names is no error. */
KILN_CHECK int kiln_names_open(enum kiln_source_kind kind, const struct kiln_bytes *bytes,
                               const struct kiln_names_limits *limits,
                               struct kiln_names **ret_names);
/*
 * A perf-map or jitdump that was opened before has more at its end now: only that is read.  On
 * failure it has to be opened anew: KILN_E_UNSUPPORTED where it is no such file.
 */
KILN_CHECK int kiln_names_grow(struct kiln_names *names, const struct kiln_bytes *bytes);
void kiln_names_close(struct kiln_names *names);

/* Until when (on the monotonic clock) debug information is read; 0: until it is done. */
void kiln_names_deadline(struct kiln_names *names, uint64_t deadline_ns);
/* The file that debug information lacks; the same until it is attached. */
bool kiln_names_wants(struct kiln_names *names, struct kiln_wanted *ret_wanted);
/*
 * That file, to be read as long as the names are; NULL: there is none.  KILN_E_NOMATCH: it is
 * another, and the next one may be wanted.
 */
KILN_CHECK int kiln_names_attach(struct kiln_names *names, const struct kiln_bytes *bytes);
/* Without debug information from now on. */
void kiln_names_give_up(struct kiln_names *names);

/* Memory that it holds. */
size_t kiln_names_bytes(const struct kiln_names *names);

/*
 * False: no name; then perhaps where the function begins.  Texts live until the next call.  A name
 * is shallow where debug information was not read by the deadline, or a file is wanted: asked
 * again, it goes on.
 */
bool kiln_names_find(struct kiln_names *names, uint64_t address, struct kiln_name *ret_name);

#endif /* KILN_SYMBOL_NAMES_H */
