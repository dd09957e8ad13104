/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn - starts a program that knows nothing of this process' signals: none is blocked, none
 * ignored or handled.
 *
 * Threads: no state.
 */
#ifndef KILN_BASE_SPAWN_H
#define KILN_BASE_SPAWN_H

#include <spawn.h>
#include <sys/types.h>

#include "base/attr.h"

/* `actions` say what becomes of its descriptors.  0, or a negative errno. */
KILN_CHECK int kiln_spawn(const char *program, const posix_spawn_file_actions_t *actions,
                          char *const arguments[], char *const environment[], pid_t *ret_pid);

#endif /* KILN_BASE_SPAWN_H */
