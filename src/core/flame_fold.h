/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_fold - a flame with no more nodes than somebody can use.
 *
 * A store leaves nodes that are as large as the last that stays: in a tree of single samples those
 * may be most of it.  Whoever draws wants a number that holds.
 *
 * Threads: the flame has one owner while it is folded.
 */
#ifndef KILN_CORE_FLAME_FOLD_H
#define KILN_CORE_FLAME_FOLD_H

#include "core/flame.h"

/* At most `nodes_max` nodes stay (1 at least, "other" not counted), those with the largest totals
 * and of equal ones the first.  Totals stay exact.  Returns 0 or -ENOMEM, and then nothing
 * happened. */
KILN_CHECK int kiln_flame_fold(struct kiln_flame *flame, uint32_t nodes_max);

#endif /* KILN_CORE_FLAME_FOLD_H */
