/* SPDX-License-Identifier: Apache-2.0 */
/* What functions wait for, as a client sees it, over a drawn store. */
#include "api_kit.h"
#include "drawn.h"
#include "nameless.h"
#include "test.h"

#define MINUTE API_KIT_MINUTE
#define SHOP   "query=%7Bservice_name=%22shop%22%7D"

static struct api_kit kit;

/* A shop that computes, waits for a lock and for a database, and is kept waiting by others. */
static void start(void)
{
    api_kit_init(&kit, 0, kiln_api_add_native);
    api_kit_put_cpu(&kit, "main;parse@json.go:7 300\nmain;query 20\n", 20 * MINUTE,
                    "service.name=shop", 1);
    CHECK_OK(kiln_store_flush(kit.store.engine, NULL));
    api_kit_put_off_cpu(&kit,
                        "main;query;read 4000 thread.state=blocked,wait.reason=socket ^7.2\n"
                        "main;parse@json.go:7;lock 700 thread.state=blocked,wait.reason=futex\n"
                        "main;query;lock 100 thread.state=blocked,wait.reason=futex\n"
                        "main;parse@json.go:7 50 thread.state=runnable\n",
                        20 * MINUTE, "service.name=shop");
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

TEST(gap, functions_stand_by_what_they_spend_off_processors)
{
    start();
    API_GOLDEN("native-gap.json", get("/api/v1/gap?" SHOP));
    CHECK_EQ(api_kit_status(), 200);
    API_GOLDEN("native-gap-self.json", get("/api/v1/gap?" SHOP "&sort=self&limit=1"));
    api_kit_done(&kit);
}

TEST(gap, whatever_type_is_said_it_is_the_same_question)
{
    static char plain[65536];

    start();
    snprintf(plain, sizeof(plain), "%s", get("/api/v1/gap?" SHOP));
    CHECK_TEXT(get("/api/v1/gap?query=cpu%7Bservice_name=%22shop%22%7D"), plain);
    CHECK_TEXT(get("/api/v1/gap?query=%7Bservice_name=%22shop%22,__profile_type__=%22off_cpu:"
                   "off_cpu:nanoseconds::%22%7D"),
               plain);
    api_kit_done(&kit);
}

TEST(gap, stacks_and_spans_choose_as_everywhere)
{
    start();
    CHECK(says(get("/api/v1/gap?" SHOP "&function=parse"),
               "\"overall\":{\"wall\":1050,\"cpu\":300,\"blocked\":700,\"runnable\":50,"
               "\"gap\":750}"));
    CHECK(says(get("/api/v1/gap?" SHOP "&span_id=0000000000000002"),
               "\"overall\":{\"wall\":4000,\"cpu\":0,\"blocked\":4000,"));
    api_kit_done(&kit);
}

TEST(gap, who_knows_nothing_of_waits_says_so)
{
    start();
    CHECK(says(get("/api/v1/gap?query=%7Bservice_name=%22cart%22%7D"), "\"code\":\"no_waits\""));
    CHECK(says(get("/api/v1/gap?query=%7Bservice_name=%22cart%22%7D"),
               "\"overall\":{\"wall\":10,\"cpu\":10,"));
    api_kit_done(&kit);
}

TEST(gap, waits_without_a_reason_are_blocked_for_none)
{
    start();
    api_kit_put_off_cpu(&kit, "main;poll 60\n", 20 * MINUTE, "service.name=other");
    CHECK(says(get("/api/v1/gap?query=%7Bservice_name=%22other%22%7D"),
               "\"reasons\":[{\"reason\":\"\",\"value\":60}]"));
    api_kit_done(&kit);
}

TEST(gap, a_service_that_sends_wall_time_keeps_it)
{
    struct kiln_drawn drawn = {.stacks = "main;run 100\n",
                               .type = "wall",
                               .unit = "nanoseconds",
                               .time_ns = API_KIT_NOW - 20 * MINUTE,
                               .resource = "service.name=java"};

    start();
    api_kit_put_cpu(&kit, "main;run 70\n", 20 * MINUTE, "service.name=java", 4);
    kit_put(&kit.store, kiln_test_batch(&drawn, 1));
    CHECK(says(get("/api/v1/gap?query=%7Bservice_name=%22java%22%7D"),
               "\"overall\":{\"wall\":100,\"cpu\":70,\"blocked\":0,\"runnable\":0,\"gap\":30}"));
    api_kit_done(&kit);
}

/* All of them in the kernel, where whoever waits is. */
static void put_kernel(const char *cpu, const char *waits)
{
    const struct kiln_nameless drawn = {
        .stacks = cpu, .service = "shop", .build_id = "01", .time_ns = API_KIT_NOW - 20 * MINUTE};

    api_kit_init(&kit, 0, kiln_api_add_native);
    kit_put(&kit.store, kiln_test_nameless(&drawn));
    api_kit_put_off_cpu(&kit, waits, 20 * MINUTE, "service.name=shop");
}

TEST(gap, functions_of_the_kernel_do_not_stand_before_who_waits)
{
    const char *answer;

    put_kernel("main@10;ask@20;do_syscall?30;sock_recv?40 5\n",
               "main;ask;do_syscall;sock_recv 4000 thread.state=blocked,wait.reason=socket\n");
    answer = get("/api/v1/gap?" SHOP);
    CHECK(says(answer, "\"functions\":2,"));
    CHECK(says(answer, "\"code\":\"kernel_left_out\""));
    CHECK(says(answer, "\"name\":\"ask\"") && says(answer, "\"reason\":\"socket\""));
    CHECK(!strstr(answer, "do_syscall") && !strstr(answer, "sock_recv"));
    answer = get("/api/v1/gap?" SHOP "&sort=self");
    CHECK(says(answer, "\"functions\":4,") && says(answer, "\"rows\":[{\"name\":\"sock_recv\""));
    CHECK(!strstr(answer, "kernel_left_out"));
    api_kit_done(&kit);
}

TEST(gap, where_all_is_the_kernel_it_is_shown)
{
    put_kernel("kthread?10;worker?20 5\n",
               "kthread;worker 4000 thread.state=blocked,wait.reason=other\n");
    CHECK(says(get("/api/v1/gap?" SHOP), "\"functions\":2,"));
    CHECK(!strstr(get("/api/v1/gap?" SHOP), "kernel_left_out"));
    api_kit_done(&kit);
}

TEST(gap, very_many_reasons_are_cut_and_said)
{
    char stacks[4096];
    int n = 0;

    for (int i = 0; i < 40; i++)
        n += snprintf(stacks + n, sizeof(stacks) - (size_t)n,
                      "main;f%d %d thread.state=blocked,wait.reason=r%d\n", i, i + 1, i);
    start();
    api_kit_put_off_cpu(&kit, stacks, 20 * MINUTE, "service.name=odd");
    CHECK(says(get("/api/v1/gap?query=%7Bservice_name=%22odd%22%7D&limit=0"), "reasons_cut"));
    CHECK_EQ(api_kit_status(), 200);
    api_kit_done(&kit);
}
