/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says "ready" to tests and scripts, through a file.
 */
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/serve.h"

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
