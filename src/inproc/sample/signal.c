/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's word about each signal lies in one of a few copies in turn: a handler reads the
 * copy that was whole when it came, while another thread writes the next.
 *
 * Signals that end the process (inproc/sample/ending.h) are kept the same way, but may be blocked.
 *
 * A handler is never taken out of the kernel again: a tick may be on its way, and what a signal
 * does by default is to end the process.  Exceptions are a signal that the program ignores, for the
 * kernel drops those that are on their way, and those that end the process, which are no ticks.
 */
#include "inproc/sample/signal.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inproc/hook/next_calls.h"
#include "inproc/sample/cpu.h"
#include "inproc/sample/ending.h"
#include "inproc/sample/shield.h"
#include "inproc/thread/thread.h"

enum {
    SIGNALS = 65,
    COPIES = 4,
    WIDE = 20, /* signals in a set that somebody filled without looking */
    KERNEL_SET_BYTES = 8
};

struct word {
    _Atomic uint32_t turn;
    struct sigaction copies[COPIES];
};

_Atomic uint64_t kiln_in_signals;
static _Atomic int now;
static _Atomic bool is_claimed;
static struct word words[SIGNALS];
static char cookies[KILN_IN_TICKS];

void *kiln_in_signal_cookie(enum kiln_in_tick tick)
{
    return &cookies[tick];
}

int kiln_in_signal_now(void)
{
    return atomic_load(&now);
}

/* ---- the program's word ---- */

static struct sigaction word_of(int sig)
{
    return words[sig].copies[atomic_load(&words[sig].turn) % COPIES];
}

static void keep_word(int sig, const struct sigaction *action)
{
    uint32_t turn = atomic_load(&words[sig].turn) + 1;

    words[sig].copies[turn % COPIES] = *action;
    atomic_store(&words[sig].turn, turn);
}

/* What the signal does by itself: the process ends as if it had never had a handler. */
void kiln_in_signal_end_process(int sig)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigset_t one;

    kiln_in_next_calls.sigaction(sig, &plain, NULL);
    syscall(SYS_tgkill, getpid(), (int)syscall(SYS_gettid), sig);
    sigemptyset(&one);
    sigaddset(&one, sig);
    kiln_in_next_calls.pthread_sigmask(SIG_UNBLOCK, &one, NULL);
}

/*
 * A filter of system calls may keep it from that, and the process ends all the same; but the first
 * one of a container lives on, as it would without us.
 */
static void do_by_default(int sig)
{
    enum { EXIT_SIGNAL = 128 }; /* as shells say it */

    if (kiln_in_ending_has(sig))
        kiln_in_ending_hold_up();
    kiln_in_signal_end_process(sig);
    if (getpid() != 1)
        syscall(SYS_exit_group, EXIT_SIGNAL + sig);
}

static void pass_on(int sig, siginfo_t *info, void *ucontext)
{
    struct sigaction theirs = word_of(sig);

    if (theirs.sa_handler == SIG_IGN)
        return;
    if (theirs.sa_handler == SIG_DFL) {
        do_by_default(sig);
        return;
    }
    if (theirs.sa_flags & SA_RESETHAND)
        keep_word(sig, &(struct sigaction){.sa_handler = SIG_DFL});
    if (theirs.sa_flags & SA_SIGINFO)
        theirs.sa_sigaction(sig, info, ucontext);
    else
        theirs.sa_handler(sig);
}

static void handle(int sig, siginfo_t *info, void *ucontext)
{
    uintptr_t tick = (uintptr_t)info->si_value.sival_ptr - (uintptr_t)cookies;

    if (info->si_code != SI_TIMER || tick >= KILN_IN_TICKS)
        pass_on(sig, info, ucontext);
    else if (tick != KILN_IN_TICK_TRIAL)
        kiln_in_cpu_tick((enum kiln_in_tick)tick, info->si_overrun, ucontext);
}

/* No handler of the program's comes into ours, and jumps out of it; but for what a fault tells. */
static void fill_mask(sigset_t *mask)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};

    sigfillset(mask);
    for (unsigned i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        sigdelset(mask, faults[i]);
}

/* With a handler of the program's, calls that its signals interrupt end as it has asked for. */
static int install(int sig, const struct sigaction *theirs)
{
    struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};

    fill_mask(&ours.sa_mask);
    if (kiln_in_ending_has(sig))
        kiln_in_ending_let_through(&ours);
    if (theirs->sa_handler != SIG_DFL && theirs->sa_handler != SIG_IGN) {
        ours.sa_mask = theirs->sa_mask;
        ours.sa_flags = (theirs->sa_flags & ~SA_RESETHAND) | SA_SIGINFO;
    }
    ours.sa_sigaction = handle;
    return kiln_in_next_calls.sigaction(sig, &ours, NULL);
}

/* Whether the kernel is told what the program says, and our handler is left out. */
static bool is_kernel_s(int sig, const struct sigaction *theirs)
{
    return theirs->sa_handler == SIG_IGN ||
           (theirs->sa_handler == SIG_DFL && kiln_in_ending_has(sig) &&
            kiln_in_ending_is_given_up());
}

/* As the program is told of what the kernel has. */
static struct sigaction shown(int sig, const struct sigaction *action)
{
    return action->sa_sigaction == handle ? word_of(sig) : *action;
}

/* What holds: the program's word, or what the kernel was told past us, as sigset() does. */
static struct sigaction now_of(int sig)
{
    struct sigaction action;

    return kiln_in_next_calls.sigaction(sig, NULL, &action) == 0 ? shown(sig, &action)
                                                                 : word_of(sig);
}

/* A child of vfork has the parent's memory and signals of its own. */
static int act_in_child(int sig, const struct sigaction *set, struct sigaction *ret_old)
{
    struct sigaction old;
    int r = kiln_in_next_calls.sigaction(sig, set, &old);

    if (r == 0 && ret_old)
        *ret_old = shown(sig, &old);
    return r;
}

int kiln_in_signal_action(int sig, const struct sigaction *set, struct sigaction *ret_old)
{
    struct sigaction old;
    int r = 0;

    if (!kiln_in_is_own_process())
        return act_in_child(sig, set, ret_old);
    old = now_of(sig);
    if (set) {
        keep_word(sig, set);
        if (is_kernel_s(sig, set))
            r = kiln_in_next_calls.sigaction(sig, set, NULL);
        else
            r = install(sig, set);
        if (set->sa_handler != SIG_DFL && sig == atomic_load(&now))
            atomic_store(&is_claimed, true);
    }
    if (r == 0 && ret_old)
        *ret_old = old;
    return r;
}

/* ---- sets ---- */

static unsigned size_of(const sigset_t *set)
{
    unsigned n = 0;

    for (int sig = 1; sig < SIGNALS; sig++)
        n += sigismember(set, sig) == 1;
    return n;
}

static uint64_t ticking(void)
{
    return atomic_load(&kiln_in_signals) & ~KILN_IN_ENDING_SIGNALS;
}

static bool has_ours(const sigset_t *set)
{
    uint64_t first;

    memcpy(&first, set, sizeof(first));
    return (first & ticking()) != 0;
}

const sigset_t *kiln_in_signal_spare(const sigset_t *set, sigset_t *ret_set)
{
    if (!has_ours(set))
        return set;
    if (size_of(set) < WIDE) {
        if (sigismember(set, atomic_load(&now)) == 1 && kiln_in_is_own_process())
            atomic_store(&is_claimed, true);
        return set;
    }
    *ret_set = *set;
    for (int sig = 1; sig < SIGNALS; sig++)
        if ((ticking() >> (sig - 1) & 1) && word_of(sig).sa_handler == SIG_DFL)
            sigdelset(ret_set, sig);
    return ret_set;
}

/* ---- keeping ---- */

int kiln_in_signal_keep(int sig)
{
    struct sigaction theirs;

    if (kiln_in_signal_is_ours(sig))
        return 0;
    if (kiln_in_next_calls.sigaction(sig, NULL, &theirs) != 0)
        return -errno;
    keep_word(sig, &theirs);
    atomic_fetch_or(&kiln_in_signals, (uint64_t)1 << (sig - 1));
    return theirs.sa_handler == SIG_IGN || install(sig, &theirs) == 0 ? 0 : -errno;
}

void kiln_in_signal_let_go(int sig)
{
    struct sigaction theirs = word_of(sig);

    if (theirs.sa_handler == SIG_DFL)
        kiln_in_next_calls.sigaction(sig, &theirs, NULL);
}

/* ---- choosing ---- */

static uint64_t blocked(void)
{
    uint64_t mask = 0;

    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, KERNEL_SET_BYTES);
    return mask;
}

static bool is_free(int sig, uint64_t avoid)
{
    struct sigaction action;

    return !(avoid >> (sig - 1) & 1) && !kiln_in_signal_is_ours(sig) &&
           kiln_in_next_calls.sigaction(sig, NULL, &action) == 0 && action.sa_handler == SIG_DFL;
}

static int take(int sig)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};

    keep_word(sig, &plain);
    atomic_fetch_or(&kiln_in_signals, (uint64_t)1 << (sig - 1));
    if (install(sig, &plain) != 0)
        return -errno;
    atomic_store(&is_claimed, false);
    atomic_store(&now, sig);
    return sig;
}

/* Programs count real-time signals from the lowest one on. */
static int choose(uint64_t avoid)
{
    if (is_free(SIGPROF, avoid))
        return take(SIGPROF);
    for (int sig = SIGRTMAX - 1; sig >= SIGRTMIN; sig--)
        if (is_free(sig, avoid))
            return take(sig);
    atomic_store(&now, 0);
    return -EBUSY;
}

int kiln_in_signal_open(void)
{
    int sig = atomic_load(&now);

    if (sig && !atomic_load(&is_claimed))
        return sig;
    sig = choose(blocked());
    kiln_in_shield_renew();
    return sig;
}

/* Somebody may have told the kernel without libc, as Go's runtime does. */
static bool is_replaced(int sig)
{
    struct sigaction action;

    return sig && kiln_in_next_calls.sigaction(sig, NULL, &action) == 0 &&
           action.sa_sigaction != handle;
}

/* By the keeper, which blocks all of them. */
int kiln_in_signal_move(void)
{
    return atomic_load(&is_claimed) || is_replaced(atomic_load(&now)) ? choose(0) : 0;
}
