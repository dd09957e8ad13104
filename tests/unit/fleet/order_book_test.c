/* SPDX-License-Identifier: Apache-2.0 */
/* The book of orders: kept, replaced, withdrawn, over; and what a damaged file does. */
#include "fleet/order_book.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "folder.h"
#include "test.h"

static char folder[FOLDER_NAME], path[FOLDER_NAME + 16];
static struct kiln_order_book *book;

static void start(void)
{
    folder_make(folder);
    snprintf(path, sizeof(path), "%s/orders.json", folder);
    CHECK_OK(kiln_order_book_open(&(struct kiln_order_book_opts){.path = path}, &book, NULL));
}

static void again(void)
{
    kiln_order_book_close(book);
    CHECK_OK(kiln_order_book_open(&(struct kiln_order_book_opts){.path = path}, &book, NULL));
}

static void stop(void)
{
    kiln_order_book_close(book);
    folder_remove(folder);
}

static struct kiln_order order_of(enum kiln_order_kind kind, const char *service, uint64_t span_ns)
{
    struct kiln_order order = {.kind = kind, .target = KILN_TARGET_SERVICE};

    snprintf(order.name, sizeof(order.name), "%s", service);
    order.hz = kind == KILN_ORDER_BOOST ? 199 : 0;
    order.created_ns = kiln_clock_unix_ns();
    order.expires_ns = order.created_ns + span_ns;
    return order;
}

static struct kiln_order add(const char *tenant, enum kiln_order_kind kind, const char *service)
{
    struct kiln_order order = order_of(kind, service, KILN_BOOST_NS);

    CHECK_OK(kiln_order_book_add(book, tenant, &order, NULL));
    return order;
}

/* "boost shop, pause cart": what is in force after so long. */
static const char *in_force(const char *tenant, uint64_t later_ns)
{
    static char text[1024];
    struct kiln_orders orders;
    size_t at = 0;

    kiln_orders_init(&orders, 16);
    CHECK_OK(kiln_order_book_list(book, tenant, kiln_clock_mono_ns() + later_ns, &orders));
    text[0] = '\0';
    for (uint32_t i = 0; i < orders.n; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s %s", i ? ", " : "",
                               kiln_order_kind_word(orders.items[i].kind), orders.items[i].name);
    kiln_orders_done(&orders);
    return text;
}

TEST(book, orders_are_there_after_a_restart)
{
    start();
    add("a", KILN_ORDER_BOOST, "shop");
    add("a", KILN_ORDER_PAUSE, "cart");
    add("b", KILN_ORDER_PAUSE, "shop");
    again();
    CHECK_TEXT(in_force("a", 0), "boost shop, pause cart");
    CHECK_TEXT(in_force("b", 0), "pause shop");
    CHECK_TEXT(in_force("c", 0), "");
    CHECK_EQ(kiln_order_book_count(book, KILN_ORDER_PAUSE), 2);
    stop();
}

TEST(book, an_order_is_over_by_itself)
{
    start();
    add("a", KILN_ORDER_BOOST, "shop");
    CHECK_TEXT(in_force("a", KILN_BOOST_NS - 5 * KILN_NS_PER_S), "boost shop");
    CHECK_TEXT(in_force("a", KILN_BOOST_NS), "");
    kiln_order_book_expire(book, kiln_clock_mono_ns());
    CHECK_EQ(kiln_order_book_count(book, KILN_ORDER_BOOST), 1);
    kiln_order_book_expire(book, kiln_clock_mono_ns() + KILN_BOOST_NS);
    CHECK_EQ(kiln_order_book_count(book, KILN_ORDER_BOOST), 0);
    again();
    CHECK_TEXT(in_force("a", 0), "");
    stop();
}

TEST(book, what_ended_while_nobody_looked_is_not_in_force)
{
    start();
    add("a", KILN_ORDER_BOOST, "shop");
    kiln_clock_set(kiln_clock_unix_ns() + KILN_BOOST_NS + 1);
    again();
    CHECK_TEXT(in_force("a", 0), "");
    kiln_clock_set(0);
    stop();
}

TEST(book, a_wall_clock_that_is_set_changes_no_end)
{
    struct kiln_orders orders;
    uint64_t now_ns = kiln_clock_unix_ns();

    start();
    add("a", KILN_ORDER_BOOST, "shop");
    kiln_clock_set(now_ns + 7 * 86400 * KILN_NS_PER_S);
    CHECK_TEXT(in_force("a", 0), "boost shop");
    CHECK_TEXT(in_force("a", KILN_BOOST_NS), "");
    kiln_orders_init(&orders, 1);
    CHECK_OK(kiln_order_book_list(book, "a", kiln_clock_mono_ns(), &orders));
    CHECK(orders.items[0].expires_ns > kiln_clock_unix_ns());
    CHECK(orders.items[0].expires_ns <= kiln_clock_unix_ns() + KILN_BOOST_NS);
    CHECK_OK(kiln_order_check(&orders.items[0], NULL));
    kiln_orders_done(&orders);
    kiln_clock_set(KILN_NS_PER_S); /* a machine that lost its clock: no boost of decades */
    again();
    CHECK_TEXT(in_force("a", 0), "boost shop");
    CHECK_TEXT(in_force("a", KILN_BOOST_NS + KILN_NS_PER_S), "");
    kiln_clock_set(0);
    stop();
}

/* A clock that was wrong when the order was given, and is put right before the next start. */
TEST(book, the_file_follows_a_wall_clock_that_is_set)
{
    static const int64_t jumps_s[] = {7 * 86400, -7 * 86400};
    uint64_t now_ns = kiln_clock_unix_ns();

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(jumps_s); i++) {
        start();
        kiln_clock_set(now_ns);
        add("a", KILN_ORDER_BOOST, "shop");
        kiln_clock_set(now_ns + (uint64_t)jumps_s[i] * KILN_NS_PER_S);
        kiln_order_book_expire(book, kiln_clock_mono_ns());
        kiln_clock_set(kiln_clock_unix_ns() + KILN_BOOST_NS / 2); /* it is off for so long */
        again();
        CHECK_TEXT(in_force("a", KILN_BOOST_NS / 2 - 10 * KILN_NS_PER_S), "boost shop");
        CHECK_TEXT(in_force("a", KILN_BOOST_NS / 2 + 10 * KILN_NS_PER_S), "");
        stop();
    }
    kiln_clock_set(0);
}

TEST(book, a_file_that_could_not_be_written_is_tried_again)
{
    start();
    add("a", KILN_ORDER_BOOST, "shop");
    folder_remove(folder);
    kiln_order_book_expire(book, kiln_clock_mono_ns() + KILN_BOOST_NS);
    CHECK_OK(mkdir(folder, 0700));
    kiln_order_book_expire(book, kiln_clock_mono_ns());
    CHECK_OK(access(path, F_OK));
    kiln_order_book_expire(book, kiln_clock_mono_ns());
    stop();
}

/* The agent of root keeps it in a directory that may be the server's. */
TEST(book, a_link_in_its_place_is_not_followed)
{
    char other[FOLDER_NAME + 16];
    struct stat st;

    start();
    snprintf(other, sizeof(other), "%s/other", folder);
    CHECK_OK(kiln_file_write(other, KILN_STR("other"), NULL));
    CHECK_OK(symlink(other, path));
    add("a", KILN_ORDER_BOOST, "shop");
    CHECK_OK(stat(other, &st));
    CHECK_EQ(st.st_size, 5);
    again();
    CHECK_TEXT(in_force("a", 0), "boost shop");
    stop();
}

TEST(book, a_later_order_takes_the_place_of_the_earlier)
{
    struct kiln_order first, second;

    start();
    first = add("a", KILN_ORDER_BOOST, "shop");
    second = add("a", KILN_ORDER_BOOST, "shop");
    CHECK(strcmp(first.id, second.id) != 0);
    CHECK_TEXT(in_force("a", 0), "boost shop");
    CHECK_EQ(kiln_order_book_remove(book, "a", first.id, NULL), 0);
    CHECK_EQ(kiln_order_book_remove(book, "b", second.id, NULL), 0);
    CHECK_EQ(kiln_order_book_remove(book, "a", second.id, NULL), 1);
    CHECK_EQ(kiln_order_book_remove(book, "a", second.id, NULL), 0);
    again();
    CHECK_TEXT(in_force("a", 0), "");
    stop();
}

TEST(book, a_tenant_cannot_fill_it_for_others)
{
    struct kiln_order order;
    struct kiln_err err = {0};
    char name[16];

    kiln_clock_set(kiln_clock_unix_ns());
    start();
    kiln_order_book_close(book); /* in memory, or each order is a write */
    CHECK_OK(kiln_order_book_open(&(struct kiln_order_book_opts){0}, &book, NULL));
    for (int i = 0; i < KILN_ORDER_BOOK_TENANT_MAX; i++) {
        snprintf(name, sizeof(name), "s%d", i);
        add("a", KILN_ORDER_PAUSE, name);
    }
    order = order_of(KILN_ORDER_PAUSE, "one more", KILN_PAUSE_NS);
    CHECK_EQ(kiln_order_book_add(book, "a", &order, &err), KILN_E_LIMIT);
    CHECK(err.text[0]);
    add("a", KILN_ORDER_PAUSE, "s7");
    add("b", KILN_ORDER_PAUSE, "one more");
    kiln_clock_set(0);
    stop();
}

TEST(book, all_of_a_tenant_are_replaced_at_once)
{
    struct kiln_orders orders;
    struct kiln_order order = order_of(KILN_ORDER_PAUSE, "cart", KILN_PAUSE_NS);

    start();
    add("a", KILN_ORDER_BOOST, "shop");
    add("b", KILN_ORDER_BOOST, "shop");
    kiln_orders_init(&orders, 2);
    snprintf(order.id, sizeof(order.id), "one");
    CHECK_OK(kiln_orders_add(&orders, &order));
    CHECK_OK(kiln_order_book_replace(book, "a", &orders, NULL));
    CHECK_TEXT(in_force("a", 0), "pause cart");
    CHECK_OK(unlink(path));
    CHECK_OK(kiln_order_book_replace(book, "a", &orders, NULL));
    CHECK(access(path, F_OK) < 0); /* nothing changed: nothing is written */
    orders.n = 0;
    CHECK_OK(kiln_order_book_replace(book, "a", &orders, NULL));
    again();
    CHECK_TEXT(in_force("a", 0), "");
    CHECK_TEXT(in_force("b", 0), "boost shop");
    kiln_orders_done(&orders);
    stop();
}

TEST(book, a_file_that_makes_no_sense_is_put_aside)
{
    static const char *const texts[] = {"", "[]", "{\"orders\":[{\"id\":\"x\"}]}",
                                        "{\"orders\":[]}{", "\xff\xfe"};
    char damaged[sizeof(path) + 16];

    start();
    snprintf(damaged, sizeof(damaged), "%s.damaged", path);
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(texts); i++) {
        CHECK_OK(kiln_file_write(path, kiln_str_of(texts[i]), NULL));
        again();
        CHECK_TEXT(in_force("a", 0), "");
        CHECK_OK(access(damaged, F_OK));
        CHECK_OK(unlink(damaged));
    }
    add("a", KILN_ORDER_BOOST, "shop");
    again();
    CHECK_TEXT(in_force("a", 0), "boost shop");
    stop();
}

TEST(book, what_cannot_be_written_did_not_happen)
{
    struct kiln_order order, kept;
    struct kiln_err err = {0};

    start();
    kept = add("a", KILN_ORDER_BOOST, "shop");
    kiln_order_book_close(book);
    CHECK_OK(kiln_order_book_open(&(struct kiln_order_book_opts){.path = path}, &book, NULL));
    CHECK_OK(unlink(path));
    CHECK_OK(rmdir(folder));
    order = order_of(KILN_ORDER_PAUSE, "cart", KILN_PAUSE_NS);
    CHECK_EQ(kiln_order_book_add(book, "a", &order, &err), -ENOENT);
    CHECK(err.text[0]);
    order = order_of(KILN_ORDER_BOOST, "shop", KILN_BOOST_NS);
    CHECK_EQ(kiln_order_book_add(book, "a", &order, NULL), -ENOENT);
    CHECK_EQ(kiln_order_book_remove(book, "a", kept.id, NULL), -ENOENT);
    CHECK_TEXT(in_force("a", 0), "boost shop");
    folder_make(folder);
    stop();
}
