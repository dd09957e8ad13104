/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A preload starts by itself, before the program's own constructors.  Children do without it unless
 * they are asked for: most of them are shells and tools that nobody wants profiles of.
 */
#include "inproc/aside.h"
#include "inproc/environment.h"
#include "inproc/start.h"

#define NAME "libkiln.so"

__attribute__((constructor)) static void preloaded(void)
{
    bool follow = false;

    if (kiln_in_is_secure() || !kiln_in_preloads(NAME))
        return;
    kiln_in_say_begin();
    kiln_in_env_flag("KILN_FOLLOW", &follow);
    if (!follow)
        kiln_in_preload_remove(NAME);
    kiln_in_start_preloaded();
}
