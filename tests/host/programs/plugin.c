/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a library, burns in it, closes it, and again: its mappings come and go. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "burn.h"

static void library_path(char *path, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", path, size - 16);
    path[n < 0 ? 0 : n] = '\0';
    char *slash = strrchr(path, '/');
    memcpy(slash ? slash + 1 : path, "libtiny.so", sizeof("libtiny.so"));
}

KEPT int open_and_burn(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    void (*burn)(void) = library ? (void (*)(void))dlsym(library, "plugin_outer") : NULL;
    if (!burn)
        return -1;
    for (int i = 0; i < 1000; i++)
        burn();
    return dlclose(library);
}

int main(int argc, char **argv)
{
    char path[PATH_MAX];
    library_path(path, sizeof(path));
    for (uint64_t end = end_ns(argc, argv); cpu_ns() < end;)
        if (open_and_burn(path) != 0)
            return 1;
    return 0;
}
