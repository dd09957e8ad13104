/* SPDX-License-Identifier: Apache-2.0 */
/* The signal of our timers, and what is left of it for the program. */
#include "inproc/sample/signal.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inproc/clock.h"
#include "inproc/sample/cpu.h"
#include "inproc/sample/timer.h"
#include "inproc/start.h"
#include "inproc/thread/line.h"
#include "inproc/thread/thread.h"
#include "test.h"

#define MS       UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

static volatile sig_atomic_t theirs;

static void their_handler(int sig)
{
    (void)sig;
    theirs++;
}

static void their_action(int sig, siginfo_t *info, void *ucontext)
{
    (void)sig, (void)ucontext;
    theirs += info->si_value.sival_int;
}

static struct sigaction action(void (*handler)(int))
{
    struct sigaction a = {.sa_handler = handler};

    sigemptyset(&a.sa_mask);
    return a;
}

static void use_up(uint64_t ns)
{
    uint64_t end_ns = kiln_in_clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

    while (kiln_in_clock_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns)
        continue;
}

static double ticks(void)
{
    struct kiln_in_record record;
    double n = 0;

    while (kiln_in_line.thread && kiln_in_ring_take(&kiln_in_line.thread->ring, &record))
        n += record.kind == KILN_IN_CPU ? record.count : 0;
    return n;
}

TEST(signal, a_free_one_is_taken_and_the_program_does_not_see_it)
{
    struct sigaction old;

    CHECK_OK(kiln_in_threads_init(7));
    CHECK_EQ(kiln_in_signal_open(), SIGPROF);
    CHECK_EQ(kiln_in_signal_open(), SIGPROF);
    CHECK(kiln_in_signal_is_ours(SIGPROF));
    CHECK(!kiln_in_signal_is_ours(SIGUSR1));
    CHECK_OK(kiln_in_signal_action(SIGPROF, NULL, &old));
    CHECK(old.sa_handler == SIG_DFL);
}

TEST(signal, handlers_of_the_program_get_what_is_not_a_tick)
{
    struct sigaction first = action(their_handler), old;
    struct sigaction second = {.sa_sigaction = their_action, .sa_flags = SA_SIGINFO};

    CHECK_OK(kiln_in_signal_action(SIGPROF, &first, NULL));
    raise(SIGPROF);
    CHECK_EQ(theirs, 1);
    CHECK_OK(kiln_in_signal_action(SIGPROF, &second, &old));
    CHECK(old.sa_handler == their_handler);
    sigqueue(getpid(), SIGPROF, (union sigval){.sival_int = 41});
    CHECK_EQ(theirs, 42);
}

TEST(signal, a_handler_that_is_for_once_is_called_once)
{
    struct sigaction once = action(their_handler), old;

    once.sa_flags = SA_RESETHAND;
    theirs = 0;
    CHECK_OK(kiln_in_signal_action(SIGPROF, &once, NULL));
    raise(SIGPROF);
    CHECK_EQ(theirs, 1);
    CHECK_OK(kiln_in_signal_action(SIGPROF, NULL, &old));
    CHECK(old.sa_handler == SIG_DFL);
}

TEST(signal, one_that_nobody_handles_ends_the_process_as_ever)
{
    struct sigaction plain = action(SIG_DFL);
    int status;
    pid_t child = fork();

    if (child == 0) {
        kiln_in_signal_action(SIGPROF, &plain, NULL);
        raise(SIGPROF);
        _exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status));
    CHECK_EQ(WTERMSIG(status), SIGPROF);
}

TEST(signal, ticks_move_away_from_one_that_the_program_uses)
{
    int sig = kiln_in_signal_move();

    CHECK(sig >= SIGRTMIN && sig <= SIGRTMAX);
    CHECK_EQ(kiln_in_signal_now(), sig);
    CHECK_EQ(kiln_in_signal_move(), 0);
    CHECK(kiln_in_signal_is_ours(SIGPROF)); /* ticks may still be on their way */
}

TEST(signal, ticks_move_away_from_one_that_was_taken_without_a_word)
{
    struct sigaction taken = action(their_handler);
    int before = kiln_in_signal_now();

    sigaction(before, &taken, NULL);
    CHECK(kiln_in_signal_move() > 0);
    CHECK(kiln_in_signal_now() != before);
}

TEST(signal, who_blocks_everything_blocks_all_but_ours)
{
    int ours = kiln_in_signal_now();
    const sigset_t *set;
    sigset_t all, room, few;

    sigfillset(&all);
    set = kiln_in_signal_spare(&all, &room);
    CHECK_EQ(sigismember(set, ours), 0);
    CHECK_EQ(sigismember(set, SIGTERM), 1);
    sigemptyset(&few);
    sigaddset(&few, SIGTERM);
    CHECK(kiln_in_signal_spare(&few, &room) == &few);
    CHECK_EQ(kiln_in_signal_move(), 0);
}

TEST(signal, who_blocks_it_in_particular_has_it_for_himself)
{
    int before = kiln_in_signal_now();
    sigset_t room, one;

    sigemptyset(&one);
    sigaddset(&one, before);
    CHECK(kiln_in_signal_spare(&one, &room) == &one);
    CHECK(kiln_in_signal_move() > 0);
    CHECK(kiln_in_signal_now() != before);
}

/* Uses CPU time until so many ticks have come, some of them late: what was used, in periods. */
static double use_ticks(double wanted, double *ret_ticks)
{
    uint64_t from_ns = kiln_in_clock_ns(CLOCK_THREAD_CPUTIME_ID), used_ns;

    *ret_ticks = 0;
    do {
        use_up(MS);
        *ret_ticks += ticks();
        used_ns = kiln_in_clock_ns(CLOCK_THREAD_CPUTIME_ID) - from_ns;
    } while (*ret_ticks < wanted && used_ns < 10 * NS_PER_S);
    return (double)used_ns / (double)kiln_in_cpu_period_ns();
}

TEST(timer, ticks_count_the_cpu_time_that_is_used)
{
    struct kiln_in_thread *thread;
    double n, periods;

    kiln_in_settings.depth = 16;
    kiln_in_settings.cpu_hz = 100;
    kiln_in_settings.profiles = KILN_PROFILE_CPU;
    atomic_store(&kiln_in_on, 1);
    CHECK_OK(kiln_in_cpu_open());
    thread = kiln_in_enter();
    CHECK(thread);
    kiln_in_leave(thread);
    kiln_in_cpu_set(true, false);
    CHECK(kiln_in_timer_has(thread));
    periods = use_ticks(20, &n);
    CHECK(n >= 20);
    CHECK(n <= periods + 1);
    kiln_in_hush(); /* those that come meanwhile are counted by the next */
    use_up(100 * MS);
    kiln_in_unhush();
    periods = use_ticks(1, &n) + 10;
    CHECK(n > 1);
    CHECK(n <= periods + 2);
    kiln_in_cpu_set(false, false);
    use_up(2 * 10 * MS);
    ticks();
    use_up(30 * MS);
    CHECK(ticks() == 0);
    kiln_in_cpu_close();
}

/* Of the ticks of ten seconds, at a steady pace, those that fall into the first half of a period.
 */
static double in_first_half(uint64_t period_ns)
{
    uint64_t n = 10 * NS_PER_S / kiln_in_cpu_period_ns(), first = 0;

    for (uint64_t i = 0; i < n; i++)
        first += i * kiln_in_cpu_period_ns() % period_ns < period_ns / 2;
    return (double)first / (double)n;
}

TEST(timer, ticks_see_all_of_what_programs_do_periodically)
{
    static const uint32_t each_s[] = {50, 97, 100, 250, 500, 1000};
    static const uint64_t periods_ms[] = {1, 2, 4, 5, 10, 20, 40, 50, 100, 1000};

    for (unsigned i = 0; i < sizeof(each_s) / sizeof(each_s[0]); i++) {
        kiln_in_settings.cpu_hz = each_s[i];
        for (unsigned j = 0; j < sizeof(periods_ms) / sizeof(periods_ms[0]); j++) {
            double share = in_first_half(periods_ms[j] * MS);

            CHECK(share > 0.45 && share < 0.55);
        }
    }
    kiln_in_settings.cpu_hz = 100;
}

TEST(timer, a_thread_that_ends_tells_of_all_ticks_that_are_due)
{
    struct kiln_in_thread *thread = kiln_in_line.thread;
    uint64_t first_ns;
    double due, n;

    CHECK_OK(kiln_in_cpu_open());
    kiln_in_cpu_set(true, false);
    first_ns = atomic_load(&thread->timer_first_ns);
    use_up(35 * MS);
    kiln_in_hush(); /* as if the kernel had not looked in time */
    use_up(35 * MS);
    kiln_in_cpu_thread_ends(thread);
    due =
        (double)((kiln_in_clock_ns(CLOCK_THREAD_CPUTIME_ID) - first_ns) / kiln_in_cpu_period_ns() +
                 1);
    kiln_in_unhush();
    n = ticks();
    CHECK(n == due || n == due - 1); /* one may have expired since */
    kiln_in_cpu_set(false, false);
    kiln_in_cpu_close();
}

/* A timer of wall time may expire before the first read where the thread is not run at once. */
static bool is_interrupted_by(clockid_t clock)
{
    for (int tries = 0; tries < 100; tries++) {
        if (!kiln_in_timer_try(clock))
            return true;
    }
    return false;
}

TEST(timer, of_this_kernel_interrupts_no_system_call_while_others_would)
{
    CHECK(kiln_in_signal_now() > 0);
    CHECK_EQ(kiln_in_timer_try(CLOCK_THREAD_CPUTIME_ID), kiln_in_timer_is_harmless());
    if (!KILN_SANITIZED) /* their time passes in code around the system call, not within it */
        CHECK(is_interrupted_by(CLOCK_MONOTONIC));
}
