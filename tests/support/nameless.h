/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nameless - profiles of a program whose names are still to come, drawn as text, and names for it.
 *
 *   start;main@10;20;+20 5      a stack, root first, and its value:
 *     start      a function without an address
 *     main@10    what a symbol table says of the address 0x10: a function, no file, no line
 *     20         the address 0x20 without a name
 *     +20        the same, with a function that is made up, "app+0x20"
 *     main!10    with a file and a line: nobody names it better
 *     main?10    of the kernel
 *
 * Addresses are those of the file, hexadecimal; the program is "/bin/app" with the build id given.
 */
#ifndef KILN_TESTS_NAMELESS_H
#define KILN_TESTS_NAMELESS_H

#include "store/engine.h"

struct kiln_nameless {
    const char *stacks;  /* lines */
    const char *service; /* NULL: none */
    const char *build_id;
    uint64_t time_ns;
    bool timed; /* each stack is seen once, at the time of the profile */
};

/* Fails the test on any error. */
struct kiln_batch *kiln_test_nameless(const struct kiln_nameless *drawn);

/*
 * Puts symbols for "anonymous", one a line: "10 get;skip;main" has the frames of the address 0x10
 * alone, innermost first, each in the file FUNCTION.c on line 7; "10-20 main" is a range; a name
 * with a dot before it, ".main", has no file; nothing behind the address says that there is
 * nothing.
 */
void kiln_test_put_names(struct kiln_engine *engine, const char *build_id, const char *lines);

/* What is without a name in "anonymous": a line "BUILD_ID FILE 10 20 30" for each build id. */
const char *kiln_test_unnamed(struct kiln_engine *engine);

#endif /* KILN_TESTS_NAMELESS_H */
