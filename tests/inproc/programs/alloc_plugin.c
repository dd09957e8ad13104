/* SPDX-License-Identifier: Apache-2.0 */
/* flags: -shared */
/* Loaded by alloc_churn.c with its own view of who malloc() is, and unloaded again. */
#include <stdlib.h>
#include <string.h>

__attribute__((constructor)) static void on_load(void)
{
    free(malloc(1000));
}

__attribute__((destructor)) static void on_unload(void)
{
    free(calloc(10, 100));
}

__attribute__((visibility("default"))) char *plugin_make(size_t size)
{
    char *block = malloc(size);

    if (block)
        memset(block, 'p', size);
    return block;
}

__attribute__((visibility("default"))) void plugin_drop(char *block)
{
    free(block);
}
