/* SPDX-License-Identifier: Apache-2.0 */
#include "store/admin.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/leash.h"
#include "base/mem.h"
#include "codec/otlp.h"
#include "net/problem.h"
#include "pipeline/gate.h"
#include "store/check.h"
#include "store/choose.h"
#include "store/salvage.h"
#include "store/store.h"
#include "store/usage.h"

#define EXPORT_BYTES ((size_t)256 << 20)
#define ANSWER_MAX   ((size_t)1 << 30)
#define WAIT_NS      (5 * KILN_NS_PER_S) /* for memory that others hold */
enum { JOBS_MAX = 4, PATH_BYTES = 4096 };

struct admin {
    struct kiln_store_admin_opts opts;
    _Atomic uint32_t running;
    uint32_t routes; /* that still point here */
};

struct job {
    void (*run)(struct admin *admin, struct kiln_request *request);
    uint32_t exports; /* how often it needs the memory of an export */
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
    case -EPERM:
        return 403;
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
    kiln_problem_reply(request, status_of(code), err->where, "%s%s%s", err->where,
                       err->where[0] ? ": " : "", err->text[0] ? err->text : kiln_err_text(code));
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

static void audit(struct admin *admin, const struct kiln_request *request, const char *action,
                  struct kiln_str target, int r)
{
    kiln_gate_audit(admin->opts.gate, request, action, target, r < 0 ? status_of(r) : 200);
}

static struct kiln_caller caller_of(struct admin *admin, const struct kiln_request *request)
{
    struct kiln_caller caller;

    kiln_gate_caller(admin->opts.gate, request, &caller);
    return caller;
}

/* Root and the server's user see all tenants on the local socket. */
static struct kiln_str tenant_of(struct admin *admin, const struct kiln_request *request)
{
    return caller_of(admin, request).trusted ? KILN_STR_NONE : kiln_str_of(request->tenant);
}

/* For what concerns the whole store. */
static int check_global(struct admin *admin, const struct kiln_request *request,
                        struct kiln_err *err)
{
    struct kiln_caller caller = caller_of(admin, request);

    if (kiln_caller_is_global(&caller))
        return 0;
    return kiln_err_set(err, -EPERM, NULL,
                        "this concerns all tenants: it takes a token with admin access and without "
                        "tenant, or root or the server's user on the Unix socket");
}

static void run_stats(struct admin *admin, struct kiln_request *request)
{
    struct kiln_usage_list list;
    struct kiln_err err = {0};
    struct kiln_buf body;
    int r = kiln_usage_collect(admin->opts.engine, tenant_of(admin, request), &list, &err);

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
    int r = check_global(admin, request, &err);

    if (r == 0)
        r = kiln_store_check(admin->opts.io, NULL, &check, &err);
    audit(admin, request, "check store", KILN_STR(""), r);
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
    int r = check_global(admin, request, &err);

    if (r == 0)
        r = kiln_store_flush(admin->opts.engine, &err);
    if (r == 0)
        r = kiln_store_compact(admin->opts.engine, true, &err);
    audit(admin, request, "compact store", KILN_STR(""), r);
    if (r < 0) {
        reply_error(request, r, &err);
        return;
    }
    admin->opts.engine->ops->stats(admin->opts.engine, KILN_STR_NONE, &stats);
    reply_number(request, "blocks", stats.blocks);
}

static size_t export_bytes(const struct admin *admin)
{
    return admin->opts.export_bytes ? admin->opts.export_bytes : EXPORT_BYTES;
}

/* Whether a parameter is there and "1". */
static bool is_set(struct kiln_request *request, const char *name)
{
    struct kiln_buf value;
    bool set;

    kiln_buf_init(&value, 64);
    set = kiln_request_param(request, name, &value) > 0 &&
          kiln_str_eq(kiln_buf_str(&value), KILN_STR("1"));
    kiln_buf_done(&value);
    return set;
}

static void run_salvage(struct admin *admin, struct kiln_request *request)
{
    struct kiln_salvage_opts opts = {.dry_run = is_set(request, "dry_run"),
                                     .discard = is_set(request, "discard"),
                                     .tenant = tenant_of(admin, request),
                                     .memory_bytes = export_bytes(admin)};
    struct kiln_salvage salvage;
    struct kiln_err err = {0};
    struct kiln_buf body;
    int r = kiln_store_salvage(admin->opts.engine, &opts, &salvage, &err);

    if (!opts.dry_run)
        audit(admin, request, "salvage store", KILN_STR(""), r);
    if (r < 0) {
        reply_error(request, r, &err);
        return;
    }
    kiln_buf_init(&body, ANSWER_MAX);
    kiln_salvage_format(&salvage, &body);
    reply_body(request, "application/json", &body);
    kiln_buf_done(&body);
    kiln_salvage_done(&salvage);
}

/* The path of the configured directory may be written before a name in it. */
static int backup_below(struct admin *admin, const char *dir, struct kiln_err *err)
{
    const char *place = admin->opts.backup_dir;
    size_t n = place ? strlen(place) : 0;

    if (!place)
        return kiln_err_set(err, -EPERM, "dir",
                            "no directory for backups is configured (server.backup_dir, "
                            "--backup-dir); root and the server's user may name any on the Unix "
                            "socket");
    while (n > 1 && place[n - 1] == '/')
        n--;
    if (strncmp(dir, place, n) == 0 && dir[n] == '/')
        dir += n + 1;
    return kiln_store_backup_in(admin->opts.engine, place, dir, err);
}

static int backup(struct admin *admin, const struct kiln_request *request, const char *dir,
                  struct kiln_err *err)
{
    if (!caller_of(admin, request).trusted)
        return backup_below(admin, dir, err);
    if (dir[0] != '/')
        return kiln_err_set(err, -EINVAL, "dir", "this must be an absolute path");
    return kiln_store_backup(admin->opts.engine, dir, err);
}

/* The parameter `dir`, ending in NUL. */
static int read_dir(struct kiln_request *request, struct kiln_buf *dir, struct kiln_err *err)
{
    int r = kiln_request_param(request, "dir", dir);

    kiln_buf_putc(dir, '\0');
    if (r == 0 || (r > 0 && !dir->error && strlen(dir->ptr) + 1 != dir->len))
        return kiln_err_set(err, -EINVAL, "dir", "where to?");
    return r < 0 ? r : dir->error;
}

static void run_backup(struct admin *admin, struct kiln_request *request)
{
    struct kiln_engine_stats stats;
    struct kiln_err err = {0};
    struct kiln_buf dir;
    int r;

    kiln_buf_init(&dir, PATH_BYTES);
    r = read_dir(request, &dir, &err);
    if (r == 0)
        r = check_global(admin, request, &err);
    if (r == 0)
        r = backup(admin, request, dir.ptr, &err);
    audit(admin, request, "back up store", kiln_str_of(dir.error ? "" : dir.ptr), r);
    kiln_buf_done(&dir);
    if (r < 0) {
        reply_error(request, r, &err);
        return;
    }
    admin->opts.engine->ops->stats(admin->opts.engine, KILN_STR_NONE, &stats);
    reply_number(request, "blocks", stats.blocks);
}

/* The parameters of the query as a choice; only who is trusted may name another tenant than that
 * of the request. */
static int choose(struct admin *admin, struct kiln_request *request, struct kiln_choice *choice,
                  struct kiln_err *err)
{
    bool trusted = caller_of(admin, request).trusted;
    struct kiln_params params;
    int r;

    kiln_params_init(&params, request->query);
    while ((r = kiln_params_next(&params)) > 0) {
        if (kiln_str_eq(params.name, KILN_STR("tenant")) && !trusted) {
            r = kiln_str_eq(params.value, kiln_str_of(request->tenant))
                    ? 0
                    : kiln_err_set(err, -EPERM, "tenant", "this request is of tenant %.*s",
                                   KILN_STR_ARG(kiln_str_of(request->tenant)));
            if (r < 0)
                break;
            continue;
        }
        r = kiln_choice_add(choice, params.name, params.value, err);
        if (r == 0)
            r = kiln_err_set(err, -EINVAL, NULL, "%.*s: no such parameter",
                             (int)(params.name.len < 60 ? params.name.len : 60), params.name.ptr);
        if (r < 0)
            break;
    }
    kiln_params_done(&params);
    if (r == 0 && !trusted)
        choice->selection.tenant = kiln_str_of(request->tenant);
    return r < 0 ? r : kiln_choice_end(choice, err);
}

static int select_batch(struct admin *admin, struct kiln_request *request,
                        struct kiln_batch **ret_batch, struct kiln_err *err)
{
    struct kiln_engine *engine = admin->opts.engine;
    struct kiln_choice *choice = kiln_malloc(sizeof(*choice));
    uint32_t n_damaged = 0;
    int r;

    if (!choice)
        return kiln_err_set(err, -ENOMEM, NULL, "out of memory");
    kiln_choice_init(choice);
    r = choose(admin, request, choice, err);
    choice->selection.n_damaged = &n_damaged;
    if (r == 0)
        r = engine->ops->select(engine, &choice->selection, export_bytes(admin), ret_batch, err);
    if (r == 0 && n_damaged)
        request->note = KILN_DAMAGED_NOTE;
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

    audit(admin, request, "export profiles", request->query, r);
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
    audit(admin, request, "delete service", request->rest, r);
    if (r < 0)
        reply_error(request, r, &err);
    else
        reply_number(request, "profiles", profiles);
}

/* ---- jobs ---- */

/*
 * With memory that is the job's until it has answered.  Others of them may hold it, or have just
 * answered and be about to give it back: they are waited for, but not for ever.
 */
static void run_charged(struct admin *admin, struct kiln_request *request, const struct job *job)
{
    struct kiln_leash leash = {.gone = kiln_request_gone(request),
                               .deadline_mono_ns = kiln_clock_mono_ns() + WAIT_NS,
                               .pool = admin->opts.pool,
                               .exact = true};
    size_t charged = job->exports * export_bytes(admin);

    if (charged && kiln_leash_reserve(&leash, charged, NULL) < 0) {
        kiln_problem_reply(request, 503, "", "there is no memory for this just now");
        return;
    }
    job->run(admin, request);
    if (charged)
        kiln_leash_give(&leash, charged);
}

/* A few at once: questions have the same threads. */
static void run(struct kiln_request *request, const struct job *job)
{
    struct admin *admin = request->context;

    if (atomic_fetch_add(&admin->running, 1) < JOBS_MAX)
        run_charged(admin, request, job);
    else
        kiln_problem_reply(request, 503, "", "too many of these at once");
    atomic_fetch_sub(&admin->running, 1);
}

static void handle_stats(struct kiln_request *request)
{
    run(request, &(struct job){run_stats, 0});
}

static void handle_check(struct kiln_request *request)
{
    run(request, &(struct job){run_check, 1});
}

static void handle_compact(struct kiln_request *request)
{
    run(request, &(struct job){run_compact, 0});
}

static void handle_salvage(struct kiln_request *request)
{
    run(request, &(struct job){run_salvage, 1});
}

static void handle_backup(struct kiln_request *request)
{
    run(request, &(struct job){run_backup, 0});
}

static void handle_export(struct kiln_request *request)
{
    run(request, &(struct job){run_export, 2});
}

static void handle_delete(struct kiln_request *request)
{
    run(request, &(struct job){run_delete, 0});
}

/* ---- routes ---- */

/* Each route lets go once. */
static void let_go(void *context)
{
    struct admin *admin = context;

    if (--admin->routes == 0)
        kiln_free(admin);
}

int kiln_store_admin_add(struct kiln_router *router, const struct kiln_store_admin_opts *opts)
{
    static const struct kiln_route routes[] = {
        {.method = "GET", .path = "/api/v1/store/stats", .handler = handle_stats},
        {.method = "POST", .path = "/api/v1/store/check", .handler = handle_check},
        {.method = "POST", .path = "/api/v1/store/compact", .handler = handle_compact},
        {.method = "POST", .path = "/api/v1/store/salvage", .handler = handle_salvage},
        {.method = "POST", .path = "/api/v1/store/backup", .handler = handle_backup},
        {.method = "GET", .path = "/api/v1/store/export", .handler = handle_export},
        {.method = "DELETE", .path = "/api/v1/services/*", .handler = handle_delete},
    };
    struct admin *admin = kiln_calloc(1, sizeof(*admin));
    int r = 0;

    if (!admin)
        return -ENOMEM;
    admin->opts = *opts;
    admin->routes = 1;
    for (size_t i = 0; r == 0 && i < KILN_ARRAY_LEN(routes); i++) {
        struct kiln_route route = routes[i];

        route.access = KILN_ACCESS_ADMIN;
        route.context = admin;
        route.done = let_go;
        route.body_max = 1;
        route.lane = KILN_LANE_LONG;
        admin->routes++;
        r = kiln_router_add(router, &route);
        if (r < 0)
            admin->routes--;
    }
    let_go(admin);
    return r;
}
