/* SPDX-License-Identifier: Apache-2.0 */
/* Many at once: who gives orders, who withdraws them, who lists, who reports. */
#include <pthread.h>
#include <stdio.h>

#include "fleet/duty.h"
#include "fleet/order_book.h"
#include "fleet/roster.h"
#include "test.h"

enum { THREADS = 4, ROUNDS = 200 };

static struct kiln_order_book *book;
static struct kiln_roster *roster;
static struct kiln_duty *duty;
static uint32_t at_once, most_at_once; /* of follow(), which is called by one at a time */

static struct kiln_order order_of(unsigned number)
{
    struct kiln_order order = {.kind = KILN_ORDER_PAUSE, .target = KILN_TARGET_SERVICE};

    snprintf(order.name, sizeof(order.name), "s%u", number);
    order.created_ns = kiln_clock_unix_ns();
    order.expires_ns = order.created_ns + KILN_PAUSE_NS;
    return order;
}

static void follow(void *context, const struct kiln_order *orders, uint32_t n)
{
    (void)context;
    at_once++;
    most_at_once = at_once > most_at_once ? at_once : most_at_once;
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(orders[i].name[0], 's');
    at_once--;
}

static void count(void *context, const struct kiln_agent_status *status)
{
    (void)status;
    ++*(uint32_t *)context;
}

/* Each thread gives orders of its own and takes every other one back. */
static void *give_and_withdraw(void *context)
{
    unsigned number = *(unsigned *)context;
    struct kiln_agent_status status = {.host = "web"};
    struct kiln_orders seen;
    uint32_t agents;

    snprintf(status.id, sizeof(status.id), "id-%u", number);
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct kiln_order order = order_of(number * ROUNDS + i % 8), own = order;

        kiln_orders_init(&seen, KILN_DUTY_ORDERS_MAX);
        assert_int_equal(kiln_order_book_add(book, "a", &order, NULL), 0);
        assert_int_equal(kiln_duty_give(duty, &own, NULL), 0);
        assert_int_equal(kiln_duty_list(duty, &seen), 0);
        if (i % 2) {
            assert_int_equal(kiln_order_book_remove(book, "a", order.id, NULL), 1);
            assert_int_equal(kiln_duty_withdraw(duty, own.id, NULL), 1);
        }
        assert_int_equal(kiln_roster_report(roster, "a", &status, kiln_clock_unix_ns()), 0);
        agents = 0;
        kiln_roster_each(roster, count, &agents);
        kiln_order_book_expire(book, kiln_clock_mono_ns());
        kiln_duty_tick(duty);
        kiln_orders_done(&seen);
    }
    return NULL;
}

TEST(threads, give_withdraw_list_and_report_at_once)
{
    pthread_t threads[THREADS];
    unsigned numbers[THREADS];
    struct kiln_orders orders;
    uint32_t agents = 0;

    CHECK_OK(kiln_order_book_open(&(struct kiln_order_book_opts){0}, &book, NULL));
    CHECK_OK(kiln_roster_new(&roster));
    CHECK_OK(kiln_duty_open(
        &(struct kiln_duty_opts){
            .host_id = "id", .host_name = "web", .follow = follow, .limit = KILN_ORDERS_ALL},
        &duty, NULL));
    for (unsigned i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK_OK(pthread_create(&threads[i], NULL, give_and_withdraw, &numbers[i]));
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    kiln_orders_init(&orders, KILN_DUTY_ORDERS_MAX);
    CHECK_OK(kiln_order_book_list(book, "a", kiln_clock_mono_ns(), &orders));
    CHECK_EQ(orders.n, THREADS * 4); /* of eight names, those of even rounds */
    orders.n = 0;
    CHECK_OK(kiln_duty_list(duty, &orders));
    CHECK_EQ(orders.n, THREADS * 4);
    kiln_roster_each(roster, count, &agents);
    CHECK_EQ(agents, THREADS);
    CHECK_EQ(most_at_once, 1);
    kiln_orders_done(&orders);
    kiln_duty_close(duty);
    kiln_roster_free(roster);
    kiln_order_book_close(book);
}
