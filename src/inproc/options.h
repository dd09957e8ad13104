/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options - settings out of what the program asks for, and over it what variables say.
 *
 * Threads: at the start.
 */
#ifndef KILN_INPROC_OPTIONS_H
#define KILN_INPROC_OPTIONS_H

#include "inproc/start.h"

/* `options` may be NULL.  What makes no sense in a variable is said in one line and left out. */
void kiln_in_options_fill(const struct kiln_options *options,
                          struct kiln_in_settings *ret_settings);

#endif /* KILN_INPROC_OPTIONS_H */
