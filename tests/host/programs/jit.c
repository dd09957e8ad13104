/* SPDX-License-Identifier: Apache-2.0 */
/* Code made at run time, with a frame pointer: jitted <- outer <- main, nearly all; without the
 * name but as [jit] unless somebody writes /tmp/perf-PID.map.  Prints where the code is, as a line
 * of such a file. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "burn.h"

/* push rbp; mov rbp, rsp; mov ecx, 300000; again: dec ecx; jnz again; pop rbp; ret */
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xb9, 0xe0, 0x93, 0x04,
                                     0x00, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};

KEPT void outer(void (*jitted)(void))
{
    jitted();
    STAY;
}

int main(int argc, char **argv)
{
    char *room = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return 1;
    memcpy(room + 64, code, sizeof(code));
    if (mprotect(room, 4096, PROT_READ | PROT_EXEC) != 0)
        return 1;
    printf("%lx %zx jitted\n", (unsigned long)(room + 64), sizeof(code));
    fflush(stdout);
    for (uint64_t end = end_ns(argc, argv); cpu_ns() < end;)
        outer((void (*)(void))(uintptr_t)(room + 64));
    return 0;
}
