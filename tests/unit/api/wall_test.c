/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wall-clock time, which nobody sent, as clients of both APIs see it: made of the time on the
 * processor and off it.
 */
#include "api_kit.h"
#include "drawn.h"
#include "test.h"

#define MINUTE API_KIT_MINUTE
#define WALL   "wall:wall:nanoseconds:wall:nanoseconds"
#define SHOP   "%7Bservice_name=%22shop%22%7D"
#define TIMES  "\"start\":1772362800000,\"end\":1772366400000"

static struct api_kit kit;

/* A shop whose CPU time is in a block, and its waits in the head; a cart nobody watches wait. */
static void start(int (*add)(struct kiln_api *api, struct kiln_router *router))
{
    api_kit_init(&kit, 0, add);
    api_kit_put_cpu(&kit, "main;parse 300\nmain;query 200 ^7.2\n", 20 * MINUTE, "service.name=shop",
                    1);
    CHECK_OK(kiln_store_flush(kit.store.engine, NULL));
    api_kit_put_off_cpu(&kit, "main;query 4000 ^7.2\nmain;query 1000 ^7.3\n", 20 * MINUTE,
                        "service.name=shop");
    api_kit_put_cpu(&kit, "main;serve 10\n", 20 * MINUTE, "service.name=cart", 2);
}

static bool says(const char *text, const char *part)
{
    if (!strstr(text, part))
        printf("%s\nis not in\n%s\n", part, text);
    return strstr(text, part) != NULL;
}

static const char *get(const char *target)
{
    return api_kit_get(&kit, target);
}

TEST(wall, our_own_api_answers_it)
{
    start(kiln_api_add_native);
    CHECK(says(get("/api/v1/query?query=wall" SHOP), "\"id\":\"" WALL "\""));
    CHECK(says(get("/api/v1/query?query=wall" SHOP), "\"total\":5500,"));
    CHECK(says(get("/api/v1/query?query=wall" SHOP "&format=top"),
               "\"name\":\"query\",\"file\":\"\",\"module\":\"\",\"kind\":\"\",\"self\":5200,"));
    CHECK(says(get("/api/v1/query?query=" WALL SHOP "&format=series&step=1h"), "5500"));
    CHECK(says(get("/api/v1/query?query=" WALL "&format=series&step=1h&by=__profile_type__"),
               "510")); /* what of it is CPU time, and what is not */
    CHECK(says(get("/api/v1/types?query=" SHOP), "\"id\":\"" WALL "\""));
    CHECK(strstr(get("/api/v1/types?query=%7Bservice_name=%22cart%22%7D"), WALL) == NULL);
    CHECK(says(get("/api/v1/spans?query=" WALL), "\"value\":4200"));
    api_kit_done(&kit);
}

TEST(wall, a_diff_of_it_is_one_of_both_parts)
{
    start(kiln_api_add_native);
    api_kit_put_cpu(&kit, "main;parse 300\n", 5 * MINUTE, "service.name=shop", 3);
    api_kit_put_off_cpu(&kit, "main;query 6000\n", 5 * MINUTE, "service.name=shop");
    CHECK(says(get("/api/v1/diff?query=wall" SHOP "&left_until=now-10m&right_from=now-10m"
                   "&format=top&normalize=none"),
               "\"name\":\"query\""));
    CHECK_EQ(api_kit_status(), 200);
    api_kit_done(&kit);
}

TEST(wall, a_service_that_sends_it_has_its_own)
{
    struct kiln_drawn drawn = {.stacks = "main;run 77\n",
                               .type = "wall",
                               .unit = "nanoseconds",
                               .time_ns = API_KIT_NOW - 20 * MINUTE,
                               .resource = "service.name=java"};

    start(kiln_api_add_native);
    api_kit_put_cpu(&kit, "main;run 70\n", 20 * MINUTE, "service.name=java", 4);
    api_kit_put_off_cpu(&kit, "main;run 5\n", 20 * MINUTE, "service.name=java");
    kit_put(&kit.store, kiln_test_batch(&drawn, 1));
    CHECK(says(get("/api/v1/query?query=wall%7Bservice_name=%22java%22%7D"), "\"total\":77,"));
    CHECK(says(get("/api/v1/query?query=wall%7Bservice_name=~%22java%7Cshop%22%7D"),
               "\"total\":5577,"));
    api_kit_done(&kit);
}

TEST(wall, a_part_may_have_any_period)
{
    struct kiln_drawn drawn = {.stacks = "main;ask 40\n",
                               .type = "off_cpu",
                               .unit = "nanoseconds",
                               .period_type = "cpu",
                               .period_unit = "nanoseconds",
                               .period = 1,
                               .time_ns = API_KIT_NOW - 20 * MINUTE,
                               .resource = "service.name=cart"};

    start(kiln_api_add_native);
    kit_put(&kit.store, kiln_test_batch(&drawn, 1));
    CHECK(says(get("/api/v1/query?query=wall%7Bservice_name=%22cart%22%7D"), "\"total\":50,"));
    CHECK(says(get("/api/v1/gap?query=%7Bservice_name=%22cart%22%7D"), "\"blocked\":40,"));
    api_kit_done(&kit);
}

TEST(wall, clients_of_pyroscope_see_it_beside_its_parts)
{
    start(kiln_api_add_pyroscope);
    kit.headers = "Content-Type: application/json\r\n";
    CHECK(says(api_kit_send(&kit, "POST", "/querier.v1.QuerierService/ProfileTypes", "{" TIMES "}"),
               WALL));
    CHECK(says(api_kit_send(&kit, "POST", "/querier.v1.QuerierService/SelectMergeStacktraces",
                            "{" TIMES ",\"profileTypeID\":\"" WALL
                            "\",\"labelSelector\":\"{service_name=\\\"shop\\\"}\"}"),
               "\"total\":\"5500\""));
    CHECK(says(api_kit_send(&kit, "POST", "/querier.v1.QuerierService/Series",
                            "{" TIMES ",\"labelNames\":[\"service_name\",\"__profile_type__\"],"
                            "\"matchers\":[\"{__profile_type__=\\\"" WALL "\\\"}\"]}"),
               "shop"));
    api_kit_done(&kit);
}
