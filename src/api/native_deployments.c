/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deployments: those that were told, and those that were found because a label changed.  One that
 * was told stands for one that was found of the same service and version.
 */
#include "api/native_deployments.h"

#include <errno.h>
#include <stdlib.h>

#include "api/native_body.h"

#define KIND "deployments"

enum { TEXT_MAX = 16384, NAME_MAX_BYTES = 1024 };

/* ---- all of them ---- */

/* Each lasts until the next of its service; they are the newest first. */
static void set_ends(struct kiln_told_list *list)
{
    for (uint32_t i = 0; i < list->n; i++) {
        list->items[i].until_ns = 0;
        for (uint32_t k = i; k-- > 0;)
            if (kiln_str_eq(list->items[k].service, list->items[i].service)) {
                list->items[i].until_ns = list->items[k].at_ns;
                break;
            }
    }
}

int kiln_native_deployments(struct kiln_native_call *call, struct kiln_told_list *list)
{
    int r = kiln_told_read(call, KIND, list);

    kiln_told_sort(list);
    set_ends(list);
    return r;
}

/* ---- GET ---- */

static void put_deployment(struct kiln_native_call *call, const struct kiln_told *told)
{
    kiln_json_put_object(&call->w);
    kiln_native_put_text(call, "id", told->id);
    kiln_native_put_text(call, "service", told->service);
    kiln_native_put_text(call, "version", told->version);
    kiln_native_put_time(call, "at", told->at_ns);
    kiln_native_put_time(call, "until", told->until_ns);
    kiln_native_put_text(call, "source", told->found ? KILN_STR("found") : KILN_STR("told"));
    kiln_native_put_text(call, "label", told->label);
    kiln_native_put_text(call, "name", told->name);
    kiln_native_put_text(call, "text", told->text);
    kiln_json_end_object(&call->w);
}

int kiln_native_run_deployments(struct kiln_native_call *call)
{
    struct kiln_told_list list = {0};
    int r = kiln_native_deployments(call, &list);

    kiln_json_put_object(&call->w);
    kiln_json_put_name(&call->w, "deployments");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; i < list.n; i++)
        if (kiln_told_wanted(call, &list.items[i]))
            put_deployment(call, &list.items[i]);
    kiln_json_end_array(&call->w);
    kiln_json_end_object(&call->w);
    kiln_buf_putc(&call->body, '\n');
    kiln_told_done(call, &list);
    return r;
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
    put_deployment(call, &told);
    kiln_buf_putc(&call->body, '\n');
    call->status = 201;
    return 0;
}

int kiln_native_run_undeploy(struct kiln_native_call *call)
{
    return kiln_told_forget(call, KIND);
}
