/* SPDX-License-Identifier: Apache-2.0 */
/* Notes on the time line, and findings, of which there are none until something finds. */
#include <errno.h>

#include "api/native_body.h"
#include "api/native_told.h"

#define KIND "annotations"

enum { TEXT_MAX = 16384, NAME_MAX_BYTES = 1024 };

static void put_annotation(struct kiln_native_call *call, const struct kiln_told *told)
{
    kiln_json_put_object(&call->w);
    kiln_native_put_text(call, "id", told->id);
    kiln_native_put_time(call, "at", told->at_ns);
    kiln_native_put_time(call, "until", told->until_ns);
    kiln_native_put_text(call, "service", told->service);
    kiln_native_put_text(call, "text", told->text);
    kiln_json_put_name(&call->w, "tags");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; i < told->n_tags; i++)
        kiln_json_put_str(&call->w, told->tags[i]);
    kiln_json_end_array(&call->w);
    kiln_json_end_object(&call->w);
}

int kiln_native_run_annotations(struct kiln_native_call *call)
{
    struct kiln_told_list list = {0};
    int r = kiln_told_read(call, KIND, &list);

    kiln_told_sort(&list);
    kiln_json_put_object(&call->w);
    kiln_json_put_name(&call->w, "annotations");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; i < list.n; i++)
        if (kiln_told_wanted(call, &list.items[i]))
            put_annotation(call, &list.items[i]);
    kiln_json_end_array(&call->w);
    kiln_json_end_object(&call->w);
    kiln_buf_putc(&call->body, '\n');
    kiln_told_done(call, &list);
    return r;
}

static int read_tags(struct kiln_native_body *body, struct kiln_told *told)
{
    struct kiln_str tag;
    int r = kiln_json_array(&body->json);

    while (r == 0 && (r = kiln_json_element(&body->json)) > 0) {
        r = kiln_native_body_text(body, NAME_MAX_BYTES, &tag);
        if (r == 0)
            r = kiln_told_tag(body->call, told, tag);
    }
    return r;
}

static int read_member(struct kiln_native_body *body, struct kiln_str name, void *context)
{
    struct kiln_told *told = context;

    if (kiln_str_eq(name, KILN_STR("text")))
        return kiln_native_body_text(body, TEXT_MAX, &told->text);
    if (kiln_str_eq(name, KILN_STR("service")))
        return kiln_native_body_text(body, NAME_MAX_BYTES, &told->service);
    if (kiln_str_eq(name, KILN_STR("at")))
        return kiln_native_body_time(body, "at", &told->at_ns);
    if (kiln_str_eq(name, KILN_STR("until")))
        return kiln_native_body_time(body, "until", &told->until_ns);
    if (kiln_str_eq(name, KILN_STR("tags")))
        return read_tags(body, told);
    return kiln_native_body_unknown(body, name, "text, at, until, service, tags");
}

int kiln_native_run_annotate(struct kiln_native_call *call)
{
    struct kiln_told told = {.service = KILN_STR(""), .text = KILN_STR(""), .at_ns = call->now_ns};
    int r = kiln_native_body_read(call, read_member, &told);

    if (r < 0)
        return r;
    if (told.text.len == 0)
        return kiln_err_set(&call->err, -EBADMSG, "text", "must be said");
    if (told.until_ns && told.until_ns < told.at_ns)
        return kiln_err_set(&call->err, -EBADMSG, "until", "must not be before at");
    r = kiln_told_keep(call, KIND, &told);
    if (r < 0)
        return r;
    put_annotation(call, &told);
    kiln_buf_putc(&call->body, '\n');
    call->status = 201;
    return 0;
}

int kiln_native_run_unannotate(struct kiln_native_call *call)
{
    return kiln_told_forget(call, KIND);
}

int kiln_native_run_findings(struct kiln_native_call *call)
{
    kiln_json_put_object(&call->w);
    kiln_json_put_name(&call->w, "findings");
    kiln_json_put_array(&call->w);
    kiln_json_end_array(&call->w);
    kiln_json_end_object(&call->w);
    kiln_buf_putc(&call->body, '\n');
    return 0;
}
