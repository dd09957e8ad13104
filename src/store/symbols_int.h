/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols_int - symbols in memory.
 *
 * Lists of frames are a tree: a node is a frame, and its parent the frame it was inlined into.  So
 * addresses of one function share what is around them.
 *
 * Threads: as store/symbols.h.
 */
#ifndef KILN_STORE_SYMBOLS_INT_H
#define KILN_STORE_SYMBOLS_INT_H

#include "store/symbols.h"

enum { KILN_SYMBOLS_HEAD = 40, KILN_SYMBOLS_SUMMED = 36 };
extern const char kiln_symbols_magic[8];

struct kiln_symbol_function {
    uint32_t name, system_name, file; /* texts */
    int64_t start_line;
};

struct kiln_symbol_node {
    uint32_t parent;   /* a node before it; 0: none */
    uint32_t function; /* number */
    uint32_t depth;    /* 1: the outermost */
    int64_t line;
};

struct kiln_symbol_row {
    uint64_t address, size;
    uint32_t node;  /* the innermost; 0: there is nothing */
    uint32_t range; /* 1 + the last row up to this one that is no single address; 0: none */
};

struct kiln_symbols {
    struct kiln_cached cached; /* first; its bytes are all it takes */
    struct kiln_symbol_row *rows;
    struct kiln_symbol_node *nodes; /* from 1 on */
    struct kiln_symbol_function *functions;
    struct kiln_str *texts; /* 0: the empty one */
    char *body;             /* owned: texts point here */
    struct kiln_str build_id;
    uint32_t n, n_nodes, n_functions, n_texts;
};

#endif /* KILN_STORE_SYMBOLS_INT_H */
