/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sending - what exporters that send have in common: the blocks `sending_queue` and
 * `retry_on_failure`, and the component that a queue (pipeline/exporters/queue.h) is.
 *
 * Threads: as component.h.
 */
#ifndef KILN_COLLECTOR_EXPORTERS_SENDING_H
#define KILN_COLLECTOR_EXPORTERS_SENDING_H

#include "collector/component.h"
#include "pipeline/exporters/queue.h"

struct kiln_sending_settings {
    const struct kiln_node *queue_node, *retry_node; /* the two blocks; NULL: not there */
    struct kiln_sendq_opts queue;                    /* but what the component's environment says */
    const char *storage;                             /* the id of an extension; NULL: in memory */
};

/* Fills `queue` and `storage` from the two blocks. */
KILN_CHECK int kiln_sending_read(struct kiln_sending_settings *settings, struct kiln_err *err);

/* A component of a queue before `sender`, which it takes, also where it fails. */
KILN_CHECK int kiln_sending_make(const struct kiln_component_env *env,
                                 const struct kiln_sending_settings *settings,
                                 struct kiln_sender *sender, struct kiln_component **ret_component,
                                 struct kiln_err *err);

#endif /* KILN_COLLECTOR_EXPORTERS_SENDING_H */
