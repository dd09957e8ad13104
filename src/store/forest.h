/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forest - many stacks as a tree of function names, in the form that sorted stacks have by
 * themselves: each stack is what it shares with the one before, and what it has of its own.
 *
 *   rank  stack              shared  own
 *   0     main               0       main
 *   1     main;parse         1       parse
 *   2     main;parse;read    2       read
 *   3     main;write         1       write
 *
 * A node of the tree is a name of a stack's own, at (rank, depth); the stacks below it are those
 * from its rank on up to the first one that shares no more than `depth` names: a range of ranks.
 * With sums by rank, added up to P, the total of a node is P[end] - P[rank], and its self is the
 * sum of its first stack, if that one ends there.  So a question needs eight bytes a stack, and
 * none a node.
 *
 * Two siblings may have the same name (two lines of one function): who walks the tree merges them.
 * A forest is made once for the stacks of a service in a block, and cached; for a head, for the
 * stacks of one question; a pruned tree (a roll-up) is one as well: a stack for each of its nodes
 * that has something of its own.
 *
 * Threads: immutable once made; a maker has one owner.
 */
#ifndef KILN_STORE_FOREST_H
#define KILN_STORE_FOREST_H

#include "store/cache.h"
#include "store/namer.h"

#define KILN_FOREST_AGAIN 0x80000000u /* the name is among its ancestors: a recursion */
#define KILN_FOREST_NAME  0x7fffffffu

/* What walking the tree asks of a stack, in one place. */
struct kiln_forest_stack {
    uint32_t name;   /* the first of its own, without AGAIN */
    uint32_t shared; /* names shared with the stack before; 0 behind the last */
    uint32_t next;   /* the next one that shares no more, or n_stacks */
    uint32_t below;  /* the next one that shares less, or n_stacks */
};

struct kiln_forest {
    struct kiln_cached cached; /* first */
    uint32_t n_stacks, n_nodes, n_names;
    uint32_t depth;  /* of the deepest stack */
    uint64_t serial; /* of all forests ever made, this one */
    const struct kiln_function_name *names;
    const uint64_t *hashes; /* of names; equal hashes are taken for equal names */
    uint32_t *own;          /* n_nodes: number of a name, and AGAIN; those of one stack together */
    uint32_t *first;        /* n_stacks + 1: where in `own` */
    struct kiln_forest_stack *stacks; /* n_stacks + 1 */
    uint32_t *rank;   /* by number of a stack - 1; NULL: the numbers are the ranks */
    uint32_t folded;  /* the name of what a pruned tree has no nodes for; UINT32_MAX: none */
    bool lacks_names; /* symbols that come later may name what has none */
    /* what keeps the texts, and what it takes */
    struct kiln_budget budget;
    struct kiln_namer namer;
    struct kiln_cached *dict;
    void *kept;
    void (*let_go)(void *kept);
    uint32_t cap_own, cap_first, cap_stacks, cap_rank;
};

static inline uint32_t kiln_forest_length(const struct kiln_forest *f, uint32_t rank)
{
    return f->stacks[rank].shared + f->first[rank + 1] - f->first[rank];
}

/* The name of a stack at a depth that is its own. */
static inline uint32_t kiln_forest_name(const struct kiln_forest *f, uint32_t rank, uint32_t depth)
{
    return f->own[f->first[rank] + depth - f->stacks[rank].shared] & KILN_FOREST_NAME;
}

static inline struct kiln_forest *kiln_forest_ref(struct kiln_forest *forest)
{
    kiln_cached_ref(&forest->cached);
    return forest;
}
static inline void kiln_forest_unref(struct kiln_forest *forest)
{
    kiln_cached_unref((struct kiln_cached *)forest);
}

/* ---- making one ---- */

struct kiln_forest_maker {
    struct kiln_forest *forest;
    uint32_t *path;    /* names of the last stack */
    uint32_t *on_path; /* by name: how often it is there */
    uint32_t n_path, cap_path, n_on_path, cap_on_path;
    struct kiln_budget budget; /* of what only making needs */
};

/* `memory_bytes` bounds the forest; names are those of forest->namer, which is ready but for its
 * dictionary. */
KILN_CHECK int kiln_forest_maker_init(struct kiln_forest_maker *maker, size_t memory_bytes);
/* Room for this many, to save growing. */
KILN_CHECK int kiln_forest_expect(struct kiln_forest_maker *maker, uint64_t stacks, uint64_t nodes);
/* The next stack: as many names as it shares with the one before, and its own, at least one of
 * them unless it is the first. */
KILN_CHECK int kiln_forest_add(struct kiln_forest_maker *maker, uint32_t shared,
                               const uint32_t *own, uint32_t n);
/* The forest, a reference.  The maker is done, also on failure. */
KILN_CHECK int kiln_forest_finish(struct kiln_forest_maker *maker, struct kiln_forest **ret_forest);
void kiln_forest_maker_done(struct kiln_forest_maker *maker);

/*
 * Of stacks in any order: the i-th has the names from starts[i] up to starts[i + 1], root first;
 * those that have the same names become one.  Fills rank: forest->rank[i].
 */
KILN_CHECK int kiln_forest_of_names(struct kiln_forest_maker *maker, const uint32_t *names,
                                    const uint32_t *starts, uint32_t n,
                                    struct kiln_forest **ret_forest);

#endif /* KILN_STORE_FOREST_H */
