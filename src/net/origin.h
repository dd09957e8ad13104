/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin - protects a server from web pages of other sites (DNS rebinding, cross-site requests).
 *
 * A web page can make the browser send requests to a server on the same machine or network.
 * Browsers mark such requests as cross-site (Origin, Sec-Fetch-Site).  With DNS rebinding the
 * host name of the page resolves to the address of the server: the browser then takes page and
 * server for one site, and only the header Host shows the foreign name.
 *
 * Accepted hosts are "localhost", names below ".localhost", every IP address, and configured
 * names; the port does not matter.  An IP address is safe: DNS cannot change what it means, so the
 * page that a browser shows for it came from that address.  A request without Host is accepted,
 * because browsers send Host with every request.  Unix sockets have no host names.
 *
 * Threads: pure functions; a policy is constant while a guard uses it.
 */
#ifndef KILN_NET_ORIGIN_H
#define KILN_NET_ORIGIN_H

#include "net/server.h"

struct kiln_origin_policy {
    const char *const *host_names; /* beside localhost and IP addresses */
    uint32_t n_host_names;
    const char *host_text; /* of the refusal, a line */
    bool any_host;         /* the requests are authenticated: Host is not checked */
    /* Programs may write under any host name: a request to a route for writing that has neither
     * Origin nor Sec-Fetch-Site.  Browsers add Origin to all but GET and HEAD. */
    bool programs_write;
};

enum kiln_origin_verdict { KILN_ORIGIN_OK, KILN_ORIGIN_HOST, KILN_ORIGIN_CROSS_SITE };

#define KILN_ORIGIN_HOST_STATUS 421
#define KILN_ORIGIN_HOST_TEXT                                                                      \
    "without tokens, requests are accepted only for localhost, IP addresses and the names in "     \
    "server.host_names (--host-names, KILN_HOST_NAMES): add the host name of this request there"
#define KILN_ORIGIN_CROSS_SITE_STATUS 403
#define KILN_ORIGIN_CROSS_SITE_TEXT   "a page of another site may not do this"

/*
 * Checks Host, Origin and Sec-Fetch-Site.  Of what other sites cause, only one thing is accepted:
 * opening a page (a route of KILN_ACCESS_NONE) in a tab of its own, by a link.
 */
enum kiln_origin_verdict kiln_origin_check(const struct kiln_origin_policy *policy,
                                           const struct kiln_request *request,
                                           enum kiln_access access);

/* True if the request comes from a page of another origin, or the browser says so. */
bool kiln_origin_is_foreign(const struct kiln_request *request);

/* True if it can stand in `host_names`: letters, digits, "-", "_" and "."; no port, no scheme. */
bool kiln_origin_name_valid(struct kiln_str name);

/* The same for a guard: 0, or -EACCES with the refusal in `reply`. */
KILN_CHECK int kiln_origin_admit(const struct kiln_origin_policy *policy,
                                 const struct kiln_request *request, enum kiln_access access,
                                 struct kiln_reply *reply);

/* For routers without authentication.  `policy` is borrowed. */
struct kiln_guard kiln_origin_guard(const struct kiln_origin_policy *policy);

#endif /* KILN_NET_ORIGIN_H */
