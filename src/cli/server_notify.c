/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says "ready" to whoever waits for it: systemd through a datagram, tests and scripts through a
 * file.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/serve.h"

int kiln_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = path ? strlen(path) : 0;
    int fd, r = 0;

    if (len == 0)
        return 0;
    if (len >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, len);
    if (path[0] == '@')
        address.sun_path[0] = '\0'; /* a name that is no file */
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0)
        r = -errno;
    close(fd);
    return r;
}

int kiln_serve_say_ready(const struct kiln_serve *serve, struct kiln_err *err)
{
    struct kiln_json_out w;
    struct kiln_buf text;
    int r;

    if (!serve->config->set.ready_file)
        return 0;
    kiln_buf_init(&text, 1 << 16);
    kiln_json_out_init(&w, &text, 0);
    kiln_json_put_object(&w);
    kiln_json_put_name(&w, "pid");
    kiln_json_put_u64(&w, (uint64_t)getpid());
    kiln_json_put_name(&w, "http");
    kiln_json_put_u64(&w, serve->ports.http);
    kiln_json_put_name(&w, "otlp_grpc");
    kiln_json_put_u64(&w, serve->ports.otlp_grpc);
    kiln_json_put_name(&w, "otlp_http");
    kiln_json_put_u64(&w, serve->ports.otlp_http);
    if (serve->socket_on) {
        kiln_json_put_name(&w, "socket");
        kiln_json_put_str(&w, kiln_str_of(serve->config->set.socket));
    }
    kiln_json_end_object(&w);
    kiln_buf_putc(&text, '\n');
    r = text.error ? text.error
                   : kiln_file_write(serve->config->set.ready_file, kiln_buf_str(&text), err);
    kiln_buf_done(&text);
    return r;
}
