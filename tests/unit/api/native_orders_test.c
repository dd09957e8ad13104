/* SPDX-License-Identifier: Apache-2.0 */
/* Orders over HTTP: given, listed, withdrawn; agents that report and are told. */
#include "api_kit.h"
#include "fleet/fleet.h"
#include "test.h"

static struct api_kit kit;
static struct kiln_fleet fleet;

static void start(void)
{
    CHECK_OK(kiln_fleet_open(&fleet, &(struct kiln_fleet_opts){0}, NULL));
    api_kit_init(&kit, 0, kiln_api_add_native);
    kit.api.fleet = &fleet;
    kit.api.anonymous_orders = KILN_ORDERS_ALL;
}

static void stop(void)
{
    api_kit_done(&kit);
    kiln_fleet_close(&fleet);
}

static const char *ask(const char *method, const char *target, const char *body, int status)
{
    const char *said = api_kit_send(&kit, method, target, body);

    if (api_kit_status() != status)
        printf("%s %s: %d: %s\n", method, target, api_kit_status(), said);
    CHECK_EQ(api_kit_status(), status);
    return said;
}

#define HAS(text, part)   CHECK(strstr((text), (part)))
#define HASNT(text, part) CHECK(!strstr((text), (part)))

#define BOOST             "{\"kind\":\"boost\",\"target\":\"service\",\"name\":\"shop\",\"why\":\"slow\"}"
#define STATUS(id, host)                                                                           \
    "{\"id\":\"" id "\",\"host\":\"" host "\",\"version\":\"0.1.0\",\"state\":\"running\","        \
    "\"hz\":19,\"samples\":7,\"orders\":[\"a\"]}"

/* The id of the first order that an answer has. */
static const char *first_id(const char *said)
{
    static char id[KILN_ORDER_ID_BYTES];
    const char *at = strstr(said, "\"id\":\"");

    CHECK(at);
    snprintf(id, sizeof(id), "%.20s", at + 6);
    return id;
}

TEST(orders, an_order_is_given_listed_and_withdrawn)
{
    char target[64];
    const char *said, *id;

    start();
    CHECK_TEXT(ask("GET", "/api/v1/orders", NULL, 200), "{\"orders\":[]}\n");
    said = ask("POST", "/api/v1/orders", BOOST, 201);
    HAS(said, "\"kind\":\"boost\",\"target\":\"service\",\"name\":\"shop\",\"pid\":null,\"host\":"
              "null,\"hz\":199,\"created\":\"2026-03-01T12:00:00Z\",\"expires\":"
              "\"2026-03-01T12:10:00Z\",\"by\":null,\"why\":\"slow\"}");
    id = first_id(said); /* an answer lives until the next one */
    snprintf(target, sizeof(target), "/api/v1/orders/%s", id);
    HAS(ask("GET", "/api/v1/orders", NULL, 200), id);
    kit.headers = "X-Scope-OrgID: other\r\n";
    CHECK_TEXT(ask("GET", "/api/v1/orders", NULL, 200), "{\"orders\":[]}\n");
    ask("DELETE", target, NULL, 404);
    kit.headers = "X-Scope-OrgID: anonymous|other\r\n";
    HAS(ask("GET", "/api/v1/orders", NULL, 200), "shop");
    kit.headers = NULL;
    ask("DELETE", target, NULL, 204);
    ask("DELETE", target, NULL, 404);
    CHECK_TEXT(ask("GET", "/api/v1/orders", NULL, 200), "{\"orders\":[]}\n");
    stop();
}

TEST(orders, parameters_say_what_the_body_does_not)
{
    start();
    HAS(ask("POST", "/api/v1/orders?hz=97&duration=1h", BOOST, 201),
        "\"hz\":97,\"created\":\"2026-03-01T12:00:00Z\",\"expires\":\"2026-03-01T13:00:00Z\"");
    HAS(ask("POST", "/api/v1/orders?hz=0", BOOST, 400), "hz: not a number from 1 to 1000");
    HAS(ask("POST", "/api/v1/orders?duration=soon", BOOST, 400), "not a time span");
    stop();
}

TEST(orders, what_makes_no_sense_is_refused_in_words)
{
    start();
    HAS(ask("POST", "/api/v1/orders", "{}", 400), "kind: is it a boost or a pause?");
    HAS(ask("POST", "/api/v1/orders", "{\"kind\":\"boost\",\"target\":\"moon\"}", 400),
        "\"code\":\"bad_body\"");
    HAS(ask("POST", "/api/v1/orders", "{\"kind\":1}", 400), "\"code\":\"bad_body\"");
    HAS(ask("POST", "/api/v1/orders", "", 400), "\"code\":\"bad_body\"");
    CHECK_TEXT(ask("GET", "/api/v1/orders", NULL, 200), "{\"orders\":[]}\n");
    stop();
}

TEST(orders, an_alert_that_fires_is_a_boost_and_one_that_is_over_is_nothing)
{
    start();
    HAS(ask("POST", "/api/v1/orders?hz=299&label=app",
            "{\"version\":\"4\",\"alerts\":[{\"status\":\"firing\",\"labels\":{\"alertname\":"
            "\"Burn\",\"app\":\"shop\"}}]}",
            201),
        "\"name\":\"shop\",\"pid\":null,\"host\":null,\"hz\":299,");
    CHECK_TEXT(ask("POST", "/api/v1/orders",
                   "{\"version\":\"4\",\"alerts\":[{\"status\":\"resolved\",\"labels\":{}}]}", 200),
               "{\"orders\":[]}\n");
    HAS(ask("GET", "/api/v1/orders", NULL, 200), "\"why\":\"Burn fires\"");
    stop();
}

TEST(orders, too_many_of_one_tenant_are_refused)
{
    char body[128];

    start();
    for (int i = 0; i < KILN_ORDER_BOOK_TENANT_MAX; i++) {
        snprintf(body, sizeof(body), "{\"kind\":\"pause\",\"target\":\"service\",\"name\":\"%d\"}",
                 i);
        ask("POST", "/api/v1/orders", body, 201);
    }
    HAS(ask("POST", "/api/v1/orders", BOOST, 422), "\"code\":\"limit\"");
    kit.headers = "X-Scope-OrgID: other\r\n";
    ask("POST", "/api/v1/orders", BOOST, 201);
    stop();
}

/* ---- agents ---- */

TEST(agents, one_reports_and_is_told_what_is_for_its_host)
{
    const char *said;

    start();
    ask("POST", "/api/v1/orders", BOOST, 201);
    ask("POST", "/api/v1/orders", "{\"kind\":\"pause\",\"target\":\"host\",\"name\":\"web-2\"}",
        201);
    said = ask("POST", "/api/v1/agents/id-1", STATUS("id-1", "web-1"), 200);
    HAS(said, "{\"now\":\"2026-03-01T12:00:00Z\",\"every_seconds\":5,\"known\":true,\"watched\":"
              "false,\"orders\":[{");
    HAS(said, "\"name\":\"shop\"");
    HASNT(said, "web-2");
    said = ask("POST", "/api/v1/agents/id-2", STATUS("id-2", "web-2"), 200);
    HAS(said, "web-2");
    said = ask("GET", "/api/v1/agents", NULL, 200);
    HAS(said, "{\"agents\":[{\"id\":\"id-1\",\"host\":\"web-1\",");
    HAS(said, "\"last_seen\":\"2026-03-01T12:00:00Z\",\"local\":false,\"state\":\"running\"");
    HAS(said, "\"orders\":[\"a\"]},{\"id\":\"id-2\"");
    stop();
}

TEST(agents, they_are_told_while_somebody_asks_for_what_is_new)
{
    start();
    ask("GET", "/api/v1/labels?from=now-2h&until=now-1h", NULL, 200);
    HAS(ask("POST", "/api/v1/agents/id-1", "{}", 200), "\"watched\":false");
    ask("GET", "/api/v1/labels?from=now-5m", NULL, 200);
    HAS(ask("POST", "/api/v1/agents/id-1", "{}", 200), "\"watched\":true");
    stop();
}

TEST(agents, one_that_has_nothing_new_to_say_is_still_seen)
{
    const char *said;

    start();
    HAS(ask("POST", "/api/v1/agents/id-1", "{}", 200), "\"known\":false");
    CHECK_TEXT(ask("GET", "/api/v1/agents", NULL, 200), "{\"agents\":[]}\n");
    ask("POST", "/api/v1/agents/id-1", STATUS("id-1", "web-1"), 200);
    ask("POST", "/api/v1/orders", "{\"kind\":\"pause\",\"target\":\"host\",\"name\":\"web-1\"}",
        201);
    kiln_clock_set(API_KIT_NOW + API_KIT_MINUTE);
    said = ask("POST", "/api/v1/agents/id-1", "{}", 200);
    HAS(said, "\"known\":true");
    HAS(said, "web-1");
    HAS(ask("GET", "/api/v1/agents", NULL, 200), "\"last_seen\":\"2026-03-01T12:01:00Z\"");
    stop();
}

TEST(agents, a_report_that_makes_no_sense_is_refused)
{
    start();
    HAS(ask("POST", "/api/v1/agents/id-1", STATUS("id-2", "web-1"), 400), "of another agent");
    HAS(ask("POST", "/api/v1/agents/id-1", "{\"hz\":\"much\"}", 400), "\"code\":\"bad_body\"");
    HAS(ask("POST", "/api/v1/agents/id-1", "", 400), "\"code\":\"bad_body\"");
    HAS(ask("POST", "/api/v1/agents/a%2Fb", "{}", 400), "an agent has an id");
    ask("POST",
        "/api/v1/agents/"
        "0123456789012345678901234567890123456789012345678901234567890123456789",
        "{}", 400);
    CHECK_TEXT(ask("GET", "/api/v1/agents", NULL, 200), "{\"agents\":[]}\n");
    stop();
}

TEST(agents, a_tenant_hears_nothing_of_anothers_orders)
{
    start();
    ask("POST", "/api/v1/orders", BOOST, 201);
    kit.headers = "X-Scope-OrgID: other\r\n";
    HASNT(ask("POST", "/api/v1/agents/id-1", STATUS("id-1", "web-1"), 200), "shop");
    stop();
}

TEST(agents, a_server_without_a_fleet_says_so)
{
    start();
    kit.api.fleet = NULL;
    HAS(ask("GET", "/api/v1/orders", NULL, 501), "unsupported");
    ask("POST", "/api/v1/orders", BOOST, 501);
    ask("DELETE", "/api/v1/orders/1", NULL, 501);
    ask("POST", "/api/v1/agents/id-1", "{}", 501);
    stop();
}
