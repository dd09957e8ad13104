/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One fetch: GET, decode, take the difference to the last reading where the profile counts since
 * its program's start, deliver, and, once that is accepted, remember the reading.  A delivery that
 * is refused is not remembered: the next difference has it too.
 */
#include <errno.h>
#include <stdio.h>

#include "base/bytetext.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "codec/codec.h"
#include "core/delta.h"
#include "net/client.h"
#include "pipeline/receivers/scrape_int.h"
#include "pipeline/receivers/tags.h"

#define READING_MAX ((size_t)16 << 20) /* bytes, as fetched */
#define DELTA_SHARE 4u                 /* what a difference takes, in sizes of the reading */

struct fetch {
    struct kiln_arrival arrival; /* first */
    struct kiln_scraper *scraper;
    struct kiln_scrape_task *task;
    struct kiln_request request; /* for whom and when; nobody answers it */
    struct kiln_answer answer;
    struct kiln_tags tags;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool done;
    struct kiln_outcome outcome;
};

/* ---- over the network ---- */

/* A secret that stands in a file, without the line end. */
static int read_secret(const char *path, struct kiln_buf *out, struct kiln_err *err)
{
    int r = kiln_file_read(path, out, err);

    if (r < 0) {
        kiln_err_within(err, "%s", path);
        return r;
    }
    out->len = kiln_str_trim(kiln_buf_str(out)).len;
    kiln_buf_putc(out, '\0');
    return out->error;
}

/* "Basic ..." of a job that has a user name. */
static int basic(const struct kiln_scrape_job *job, struct kiln_buf *out, struct kiln_err *err)
{
    struct kiln_buf pair;
    int r = 0;

    kiln_buf_init(&pair, 4096);
    if (job->password_file)
        r = read_secret(job->password_file, out, err);
    if (r == 0) {
        kiln_buf_printf(&pair, "%s:%s", job->username ? job->username : "",
                        job->password_file ? out->ptr
                        : job->password    ? job->password
                                           : "");
        kiln_buf_clear(out);
        kiln_buf_puts(out, "Basic ");
        kiln_buf_add_base64(out, pair.ptr, pair.len);
        r = pair.error ? pair.error : out->error;
    }
    kiln_buf_done(&pair);
    return r;
}

static int call(struct fetch *f, const struct kiln_client_opts *opts,
                const struct kiln_header *authorization, struct kiln_err *err)
{
    struct kiln_call request = {.method = "GET",
                                .path = f->task->path,
                                .headers = authorization,
                                .n_headers = authorization->value.len ? 1 : 0};
    struct kiln_client *client;
    int r = kiln_client_new(opts, &client, err);

    if (r < 0)
        return r;
    r = kiln_client_call(client, &request, &f->answer, err);
    kiln_client_free(client);
    if (r == 0 && f->answer.status != 200)
        r = kiln_err_set(err, -EPROTO, NULL, "HTTP status %d%s%s", f->answer.status,
                         f->answer.message[0] ? ": " : "", f->answer.message);
    return r;
}

static int fetch_reading(struct fetch *f, struct kiln_err *err)
{
    const struct kiln_scrape_job *job = f->task->job;
    struct kiln_client_opts opts = {
        .server = f->task->server,
        .token = job->bearer_token,
        .ca_file = job->ca_file,
        .cert_file = job->cert_file,
        .key_file = job->key_file,
        .insecure = job->insecure,
        .timeout_ms = (uint32_t)(job->timeout_ns / KILN_NS_PER_MS) + 1000 * f->task->kind->seconds,
        .answer_max = READING_MAX,
        .cancel = &f->scraper->stop,
    };
    struct kiln_header authorization = {.name = KILN_STR("authorization")};
    struct kiln_buf secret;
    int r = 0;

    kiln_buf_init(&secret, 8192);
    if (job->bearer_token_file) {
        r = read_secret(job->bearer_token_file, &secret, err);
        opts.token = secret.ptr;
    } else if (job->basic_auth) {
        r = basic(job, &secret, err);
        authorization.value = kiln_buf_str(&secret);
    }
    if (r == 0)
        r = call(f, &opts, &authorization, err);
    kiln_buf_done(&secret);
    return r;
}

/* ---- into a batch ---- */

static int make_tags(struct fetch *f, struct kiln_err *err)
{
    const struct kiln_scrape_task *task = f->task;
    int r = kiln_tags_add(&f->tags, KILN_STR("service_name"), kiln_str_of(task->job->name), err);

    if (r == 0)
        r = kiln_tags_add(&f->tags, KILN_STR("service.instance.id"), kiln_str_of(task->target),
                          err);
    for (const struct kiln_node *m = task->labels ? task->labels->first : NULL; m && r == 0;
         m = m->next) {
        struct kiln_str name = kiln_str_of(m->key);

        if (kiln_str_eq(name, KILN_STR("instance")))
            name = KILN_STR("service.instance.id");
        r = kiln_tags_add(&f->tags, name, kiln_str_of(m->text), err);
    }
    if (task->kind->family)
        f->tags.family = kiln_str_of(task->kind->family);
    return r;
}

static int decode(void *context, struct kiln_str content, struct kiln_builder *b,
                  struct kiln_err *err)
{
    struct fetch *f = context;
    struct kiln_decode_info info;
    int r;

    kiln_tags_prepare(&f->tags, b);
    r = kiln_decode_into(content, &(struct kiln_decode_opts){0}, b, &info, err);
    return r < 0 ? r : kiln_tags_apply(&f->tags, b);
}

static int take(struct fetch *f, struct kiln_str reading, uint64_t time_ns, struct kiln_err *err)
{
    struct kiln_source source = {.data = reading,
                                 .compression = kiln_compression_of(reading),
                                 .keeps = true,
                                 .decode = decode,
                                 .context = f};

    f->tags.from_ns = f->tags.until_ns = time_ns;
    return kiln_arrival_take(&f->arrival, &source, err);
}

/* ---- differences ---- */

/* The last reading as a batch; NULL where there is none that can be used. */
static struct kiln_batch *last_reading(struct fetch *f, size_t memory)
{
    struct kiln_decode_opts opts = {.limits = kiln_limits_default, .input_bytes = 4 * READING_MAX};
    struct kiln_batch *batch = NULL;
    struct kiln_buf file;
    uint64_t time_ns;

    opts.limits.memory_bytes = memory;
    kiln_buf_init(&file, READING_MAX + 256);
    if (kiln_scrape_state_get(f->scraper, f->task, &file, &time_ns) < 0 ||
        kiln_decode(kiln_buf_str(&file), &opts, &batch, NULL, NULL) < 0)
        batch = NULL;
    kiln_buf_done(&file);
    return batch;
}

/* Puts the wanted part of the reading in the place of all of it. */
static int difference(struct fetch *f, struct kiln_err *err)
{
    enum kiln_scrape_part part = f->task->kind->part;
    size_t now = kiln_batch_bytes(f->arrival.delivery.batch), room = DELTA_SHARE * now + (1u << 20);
    struct kiln_delta_opts opts = {.limits = kiln_limits_default,
                                   .no_levels = part == KILN_SCRAPE_FLOWS};
    struct kiln_batch *before = NULL, *batch;
    bool reset = false;
    int r = kiln_arrival_grant(&f->arrival, now + 2 * room, err);

    if (r < 0)
        return r;
    opts.limits.memory_bytes = room;
    if (part != KILN_SCRAPE_LEVELS)
        before = last_reading(f, room);
    r = kiln_delta(before, f->arrival.delivery.batch, &opts, &batch, &reset, err);
    kiln_batch_unref(before);
    if (r < 0)
        return r;
    if (reset)
        kiln_metric_add(f->task->resets, 1);
    kiln_batch_unref(f->arrival.delivery.batch);
    f->arrival.delivery.batch = batch;
    f->arrival.n_profiles = batch->n_profiles;
    f->arrival.n_samples = batch->n_samples;
    return 0;
}

/* ---- delivering ---- */

static void finish(struct kiln_arrival *arrival, const struct kiln_outcome *outcome)
{
    struct fetch *f = (struct fetch *)arrival;

    kiln_receivers_count(arrival->owner, KILN_RECEIVER_SCRAPE, outcome->code, KILN_COUNT_REQUESTS,
                         1);
    kiln_receivers_count(arrival->owner, KILN_RECEIVER_SCRAPE, outcome->code, KILN_COUNT_BYTES,
                         f->answer.body.len);
    pthread_mutex_lock(&f->lock);
    f->outcome = *outcome;
    f->done = true;
    pthread_cond_signal(&f->ended);
    pthread_mutex_unlock(&f->lock);
}

static int wait_for_end(struct fetch *f, struct kiln_err *err)
{
    pthread_mutex_lock(&f->lock);
    while (!f->done)
        pthread_cond_wait(&f->ended, &f->lock);
    pthread_mutex_unlock(&f->lock);
    if (f->outcome.code < 0 && err->code == 0)
        *err = f->outcome.err;
    return f->outcome.code;
}

/* From the reading on; the arrival ends in any case. */
static int deliver(struct fetch *f, struct kiln_err *err)
{
    enum kiln_scrape_part part = f->task->kind->part;
    struct kiln_str reading = kiln_buf_str(&f->answer.body);
    uint64_t now = kiln_clock_unix_ns();
    int r = make_tags(f, err);

    if (r == 0)
        r = take(f, reading, now, err);
    if (r == 0 && part != KILN_SCRAPE_ALL)
        r = difference(f, err);
    if (r == 0 && f->arrival.n_samples)
        kiln_arrival_send(&f->arrival);
    else
        kiln_arrival_refuse(&f->arrival, r, err);
    r = wait_for_end(f, err);
    if (r == 0 && (part == KILN_SCRAPE_DELTA || part == KILN_SCRAPE_FLOWS))
        r = kiln_scrape_state_put(f->scraper, f->task, reading, now);
    return r == -ENOENT ? 0 : r;
}

/* ---- how it went ---- */

/* Says only what is new. */
static void report(struct kiln_scraper *scraper, struct kiln_scrape_task *task, int code,
                   const struct kiln_err *err)
{
    const char *reason = code == 0 ? "" : err->text[0] ? err->text : kiln_err_text(code);

    if (code == -ECANCELED)
        return;
    kiln_metric_add(code == 0 ? task->fetched : task->failed, 1);
    kiln_metric_set(task->up, code == 0);
    if (strncmp(reason, task->last_failure, sizeof(task->last_failure) - 1) == 0)
        return;
    if (code < 0)
        kiln_log(scraper->opts.log, KILN_LOG_WARN, "scrape failed", "job", "%s", task->job->name,
                 "target", "%s", task->target, "profile", "%s", task->kind->name, "reason", "%s",
                 reason, NULL);
    else
        kiln_log(scraper->opts.log, KILN_LOG_INFO, "scrape works again", "job", "%s",
                 task->job->name, "target", "%s", task->target, "profile", "%s", task->kind->name,
                 NULL);
    snprintf(task->last_failure, sizeof(task->last_failure), "%.*s",
             (int)sizeof(task->last_failure) - 1, reason);
}

void kiln_scrape_run(struct kiln_scraper *scraper, struct kiln_scrape_task *task)
{
    struct fetch *f = kiln_calloc(1, sizeof(*f));
    uint64_t start = kiln_clock_mono_ns();
    struct kiln_err err = {0};
    int r;

    if (!f) {
        report(scraper, task, -ENOMEM, &err);
        return;
    }
    f->scraper = scraper;
    f->task = task;
    snprintf(f->request.tenant, sizeof(f->request.tenant), "%s", task->job->tenant);
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->ended, NULL);
    kiln_answer_init(&f->answer);
    r = fetch_reading(f, &err);
    if (r == 0) {
        f->request.received_ns = kiln_clock_unix_ns();
        kiln_arrival_init(&f->arrival, scraper->opts.receivers, KILN_RECEIVER_SCRAPE, &f->request);
        f->arrival.finish = finish;
        r = deliver(f, &err);
    }
    kiln_metric_observe(task->seconds, (double)(kiln_clock_mono_ns() - start) / 1e9);
    report(scraper, task, r, &err);
    kiln_answer_done(&f->answer);
    pthread_cond_destroy(&f->ended);
    pthread_mutex_destroy(&f->lock);
    kiln_free(f);
}
