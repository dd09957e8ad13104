/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A storm of processes: for so many seconds by the clock it forks children that burn for so many
 * milliseconds of CPU time and are gone, as many at once as there are processors.  spawn SECONDS MS
 * fork|exec: with exec, each child runs this program anew under the name of its fourth argument, if
 * there is one.
 */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "burn.h"

KEPT void burn_briefly(void)
{
    spin(TURN);
}

KEPT void short_life(double ms)
{
    for (uint64_t end = cpu_ns() + (uint64_t)(ms * 1e6); cpu_ns() < end;)
        burn_briefly();
    STAY;
}

static void child(const char *ms, int exec, const char *path)
{
    if (exec)
        execl(path, path, "--short", ms, (char *)NULL);
    else
        short_life(strtod(ms, NULL));
    _exit(exec ? 1 : 0);
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--short") == 0) {
        short_life(strtod(argv[2], NULL));
        return 0;
    }
    const char *ms = argc > 2 ? argv[2] : "50";
    int exec = argc > 3 && strcmp(argv[3], "exec") == 0;
    const char *path = argc > 4 ? argv[4] : "/proc/self/exe";
    long free_seats = sysconf(_SC_NPROCESSORS_ONLN);
    for (uint64_t end = now_ns() + span_ns(argc, argv); now_ns() < end;) {
        if (free_seats == 0) {
            wait(NULL);
            free_seats++;
        }
        pid_t pid = fork();
        if (pid < 0)
            return 1;
        if (pid == 0)
            child(ms, exec, path);
        free_seats--;
    }
    while (wait(NULL) > 0)
        continue;
    return 0;
}
