/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile - stacks whose names are out to break whoever draws them.
 */
#ifndef KILN_TESTS_SUPPORT_HOSTILE_H
#define KILN_TESTS_SUPPORT_HOSTILE_H

#include "core/view.h"

/* A view over samples with names made of markup, control bytes, broken UTF-8 and great length. */
struct kiln_view *kiln_test_hostile_view(uint64_t seed);

#endif /* KILN_TESTS_SUPPORT_HOSTILE_H */
