/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/door.h"

#include <errno.h>

#include "net/rpc.h"

static int make_receivers(struct kiln_door *door, const struct kiln_component_env *env,
                          const struct kiln_listen_settings *settings)
{
    struct kiln_receivers_opts opts = {.next = env->next[KILN_SIGNAL_PROFILES],
                                       .pipelines = true,
                                       .pool = env->pool,
                                       .waits = true,
                                       .include_metadata = settings->include_metadata,
                                       .authenticated = settings->authenticator != NULL,
                                       .content_max = settings->body_max,
                                       .metrics = env->metrics,
                                       .log = env->log};

    return kiln_receivers_new(&opts, &door->receivers);
}

int kiln_door_make(struct kiln_door *door, const struct kiln_component_env *env,
                   enum kiln_component_kind kind, const struct kiln_listen_settings *settings,
                   struct kiln_err *err)
{
    bool receives = kind == KILN_RECEIVER;
    struct kiln_server_opts opts = {.workers = receives ? 0 : 1,
                                    .long_workers = door->long_workers ? door->long_workers : 1,
                                    .body_max = settings->body_max,
                                    .pool = env->pool,
                                    .waits = receives,
                                    .metrics = env->metrics,
                                    .log = env->log};
    int r = kiln_listen_new(env, kind, settings, &door->listen, err);

    if (r < 0)
        return r;
    kiln_listen_server_opts(settings, &opts);
    r = kiln_server_new(&opts, &door->server);
    if (r == 0 && receives)
        r = make_receivers(door, env, settings);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    kiln_router_fallback(kiln_listen_router(door->listen), kiln_rpc_unknown, NULL);
    return 0;
}

int kiln_door_start(struct kiln_door *door, struct kiln_err *err)
{
    int r = kiln_listen_on(door->listen, door->server, "", err);

    return r < 0 ? r : kiln_server_start(door->server, err);
}

void kiln_door_stop(struct kiln_door *door, uint64_t deadline_ns)
{
    kiln_server_stop(door->server, kiln_listen_ms_left(deadline_ns));
}

void kiln_door_done(struct kiln_door *door)
{
    kiln_server_free(door->server);
    kiln_listen_free(door->listen);
    kiln_receivers_free(door->receivers);
}
