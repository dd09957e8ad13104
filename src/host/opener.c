/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request is an attribute and a processor, an answer the descriptor or an error: one datagram
 * each.  The child ends when its socket is closed, which the end of this process does.
 */
#include "host/opener.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/calls.h"
#include "base/capability.h"
#include "base/descriptor.h"

enum { CHILD_SOCKET = 3 };

struct request {
    struct perf_event_attr attr;
    int cpu;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int opener = -1; /* the socket; -1: there is no child */

static int open_here(const struct perf_event_attr *attr, int cpu)
{
    long fd = syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

    return fd < 0 ? -errno : (int)fd;
}

/* ---- the child ---- */

static int confine(void)
{
    static const uint32_t allowed[] = {SYS_read,  SYS_sendmsg,    SYS_perf_event_open,
                                       SYS_close, SYS_exit_group, SYS_rt_sigreturn};
    const struct kiln_call_filter filter = {.calls = allowed, .n_calls = KILN_ARRAY_LEN(allowed)};
    int r = kiln_capabilities_keep(KILN_CAP(CAP_SYS_ADMIN) | KILN_CAP(CAP_PERFMON));

    if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        r = -errno;
    return r < 0 ? r : kiln_calls_confine(&filter);
}

static int answer(const struct request *request)
{
    const struct perf_event_attr *attr = &request->attr;

    if (attr->type != PERF_TYPE_SOFTWARE || attr->size != sizeof(*attr) || request->cpu < 0)
        return -EINVAL;
    return open_here(attr, request->cpu);
}

static void serve(int fd)
{
    struct request request;

    while (read(fd, &request, sizeof(request)) == sizeof(request)) {
        int found = answer(&request);
        int r = kiln_descriptor_send(fd, found);

        if (found >= 0)
            close(found);
        if (r < 0)
            break;
    }
}

/* Signals for the group are its parent's: it ends with that. */
_Noreturn static void run_child(int fd)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    prctl(PR_SET_NAME, "kiln-opener");
    if ((fd == CHILD_SOCKET || dup2(fd, CHILD_SOCKET) >= 0) &&
        kiln_descriptors_close(CHILD_SOCKET + 1, ~0U) == 0 &&
        kiln_descriptors_close(0, CHILD_SOCKET - 1) == 0 && confine() == 0)
        serve(CHILD_SOCKET);
    _exit(0);
}

/* ---- the parent ---- */

int kiln_opener_start(void)
{
    int pair[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    pid = fork();
    if (pid == 0)
        run_child(pair[1]);
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return -errno;
    }
    opener = pair[0];
    return 0;
}

static int open_there(const struct perf_event_attr *attr, int cpu)
{
    struct request request = {.attr = *attr, .cpu = cpu};
    int r;

    pthread_mutex_lock(&lock);
    r = send(opener, &request, sizeof(request), MSG_NOSIGNAL) < 0 ? -EPIPE
                                                                  : kiln_descriptor_receive(opener);
    pthread_mutex_unlock(&lock);
    return r;
}

int kiln_perf_open(const struct perf_event_attr *attr, int cpu)
{
    int fd = open_here(attr, cpu);

    return fd == -EACCES && opener >= 0 ? open_there(attr, cpu) : fd;
}

/* Vanilla kernels have the same sysctl and ask for CAP_PERFMON alone: so it is tried. */
bool kiln_opener_is_needed(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .config = PERF_COUNT_SW_DUMMY,
                                   .size = sizeof(attr),
                                   .disabled = 1};
    const uint64_t set = kiln_capabilities(), admin = KILN_CAP(CAP_SYS_ADMIN);
    int fd;

    if (!(set & admin) || !(set & KILN_CAP(CAP_PERFMON)) || kiln_capabilities_effect(set & ~admin))
        return false;
    fd = open_here(&attr, 0);
    if (fd >= 0)
        close(fd);
    return kiln_capabilities_effect(set) == 0 && fd == -EACCES;
}
