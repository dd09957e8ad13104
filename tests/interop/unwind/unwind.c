/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unwind STOPS COMMAND [ARGUMENT...] - walks the stacks of a program that really runs, and of all
 * it starts, by our tables and by libdw at the same stops, and says how often both agree.
 *
 * The program is ptraced; at random moments a thread that runs is stopped, its stack walked twice,
 * and the thread goes on.  One line is printed:
 *
 *   STOPS stops, N complete, N equal, N libdw-short, then `end=N` for each reason why ours ended
 *   early, `differ=N`
 *
 * complete     ours came to a frame that nobody called
 * libdw-short  libdw gave up earlier, and agrees as far as it came: nothing to compare with
 * equal        the same frames; of a walk that libdw did not finish, those that it has
 *
 * With UNWIND_VERBOSE in the environment, the stacks that differ or end early are shown.
 */
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "frozen.h"
#include "host/reason.h"

enum {
    THREADS_MAX = 4096,
    PROCESSES_MAX = 64,
    OPTIONS = PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC |
              PTRACE_O_EXITKILL
};

struct traced {
    pid_t pid;
    struct frozen_host host;
    Dwfl *dwfl;
    uint64_t maps; /* host.maps_hash that dwfl was made for */
    uint64_t used;
};

struct theirs {
    uint64_t pc[KILN_USER_FRAMES_MAX + 1];
    bool exact[KILN_USER_FRAMES_MAX + 1];
    uint32_t n;
    bool whole;
};

struct totals {
    uint64_t stops, complete, equal, libdw_short, differ;
    uint64_t by_end[KILN_ENDS];
};

static struct {
    pid_t threads[THREADS_MAX];
    uint32_t n_threads;
    struct traced processes[PROCESSES_MAX];
    uint32_t n_processes;
    uint64_t clock;
    struct totals totals;
    bool verbose;
} all;

/* ---- libdw ---- */

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_linux_proc_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
};

static int take_frame(Dwfl_Frame *frame, void *context)
{
    struct theirs *theirs = context;
    if (theirs->n > KILN_USER_FRAMES_MAX)
        return DWARF_CB_ABORT;
    if (!dwfl_frame_pc(frame, &theirs->pc[theirs->n], &theirs->exact[theirs->n]))
        return DWARF_CB_ABORT;
    theirs->n++;
    return DWARF_CB_OK;
}

static int libdw_open(struct traced *t)
{
    if (t->dwfl && t->maps == t->host.maps_hash)
        return 0;
    if (t->dwfl)
        dwfl_end(t->dwfl);
    t->maps = t->host.maps_hash;
    t->dwfl = dwfl_begin(&callbacks);
    if (!t->dwfl || dwfl_linux_proc_report(t->dwfl, t->pid) != 0 ||
        dwfl_report_end(t->dwfl, NULL, NULL) != 0)
        return -1;
    return dwfl_linux_proc_attach(t->dwfl, t->pid, true);
}

static void libdw_walk(struct traced *t, pid_t tid, struct theirs *theirs)
{
    theirs->n = 0;
    theirs->whole =
        libdw_open(t) == 0 && dwfl_getthread_frames(t->dwfl, tid, take_frame, theirs) == 0;
    /* Where there is no code its tables led it astray, past a frame that nobody called. */
    for (uint32_t i = 0; i < theirs->n; i++)
        if (!dwfl_addrmodule(t->dwfl, theirs->pc[i] - !theirs->exact[i]))
            theirs->n = i;
}

/* ---- comparing ---- */

static bool is_same(const struct theirs *theirs, uint32_t i, uint64_t ours)
{
    return ours == theirs->pc[i] || (!theirs->exact[i] && ours == theirs->pc[i] - 1);
}

static uint32_t count_same(const struct theirs *theirs, const struct kiln_walked *ours)
{
    uint32_t i = 0;
    while (i < theirs->n && i < ours->n && is_same(theirs, i, ours->frames[i]))
        i++;
    return i;
}

static void show_frame(Dwfl *dwfl, const char *who, uint32_t i, uint64_t address)
{
    Dwfl_Module *module = dwfl ? dwfl_addrmodule(dwfl, address) : NULL;
    GElf_Off offset = 0;
    GElf_Sym symbol;
    const char *name =
        module ? dwfl_module_addrinfo(module, address, &offset, &symbol, NULL, NULL, NULL) : NULL;
    const char *file =
        module ? dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL) : "?";
    fprintf(stderr, "  %s %2u %016lx %s+%lx (%s)\n", who, i, address, name ? name : "?", offset,
            file);
}

static void show(struct traced *t, struct frozen *f, const struct theirs *theirs,
                 const struct kiln_walked *ours)
{
    uint32_t same = count_same(theirs, ours), from = same > 2 ? same - 2 : 0;
    fprintf(stderr,
            "pid %d tid %d: %u frames, ends %s; libdw %u frames%s; %u equal; sp %lx fp %lx\n",
            t->pid, f->tid, ours->n, kiln_end_word(ours->end), theirs->n,
            theirs->whole ? "" : dwfl_errmsg(-1), same, (uint64_t)f->registers.r[7],
            (uint64_t)f->registers.r[6]);
    for (uint32_t i = from; i < ours->n && i < same + 4; i++)
        show_frame(t->dwfl, "ours ", i, ours->frames[i]);
    for (uint32_t i = from; i < theirs->n && i < same + 4; i++)
        show_frame(t->dwfl, "libdw", i, theirs->pc[i]);
}

static void compare(struct traced *t, struct frozen *f, const struct kiln_walked *ours)
{
    static struct theirs theirs;
    libdw_walk(t, f->tid, &theirs);
    uint32_t same = count_same(&theirs, ours);
    bool short_of = same == theirs.n && same < ours->n;
    bool equal = same == theirs.n && (same == ours->n || short_of);
    all.totals.stops++;
    all.totals.by_end[ours->end]++;
    all.totals.complete += ours->end == KILN_END_COMPLETE;
    all.totals.equal += equal;
    all.totals.libdw_short += short_of;
    all.totals.differ += !equal;
    if (all.verbose && (!equal || ours->end != KILN_END_COMPLETE))
        show(t, f, &theirs, ours);
}

/* ---- the processes ---- */

static pid_t process_of(pid_t tid)
{
    char path[64], line[256];
    pid_t pid = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
    FILE *in = fopen(path, "r");
    while (in && fgets(line, sizeof(line), in))
        if (sscanf(line, "Tgid: %d", &pid) == 1)
            break;
    if (in)
        fclose(in);
    return pid;
}

static bool is_running(pid_t tid)
{
    char path[64], line[512] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)tid);
    FILE *in = fopen(path, "r");
    bool read = in && fgets(line, sizeof(line), in);
    if (in)
        fclose(in);
    const char *end = read ? strrchr(line, ')') : NULL;
    return end && end[1] && end[2] == 'R';
}

static void forget(struct traced *t)
{
    if (t->dwfl)
        dwfl_end(t->dwfl);
    frozen_host_done(&t->host);
    *t = all.processes[--all.n_processes];
}

static struct traced *find_process(pid_t pid)
{
    struct traced *oldest = NULL;
    for (uint32_t i = 0; i < all.n_processes; i++) {
        struct traced *t = &all.processes[i];
        if (t->pid == pid)
            return t;
        if (!oldest || t->used < oldest->used)
            oldest = t;
    }
    if (all.n_processes == PROCESSES_MAX)
        forget(oldest);
    struct traced *t = &all.processes[all.n_processes];
    *t = (struct traced){.pid = pid};
    if (frozen_host_init(&t->host, NULL) != 0)
        return NULL;
    all.n_processes++;
    return t;
}

static void thread_seen(pid_t tid)
{
    for (uint32_t i = 0; i < all.n_threads; i++)
        if (all.threads[i] == tid)
            return;
    if (all.n_threads < THREADS_MAX)
        all.threads[all.n_threads++] = tid;
}

static void thread_gone(pid_t tid)
{
    for (uint32_t i = 0; i < all.n_threads; i++)
        if (all.threads[i] == tid)
            all.threads[i--] = all.threads[--all.n_threads];
}

/* What happened to the program meanwhile.  Threads stay running. */
static void handle_events(void)
{
    int status;
    pid_t tid;
    while ((tid = waitpid(-1, &status, __WALL | WNOHANG)) > 0) {
        if (!WIFSTOPPED(status)) {
            thread_gone(tid);
            continue;
        }
        thread_seen(tid);
        int signal = status >> 16 ? 0 : WSTOPSIG(status);
        ptrace(PTRACE_CONT, tid, 0, signal);
    }
}

static void look_at(pid_t tid)
{
    static struct kiln_walked walked;
    struct frozen f;
    pid_t pid = process_of(tid);
    int failed = pid ? frozen_stop(&f, pid, tid) : -ESRCH;
    if (failed && failed != -EAGAIN)
        thread_gone(tid);
    if (failed)
        return;
    struct traced *t = find_process(pid);
    if (t && frozen_walk(&t->host, &f, &walked) == 0) {
        t->used = ++all.clock;
        compare(t, &f, &walked);
    }
    frozen_go(&f);
}

static pid_t start(char **command)
{
    int ready[2], status;
    if (pipe2(ready, O_CLOEXEC) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        dup2(null, 1);
        if (!all.verbose)
            dup2(null, 2);
        close(ready[1]);
        if (read(ready[0], &byte, 1) == 0)
            execvp(command[0], command);
        _exit(127);
    }
    close(ready[0]);
    if (ptrace(PTRACE_SEIZE, pid, 0, OPTIONS) != 0)
        return -1;
    close(ready[1]);
    /* Up to the exec: before it is our own program that would be looked at. */
    while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status)) {
        ptrace(PTRACE_CONT, pid, 0, 0);
        if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8))
            return pid;
    }
    return -1;
}

static void print_totals(void)
{
    const struct totals *t = &all.totals;
    printf("%lu stops, %lu complete, %lu equal, %lu libdw-short", t->stops, t->complete, t->equal,
           t->libdw_short);
    for (int i = 1; i < KILN_ENDS; i++)
        if (t->by_end[i])
            printf(", %s=%lu", kiln_end_word((enum kiln_end)i), t->by_end[i]);
    printf(", differ=%lu\n", t->differ);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    uint64_t stops = strtoull(argv[1], NULL, 10);
    all.verbose = getenv("UNWIND_VERBOSE") != NULL;
    srandom((unsigned)getpid());
    pid_t first = start(argv + 2);
    if (first < 0)
        return 1;
    thread_seen(first);
    for (uint32_t idle = 0; all.totals.stops < stops && all.n_threads > 0 && idle < 100000;) {
        struct timespec pause = {.tv_nsec = 200000 + random() % 2000000};
        nanosleep(&pause, NULL);
        handle_events();
        pid_t tid = all.n_threads ? all.threads[(uint32_t)random() % all.n_threads] : 0;
        if (tid && is_running(tid))
            look_at(tid);
        else
            idle++;
    }
    print_totals();
    while (all.n_processes > 0)
        forget(&all.processes[0]);
    return 0;
}
