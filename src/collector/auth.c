/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/auth.h"

#include "collector/graph.h"
#include "collector/registry.h"

static const struct kiln_component_type *const types[] = {
    &kiln_basicauth_extension_type,
    &kiln_bearertokenauth_extension_type,
};

static struct kiln_auth *find(const struct kiln_graph *graph, const char *id)
{
    struct kiln_component *component = NULL;

    for (size_t i = 0; !component && i < KILN_ARRAY_LEN(types); i++)
        component = kiln_graph_extension(graph, id, types[i]);
    return (struct kiln_auth *)component;
}

int kiln_auth_find(const struct kiln_graph *graph, const char *id, enum kiln_auth_side side,
                   struct kiln_auth **ret_auth, struct kiln_err *err)
{
    *ret_auth = NULL;
    if (!id)
        return 0;
    *ret_auth = graph ? find(graph, id) : NULL;
    if (!*ret_auth)
        return kiln_err_set(err, KILN_E_MALFORMED, "auth",
                            "failed to resolve authenticator \"%.60s\": it is no extension that "
                            "authenticates and is named in service::extensions",
                            id);
    if (side == KILN_AUTH_SERVER ? !(*ret_auth)->ops->check : !(*ret_auth)->ops->header)
        return kiln_err_set(err, KILN_E_MALFORMED, "auth", "\"%.60s\" is for %s", id,
                            side == KILN_AUTH_SERVER ? "exporters: it has client_auth"
                                                     : "receivers: it has no client_auth");
    return 0;
}

static int ask(struct kiln_auth *auth, const struct kiln_request *request, bool patient,
               struct kiln_reply *reply)
{
    const char *why = "";
    enum kiln_verdict verdict = auth->ops->check(auth, request, patient, &why);

    if (verdict == KILN_AUTH_YES)
        return 0;
    if (verdict == KILN_AUTH_UNSURE)
        return KILN_GUARD_LATER;
    reply->status = 401;
    reply->content_type = "text/plain; charset=utf-8";
    reply->body = kiln_str_of(why);
    reply->headers[reply->n_headers++] =
        (struct kiln_header){KILN_STR("www-authenticate"), kiln_str_of(auth->ops->challenge)};
    return -1;
}

static int check(void *context, struct kiln_request *request, enum kiln_access access,
                 struct kiln_reply *reply)
{
    return access == KILN_ACCESS_NONE ? 0 : ask(context, request, false, reply);
}

static int check_late(void *context, struct kiln_request *request, enum kiln_access access,
                      struct kiln_reply *reply)
{
    (void)access; /* it is one that is asked for */
    return ask(context, request, true, reply);
}

struct kiln_guard kiln_auth_guard(struct kiln_auth *auth)
{
    return (struct kiln_guard){.check = check, .context = auth, .late = check_late};
}

static int header(void *context, struct kiln_buf *name, struct kiln_buf *value,
                  struct kiln_err *err)
{
    struct kiln_auth *auth = context;

    return auth->ops->header(auth, name, value, err);
}

struct kiln_credential kiln_auth_credential(struct kiln_auth *auth)
{
    return (struct kiln_credential){.header = header, .context = auth};
}
