/* SPDX-License-Identifier: Apache-2.0 */
/* What ran when, sample by sample: format=timeline. */
#include <stdio.h>

#include "api/native_int.h"
#include "api_kit.h"
#include "test.h"

#define MINUTE   API_KIT_MINUTE
#define TIMELINE "/api/v1/query?query=process_cpu:cpu:nanoseconds&format=timeline"

static struct api_kit kit;

static bool says(const char *text, const char *part)
{
    if (!strstr(text, part))
        printf("%s\nis not in\n%s\n", part, text);
    return strstr(text, part) != NULL;
}

/* Three samples with times, of two threads, and one without. */
static void start(void)
{
    unsigned long long at = API_KIT_NOW - 10 * MINUTE;
    char stacks[512];

    api_kit_init(&kit, 0, kiln_api_add_native);
    snprintf(stacks, sizeof(stacks),
             "main;parse 10000000@%llu 10000000@%llu thread.id=7,thread.name=io\n"
             "main;write@w.c:3 10000000@%llu thread.id=8\nmain 30000000\n",
             at + 3000, at + 1000, at + 2000);
    api_kit_put_cpu(&kit, stacks, 10 * MINUTE, "service.name=shop", 1);
}

TEST(native_timeline, samples_stand_in_the_order_of_their_times)
{
    const char *text;

    start();
    text = api_kit_get(&kit, TIMELINE);
    CHECK_EQ(api_kit_status(), 200);
    API_GOLDEN("native-query-timeline.json", text);
    api_kit_done(&kit);
}

TEST(native_timeline, more_than_the_limit_are_thinned_and_that_is_said)
{
    const char *text;

    start();
    text = api_kit_get(&kit, TIMELINE "&limit=2");
    CHECK(says(text, "\"all\":4,\"timed\":3"));
    CHECK(says(text, "\"total\":20000000,"));
    CHECK(says(text, "{\"code\":\"rows_cut\",\"text\":\"2 of 3 samples are shown"));
    CHECK(says(api_kit_get(&kit, TIMELINE "&limit=200001"),
               "limit: a timeline has at most 200000 samples"));
    CHECK_EQ(api_kit_status(), 400);
    CHECK(says(api_kit_get(&kit, TIMELINE "&limit=0"), "\"value\":[10000000,10000000,10000000]"));
    api_kit_done(&kit);
}

TEST(native_timeline, without_times_there_is_none)
{
    const char *text;

    start();
    text = api_kit_get(&kit, TIMELINE "&without=%5E(parse%7Cwrite)$");
    CHECK(says(text, "\"timeline\":{\"start\":null,\"all\":1,\"timed\":0,\"threads\":[],"
                     "\"name\":[0],\"parent\":[-1],\"names\":[\"total\"]"));
    CHECK(says(text, "\"code\":\"no_times\""));
    text = api_kit_get(&kit, TIMELINE "&from=now-3h&until=now-2h");
    CHECK(says(text, "\"all\":0,\"timed\":0"));
    CHECK(says(text, "\"code\":\"nothing_found\""));
    api_kit_done(&kit);
}

/* Two samples of two threads, 2 us apart. */
#define FILE_TEXT                                                                                  \
    "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"sampleType\":{"                  \
    "\"typeStrindex\":1,\"unitStrindex\":2},\"samples\":["                                         \
    "{\"stackIndex\":1,\"attributeIndices\":[1],\"timestampsUnixNano\":[\"5000\"]},"               \
    "{\"stackIndex\":2,\"attributeIndices\":[2],\"timestampsUnixNano\":[\"7000\"]}]}]}]}],"        \
    "\"dictionary\":{\"stringTable\":[\"\",\"samples\",\"count\",\"main\",\"work\",\"thread.id\"]" \
    ","                                                                                            \
    "\"mappingTable\":[{}],\"linkTable\":[{}],\"functionTable\":[{},{\"nameStrindex\":3},"         \
    "{\"nameStrindex\":4}],\"locationTable\":[{},{\"lines\":[{\"functionIndex\":1}]},"             \
    "{\"lines\":[{\"functionIndex\":2}]}],\"stackTable\":[{},{\"locationIndices\":[2,1]},"         \
    "{\"locationIndices\":[1]}],\"attributeTable\":[{},{\"keyStrindex\":5,\"value\":{"             \
    "\"intValue\":\"13\"}},{\"keyStrindex\":5,\"value\":{\"intValue\":\"14\"}}]}}"

TEST(native_timeline, a_file_has_one_too)
{
    const char *text;

    start();
    text = api_kit_send(&kit, "POST", "/api/v1/files?format=timeline&name=a.json", FILE_TEXT);
    CHECK_EQ(api_kit_status(), 200);
    CHECK(says(text, "\"format\":\"otlp-json\""));
    CHECK(says(text, "\"all\":2,\"timed\":2,\"threads\":[{\"id\":\"13\",\"name\":\"\"},"
                     "{\"id\":\"14\",\"name\":\"\"}],\"name\":[0,1,2],\"parent\":[-1,0,1]"));
    CHECK(says(text, "\"thread\":[0,1],\"at_ns\":[0,2000],\"node\":[2,1],\"value\":[1,1]"));
    text = api_kit_send(&kit, "POST", "/api/v1/files?format=timeline&limit=1", FILE_TEXT);
    CHECK(says(text, "\"thread\":[0],"));
    CHECK(says(text, "\"code\":\"rows_cut\""));
    CHECK(says(api_kit_send(&kit, "POST", "/api/v1/files?format=timeline", "main;a 3\n"),
               "\"code\":\"no_times\""));
    api_kit_done(&kit);
}
