/* SPDX-License-Identifier: Apache-2.0 */
/* What Pyroscope's agents and SDKs send: /ingest, and push.v1.PusherService. */
#include <errno.h>

#include "base/mem.h"
#include "collector/door.h"
#include "collector/registry.h"

#define BODY_MAX ((uint64_t)64 << 20)

struct pyroscope {
    struct kiln_component component; /* first */
    struct kiln_door door;
};

static int read(const struct kiln_node *node, void *settings, struct kiln_err *err)
{
    struct kiln_listen_settings *s = settings;

    *s = (struct kiln_listen_settings){.endpoint = "localhost:4040", .body_max = BODY_MAX};
    return kiln_listen_read_http(node, NULL, 0, NULL, s, err);
}

static int start(struct kiln_component *component, struct kiln_err *err)
{
    return kiln_door_start(&((struct pyroscope *)component)->door, err);
}

static void stop(struct kiln_component *component, uint64_t deadline_ns)
{
    kiln_door_stop(&((struct pyroscope *)component)->door, deadline_ns);
}

static void destroy(struct kiln_component *component)
{
    kiln_door_done(&((struct pyroscope *)component)->door);
    kiln_free(component);
}

static int make(const struct kiln_component_env *env, const void *settings,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {.start = start, .stop = stop, .free = destroy};
    struct pyroscope *p = kiln_calloc(1, sizeof(*p));
    int r;

    if (!p)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    p->component.ops = &ops;
    r = kiln_door_make(&p->door, env, KILN_RECEIVER, settings, err);
    if (r == 0 &&
        kiln_pyroscope_receiver_add(p->door.receivers, kiln_listen_router(p->door.listen)) < 0)
        r = kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    if (r < 0) {
        destroy(&p->component);
        return r;
    }
    *ret_component = &p->component;
    return 0;
}

const struct kiln_component_type kiln_pyroscope_receiver_type = {
    .name = "pyroscope",
    .kind = KILN_RECEIVER,
    .signals = KILN_TAKES_PROFILES,
    .stability = "beta",
    .settings_size = sizeof(struct kiln_listen_settings),
    .read = read,
    .make = make,
};
