/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tenant - what may be the name of a tenant; a folder of the store has it.  And lists of them.
 *
 * Threads: no state.
 */
#ifndef KILN_CORE_TENANT_H
#define KILN_CORE_TENANT_H

#include "base/attr.h"
#include "base/str.h"

enum {
    KILN_TENANT_MAX = 150,     /* bytes of a name */
    KILN_TENANTS_MAX = 16,     /* that one question may be about */
    KILN_TENANTS_BYTES = 1023, /* of all their names, with what stands between */
};

/* Letters, digits and !-_.*'() but neither "." nor "..". */
bool kiln_tenant_valid(struct kiln_str name);

/*
 * A list "b|a|b", as questions have it, in order and each once: "a|b".  KILN_E_MALFORMED where a
 * name is none, KILN_E_LIMIT past one of the limits above.
 */
KILN_CHECK int kiln_tenants_sort(struct kiln_str list, char out[KILN_TENANTS_BYTES + 1]);

#endif /* KILN_CORE_TENANT_H */
