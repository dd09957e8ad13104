/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child is this program, started again, so that nothing of our memory is in it; tests fork.
 * While it works we wait in slices and look at its CPU clock: what it may take is for us to say,
 * not for it.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "symbol/resolver_int.h"

enum { GONE_MS = 500, READY_MS = 10000 };

static uint64_t cpu_ns(const struct kiln_child *child)
{
    clockid_t clock;
    struct timespec t;

    if (clock_getcpuclockid(child->pid, &clock) != 0 || clock_gettime(clock, &t) < 0)
        return 0;
    return kiln_timespec_ns(t);
}

uint64_t kiln_child_cpu_ns(const struct kiln_child *child)
{
    return child->spent_ns + (child->pid > 0 ? cpu_ns(child) : 0);
}

uint64_t kiln_child_bytes(const struct kiln_child *child)
{
    char path[64];
    struct kiln_buf text;
    struct kiln_str rest;
    uint64_t pages = 0;

    if (child->pid <= 0)
        return 0;
    snprintf(path, sizeof(path), "/proc/%ld/statm", (long)child->pid);
    kiln_buf_init(&text, 256);
    if (kiln_file_read(path, &text, NULL) == 0) {
        rest = kiln_buf_str(&text);
        kiln_str_cut(&rest, ' ');
        if (kiln_str_parse_u64(kiln_str_cut(&rest, ' '), &pages) < 0)
            pages = 0;
    }
    kiln_buf_done(&text);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void reap(struct kiln_child *child)
{
    for (uint32_t i = 0; i < child->n_ended;) {
        if (waitpid(child->ended[i], NULL, WNOHANG) == 0)
            i++;
        else
            child->ended[i] = child->ended[--child->n_ended];
    }
}

/* One that was killed is gone in a moment, unless it hangs in the kernel. */
static bool is_gone(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

    if (fd >= 0) {
        (void)poll(&poll_fd, 1, GONE_MS);
        close(fd);
    }
    return waitpid(pid, NULL, WNOHANG) != 0;
}

void kiln_child_end(struct kiln_child *child)
{
    if (child->pid <= 0)
        return;
    close(child->fd);
    child->spent_ns += cpu_ns(child);
    kill(child->pid, SIGKILL);
    if (!is_gone(child->pid) && child->n_ended < KILN_ARRAY_LEN(child->ended))
        child->ended[child->n_ended++] = child->pid;
    child->pid = 0;
    child->fd = -1;
}

/* In the child of a fork: as the program does when it is started so. */
static _Noreturn void run_here(int fd)
{
    if (fd != KILN_WIRE_SOCKET && dup2(fd, KILN_WIRE_SOCKET) < 0)
        _exit(1);
    _exit(kiln_resolver_child());
}

static int spawn(const char *program, int fd, pid_t *ret_pid)
{
    char *const arguments[] = {"kiln-names", "--names-child", NULL};
    char *const nothing[] = {NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int r;

    if (posix_spawn_file_actions_init(&actions) != 0)
        return -ENOMEM;
    if (posix_spawnattr_init(&attributes) != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return -ENOMEM;
    }
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    r = posix_spawn_file_actions_adddup2(&actions, fd, KILN_WIRE_SOCKET);
    if (r == 0)
        r = posix_spawn(ret_pid, program, &actions, &attributes, arguments, nothing);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return -r;
}

static int start(const char *program, int fd, pid_t *ret_pid)
{
    pid_t pid;

    if (program[0] != '\0')
        return spawn(program, fd, ret_pid);
    pid = fork();
    if (pid == 0)
        run_here(fd);
    if (pid < 0)
        return -errno;
    *ret_pid = pid;
    return 0;
}

/* Tells it how much memory it has, and waits until it has given up everything else. */
static int greet(const struct kiln_child *child)
{
    struct pollfd poll_fd = {.fd = child->fd, .events = POLLIN};
    uint64_t memory = child->memory_bytes;
    uint64_t said = 0;
    int n;

    if (send(child->fd, &memory, sizeof(memory), MSG_NOSIGNAL) != sizeof(memory))
        return -EPIPE;
    do
        n = poll(&poll_fd, 1, READY_MS);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return -ETIME;
    if (recv(child->fd, &said, sizeof(said), MSG_DONTWAIT) != sizeof(said) || said != memory)
        return -EPIPE;
    return 0;
}

int kiln_child_start(struct kiln_child *child)
{
    int pair[2];
    int r;

    reap(child);
    /* So many hang in the kernel: no more of them. */
    if (child->n_ended == KILN_ARRAY_LEN(child->ended))
        return -EAGAIN;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    r = start(child->program, pair[1], &child->pid);
    close(pair[1]);
    if (r < 0) {
        close(pair[0]);
        child->pid = 0;
        return r;
    }
    child->fd = pair[0];
    r = greet(child);
    if (r < 0)
        kiln_child_end(child);
    return r;
}

bool kiln_child_is_well(const struct kiln_child *child)
{
    struct pollfd poll_fd = {.fd = child->fd, .events = POLLIN};

    /* It has nothing to say unless it is asked. */
    return child->pid > 0 && poll(&poll_fd, 1, 0) == 0;
}

static int send_ask(const struct kiln_child *child, const struct kiln_names_ask *ask,
                    const uint64_t *addresses, int fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct iovec iov[] = {{(void *)(uintptr_t)ask, sizeof(*ask)},
                          {(void *)(uintptr_t)addresses, ask->n * sizeof(*addresses)}};
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = 2};
    ssize_t n;

    if (fd >= 0) {
        control.align = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
    }
    do
        n = sendmsg(child->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -EPIPE : 0;
}

/* An ask that is under way. */
struct asking {
    struct kiln_child *child;
    const struct kiln_names_ask *ask;
    const struct kiln_child_sink *sink;
    uint64_t cpu_began, wall_end;
    uint32_t answered;
    int status;
    struct kiln_name_frame frames[KILN_NAME_FRAMES_MAX];
    char packet[KILN_WIRE_PACKET];
};

static uint64_t cpu_used(const struct asking *asking)
{
    uint64_t now = cpu_ns(asking->child);

    return now > asking->cpu_began ? now - asking->cpu_began : 0;
}

/* Until there is something to read. */
static int wait_for(const struct asking *asking)
{
    uint32_t slice_ms = asking->child->cpu_ms / 8;
    struct pollfd poll_fd = {.fd = asking->child->fd, .events = POLLIN};

    slice_ms = slice_ms < 10 ? 10 : slice_ms > 250 ? 250 : slice_ms;
    for (;;) {
        int n = poll(&poll_fd, 1, (int)slice_ms);

        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -EPIPE;
        if (cpu_used(asking) > asking->child->cpu_ms * KILN_NS_PER_MS ||
            kiln_clock_mono_ns() > asking->wall_end)
            return -ETIME;
    }
}

static int take_packet(struct asking *asking, struct kiln_str packet)
{
    struct kiln_names_answer head;
    int r = kiln_wire_begin(&packet, asking->ask, asking->answered, &head);

    if (r < 0)
        return -EBADMSG;
    asking->status = head.status;
    if (head.status < 0)
        asking->answered = asking->ask->n;
    for (uint32_t i = 0; i < head.n; i++) {
        struct kiln_name name;

        if (kiln_wire_next(&packet, asking->frames, &name) < 0)
            return -EBADMSG;
        r = asking->sink->take(asking->sink->context, asking->answered++, &name);
        if (r < 0)
            return r;
    }
    return packet.len > 0 ? -EBADMSG : 0;
}

static int receive_answer(struct asking *asking)
{
    while (asking->answered < asking->ask->n) {
        int r = wait_for(asking);
        ssize_t n;

        if (r < 0)
            return r;
        n = recv(asking->child->fd, asking->packet, sizeof(asking->packet),
                 MSG_DONTWAIT | MSG_TRUNC);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            return -EPIPE;
        if ((size_t)n > sizeof(asking->packet))
            return -EBADMSG;
        r = take_packet(asking, (struct kiln_str){asking->packet, (size_t)n});
        if (r < 0)
            return r;
    }
    return 0;
}

int kiln_child_ask(struct kiln_child *child, const struct kiln_names_ask *ask,
                   const uint64_t *addresses, int fd, const struct kiln_child_sink *sink,
                   int *ret_status, uint32_t *ret_cpu_ms)
{
    struct asking *asking = kiln_malloc(sizeof(*asking));
    int r;

    if (!asking)
        return -ENOMEM;
    asking->child = child;
    asking->ask = ask;
    asking->sink = sink;
    asking->cpu_began = cpu_ns(child);
    asking->wall_end = kiln_clock_mono_ns() + child->wall_ms * KILN_NS_PER_MS;
    asking->answered = 0;
    asking->status = 0;
    r = send_ask(child, ask, addresses, fd);
    if (r == 0)
        r = receive_answer(asking);
    if (r == 0)
        *ret_status = asking->status;
    *ret_cpu_ms = (uint32_t)(cpu_used(asking) / KILN_NS_PER_MS);
    /* Whatever else it still says would be taken for the next answer. */
    if (r < 0)
        kiln_child_end(child);
    kiln_free(asking);
    return r;
}
