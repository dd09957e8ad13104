/* SPDX-License-Identifier: Apache-2.0 */
#include "core/tenant.h"

bool kiln_tenant_valid(struct kiln_str name)
{
    if (name.len == 0 || name.len > KILN_TENANT_MAX || kiln_str_eq(name, KILN_STR(".")) ||
        kiln_str_eq(name, KILN_STR("..")))
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              (c && strchr("!-_.*'()", c))))
            return false;
    }
    return true;
}
