/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at work on a thread, when handlers jump out of it, and when they only seem to. */
#include "inproc/thread/visit.h"

#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "base/attr.h"
#include "inproc/thread/thread.h"
#include "test.h"

enum { STACK = 256 << 10 };

static sigjmp_buf back;
static struct kiln_in_thread *seen;
static ucontext_t here, there;

static void begin(void)
{
    CHECK_OK(kiln_in_threads_init(42));
    kiln_in_on = KILN_IN_ON;
    seen = NULL;
}

static void jump(int sig)
{
    (void)sig;
    siglongjmp(back, 1);
}

static void look(int sig)
{
    (void)sig;
    seen = kiln_in_enter();
}

static void handle(int sig, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

    CHECK_OK(sigaction(sig, &action, NULL));
}

static __attribute__((noinline)) void enter_and_raise(int sig)
{
    struct kiln_in_thread *thread = kiln_in_enter();

    CHECK(thread);
    raise(sig);
    CHECK(kiln_in_is_inside());
    kiln_in_leave(thread);
}

/* Frames of a sanitizer have gaps that nobody writes to: what is gone seems to last there. */
static __attribute__((noinline, no_sanitize_address)) void use_stack(void)
{
    volatile char room[16 << 10];

    for (size_t i = 0; i < sizeof(room); i++)
        room[i] = 0;
}

TEST(visit, a_jump_ends_it)
{
    begin();
    handle(SIGUSR1, jump, 0);
    if (sigsetjmp(back, 1) == 0)
        enter_and_raise(SIGUSR1);
    CHECK(kiln_in_line.visit);
    if (KILN_SANITIZED)
        use_stack();
    seen = kiln_in_enter();
    CHECK(seen);
    kiln_in_leave(seen);
    CHECK(!kiln_in_line.visit);
}

/* The handler's stack is above the visit, in a frame of the caller: nothing was left. */
static void check_alternate(char *memory)
{
    stack_t stack = {.ss_sp = memory, .ss_size = STACK}, none = {.ss_flags = SS_DISABLE};

    begin();
    CHECK_OK(sigaltstack(&stack, NULL));
    handle(SIGUSR1, look, SA_ONSTACK);
    enter_and_raise(SIGUSR1);
    CHECK(!seen);
    CHECK(!kiln_in_is_inside());
    CHECK_OK(sigaltstack(&none, NULL));
}

TEST(visit, lasts_while_a_handler_runs_on_a_stack_within_ours)
{
    char memory[STACK];

    check_alternate(memory);
}

TEST(visit, lasts_while_a_handler_runs_on_another_stack)
{
    char *memory = malloc(STACK);

    check_alternate(memory);
    free(memory);
}

static void switch_away(int sig)
{
    (void)sig;
    swapcontext(&here, &there);
}

static void look_and_return(void)
{
    look(0);
    swapcontext(&there, &here);
}

/* Coroutines that a handler switches between: the first is in the middle of a visit. */
static void check_coroutine(char *memory)
{
    begin();
    getcontext(&there);
    there.uc_stack.ss_sp = memory;
    there.uc_stack.ss_size = STACK;
    there.uc_link = NULL;
    makecontext(&there, look_and_return, 0);
    handle(SIGUSR1, switch_away, 0);
    enter_and_raise(SIGUSR1);
    CHECK(!seen);
    CHECK(!kiln_in_is_inside());
}

TEST(visit, lasts_while_another_coroutine_runs)
{
    char within[STACK], *elsewhere = malloc(STACK);

    check_coroutine(within);
    check_coroutine(elsewhere);
    free(elsewhere);
}

static void enter_and_jump(void)
{
    enter_and_raise(SIGUSR1);
}

TEST(visit, ends_with_the_stack_that_it_was_on)
{
    char *memory = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    begin();
    CHECK(memory != MAP_FAILED);
    getcontext(&there);
    there.uc_stack.ss_sp = memory;
    there.uc_stack.ss_size = STACK;
    there.uc_link = NULL;
    makecontext(&there, enter_and_jump, 0);
    handle(SIGUSR1, jump, 0);
    if (sigsetjmp(back, 1) == 0)
        swapcontext(&here, &there);
    CHECK(!kiln_in_enter()); /* the frame may be used again, for all that is known */
    munmap(memory, STACK);
    seen = kiln_in_enter();
    CHECK(seen);
    kiln_in_leave(seen);
}

TEST(visit, of_who_may_hold_locks_does_not_end_by_a_jump)
{
    struct kiln_in_thread *thread;

    begin();
    handle(SIGUSR1, jump, 0);
    thread = kiln_in_enter_as(NULL);
    if (sigsetjmp(back, 1) == 0)
        raise(SIGUSR1);
    CHECK(!kiln_in_enter());
    kiln_in_leave(thread);
    CHECK(!kiln_in_is_inside());
}
