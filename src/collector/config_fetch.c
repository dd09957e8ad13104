/* SPDX-License-Identifier: Apache-2.0 */
/* A source of a configuration that another host has. */
#include <errno.h>
#include <stdio.h>

#include "collector/config_int.h"
#include "net/client.h"

enum { URL_MAX = 2048, TIMEOUT_MS = 30000 };

static int get(const char *server, const char *path, struct kiln_answer *answer,
               struct kiln_err *err)
{
    const struct kiln_client_opts opts = {
        .server = server, .timeout_ms = TIMEOUT_MS, .answer_max = KILN_CONFIG_MAX};
    struct kiln_client *client;
    int r = kiln_client_new(&opts, &client, err);

    if (r < 0)
        return r;
    r = kiln_client_call(client, &(struct kiln_call){.method = "GET", .path = path}, answer, err);
    kiln_client_free(client);
    if (r == 0 && answer->status != 200)
        r = kiln_err_set(err, -EPROTO, NULL, "HTTP status %d", answer->status);
    return r;
}

int kiln_location_fetch(struct kiln_str url, struct kiln_answer *answer, struct kiln_err *err)
{
    size_t host = sizeof("https://") - 1; /* what is shorter by one has a slash there */
    char server[URL_MAX], path[URL_MAX];

    while (host < url.len && url.ptr[host] != '/' && url.ptr[host] != '?')
        host++;
    if (url.len >= URL_MAX)
        return kiln_err_set(err, KILN_E_LIMIT, NULL, "the address is too long");
    if (memchr(url.ptr, '@', host))
        return kiln_err_set(err, KILN_E_UNSUPPORTED, NULL, "names and passwords cannot be sent");
    snprintf(server, sizeof(server), "%.*s", (int)host, url.ptr);
    snprintf(path, sizeof(path), "%s%.*s", host < url.len && url.ptr[host] == '/' ? "" : "/",
             (int)(url.len - host), url.ptr + host);
    return get(server, path, answer, err);
}
