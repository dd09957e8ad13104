/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "base/params.h"
#include "net/server.h"
#include "test.h"

/* All parameters of a query as "name=value;", or the error as a number. */
static const char *walk(const char *query)
{
    static char text[1024];
    struct kiln_params params;
    size_t len = 0;
    int r;

    kiln_params_init(&params, kiln_str_of(query));
    while ((r = kiln_params_next(&params)) > 0)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%.*s=%.*s;",
                                KILN_STR_ARG(params.name), KILN_STR_ARG(params.value));
    snprintf(text + len, sizeof(text) - len, r < 0 ? "!" : "");
    kiln_params_done(&params);
    return text;
}

TEST(params, are_decoded_in_order)
{
    CHECK_TEXT(walk("a=1&b=x+y%20z&a=%C3%A9"), "a=1;b=x y z;a=\xc3\xa9;");
    CHECK_TEXT(walk("name=app%7Bk%3D%22v%22%7D"), "name=app{k=\"v\"};");
    CHECK_TEXT(walk("a&=b&c=&=&&d=e=f"), "a=;=b;c=;=;d=e=f;");
    CHECK_TEXT(walk(""), "");
}

TEST(params, a_bad_escape_is_an_error)
{
    CHECK_TEXT(walk("a=1&b=%"), "a=1;!");
    CHECK_TEXT(walk("a=%4"), "!");
    CHECK_TEXT(walk("a=%4x"), "!");
    CHECK_TEXT(walk("%zz=1"), "!");
}

TEST(params, the_first_of_a_name_is_the_one)
{
    struct kiln_request request = {.query = KILN_STR("from=1&until=2%2B3&from=9")};
    struct kiln_buf value;

    kiln_buf_init(&value, 100);
    CHECK_EQ(kiln_request_param(&request, "until", &value), 1);
    CHECK_STR(kiln_buf_str(&value), "2+3");
    kiln_buf_clear(&value);
    CHECK_EQ(kiln_request_param(&request, "from", &value), 1);
    CHECK_STR(kiln_buf_str(&value), "1");
    CHECK_EQ(kiln_request_param(&request, "step", &value), 0);
    kiln_buf_done(&value);
    kiln_buf_init(&value, 2);
    CHECK_EQ(kiln_request_param(&request, "until", &value), KILN_E_LIMIT);
    kiln_buf_done(&value);
}

TEST(params, a_plus_in_a_path_is_a_plus)
{
    struct kiln_buf out;

    kiln_buf_init(&out, 100);
    CHECK_OK(kiln_percent_decode(KILN_STR("a+b%2Fc"), false, &out));
    CHECK_STR(kiln_buf_str(&out), "a+b/c");
    kiln_buf_done(&out);
}
