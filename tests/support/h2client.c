/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "h2client.h"
#include "test.h"

static struct h2_stream *find(struct h2_client *client, int32_t id)
{
    for (uint32_t i = 0; i < client->n_streams; i++)
        if (client->streams[i].id == id)
            return &client->streams[i];
    return NULL;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags, void *user)
{
    struct h2_stream *s = find(user, frame->hd.stream_id);
    size_t len = strlen(s->fields);

    (void)session, (void)flags;
    if (n_name == 7 && memcmp(name, ":status", 7) == 0)
        s->status = (int)strtol((const char *)value, NULL, 10);
    snprintf(s->fields + len, sizeof(s->fields) - len, "%.*s: %.*s\n", (int)n_name, name,
             (int)n_value, value);
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t len, void *user)
{
    (void)session, (void)flags;
    kiln_buf_add(&find(user, id)->body, data, len);
    return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *user)
{
    struct h2_stream *s = find(user, id);

    (void)session;
    if (s) {
        s->closed = true;
        s->error = error;
    }
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct h2_client *client = user;

    (void)session;
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        client->goaway = true;
        client->goaway_error = frame->goaway.error_code;
        snprintf(client->goaway_text, sizeof(client->goaway_text), "%.*s",
                 (int)frame->goaway.opaque_data_len, (const char *)frame->goaway.opaque_data);
    }
    if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK))
        client->n_pongs++;
    else if (frame->hd.type == NGHTTP2_PING)
        client->n_pings++;
    return 0;
}

void h2_open(struct h2_client *client, int fd, SSL *ssl)
{
    nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0};
    nghttp2_session_callbacks *callbacks;

    client->fd = fd;
    client->ssl = ssl;
    CHECK_OK(nghttp2_session_callbacks_new(&callbacks));
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    CHECK_OK(nghttp2_session_client_new(&client->session, callbacks, client));
    nghttp2_session_callbacks_del(callbacks);
    CHECK_OK(nghttp2_submit_settings(client->session, 0, &window, client->no_window ? 1 : 0));
    h2_flush(client);
}

void h2_done(struct h2_client *client)
{
    for (uint32_t i = 0; i < client->n_streams; i++)
        kiln_buf_done(&client->streams[i].body);
    nghttp2_session_del(client->session);
}

static ssize_t upload(nghttp2_session *session, int32_t id, uint8_t *out, size_t size,
                      uint32_t *flags, nghttp2_data_source *source, void *user)
{
    struct h2_stream *s = source->ptr;
    size_t n = s->upload.len - s->uploaded < size ? s->upload.len - s->uploaded : size;

    (void)session, (void)id, (void)user;
    if (n)
        memcpy(out, s->upload.ptr + s->uploaded, n);
    s->uploaded += n;
    if (s->uploaded < s->upload.len)
        return (ssize_t)n;
    if (s->endless)
        return n ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static nghttp2_nv nv(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value),
                        NGHTTP2_NV_FLAG_NONE};
}

struct h2_stream *h2_ask(struct h2_client *client, const char *method, const char *path,
                         const char *const *field, const struct kiln_str *body)
{
    struct h2_stream *s = &client->streams[client->n_streams++];
    nghttp2_nv fields[] = {nv(":method", method), nv(":scheme", "http"), nv(":path", path),
                           nv(":authority", "test"),
                           nv(field ? field[0] : "", field ? field[1] : "")};
    nghttp2_data_provider provider = {.source.ptr = s, .read_callback = upload};

    CHECK(client->n_streams <= H2_STREAMS);
    kiln_buf_init(&s->body, SIZE_MAX / 2);
    s->upload = body ? *body : KILN_STR_NONE;
    s->id = nghttp2_submit_request(client->session, NULL, fields, field ? 5 : 4,
                                   body ? &provider : NULL, NULL);
    CHECK(s->id > 0);
    return s;
}

static bool put(struct h2_client *client, const uint8_t *data, size_t len)
{
    while (len) {
        ssize_t n = client->ssl ? SSL_write(client->ssl, data, (int)len)
                                : send(client->fd, data, len, MSG_NOSIGNAL);

        if (n <= 0)
            return false;
        data += n;
        len -= (size_t)n;
    }
    return true;
}

void h2_flush(struct h2_client *client)
{
    const uint8_t *data;
    ssize_t n;

    while ((n = nghttp2_session_mem_send(client->session, &data)) > 0)
        if (!put(client, data, (size_t)n))
            return;
}

void h2_step(struct h2_client *client)
{
    uint8_t in[16384];
    ssize_t n;

    h2_flush(client);
    n = client->ssl ? SSL_read(client->ssl, in, sizeof(in)) : recv(client->fd, in, sizeof(in), 0);
    if (n <= 0 || nghttp2_session_mem_recv(client->session, in, (size_t)n) < 0)
        client->ended = true;
    h2_flush(client);
}

void h2_wait(struct h2_client *client, const struct h2_stream *stream)
{
    while (!stream->closed && !client->ended)
        h2_step(client);
}

void h2_wait_goaway(struct h2_client *client)
{
    while (!client->goaway && !client->ended)
        h2_step(client);
}

void h2_wait_pong(struct h2_client *client)
{
    uint32_t n = client->n_pongs;

    while (client->n_pongs == n && !client->ended)
        h2_step(client);
}

void h2_wait_end(struct h2_client *client)
{
    while (!client->ended)
        h2_step(client);
}
