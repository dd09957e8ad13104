/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "core/tenant.h"
#include "test.h"

TEST(tenant, a_list_is_put_in_order_and_each_is_there_once)
{
    char out[KILN_TENANTS_BYTES + 1];

    CHECK_OK(kiln_tenants_sort(KILN_STR("one"), out));
    CHECK_TEXT(out, "one");
    CHECK_OK(kiln_tenants_sort(KILN_STR("b|ab|a|b|ab"), out));
    CHECK_TEXT(out, "a|ab|b");
    CHECK_EQ(kiln_tenants_sort(KILN_STR(""), out), KILN_E_MALFORMED);
    CHECK_EQ(kiln_tenants_sort(KILN_STR("a||b"), out), KILN_E_MALFORMED);
    CHECK_EQ(kiln_tenants_sort(KILN_STR("a|.."), out), KILN_E_MALFORMED);
}

/* Seven names of so many bytes. */
static struct kiln_str list_of(char *room, size_t name_len)
{
    size_t len = 0;

    for (int i = 0; i < 7; i++) {
        memset(room + len, 'a' + i, name_len);
        len += name_len;
        room[len++] = '|';
    }
    return (struct kiln_str){room, len - 1};
}

TEST(tenant, a_list_has_an_end)
{
    char room[2000], out[KILN_TENANTS_BYTES + 1];

    CHECK_OK(kiln_tenants_sort(list_of(room, 145), out));
    CHECK_EQ(strlen(out), 7 * 146 - 1);
    CHECK_EQ(kiln_tenants_sort(list_of(room, 150), out), KILN_E_LIMIT);
    CHECK_EQ(kiln_tenants_sort(list_of(room, 151), out), KILN_E_MALFORMED);
}
