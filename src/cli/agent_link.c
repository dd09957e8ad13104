/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call at a time, over one connection that stays open.  A status is a kilobyte or two: it goes
 * with the first call, whenever what is followed has changed, and every half a minute; else the
 * call has an empty object, and the way is nearly free.
 */
#include "cli/agent_link.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "cli/remote.h"
#include "fleet/link.h"
#include "net/client.h"
#include "pipeline/exporters.h"
#include "pipeline/exporters/otlp_target.h"

#define TICK_NS     KILN_NS_PER_S       /* while there are orders, which end */
#define REST_NS     (5 * KILN_NS_PER_S) /* while there are none */
#define AT_ONCE_NS  KILN_NS_PER_S       /* two servers with different orders may share an address */
#define STATUS_NS   (30 * KILN_NS_PER_S)
#define STRANGER_NS (60 * KILN_NS_PER_S) /* between two questions to who does not know them */
#define TIMEOUT_MS  5000u
#define COMPLAIN_S  600u

struct kiln_agent_link {
    struct kiln_agent_link_opts opts;
    struct kiln_buf export_headers, path;
    struct kiln_otlp_target target;
    const char *server; /* NULL: nobody is asked */
    bool with_headers;  /* the receiver's headers are for this server too */
    struct kiln_client *client;
    struct kiln_metric *calls, *failures;
    /* of the thread */
    uint64_t next_ns, status_ns; /* monotonic: the next call; when a status was last taken */
    uint64_t version;            /* of what was followed then */
    bool known, linked;
    _Atomic uint64_t complained;
    pthread_t thread;
    bool running;
    _Atomic bool stopping;
    pthread_mutex_t lock;
    pthread_cond_t wake;
};

/* ---- one call ---- */

static void put_status(struct kiln_agent_link *link, struct kiln_buf *body)
{
    struct kiln_agent_status status;
    struct kiln_json_out w;

    link->opts.tell(link->opts.context, &status);
    kiln_json_out_init(&w, body, 0);
    kiln_agent_status_put(&w, &status);
}

/* Nobody says any more that somebody watches. */
static void part(struct kiln_agent_link *link)
{
    link->linked = false;
    link->opts.watched(link->opts.context, false);
}

static void complain(struct kiln_agent_link *link, const char *what, const char *reason)
{
    kiln_metric_add(link->failures, 1);
    if (link->linked || kiln_log_every(&link->complained, COMPLAIN_S))
        kiln_log(link->opts.log, KILN_LOG_WARN, what, "server", "%s", link->server, "reason", "%s",
                 reason, NULL);
    part(link);
}

/* A Kiln server refuses a status only because of what is in it, or because it has no room. */
static bool is_stranger(int status)
{
    return status < 500 && status != 400 && status != 413 && status != 422 && status != 429;
}

/* Another receiver than a Kiln server is no fault: it is said once. */
static void meet_stranger(struct kiln_agent_link *link, const struct kiln_answer *answer)
{
    if (link->linked || kiln_log_every(&link->complained, UINT32_MAX))
        kiln_log(link->opts.log, KILN_LOG_INFO,
                 "orders are only taken on this host: the receiver "
                 "of profiles knows none (say --server URL, or off)",
                 "server", "%s", link->server, "status", "%d", answer->status, NULL);
    part(link);
    link->next_ns = kiln_clock_mono_ns() + STRANGER_NS;
}

/* What changed is said soon: who asks the server sees who follows. */
static void take_answer(struct kiln_agent_link *link, const struct kiln_answer *answer,
                        uint64_t version, bool with_status)
{
    struct kiln_link_answer said;
    struct kiln_err err = {0};
    bool changed, at_once;

    if (kiln_link_answer_read(kiln_buf_str(&answer->body), kiln_clock_unix_ns(), &said, &err) < 0) {
        complain(link, "the answer about orders makes no sense", err.text);
        link->next_ns = kiln_clock_mono_ns() + STRANGER_NS;
    } else {
        if (!link->linked)
            kiln_log(link->opts.log, KILN_LOG_INFO, "orders come from the server", "server", "%s",
                     link->server, "every_seconds", "%u", said.every_s, NULL);
        link->linked = true;
        link->known = said.known;
        kiln_duty_tell(link->opts.duty, &said.orders);
        link->opts.watched(link->opts.context, said.watched);
        changed = kiln_duty_version(link->opts.duty) != version;
        at_once = changed || (!said.known && !with_status);
        link->next_ns =
            kiln_clock_mono_ns() + (at_once ? AT_ONCE_NS : said.every_s * KILN_NS_PER_S);
    }
    kiln_link_answer_done(&said);
}

static void call_server(struct kiln_agent_link *link)
{
    uint64_t now_ns = kiln_clock_mono_ns(), version = kiln_duty_version(link->opts.duty);
    bool with_status = !link->known || version != link->version || now_ns >= link->status_ns;
    struct kiln_call call = {.path = link->path.ptr, .content_type = "application/json"};
    struct kiln_answer answer;
    struct kiln_err err = {0};
    struct kiln_buf body;
    int r;

    kiln_buf_init(&body, KILN_LINK_BYTES_MAX);
    if (with_status)
        put_status(link, &body);
    else
        kiln_buf_puts(&body, "{}");
    call.body = kiln_buf_str(&body);
    call.headers = link->target.headers;
    call.n_headers = link->with_headers ? link->target.n_headers : 0;
    link->next_ns = now_ns + KILN_LINK_EVERY_S * KILN_NS_PER_S;
    kiln_answer_init(&answer);
    kiln_metric_add(link->calls, 1);
    r = body.error ? body.error : kiln_client_call(link->client, &call, &answer, &err);
    if (r == 0 && answer.status == 200) {
        take_answer(link, &answer, version, with_status);
        link->version = version;
        if (with_status) /* the first says little: it has just begun */
            link->status_ns = link->status_ns ? now_ns + STATUS_NS : 1;
    } else if (r == 0 && (answer.status == 401 || answer.status == 403)) {
        complain(link, "the server does not tell orders to this agent", answer.message);
    } else if (r == 0 && is_stranger(answer.status)) {
        meet_stranger(link, &answer);
    } else if (r == 0 && answer.status < 500) {
        complain(link, "the server does not take this agent's status", answer.message);
    } else if (r != -ECANCELED) {
        complain(link, "the server of orders is away: those that hold go on",
                 r < 0 ? (err.text[0] ? err.text : kiln_err_text(r)) : answer.message);
    }
    kiln_answer_done(&answer);
    kiln_buf_done(&body);
}

/* ---- the thread ---- */

static void rest(struct kiln_agent_link *link)
{
    uint64_t now_ns = kiln_clock_mono_ns();
    uint64_t due_ns = now_ns + (kiln_duty_idle(link->opts.duty) ? REST_NS : TICK_NS);
    struct timespec until =
        kiln_timespec_of(link->client && link->next_ns < due_ns ? link->next_ns : due_ns);

    pthread_mutex_lock(&link->lock);
    while (!atomic_load(&link->stopping) &&
           pthread_cond_timedwait(&link->wake, &link->lock, &until) == 0)
        ;
    pthread_mutex_unlock(&link->lock);
}

static void *run(void *context)
{
    struct kiln_agent_link *link = context;

    while (!atomic_load(&link->stopping)) {
        kiln_duty_tick(link->opts.duty);
        if (link->client && kiln_clock_mono_ns() >= link->next_ns)
            call_server(link);
        rest(link);
    }
    return NULL;
}

/* ---- making ---- */

/* "http://host:4317" ─▶ "host" */
static struct kiln_str host_of(const char *address)
{
    const char *slashes = strstr(address, "://");
    struct kiln_str host = kiln_str_of(slashes ? slashes + 3 : address);
    const char *end = host.ptr;

    if (*end == '[')
        end += strcspn(end, "]");
    host.len = (size_t)(end - host.ptr) + strcspn(end, ":/");
    return host;
}

static bool is_secure(const char *address)
{
    return strncmp(address, "https://", 8) == 0;
}

/* Secrets for the receiver of profiles go to nobody else, and not in the clear. */
static int choose_server(struct kiln_agent_link *link, struct kiln_err *err)
{
    const char *said = link->opts.config->set.agent.server, *received = link->target.server;

    if (said && !kiln_settings_on(said))
        return 0;
    if (said && strchr(said, '@'))
        return kiln_err_set(err, -EINVAL, NULL,
                            "--server names no user: its address is shown (say KILN_TOKEN)");
    link->server = said ? said : received;
    link->with_headers = kiln_str_eq(host_of(link->server), host_of(received)) &&
                         (is_secure(link->server) || !is_secure(received));
    return 0;
}

static int make_client(struct kiln_agent_link *link, struct kiln_err *err)
{
    const struct kiln_otlp_target *target = &link->target;
    const char *token = getenv("KILN_TOKEN");
    struct kiln_client_opts opts = {.server = link->server,
                                    .token = token && *token ? token : NULL,
                                    .ca_file = target->ca_file,
                                    .cert_file = target->cert_file,
                                    .key_file = target->key_file,
                                    .insecure = target->insecure,
                                    .checks_peer =
                                        target->checks_peer && link->server == target->server,
                                    .timeout_ms = TIMEOUT_MS,
                                    .answer_max = KILN_LINK_BYTES_MAX,
                                    .cancel = &link->stopping};

    kiln_buf_puts(&link->path, "/api/v1/agents/");
    kiln_remote_put_text(&link->path, kiln_str_of(link->opts.host_id), false);
    kiln_buf_putc(&link->path, '\0');
    if (link->path.error)
        return kiln_err_set(err, link->path.error, NULL, "%s", kiln_err_text(link->path.error));
    return kiln_client_new(&opts, &link->client, err);
}

static int prepare(struct kiln_agent_link *link, struct kiln_err *err)
{
    struct kiln_otlp_export_opts opts;
    int r = kiln_agent_export_opts(link->opts.config, &link->export_headers, &opts, err);

    if (r == 0)
        r = kiln_otlp_target_read(&opts, getenv, &link->target, err);
    if (r < 0)
        return r;
    r = choose_server(link, err);
    if (r < 0)
        return r;
    return link->server ? make_client(link, err) : 0;
}

static void init_wake(struct kiln_agent_link *link)
{

    kiln_cond_init(&link->wake);
    pthread_mutex_init(&link->lock, NULL);
}

int kiln_agent_link_start(const struct kiln_agent_link_opts *opts,
                          struct kiln_agent_link **ret_link, struct kiln_err *err)
{
    struct kiln_agent_link *link = kiln_calloc(1, sizeof(*link));
    int r;

    if (!link)
        return kiln_err_set(err, -ENOMEM, NULL, "out of memory");
    link->opts = *opts;
    link->calls = kiln_metric_counter(opts->metrics, "kiln_agent_link_calls_total",
                                      "Questions to the server for orders.");
    link->failures = kiln_metric_counter(opts->metrics, "kiln_agent_link_failures_total",
                                         "Questions for orders that had no good answer.");
    kiln_buf_init(&link->export_headers, 1 << 16);
    kiln_buf_init(&link->path, 1 << 10);
    init_wake(link);
    r = prepare(link, err);
    if (r == 0) {
        r = kiln_thread_start("kiln-orders", run, link, &link->thread);
        link->running = r == 0;
        if (r < 0)
            kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    if (r < 0) {
        kiln_agent_link_stop(link);
        return r;
    }
    *ret_link = link;
    return 0;
}

void kiln_agent_link_stop(struct kiln_agent_link *link)
{
    if (!link)
        return;
    pthread_mutex_lock(&link->lock);
    atomic_store(&link->stopping, true);
    pthread_cond_signal(&link->wake);
    pthread_mutex_unlock(&link->lock);
    if (link->running)
        pthread_join(link->thread, NULL);
    kiln_client_free(link->client);
    kiln_otlp_target_done(&link->target);
    kiln_buf_done(&link->export_headers);
    kiln_buf_done(&link->path);
    pthread_cond_destroy(&link->wake);
    pthread_mutex_destroy(&link->lock);
    kiln_free(link);
}
