/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of requests: one JSON object, strictly. */
#include "api/native_body.h"

#include <errno.h>
#include <stdio.h>

#define BODY_MAX ((size_t)4 << 20) /* uncompressed */

int kiln_native_body_text(struct kiln_native_body *body, size_t max, struct kiln_str *ret)
{
    struct kiln_str text, copy;
    int r = kiln_json_string(&body->json, &text);

    if (r < 0)
        return r;
    if (text.len > max)
        return kiln_json_fail(&body->json, KILN_E_MALFORMED, "longer than %zu bytes", max);
    copy = kiln_arena_copy(&body->call->arena, text);
    if (!copy.ptr)
        return kiln_json_fail(&body->json, KILN_E_LIMIT, "too many texts");
    *ret = copy;
    return 0;
}

int kiln_native_body_time(struct kiln_native_body *body, const char *name, uint64_t *ret_ns)
{
    struct kiln_str text;
    int r = kiln_json_peek(&body->json) == KILN_JSON_NUMBER ? kiln_json_number(&body->json, &text)
                                                            : kiln_json_string(&body->json, &text);

    return r < 0 ? r : kiln_native_time(body->call, name, text, ret_ns);
}

int kiln_native_body_unknown(struct kiln_native_body *body, struct kiln_str name, const char *known)
{
    snprintf(body->call->known, sizeof(body->call->known), "; known are %s", known);
    return kiln_json_fail(&body->json, KILN_E_MALFORMED, "no such member: \"%.*s\"",
                          (int)(name.len < 80 ? name.len : 80), name.ptr);
}

static int read_object(struct kiln_native_call *call, struct kiln_str text,
                       int (*member)(struct kiln_native_body *body, struct kiln_str name,
                                     void *context),
                       void *context)
{
    struct kiln_native_body body = {.call = call};
    struct kiln_str name;
    int r;

    kiln_json_init(&body.json, text, &call->err);
    r = kiln_json_object(&body.json);
    while (r == 0 && (r = kiln_json_member(&body.json, &name)) > 0)
        r = member(&body, name, context);
    if (r == 0 && kiln_json_more(&body.json) != 0)
        r = kiln_json_fail(&body.json, KILN_E_MALFORMED, "something follows the object");
    kiln_json_done(&body.json);
    return r;
}

int kiln_native_body_plain(struct kiln_native_call *call, struct kiln_buf *plain,
                           struct kiln_str *ret)
{
    const struct kiln_request *request = call->request;
    int r = 0;

    plain->pool = call->body.pool; /* a window of zstd is larger than these bodies */
    if (request->encoding != KILN_PLAIN)
        r = kiln_decompress(request->encoding, request->body, plain, &call->err);
    if (r == 0)
        *ret = request->encoding == KILN_PLAIN ? request->body : kiln_buf_str(plain);
    return r;
}

int kiln_native_body_read(struct kiln_native_call *call,
                          int (*member)(struct kiln_native_body *body, struct kiln_str name,
                                        void *context),
                          void *context)
{
    struct kiln_str text;
    struct kiln_buf plain;
    int r;

    kiln_buf_init(&plain, BODY_MAX);
    r = kiln_native_body_plain(call, &plain, &text);
    if (r == 0)
        r = read_object(call, text, member, context);
    kiln_buf_done(&plain);
    if (r == 0 || r == KILN_E_LIMIT || r == -ENOMEM)
        return r;
    kiln_err_set(&call->err, r, "body", "not a JSON object");
    return -EBADMSG;
}
