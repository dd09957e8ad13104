/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One block of memory holds the head of a request, which stays where it is, and behind it a window
 * through which the body passes into a buffer of its own:
 *
 *   | head .............. | window |
 *   0                  head       len
 *
 * The target is a path, or a whole address, which clients of proxies send; its host means nothing
 * here.
 */
#include <errno.h>

#include "base/err.h"
#include "base/mem.h"
#include "inproc/pprof/reader.h"

int kiln_in_reader_init(struct kiln_in_reader *reader)
{
    *reader = (struct kiln_in_reader){.bytes = kiln_malloc(KILN_IN_READER_BYTES)};
    kiln_buf_init(&reader->body, KILN_IN_BODY_BYTES);
    return reader->bytes ? 0 : -ENOMEM;
}

void kiln_in_reader_done(struct kiln_in_reader *reader)
{
    kiln_free(reader->bytes);
    kiln_buf_done(&reader->body);
}

char *kiln_in_reader_room(struct kiln_in_reader *reader, size_t *ret_n)
{
    *ret_n = KILN_IN_READER_BYTES - reader->len;
    return reader->bytes + reader->len;
}

static void read_target(struct kiln_str target, struct kiln_in_request *request)
{
    if (kiln_str_starts(target, KILN_STR("http://"))) {
        const char *slash = memchr(target.ptr + 7, '/', target.len - 7);

        target = slash ? (struct kiln_str){slash, (size_t)(target.ptr + target.len - slash)}
                       : KILN_STR("/");
    }
    request->query = target;
    request->path = kiln_str_cut(&request->query, '?');
}

/* 0 or a status. */
static int read_head(struct kiln_in_reader *reader)
{
    struct kiln_http_head head;
    int status = kiln_http1_parse_head(reader->bytes, reader->head, &head);

    if (status)
        return status;
    reader->request = (struct kiln_in_request){.method = head.method};
    read_target(head.target, &reader->request);
    for (uint32_t i = 0; i < head.n_headers; i++)
        if (kiln_str_eq(head.headers[i].name, KILN_STR("authorization")))
            reader->request.authorization = head.headers[i].value;
    reader->keep_alive = head.keep_alive;
    reader->expect = head.expect;
    kiln_http1_body_init(&reader->framing, &head);
    reader->request.has_body = reader->framing.state != KILN_BODY_DONE;
    return head.length > KILN_IN_BODY_BYTES ? 413 : 0;
}

static int look_for_head(struct kiln_in_reader *reader)
{
    struct kiln_str seen = {reader->bytes, reader->len};
    int64_t end = kiln_http1_find_end(&reader->scan, seen);
    int status;

    if (end < 0)
        return 400;
    if (end > KILN_IN_HEAD_BYTES || (end == 0 && reader->len >= KILN_IN_HEAD_BYTES))
        return 431;
    if (end == 0)
        return KILN_IN_READ_MORE;
    reader->head = (size_t)end;
    status = read_head(reader);
    return status ? status : KILN_IN_READ_HEAD;
}

static void drop_window(struct kiln_in_reader *reader, size_t n)
{
    memmove(reader->bytes + reader->head, reader->bytes + reader->head + n,
            reader->len - reader->head - n);
    reader->len -= n;
}

static int read_body(struct kiln_in_reader *reader)
{
    struct kiln_str in = {reader->bytes + reader->head, reader->len - reader->head}, piece;
    int r = reader->framing.state != KILN_BODY_DONE;

    while (in.len && r > 0) {
        r = kiln_http1_body_next(&reader->framing, &in, &piece);
        if (r >= 0)
            kiln_buf_add_str(&reader->body, piece);
    }
    if (r < 0)
        return r == KILN_E_LIMIT ? 431 : 400;
    if (reader->body.error)
        return reader->body.error == KILN_E_LIMIT ? 413 : 503;
    drop_window(reader, reader->len - reader->head - in.len);
    if (r > 0)
        return KILN_IN_READ_MORE;
    reader->request.body = kiln_buf_str(&reader->body);
    return KILN_IN_READ_WHOLE;
}

int kiln_in_reader_took(struct kiln_in_reader *reader, size_t n)
{
    reader->len += n;
    return reader->head ? read_body(reader) : look_for_head(reader);
}

int kiln_in_reader_next(struct kiln_in_reader *reader)
{
    memmove(reader->bytes, reader->bytes + reader->head, reader->len - reader->head);
    reader->len -= reader->head;
    reader->head = 0;
    reader->scan = (struct kiln_http1_scan){0};
    kiln_buf_done(&reader->body);
    kiln_buf_init(&reader->body, KILN_IN_BODY_BYTES);
    return reader->len ? look_for_head(reader) : KILN_IN_READ_MORE;
}
