/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server as a source.  A thread asks it every few seconds, of time on processors and of time
 * spent waiting: for all stacks of what is in focus (format=otlp), and for what each process spent
 * (format=series).  All answers together are one batch, which stands for the whole time looked at.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "cli/live_source.h"
#include "cli/remote.h"
#include "codec/codec.h"
#include "core/merge.h"

#define ANSWER_MAX ((size_t)64 << 20)
#define EVERY_NS   (5 * KILN_NS_PER_S)

enum { ANSWERS = 5, SELECTOR_MAX = 2048, PROCESSES_MAX = 1000 };

struct server_source {
    struct kiln_live_source source;
    struct kiln_live_inbox *inbox;
    struct kiln_client *client; /* the thread's */
    char address[64];
    pthread_t thread;
    bool is_running;
    _Atomic bool cancel;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t wake;
    bool stop, now, paused;
    char labels[SELECTOR_MAX]; /* of the selector: service_name="shop" */
    uint32_t span_s;
    bool no_waits, answered;
    char problem[200];
    char told[200]; /* the problem that the page shows, the page's alone */
};

/* What is asked about; copied from the source. */
struct question {
    char labels[SELECTOR_MAX];
    uint32_t span_s;
};

/* ---- asking ---- */

static int get(struct server_source *s, struct kiln_buf *target, struct kiln_answer *answer,
               struct kiln_err *err)
{
    struct kiln_call call = {.method = "GET"};
    int r;

    kiln_buf_putc(target, '\0');
    if (target->error)
        return target->error;
    call.path = target->ptr;
    r = kiln_client_call(s->client, &call, answer, err);
    if (r < 0 || kiln_remote_accepted(answer))
        return r;
    if (strcmp(answer->word, "no_such_type") == 0)
        return -ENODATA;
    return kiln_err_set(err, -EIO, NULL, "%s", answer->message);
}

static void put_question(struct kiln_buf *target, const struct question *q, const char *type,
                         const char *more, const char *format)
{
    char query[SELECTOR_MAX + 128], from[32];

    snprintf(query, sizeof(query), "%s{%s%s%s}", type, q->labels, q->labels[0] && *more ? "," : "",
             more);
    snprintf(from, sizeof(from), "now-%us", q->span_s);
    kiln_buf_puts(target, "/api/v1/query");
    kiln_remote_put_param(target, "query", query);
    kiln_remote_put_param(target, "from", from);
    kiln_remote_put_param(target, "format", format);
}

static int ask_stacks(struct server_source *s, const struct question *q, const char *type,
                      const char *more, struct kiln_batch **ret, struct kiln_err *err)
{
    struct kiln_decode_opts opts = {.format = KILN_FORMAT_OTLP, .input_bytes = ANSWER_MAX};
    struct kiln_decode_info info = {0};
    struct kiln_answer answer;
    struct kiln_buf target;
    int r;

    kiln_buf_init(&target, 1 << 16);
    kiln_answer_init(&answer);
    put_question(&target, q, type, more, "otlp");
    r = get(s, &target, &answer, err);
    if (r == 0)
        r = kiln_decode(kiln_buf_str(&answer.body), &opts, ret, &info, err);
    kiln_answer_done(&answer);
    kiln_buf_done(&target);
    return r;
}

static int ask_processes(struct server_source *s, const struct question *q, const char *type,
                         bool waits, struct kiln_batch **ret, struct kiln_err *err)
{
    struct kiln_answer answer;
    struct kiln_buf target;
    char step[32];
    int r;

    kiln_buf_init(&target, 1 << 16);
    kiln_answer_init(&answer);
    put_question(&target, q, type, "", "series");
    for (uint32_t i = 0; kiln_live_answer_labels[i]; i++)
        kiln_remote_put_param(&target, "by", kiln_live_answer_labels[i]);
    snprintf(step, sizeof(step), "%us", q->span_s);
    kiln_remote_put_param(&target, "step", step);
    kiln_remote_put_number(&target, "limit", PROCESSES_MAX);
    r = get(s, &target, &answer, err);
    if (r == 0)
        r = kiln_live_answer_read(kiln_buf_str(&answer.body), waits, ret, err);
    kiln_answer_done(&answer);
    kiln_buf_done(&target);
    return r;
}

/* ---- one round ---- */

#define CPU_TYPE  "process_cpu:cpu:nanoseconds"
#define WAIT_TYPE "off_cpu:off_cpu:nanoseconds"

/* The samples of a merged profile have no attributes: their state is said by what was asked. */
static int ask_waits(struct server_source *s, const struct question *q, struct kiln_batch **ret,
                     uint32_t *n, struct kiln_err *err)
{
    int r = ask_stacks(s, q, WAIT_TYPE, "", &ret[*n], err);

    *n += r == 0;
    if (r == 0) {
        r = ask_processes(s, q, WAIT_TYPE, true, &ret[*n], err);
        *n += r == 0;
    }
    return r;
}

static int ask_all(struct server_source *s, const struct question *q, struct kiln_batch **ret,
                   uint32_t *n, bool *ret_no_waits, struct kiln_err *err)
{
    int r = ask_stacks(s, q, CPU_TYPE, "", &ret[*n], err);

    *n += r == 0;
    if (r == 0) {
        r = ask_processes(s, q, CPU_TYPE, false, &ret[*n], err);
        *n += r == 0;
    }
    if (r < 0 && r != -ENODATA)
        return r;
    r = ask_waits(s, q, ret, n, err);
    *ret_no_waits = r == -ENODATA;
    return r == -ENODATA ? 0 : r;
}

static int ask(struct server_source *s, const struct question *q, struct kiln_batch **ret_batch,
               bool *ret_no_waits, struct kiln_err *err)
{
    const struct kiln_merge_opts opts = {.keep_profiles_apart = true};
    struct kiln_batch *batches[ANSWERS] = {0};
    uint32_t n = 0;
    int r = ask_all(s, q, batches, &n, ret_no_waits, err);

    if (r == 0 && n)
        r = kiln_merge(batches, n, &opts, ret_batch, err);
    for (uint32_t i = 0; i < n; i++)
        kiln_batch_unref(batches[i]);
    return r;
}

static void run_round(struct server_source *s, const struct question *q)
{
    struct kiln_batch *batch = NULL;
    struct kiln_err err = {0};
    bool no_waits = false;
    int r = ask(s, q, &batch, &no_waits, &err);

    pthread_mutex_lock(&s->lock);
    s->no_waits = no_waits;
    snprintf(s->problem, sizeof(s->problem), "%.199s",
             r == 0        ? ""
             : err.text[0] ? err.text
                           : kiln_err_text(r));
    s->answered = true;
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
    if (batch)
        kiln_live_inbox_put(s->inbox, batch);
    kiln_batch_unref(batch);
}

static void *run(void *context)
{
    struct server_source *s = context;
    struct question q;
    struct timespec until;

    pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        if (!s->paused) {
            memcpy(q.labels, s->labels, sizeof(q.labels));
            q.span_s = s->span_s;
            s->now = false;
            pthread_mutex_unlock(&s->lock);
            run_round(s, &q);
            pthread_mutex_lock(&s->lock);
        }
        clock_gettime(CLOCK_MONOTONIC, &until);
        until = kiln_timespec_of(kiln_timespec_ns(until) + EVERY_NS);
        while (!s->stop && !s->now && pthread_cond_timedwait(&s->wake, &s->lock, &until) == 0)
            ;
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- the source ---- */

static void pause_server(struct kiln_live_source *source, bool paused)
{
    struct server_source *s = (struct server_source *)source;

    pthread_mutex_lock(&s->lock);
    s->paused = paused;
    s->now = !paused;
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

/* A text in quotes, with Go's escapes. */
static void put_label(struct kiln_buf *out, const char *name, struct kiln_str value)
{
    if (out->len)
        kiln_buf_putc(out, ',');
    kiln_buf_printf(out, "%s=\"", name);
    for (size_t i = 0; i < value.len; i++) {
        char c = value.ptr[i];

        if (c == '"' || c == '\\')
            kiln_buf_printf(out, "\\%c", c);
        else if ((unsigned char)c < ' ')
            kiln_buf_printf(out, "\\x%02x", (unsigned char)c);
        else
            kiln_buf_putc(out, c);
    }
    kiln_buf_putc(out, '"');
}

static void put_focus(const struct kiln_live_page *page, struct kiln_buf *out)
{
    const struct kiln_live_book *book = &page->window->book;
    char pid[16];

    if (page->process != KILN_LIVE_NONE) {
        const struct kiln_live_process *process = &book->processes[page->process];

        snprintf(pid, sizeof(pid), "%u", process->pid);
        put_label(out, "process.pid", kiln_str_of(pid));
        if (process->host.len)
            put_label(out, "host.name", process->host);
    } else if (page->service != KILN_LIVE_NONE) {
        put_label(out, "service_name", book->texts[page->service]);
    }
}

static void look_server(struct kiln_live_source *source, const struct kiln_live_page *page)
{
    struct server_source *s = (struct server_source *)source;
    uint32_t span_s = kiln_live_spans[page->span];
    struct kiln_buf labels;

    kiln_buf_init(&labels, SELECTOR_MAX - 1);
    put_focus(page, &labels);
    pthread_mutex_lock(&s->lock);
    if (!labels.error && (s->span_s != span_s || strlen(s->labels) != labels.len ||
                          (labels.len && memcmp(s->labels, labels.ptr, labels.len) != 0))) {
        snprintf(s->labels, sizeof(s->labels), "%.*s", (int)labels.len,
                 labels.len ? labels.ptr : "");
        s->span_s = span_s;
        s->now = true;
        pthread_cond_broadcast(&s->wake);
    }
    pthread_mutex_unlock(&s->lock);
    kiln_buf_done(&labels);
}

static void tell_facts(struct kiln_live_source *source, struct kiln_live_facts *facts)
{
    struct server_source *s = (struct server_source *)source;

    pthread_mutex_lock(&s->lock);
    snprintf(facts->host, sizeof(facts->host), "%s", s->address);
    facts->no_waits = s->no_waits;
    if (s->problem[0])
        snprintf(facts->notice, sizeof(facts->notice), "%s", s->problem);
    else if (strcmp(facts->notice, s->told) == 0) /* it is over */
        facts->notice[0] = '\0';
    snprintf(s->told, sizeof(s->told), "%s", s->problem);
    pthread_mutex_unlock(&s->lock);
}

/* For --once: the first answer is enough. */
static void finish_server(struct kiln_live_source *source)
{
    struct server_source *s = (struct server_source *)source;

    pthread_mutex_lock(&s->lock);
    while (!s->answered)
        pthread_cond_wait(&s->wake, &s->lock);
    s->stop = true;
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    s->is_running = false;
}

static void free_server(struct kiln_live_source *source)
{
    struct server_source *s = (struct server_source *)source;

    atomic_store(&s->cancel, true);
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
    if (s->is_running)
        pthread_join(s->thread, NULL);
    kiln_client_free(s->client);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    kiln_free(s);
}

static const struct kiln_live_source_ops server_ops = {
    .remote = true,
    .pause = pause_server,
    .look = look_server,
    .facts = tell_facts,
    .finish = finish_server,
    .free = free_server,
};

static void init_wake(struct server_source *s)
{

    kiln_cond_init(&s->wake);
    pthread_mutex_init(&s->lock, NULL);
}

int kiln_live_server_open(struct kiln_cli *cli, struct kiln_live_inbox *inbox,
                          struct kiln_live_source **ret_source, struct kiln_err *err)
{
    struct server_source *s = kiln_calloc(1, sizeof(*s));
    int r;

    if (!s)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    s->source.ops = &server_ops;
    s->inbox = inbox;
    s->span_s = 60;
    snprintf(s->address, sizeof(s->address), "%.63s", kiln_remote_address(cli));
    init_wake(s);
    r = kiln_remote_open_until(cli, ANSWER_MAX, &s->cancel, &s->client, err);
    if (r == 0)
        r = kiln_thread_start("kiln-live", run, s, &s->thread);
    s->is_running = r == 0;
    if (r < 0) {
        free_server(&s->source);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    *ret_source = &s->source;
    return 0;
}
