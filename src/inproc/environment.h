/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment - variables, read and taken out where they are: some programs have a getenv() of
 * their own that does not work yet when a preload starts.
 *
 * Threads: while nobody changes variables, as with getenv().
 */
#ifndef KILN_INPROC_ENVIRONMENT_H
#define KILN_INPROC_ENVIRONMENT_H

#include <stdbool.h>
#include <stdint.h>

/* NULL: not set, or empty. */
const char *kiln_in_env(const char *name);

/*
 * Whether it is set; *ret_flag: "0", "false", "no", "off" and "none" are false, "1", "true", "yes"
 * and "on" are true, in any case.  All else is told of, and as if it were not set.
 */
bool kiln_in_env_flag(const char *name, bool *ret_flag);

/* Whether LD_PRELOAD has a library whose file name begins with `name`. */
bool kiln_in_preloads(const char *name);
/* Takes such libraries out of it, in place, for programs that this one executes. */
void kiln_in_preload_remove(const char *name);

#endif /* KILN_INPROC_ENVIRONMENT_H */
