/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent follows: told by its server, given to it; and the answers of a server. */
#include "fleet/duty.h"

#include <errno.h>
#include <stdio.h>

#include "fleet/link.h"
#include "folder.h"
#include "test.h"

static char folder[FOLDER_NAME], followed[512];
static uint32_t calls;
static struct kiln_duty *duty;
static enum kiln_order_limit limit = KILN_ORDERS_ALL;

static void follow(void *context, const struct kiln_order *orders, uint32_t n)
{
    size_t at = 0;

    (void)context;
    calls++;
    followed[0] = '\0';
    for (uint32_t i = 0; i < n; i++)
        at += (size_t)snprintf(followed + at, sizeof(followed) - at, "%s%s %s", i ? ", " : "",
                               kiln_order_kind_word(orders[i].kind),
                               orders[i].name[0] ? orders[i].name : "everything");
}

static void open_duty(void)
{
    followed[0] = '\0';
    CHECK_OK(kiln_duty_open(&(struct kiln_duty_opts){.folder = folder,
                                                     .host_id = "id-1",
                                                     .host_name = "web-1",
                                                     .follow = follow,
                                                     .limit = limit},
                            &duty, NULL));
}

static void start(void)
{
    folder_make(folder);
    calls = 0;
    open_duty();
}

static void again(void)
{
    kiln_duty_close(duty);
    open_duty();
}

static void stop(void)
{
    kiln_duty_close(duty);
    folder_remove(folder);
}

/* Told by a server whose clock is an hour ahead, as an answer has it. */
static void tell(const char *orders)
{
    struct kiln_link_answer answer;
    struct kiln_buf text;

    kiln_buf_init(&text, 1 << 16);
    kiln_buf_printf(&text,
                    "{\"now\":\"2026-03-01T12:05:00Z\",\"every_seconds\":5,\"known\":true,"
                    "\"orders\":[%s]}",
                    orders);
    CHECK_OK(kiln_link_answer_read(kiln_buf_str(&text), kiln_clock_unix_ns(), &answer, NULL));
    CHECK(answer.known);
    kiln_duty_tell(duty, &answer.orders);
    kiln_link_answer_done(&answer);
    kiln_buf_done(&text);
}

#define TIMES "\"created\":\"2026-03-01T12:00:00Z\",\"expires\":\"2026-03-01T12:10:00Z\""
#define BOOST                                                                                      \
    "{\"id\":\"1\",\"kind\":\"boost\",\"target\":\"service\",\"name\":\"shop\",\"hz\":199," TIMES  \
    "}"
#define ELSEWHERE                                                                                  \
    "{\"id\":\"2\",\"kind\":\"pause\",\"target\":\"host\",\"name\":\"web-2\"," TIMES "}"
#define HERE "{\"id\":\"3\",\"kind\":\"pause\",\"target\":\"all\",\"host\":\"id-1\"," TIMES "}"
#define OVER                                                                                       \
    "{\"id\":\"4\",\"kind\":\"pause\",\"target\":\"all\",\"created\":\"2026-03-01T12:00:00Z\","    \
    "\"expires\":\"2026-03-01T12:05:00Z\"}"

TEST(duty, follows_what_the_server_says_of_this_host)
{
    start();
    CHECK_EQ(calls, 0);
    tell(BOOST "," ELSEWHERE "," HERE "," OVER);
    CHECK_TEXT(followed, "boost shop, pause everything");
    CHECK_EQ(calls, 1);
    tell(BOOST "," ELSEWHERE "," HERE);
    CHECK_EQ(calls, 1); /* nothing new */
    tell(BOOST);
    CHECK_TEXT(followed, "boost shop");
    tell("");
    CHECK_TEXT(followed, "");
    CHECK_EQ(calls, 3);
    stop();
}

TEST(duty, goes_on_after_a_restart_without_a_server)
{
    start();
    tell(BOOST);
    again();
    CHECK_TEXT(followed, "boost shop");
    stop();
}

TEST(duty, an_order_lasts_as_long_as_the_server_meant_whatever_its_clock_says)
{
    struct kiln_orders orders;

    start();
    tell(BOOST);
    kiln_orders_init(&orders, 4);
    CHECK_OK(kiln_duty_list(duty, &orders));
    CHECK_EQ(orders.n, 1);
    CHECK(orders.items[0].expires_ns > kiln_clock_unix_ns() + 240 * KILN_NS_PER_S);
    CHECK(orders.items[0].expires_ns <= kiln_clock_unix_ns() + 300 * KILN_NS_PER_S);
    CHECK_EQ(orders.items[0].expires_ns - orders.items[0].created_ns, 600 * KILN_NS_PER_S);
    kiln_orders_done(&orders);
    stop();
}

static struct kiln_order pause_all(uint64_t span_ns)
{
    struct kiln_order order = {.kind = KILN_ORDER_PAUSE, .target = KILN_TARGET_ALL};

    order.created_ns = kiln_clock_unix_ns();
    order.expires_ns = order.created_ns + span_ns;
    return order;
}

TEST(duty, what_is_beyond_the_limit_of_the_host_is_not_followed)
{
    struct kiln_order order = pause_all(KILN_PAUSE_NS);

    limit = KILN_ORDERS_BOOST;
    start();
    tell(BOOST "," HERE);
    CHECK_TEXT(followed, "boost shop");
    CHECK_EQ(kiln_duty_give(duty, &order, NULL), -EPERM);
    CHECK_TEXT(followed, "boost shop");
    limit = KILN_ORDERS_OFF;
    again();
    CHECK_TEXT(followed, "");
    stop();
    limit = KILN_ORDERS_ALL;
}

TEST(duty, what_was_given_here_is_withdrawn_here)
{
    struct kiln_order order = pause_all(KILN_PAUSE_NS);

    start();
    tell(BOOST);
    CHECK_OK(kiln_duty_give(duty, &order, NULL));
    CHECK_TEXT(followed, "boost shop, pause everything");
    tell("");
    CHECK_TEXT(followed, "pause everything");
    tell(BOOST);
    again();
    CHECK_TEXT(followed, "boost shop, pause everything");
    CHECK_EQ(kiln_duty_withdraw(duty, order.id, NULL), 1);
    CHECK_TEXT(followed, "boost shop");
    CHECK_EQ(kiln_duty_withdraw(duty, order.id, NULL), 0);
    CHECK_EQ(kiln_duty_withdraw(duty, "1", NULL), -EEXIST);
    CHECK_TEXT(followed, "boost shop");
    stop();
}

TEST(duty, what_is_over_is_followed_no_more)
{
    struct kiln_order order = pause_all(1);

    start();
    CHECK_OK(kiln_duty_give(duty, &order, NULL));
    kiln_duty_tick(duty);
    CHECK_TEXT(followed, "");
    order = pause_all(KILN_PAUSE_NS);
    CHECK_OK(kiln_duty_give(duty, &order, NULL));
    CHECK_TEXT(followed, "pause everything");
    CHECK_EQ(kiln_duty_version(duty), calls);
    stop();
}

TEST(link, an_answer_that_makes_no_sense_changes_nothing)
{
    static const char *const texts[] = {
        "",
        "{}",
        "{\"orders\":[]}",
        "{\"now\":\"2026-03-01T12:05:00Z\"}",
        "{\"now\":\"2026-03-01T12:05:00Z\",\"orders\":{}}",
        "{\"now\":\"2026-03-01T12:05:00Z\",\"orders\":[{\"id\":\"1\"}]}",
        "<html>not found</html>",
    };

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(texts); i++) {
        struct kiln_link_answer answer;
        struct kiln_err err = {0};

        CHECK(kiln_link_answer_read(kiln_str_of(texts[i]), 1, &answer, &err) < 0);
        CHECK(err.text[0]);
        kiln_link_answer_done(&answer);
    }
}

TEST(link, a_server_cannot_make_an_agent_ask_all_the_time_nor_never)
{
    struct kiln_link_answer answer;

    CHECK_OK(kiln_link_answer_read(
        KILN_STR("{\"now\":\"2026-03-01T12:05:00Z\",\"every_seconds\":0,\"orders\":[]}"), 1,
        &answer, NULL));
    CHECK_EQ(answer.every_s, 1);
    kiln_link_answer_done(&answer);
    CHECK_OK(kiln_link_answer_read(
        KILN_STR("{\"now\":\"2026-03-01T12:05:00Z\",\"every_seconds\":86400,\"orders\":[]}"), 1,
        &answer, NULL));
    CHECK_EQ(answer.every_s, KILN_LINK_EVERY_MAX_S);
    kiln_link_answer_done(&answer);
}
