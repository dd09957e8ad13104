/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries that come and go while threads allocate in them: dlopen, RTLD_DEEPBIND, dlmopen,
 * dlclose; dlsym finds the functions of the C library.  usage: trap_dlopen PLUGIN
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 150 };

static atomic_bool over;

static void *work(void *arg)
{
    while (!atomic_load(&over))
        for (int i = 1; i < 200; i++)
            free(malloc((size_t)i * 31));
    return arg;
}

static int call(void *plugin)
{
    char *(*function)(char *, int) = (char *(*)(char *, int))dlsym(plugin, "plugin_call");
    char *text;
    int good;

    if (!function)
        return 0;
    text = function(strdup("hello"), 100);
    good = strcmp(text, "hello") == 0;
    free(text);
    return good;
}

static int load(const char *path, int flags)
{
    int good = 0;

    for (int i = 0; i < ROUNDS; i++) {
        void *plugin = dlopen(path, flags);

        good += plugin && call(plugin) && dlclose(plugin) == 0;
    }
    return good;
}

static int load_apart(const char *path)
{
    int good = 0;

    /* In a namespace with a C library of its own: nothing of it may cross over but texts. */
    for (int i = 0; i < 3; i++) {
        void *plugin = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);

        good += plugin && dlsym(plugin, "plugin_call") && dlclose(plugin) == 0;
    }
    return good;
}

int main(int argc, char **argv)
{
    void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "malloc");
    void (*release)(void *) = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    pthread_t thread;

    if (argc < 2 || !allocate || !release)
        return 2;
    pthread_create(&thread, NULL, work, NULL);
    printf("now %d of %d\n", load(argv[1], RTLD_NOW), ROUNDS);
    printf("lazy, global %d of %d\n", load(argv[1], RTLD_LAZY | RTLD_GLOBAL), ROUNDS);
    printf("deepbind %d of %d\n", load(argv[1], RTLD_NOW | RTLD_DEEPBIND), ROUNDS);
    printf("apart %d of 3\n", load_apart(argv[1]));
    for (int i = 0; i < 10000; i++)
        release(allocate((size_t)i));
    puts("dlsym");
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    return 0;
}
