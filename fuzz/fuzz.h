/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz - what a fuzz target insists on.
 *
 * make torture gives every corpus file to its target with each allocation failing in turn.  A run
 * in which memory ran out need not succeed; it must only not crash and not leak.
 */
#ifndef KILN_FUZZ_FUZZ_H
#define KILN_FUZZ_FUZZ_H

#include <stdlib.h>

#include "base/mem.h"

#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition) && !kiln_mem_failed())                                                    \
            abort();                                                                               \
    } while (0)

#endif /* KILN_FUZZ_FUZZ_H */
