/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks as the library sees them, held against libgcc's unwinder and against what is known. */
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/attr.h"
#include "inproc/thread/thread.h"
#include "inproc/unwind/cache.h"
#include "inproc/unwind/unwind.h"
#include "test.h"

#ifdef __clang__
#define ALONE __attribute__((noinline))
#else
#define ALONE __attribute__((noinline, noclone))
#endif
#define PLAIN __attribute__((no_sanitize("address", "thread", "undefined")))

enum { DEPTH = 128, TRAP_FLAG = 0x100 };

/* Tests bring their own block: nothing is started. */
static _Thread_local struct kiln_in_thread block;
static _Thread_local volatile int sink;

static uint64_t truncated(void)
{
    return block.lost[KILN_IN_LOST_TRUNCATED];
}

/* Whether a stack has a frame in a function, which is not longer than it seems. */
static bool has(unsigned n, uintptr_t function)
{
    for (unsigned i = 0; i < n; i++) {
        if (block.pcs[i] - function < 512)
            return true;
    }
    return false;
}

/* ---- the same as libgcc ---- */

static _Thread_local unsigned compared;

ALONE static void compare(void)
{
    void *theirs[DEPTH];
    uint64_t before = truncated();
    unsigned n = kiln_in_unwind_here(&block, DEPTH);
    unsigned m = (unsigned)backtrace(theirs, DEPTH);

    /* A sanitizer's own backtrace() is a frame more.  Both are called here, a few instructions
     * apart. */
    CHECK(m - n <= 1);
    CHECK(block.pcs[0] - (uintptr_t)compare < 512);
    for (unsigned i = 1; i < n; i++)
        CHECK_EQ(block.pcs[i], (uintptr_t)theirs[i + m - n]);
    CHECK_EQ(truncated() - before, n == DEPTH);
    compared++;
}

static _Thread_local uint64_t random_state = 88172645463325252;

static uint64_t draw(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static int wander(int left);

ALONE static int by_alloca(int left)
{
    volatile char *room = __builtin_alloca(draw() % 3000 + 16);

    room[0] = (char)left;
    return wander(left) + room[0];
}

ALONE static int by_array(int left)
{
    volatile char room[5000];

    room[left] = (char)left;
    return wander(left) + room[left];
}

ALONE static int by_alignment(int left)
{
    _Alignas(64) volatile char room[64];

    room[0] = (char)left;
    return wander(left) + room[0];
}

ALONE static int by_many(int left, int b, int c, int d, int e, int f, int g, int h, double x)
{
    return wander(left) + b + c + d + e + f + g + h + (int)x;
}

static int compare_ints(const void *a, const void *b)
{
    int left = *(const int *)a & 15;

    if (draw() % 4 == 0)
        wander(left / 2);
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

ALONE static int by_libc(int left)
{
    int numbers[] = {left, 3, 2};

    qsort(numbers, 3, sizeof(*numbers), compare_ints);
    return wander(left) + numbers[0];
}

ALONE static int wander(int left)
{
    if (left <= 0) {
        compare();
        return sink;
    }
    switch (draw() % 5) {
    case 0:
        return by_alloca(left - 1) + 1;
    case 1:
        return by_array(left - 1) + 1;
    case 2:
        return by_alignment(left - 1) + 1;
    case 3:
        return by_many(left - 1, 1, 2, 3, 4, 5, 6, 7, 8.0) + 1;
    default:
        return by_libc(left - 1) + 1;
    }
}

TEST(unwind, thousands_of_stacks_are_as_libgcc_has_them)
{
    compared = 0;
    for (int i = 0; compared < 5000; i++)
        wander(i % 24);
}

TEST(unwind, a_stack_deeper_than_wanted_is_cut_and_counted)
{
    uint64_t before = truncated();

    CHECK_EQ(kiln_in_unwind_here(&block, 2), 2);
    CHECK_EQ(truncated() - before, 1);
}

TEST(unwind, nothing_is_different_when_the_cache_was_emptied)
{
    kiln_in_cache_forget();
    compare();
    compare();
}

static jmp_buf before_leaving;

__attribute__((noreturn)) ALONE static void leaves(void)
{
    compare();
    longjmp(before_leaving, 1);
}

/* Its last instruction is a call: the address behind it is another function's. */
__attribute__((noreturn)) ALONE static void calls_what_does_not_return(void)
{
    sink++;
    leaves();
}

TEST(unwind, functions_that_do_not_return_have_callers)
{
    if (setjmp(before_leaving) == 0)
        calls_what_does_not_return();
}

static void *wander_in_thread(void *arg)
{
    for (int i = 0; i < 300; i++)
        wander(i % 16);
    return arg;
}

TEST(unwind, threads_walk_side_by_side)
{
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        CHECK_OK(pthread_create(&threads[i], NULL, wander_in_thread, NULL));
    for (int i = 0; i < 4; i++)
        CHECK_OK(pthread_join(threads[i], NULL));
}

/* ---- signals ---- */

static volatile unsigned n_in_handler, n_nested;
static _Thread_local volatile bool nest;
static uint64_t nested_pcs[DEPTH];

static void on_signal(int signal, siginfo_t *info, void *context)
{
    (void)info;
    if (signal == SIGUSR1 && nest) {
        raise(SIGUSR2);
        sink++;
        return;
    }
    n_in_handler = kiln_in_unwind_context(&block, context, DEPTH);
    n_nested = kiln_in_unwind_here(&block, DEPTH);
    memcpy(nested_pcs, block.pcs, sizeof(nested_pcs));
    n_in_handler = kiln_in_unwind_context(&block, context, DEPTH);
}

static void handle(int signal, int flags)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | flags};

    CHECK_OK(sigaction(signal, &action, NULL));
}

ALONE static int interrupted(void)
{
    raise(SIGUSR1);
    return sink + 1;
}

TEST(unwind, what_a_signal_interrupted_is_seen)
{
    uint64_t before = truncated();

    handle(SIGUSR1, 0);
    sink = interrupted();
    CHECK(has(n_in_handler, (uintptr_t)interrupted));
    CHECK_EQ(truncated(), before);
}

TEST(unwind, a_handler_sees_across_the_signals_frame)
{
    handle(SIGUSR1, 0);
    sink = interrupted();
    memcpy(block.pcs, nested_pcs, sizeof(nested_pcs));
    CHECK(has(n_nested, (uintptr_t)on_signal));
    CHECK(has(n_nested, (uintptr_t)interrupted));
    CHECK(n_nested > n_in_handler);
}

TEST(unwind, handlers_within_handlers_on_a_small_stack_of_their_own)
{
    size_t size = (size_t)sysconf(_SC_MINSIGSTKSZ) * 2 + 6144;
    stack_t small = {.ss_size = size}, none = {.ss_flags = SS_DISABLE};
    uint64_t before = truncated();

    if (KILN_SANITIZED)
        SKIP("sanitizers deliver signals when it suits them");
    small.ss_sp = malloc(size);
    CHECK_OK(sigaltstack(&small, NULL));
    handle(SIGUSR1, SA_ONSTACK);
    handle(SIGUSR2, SA_ONSTACK);
    nest = true;
    sink = interrupted();
    nest = false;
    CHECK_OK(sigaltstack(&none, NULL));
    CHECK(has(n_in_handler, (uintptr_t)on_signal)); /* the outer handler */
    CHECK(has(n_in_handler, (uintptr_t)interrupted));
    memcpy(block.pcs, nested_pcs, sizeof(nested_pcs));
    CHECK(has(n_nested, (uintptr_t)interrupted));
    CHECK_EQ(truncated(), before);
    free(small.ss_sp);
}

#ifdef __x86_64__
/* ---- at every instruction ---- */

static volatile bool is_stepping;
static unsigned steps, lost_steps;

static int step_through(void);

PLAIN static void on_step(int signal, siginfo_t *info, void *context)
{
    ucontext_t *where = context;
    unsigned n;

    (void)signal;
    (void)info;
    if (!is_stepping) {
        where->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
        return;
    }
    where->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
    n = kiln_in_unwind_context(&block, context, DEPTH);
    steps++;
    lost_steps += !has(n, (uintptr_t)step_through);
}

ALONE static int calls(int n)
{
    volatile char *room = __builtin_alloca((size_t)n * 16 + 16);
    char text[64];

    room[0] = 'a';
    if (n)
        return calls(n - 1) + room[0];
    return snprintf(text, sizeof(text), "%d %s %g", sink, "words", 1.5) +
           (int)strtol(text, NULL, 10) + abs((int)getppid());
}

ALONE static int step_through(void)
{
    int sum;

    is_stepping = true;
    raise(SIGTRAP);
    sum = calls(3);
    is_stepping = false;
    return sum;
}

TEST(unwind, at_every_single_instruction_the_caller_is_found)
{
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};

    if (KILN_SANITIZED)
        SKIP("sanitizers deliver signals when it suits them");
    CHECK_OK(sigaction(SIGTRAP, &action, NULL));
    steps = lost_steps = 0;
    sink = step_through();
    CHECK(steps > 500);
    CHECK_EQ(lost_steps, 0);
}
#endif

/* ---- stacks that are not the thread's ---- */

static ucontext_t outside, coroutine;
static unsigned n_in_coroutine;

ALONE static void deeper(int n)
{
    if (n) {
        deeper(n - 1);
        sink++;
        return;
    }
    n_in_coroutine = kiln_in_unwind_here(&block, DEPTH);
}

static void run_coroutine(void)
{
    deeper(20);
    sink++;
}

TEST(unwind, a_coroutine_is_seen_up_to_where_it_began)
{
    size_t size = 256 << 10;
    void *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(stack != MAP_FAILED);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(getcontext(&coroutine));
        coroutine.uc_stack = (stack_t){.ss_sp = stack, .ss_size = size};
        coroutine.uc_link = &outside;
        makecontext(&coroutine, run_coroutine, 0);
        CHECK_OK(swapcontext(&outside, &coroutine));
        CHECK(n_in_coroutine >= 22);
        CHECK(has(n_in_coroutine, (uintptr_t)run_coroutine));
    }
    compare();
    CHECK_OK(munmap(stack, size));
    compare();
}

/* ---- garbage ---- */

/* Some address: of code, of stacks, of memory that is there or not, or any number. */
static uint64_t any_address(uint64_t sp)
{
    static const char text[] = "a constant";

    switch (draw() % 12) {
    case 0:
        return 0;
    case 1:
        return draw();
    case 2:
        return draw() & 0x7fffffffffff;
    case 3:
        return (uintptr_t)printf + draw() % 400000 - 200000;
    case 4:
        return (uintptr_t)any_address + draw() % 100000 - 50000;
    case 5:
        return (uintptr_t)text + draw() % 4096;
    case 6:
        return (uintptr_t)&block + draw() % sizeof(block);
    case 7:
        return UINT64_MAX - draw() % 64;
    default:
        return (sp + draw() % 8192 - 512) & ~(uint64_t)(draw() % 4 ? 7 : 0);
    }
}

/* A piece of this stack with anything in it, and registers with anything in them. */
ALONE static void walk_garbage(void)
{
    uint64_t garbage[256];
    ucontext_t context;
    uint64_t sp = (uintptr_t)garbage;

    memset(&context, 0, sizeof(context));
    for (unsigned i = 0; i < 256; i++)
        garbage[i] = any_address(sp);
    for (int i = 0; i < NGREG; i++)
        context.uc_mcontext.gregs[i] = (greg_t)any_address(sp);
    context.uc_mcontext.gregs[REG_RSP] = (greg_t)(draw() % 8 ? sp + draw() % 128 * 8 : draw());
    context.uc_mcontext.gregs[REG_RIP] = (greg_t)any_address(sp);
    CHECK(kiln_in_unwind_context(&block, &context, DEPTH) <= DEPTH);
    sink = (int)garbage[draw() % 256];
}

TEST(unwind, garbage_in_registers_and_on_stacks_ends_walks_and_does_no_harm)
{
    for (int i = 0; i < 20000; i++)
        walk_garbage();
    compare();
}

/* ---- code that is made at run time ---- */

#ifdef __x86_64__
/* push %rbp; mov %rsp, %rbp; call *%rdi; pop %rbp; ret */
static const uint8_t with_frame[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};

static unsigned n_in_made;

static void inside_made(void)
{
    n_in_made = kiln_in_unwind_here(&block, DEPTH);
}

ALONE static int call_made(void *code)
{
    void (*function)(void (*)(void));

    memcpy(&function, &code, sizeof(code));
    function(inside_made);
    return sink;
}

TEST(unwind, code_made_at_run_time_is_crossed_once_the_keeper_has_seen_it)
{
    uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t before;

    CHECK(code != MAP_FAILED);
    memcpy(code, with_frame, sizeof(with_frame));
    CHECK_OK(mprotect(code, 4096, PROT_READ | PROT_EXEC));
    sink = call_made(code);
    kiln_in_unwind_work();
    before = truncated();
    sink = call_made(code);
    CHECK(has(n_in_made, (uintptr_t)code));
    CHECK(has(n_in_made, (uintptr_t)call_made));
    CHECK_EQ(truncated(), before);
    CHECK_OK(munmap(code, 4096));
    kiln_in_unwind_work();
}
#endif
