/* SPDX-License-Identifier: Apache-2.0 */
#include "net/problem.h"

#include <stdio.h>

#include "base/json.h"
#include "net/rpc.h"

#define TEXT_MAX 2048u

static const char *code_of(int status)
{
    static const struct {
        int status;
        const char *code;
    } codes[] = {
        {400, "bad_request"}, {401, "unauthenticated"},
        {403, "forbidden"},   {404, "not_found"},
        {405, "method"},      {408, "timeout"},
        {409, "conflict"},    {413, "limit"},
        {415, "encoding"},    {421, "host"},
        {429, "rate"},        {431, "limit"},
        {503, "busy"},        {507, "no_space"},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(codes); i++)
        if (codes[i].status == status)
            return codes[i].code;
    return status < 500 ? "refused" : "internal";
}

void kiln_problem_format(const char *code, struct kiln_str message, struct kiln_str where,
                         struct kiln_buf *out)
{
    struct kiln_json_out w;

    kiln_json_out_init(&w, out, 0);
    kiln_json_put_object(&w);
    kiln_json_put_name(&w, "error");
    kiln_json_put_object(&w);
    kiln_json_put_name(&w, "code");
    kiln_json_put_str(&w, kiln_str_of(code));
    kiln_json_put_name(&w, "message");
    kiln_json_put_str(&w, message);
    kiln_json_put_name(&w, "where");
    kiln_json_put_str(&w, where);
    kiln_json_end_object(&w);
    kiln_json_end_object(&w);
    kiln_buf_putc(out, '\n');
}

void kiln_problem_reply(struct kiln_request *request, int status, const char *where,
                        const char *fmt, ...)
{
    struct kiln_reply reply = {.status = status,
                               .content_type = "application/json",
                               .headers = {{KILN_STR("cache-control"), KILN_STR("no-store")}},
                               .n_headers = 1};
    char text[TEXT_MAX];
    struct kiln_buf body;
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    kiln_buf_init(&body, 64 << 10);
    kiln_problem_format(code_of(status), kiln_str_of(text), kiln_str_of(where), &body);
    reply.body = kiln_buf_str(&body);
    if (status == 503)
        reply.headers[reply.n_headers++] =
            (struct kiln_header){KILN_STR("retry-after"), KILN_STR("5")};
    kiln_request_reply(request, &reply);
    kiln_buf_done(&body);
}

/* ---- what the server refuses by itself ---- */

static bool is_ours(const struct kiln_request *request)
{
    return kiln_str_starts(request->path, KILN_STR("/api/v1/")) &&
           !kiln_str_starts(kiln_request_header(request, "content-type"),
                            KILN_STR("application/grpc"));
}

void kiln_problem_translate(const struct kiln_request *request, struct kiln_reply *reply,
                            struct kiln_buf *scratch)
{
    if (!is_ours(request)) {
        kiln_rpc_translate(request, reply, scratch);
        return;
    }
    if (reply->status < 400)
        return;
    kiln_problem_format(code_of(reply->status), kiln_str_trim(reply->body), KILN_STR(""), scratch);
    if (scratch->error)
        return;
    reply->content_type = "application/json";
    reply->body = kiln_buf_str(scratch);
    if (reply->n_headers < KILN_REPLY_HEADERS)
        reply->headers[reply->n_headers++] =
            (struct kiln_header){KILN_STR("cache-control"), KILN_STR("no-store")};
}

void kiln_problem_unknown(struct kiln_request *request)
{
    if (is_ours(request))
        kiln_problem_reply(request, 404, "", "no such path: %.*s",
                           request->path.len > 200 ? 200 : (int)request->path.len,
                           request->path.ptr);
    else
        kiln_rpc_unknown(request);
}
