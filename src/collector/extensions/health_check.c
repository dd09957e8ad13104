/* SPDX-License-Identifier: Apache-2.0 */
/* Whether all components run: 200 from when they have started until they are told to stop. */
#include <errno.h>

#include "base/mem.h"
#include "collector/door.h"
#include "collector/graph.h"
#include "collector/registry.h"

struct health_settings {
    struct kiln_listen_settings listen;
    const char *path;
    const struct kiln_node *response_body, *check_collector_pipeline;
    const char *healthy, *unhealthy;
};

struct health {
    struct kiln_component component; /* first */
    const struct health_settings *settings;
    const struct kiln_graph *graph;
    struct kiln_door door;
};

static void tell(struct kiln_request *request)
{
    const struct health *health = request->context;
    bool ready = health->graph && kiln_graph_is_running(health->graph);
    const char *text = ready ? health->settings->healthy : health->settings->unhealthy;
    struct kiln_reply reply = {.status = ready ? 200 : 503, .content_type = "application/json"};

    if (text)
        reply.content_type = "text/plain; charset=utf-8";
    else
        text = ready ? "{\"status\":\"Server available\"}\n"
                     : "{\"status\":\"Server not available\"}\n";
    reply.body = kiln_str_of(text);
    kiln_request_reply(request, &reply);
}

static int start(struct kiln_component *component, struct kiln_err *err)
{
    return kiln_door_start(&((struct health *)component)->door, err);
}

static void stop(struct kiln_component *component, uint64_t deadline_ns)
{
    kiln_door_stop(&((struct health *)component)->door, deadline_ns);
}

static void destroy(struct kiln_component *component)
{
    kiln_door_done(&((struct health *)component)->door);
    kiln_free(component);
}

static int make(const struct kiln_component_env *env, const void *settings,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {.start = start, .stop = stop, .free = destroy};
    struct health *health = kiln_calloc(1, sizeof(*health));
    struct kiln_route route = {
        .method = "GET", .access = KILN_ACCESS_READ, .handler = tell, .context = health};
    int r;

    if (!health)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    health->component.ops = &ops;
    health->settings = settings;
    health->graph = env->graph;
    route.path = health->settings->path;
    r = kiln_door_make(&health->door, env, KILN_EXTENSION, &health->settings->listen, err);
    if (r == 0 && kiln_router_add(kiln_listen_router(health->door.listen), &route) < 0)
        r = kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    if (r < 0) {
        destroy(&health->component);
        return r;
    }
    *ret_component = &health->component;
    return 0;
}

static int read(const struct kiln_node *node, void *settings, struct kiln_err *err)
{
#define FIELD(key, kind, member)                                                                   \
    {                                                                                              \
        key, KILN_FIELD_##kind, offsetof(struct health_settings, member)                           \
    }
    static const struct kiln_field own[] = {
        FIELD("path", TEXT, path), FIELD("response_body", MAP, response_body),
        FIELD("check_collector_pipeline", MAP, check_collector_pipeline)};
    static const struct kiln_field body[] = {FIELD("healthy", TEXT, healthy),
                                             FIELD("unhealthy", TEXT, unhealthy)};
#undef FIELD
    struct health_settings *s = settings;
    int r;

    *s = (struct health_settings){.listen.endpoint = "localhost:13133", .path = "/"};
    r = kiln_listen_read_http(node, own, KILN_ARRAY_LEN(own), s, &s->listen, err);
    if (r == 0)
        r = kiln_node_read(s->response_body, body, KILN_ARRAY_LEN(body), s, err);
    if (r == 0 && s->path[0] != '/')
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "path: must start with /");
    return r;
}

const struct kiln_component_type kiln_health_check_extension_type = {
    .name = "health_check",
    .aliases = "healthcheck",
    .kind = KILN_EXTENSION,
    .signals = KILN_TAKES_ALL,
    .stability = "beta",
    .settings_size = sizeof(struct health_settings),
    .read = read,
    .make = make,
};
