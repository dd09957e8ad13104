/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver - names for addresses, found by a child process that cannot do anything else.
 *
 * Files of strangers are parsed in a child: no privileges, no network, no files but the descriptors
 * it is sent, a seccomp filter, limits on memory, and on CPU and wall time for a file.  A file that
 * makes the child die or take too long is set aside by its key, and a new child is started; nobody
 * else notices.  Answers are kept, up to a limit.
 *
 * Lines and inlines take longer than names.  What they have not come to in time is answered without
 * them, and marked as shallow; the child goes on, so that they are there when it is asked again.  A
 * file whose debug information makes the child die, or takes too much, goes without them: its names
 * stay.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_SYMBOL_RESOLVER_H
#define KILN_SYMBOL_RESOLVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "symbol/wanted.h"

struct kiln_metrics;
struct kiln_log;

enum kiln_source_kind {
    KILN_SOURCE_ELF,      /* addresses of the file's own */
    KILN_SOURCE_KERNEL,   /* /proc/kallsyms: kernel, modules, BPF */
    KILN_SOURCE_PERF_MAP, /* lines "START SIZE name"; addresses of the process */
    KILN_SOURCE_JITDUMP,  /* perf's records of code made at run time; addresses of the process */
};

struct kiln_source {
    uint32_t kind;       /* enum kiln_source_kind */
    int fd;              /* borrowed; -1: only what is kept already */
    uint64_t id;         /* of the thing: object id, or the pid and start of a process mixed */
    uint64_t version;    /* another version (a perf-map that grew) is read again */
    struct kiln_str key; /* what it is set aside by: build id in hexadecimal, else a path */
    /*
     * Opens a file that reading this one turns out to need: -ENOENT where there is none.  Whether
     * it is the right one is checked by who reads it.  NULL: nothing else can be had.
     */
    int (*open)(void *context, const struct kiln_wanted *wanted, int *ret_fd);
    void *context;
};

enum { KILN_NAME_FRAMES_MAX = 64 };

/* A function that is at an address: itself, or inlined there. */
struct kiln_name_frame {
    struct kiln_str function;    /* for people: demangled; never empty */
    struct kiln_str system_name; /* as the linker has it, where that differs; else empty */
    struct kiln_str file;        /* of the source; empty: not known */
    uint32_t line, column;       /* 0: not known */
    uint32_t start_line;
};

/* All of it lives until the next call. */
struct kiln_name {
    /* Innermost first; of more than the most the innermost stay, and the outermost. */
    const struct kiln_name_frame *frames;
    uint32_t n;             /* 0: no name */
    bool shallow;           /* lines and inlines are still being looked for: ask again later */
    struct kiln_str module; /* kernel: "nf_tables", "bpf"; else empty */
    uint64_t begin;         /* without a name: where the function begins; 0: not known */
};

/* The innermost function; empty: no name. */
static inline struct kiln_str kiln_name_function(const struct kiln_name *name)
{
    return name->n ? name->frames[0].function : KILN_STR_NONE;
}

struct kiln_resolver_opts {
    const char *program;  /* started as `program --names-child`; NULL: this very program */
    size_t cache_bytes;   /* 0: 24 MiB */
    size_t child_bytes;   /* memory of the child; 0: 96 MiB */
    uint32_t file_cpu_ms; /* that one file may take in one ask before it is set aside; 0: 2,000 */
    uint32_t deep_cpu_ms; /* that a file's debug information may take in all; 0: 30,000 */
    uint32_t rest_ms;     /* without an ask, until the child ends; 0: 60,000 */
    /* An ask waits up to 0.5 s for lines and inlines, and the child does not rest between asks;
     * else all asks together wait for a tenth of the time at most. */
    bool patient;
    const char *scratch_directory; /* for what is inflated beyond memory; NULL: /var/tmp */
    const char *shelf_directory;   /* names on disk, see symbol/shelf.h; NULL: none */
    uint64_t shelf_bytes;          /* 0: 256 MiB */
    struct kiln_metrics *metrics;
    struct kiln_log *log;
};

struct kiln_resolver;
KILN_CHECK int kiln_resolver_new(const struct kiln_resolver_opts *opts,
                                 struct kiln_resolver **ret_resolver, struct kiln_err *err);
void kiln_resolver_free(struct kiln_resolver *resolver);

/*
 * The names of `n` addresses; names[i] has no frames where there is none, and then perhaps where
 * the function begins.  Never waits longer than the limits of a file.  0, also where nothing has a
 * name; negative only without memory or without a child: names from before are there then.
 */
KILN_CHECK int kiln_resolver_ask(struct kiln_resolver *resolver, const struct kiln_source *source,
                                 const uint64_t *addresses, uint32_t n, struct kiln_name *names);

/* Whether the file was set aside: that it gave no names says nothing of them. */
bool kiln_resolver_is_aside(const struct kiln_resolver *resolver, const struct kiln_source *source);

/*
 * Adds the text of a source file, by the name that debug information gives it, where the ELF file
 * of `source` has it embedded (clang's -gembed-source).  It is as it came: any bytes, of 4 MiB at
 * most.  -ENOENT: it is not there, or takes too long to be found, or the file is set aside.
 */
KILN_CHECK int kiln_resolver_text(struct kiln_resolver *resolver, const struct kiln_source *source,
                                  struct kiln_str file, struct kiln_buf *out);

struct kiln_resolver_cost {
    uint64_t cpu_ns; /* of its children so far */
    uint64_t child_bytes;
    uint64_t kept_bytes; /* of what is kept here */
};
void kiln_resolver_cost(const struct kiln_resolver *resolver, struct kiln_resolver_cost *ret_cost);

/* What a child does until its socket (descriptor 3) is closed.  Returns an exit code. */
int kiln_resolver_child(void);

#endif /* KILN_SYMBOL_RESOLVER_H */
