/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "inproc/pprof/reply.h"

#define PLAIN "text/plain; charset=utf-8"

void kiln_in_reply_init(struct kiln_in_reply *reply)
{
    *reply = (struct kiln_in_reply){.status = 200, .type = PLAIN};
    kiln_buf_init(&reply->body, KILN_IN_REPLY_BYTES);
}

void kiln_in_reply_done(struct kiln_in_reply *reply)
{
    kiln_buf_done(&reply->body);
}

void kiln_in_reply_fail(struct kiln_in_reply *reply, int status, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    reply->status = status;
    reply->type = PLAIN;
    reply->file[0] = 0;
    reply->failed = true;
    kiln_buf_clear(&reply->body);
    kiln_buf_puts(&reply->body, text);
    kiln_buf_putc(&reply->body, '\n');
}

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        {200, "OK"},
        {301, "Moved Permanently"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {413, "Content Too Large"},
        {417, "Expectation Failed"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Unknown";
}

void kiln_in_reply_head(const struct kiln_in_reply *reply, bool keep_alive, struct kiln_buf *out)
{
    kiln_buf_printf(out, "HTTP/1.1 %d %s\r\n", reply->status, reason_of(reply->status));
    kiln_buf_printf(out, "Content-Type: %s\r\n", reply->type);
    kiln_buf_puts(out, "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n");
    if (reply->file[0])
        kiln_buf_printf(out, "Content-Disposition: attachment; filename=\"%s\"\r\n", reply->file);
    if (reply->failed)
        kiln_buf_puts(out, "X-Go-Pprof: 1\r\n");
    if (reply->location)
        kiln_buf_printf(out, "Location: %s\r\n", reply->location);
    if (reply->allow)
        kiln_buf_printf(out, "Allow: %s\r\n", reply->allow);
    if (reply->status == 401)
        kiln_buf_puts(out, "WWW-Authenticate: Bearer, Basic realm=\"pprof\"\r\n");
    if (reply->status == 503)
        kiln_buf_puts(out, "Retry-After: 1\r\n");
    if (!keep_alive)
        kiln_buf_puts(out, "Connection: close\r\n");
    kiln_buf_printf(out, "Content-Length: %zu\r\n\r\n", reply->body.len);
}
