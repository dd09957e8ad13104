/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/receivers/ingest_name.h"
#include "test.h"

#define NOW UINT64_C(1700000000000000000)
#define S   UINT64_C(1000000000)

/* What a name says: "app a=1 b=2 (service) [family]"; the error's sentence where it is none. */
static const char *parsed(const char *text)
{
    static char out[1024];
    static struct kiln_tags tags;
    struct kiln_err err = {0};
    struct kiln_str app;
    size_t n;

    memset(&tags, 0, sizeof(tags));
    if (kiln_ingest_name_parse(kiln_str_of(text), &app, &tags, &err) < 0) {
        snprintf(out, sizeof(out), "! %s: %s", err.where, err.text);
        return out;
    }
    n = (size_t)snprintf(out, sizeof(out), "%.*s", KILN_STR_ARG(app));
    for (uint32_t i = 0; i < tags.n; i++)
        n += (size_t)snprintf(out + n, sizeof(out) - n, " %.*s=%.*s",
                              KILN_STR_ARG(tags.list[i].name), KILN_STR_ARG(tags.list[i].value));
    if (tags.service.len)
        n += (size_t)snprintf(out + n, sizeof(out) - n, " (%.*s)", KILN_STR_ARG(tags.service));
    if (tags.family.len)
        snprintf(out + n, sizeof(out) - n, " [%.*s]", KILN_STR_ARG(tags.family));
    return out;
}

TEST(ingest_name, an_application_may_have_labels)
{
    CHECK_TEXT(parsed("shop"), "shop");
    CHECK_TEXT(parsed("shop/cart.cpu{}"), "shop/cart.cpu");
    CHECK_TEXT(parsed(" shop { region = eu , pod=a-1 } "), "shop region=eu pod=a-1");
    CHECK_TEXT(parsed("shop{a=x y=z}"), "shop a=x y=z"); /* one label: its value is "x y=z" */
    CHECK_TEXT(parsed("shop{a=,b=2}"), "shop a= b=2");
    CHECK_TEXT(parsed("shop{a=1,a=2}"), "shop a=2");
    CHECK_TEXT(parsed("shop{a=1"), "shop a=1");
    CHECK_TEXT(parsed("shop{a=1,}"), "shop a=1");
}

TEST(ingest_name, reserved_labels_have_their_meaning)
{
    CHECK_TEXT(parsed("shop{service_name=cart,__name__=memory}"), "shop (cart) [memory]");
    CHECK_TEXT(parsed("shop{__name__=godeltaprof_mutex}"), "shop [mutex]");
    CHECK_TEXT(parsed("shop{__session_id__=12,__delta__=false}"), "shop __session_id__=12");
}

TEST(ingest_name, what_is_no_name_is_refused)
{
    CHECK_TEXT(parsed(""), "! name: the name of the application is missing");
    CHECK_TEXT(parsed("{a=1}"), "! name: the name of the application is missing");
    CHECK(parsed("sh op")[0] == '!');
    CHECK(parsed("shop{a b=1}")[0] == '!');
    CHECK(parsed("shop{=1}")[0] == '!');
    CHECK(parsed("shop{a=\xff}")[0] == '!');
}

TEST(ingest_name, labels_have_limits)
{
    static char text[8192];
    size_t n = (size_t)snprintf(text, sizeof(text), "shop{");

    for (int i = 0; i <= KILN_TAGS_MAX; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "l%d=1,", i);
    CHECK_TEXT(parsed(text), "! labels: there are more than 100 labels");
    memset(text, 'x', sizeof(text) - 1);
    memcpy(text, "shop{a=", 7);
    CHECK_TEXT(parsed(text), "! labels: the value of label a is longer than 2048 bytes");
}

TEST(ingest_name, times_are_of_any_unit)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } cases[] = {
        {"1655834200", 1655834200 * S},
        {"1655834200123", UINT64_C(1655834200123000000)},
        {"1655834200123456", UINT64_C(1655834200123456000)},
        {"1655834200123456789", UINT64_C(1655834200123456789)},
        {"20220621", 1655769600 * S},
        {"now", NOW},
        {"now-1h", NOW - 3600 * S},
        {"now-1h30m", NOW - 5400 * S},
        {"now - 2d", NOW - 2 * 86400 * S},
        {"now+10s", NOW + 10 * S},
        {"now-1parsec", NOW},
        {"now-99999999999999999999y", NOW},
        {"yesterday", NOW},
        {"", NOW},
        {"99999999999999999999999999999", NOW},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++)
        CHECK_EQ(kiln_ingest_time(kiln_str_of(cases[i].text), NOW), cases[i].ns);
}
