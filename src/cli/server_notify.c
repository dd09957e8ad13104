/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says "ready" to tests and scripts, through a file.
 */
#include "cli/ready.h"
#include "cli/serve.h"

int kiln_serve_say_ready(const struct kiln_serve *serve, struct kiln_err *err)
{
    struct kiln_ready ready;

    kiln_ready_begin(&ready);
    kiln_json_put_name(&ready.w, "http");
    kiln_json_put_u64(&ready.w, serve->ports.http);
    kiln_json_put_name(&ready.w, "otlp_grpc");
    kiln_json_put_u64(&ready.w, serve->ports.otlp_grpc);
    kiln_json_put_name(&ready.w, "otlp_http");
    kiln_json_put_u64(&ready.w, serve->ports.otlp_http);
    if (serve->socket_on) {
        kiln_json_put_name(&ready.w, "socket");
        kiln_json_put_str(&ready.w, kiln_str_of(serve->config->set.socket));
    }
    return kiln_ready_end(&ready, serve->config->set.ready_file, err);
}
