/* SPDX-License-Identifier: Apache-2.0 */
/* Most names are printable ASCII and are copied as they are. */
#include "symbol/clean.h"

/* Also U+0080 to U+009F, which are c2 80 to c2 9f. */
static bool is_control(const unsigned char *c)
{
    return c[0] < 0x20 || c[0] == 0x7f || (c[0] == 0xc2 && c[1] < 0xa0);
}

/* How many of the first bytes are copied as they are. */
static size_t plain_len(struct kiln_str name)
{
    size_t n = 0;

    while (n < name.len && name.ptr[n] >= ' ' && name.ptr[n] <= '~')
        n++;
    return n;
}

size_t kiln_name_clean(struct kiln_str name, char *ret, size_t max)
{
    size_t n = plain_len(name);

    n = n < max ? n : max;
    if (n)
        memcpy(ret, name.ptr, n);
    name = n ? (struct kiln_str){name.ptr + n, name.len - n} : name;
    while (name.len > 0) {
        size_t len = kiln_utf8_len(name);
        struct kiln_str shown = {name.ptr, len};

        if (len == 0 || is_control((const unsigned char *)name.ptr))
            shown = KILN_STR("\xef\xbf\xbd");
        if (shown.len > max - n)
            break;
        memcpy(ret + n, shown.ptr, shown.len);
        n += shown.len;
        len = len ? len : 1;
        name.ptr += len;
        name.len -= len;
    }
    return n;
}
