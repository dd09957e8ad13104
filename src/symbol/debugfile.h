/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debugfile - where debug information that is not in a program is looked for.
 *
 * Beneath a root, which may be that of a process in a container: what a file names never leads out
 * of it.  Only regular ELF files are opened, for the names come from strangers and somebody else
 * will read what is given.  Whether it is the right file is for him to check; if it is not, he asks
 * again, with wanted->attempt, and gets the next.
 *
 * Threads: no state.
 */
#ifndef KILN_SYMBOL_DEBUGFILE_H
#define KILN_SYMBOL_DEBUGFILE_H

#include "symbol/wanted.h"

struct kiln_debugfile {
    int root;            /* a directory, borrowed */
    const char *program; /* path of the file that lacks it, beneath the root */
    bool owned;          /* only files of root and of the owner: a user may mount forged ones */
    uint32_t owner;      /* user id */
    bool by_id;          /* only where a build id says which it is: another host's or container's */
    uint32_t passed;     /* after the call: those that exist and were passed over */
};

/*
 * In this order, at most 16 of them:
 *
 *   debug       /usr/lib/debug/.build-id/AB/CDEF.debug; its link's NAME in DIR, DIR/.debug and
 *               /usr/lib/debug/DIR, where DIR is the program's directory, with and without /usr
 *   alternate   its path, from where the debug file may be; /usr/lib/debug/.dwz/NAME; by build id
 *   dwp         PROGRAM.dwp, and /usr/lib/debug/PROGRAM.dwp
 *   dwo         its path, from where it was compiled; NAME and its last part in DIR
 *
 * The one that exists after `wanted->attempt` others.  -ENOENT: there is none.
 */
KILN_CHECK int kiln_debugfile_open(struct kiln_debugfile *where, const struct kiln_wanted *wanted,
                                   int *ret_fd);

/* The same for struct kiln_source: `context` is a struct kiln_debugfile. */
KILN_CHECK int kiln_debugfile_opener(void *context, const struct kiln_wanted *wanted, int *ret_fd);

#endif /* KILN_SYMBOL_DEBUGFILE_H */
