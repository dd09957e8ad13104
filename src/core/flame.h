/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame - the answer most people want: a call tree of function names, and each function once.
 *
 * Nodes lie in preorder; nodes[0] is the root, whose name is "total"; the children of a node stand
 * in the order of their names, and what was folded away below a node is one last child named
 * "other" (names[other]), so that every total is exact.  A flame is made by a store, where the
 * samples are; core/tree.h is its sister for one batch at hand, with frames of any granularity.
 *
 * Threads: immutable once made.
 */
#ifndef KILN_CORE_FLAME_H
#define KILN_CORE_FLAME_H

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"

/* A function as its name says it.  The rest is of one of its occurrences, for people. */
struct kiln_flame_name {
    struct kiln_str name;
    struct kiln_str file;   /* of the source, or "" */
    struct kiln_str module; /* file name of the mapping, or "" */
    struct kiln_str kind;   /* profile.frame.type: native, kernel, jvm, ...; or "" */
    bool inlined;           /* into its caller, wherever it was looked at */
};

struct kiln_flame_node {
    uint32_t name;
    uint32_t parent; /* the root's is itself */
    uint32_t end;    /* the node behind its subtree: its next sibling, if it has one */
    uint32_t depth;
    int64_t self, total;
};

/* A function that recurses counts once in its total. */
struct kiln_flame_function {
    uint32_t name;
    int64_t self, total;
};

/* Its arrays are kiln_malloc()'s, charged to the budget. */
struct kiln_flame {
    struct kiln_flame_name *names;         /* [0]: "total"; sorted otherwise as they were met */
    struct kiln_flame_node *nodes;         /* NULL: was not asked for */
    struct kiln_flame_function *functions; /* by self, then total, descending, then name; NULL: was
                                              not asked for */
    uint32_t n_names, n_nodes, n_functions;
    uint32_t other;      /* the name of what was folded; 0: nothing was */
    uint64_t nodes_all;  /* of the whole tree, before folding; 0 where nobody counted */
    int64_t total;       /* of everything */
    int64_t error_bound; /* no total of a node is off by more, and none is too high; 0: exact */
    struct kiln_budget budget;
    struct kiln_arena arena; /* texts */
    int64_t functions_bound; /* the same for functions, and for those that are not listed */
};

/* An error bound as a share of everything, 0 to 100. */
static inline double kiln_flame_percent(const struct kiln_flame *flame, int64_t bound)
{
    double total = flame->total < 0 ? -(double)flame->total : (double)flame->total;

    return (double)bound < total ? 100 * (double)bound / total : bound ? 100 : 0;
}

void kiln_flame_free(struct kiln_flame *flame);

#endif /* KILN_CORE_FLAME_H */
