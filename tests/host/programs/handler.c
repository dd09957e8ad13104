/* SPDX-License-Identifier: Apache-2.0 */
/* A signal that comes at any instruction, handled on a stack of its own: a third of the time is
 * spent in the handler, below what it interrupted.  It comes with CPU time: one that comes by the
 * clock would be due again whenever a busy machine lets the handler end. */
#include <signal.h>
#include <sys/time.h>

#include "burn.h"

KEPT void burn_in_handler(void)
{
    spin(15 * TURN);
}

KEPT void on_alarm(int number)
{
    (void)number;
    burn_in_handler();
    STAY;
}

KEPT void burn_interrupted(void)
{
    spin(TURN);
}

KEPT void outer(void)
{
    burn_interrupted();
    STAY;
}

int main(int argc, char **argv)
{
    static char room[65536];
    stack_t stack = {.ss_sp = room, .ss_size = sizeof(room)};
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_ONSTACK | SA_RESTART};
    struct itimerval timer = {.it_interval.tv_usec = 3000, .it_value.tv_usec = 3000};
    uint64_t end = end_ns(argc, argv);
    sigaltstack(&stack, NULL);
    sigaction(SIGPROF, &action, NULL);
    setitimer(ITIMER_PROF, &timer, NULL);
    while (cpu_ns() < end)
        outer();
    return 0;
}
