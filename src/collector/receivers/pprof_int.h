/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof_int - the ways in of the pprof receiver, each a component of its own:
 *
 *   pprof.c         server, scrape_configs; and all of them together
 *   pprof_file.c    file
 *   pprof_remote.c  remote
 *   pprof_self.c    self
 *
 * `make` may be given a component that `read` has filled the settings of, as component.h says.
 */
#ifndef KILN_COLLECTOR_RECEIVERS_PPROF_INT_H
#define KILN_COLLECTOR_RECEIVERS_PPROF_INT_H

#include "collector/receivers/poller.h"
#include "collector/settings.h"

struct kiln_pprof_file_settings {
    struct kiln_poll_settings poll;
    const struct kiln_node *include;
};
KILN_CHECK int kiln_pprof_file_read(const struct kiln_node *node,
                                    struct kiln_pprof_file_settings *ret, struct kiln_err *err);
/* `before` is the one whose place it takes; NULL: none's. */
KILN_CHECK int kiln_pprof_file_make(const struct kiln_component_env *env,
                                    const struct kiln_pprof_file_settings *settings,
                                    const struct kiln_component *before,
                                    struct kiln_component **ret_component, struct kiln_err *err);

struct kiln_pprof_remote_settings {
    struct kiln_poll_settings poll;
    const char *endpoint;
    const struct kiln_node *unused;
    struct kiln_client_settings client;
};
KILN_CHECK int kiln_pprof_remote_read(const struct kiln_node *node,
                                      struct kiln_pprof_remote_settings *ret, struct kiln_err *err);
KILN_CHECK int kiln_pprof_remote_make(const struct kiln_component_env *env,
                                      const struct kiln_pprof_remote_settings *settings,
                                      struct kiln_component **ret_component, struct kiln_err *err);

struct kiln_pprof_self_settings {
    struct kiln_poll_settings poll;
    const struct kiln_node *unused;
};
KILN_CHECK int kiln_pprof_self_read(const struct kiln_node *node,
                                    struct kiln_pprof_self_settings *ret, struct kiln_err *err);
KILN_CHECK int kiln_pprof_self_make(const struct kiln_component_env *env,
                                    const struct kiln_pprof_self_settings *settings,
                                    struct kiln_component **ret_component, struct kiln_err *err);

#endif /* KILN_COLLECTOR_RECEIVERS_PPROF_INT_H */
