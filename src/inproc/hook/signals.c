/* SPDX-License-Identifier: Apache-2.0 */
/* What a program says about signals, where it is about the one of our timers. */
#include <errno.h>
#include <kiln.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/signalfd.h>

#include "inproc/hook/next_calls.h"
#include "inproc/sample/narrow.h"
#include "inproc/sample/shield.h"
#include "inproc/sample/signal.h"
#include "inproc/thread/visit.h"

KILN_API int sigaction(int sig, const struct sigaction *restrict set,
                       struct sigaction *restrict ret_old);
int sigaction(int sig, const struct sigaction *restrict set, struct sigaction *restrict ret_old)
{
    if (!kiln_in_signal_is_ours(sig))
        return kiln_in_shield_action(sig, set, ret_old);
    return kiln_in_signal_action(sig, set, ret_old);
}

static sighandler_t set_handler(int sig, sighandler_t handler, int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, old;

    sigemptyset(&action.sa_mask);
    if (!(flags & SA_RESETHAND))
        sigaddset(&action.sa_mask, sig);
    return kiln_in_signal_action(sig, &action, &old) < 0 ? SIG_ERR : old.sa_handler;
}

/* Of signals whose handlers signal() sets to end calls. */
static _Atomic uint64_t interrupting;

static uint64_t bit_of(int sig)
{
    return UINT64_C(1) << (sig - 1);
}

KILN_API int siginterrupt(int sig, int interrupts);
int siginterrupt(int sig, int interrupts)
{
    int r = kiln_in_next_calls.siginterrupt(sig, interrupts);

    if (r == 0 && interrupts)
        atomic_fetch_or(&interrupting, bit_of(sig));
    else if (r == 0)
        atomic_fetch_and(&interrupting, ~bit_of(sig));
    return r;
}

KILN_API sighandler_t signal(int sig, sighandler_t handler);
sighandler_t signal(int sig, sighandler_t handler)
{
    if (!kiln_in_signal_is_ours(sig))
        return kiln_in_next_calls.signal(sig, handler);
    return set_handler(sig, handler, atomic_load(&interrupting) & bit_of(sig) ? 0 : SA_RESTART);
}

KILN_API sighandler_t __sysv_signal(int sig, sighandler_t handler);
sighandler_t __sysv_signal(int sig, sighandler_t handler)
{
    if (!kiln_in_signal_is_ours(sig))
        return kiln_in_next_calls.__sysv_signal(sig, handler);
    return set_handler(sig, handler, SA_RESETHAND | SA_NODEFER);
}

/* Threads of our own do block it. */
static const sigset_t *spared(int how, const sigset_t *set, sigset_t *room)
{
    if (!set || how == SIG_UNBLOCK || kiln_in_is_inside())
        return set;
    return kiln_in_signal_spare(set, room);
}

KILN_API int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict ret_old);
int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict ret_old)
{
    sigset_t room;

    return kiln_in_next_calls.sigprocmask(how, spared(how, set, &room), ret_old);
}

KILN_API int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict ret_old);
int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict ret_old)
{
    sigset_t room;

    return kiln_in_next_calls.pthread_sigmask(how, spared(how, set, &room), ret_old);
}

KILN_API int signalfd(int fd, const sigset_t *set, int flags);
int signalfd(int fd, const sigset_t *set, int flags)
{
    sigset_t room;

    return kiln_in_next_calls.signalfd(fd, kiln_in_signal_spare(set, &room), flags);
}

/* Whichever it is in the end, no tick comes while it is too small. */
KILN_API int sigaltstack(const stack_t *restrict set, stack_t *restrict ret_old);
int sigaltstack(const stack_t *restrict set, stack_t *restrict ret_old)
{
    bool was = kiln_in_line.narrow, is = set && kiln_in_stack_is_narrow(set);
    int r;

    if (set && kiln_in_stack_is_tight(set))
        kiln_in_shield_begin();
    if (is && !was)
        kiln_in_narrow_set(true);
    r = kiln_in_next_calls.sigaltstack(set, ret_old);
    if (set && (r == 0 ? !is : !was) && kiln_in_line.narrow)
        kiln_in_narrow_set(false);
    return r;
}
