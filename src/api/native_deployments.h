/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_deployments - when which version of a service began to run, for whoever compares them.
 *
 * Threads: as native_int.h.
 */
#ifndef KILN_API_NATIVE_DEPLOYMENTS_H
#define KILN_API_NATIVE_DEPLOYMENTS_H

#include "api/native_told.h"

/* All of the caller's tenants, found and told, the newest first. */
KILN_CHECK int kiln_native_deployments(struct kiln_native_call *call, struct kiln_told_list *list);

#endif /* KILN_API_NATIVE_DEPLOYMENTS_H */
