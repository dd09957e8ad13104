/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that gives up system calls says so by prctl(), or asks for no new privileges before it
 * loads a filter: from then on nothing is called that a filter may end the process for.
 *
 * The strict mode leaves a thread read(), write() and its own end, by a bare system call: then it
 * is not ours to sample any more, and where it is the main one it ends without a word.
 */
#include <kiln.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>

#include "inproc/hook/next_calls.h"
#include "inproc/sample/ending.h"
#include "inproc/thread/last.h"
#include "inproc/thread/sandbox.h"
#include "inproc/thread/thread.h"
#include "inproc/thread/visit.h"

/* Not those of vfork's parent; and once, as another filter may be there the next time. */
static void leave_signals(void)
{
    if (!kiln_in_ending_is_given_up() && kiln_in_is_own_process())
        kiln_in_ending_give_up();
}

static int be_strict(const long words[4])
{
    int answer;

    kiln_in_last_exits();
    kiln_in_hush();
    answer = kiln_in_next_calls.prctl(PR_SET_SECCOMP, words[0], words[1], words[2], words[3]);
    if (answer != 0)
        kiln_in_unhush();
    return answer;
}

KILN_API int prctl(int option, ...);
int prctl(int option, ...)
{
    long words[4];
    va_list list;

    va_start(list, option);
    for (int i = 0; i < 4; i++)
        words[i] = va_arg(list, long);
    va_end(list);
    if (option == PR_SET_SECCOMP || option == PR_SET_NO_NEW_PRIVS) {
        leave_signals();
        kiln_in_sandbox_begin();
    }
    if (option == PR_SET_SECCOMP && words[0] == SECCOMP_MODE_STRICT)
        return be_strict(words);
    return kiln_in_next_calls.prctl(option, words[0], words[1], words[2], words[3]);
}
