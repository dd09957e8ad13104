/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child is this program, started again, so that nothing of our memory is in it; tests fork.
 * While it works we wait in slices and look at its CPU clock: what it may take is for us to say,
 * not for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/spawn.h"
#include "symbol/resolver_int.h"

enum {
    GONE_MS = 500,
    READY_MS = 10000,
    OPENED_MAX = 256, /* files for one ask */
};

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
static bool is_gone(pid_t pid, int *ret_status)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

    if (fd >= 0) {
        (void)poll(&poll_fd, 1, GONE_MS);
        close(fd);
    }
    return waitpid(pid, ret_status, WNOHANG) != 0;
}

void kiln_child_end(struct kiln_child *child)
{
    int status = -1;

    if (child->pid <= 0)
        return;
    close(child->fd);
    child->spent_ns += cpu_ns(child);
    kill(child->pid, SIGKILL);
    if (!is_gone(child->pid, &status) && child->n_ended < KILN_ARRAY_LEN(child->ended))
        child->ended[child->n_ended++] = child->pid;
    child->rested = status == 0;
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
    int r;

    if (posix_spawn_file_actions_init(&actions) != 0)
        return -ENOMEM;
    r = -posix_spawn_file_actions_adddup2(&actions, fd, KILN_WIRE_SOCKET);
    if (r == 0)
        r = kiln_spawn(program, &actions, arguments, nothing, ret_pid);
    posix_spawn_file_actions_destroy(&actions);
    return r;
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

/* ---- messages ---- */

/* A descriptor goes beside it, unless it is -1. */
static int send_beside(int to, struct iovec *iov, size_t n_iov, int fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = n_iov};
    ssize_t n;

    if (fd >= 0) {
        control.align = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
    }
    do
        n = sendmsg(to, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -EPIPE : 0;
}

/* A file without a name, which goes away with whoever has it open; -1: there is none. */
static int open_scratch(const struct kiln_child *child)
{
    const int flags = O_TMPFILE | O_RDWR | O_CLOEXEC;
    int fd = child->scratch_directory ? open(child->scratch_directory, flags, 0600) : -1;

    return fd >= 0 ? fd : open("/var/tmp", flags, 0600);
}

/* Tells it what it has, and waits until it has given up everything else. */
static int greet(const struct kiln_child *child)
{
    struct pollfd poll_fd = {.fd = child->fd, .events = POLLIN};
    struct kiln_names_greeting greeting = child->greeting, said = {0};
    struct iovec iov = {&greeting, sizeof(greeting)};
    int scratch = open_scratch(child), r, n;

    if (scratch < 0)
        greeting.scratch = 0;
    r = send_beside(child->fd, &iov, 1, scratch);
    if (scratch >= 0)
        close(scratch);
    if (r < 0)
        return r;
    do
        n = poll(&poll_fd, 1, READY_MS);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return -ETIME;
    if (recv(child->fd, &said, sizeof(said), MSG_DONTWAIT) != sizeof(said) ||
        memcmp(&said, &greeting, sizeof(said)) != 0)
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
    child->working = 0;
    child->rested = false;
    r = greet(child);
    if (r < 0)
        kiln_child_end(child);
    return r;
}

/* What it says although it was not asked: what it works on. */
static int hear(struct kiln_child *child)
{
    struct kiln_names_said said;
    ssize_t n;

    do
        n = recv(child->fd, &said, sizeof(said), MSG_DONTWAIT | MSG_TRUNC);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return -EAGAIN;
    if (n != sizeof(said) || said.what != KILN_SAID_WORKING)
        return -EPIPE;
    child->working = said.number;
    return 0;
}

bool kiln_child_is_well(struct kiln_child *child)
{
    int r = 0;

    if (child->pid <= 0)
        return false;
    while (r == 0)
        r = hear(child);
    return r == -EAGAIN;
}

/* ---- an ask that is under way ---- */

struct asking {
    struct kiln_child *child;
    struct kiln_child_ask *ask;
    uint64_t cpu_began, wall_end;
    uint32_t answered, n_opened;
    uint64_t n_text; /* bytes */
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

static int take_names(struct asking *asking, const struct kiln_names_said *said,
                      struct kiln_str packet)
{
    struct kiln_child_ask *ask = asking->ask;
    int r;

    if (kiln_wire_begin(said, &ask->head, asking->answered) < 0)
        return -EBADMSG;
    ask->status = said->status;
    ask->gave_up = said->gave_up != 0;
    if (said->status < 0)
        asking->answered = ask->head.n;
    for (uint32_t i = 0; i < said->n; i++) {
        struct kiln_name name;

        if (kiln_wire_next(&packet, asking->frames, &name) < 0)
            return -EBADMSG;
        r = ask->take(ask->context, asking->answered++, &name);
        if (r < 0)
            return r;
    }
    return packet.len > 0 ? -EBADMSG : 0;
}

/* Opens what it wants, and gives it. */
static int take_wanted(struct asking *asking, const struct kiln_names_said *said,
                       struct kiln_str packet)
{
    struct kiln_child_ask *ask = asking->ask;
    struct kiln_names_given given = {.number = said->number};
    struct iovec iov = {&given, sizeof(given)};
    struct kiln_wanted wanted;
    int fd = -1, r;

    if (said->number != ask->head.number || ++asking->n_opened > OPENED_MAX ||
        kiln_wire_wanted(&packet, &wanted) < 0)
        return -EBADMSG;
    given.status = ask->open ? ask->open(ask->context, &wanted, &fd) : -ENOENT;
    if (given.status < 0)
        fd = -1;
    r = send_beside(asking->child->fd, &iov, 1, fd);
    if (fd >= 0)
        close(fd);
    return r;
}

/* All that is left to come of it is known once the last piece, which is empty, came. */
static int take_text(struct asking *asking, const struct kiln_names_said *said,
                     struct kiln_str packet)
{
    struct kiln_child_ask *ask = asking->ask;

    if (!ask->take_text || kiln_wire_text(said, &ask->head, asking->n_text, packet) < 0)
        return -EBADMSG;
    asking->n_text += said->n;
    if (said->n == 0)
        asking->answered = ask->head.n;
    ask->status = said->status;
    return said->n ? ask->take_text(ask->context, packet) : 0;
}

static int take_packet(struct asking *asking, struct kiln_str packet)
{
    struct kiln_names_said said;

    if (kiln_wire_head(&packet, &said) < 0)
        return -EBADMSG;
    if (said.what == KILN_SAID_NAMES)
        return asking->ask->take ? take_names(asking, &said, packet) : -EBADMSG;
    if (said.what == KILN_SAID_TEXT)
        return take_text(asking, &said, packet);
    if (said.what == KILN_SAID_WANTED)
        return take_wanted(asking, &said, packet);
    asking->child->working = said.number;
    return packet.len > 0 ? -EBADMSG : 0;
}

static int receive_answer(struct asking *asking)
{
    while (asking->answered < asking->ask->head.n) {
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

int kiln_child_ask(struct kiln_child *child, struct kiln_child_ask *ask)
{
    struct asking *asking = kiln_malloc(sizeof(*asking));
    struct iovec iov[] = {
        {&ask->head, sizeof(ask->head)},
        {(void *)(uintptr_t)ask->addresses, ask->head.n * sizeof(*ask->addresses)}};
    int r;

    if (!asking)
        return -ENOMEM;
    asking->child = child;
    asking->ask = ask;
    asking->cpu_began = cpu_ns(child);
    asking->wall_end = kiln_clock_mono_ns() + child->wall_ms * KILN_NS_PER_MS;
    asking->answered = 0;
    asking->n_opened = 0;
    asking->n_text = 0;
    r = send_beside(child->fd, iov, 2, ask->fd);
    if (r == 0)
        r = receive_answer(asking);
    ask->cpu_ms = (uint32_t)(cpu_used(asking) / KILN_NS_PER_MS);
    /* Whatever else it still says would be taken for the next answer. */
    if (r < 0)
        kiln_child_end(child);
    kiln_free(asking);
    return r == -EPIPE && child->rested ? -ESHUTDOWN : r;
}
