/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patterns - the paths that patterns name by now.
 *
 * A pattern is one of the shell's: * and ? stand for letters of a name, [a-z] for one of them, and
 * a part that is ** for any number of folders, none included.  Names that begin with a dot must be
 * said; ** looks into no folder of such a name, and follows no link.
 *
 * Threads: one owner.
 */
#ifndef KILN_COLLECTOR_RECEIVERS_PATTERNS_H
#define KILN_COLLECTOR_RECEIVERS_PATTERNS_H

#include "base/mem.h"
#include "base/str.h"

enum { KILN_PATTERN_MAX = 1024 };

struct kiln_paths {
    char **list;
    uint32_t n, cap;
    struct kiln_budget budget;
};

void kiln_paths_init(struct kiln_paths *paths);
void kiln_paths_done(struct kiln_paths *paths);
/* Adds what a pattern of less than KILN_PATTERN_MAX bytes names.  Without memory, less. */
void kiln_paths_find(struct kiln_paths *paths, struct kiln_str pattern);
/* Puts them in order, once all are there; then it can be asked whether one is among them. */
void kiln_paths_sort(struct kiln_paths *paths);
bool kiln_paths_has(const struct kiln_paths *paths, const char *path);

#endif /* KILN_COLLECTOR_RECEIVERS_PATTERNS_H */
