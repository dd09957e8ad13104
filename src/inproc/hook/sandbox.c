/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that gives up system calls says so by prctl(), or asks for no new privileges before it
 * loads a filter: from then on nothing is called that a filter may end the process for.
 */
#include <kiln.h>
#include <stdarg.h>
#include <sys/prctl.h>

#include "inproc/hook/next_calls.h"
#include "inproc/unwind/peek.h"

KILN_API int prctl(int option, ...);
int prctl(int option, ...)
{
    long words[4];
    va_list list;

    va_start(list, option);
    for (int i = 0; i < 4; i++)
        words[i] = va_arg(list, long);
    va_end(list);
    if (option == PR_SET_SECCOMP || option == PR_SET_NO_NEW_PRIVS)
        kiln_in_peek_be_cautious();
    return kiln_in_next_calls.prctl(option, words[0], words[1], words[2], words[3]);
}
