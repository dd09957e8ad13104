/* SPDX-License-Identifier: Apache-2.0 */
#include "core/tenant.h"
#include "base/err.h"

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

/* Puts a name where it belongs among those in order, unless it is there. */
static uint32_t put(struct kiln_str *names, uint32_t n, struct kiln_str name)
{
    uint32_t at = n;

    while (at && kiln_str_cmp(names[at - 1], name) > 0)
        at--;
    if (at && kiln_str_eq(names[at - 1], name))
        return n;
    memmove(names + at + 1, names + at, (n - at) * sizeof(*names));
    names[at] = name;
    return n + 1;
}

static int join(const struct kiln_str *names, uint32_t n, char *out)
{
    size_t len = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (names[i].len + 1 > KILN_TENANTS_BYTES - len)
            return KILN_E_LIMIT;
        if (i)
            out[len++] = '|';
        memcpy(out + len, names[i].ptr, names[i].len);
        len += names[i].len;
    }
    out[len] = '\0';
    return 0;
}

int kiln_tenants_sort(struct kiln_str list, char out[KILN_TENANTS_BYTES + 1])
{
    struct kiln_str names[KILN_TENANTS_MAX + 1];
    uint32_t n = 0;

    do {
        struct kiln_str name = kiln_str_cut(&list, '|');

        if (!kiln_tenant_valid(name))
            return KILN_E_MALFORMED;
        n = put(names, n, name);
        if (n > KILN_TENANTS_MAX)
            return KILN_E_LIMIT;
    } while (list.ptr);
    return join(names, n, out);
}
