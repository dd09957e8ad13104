/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries that come and go while somebody walks through them. */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/attr.h"
#include "inproc/thread/line.h"
#include "inproc/thread/thread.h"
#include "inproc/unwind/cache.h"
#include "inproc/unwind/peek.h"
#include "inproc/unwind/room.h"
#include "inproc/unwind/rule.h"
#include "inproc/unwind/table.h"
#include "inproc/unwind/unwind.h"
#include "test.h"

extern char **environ;

enum { DEPTH = 128, VISITS = 300, SAMPLES = 2000 };

static _Thread_local struct kiln_in_thread block;
static char folder[] = "/tmp/kiln-unwind-XXXXXX";

/* Two libraries of the same shape, whose frames are of different sizes. */
static const char source[] = "int visit(int (*back)(void), int n);\n"
                             "int visit(int (*back)(void), int n)\n"
                             "{\n"
                             "    volatile char room[SIZE];\n"
                             "    room[0] = (char)n;\n"
                             "    return n ? visit(back, n - 1) + room[0] : back() + room[0];\n"
                             "}\n";

/* Calls back from everything that C++ has: templates, a destructor while an exception passes. */
static const char source_cpp[] =
    "#include <algorithm>\n"
    "#include <functional>\n"
    "#include <vector>\n"
    "struct guard { std::function<int()> f; ~guard() { f(); } };\n"
    "__attribute__((noinline)) static void throws(std::function<int()> f, int n)\n"
    "{\n"
    "    guard g{f};\n"
    "    if (n == 0) throw 5;\n"
    "    throws(f, n - 1);\n"
    "}\n"
    "extern \"C\" int visit(int (*back)(void), int n)\n"
    "{\n"
    "    std::vector<int> v{5, 2, 9, 1, n, 7, 3, 8};\n"
    "    std::sort(v.begin(), v.end(), [&](int a, int b) { back(); return a < b; });\n"
    "    try { throws(back, n); } catch (int e) { return back() + e; }\n"
    "    return 0;\n"
    "}\n";

static const char *path_of(const char *name)
{
    static _Thread_local char path[256];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

/* False: there is no compiler. */
static bool compile(const char *name, const char *flag, const char *language, const char *text)
{
    char out[256], in[256];
    char *argv[] = {"c++", "-O2",        "-fomit-frame-pointer", "-fPIC", "-shared", "-o",
                    out,   (char *)flag, (char *)language,       in,      NULL};
    int fd = open(path_of("source"), O_WRONLY | O_CREAT | O_TRUNC, 0600), status;
    pid_t child;

    CHECK_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    CHECK_OK(close(fd));
    snprintf(out, sizeof(out), "%s", path_of(name));
    snprintf(in, sizeof(in), "%s", path_of("source"));
    return posix_spawnp(&child, argv[0], NULL, NULL, argv, environ) == 0 &&
           waitpid(child, &status, 0) == child && status == 0;
}

static bool prepare(void)
{
    static bool tried, is_there;

    if (tried)
        return is_there;
    tried = true;
    CHECK(mkdtemp(folder));
    is_there = compile("small.so", "-DSIZE=40", "-xc", source) &&
               compile("large.so", "-DSIZE=4000", "-xc", source) &&
               compile("cpp.so", "-std=c++17", "-xc++", source_cpp);
    return is_there;
}

__attribute__((destructor)) static void clean_up(void)
{
    unlink(path_of("source"));
    unlink(path_of("small.so"));
    unlink(path_of("large.so"));
    unlink(path_of("cpp.so"));
    rmdir(folder);
}

static int compare(void)
{
    void *theirs[DEPTH];
    unsigned n = kiln_in_unwind_here(&block, DEPTH);
    unsigned m = (unsigned)backtrace(theirs, DEPTH);

    CHECK(m - n <= 1);
    for (unsigned i = 1; i < n; i++)
        CHECK_EQ(block.pcs[i], (uintptr_t)theirs[i + m - n]);
    return (int)n;
}

/* Calls back from twenty frames within a library. */
static int visit(const char *name, int (*back)(void))
{
    void *library = dlopen(path_of(name), RTLD_NOW);
    int (*function)(int (*)(void), int);
    int got;

    CHECK(library);
    *(void **)&function = dlsym(library, "visit");
    got = function(back, 20);
    CHECK_OK(dlclose(library));
    return got;
}

TEST(unwind_objects, a_library_that_was_loaded_late_is_walked_through)
{
    if (!prepare())
        SKIP("there is no compiler");
    CHECK(visit("small.so", compare) > 20);
}

TEST(unwind_objects, templates_and_exceptions_are_walked_through)
{
    if (KILN_SANITIZED)
        SKIP("sanitizers know of no exceptions that come with a library loaded late");
    if (!prepare())
        SKIP("there is no compiler");
    kiln_in_unwind_work();
    CHECK(visit("cpp.so", compare) > 5);
}

TEST(unwind_objects, another_library_in_its_place_has_its_own_rules)
{
    if (!prepare())
        SKIP("there is no compiler");
    for (int i = 0; i < 6; i++) {
        kiln_in_unwind_work();
        visit(i % 2 ? "small.so" : "large.so", compare);
    }
}

/* ---- while samples are taken ---- */

static _Atomic unsigned samples;
static _Atomic bool is_over;

static void on_tick(int signal, siginfo_t *info, void *context)
{
    int kept = errno;

    (void)signal;
    (void)info;
    if (kiln_in_unwind_context(&block, context, DEPTH) > 0)
        atomic_fetch_add(&samples, 1);
    errno = kept;
}

static int look_back(void)
{
    return (int)kiln_in_unwind_here(&block, DEPTH);
}

static void *keep_visiting(void *arg)
{
    for (int i = 0; i < VISITS || atomic_load(&samples) < SAMPLES; i++)
        visit((i + *(int *)arg) % 2 ? "small.so" : "large.so", look_back);
    atomic_store(&is_over, true);
    return NULL;
}

static void *keep_working(void *arg)
{
    while (!atomic_load(&is_over))
        kiln_in_unwind_work();
    return arg;
}

static void *keep_ticking(void *arg)
{
    pthread_t *visitors = arg;

    while (!atomic_load(&is_over)) {
        pthread_kill(visitors[0], SIGUSR1);
        pthread_kill(visitors[1], SIGUSR1);
        usleep(50);
    }
    return NULL;
}

TEST(unwind_objects, libraries_come_and_go_while_samples_are_taken)
{
    struct sigaction action = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART};
    pthread_t visitors[2], keeper, ticker;
    int numbers[2] = {0, 1};

    if (!prepare())
        SKIP("there is no compiler");
    CHECK_OK(sigaction(SIGUSR1, &action, NULL));
    for (int i = 0; i < 2; i++)
        CHECK_OK(pthread_create(&visitors[i], NULL, keep_visiting, &numbers[i]));
    CHECK_OK(pthread_create(&keeper, NULL, keep_working, NULL));
    CHECK_OK(pthread_create(&ticker, NULL, keep_ticking, visitors));
    CHECK_OK(pthread_join(ticker, NULL));
    CHECK_OK(pthread_join(keeper, NULL));
    for (int i = 0; i < 2; i++)
        CHECK_OK(pthread_join(visitors[i], NULL));
    kiln_in_unwind_work();
    visit("small.so", compare);
}

/* A child, because nobody is trusted again: its hooks must not look into libraries that may go. */
static int rules_of_the_careful(uint64_t address)
{
    struct kiln_in_room *room = kiln_in_room_take();

    kiln_in_peek_be_cautious();
    kiln_in_line.thread = &block;
    if (kiln_in_table_find(room, address, false) != KILN_IN_RULE_CROSS)
        return 1;
    kiln_in_line.thread = NULL;
    return kiln_in_cache_find(address + 1, kiln_in_cache_era()) == 0 &&
                   kiln_in_table_find(room, address, false) != KILN_IN_RULE_CROSS
               ? 0
               : 2;
}

TEST(unwind_objects, what_a_thread_must_not_look_at_is_left_to_helpers)
{
    void *library = prepare() ? dlopen(path_of("small.so"), RTLD_NOW) : NULL;
    uint64_t address = library ? (uint64_t)(uintptr_t)dlsym(library, "visit") : 0;
    int status;
    pid_t child;

    if (!library)
        skip();
    child = fork();
    if (child == 0)
        _exit(rules_of_the_careful(address));
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    dlclose(library);
}
