/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main_ends PLUGIN: the main thread ends at once; another one sees that, loads a library, and lets
 * it allocate.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 100, BYTES = 100000 };

static const char *plugin;

static int main_has_ended(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    int ended = 0;

    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, "State:", 6) == 0)
            ended = strchr(line, 'Z') != NULL;
    if (file)
        fclose(file);
    return ended;
}

static void *work(void *arg)
{
    char *(*make)(size_t);
    void *library;

    while (!main_has_ended())
        usleep(1000);
    library = dlopen(plugin, RTLD_NOW);
    make = library ? (char *(*)(size_t))dlsym(library, "plugin_make") : NULL;
    if (!make)
        exit(1);
    for (int i = 0; i < BLOCKS; i++)
        make(BYTES);
    printf("%d\n", BLOCKS * BYTES);
    return arg;
}

int main(int argc, char **argv)
{
    pthread_t thread;

    plugin = argc > 1 ? argv[1] : "";
    pthread_create(&thread, NULL, work, NULL);
    pthread_exit(NULL);
}
