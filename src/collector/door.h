/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door - a server with one listener of HTTP, as the settings of a component want it: what most
 * receivers and extensions that listen are made of.
 *
 * Threads: those of net/server.h.
 */
#ifndef KILN_COLLECTOR_DOOR_H
#define KILN_COLLECTOR_DOOR_H

#include "collector/listen.h"
#include "pipeline/receivers.h"

struct kiln_door {
    uint32_t long_workers; /* set before it is made, where answers take their time; 0: one */
    struct kiln_server *server;
    struct kiln_listen *listen;
    struct kiln_receivers *receivers; /* of a receiver; NULL: it has none */
};

/*
 * Makes all of it but the routes, which go to kiln_listen_router(door->listen).  Receivers hand
 * profiles to env->next.  Where it fails, kiln_door_done() is still to be called.
 */
KILN_CHECK int kiln_door_make(struct kiln_door *door, const struct kiln_component_env *env,
                              enum kiln_component_kind kind,
                              const struct kiln_listen_settings *settings, struct kiln_err *err);
KILN_CHECK int kiln_door_start(struct kiln_door *door, struct kiln_err *err);
void kiln_door_stop(struct kiln_door *door, uint64_t deadline_ns);
void kiln_door_done(struct kiln_door *door);

#endif /* KILN_COLLECTOR_DOOR_H */
