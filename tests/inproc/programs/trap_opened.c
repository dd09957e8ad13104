/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin that was open before the program began (trap_opener.c) is closed; where its code was
 * code is made that allocates, and nobody may look for the plugin's tables then.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

static char *volatile block;

static void allocate(void)
{
    for (int i = 0; i < 2000; i++) {
        free(block);
        block = malloc((size_t)(i % 900) + 1);
    }
}

/* Calls what it is given. */
static int call_from(void *page)
{
#ifdef __x86_64__
    static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
    void *made = mmap(page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    void (*call)(void (*)(void));

    if (made != page)
        return 0;
    memcpy(made, code, sizeof(code));
    memcpy(&call, &made, sizeof(call));
    call(allocate);
#else
    (void)page;
#endif
    return 1;
}

int main(void)
{
    void *(*opened_early)(void);
    void *found = dlsym(RTLD_DEFAULT, "opened_early"), *handle, *code;
    char *text = strdup("text");
    char *(*plugin_call)(char *, int);

    if (!found)
        return 2;
    memcpy(&opened_early, &found, sizeof(found));
    handle = opened_early();
    code = handle ? dlsym(handle, "plugin_call") : NULL;
    if (!code)
        return 3;
    memcpy(&plugin_call, &code, sizeof(code));
    for (int i = 0; i < 20; i++)
        text = plugin_call(text, 100);
    printf("%s\n", text);
    free(text);
    if (dlclose(handle) != 0)
        return 4;
    printf("called %d\n", call_from((void *)((uintptr_t)code & ~(uintptr_t)(PAGE - 1))));
    return 0;
}
