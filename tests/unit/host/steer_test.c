/* SPDX-License-Identifier: Apache-2.0 */
#include "host/steer.h"

#include <stdlib.h>
#include <string.h>

#include "host/bpf/settings.h"
#include "test.h"

/* ---- a kernel that writes down ---- */

static uint32_t rates[65536]; /* by pid: its rate + 1; 0: none */
static uint32_t n_rates;

static int put(void *context, uint32_t pid, uint32_t hz)
{
    (void)context;
    n_rates += rates[pid] == 0;
    rates[pid] = hz + 1;
    return 0;
}

static void drop(void *context, uint32_t pid)
{
    (void)context;
    n_rates -= rates[pid] != 0;
    rates[pid] = 0;
}

static struct kiln_steer *steer_of(const struct kiln_order *orders, uint32_t n)
{
    struct kiln_steer_opts opts = {.host_id = "id", .host_name = "web-1", .put = put, .drop = drop};
    struct kiln_steer *steer;

    memset(rates, 0, sizeof(rates));
    n_rates = 0;
    CHECK_OK(kiln_steer_new(&opts, &steer));
    CHECK_OK(kiln_steer_follow(steer, orders, n));
    return steer;
}

static struct kiln_order order(enum kiln_order_kind kind, enum kiln_order_target target,
                               const char *name, uint32_t hz)
{
    struct kiln_order made = {.kind = kind, .target = target, .hz = hz};

    snprintf(made.name, sizeof(made.name), "%s", name);
    made.created_ns = kiln_clock_unix_ns();
    made.expires_ns = made.created_ns + 3600 * KILN_NS_PER_S;
    return made;
}

static bool wants(struct kiln_steer *steer, uint32_t pid, const char *service)
{
    return kiln_steer_process(steer,
                              &(struct kiln_steered){.pid = pid, .service = kiln_str_of(service)});
}

/* ---- tests ---- */

TEST(steer, without_orders_everybody_has_the_same_rate)
{
    struct kiln_steer *steer = steer_of(NULL, 0);
    struct kiln_steer_rates now = kiln_steer_rates(steer, 19, 0);

    CHECK(wants(steer, 1, "shop"));
    CHECK_EQ(now.hz, 19);
    CHECK_EQ(now.clock_hz, 19);
    CHECK_EQ(n_rates, 0);
    CHECK(kiln_steer_turns_ns(steer) == UINT64_MAX);
    kiln_steer_free(steer);
}

TEST(steer, a_boost_makes_the_clocks_faster_once_a_process_is_there_that_it_is_for)
{
    const struct kiln_order orders[] = {order(KILN_ORDER_BOOST, KILN_TARGET_SERVICE, "shop", 199)};
    struct kiln_steer *steer = steer_of(orders, 1);

    CHECK(wants(steer, 1, "other"));
    CHECK_EQ(kiln_steer_rates(steer, 19, 0).clock_hz, 19);
    CHECK(wants(steer, 2, "shop"));
    CHECK_EQ(kiln_steer_rates(steer, 19, 0).clock_hz, 199);
    CHECK_EQ(kiln_steer_rates(steer, 19, 0).hz, 19);
    CHECK_EQ(rates[2], 199 + 1);
    CHECK_EQ(n_rates, 1);
    kiln_steer_free(steer);
}

TEST(steer, a_pause_counts_more_than_a_boost_and_of_two_boosts_the_higher)
{
    const struct kiln_order orders[] = {order(KILN_ORDER_BOOST, KILN_TARGET_SERVICE, "shop", 97),
                                        order(KILN_ORDER_BOOST, KILN_TARGET_SERVICE, "shop", 199),
                                        order(KILN_ORDER_BOOST, KILN_TARGET_SERVICE, "shop", 49),
                                        order(KILN_ORDER_BOOST, KILN_TARGET_SERVICE, "mail", 49),
                                        order(KILN_ORDER_PAUSE, KILN_TARGET_SERVICE, "mail", 0)};
    struct kiln_steer *steer = steer_of(orders, KILN_ARRAY_LEN(orders));
    struct kiln_steer_stats stats;

    CHECK(wants(steer, 1, "shop"));
    CHECK(!wants(steer, 2, "mail"));
    CHECK_EQ(rates[1], 199 + 1);
    CHECK_EQ(rates[2], 0 + 1);
    kiln_steer_stats(steer, &stats);
    CHECK_EQ(stats.boosted, 1);
    CHECK_EQ(stats.paused, 1);
    CHECK_EQ(stats.orders, 5);
    CHECK(!stats.all_paused);
    kiln_steer_free(steer);
}

TEST(steer, a_boost_below_the_usual_rate_lowers_nothing)
{
    const struct kiln_order orders[] = {order(KILN_ORDER_BOOST, KILN_TARGET_SERVICE, "shop", 5)};
    struct kiln_steer *steer = steer_of(orders, 1);

    kiln_steer_rates(steer, 19, 0);
    CHECK(wants(steer, 1, "shop"));
    CHECK_EQ(rates[1], 19 + 1);
    CHECK_EQ(kiln_steer_rates(steer, 97, 0).clock_hz, 97);
    CHECK_EQ(rates[1], 97 + 1);
    kiln_steer_free(steer);
}

TEST(steer, orders_for_everything_change_the_rate_of_all)
{
    struct kiln_order orders[] = {order(KILN_ORDER_BOOST, KILN_TARGET_ALL, "", 97),
                                  order(KILN_ORDER_PAUSE, KILN_TARGET_HOST, "web-2", 0)};
    struct kiln_steer *steer = steer_of(orders, 2);
    struct kiln_steer_stats stats;

    CHECK_EQ(kiln_steer_rates(steer, 19, 0).hz, 97); /* the pause is for another host */
    orders[1] = order(KILN_ORDER_PAUSE, KILN_TARGET_HOST, "id", 0);
    CHECK_OK(kiln_steer_follow(steer, orders, 2));
    CHECK_EQ(kiln_steer_rates(steer, 19, 0).clock_hz, 0);
    kiln_steer_stats(steer, &stats);
    CHECK(stats.all_paused);
    kiln_steer_free(steer);
}

TEST(steer, a_container_is_known_by_its_name_its_id_or_enough_of_that)
{
    const char *id = "4f5e2a9c0b7d4f5e2a9c0b7d4f5e2a9c0b7d4f5e2a9c0b7d4f5e2a9c0b7d4f5e";
    const struct {
        const char *name;
        bool is_it;
    } rows[] = {{id, true},
                {"4f5e2a9c0b7d", true},
                {"4f5e2a9c0b7", false},
                {"shop-1", true},
                {"shop", false},
                {"", false},
                {"5e2a9c0b7d4f", false}};

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(rows); i++) {
        const struct kiln_order one =
            order(KILN_ORDER_PAUSE, KILN_TARGET_CONTAINER, rows[i].name, 0);
        struct kiln_steer *steer = steer_of(&one, 1);
        const struct kiln_steered process = {
            .pid = 1, .container_id = kiln_str_of(id), .container_name = KILN_STR("shop-1")};
        const struct kiln_steered outside = {.pid = 2};

        CHECK_EQ(kiln_steer_process(steer, &process), !rows[i].is_it);
        CHECK(kiln_steer_process(steer, &outside));
        kiln_steer_free(steer);
    }
}

TEST(steer, a_process_is_known_by_its_number)
{
    struct kiln_order one = order(KILN_ORDER_PAUSE, KILN_TARGET_PROCESS, "", 0);
    struct kiln_steer *steer;

    one.pid = 7;
    steer = steer_of(&one, 1);
    CHECK(!wants(steer, 7, "shop"));
    CHECK(wants(steer, 8, "shop"));
    kiln_steer_free(steer);
}

/* An agent that was started anew, perhaps with the machine, has only the order. */
TEST(steer, an_order_is_for_the_process_that_was_there_when_it_was_given)
{
    struct kiln_order orders[] = {order(KILN_ORDER_PAUSE, KILN_TARGET_PROCESS, "", 0)};
    uint64_t given = orders[0].created_ns;
    struct kiln_steered later = {
        .pid = 7, .start_ns = 9000, .start_unix_ns = given + 60 * KILN_NS_PER_S};
    struct kiln_steered there = {
        .pid = 7, .start_ns = 1000, .start_unix_ns = given - 60 * KILN_NS_PER_S};
    struct kiln_steer *steer;

    orders[0].pid = 7;
    steer = steer_of(orders, 1);
    CHECK(kiln_steer_process(steer, &later));
    CHECK_EQ(n_rates, 0);
    CHECK(!kiln_steer_process(steer, &there));
    CHECK_EQ(n_rates, 1);
    kiln_steer_free(steer);
}

TEST(steer, a_number_that_is_given_again_is_somebody_elses)
{
    struct kiln_order one = order(KILN_ORDER_PAUSE, KILN_TARGET_PROCESS, "", 0);
    struct kiln_steered first = {.pid = 7, .start_ns = 1000}, next = {.pid = 7, .start_ns = 2000};
    struct kiln_steer *steer;

    one.pid = 7;
    steer = steer_of(&one, 1);
    CHECK(!kiln_steer_process(steer, &first));
    kiln_steer_forget(steer, 7);
    CHECK(kiln_steer_process(steer, &next));
    kiln_steer_free(steer);
}

TEST(steer, an_order_ends_by_itself_and_all_is_as_before)
{
    const struct kiln_order orders[] = {order(KILN_ORDER_BOOST, KILN_TARGET_SERVICE, "shop", 199),
                                        order(KILN_ORDER_PAUSE, KILN_TARGET_SERVICE, "mail", 0)};
    struct kiln_steer *steer = steer_of(orders, 2);
    uint64_t turns_ns = kiln_steer_turns_ns(steer), now_ns = kiln_clock_mono_ns();

    CHECK(turns_ns > now_ns + 3590 * KILN_NS_PER_S && turns_ns <= now_ns + 3600 * KILN_NS_PER_S);
    CHECK(wants(steer, 1, "shop"));
    CHECK(!wants(steer, 2, "mail"));
    kiln_steer_tick(steer, turns_ns - 1);
    CHECK_EQ(n_rates, 2);
    kiln_steer_tick(steer, turns_ns + KILN_NS_PER_S);
    CHECK_EQ(n_rates, 0);
    CHECK(wants(steer, 2, "mail"));
    CHECK_EQ(kiln_steer_rates(steer, 19, 0).clock_hz, 19);
    kiln_steer_free(steer);
}

TEST(steer, an_order_that_is_over_is_not_followed)
{
    struct kiln_order one = order(KILN_ORDER_PAUSE, KILN_TARGET_ALL, "", 0);
    struct kiln_steer *steer;

    one.expires_ns = kiln_clock_unix_ns() - 1;
    steer = steer_of(&one, 1);
    CHECK_EQ(kiln_steer_rates(steer, 19, 0).hz, 19);
    kiln_steer_free(steer);
}

TEST(steer, a_process_that_becomes_another_is_met_anew)
{
    const struct kiln_order orders[] = {order(KILN_ORDER_PAUSE, KILN_TARGET_SERVICE, "shop", 0)};
    struct kiln_steer *steer = steer_of(orders, 1);

    CHECK(!wants(steer, 1, "shop"));
    kiln_steer_forget(steer, 1);
    kiln_steer_forget(steer, 2);
    CHECK_EQ(n_rates, 0);
    CHECK(!wants(steer, 1, "shop"));
    CHECK(wants(steer, 1, "mail")); /* its name is another, as it said later */
    CHECK_EQ(n_rates, 0);
    kiln_steer_free(steer);
}

TEST(steer, once_an_end_may_have_been_missed_all_are_met_anew)
{
    const struct kiln_order orders[] = {order(KILN_ORDER_PAUSE, KILN_TARGET_SERVICE, "shop", 0)};
    struct kiln_steer *steer = steer_of(orders, 1);

    CHECK(!wants(steer, 7, "shop"));
    CHECK_EQ(rates[7], 0 + 1);
    kiln_steer_forget_all(steer);
    CHECK_EQ(n_rates, 0);
    CHECK(wants(steer, 7, "other")); /* which has its number now */
    CHECK(!wants(steer, 8, "shop"));
    kiln_steer_free(steer);
}

TEST(steer, what_lowers_the_rate_lowers_boosts_too_and_never_to_nothing)
{
    const struct kiln_order orders[] = {order(KILN_ORDER_BOOST, KILN_TARGET_SERVICE, "shop", 199),
                                        order(KILN_ORDER_PAUSE, KILN_TARGET_SERVICE, "mail", 0)};
    struct kiln_steer *steer = steer_of(orders, 2);
    struct kiln_steer_rates now;

    CHECK(wants(steer, 1, "shop") && !wants(steer, 2, "mail"));
    now = kiln_steer_rates(steer, 19, 1);
    CHECK_EQ(now.hz, 7);
    CHECK_EQ(now.clock_hz, 97);
    CHECK_EQ(rates[1], 97 + 1);
    CHECK_EQ(rates[2], 0 + 1);
    CHECK_EQ(kiln_steer_rates(steer, 19, 20).hz, 1);
    CHECK_EQ(kiln_steer_rates(steer, 0, 3).hz, 0);
    CHECK_EQ(kiln_rate_lower(1000, 1), 499);
    CHECK_EQ(kiln_rate_lower(3, 1), 1);
    kiln_steer_free(steer);
}

TEST(steer, as_many_processes_as_fit_and_the_others_at_the_usual_rate)
{
    const struct kiln_order orders[] = {order(KILN_ORDER_BOOST, KILN_TARGET_SERVICE, "shop", 199),
                                        order(KILN_ORDER_PAUSE, KILN_TARGET_SERVICE, "mail", 0)};
    struct kiln_steer *steer = steer_of(orders, 2);

    for (uint32_t pid = 1; pid <= KILN_RATES_MAX + 5; pid++)
        CHECK(wants(steer, pid, "shop"));
    CHECK_EQ(n_rates, KILN_RATES_MAX);
    CHECK(!wants(steer, 60000, "mail")); /* the kernel does not know, the reader does */
    for (uint32_t pid = 1; pid <= KILN_RATES_MAX + 5; pid += 3)
        kiln_steer_forget(steer, pid);
    for (uint32_t pid = 1; pid <= KILN_RATES_MAX; pid++)
        CHECK_EQ(rates[pid] != 0, pid % 3 != 1);
    CHECK(!wants(steer, 60000, "mail"));
    CHECK_EQ(rates[60000], 1);
    kiln_steer_free(steer);
}
