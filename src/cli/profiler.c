/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread reads what the profiler's process says.  Batches are decoded, handed on like those of
 * any receiver, with their bytes for the log, and acknowledged when the store has them.
 */
#include "cli/profiler.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/thread.h"
#include "cli/profiler_int.h"
#include "core/builder.h"

enum { START_MS = 60000, STOP_MS = 20000, CHARGE_FACTOR = 4 };
#define METRICS_MAX ((size_t)8 << 20)

struct kiln_profiler {
    struct kiln_host *host; /* in this process; NULL: it does not run there */
    int fd;                 /* of the pair, to the other process; -1: there is none */
    pid_t starter;
    struct kiln_host_opts opts;
    struct kiln_pool *pool;
    pthread_t thread;
    bool running;         /* the thread */
    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t wake;
    enum { WAITING, RUNS, FAILED, DIED, GONE } state;
    int code; /* of a failure */
    char problem[256];
    struct kiln_agent_status status;
    uint64_t cpu_ns;
    uint64_t samples_before, cpu_ns_before; /* of processes that died */
    struct kiln_buf metrics, orders;        /* as text */
    uint32_t in_flight;                     /* batches that the consumer has */
};

/* ---- batches ---- */

struct arrival {
    struct kiln_delivery delivery;
    struct kiln_profiler *profiler;
    struct kiln_buf body;
    uint64_t number;
};

static void acknowledge(struct kiln_profiler *p, uint64_t number, int code)
{
    const struct kiln_profiler_head head = {
        .kind = KILN_PROFILER_ACK, .number = number, .code = code};

    (void)!kiln_profiler_send(p->fd, &head, KILN_STR_NONE); /* gone: it is noticed where it reads */
}

static void done(struct kiln_delivery *delivery, const struct kiln_outcome *outcome)
{
    struct arrival *arrival = delivery->context;
    struct kiln_profiler *p = arrival->profiler;

    if ((outcome->code < 0 || outcome->rejected) && outcome->err.text[0])
        kiln_log(p->opts.log, KILN_LOG_WARN, "a batch of the host profiler was not taken", "reason",
                 "%s", outcome->err.text, NULL);
    acknowledge(p, arrival->number, outcome->code);
    kiln_buf_done(&arrival->body);
    kiln_free(arrival);
    pthread_mutex_lock(&p->lock);
    p->in_flight--;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

static int decode(struct kiln_str content, struct kiln_batch **ret_batch, struct kiln_err *err)
{
    const struct kiln_otlp_opts opts = {.revision = KILN_OTLP_1_10, .copies = true};
    struct kiln_builder *b;
    int r = kiln_builder_new(NULL, &b);

    if (r < 0)
        return r;
    r = kiln_otlp_decode(content, &opts, b, NULL, err);
    if (r < 0) {
        kiln_builder_free(b);
        return r;
    }
    return kiln_builder_finish(b, ret_batch, err);
}

/* Takes the bytes. */
static int hand_on(struct kiln_profiler *p, const struct kiln_profiler_head *head,
                   struct kiln_buf *body)
{
    struct arrival *arrival = kiln_calloc(1, sizeof(*arrival));
    size_t charged = CHARGE_FACTOR * body->len;
    struct kiln_err err = {0};
    int r = arrival ? kiln_pool_take(p->pool, charged) : -ENOMEM;

    if (r < 0) {
        kiln_free(arrival);
        return -EAGAIN;
    }
    arrival->delivery = (struct kiln_delivery){.pool = p->pool, .charged = charged};
    r = decode(kiln_buf_str(body), &arrival->delivery.batch, &err);
    if (r < 0) {
        kiln_pool_give(p->pool, charged);
        kiln_free(arrival);
        return r;
    }
    arrival->profiler = p;
    arrival->number = head->number;
    arrival->body = *body;
    kiln_buf_init(body, KILN_PROFILER_BYTES_MAX);
    arrival->delivery.taken = head->value;
    arrival->delivery.tenant = p->opts.tenant ? p->opts.tenant : "anonymous";
    arrival->delivery.received_ns = kiln_clock_unix_ns();
    arrival->delivery.body = kiln_buf_str(&arrival->body);
    arrival->delivery.body_is_current = true;
    arrival->delivery.done = done;
    arrival->delivery.context = arrival;
    pthread_mutex_lock(&p->lock);
    p->in_flight++;
    pthread_mutex_unlock(&p->lock);
    kiln_hand_on(p->opts.consumer, &arrival->delivery);
    return 0;
}

static void take_batch(struct kiln_profiler *p, const struct kiln_profiler_head *head,
                       struct kiln_buf *body)
{
    int r = hand_on(p, head, body);

    if (r < 0)
        acknowledge(p, head->number, r);
}

/* ---- how it is ---- */

static void send_orders(struct kiln_profiler *p)
{
    const struct kiln_profiler_head head = {.kind = KILN_PROFILER_ORDERS};

    if (p->orders.len && kiln_profiler_send(p->fd, &head, kiln_buf_str(&p->orders)) < 0)
        kiln_log(p->opts.log, KILN_LOG_WARN, "orders did not reach the host profiler", NULL);
}

static void take_end(struct kiln_profiler *p, int status)
{
    const char *how = WIFSIGNALED(status) ? "signal" : "status";
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);

    p->state = DIED;
    p->samples_before += p->status.samples;
    p->cpu_ns_before += p->cpu_ns;
    p->status.samples = p->cpu_ns = 0;
    snprintf(p->problem, sizeof(p->problem),
             "the process of the host profiler died (%s %d): it is started again", how, number);
    kiln_log(p->opts.log, KILN_LOG_ERROR, "the process of the host profiler died", how, "%d",
             number, NULL);
}

static void take_start(struct kiln_profiler *p)
{
    if (p->state == DIED)
        kiln_log(p->opts.log, KILN_LOG_WARN, "the host profiler runs again", NULL);
    p->state = RUNS;
    p->problem[0] = '\0';
    send_orders(p);
}

static void take_status(struct kiln_profiler *p, const struct kiln_profiler_head *head,
                        struct kiln_str data)
{
    if (data.len != sizeof(p->status))
        return;
    memcpy(&p->status, data.ptr, sizeof(p->status));
    p->cpu_ns = head->value;
}

/* With the lock. */
static void take_news(struct kiln_profiler *p, const struct kiln_profiler_head *head,
                      struct kiln_buf *data)
{
    switch ((enum kiln_profiler_kind)head->kind) {
    case KILN_PROFILER_STARTED:
        take_start(p);
        break;
    case KILN_PROFILER_FAILED:
        p->state = FAILED;
        p->code = head->code < 0 ? head->code : -EIO;
        snprintf(p->problem, sizeof(p->problem), "%.*s", (int)data->len, data->ptr);
        break;
    case KILN_PROFILER_STATUS:
        take_status(p, head, kiln_buf_str(data));
        break;
    case KILN_PROFILER_METRICS:
        kiln_buf_clear(&p->metrics);
        kiln_buf_add_str(&p->metrics, kiln_buf_str(data));
        break;
    case KILN_PROFILER_ENDED:
        take_end(p, head->code);
        break;
    default:
        break;
    }
    pthread_cond_broadcast(&p->wake);
}

static void *listen_to_profiler(void *context)
{
    struct kiln_profiler *p = context;
    struct kiln_profiler_head head;
    struct kiln_buf data;

    kiln_buf_init(&data, KILN_PROFILER_BYTES_MAX);
    while (kiln_profiler_receive(p->fd, &head, &data) == 0) {
        if (head.kind == KILN_PROFILER_BATCH) {
            take_batch(p, &head, &data);
            continue;
        }
        pthread_mutex_lock(&p->lock);
        take_news(p, &head, &data);
        pthread_mutex_unlock(&p->lock);
    }
    kiln_buf_done(&data);
    pthread_mutex_lock(&p->lock);
    if (p->state != FAILED) {
        p->state = GONE;
        snprintf(p->problem, sizeof(p->problem),
                 "the processes of the host profiler are gone: restart Kiln");
    }
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- making ---- */

int kiln_profiler_new(struct kiln_profiler **ret_profiler)
{
    struct kiln_profiler *p = kiln_calloc(1, sizeof(*p));

    if (!p)
        return -ENOMEM;
    p->fd = -1;
    pthread_mutex_init(&p->lock, NULL);
    kiln_cond_init(&p->wake);
    kiln_buf_init(&p->metrics, METRICS_MAX);
    kiln_buf_init(&p->orders, KILN_PROFILER_ORDERS_BYTES_MAX);
    *ret_profiler = p;
    return 0;
}

static int fork_starter(struct kiln_profiler *p, const struct kiln_host_opts *opts)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    p->starter = fork();
    if (p->starter == 0) {
        close(pair[0]);
        kiln_profiler_process(pair[1], opts);
    }
    close(pair[1]);
    if (p->starter < 0) {
        close(pair[0]);
        return -EAGAIN;
    }
    p->fd = pair[0];
    return 0;
}

int kiln_profiler_fork(const struct kiln_host_opts *opts, struct kiln_profiler **ret_profiler)
{
    struct kiln_profiler *p;
    int r = kiln_profiler_new(&p);

    if (r == 0)
        r = fork_starter(p, opts);
    if (r == 0)
        *ret_profiler = p;
    return r;
}

/* Until something is so, or time is up. */
static void wait_until(struct kiln_profiler *p, bool (*is_so)(const struct kiln_profiler *p),
                       uint64_t ms)
{
    struct timespec until = kiln_timespec_of(kiln_clock_mono_ns() + ms * KILN_NS_PER_MS);

    while (!is_so(p) && pthread_cond_timedwait(&p->wake, &p->lock, &until) == 0)
        ;
}

static bool has_begun(const struct kiln_profiler *p)
{
    return p->state != WAITING;
}

static int start_apart(struct kiln_profiler *p, struct kiln_err *err)
{
    const struct kiln_profiler_head head = {.kind = KILN_PROFILER_START};
    int r = kiln_thread_start("kiln-profiler", listen_to_profiler, p, &p->thread);

    p->running = r == 0;
    if (r == 0)
        r = kiln_profiler_send(p->fd, &head, KILN_STR_NONE);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "the process of the host profiler: %s", kiln_err_text(r));
    pthread_mutex_lock(&p->lock);
    wait_until(p, has_begun, START_MS);
    if (p->state != RUNS && p->state != DIED) /* one that died is started again */
        r = kiln_err_set(err, p->code < 0 ? p->code : -ETIMEDOUT, NULL, "%s",
                         p->problem[0] ? p->problem : "its process does not start");
    pthread_mutex_unlock(&p->lock);
    return r;
}

int kiln_profiler_start(struct kiln_profiler *p, const struct kiln_host_opts *opts,
                        struct kiln_pool *pool, struct kiln_err *err)
{
    p->opts = *opts;
    p->pool = pool;
    return p->fd >= 0 ? start_apart(p, err) : kiln_host_start(opts, &p->host, err);
}

static bool has_ended(const struct kiln_profiler *p)
{
    return (p->state == GONE || p->state == FAILED) && p->in_flight == 0;
}

static void stop_apart(struct kiln_profiler *p)
{
    const struct kiln_profiler_head head = {.kind = KILN_PROFILER_STOP};

    if (p->running) {
        (void)!kiln_profiler_send(p->fd, &head, KILN_STR_NONE);
        pthread_mutex_lock(&p->lock);
        if (p->state != DIED)
            wait_until(p, has_ended, STOP_MS);
        pthread_mutex_unlock(&p->lock);
        shutdown(p->fd, SHUT_RDWR);
        pthread_join(p->thread, NULL);
        pthread_mutex_lock(&p->lock);
        while (p->in_flight)
            pthread_cond_wait(&p->wake, &p->lock);
        pthread_mutex_unlock(&p->lock);
    }
    close(p->fd);
    while (waitpid(p->starter, NULL, 0) < 0 && errno == EINTR)
        ;
}

void kiln_profiler_free(struct kiln_profiler *p)
{
    if (!p)
        return;
    if (p->host)
        kiln_host_stop(p->host);
    if (p->fd >= 0)
        stop_apart(p);
    kiln_buf_done(&p->metrics);
    kiln_buf_done(&p->orders);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->wake);
    kiln_free(p);
}

/* ---- while it runs ---- */

bool kiln_profiler_is_apart(const struct kiln_profiler *p)
{
    return p->fd >= 0;
}

int kiln_profiler_set_orders(struct kiln_profiler *p, const struct kiln_order *orders, uint32_t n)
{
    const struct kiln_orders list = {.items = (struct kiln_order *)(uintptr_t)orders, .n = n};
    struct kiln_json_out w;
    int r;

    if (p->host)
        return kiln_host_set_orders(p->host, orders, n);
    pthread_mutex_lock(&p->lock);
    kiln_buf_clear(&p->orders);
    kiln_json_out_init(&w, &p->orders, 0);
    kiln_orders_put(&w, &list);
    r = p->orders.error;
    if (r == 0 && p->state == RUNS)
        send_orders(p);
    pthread_mutex_unlock(&p->lock);
    return r;
}

/* Who it is and since when stays as the caller has it. */
static void copy_status(const struct kiln_agent_status *from, struct kiln_agent_status *to)
{
    to->state = from->state;
    to->hz = from->hz;
    to->samples = from->samples;
    to->processes = from->processes;
    to->memory_bytes = from->memory_bytes;
    memcpy(to->problem, from->problem, sizeof(to->problem));
    memcpy(to->drops, from->drops, sizeof(to->drops));
    memcpy(to->missed, from->missed, sizeof(to->missed));
    memcpy(to->ends, from->ends, sizeof(to->ends));
    to->n_drops = from->n_drops;
    to->n_missed = from->n_missed;
    to->n_ends = from->n_ends;
    to->complete = from->complete;
    to->all = from->all;
}

void kiln_profiler_tell(struct kiln_profiler *p, struct kiln_agent_status *status,
                        uint64_t *ret_cpu_ns)
{
    *ret_cpu_ns = 0;
    if (p->host) {
        kiln_host_status_tell(p->host, status, ret_cpu_ns);
        return;
    }
    pthread_mutex_lock(&p->lock);
    copy_status(&p->status, status);
    status->samples += p->samples_before;
    *ret_cpu_ns = p->cpu_ns + p->cpu_ns_before;
    if (p->state != RUNS) {
        status->state = KILN_AGENT_FAILED;
        snprintf(status->problem, sizeof(status->problem), "%s", p->problem);
    }
    pthread_mutex_unlock(&p->lock);
}

/* Each registry has one of this name, and a text may have it once. */
#define OVERFLOW_NAME KILN_STR("kiln_metrics_overflow_total")

static bool is_of(struct kiln_str line, struct kiln_str name)
{
    static const char *const heads[] = {"# HELP ", "# TYPE "};

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(heads); i++)
        if (kiln_str_starts(line, kiln_str_of(heads[i])))
            line = (struct kiln_str){line.ptr + strlen(heads[i]), line.len - strlen(heads[i])};
    return kiln_str_starts(line, name);
}

void kiln_profiler_put_metrics(struct kiln_profiler *p, struct kiln_buf *out)
{
    struct kiln_str rest, line;

    pthread_mutex_lock(&p->lock);
    for (rest = kiln_buf_str(&p->metrics); rest.len;) {
        line = kiln_str_cut(&rest, '\n');
        if (is_of(line, OVERFLOW_NAME))
            continue;
        kiln_buf_add_str(out, line);
        kiln_buf_putc(out, '\n');
    }
    pthread_mutex_unlock(&p->lock);
}
