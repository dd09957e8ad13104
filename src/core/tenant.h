/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tenant - what may be the name of a tenant; a folder of the store has it.
 *
 * Threads: no state.
 */
#ifndef KILN_CORE_TENANT_H
#define KILN_CORE_TENANT_H

#include "base/str.h"

enum { KILN_TENANT_MAX = 150 }; /* bytes */

/* Letters, digits and !-_.*'() but neither "." nor "..". */
bool kiln_tenant_valid(struct kiln_str name);

#endif /* KILN_CORE_TENANT_H */
