/* SPDX-License-Identifier: Apache-2.0 */
/* Orders as they are asked for: by people, and by an Alertmanager. */
#include "fleet/request.h"

#include <errno.h>

#include "test.h"

#define NOW (UINT64_C(1772366400) * KILN_NS_PER_S)

static struct kiln_orders orders;
static struct kiln_err err;

static int ask(const char *text, struct kiln_request_wish wish)
{
    wish.now_ns = NOW;
    err = (struct kiln_err){0};
    kiln_orders_done(&orders);
    kiln_orders_init(&orders, KILN_REQUEST_ORDERS_MAX);
    return kiln_order_request_read(kiln_str_of(text), &wish, &orders, &err);
}

static int plain(const char *text)
{
    return ask(text, (struct kiln_request_wish){0});
}

TEST(request, a_boost_has_its_defaults)
{
    CHECK_OK(plain("{\"kind\":\"boost\",\"target\":\"service\",\"name\":\"shop\"}"));
    CHECK_EQ(orders.n, 1);
    CHECK_EQ(orders.items[0].hz, 199);
    CHECK_EQ(orders.items[0].created_ns, NOW);
    CHECK_EQ(orders.items[0].expires_ns, NOW + 600 * KILN_NS_PER_S);
    CHECK_TEXT(orders.items[0].id, "");
    kiln_orders_done(&orders);
}

TEST(request, what_it_says_counts_more_than_what_stands_beside)
{
    const struct kiln_request_wish wish = {.hz = 97, .duration_ns = KILN_NS_PER_S};

    CHECK_OK(ask("{\"kind\":\"boost\",\"target\":\"container\",\"name\":\"c\",\"hz\":49,"
                 "\"duration\":\"1h30m\",\"by\":\"ann\",\"why\":\"w\",\"host\":\"web-1\"}",
                 wish));
    CHECK_EQ(orders.items[0].hz, 49);
    CHECK_EQ(orders.items[0].expires_ns, NOW + 5400 * KILN_NS_PER_S);
    CHECK_TEXT(orders.items[0].host, "web-1");
    CHECK_OK(ask("{\"kind\":\"boost\",\"target\":\"all\"}", wish));
    CHECK_EQ(orders.items[0].hz, 97);
    CHECK_EQ(orders.items[0].expires_ns, NOW + KILN_NS_PER_S);
    CHECK_OK(ask("{\"kind\":\"pause\",\"target\":\"all\",\"duration\":90}", wish));
    CHECK_EQ(orders.items[0].hz, 0);
    CHECK_EQ(orders.items[0].expires_ns, NOW + 90 * KILN_NS_PER_S);
    kiln_orders_done(&orders);
}

TEST(request, what_is_wrong_with_it_is_said)
{
    static const char *const texts[][2] = {
        {"{}", "is it a boost or a pause?"},
        {"{\"kind\":\"boost\"}", "who is meant?"},
        {"{\"kind\":\"boost\",\"target\":\"service\"}", "which service is meant?"},
        {"{\"kind\":\"boost\",\"target\":\"process\",\"pid\":1}", "needs its host"},
        {"{\"kind\":\"pause\",\"target\":\"all\",\"hz\":1}", "belongs to a boost"},
        {"{\"kind\":\"boost\",\"target\":\"all\",\"duration\":\"31d\"}", "lasts 24 hours at most"},
        {"{\"kind\":\"boost\",\"target\":\"all\",\"duration\":\"soon\"}", "not a time span"},
        {"{\"kind\":\"boost\",\"target\":\"all\",\"duration\":-1}", "not a time span"},
        {"{\"kind\":\"boost\",\"target\":\"all\",\"id\":\"x\"}", "no such member: \"id\""},
        {"{\"kind\":\"boost\",\"target\":\"all\",\"moon\":1}", "no such member: \"moon\""},
        {"{\"kind\":\"boost\",\"target\":\"all\"}}", ""},
        {"", ""},
        {"[]", ""},
    };

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(texts); i++) {
        CHECK(plain(texts[i][0]) < 0);
        CHECK(err.text[0]);
        CHECK(strstr(err.text, texts[i][1]));
        CHECK_EQ(orders.n, 0);
    }
    kiln_orders_done(&orders);
}

#define ALERT(status, labels)                                                                      \
    "{\"annotations\":{\"summary\":\"burns\"},\"labels\":" labels ",\"status\":\"" status          \
    "\",\"startsAt\":\"2026-03-01T11:59:00Z\",\"fingerprint\":\"00\"}"
#define WEBHOOK(alerts)                                                                            \
    "{\"receiver\":\"kiln\",\"status\":\"firing\",\"version\":\"4\",\"groupLabels\":{},"           \
    "\"alerts\":[" alerts "],\"truncatedAlerts\":0}"

TEST(request, an_alert_that_fires_boosts_the_service_of_its_labels)
{
    CHECK_OK(ask(
        WEBHOOK(ALERT("firing", "{\"alertname\":\"Burn\",\"service\":\"shop\"}") "," ALERT(
            "resolved",
            "{\"service\":\"cart\"}") "," ALERT("firing",
                                                "{\"service\":\"x\",\"service_name\":"
                                                "\"pay\"}") "," ALERT("firing", "{\"service\":"
                                                                                "\"shop\",\"pod\":"
                                                                                "\"2\"}")),
        (struct kiln_request_wish){.hz = 97, .duration_ns = 300 * KILN_NS_PER_S}));
    CHECK_EQ(orders.n, 2);
    CHECK_TEXT(orders.items[0].name, "shop");
    CHECK_TEXT(orders.items[0].why, "Burn fires");
    CHECK_TEXT(orders.items[0].by, "alertmanager");
    CHECK_EQ(orders.items[0].hz, 97);
    CHECK_EQ(orders.items[0].expires_ns, NOW + 300 * KILN_NS_PER_S);
    CHECK_TEXT(orders.items[1].name, "pay");
    kiln_orders_done(&orders);
}

TEST(request, another_label_may_name_the_service)
{
    const struct kiln_request_wish wish = {.label = KILN_STR("app")};

    CHECK_OK(ask(WEBHOOK(ALERT("firing", "{\"service\":\"x\",\"app\":\"shop\"}")), wish));
    CHECK_EQ(orders.n, 1);
    CHECK_TEXT(orders.items[0].name, "shop");
    CHECK_EQ(ask(WEBHOOK(ALERT("firing", "{\"service\":\"x\"}")), wish), -EINVAL);
    CHECK(strstr(err.text, "no alert has a label"));
    CHECK_OK(ask(WEBHOOK(ALERT("resolved", "{}")), wish));
    CHECK_OK(ask(WEBHOOK(""), wish));
    CHECK_EQ(orders.n, 0);
    kiln_orders_done(&orders);
}

TEST(request, a_flood_of_alerts_has_an_end)
{
    struct kiln_buf text;

    kiln_buf_init(&text, 1 << 20);
    kiln_buf_puts(&text, "{\"alerts\":[");
    for (int i = 0; i < KILN_REQUEST_ORDERS_MAX + 1; i++)
        kiln_buf_printf(&text, "%s{\"status\":\"firing\",\"labels\":{\"service\":\"s%d\"}}",
                        i ? "," : "", i);
    kiln_buf_puts(&text, "]}");
    kiln_buf_putc(&text, '\0');
    CHECK_EQ(plain(text.ptr), KILN_E_LIMIT);
    kiln_buf_done(&text);
    kiln_orders_done(&orders);
}
