/* SPDX-License-Identifier: Apache-2.0 */
/* Orders: what makes sense, whom they mean, and their JSON there and back. */
#include "fleet/orders.h"

#include <errno.h>

#include "test.h"

#define NOW (UINT64_C(1772366400) * KILN_NS_PER_S) /* 2026-03-01T12:00:00Z */

static struct kiln_order boost(void)
{
    return (struct kiln_order){.id = "a1",
                               .kind = KILN_ORDER_BOOST,
                               .target = KILN_TARGET_SERVICE,
                               .name = "shop",
                               .hz = 199,
                               .created_ns = NOW,
                               .expires_ns = NOW + KILN_BOOST_NS,
                               .by = "ann",
                               .why = "slow \"today\""};
}

static const char *wrong(struct kiln_order order)
{
    static struct kiln_err err;

    err = (struct kiln_err){0};
    CHECK_EQ(kiln_order_check(&order, &err), -EINVAL);
    return err.where;
}

TEST(order, one_that_makes_sense_passes)
{
    struct kiln_order order = boost();
    struct kiln_order process = {.kind = KILN_ORDER_PAUSE,
                                 .target = KILN_TARGET_PROCESS,
                                 .pid = 7,
                                 .host = "web-1",
                                 .created_ns = NOW,
                                 .expires_ns = NOW + 1};

    CHECK_OK(kiln_order_check(&order, NULL));
    CHECK_OK(kiln_order_check(&process, NULL));
}

TEST(order, the_member_that_makes_no_sense_is_named)
{
    struct kiln_order order = boost();

    order.name[0] = '\0';
    CHECK_TEXT(wrong(order), "name");
    order = boost();
    order.hz = 0;
    CHECK_TEXT(wrong(order), "hz");
    order.hz = KILN_ORDER_HZ_MAX + 1;
    CHECK_TEXT(wrong(order), "hz");
    order = boost();
    order.kind = KILN_ORDER_PAUSE;
    CHECK_TEXT(wrong(order), "hz");
    order = boost();
    order.expires_ns = order.created_ns;
    CHECK_TEXT(wrong(order), "expires");
    order.expires_ns = order.created_ns + KILN_BOOST_MAX_NS + 1;
    CHECK_TEXT(wrong(order), "duration");
    order = boost();
    order.pid = 7;
    CHECK_TEXT(wrong(order), "pid");
    order.target = KILN_TARGET_PROCESS;
    CHECK_TEXT(wrong(order), "name");
    order.name[0] = '\0';
    CHECK_TEXT(wrong(order), "host");
    order = boost();
    order.target = KILN_TARGET_HOST;
    snprintf(order.host, sizeof(order.host), "web-1");
    CHECK_TEXT(wrong(order), "host");
}

TEST(order, a_host_is_meant_by_its_name_or_its_id)
{
    struct kiln_order order = boost();

    CHECK(kiln_order_for_host(&order, "id-1", "web-1"));
    snprintf(order.host, sizeof(order.host), "web-1");
    CHECK(kiln_order_for_host(&order, "id-1", "web-1"));
    CHECK(!kiln_order_for_host(&order, "id-2", "web-2"));
    snprintf(order.host, sizeof(order.host), "id-2");
    CHECK(kiln_order_for_host(&order, "id-2", "web-2"));
    order = (struct kiln_order){.target = KILN_TARGET_HOST, .name = "web-2"};
    CHECK(kiln_order_for_host(&order, "id-2", "web-2"));
    CHECK(!kiln_order_for_host(&order, "id-1", "web-1"));
}

static void put(const struct kiln_orders *orders, struct kiln_buf *out)
{
    struct kiln_json_out w;

    kiln_buf_init(out, 1 << 20);
    kiln_json_out_init(&w, out, 0);
    kiln_orders_put(&w, orders);
    CHECK_EQ(out->error, 0);
}

static int get(const char *text, struct kiln_orders *orders, struct kiln_err *err)
{
    struct kiln_json r;
    int code;

    kiln_orders_init(orders, 2);
    kiln_json_init(&r, kiln_str_of(text), err);
    code = kiln_orders_read(&r, orders);
    kiln_json_done(&r);
    return code;
}

TEST(orders, what_is_written_is_read_again)
{
    struct kiln_orders orders, again;
    struct kiln_order order = boost();
    struct kiln_buf text;

    kiln_orders_init(&orders, 2);
    CHECK_OK(kiln_orders_add(&orders, &order));
    order = (struct kiln_order){.id = "b2",
                                .kind = KILN_ORDER_PAUSE,
                                .target = KILN_TARGET_PROCESS,
                                .pid = 4711,
                                .host = "web-1",
                                .created_ns = NOW,
                                .expires_ns = NOW + KILN_PAUSE_NS + 1};
    CHECK_OK(kiln_orders_add(&orders, &order));
    CHECK_EQ(kiln_orders_add(&orders, &order), KILN_E_LIMIT);
    put(&orders, &text);
    kiln_buf_putc(&text, '\0');
    CHECK(strstr(text.ptr, "{\"id\":\"a1\",\"kind\":\"boost\",\"target\":\"service\",\"name\":"
                           "\"shop\",\"pid\":null,\"host\":null,\"hz\":199,\"created\":"
                           "\"2026-03-01T12:00:00Z\",\"expires\":\"2026-03-01T12:10:00Z\",\"by\":"
                           "\"ann\",\"why\":\"slow \\\"today\\\"\"}"));
    CHECK_OK(get(text.ptr, &again, NULL));
    CHECK_EQ(again.n, 2);
    CHECK_EQ(memcmp(again.items, orders.items, 2 * sizeof(order)), 0);
    CHECK_EQ(kiln_orders_find(&again, "b2")->pid, 4711);
    CHECK(!kiln_orders_find(&again, "c3"));
    kiln_orders_done(&orders);
    kiln_orders_done(&again);
    kiln_buf_done(&text);
}

#define TIMES "\"created\":\"2026-03-01T12:00:00Z\",\"expires\":\"2026-03-01T12:10:00Z\""

TEST(orders, what_is_not_an_order_is_refused)
{
    static const char *const texts[] = {
        "{}",
        "[{}]",
        "[{\"id\":\"a\"}]",
        "[{\"id\":\"a\",\"kind\":\"boast\"," TIMES "}]",
        "[{\"id\":\"a\",\"kind\":\"boost\",\"name\":\"x\",\"hz\":0," TIMES "}]",
        "[{\"id\":\"a\",\"kind\":\"boost\",\"name\":\"x\",\"hz\":4294967297," TIMES "}]",
        "[{\"id\":\"a\",\"kind\":\"boost\",\"name\":\"x\",\"hz\":-1," TIMES "}]",
        "[{\"id\":\"a\",\"kind\":\"pause\",\"name\":\"a\\u0000b\"," TIMES "}]",
        "[{\"id\":\"0123456789abcdef01234567\",\"kind\":\"pause\",\"name\":\"x\"," TIMES "}]",
        "[{\"id\":\"a\",\"kind\":\"pause\",\"name\":\"x\",\"target\":\"world\"," TIMES "}]",
        "[{\"id\":\"a\",\"kind\":\"pause\",\"name\":\"x\",\"expires\":\"tomorrow\"}]",
        "[{\"id\":\"a\",\"kind\":\"pause\",\"name\":\"x\"," TIMES "}",
    };

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(texts); i++) {
        struct kiln_orders orders;
        struct kiln_err err = {0};

        CHECK(get(texts[i], &orders, &err) < 0);
        CHECK(err.text[0]);
        kiln_orders_done(&orders);
    }
}

TEST(orders, members_of_a_later_version_are_passed_over)
{
    struct kiln_orders orders;

    CHECK_OK(
        get("[{\"id\":\"a\",\"moon\":{\"full\":[1,2]},\"kind\":\"pause\",\"target\":\"all\"," TIMES
            "}]",
            &orders, NULL));
    CHECK_EQ(orders.n, 1);
    CHECK_EQ(orders.items[0].target, KILN_TARGET_ALL);
    kiln_orders_done(&orders);
}

TEST(order, its_target_reads_as_words)
{
    struct kiln_order order = boost();
    struct kiln_buf text;

    kiln_buf_init(&text, 256);
    snprintf(order.host, sizeof(order.host), "web-1");
    kiln_order_describe_target(&order, &text);
    kiln_buf_puts(&text, "; ");
    order = (struct kiln_order){.target = KILN_TARGET_ALL};
    kiln_order_describe_target(&order, &text);
    CHECK_STR(kiln_buf_str(&text), "service shop on web-1; every host");
    kiln_buf_done(&text);
}
