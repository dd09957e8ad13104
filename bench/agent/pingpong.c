/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes that wake each other through pipes, until they are killed: as many context switches
 * as a processor can make.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

static void play(int from, int to)
{
    char ball;

    while (read(from, &ball, 1) == 1 && write(to, &ball, 1) == 1)
        continue;
}

int main(void)
{
    int there[2], back[2];

    if (pipe(there) != 0 || pipe(back) != 0)
        return 1;
    switch (fork()) {
    case -1:
        return 1;
    case 0:
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        play(there[0], back[1]);
        return 0;
    default:
        if (write(there[1], "o", 1) == 1)
            play(back[0], there[1]);
        return 0;
    }
}
