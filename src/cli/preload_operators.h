/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preload_operators - which libkiln a C++ program wants: where its allocator brings operators new
 * and delete of its own, the variant that hooks those too.
 *
 * Threads: no state.
 */
#ifndef KILN_CLI_PRELOAD_OPERATORS_H
#define KILN_CLI_PRELOAD_OPERATORS_H

#include <limits.h>
#include <stdbool.h>

/*
 * Whether the program at `path` names such an allocator among the libraries it needs, or
 * `preloaded` (NULL: nothing) does.
 */
bool kiln_preload_has_operators(const char *path, const char *preloaded);

/* Exchanges the path of the library for that of its variant, where there is one. */
void kiln_preload_take_variant(char library[PATH_MAX]);

#endif /* KILN_CLI_PRELOAD_OPERATORS_H */
