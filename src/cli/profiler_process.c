/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The starter was forked before the server had threads or had read anything but its settings.  It
 * reads nothing, waits, and forks the profiler from this state as often as that dies.  The profiler
 * gives up what the agent gives up, and in the same order.
 */
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/capability.h"
#include "base/descriptor.h"
#include "base/keeper.h"
#include "base/metric.h"
#include "base/thread.h"
#include "cli/agent_confine.h"
#include "cli/host_status.h"
#include "cli/profiler_int.h"
#include "codec/otlp.h"
#include "fleet/link.h"
#include "host/grants.h"
#include "host/opener.h"

enum { AGAIN_MS = 2000, END_MS = 15000, TELL_S = 1, CANNOT = 3 };

struct profiler {
    struct kiln_consumer consumer;
    int fd;
    struct kiln_log *log;
    struct kiln_metrics *metrics;
    struct kiln_host *host;
    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t wake;
    bool stopping, gone;     /* told to stop; the server is not there any more */
    uint64_t sent, answered; /* numbers of batches */
    int32_t code;            /* of the one that was answered */
};

/* ---- batches ---- */

/* Waits for the server's answer to a batch. */
static int wait_for(struct profiler *p, uint64_t number)
{
    int code;

    pthread_mutex_lock(&p->lock);
    while (p->answered != number && !p->gone)
        pthread_cond_wait(&p->wake, &p->lock);
    code = p->answered == number ? p->code : -EPIPE;
    pthread_mutex_unlock(&p->lock);
    return code;
}

static int pass_on(struct profiler *p, const struct kiln_delivery *delivery, struct kiln_err *err)
{
    struct kiln_profiler_head head = {.kind = KILN_PROFILER_BATCH, .value = delivery->taken};
    struct kiln_buf text;
    int r;

    pthread_mutex_lock(&p->lock);
    head.number = ++p->sent;
    pthread_mutex_unlock(&p->lock);
    head.number |= (uint64_t)getpid() << 32; /* an answer to who was here before is none to us */
    kiln_buf_init(&text, KILN_PROFILER_BYTES_MAX);
    r = kiln_otlp_encode(delivery->batch, NULL, &text, err);
    if (r == 0)
        r = kiln_profiler_send(p->fd, &head, kiln_buf_str(&text));
    kiln_buf_done(&text);
    return r < 0 ? r : wait_for(p, head.number);
}

/* By the thread that publishes alone: one at a time. */
static void consume(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct kiln_outcome outcome = {0};

    outcome.code = pass_on((struct profiler *)(void *)consumer, delivery, &outcome.err);
    kiln_delivery_end(delivery, &outcome);
}

/* ---- what the server says ---- */

static int follow(struct profiler *p, struct kiln_str text)
{
    struct kiln_orders orders;
    struct kiln_err err = {0};
    struct kiln_json json;
    int r;

    kiln_orders_init(&orders, KILN_LINK_ORDERS_MAX);
    kiln_json_init(&json, text, &err);
    r = kiln_orders_read(&json, &orders);
    if (r == 0)
        r = kiln_host_set_orders(p->host, orders.items, orders.n);
    kiln_orders_done(&orders);
    return r;
}

static void take(struct profiler *p, const struct kiln_profiler_head *head, struct kiln_str data)
{
    int r = 0;

    if (head->kind == KILN_PROFILER_ORDERS)
        r = follow(p, data);
    if (r < 0)
        kiln_log(p->log, KILN_LOG_ERROR, "orders cannot be followed", "reason", "%s",
                 kiln_err_text(r), NULL);
    pthread_mutex_lock(&p->lock);
    if (head->kind == KILN_PROFILER_ACK) {
        p->answered = head->number;
        p->code = head->code > 0 ? 0 : head->code;
    } else if (head->kind == KILN_PROFILER_STOP) {
        p->stopping = true;
    }
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

static void *listen_to_server(void *context)
{
    struct profiler *p = context;
    struct kiln_profiler_head head;
    struct kiln_buf data;

    kiln_buf_init(&data, KILN_PROFILER_ORDERS_BYTES_MAX);
    while (kiln_profiler_receive(p->fd, &head, &data) == 0)
        take(p, &head, kiln_buf_str(&data));
    kiln_buf_done(&data);
    pthread_mutex_lock(&p->lock);
    p->stopping = p->gone = true;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- what it says ---- */

static int tell(struct profiler *p)
{
    struct kiln_profiler_head head = {.kind = KILN_PROFILER_STATUS};
    struct kiln_agent_status status = {0};
    struct kiln_buf text;
    int r;

    kiln_host_status_tell(p->host, &status, &head.value);
    r = kiln_profiler_send(p->fd, &head, (struct kiln_str){(const char *)&status, sizeof(status)});
    kiln_buf_init(&text, KILN_PROFILER_BYTES_MAX);
    kiln_metrics_format(p->metrics, &text);
    head.kind = KILN_PROFILER_METRICS;
    if (r == 0 && !text.error)
        r = kiln_profiler_send(p->fd, &head, kiln_buf_str(&text));
    kiln_buf_done(&text);
    return r;
}

static bool is_stopping(struct profiler *p)
{
    uint64_t due_ns = kiln_clock_mono_ns() + TELL_S * KILN_NS_PER_S;
    struct timespec until = kiln_timespec_of(due_ns);
    bool stopping;

    pthread_mutex_lock(&p->lock);
    while (!p->stopping && pthread_cond_timedwait(&p->wake, &p->lock, &until) == 0)
        ;
    stopping = p->stopping;
    pthread_mutex_unlock(&p->lock);
    return stopping;
}

/* ---- the profiler ---- */

static int start(struct profiler *p, struct kiln_host_opts *opts, struct kiln_err *err)
{
    int r = kiln_agent_give_up(p->log, err);

    if (r == 0)
        r = kiln_metrics_new(&p->metrics);
    if (r < 0)
        return r;
    opts->alone = true;
    opts->consumer = &p->consumer;
    opts->metrics = p->metrics;
    opts->log = p->log;
    return kiln_host_start(opts, &p->host, err);
}

static void fail(struct profiler *p, int code, const struct kiln_err *err)
{
    const struct kiln_profiler_head head = {.kind = KILN_PROFILER_FAILED, .code = code};

    (void)!kiln_profiler_send(p->fd, &head,
                              kiln_str_of(err->text[0] ? err->text : kiln_err_text(code)));
}

/* Runs until it is told to stop, or the server is gone.  Returns an exit code. */
static int profile(int fd, struct kiln_host_opts opts)
{
    struct profiler p = {.consumer.consume = consume, .fd = fd, .log = opts.log};
    const struct kiln_profiler_head started = {.kind = KILN_PROFILER_STARTED};
    struct kiln_err err = {0};
    pthread_t thread;
    int r;

    pthread_mutex_init(&p.lock, NULL);
    kiln_cond_init(&p.wake);
    mallopt(M_ARENA_MAX, 1);
    r = start(&p, &opts, &err);
    if (r < 0) {
        fail(&p, r, &err);
        return CANNOT;
    }
    r = kiln_thread_start("kiln-orders", listen_to_server, &p, &thread);
    kiln_agent_confine(p.log);
    if (r == 0)
        r = kiln_profiler_send(fd, &started, KILN_STR_NONE);
    while (r == 0 && !is_stopping(&p))
        r = tell(&p);
    kiln_host_finish(p.host);
    if (r == 0)
        (void)!tell(&p);
    kiln_host_stop(p.host);
    return 0; /* the thread that listens ends with the process */
}

/* ---- the starter ---- */

static void keep_grants(void)
{
    uint64_t set = kiln_capabilities();
    uint64_t admin = kiln_opener_is_needed() ? set & KILN_CAP(CAP_SYS_ADMIN) : 0;

    (void)!kiln_capabilities_keep(kiln_grants_of(set) | admin);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* Whether the server is still there, after so long at most. */
static bool wait_ms(int fd, short events, int ms)
{
    struct pollfd server = {.fd = fd, .events = events};

    while (poll(&server, 1, ms) < 0 && errno == EINTR)
        ;
    return !(server.revents & (POLLHUP | POLLERR)) || server.revents & POLLIN;
}

/* Waits until the profiler ends, which it does by itself when the server is gone; for so long. */
static int wait_for_end(int fd, pid_t pid)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), status = 0;
    struct pollfd both[] = {{.fd = pidfd, .events = POLLIN}, {.fd = fd}};
    bool gone = false;

    while (pidfd >= 0 && !(both[0].revents & POLLIN)) {
        int n = poll(both, gone ? 1 : 2, gone ? END_MS : -1);

        if (n == 0)
            break;
        gone |= n > 0 && both[1].revents;
    }
    if (gone && !(both[0].revents & POLLIN))
        kill(pid, SIGKILL);
    if (pidfd >= 0)
        close(pidfd);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* The lock of the store is among the server's descriptors: whoever has it open keeps it locked. */
static void close_others(int fd)
{
    if (fd > STDERR_FILENO + 1)
        (void)!kiln_descriptors_close(STDERR_FILENO + 1, (unsigned)fd - 1);
    (void)!kiln_descriptors_close((unsigned)fd + 1, ~0U);
}

_Noreturn void kiln_profiler_process(int fd, const struct kiln_host_opts *opts)
{
    struct kiln_profiler_head ended = {.kind = KILN_PROFILER_ENDED};
    sigset_t all;
    pid_t pid;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    prctl(PR_SET_NAME, "kiln-starter");
    kiln_keeper_forget();
    close_others(fd);
    keep_grants();
    if (!wait_ms(fd, POLLIN, -1))
        _exit(0);
    for (;;) {
        pid = fork();
        if (pid == 0) {
            prctl(PR_SET_NAME, "kiln-profiler");
            _exit(profile(fd, *opts));
        }
        ended.code = pid < 0 ? 0xff00 : wait_for_end(fd, pid);
        if (WIFEXITED(ended.code) &&
            (WEXITSTATUS(ended.code) == 0 || WEXITSTATUS(ended.code) == CANNOT))
            _exit(0);
        if (kiln_profiler_send(fd, &ended, KILN_STR_NONE) < 0 || !wait_ms(fd, 0, AGAIN_MS))
            _exit(0);
    }
}
