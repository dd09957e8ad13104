/* SPDX-License-Identifier: Apache-2.0 */
#include "base/spawn.h"

#include <errno.h>
#include <signal.h>

int kiln_spawn(const char *program, const posix_spawn_file_actions_t *actions,
               char *const arguments[], char *const environment[], pid_t *ret_pid)
{
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int r;

    if (posix_spawnattr_init(&attributes) != 0)
        return -ENOMEM;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    r = posix_spawn(ret_pid, program, actions, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    return -r;
}
