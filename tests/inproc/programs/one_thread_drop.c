/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of one thread that gives up being root, and looks whether any thread of its process is
 * still somebody else: at once, and after a while.
 *
 *   one_thread_drop hooked|bypassed    by the function as all call it, or by its address in libc
 */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NOBODY = 65534, TURNS = 600 };

static char *volatile last;

static void churn(int turns)
{
    for (int i = 0; i < turns; i++) {
        for (int j = 0; j < 100; j++) {
            last = malloc((size_t)j * 20 + 1);
            free(last);
        }
        usleep(1000);
    }
}

/* Whether a thread may still be what the process was; one that has ended is nobody. */
static int is_root(const char *id)
{
    char path[300], line[300];
    unsigned ids[4] = {0};
    int found = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%s/status", id);
    file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "Uid: %u %u %u %u", &ids[0], &ids[1], &ids[2], &ids[3]) == 4)
            found = ids[0] != NOBODY || ids[1] != NOBODY || ids[2] != NOBODY;
    if (file)
        fclose(file);
    return found;
}

static int roots(void)
{
    DIR *folder = opendir("/proc/self/task");
    struct dirent *entry;
    int n = 0;

    while ((entry = readdir(folder)))
        if (entry->d_name[0] != '.')
            n += is_root(entry->d_name);
    closedir(folder);
    return n;
}

int main(int argc, char **argv)
{
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    int (*address)(uid_t, uid_t, uid_t) = (int (*)(uid_t, uid_t, uid_t))dlsym(libc, "setresuid");
    int r;

    churn(200);
    if (argc > 1 && strcmp(argv[1], "bypassed") == 0)
        r = address(NOBODY, NOBODY, NOBODY);
    else
        r = setresuid(NOBODY, NOBODY, NOBODY);
    printf("%d, still root: %d\n", r, roots());
    churn(TURNS);
    printf("later: %d\n", roots());
    return 0;
}
