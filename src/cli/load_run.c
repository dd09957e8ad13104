/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every sender takes the next number, waits until its time has come, makes the request and sends
 * it; the main thread waits and shows how far it is.  SIGINT and SIGTERM end a run early, with its
 * account.
 *
 * A line of the journal is one acknowledged request:
 *
 *   NUMBER ID PROFILES SAMPLES TIME SERVICE HOST
 *
 * with the id of its first profile (hexadecimal; the others differ in the last eight digits) and
 * Unix time in nanoseconds.
 */
#include "cli/load_run.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/remote.h"
#include "codec/otlp_answer.h"

#define BODY_MAX        ((size_t)1 << 30)
#define CONNECTIONS_MAX 256u
#define REQUESTS_MAX    (1u << 26)

/* A request that is ready to be sent. */
struct ready {
    struct kiln_load_request request;
    struct kiln_buf body;
    size_t raw_bytes;
    uint8_t id[KILN_LOAD_ID_BYTES];
};

struct run {
    const struct kiln_cli *cli;
    const struct kiln_load_plan *plan;
    struct ready *prepared; /* NULL: requests are made as they are sent */
    uint64_t start_ns;      /* monotonic */
    _Atomic uint64_t next, done;
    _Atomic bool stop, has_sent;
    pthread_mutex_t lock;
    pthread_cond_t idle;
    uint32_t active;                  /* senders at work; under `lock` */
    struct kiln_load_account account; /* under `lock` */
};

struct sender {
    struct run *run;
    struct kiln_client *client;
    struct kiln_load_maker *maker;
    struct kiln_answer answer;
    struct kiln_load_account account;
    pthread_t thread;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

/* ---- latencies ---- */

/* Six bits below the highest one: buckets are 1/64 apart. */
static uint32_t bucket_of(uint64_t ns)
{
    uint32_t top, bucket;

    if (ns < 64)
        return (uint32_t)ns;
    top = 63 - (uint32_t)__builtin_clzll(ns);
    bucket = (top - 5) * 64 + (uint32_t)(ns >> (top - 6) & 63);
    return bucket < KILN_LOAD_BUCKETS ? bucket : KILN_LOAD_BUCKETS - 1;
}

static uint64_t value_of(uint32_t bucket)
{
    if (bucket < 64)
        return bucket;
    return (uint64_t)(64 + bucket % 64) << (bucket / 64 - 1);
}

uint64_t kiln_load_percentile(const struct kiln_load_account *account, double share)
{
    uint64_t wanted = (uint64_t)(share * (double)account->acknowledged);
    uint64_t seen = 0;

    for (uint32_t i = 0; i < KILN_LOAD_BUCKETS; i++) {
        seen += account->latencies[i];
        if (seen > wanted)
            return value_of(i) < account->longest_ns ? value_of(i) : account->longest_ns;
    }
    return account->longest_ns;
}

/* ---- accounts ---- */

static void add_account(struct kiln_load_account *to, const struct kiln_load_account *from)
{
    to->sent += from->sent;
    to->acknowledged += from->acknowledged;
    to->refused += from->refused;
    to->failed += from->failed;
    to->again += from->again;
    to->profiles += from->profiles;
    to->samples += from->samples;
    to->rejected += from->rejected;
    to->bytes_raw += from->bytes_raw;
    to->bytes_sent += from->bytes_sent;
    to->make_cpu_ns += from->make_cpu_ns;
    if (from->longest_ns > to->longest_ns)
        to->longest_ns = from->longest_ns;
    if (from->elapsed_ns > to->elapsed_ns)
        to->elapsed_ns = from->elapsed_ns;
    for (uint32_t i = 0; i < KILN_LOAD_BUCKETS; i++)
        to->latencies[i] += from->latencies[i];
    if (!to->err.code)
        to->err = from->err;
}

static void note_failure(struct sender *s, int code, const char *where, const char *text)
{
    if (!s->account.err.code)
        kiln_err_set(&s->account.err, code, where, "%s", text);
}

/* ---- making ---- */

static uint64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return kiln_timespec_ns(t);
}

static int make(struct sender *s, uint64_t number, struct ready *ready, struct kiln_err *err)
{
    const struct kiln_load_plan *plan = s->run->plan;
    uint64_t start = cpu_ns();
    struct kiln_batch *batch;
    int r = kiln_load_make(s->maker, number, &batch, &ready->request, err);

    if (r < 0)
        return r;
    kiln_buf_clear(&ready->body);
    r = kiln_load_encode(&plan->wire, batch, &ready->request, &ready->body, &ready->raw_bytes, err);
    if (batch->n_profiles)
        memcpy(ready->id, batch->profiles[0].id, sizeof(ready->id));
    kiln_batch_unref(batch);
    s->account.make_cpu_ns += cpu_ns() - start;
    return r;
}

/* ---- sending ---- */

static void write_journal(int fd, const struct ready *ready)
{
    struct kiln_buf line;

    kiln_buf_init(&line, 1024);
    kiln_buf_printf(&line, "%llu ", (unsigned long long)ready->request.number);
    kiln_buf_add_hex(&line, ready->id, sizeof(ready->id));
    kiln_buf_printf(&line, " %u %u %llu %s %s\n", ready->request.profiles, ready->request.samples,
                    (unsigned long long)ready->request.time_ns, ready->request.service,
                    ready->request.host);
    if (kiln_fd_write(fd, kiln_buf_str(&line)) < 0)
        errno = 0; /* whoever reads the journal sees that lines are missing */
    kiln_buf_done(&line);
}

static void note_acknowledged(struct sender *s, const struct ready *ready, uint64_t latency_ns)
{
    struct kiln_load_account *a = &s->account;
    struct kiln_export_result result = {0};

    if (s->run->plan->wire.protocol != KILN_LOAD_PYROSCOPE)
        kiln_otlp_answer_decode(kiln_buf_str(&s->answer.body), &result);
    a->acknowledged++;
    a->profiles += ready->request.profiles - result.rejected;
    a->samples += ready->request.samples;
    a->rejected += result.rejected;
    a->latencies[bucket_of(latency_ns)]++;
    if (latency_ns > a->longest_ns)
        a->longest_ns = latency_ns;
    if (result.rejected)
        note_failure(s, KILN_E_UNSUPPORTED, NULL, result.message);
    else if (s->run->plan->journal >= 0)
        write_journal(s->run->plan->journal, ready);
}

static void send_request(struct sender *s, const struct ready *ready)
{
    struct run *run = s->run;
    struct kiln_call call = kiln_load_call(&run->plan->wire, kiln_buf_str(&ready->body));
    struct kiln_header tenant = {KILN_STR("X-Scope-OrgID"), kiln_str_of(ready->request.tenant)};
    struct kiln_tries tries = {.give_up_ns = run->plan->retry_ns,
                               .grpc = run->plan->wire.protocol == KILN_LOAD_OTLP_GRPC,
                               .insist = atomic_load(&run->has_sent)};
    struct kiln_err err = {0};
    uint64_t end_ns;
    int r;

    if (tenant.value.len) {
        call.headers = &tenant;
        call.n_headers = 1;
    }
    r = kiln_remote_call(s->client, &call, &tries, &s->answer, &err);
    end_ns = kiln_clock_mono_ns();

    s->account.again += tries.again;
    if (r < 0) {
        s->account.failed++;
        note_failure(s, err.code, err.where, err.text);
        if (!tries.insist)
            atomic_store(&run->stop, true); /* nobody there: it would be the same for all */
        return;
    }
    atomic_store(&run->has_sent, true);
    if (kiln_remote_accepted(&s->answer)) {
        note_acknowledged(s, ready, end_ns - tries.last_start_ns);
        return;
    }
    s->account.refused += !s->answer.retryable;
    s->account.failed += s->answer.retryable;
    note_failure(s, KILN_E_UNSUPPORTED, kiln_remote_address(run->cli), s->answer.message);
}

/* False where the time is over first. */
static bool wait_for_turn(const struct run *run, uint64_t number)
{
    const struct kiln_load_plan *plan = run->plan;
    uint64_t due = plan->rate ? run->start_ns + (uint64_t)((double)number * 1e9 / plan->rate) : 0;
    uint64_t end = plan->duration_ns ? run->start_ns + plan->duration_ns : UINT64_MAX;
    uint64_t now;

    while ((now = kiln_clock_mono_ns()) < due && now < end && !interrupted) {
        uint64_t left = due - now > KILN_NS_PER_S / 10 ? KILN_NS_PER_S / 10 : due - now;
        struct timespec span = {0, (long)left};

        nanosleep(&span, NULL);
    }
    return now < end && !interrupted;
}

static void send_one(struct sender *s, uint64_t number, struct ready *scratch)
{
    struct ready *ready = s->run->prepared ? &s->run->prepared[number] : scratch;
    struct kiln_err err = {0};

    if (!s->run->prepared && make(s, number, ready, &err) < 0) {
        note_failure(s, err.code, err.where, err.text);
        atomic_store(&s->run->stop, true);
        return;
    }
    s->account.sent++;
    s->account.bytes_raw += ready->raw_bytes;
    s->account.bytes_sent += ready->body.len;
    send_request(s, ready);
    s->account.elapsed_ns = kiln_clock_mono_ns() - s->run->start_ns;
}

static void *send_all(void *context)
{
    struct sender *s = context;
    struct run *run = s->run;
    struct ready scratch = {0};

    kiln_buf_init(&scratch.body, BODY_MAX);
    while (!atomic_load(&run->stop)) {
        uint64_t number = atomic_fetch_add(&run->next, 1);

        if ((run->plan->requests && number >= run->plan->requests) || !wait_for_turn(run, number))
            break;
        send_one(s, number, &scratch);
        atomic_fetch_add(&run->done, 1);
    }
    kiln_buf_done(&scratch.body);
    pthread_mutex_lock(&run->lock);
    run->active--;
    add_account(&run->account, &s->account);
    pthread_cond_signal(&run->idle);
    pthread_mutex_unlock(&run->lock);
    return NULL;
}

/* ---- files ---- */

static int write_file(const char *directory, uint64_t number, const char *ending,
                      struct kiln_str body)
{
    char path[4096];
    int fd, r;

    snprintf(path, sizeof(path), "%s/%08llu%s", directory, (unsigned long long)number, ending);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return -errno;
    r = kiln_fd_write(fd, body);
    if (close(fd) < 0 && r == 0)
        r = -errno;
    return r;
}

static int write_all(struct sender *s, struct kiln_err *err)
{
    const struct kiln_load_plan *plan = s->run->plan;
    struct ready ready = {0};
    int r = mkdir(plan->out, 0777) < 0 && errno != EEXIST ? -errno : 0;

    kiln_buf_init(&ready.body, BODY_MAX);
    for (uint64_t i = 0; i < plan->requests && r == 0 && !interrupted; i++) {
        r = make(s, i, &ready, err);
        if (r == 0)
            r = write_file(plan->out, i, kiln_load_ending(&plan->wire), kiln_buf_str(&ready.body));
        s->account.sent += r == 0;
        s->account.profiles += ready.request.profiles;
        s->account.samples += ready.request.samples;
        s->account.bytes_raw += ready.raw_bytes;
        s->account.bytes_sent += ready.body.len;
        if (!plan->quiet)
            kiln_term_progress("writing", (uint32_t)i + 1, (uint32_t)plan->requests);
    }
    kiln_buf_done(&ready.body);
    s->account.elapsed_ns = kiln_clock_mono_ns() - s->run->start_ns;
    add_account(&s->run->account, &s->account);
    return r < 0 ? kiln_err_set(err, r, plan->out, "%s", kiln_err_text(r)) : 0;
}

/* ---- the run ---- */

static int prepare(struct sender *s, struct kiln_err *err)
{
    struct run *run = s->run;
    uint64_t n = run->plan->requests;
    int r = 0;

    run->prepared = kiln_calloc(n, sizeof(*run->prepared));
    if (!run->prepared)
        return kiln_err_set(err, -ENOMEM, NULL, "out of memory");
    for (uint64_t i = 0; i < n && r == 0 && !interrupted; i++) {
        kiln_buf_init(&run->prepared[i].body, BODY_MAX);
        r = make(s, i, &run->prepared[i], err);
        if (!run->plan->quiet)
            kiln_term_progress("preparing", (uint32_t)i + 1, (uint32_t)n);
    }
    return r;
}

static void show_progress(const struct run *run)
{
    const struct kiln_load_plan *plan = run->plan;
    uint64_t seconds = (kiln_clock_mono_ns() - run->start_ns) / KILN_NS_PER_S;

    if (plan->quiet)
        return;
    if (plan->requests)
        kiln_term_progress("sending", (uint32_t)atomic_load(&run->done), (uint32_t)plan->requests);
    else
        kiln_term_progress("sending: second", (uint32_t)seconds,
                           (uint32_t)(plan->duration_ns / KILN_NS_PER_S) + 1);
}

/* Until the last sender is done. */
static void wait_for_senders(struct run *run)
{
    pthread_mutex_lock(&run->lock);
    while (run->active) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 100000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&run->idle, &run->lock, &until);
        show_progress(run);
    }
    pthread_mutex_unlock(&run->lock);
    kiln_term_progress("sending", 1, 1);
}

static int open_sender(struct sender *s, struct run *run, struct kiln_err *err)
{
    int r = kiln_load_maker_new(run->plan->load, &s->maker);

    s->run = run;
    kiln_answer_init(&s->answer);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    return run->plan->out ? 0 : kiln_remote_open(run->cli, 0, &s->client, err);
}

static void close_sender(struct sender *s)
{
    kiln_client_free(s->client);
    kiln_load_maker_free(s->maker);
    kiln_answer_done(&s->answer);
}

static int start_senders(struct run *run, struct sender *senders, uint32_t n)
{
    uint32_t started = 0;

    run->active = n;
    run->start_ns = kiln_clock_mono_ns();
    while (started < n &&
           pthread_create(&senders[started].thread, NULL, send_all, &senders[started]) == 0)
        started++;
    pthread_mutex_lock(&run->lock);
    run->active -= n - started;
    pthread_mutex_unlock(&run->lock);
    wait_for_senders(run);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(senders[i].thread, NULL);
    return started ? 0 : -EAGAIN;
}

static int run_all(struct run *run, struct sender *senders, uint32_t n, struct kiln_err *err)
{
    int r = 0;

    for (uint32_t i = 0; i < n && r == 0; i++)
        r = open_sender(&senders[i], run, err);
    run->start_ns = kiln_clock_mono_ns();
    if (r == 0 && run->plan->out)
        return write_all(&senders[0], err);
    if (r == 0 && run->plan->prepare)
        r = prepare(&senders[0], err);
    if (r == 0)
        r = start_senders(run, senders, n);
    return r;
}

int kiln_load_run(const struct kiln_cli *cli, const struct kiln_load_plan *plan,
                  struct kiln_load_account *ret_account, struct kiln_err *err)
{
    uint32_t n = plan->connections > CONNECTIONS_MAX ? CONNECTIONS_MAX : plan->connections;
    struct sigaction stop = {.sa_handler = on_signal};
    struct sender *senders = kiln_calloc(n, sizeof(*senders));
    struct run *run = kiln_calloc(1, sizeof(*run));
    int r = -ENOMEM;

    if (senders && run && plan->requests <= REQUESTS_MAX) {
        *run = (struct run){.cli = cli, .plan = plan};
        pthread_mutex_init(&run->lock, NULL);
        pthread_cond_init(&run->idle, NULL);
        sigaction(SIGINT, &stop, NULL);
        sigaction(SIGTERM, &stop, NULL);
        r = run_all(run, senders, n, err);
        for (uint32_t i = 0; i < n; i++)
            close_sender(&senders[i]);
        for (uint64_t i = 0; run->prepared && i < plan->requests; i++)
            kiln_buf_done(&run->prepared[i].body);
        kiln_free(run->prepared);
        if (r == 0)
            *ret_account = run->account;
    }
    kiln_free(senders);
    kiln_free(run);
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}
