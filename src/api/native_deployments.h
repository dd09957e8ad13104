/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_deployments - when which version of a service began to run, for whoever compares them.
 *
 * Threads: as native_int.h.
 */
#ifndef KILN_API_NATIVE_DEPLOYMENTS_H
#define KILN_API_NATIVE_DEPLOYMENTS_H

#include "api/native_int.h"
#include "query/deployments.h"

/* All of the caller's tenants (and of `service`, where it was said), found and told. */
KILN_CHECK int kiln_native_deployments(struct kiln_native_call *call,
                                       struct kiln_deployments **ret);

#endif /* KILN_API_NATIVE_DEPLOYMENTS_H */
