/* SPDX-License-Identifier: Apache-2.0 */
/* flags: -shared */
/*
 * A plugin that trap_dlopen.c loads and unloads: allocates when it comes, when it is called and
 * when it goes, and frees what others allocated.
 */
#include <stdlib.h>
#include <string.h>

static char *kept;
static _Thread_local char own[100]; /* a place that the loader has to find for it */

__attribute__((constructor)) static void come(void)
{
    kept = malloc(5000);
    memset(kept, 1, 5000);
    memset(own, 1, sizeof(own));
}

__attribute__((destructor)) static void go(void)
{
    free(kept);
    free(malloc(100));
}

char *plugin_call(char *yours, int n);
char *plugin_call(char *yours, int n)
{
    char *mine = malloc((size_t)n + 16);

    memcpy(mine, yours, strlen(yours) + 1);
    free(yours);
    for (int i = 0; i < 200; i++)
        free(calloc(1, (size_t)(i * 13)));
    return realloc(mine, (size_t)n * 2 + 16);
}
