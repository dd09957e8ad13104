/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library for programs in other languages: burn_T_D() burns for the T-th of those that work, D
 * deep in spans, so that a sample says in which span it should be.
 */
#include "burn.h"

#define BURN(t, d)                                                                                 \
    KEPT void burn_##t##_##d(void);                                                                \
    void burn_##t##_##d(void)                                                                      \
    {                                                                                              \
        spin(TURN);                                                                                \
    }
#define BURN_ALL(t) BURN(t, 0) BURN(t, 1) BURN(t, 2)

BURN_ALL(0)
BURN_ALL(1)
BURN_ALL(2)
BURN_ALL(3)
BURN_ALL(4)
BURN_ALL(5)
BURN_ALL(6)
