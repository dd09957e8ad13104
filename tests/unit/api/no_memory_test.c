/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every allocation on the way from a request to its answer fails once: the client gets the answer,
 * a refusal with a sentence, or a closed connection; nothing is lost, and the next one is served.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api_kit.h"
#include "base/clock.h"
#include "base/mem.h"
#include "drawn.h"
#include "test.h"

#define CPU   "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define RANGE "from=1772362800&until=1772366401"
#define HOUR  "\"start\":1772362800000,\"end\":1772366401000"
#define SIDE  "{\"profileTypeID\":\"" CPU "\",\"labelSelector\":\"{}\"," HOUR

enum { FAILURES_MAX = 3000 };

struct wish {
    const char *target, *body; /* body NULL: GET */
};

static const struct wish native[] = {
    {"/api/v1/query?query=cpu&" RANGE, NULL},
    {"/api/v1/query?query=cpu&format=svg&" RANGE, NULL},
    {"/api/v1/query?query=cpu&format=pprof&" RANGE, NULL},
    {"/api/v1/query?query=cpu&format=series&by=service_name&" RANGE, NULL},
    {"/api/v1/diff?query=cpu&left_version=1&right_deployment=-1&" RANGE, NULL},
    {"/api/v1/spans?query=cpu&by=trace&with=ma.n&" RANGE, NULL},
    {"/api/v1/spans",
     "{\"query\":\"cpu\",\"windows\":[{\"from\":1772362800,\"until\":1772366401}]}"},
    {"/api/v1/functions?query=cpu&function=main&" RANGE, NULL},
    {"/api/v1/query?query=cpu&format=timeline&" RANGE, NULL},
    {"/api/v1/gap?query=cpu&" RANGE, NULL},
    {"/api/v1/source?query=cpu&function=main&" RANGE, NULL},
    {"/api/v1/files?format=json", "main;parse;read 3\nmain;write 1\n"},
    {"/api/v1/files?format=timeline",
     "{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"samples\":[{"
     "\"timestampsUnixNano\":[\"5\"]}]}]}]}]}"},
    {"/api/v1/files?format=pprof&name=x", "main;parse;read 3\nmain;write 1\n"},
    {"/api/v1/labels/service_name/values?" RANGE, NULL},
    {"/api/v1/annotations", NULL},
    {"/api/v1/services", NULL},
    {"/api/v1/deployments", NULL},
};

#define METHOD(name) "/querier.v1.QuerierService/" name
static const struct wish pyroscope[] = {
    {"/pyroscope/render?query=" CPU "%7B%7D&groupBy=service_name&" RANGE, NULL},
    {"/pyroscope/label-values?label=service_name&" RANGE, NULL},
    {METHOD("SelectMergeStacktraces"), SIDE "}"},
    {METHOD("SelectMergeStacktraces"), SIDE ",\"format\":\"PROFILE_FORMAT_DOT\"}"},
    {METHOD("SelectMergeProfile"), SIDE "}"},
    {METHOD("SelectSeries"), SIDE ",\"step\":15,\"groupBy\":[\"service_name\"]}"},
    {METHOD("SelectHeatmap"), SIDE ",\"step\":15,\"groupBy\":[\"service_name\"]}"},
    {METHOD("Diff"), "{\"left\":" SIDE "},\"right\":" SIDE "}}"},
    {METHOD("Series"), "{" HOUR "}"},
    {METHOD("AnalyzeQuery"), "{" HOUR ",\"query\":\"{}\"}"},
    {"/settings.v1.SettingsService/Get", "{}"},
};

static void put(struct api_kit *kit, const char *version, uint64_t time_ns)
{
    char resource[64], stacks[128];
    struct kiln_drawn p = {.type = "cpu",
                           .unit = "nanoseconds",
                           .period_type = "cpu",
                           .period_unit = "nanoseconds",
                           .period = 1,
                           .stacks = stacks,
                           .time_ns = time_ns,
                           .resource = resource};

    snprintf(stacks, sizeof(stacks),
             "main;serve;parse 30\nmain;serve;draw 10\nmain@m.c:3 1@%llu thread.id=7\n",
             (unsigned long long)time_ns);
    snprintf(resource, sizeof(resource), "service.name=shop,service.version=%s", version);
    kit_put(&kit->store, kiln_test_batch(&p, 1));
}

/* The status of the answer, or 0 where there was none. */
static int ask(struct api_kit *kit, const struct wish *wish)
{
    static char answer[1 << 16], request[4096];
    const char *body = wish->body ? wish->body : "";
    int fd = net_connect(kit->net.port);
    size_t n = 0;
    ssize_t got;

    snprintf(request, sizeof(request),
             "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             wish->body ? "POST" : "GET", wish->target, strlen(body), body);
    (void)!send(fd, request, strlen(request), MSG_NOSIGNAL);
    while (n < sizeof(answer) - 1 && (got = read(fd, answer + n, sizeof(answer) - 1 - n)) > 0)
        n += (size_t)got;
    close(fd);
    answer[n] = '\0';
    return n ? net_status(answer) : 0;
}

static bool is_fine(int status)
{
    return status == 0 || status == 200 || status == 413 || status == 429 || status == 503;
}

static void starve(struct api_kit *kit, const struct wish *wish)
{
    bool failed = true;

    CHECK_EQ(ask(kit, wish), 200);
    for (uint64_t n = 1; failed && n < FAILURES_MAX; n++) {
        int status;

        kiln_mem_fail_at(n);
        status = ask(kit, wish);
        failed = kiln_mem_failed();
        kiln_mem_fail_at(0);
        if (!is_fine(status))
            print_message("%.60s: allocation %d: status %d\n", wish->target, (int)n, status);
        CHECK(is_fine(status));
    }
    CHECK_EQ(ask(kit, wish), 200);
}

static void starve_all(const struct wish *wishes, size_t n,
                       int (*add)(struct kiln_api *api, struct kiln_router *router))
{
    int64_t live = kiln_mem_live();
    struct api_kit kit;

    api_kit_init(&kit, 0, add);
    put(&kit, "1", API_KIT_NOW - 60 * KILN_NS_PER_S);
    CHECK_OK(kiln_store_flush(kit.store.engine, NULL));
    put(&kit, "2", API_KIT_NOW - 30 * KILN_NS_PER_S);
    for (size_t i = 0; i < n; i++)
        starve(&kit, &wishes[i]);
    api_kit_done(&kit);
    CHECK_EQ(kiln_mem_live(), live);
}

TEST(no_memory, our_own_api_loses_nothing)
{
    starve_all(native, KILN_ARRAY_LEN(native), kiln_api_add_native);
}

TEST(no_memory, pyroscopes_api_loses_nothing)
{
    starve_all(pyroscope, KILN_ARRAY_LEN(pyroscope), kiln_api_add_pyroscope);
}
