/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A handler takes its request to a new thread and is done; the thread does the work, answers and
 * ends.  Their number is bounded, and freeing the router waits for the last of them.
 */
#include "store/admin.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/thread.h"
#include "codec/otlp.h"
#include "store/check.h"
#include "store/choose.h"
#include "store/store.h"
#include "store/usage.h"

#define EXPORT_BYTES ((size_t)256 << 20)
#define ANSWER_MAX   ((size_t)1 << 30)
#define RETRY_S      "5"
enum {
    JOBS_MAX = 4,
    PATH_BYTES = 4096,
    WAIT_S = 5, /* for memory that other jobs hold */
};

struct admin {
    struct kiln_store_admin_opts opts;
    pthread_mutex_t lock;
    pthread_cond_t idle;
    uint32_t running;
    uint32_t routes; /* that still point here */
};

struct job {
    struct admin *admin;
    struct kiln_request *request;
    void (*run)(struct admin *admin, struct kiln_request *request);
    size_t charged; /* of the pool */
};

/* ---- answers ---- */

static int status_of(int code)
{
    switch (code) {
    case -ENOTEMPTY:
        return 409;
    case -EINVAL:
    case -ENAMETOOLONG:
    case KILN_E_MALFORMED:
    case KILN_E_PATTERN:
        return 400;
    case KILN_E_LIMIT:
        return 413;
    case -ENOENT:
        return 404;
    case -EWOULDBLOCK:
    case -ESHUTDOWN:
        return 503;
    case -ENOSPC:
        return 507;
    default:
        return 500;
    }
}

static void reply_error(struct kiln_request *request, int code, const struct kiln_err *err)
{
    if (err->where[0])
        kiln_request_reply_text(request, status_of(code), "%s: %s", err->where, err->text);
    else
        kiln_request_reply_text(request, status_of(code), "%s",
                                err->text[0] ? err->text : kiln_err_text(code));
}

static void reply_body(struct kiln_request *request, const char *type, struct kiln_buf *body)
{
    struct kiln_reply reply = {.status = 200, .content_type = type, .body = kiln_buf_str(body)};

    if (body->error)
        kiln_request_reply_text(request, 500, "%s", kiln_err_text(body->error));
    else
        kiln_request_reply(request, &reply);
}

/* {"name": number} */
static void reply_number(struct kiln_request *request, const char *name, uint64_t number)
{
    struct kiln_json_out w;
    struct kiln_buf body;

    kiln_buf_init(&body, 256);
    kiln_json_out_init(&w, &body, 2);
    kiln_json_put_object(&w);
    kiln_json_put_name(&w, name);
    kiln_json_put_u64(&w, number);
    kiln_json_end_object(&w);
    kiln_buf_putc(&body, '\n');
    reply_body(request, "application/json", &body);
    kiln_buf_done(&body);
}

/* ---- the work ---- */

/* Whoever comes through the local socket sees all tenants. */
static struct kiln_str tenant_of(const struct kiln_request *request)
{
    return request->peer.local ? KILN_STR_NONE : kiln_str_of(request->tenant);
}

static void run_stats(struct admin *admin, struct kiln_request *request)
{
    struct kiln_usage_list list;
    struct kiln_err err = {0};
    struct kiln_buf body;
    int r = kiln_usage_collect(admin->opts.engine, tenant_of(request), &list, &err);

    if (r < 0) {
        reply_error(request, r, &err);
        return;
    }
    kiln_buf_init(&body, ANSWER_MAX);
    kiln_usage_format(&list, &body);
    reply_body(request, "application/json", &body);
    kiln_buf_done(&body);
    kiln_usage_done(&list);
}

static void run_check(struct admin *admin, struct kiln_request *request)
{
    struct kiln_store_check check;
    struct kiln_err err = {0};
    struct kiln_buf body;
    int r = kiln_store_check(admin->opts.io, NULL, &check, &err);

    if (r < 0) {
        reply_error(request, r, &err);
        return;
    }
    kiln_buf_init(&body, ANSWER_MAX);
    kiln_store_check_format(&check, &body);
    reply_body(request, "application/json", &body);
    kiln_buf_done(&body);
    kiln_store_check_done(&check);
}

static void run_compact(struct admin *admin, struct kiln_request *request)
{
    struct kiln_engine_stats stats;
    struct kiln_err err = {0};
    int r = kiln_store_flush(admin->opts.engine, &err);

    if (r == 0)
        r = kiln_store_compact(admin->opts.engine, true, &err);
    if (r < 0) {
        reply_error(request, r, &err);
        return;
    }
    admin->opts.engine->ops->stats(admin->opts.engine, KILN_STR_NONE, &stats);
    reply_number(request, "blocks", stats.blocks);
}

/* A path of the server's machine is nothing a stranger should choose. */
static bool is_near(const struct kiln_peer *peer)
{
    return peer->local || strncmp(peer->address, "127.", 4) == 0 ||
           strncmp(peer->address, "[::1]", 5) == 0;
}

static void run_backup(struct admin *admin, struct kiln_request *request)
{
    struct kiln_engine_stats stats;
    struct kiln_err err = {0};
    struct kiln_buf dir;
    int r;

    kiln_buf_init(&dir, PATH_BYTES);
    r = kiln_request_param(request, "dir", &dir);
    kiln_buf_putc(&dir, '\0');
    if (r == 0 || (r > 0 && dir.error == 0 && dir.ptr[0] != '/'))
        r = kiln_err_set(&err, -EINVAL, NULL, "dir must be an absolute path");
    else if (r > 0)
        r = dir.error ? dir.error : kiln_store_backup(admin->opts.engine, dir.ptr, &err);
    kiln_buf_done(&dir);
    if (r < 0) {
        reply_error(request, r, &err);
        return;
    }
    admin->opts.engine->ops->stats(admin->opts.engine, KILN_STR_NONE, &stats);
    reply_number(request, "blocks", stats.blocks);
}

/* The parameters of the query as a choice; the tenant is the caller's. */
static int choose(struct kiln_request *request, struct kiln_choice *choice, struct kiln_err *err)
{
    struct kiln_params params;
    int r;

    kiln_params_init(&params, request->query);
    while ((r = kiln_params_next(&params)) > 0) {
        if (kiln_str_eq(params.name, KILN_STR("tenant")) && !request->peer.local)
            continue;
        r = kiln_choice_add(choice, params.name, params.value, err);
        if (r == 0)
            r = kiln_err_set(err, -EINVAL, NULL, "%.*s: no such parameter",
                             (int)(params.name.len < 60 ? params.name.len : 60), params.name.ptr);
        if (r < 0)
            break;
    }
    kiln_params_done(&params);
    if (r == 0 && !request->peer.local)
        choice->selection.tenant = kiln_str_of(request->tenant);
    return r < 0 ? r : kiln_choice_end(choice, err);
}

static size_t export_bytes(const struct admin *admin)
{
    return admin->opts.export_bytes ? admin->opts.export_bytes : EXPORT_BYTES;
}

static int select_batch(struct admin *admin, struct kiln_request *request,
                        struct kiln_batch **ret_batch, struct kiln_err *err)
{
    struct kiln_engine *engine = admin->opts.engine;
    struct kiln_choice *choice = kiln_malloc(sizeof(*choice));
    int r;

    if (!choice)
        return kiln_err_set(err, -ENOMEM, NULL, "out of memory");
    kiln_choice_init(choice);
    r = choose(request, choice, err);
    if (r == 0)
        r = engine->ops->select(engine, &choice->selection, export_bytes(admin), ret_batch, err);
    kiln_choice_done(choice);
    kiln_free(choice);
    return r;
}

static void run_export(struct admin *admin, struct kiln_request *request)
{
    struct kiln_batch *batch;
    struct kiln_err err = {0};
    struct kiln_buf body;
    int r = select_batch(admin, request, &batch, &err);

    if (r < 0) {
        reply_error(request, r, &err);
        return;
    }
    kiln_buf_init(&body, export_bytes(admin));
    r = kiln_otlp_encode(batch, NULL, &body, &err);
    kiln_batch_unref(batch);
    if (r < 0)
        reply_error(request, r, &err);
    else
        reply_body(request, "application/x-protobuf", &body);
    kiln_buf_done(&body);
}

static void run_delete(struct admin *admin, struct kiln_request *request)
{
    struct kiln_engine *engine = admin->opts.engine;
    struct kiln_err err = {0};
    uint64_t profiles;
    int r;

    if (request->rest.len == 0)
        r = kiln_err_set(&err, -EINVAL, NULL, "name a service");
    else
        r = engine->ops->delete_service(engine, kiln_str_of(request->tenant), request->rest,
                                        &profiles, &err);
    if (r < 0)
        reply_error(request, r, &err);
    else
        reply_number(request, "profiles", profiles);
}

/* ---- threads ---- */

static void reply_busy(struct kiln_request *request, const char *text)
{
    struct kiln_reply reply = {
        .status = 503,
        .content_type = "text/plain; charset=utf-8",
        .body = kiln_str_of(text),
        .headers = {{KILN_STR("retry-after"), KILN_STR(RETRY_S)}},
        .n_headers = 1,
    };

    kiln_request_reply(request, &reply);
}

static void end_job(struct admin *admin, size_t charged)
{
    if (admin->opts.pool)
        kiln_pool_give(admin->opts.pool, charged);
    pthread_mutex_lock(&admin->lock);
    admin->running--;
    pthread_cond_broadcast(&admin->idle);
    pthread_mutex_unlock(&admin->lock);
}

/*
 * The memory of a job.  Others of them may hold it, or have just answered and be about to give it
 * back: they are waited for, but not for ever.
 */
static int take_memory(const struct job *job)
{
    struct admin *admin = job->admin;
    struct timespec until;
    int r, waited = 0;

    if (!admin->opts.pool)
        return 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_S;
    pthread_mutex_lock(&admin->lock);
    while ((r = kiln_pool_take(admin->opts.pool, job->charged)) < 0 && admin->running > 1 &&
           waited == 0)
        waited = pthread_cond_timedwait(&admin->idle, &admin->lock, &until);
    pthread_mutex_unlock(&admin->lock);
    return r;
}

static void *job_main(void *context)
{
    struct job job = *(struct job *)context;
    int r = take_memory(&job);

    kiln_free(context);
    if (r < 0)
        reply_busy(job.request, "there is no memory for this just now\n");
    else
        job.run(job.admin, job.request);
    end_job(job.admin, r < 0 ? 0 : job.charged);
    return NULL;
}

static int begin_job(struct admin *admin)
{
    int r;

    pthread_mutex_lock(&admin->lock);
    r = admin->running < JOBS_MAX ? 0 : -EAGAIN;
    admin->running += r == 0;
    pthread_mutex_unlock(&admin->lock);
    return r;
}

static int start_thread(const struct job *job)
{
    struct job *copy = kiln_malloc(sizeof(*copy));
    pthread_t thread;
    int r;

    if (!copy)
        return -ENOMEM;
    *copy = *job;
    r = kiln_thread_start("kiln-admin", job_main, copy, &thread);
    if (r < 0)
        kiln_free(copy);
    else
        pthread_detach(thread);
    return r;
}

/* `charged` bytes are the job's until it has answered. */
static void start_charged(struct kiln_request *request, size_t charged,
                          void (*run)(struct admin *admin, struct kiln_request *request))
{
    struct job job = {request->context, request, run, charged};
    int r = begin_job(job.admin);

    if (r == 0) {
        r = start_thread(&job);
        if (r < 0)
            end_job(job.admin, 0);
    }
    if (r < 0)
        reply_busy(request, "too many of these at once\n");
}

static void start(struct kiln_request *request,
                  void (*run)(struct admin *admin, struct kiln_request *request))
{
    start_charged(request, 0, run);
}

static void handle_stats(struct kiln_request *request)
{
    start(request, run_stats);
}

static void handle_check(struct kiln_request *request)
{
    start_charged(request, export_bytes(request->context), run_check);
}

static void handle_compact(struct kiln_request *request)
{
    start(request, run_compact);
}

static void handle_backup(struct kiln_request *request)
{
    if (is_near(&request->peer))
        start(request, run_backup);
    else
        kiln_request_reply_text(request, 403,
                                "a backup writes on the server's machine: ask for it there");
}

static void handle_export(struct kiln_request *request)
{
    start_charged(request, 2 * export_bytes(request->context), run_export);
}

static void handle_delete(struct kiln_request *request)
{
    start(request, run_delete);
}

/* ---- routes ---- */

/* Each route lets go once; the last one waits for the jobs. */
static void let_go(void *context)
{
    struct admin *admin = context;
    bool last;

    pthread_mutex_lock(&admin->lock);
    last = --admin->routes == 0;
    while (last && admin->running)
        pthread_cond_wait(&admin->idle, &admin->lock);
    pthread_mutex_unlock(&admin->lock);
    if (!last)
        return;
    pthread_cond_destroy(&admin->idle);
    pthread_mutex_destroy(&admin->lock);
    kiln_free(admin);
}

int kiln_store_admin_add(struct kiln_router *router, const struct kiln_store_admin_opts *opts)
{
    static const struct kiln_route routes[] = {
        {.method = "GET", .path = "/api/v1/store/stats", .handler = handle_stats},
        {.method = "POST", .path = "/api/v1/store/check", .handler = handle_check},
        {.method = "POST", .path = "/api/v1/store/compact", .handler = handle_compact},
        {.method = "POST", .path = "/api/v1/store/backup", .handler = handle_backup},
        {.method = "GET", .path = "/api/v1/store/export", .handler = handle_export},
        {.method = "DELETE", .path = "/api/v1/services/*", .handler = handle_delete},
    };
    struct admin *admin = kiln_calloc(1, sizeof(*admin));
    int r = 0;

    if (!admin)
        return -ENOMEM;
    admin->opts = *opts;
    pthread_mutex_init(&admin->lock, NULL);
    pthread_cond_init(&admin->idle, NULL);
    admin->routes = 1;
    for (size_t i = 0; r == 0 && i < KILN_ARRAY_LEN(routes); i++) {
        struct kiln_route route = routes[i];

        route.access = KILN_ACCESS_ADMIN;
        route.context = admin;
        route.done = let_go;
        route.body_max = 1;
        admin->routes++;
        r = kiln_router_add(router, &route);
        if (r < 0)
            admin->routes--;
    }
    let_go(admin);
    return r;
}
