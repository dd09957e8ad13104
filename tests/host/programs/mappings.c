/* SPDX-License-Identifier: Apache-2.0 */
/* Ten thousand mappings of code (a second argument says another number), and then the plain chain:
 * main, outer, burn_leaf. */
#include <sys/mman.h>
#include <unistd.h>

#include "burn.h"

KEPT void burn_leaf(void)
{
    spin(TURN);
}

KEPT void outer(void)
{
    burn_leaf();
    STAY;
}

int main(int argc, char **argv)
{
    long n = argc > 2 ? strtol(argv[2], NULL, 10) : 10000;
    long page = sysconf(_SC_PAGESIZE);
    /* Neighbours with other rights stay mappings of their own. */
    char *room = mmap(NULL, (size_t)(2 * n * page), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return 1;
    for (long i = 0; i < n; i++)
        if (mprotect(room + 2 * i * page, (size_t)page, PROT_READ | PROT_EXEC) != 0)
            return 1;
    for (uint64_t end = end_ns(argc, argv); cpu_ns() < end;)
        outer();
    return 0;
}
