/* SPDX-License-Identifier: Apache-2.0 */
/* flags: -shared */
/* Opens a plugin when it comes, before anybody else: for trap_opened.c, which closes it. */
#include <dlfcn.h>
#include <stdlib.h>

void *opened_early(void);

static void *plugin;

__attribute__((constructor)) static void come(void)
{
    const char *path = getenv("TRAP_PLUGIN");

    plugin = path ? dlopen(path, RTLD_NOW) : NULL;
}

void *opened_early(void)
{
    return plugin;
}
