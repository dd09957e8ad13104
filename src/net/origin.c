/* SPDX-License-Identifier: Apache-2.0 */
#include "net/origin.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

enum { NAME_MAX_BYTES = 253 };

static bool is_same(struct kiln_str a, struct kiln_str b)
{
    return a.len == b.len && (a.len == 0 || strncasecmp(a.ptr, b.ptr, a.len) == 0);
}

/* ---- Host ---- */

static bool is_port(struct kiln_str text)
{
    uint64_t port;

    return !text.ptr || text.len == 0 ||
           (text.ptr[0] >= '0' && text.ptr[0] <= '9' && kiln_str_parse_u64(text, &port) == 0 &&
            port <= UINT16_MAX);
}

static bool is_address(struct kiln_str host, int family)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;

    if (host.len == 0 || host.len >= sizeof(text) || memchr(host.ptr, 0, host.len))
        return false;
    memcpy(text, host.ptr, host.len);
    text[host.len] = '\0';
    return inet_pton(family, text, &address) == 1;
}

/* "[::1]:4040" */
static bool is_bracketed_address(struct kiln_str host)
{
    struct kiln_str rest = {host.ptr + 1, host.len - 1};
    struct kiln_str address = kiln_str_cut(&rest, ']');

    if (!rest.ptr || !is_address(address, AF_INET6))
        return false;
    if (rest.len && rest.ptr[0] != ':')
        return false;
    return rest.len == 0 || is_port((struct kiln_str){rest.ptr + 1, rest.len - 1});
}

static bool is_localhost(struct kiln_str name)
{
    const struct kiln_str below = KILN_STR(".localhost");

    if (name.len > below.len &&
        is_same((struct kiln_str){name.ptr + name.len - below.len, below.len}, below))
        return true;
    return is_same(name, KILN_STR("localhost"));
}

/* "name." is the absolute form of "name". */
static struct kiln_str without_dot(struct kiln_str name)
{
    if (name.len > 1 && name.ptr[name.len - 1] == '.')
        name.len--;
    return name;
}

static bool is_configured(const struct kiln_origin_policy *policy, struct kiln_str name)
{
    for (uint32_t i = 0; i < policy->n_host_names; i++)
        if (is_same(name, without_dot(kiln_str_of(policy->host_names[i]))))
            return true;
    return false;
}

static bool is_accepted(const struct kiln_origin_policy *policy, struct kiln_str host)
{
    struct kiln_str name;

    if (host.len == 0)
        return true;
    if (host.ptr[0] == '[')
        return is_bracketed_address(host);
    name = without_dot(kiln_str_cut(&host, ':'));
    return is_port(host) &&
           (is_localhost(name) || is_address(name, AF_INET) || is_configured(policy, name));
}

/* HTTP/2 may have two: :authority and host. */
static bool has_accepted_host(const struct kiln_origin_policy *policy,
                              const struct kiln_request *request)
{
    for (uint32_t i = 0; i < request->n_headers; i++)
        if (kiln_str_eq(request->headers[i].name, KILN_STR("host")) &&
            !is_accepted(policy, request->headers[i].value))
            return false;
    return true;
}

bool kiln_origin_name_valid(struct kiln_str name)
{
    if (name.len == 0 || name.len > NAME_MAX_BYTES || name.ptr[0] == '.')
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i], letter = (char)(c | 0x20);

        if (!(letter >= 'a' && letter <= 'z') && !(c >= '0' && c <= '9') && c != '-' && c != '_' &&
            c != '.')
            return false;
    }
    return true;
}

/* ---- Origin, Sec-Fetch-Site ---- */

static bool is_of_host(const struct kiln_request *request, struct kiln_str origin)
{
    if (kiln_str_starts(origin, KILN_STR("http://")))
        origin = (struct kiln_str){origin.ptr + 7, origin.len - 7};
    else if (kiln_str_starts(origin, KILN_STR("https://")))
        origin = (struct kiln_str){origin.ptr + 8, origin.len - 8};
    return kiln_str_eq(origin, kiln_request_header(request, "host"));
}

bool kiln_origin_is_foreign(const struct kiln_request *request)
{
    struct kiln_str origin = kiln_request_header(request, "origin");
    struct kiln_str site = kiln_request_header(request, "sec-fetch-site");

    if (site.len && !kiln_str_eq(site, KILN_STR("same-origin")) &&
        !kiln_str_eq(site, KILN_STR("none")))
        return true;
    return origin.len && !is_of_host(request, origin);
}

static bool only_reads(const struct kiln_request *request)
{
    return kiln_str_eq(request->method, KILN_STR("GET")) ||
           kiln_str_eq(request->method, KILN_STR("HEAD"));
}

static bool is_from_program(const struct kiln_request *request)
{
    return !only_reads(request) && !kiln_request_header(request, "origin").ptr &&
           !kiln_request_header(request, "sec-fetch-site").ptr;
}

static bool opens_page(const struct kiln_request *request, enum kiln_access access)
{
    return access == KILN_ACCESS_NONE && only_reads(request) &&
           kiln_str_eq(kiln_request_header(request, "sec-fetch-mode"), KILN_STR("navigate")) &&
           kiln_str_eq(kiln_request_header(request, "sec-fetch-dest"), KILN_STR("document"));
}

/* ---- both ---- */

/* Browsers cannot connect to one, and its clients send any name, or its path, as Host. */
static bool is_from_unix_socket(const struct kiln_request *request)
{
    return request->peer.local || strcmp(request->peer.address, "unix") == 0;
}

enum kiln_origin_verdict kiln_origin_check(const struct kiln_origin_policy *policy,
                                           const struct kiln_request *request,
                                           enum kiln_access access)
{
    bool program_writes =
        policy->programs_write && access == KILN_ACCESS_WRITE && is_from_program(request);

    if (!policy->any_host && !is_from_unix_socket(request) && !program_writes &&
        !has_accepted_host(policy, request))
        return KILN_ORIGIN_HOST;
    if (kiln_origin_is_foreign(request) && !opens_page(request, access))
        return KILN_ORIGIN_CROSS_SITE;
    return KILN_ORIGIN_OK;
}

int kiln_origin_admit(const struct kiln_origin_policy *policy, const struct kiln_request *request,
                      enum kiln_access access, struct kiln_reply *reply)
{
    enum kiln_origin_verdict verdict = kiln_origin_check(policy, request, access);

    if (verdict == KILN_ORIGIN_OK)
        return 0;
    reply->content_type = "text/plain; charset=utf-8";
    reply->status = KILN_ORIGIN_CROSS_SITE_STATUS;
    reply->body = KILN_STR(KILN_ORIGIN_CROSS_SITE_TEXT "\n");
    if (verdict == KILN_ORIGIN_HOST) {
        reply->status = KILN_ORIGIN_HOST_STATUS;
        reply->body = kiln_str_of(policy->host_text);
    }
    return -EACCES;
}

static int check(void *context, struct kiln_request *request, enum kiln_access access,
                 struct kiln_reply *reply)
{
    return kiln_origin_admit(context, request, access, reply);
}

struct kiln_guard kiln_origin_guard(const struct kiln_origin_policy *policy)
{
    return (struct kiln_guard){.check = check, .context = (void *)policy};
}
