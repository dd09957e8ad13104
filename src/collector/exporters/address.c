/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/exporters/address.h"

#define ADDRESS_MAX 4096u

void kiln_address_init(struct kiln_address *address)
{
    kiln_buf_init(&address->server, ADDRESS_MAX);
    kiln_buf_init(&address->path, ADDRESS_MAX);
}

void kiln_address_done(struct kiln_address *address)
{
    kiln_buf_done(&address->server);
    kiln_buf_done(&address->path);
}

static bool cut_off(struct kiln_str *text, const char *front)
{
    if (!kiln_str_starts(*text, kiln_str_of(front)))
        return false;
    text->ptr += strlen(front);
    text->len -= strlen(front);
    return true;
}

/* "dns://authority/host:port" and "dns:host:port": names are looked up by the system. */
static void strip_resolver(struct kiln_str *text)
{
    if (cut_off(text, "dns://"))
        kiln_str_cut(text, '/');
    cut_off(text, "dns:");
    cut_off(text, "passthrough:///");
}

/* What it begins with, also where it is not said. */
static const char *take_scheme(struct kiln_str *text, bool tls)
{
    if (cut_off(text, "http://"))
        return "http://";
    return cut_off(text, "https://") || tls ? "https://" : "http://";
}

int kiln_address_split(const char *endpoint, bool tls, const char *behind, struct kiln_address *ret)
{
    struct kiln_str rest = kiln_str_trim(kiln_str_of(endpoint));
    const char *scheme;
    size_t host = 0;

    strip_resolver(&rest);
    scheme = take_scheme(&rest, tls);
    if (cut_off(&rest, "unix:")) {
        cut_off(&rest, "//");
        kiln_buf_puts(&ret->server, "unix:");
        host = rest.len;
    } else {
        kiln_buf_puts(&ret->server, scheme);
        while (host < rest.len && rest.ptr[host] != '/' && rest.ptr[host] != '?')
            host++;
    }
    kiln_buf_add(&ret->server, rest.ptr, host);
    while (behind && rest.len > host && rest.ptr[rest.len - 1] == '/')
        rest.len--;
    kiln_buf_add(&ret->path, rest.ptr + host, rest.len - host);
    kiln_buf_puts(&ret->path, behind ? behind : rest.len > host ? "" : "/");
    kiln_buf_putc(&ret->server, '\0');
    kiln_buf_putc(&ret->path, '\0');
    return ret->server.error ? ret->server.error : ret->path.error;
}
