/* SPDX-License-Identifier: Apache-2.0 */
/* Deployments: what is kept of those that were told, beside those that are found (query/). */
#include "api/native_deployments.h"

#include <errno.h>

#include "api/native_body.h"
#include "api/native_told.h"

#define KIND "deployments"

enum { TEXT_MAX = 16384, NAME_MAX_BYTES = 1024, TENANTS_MAX = 64 };

/* ---- all of them ---- */

static int find(struct kiln_native_call *call, const struct kiln_told_list *list,
                struct kiln_deployment *told, struct kiln_deployments **ret)
{
    struct kiln_str tenants[TENANTS_MAX], rest = kiln_str_of(call->request->tenant);
    struct kiln_deployments_query query = {
        .tenants = tenants, .service = call->args.service, .told = told, .n_told = list->n};

    while (rest.ptr && query.n_tenants < TENANTS_MAX)
        tenants[query.n_tenants++] = kiln_str_cut(&rest, '|');
    for (uint32_t i = 0; i < list->n; i++) {
        const struct kiln_told *from = &list->items[i];

        told[i] = (struct kiln_deployment){.id = from->id,
                                           .service = from->service,
                                           .version = from->version,
                                           .name = from->name,
                                           .text = from->text,
                                           .at_ns = from->at_ns};
    }
    return kiln_deployments_find(call->api->engine, &query, ret, &call->err);
}

int kiln_native_deployments(struct kiln_native_call *call, struct kiln_deployments **ret)
{
    struct kiln_told_list list = {0};
    struct kiln_deployment *told;
    int r = kiln_told_read(call, KIND, &list);

    if (r == 0) {
        told = kiln_calloc((size_t)list.n + 1, sizeof(*told));
        r = told ? find(call, &list, told, ret) : -ENOMEM;
        kiln_free(told);
    }
    kiln_told_done(call, &list);
    return r;
}

/* ---- GET ---- */

static void put_deployment(struct kiln_native_call *call, const struct kiln_deployment *d)
{
    kiln_json_put_object(&call->w);
    kiln_native_put_text(call, "id", d->id);
    kiln_native_put_text(call, "service", d->service);
    kiln_native_put_text(call, "version", d->version);
    kiln_native_put_text(call, "commit", d->commit);
    kiln_native_put_text(call, "deployment_id", d->deployment_id);
    kiln_native_put_time(call, "at", d->at_ns);
    kiln_native_put_time(call, "until", d->until_ns);
    kiln_native_put_text(call, "source", d->told ? KILN_STR("told") : KILN_STR("found"));
    kiln_native_put_text(call, "label", d->label);
    kiln_native_put_text(call, "name", d->name);
    kiln_native_put_text(call, "text", d->text);
    kiln_native_put_time(call, "first", d->first_ns);
    kiln_native_put_time(call, "last", d->last_ns);
    kiln_native_put_u64(call, "profiles", d->n_profiles);
    kiln_json_end_object(&call->w);
}

static bool is_wanted(const struct kiln_native_args *args, const struct kiln_deployment *d)
{
    return kiln_deployment_ran(d, args->said & KILN_NATIVE_BIT(FROM) ? args->from_ns : 0,
                               args->said & KILN_NATIVE_BIT(UNTIL) ? args->until_ns : 0);
}

int kiln_native_run_deployments(struct kiln_native_call *call)
{
    struct kiln_deployments *deployments;
    int r = kiln_native_deployments(call, &deployments);

    if (r < 0)
        return r;
    kiln_json_put_object(&call->w);
    kiln_json_put_name(&call->w, "deployments");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; i < deployments->n; i++)
        if (is_wanted(&call->args, &deployments->rows[i]))
            put_deployment(call, &deployments->rows[i]);
    kiln_json_end_array(&call->w);
    kiln_native_put_flag(call, "truncated", deployments->truncated);
    kiln_json_end_object(&call->w);
    kiln_buf_putc(&call->body, '\n');
    kiln_deployments_free(deployments);
    return 0;
}

/* ---- POST, DELETE ---- */

static int read_member(struct kiln_native_body *body, struct kiln_str name, void *context)
{
    struct kiln_told *told = context;

    if (kiln_str_eq(name, KILN_STR("service")))
        return kiln_native_body_text(body, NAME_MAX_BYTES, &told->service);
    if (kiln_str_eq(name, KILN_STR("version")))
        return kiln_native_body_text(body, NAME_MAX_BYTES, &told->version);
    if (kiln_str_eq(name, KILN_STR("name")))
        return kiln_native_body_text(body, NAME_MAX_BYTES, &told->name);
    if (kiln_str_eq(name, KILN_STR("text")))
        return kiln_native_body_text(body, TEXT_MAX, &told->text);
    if (kiln_str_eq(name, KILN_STR("at")))
        return kiln_native_body_time(body, "at", &told->at_ns);
    return kiln_native_body_unknown(body, name, "service, version, at, name, text");
}

/* As it was told; what is found of it is for who asks. */
static void put_told(struct kiln_native_call *call, const struct kiln_told *told)
{
    const struct kiln_deployment d = {.id = told->id,
                                      .service = told->service,
                                      .version = told->version,
                                      .name = told->name,
                                      .text = told->text,
                                      .at_ns = told->at_ns,
                                      .told = true};

    put_deployment(call, &d);
    kiln_buf_putc(&call->body, '\n');
}

int kiln_native_run_deploy(struct kiln_native_call *call)
{
    struct kiln_told told = {.service = KILN_STR(""),
                             .version = KILN_STR(""),
                             .name = KILN_STR(""),
                             .text = KILN_STR(""),
                             .at_ns = call->now_ns};
    int r = kiln_native_body_read(call, read_member, &told);

    if (r < 0)
        return r;
    if (told.service.len == 0)
        return kiln_err_set(&call->err, -EBADMSG, "service", "must be said");
    if (told.version.len == 0)
        return kiln_err_set(&call->err, -EBADMSG, "version", "must be said");
    r = kiln_told_keep(call, KIND, &told);
    if (r < 0)
        return r;
    put_told(call, &told);
    call->status = 201;
    return 0;
}

int kiln_native_run_undeploy(struct kiln_native_call *call)
{
    return kiln_told_forget(call, KIND);
}
