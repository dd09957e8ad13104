/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clean - names of strangers, made fit for a profile: UTF-8, no control characters, not too long.
 *
 * Threads: no state.
 */
#ifndef KILN_SYMBOL_CLEAN_H
#define KILN_SYMBOL_CLEAN_H

#include "base/str.h"

/*
 * Writes at most `max` bytes to `ret`; what is no character or controls something becomes U+FFFD.
 * Returns how many.
 */
size_t kiln_name_clean(struct kiln_str name, char *ret, size_t max);

#endif /* KILN_SYMBOL_CLEAN_H */
