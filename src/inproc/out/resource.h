/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resource - who this process is, as attributes of OpenTelemetry's resource.
 *
 * What is stated (options, OTEL_RESOURCE_ATTRIBUTES) counts most; then variables that builds and
 * deployments set by custom (GIT_COMMIT, DEPLOYMENT_ID...); then what can be seen:
 *
 *   service.*, git.*, deployment.environment, deployment_id     who made it, and where it runs
 *   process.*, runtime.version                                  which process
 *   host.*, os.type                                             which machine
 *   telemetry.sdk.*                                             who says so
 *
 * Threads: constant once made.
 */
#ifndef KILN_INPROC_OUT_RESOURCE_H
#define KILN_INPROC_OUT_RESOURCE_H

#include <kiln.h>

#include "base/arena.h"
#include "core/builder.h"

enum { KILN_IN_RESOURCE_MAX = 128, KILN_IN_RESOURCE_VALUE_MAX = 4096 };

struct kiln_in_resource {
    struct {
        struct kiln_str key, value;
    } attributes[KILN_IN_RESOURCE_MAX];
    uint32_t n;
    struct kiln_budget budget;
    struct kiln_arena arena;
};

/* What is stated, and who is asked for variables: getenv(), or a test.  `resource` stays where it
 * is; done also after a failure. */
KILN_CHECK int kiln_in_resource_init(struct kiln_in_resource *resource,
                                     const struct kiln_attribute *stated, uint32_t n_stated,
                                     const char *(*variable)(const char *name));
void kiln_in_resource_done(struct kiln_in_resource *resource);

/* The value of a key; empty: it has none. */
struct kiln_str kiln_in_resource_get(const struct kiln_in_resource *resource, const char *key);

/* All of them, as a set of a builder's. */
uint32_t kiln_in_resource_set(const struct kiln_in_resource *resource, struct kiln_builder *b);

#endif /* KILN_INPROC_OUT_RESOURCE_H */
