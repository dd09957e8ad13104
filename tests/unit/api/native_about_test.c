/* SPDX-License-Identifier: Apache-2.0 */
/* What the server tells of itself: status, drops, agents, sessions; its parts are invented. */
#include <stdlib.h>
#include <unistd.h>

#include "api_kit.h"
#include "pipeline/gate.h"
#include "test.h"

static struct api_kit kit;
static struct kiln_about_server server;
static struct kiln_agent_status agent;
static bool has_host;

static void tell_server(void *context, struct kiln_about_server *ret_server)
{
    (void)context;
    *ret_server = server;
}

static bool tell_host(void *context, struct kiln_agent_status *ret_agent)
{
    (void)context;
    if (has_host)
        *ret_agent = agent;
    return has_host;
}

static const struct kiln_about about = {tell_server, tell_host, NULL};

static void start(void)
{
    api_kit_init(&kit, 0, kiln_api_add_native);
    kit.api.about = &about;
    CHECK_OK(kiln_metrics_new(&kit.api.metrics));
    server = (struct kiln_about_server){.started_ns = API_KIT_NOW - API_KIT_MINUTE,
                                        .memory_bytes = 1000,
                                        .memory_limit = 2000,
                                        .cpu_seconds = 1.5,
                                        .profiles = 7,
                                        .samples = 70,
                                        .bytes = 700,
                                        .profiles_per_s = 0.5,
                                        .samples_per_s = 5,
                                        .bytes_per_s = 50,
                                        .retention_ns = 3600 * KILN_NS_PER_S,
                                        .disk_free = 12345};
    has_host = false;
}

static void stop(void)
{
    struct kiln_metrics *metrics = kit.api.metrics;
    struct kiln_gate *gate = kit.api.gate;

    api_kit_done(&kit);
    kiln_gate_free(gate);
    kiln_metrics_free(metrics);
}

static const char *get(const char *target)
{
    return api_kit_get(&kit, target);
}

#define HAS(text, words)   CHECK(strstr(text, words))
#define HASNT(text, words) CHECK(!strstr(text, words))

/* ---- status ---- */

TEST(about, the_status_says_what_is_used_what_comes_in_and_what_is_kept)
{
    const char *said;

    start();
    api_kit_put_cpu(&kit, "main 10000000\n", 2 * API_KIT_MINUTE, "service.name=a", 1);
    said = get("/api/v1/status");
    CHECK_EQ(api_kit_status(), 200);
    HAS(said, "{\"scope\":\"server\",\"version\":\"" KILN_VERSION "\",");
    HAS(said, "\"started\":\"2026-03-01T11:59:00Z\",\"now\":\"2026-03-01T12:00:00Z\",");
    HAS(said, "\"memory\":{\"used_bytes\":1000,\"limit_bytes\":2000},\"cpu_seconds\":1.5,");
    HAS(said, "\"ingest\":{\"profiles\":7,\"samples\":70,\"bytes\":700,\"profiles_per_second\":0.5,"
              "\"samples_per_second\":5,\"bytes_per_second\":50},\"drops\":[],");
    HAS(said, "\"profiles\":1,\"oldest\":\"2026-03-01T11:58:00Z\",");
    HAS(said, "\"retention_seconds\":3600,\"retention_bytes\":null,\"retention_paused\":null,"
              "\"disk_free_bytes\":12345,"
              "\"writable\":true,\"problem\":null}}");
    stop();
}

TEST(about, a_store_that_cannot_be_written_says_why)
{
    start();
    snprintf(server.problem, sizeof(server.problem), "the disk is full");
    HAS(get("/api/v1/status"), "\"writable\":false,\"problem\":\"the disk is full\"");
    HAS(get("/api/v1/status"), "\"oldest\":null,\"newest\":null,");
    stop();
}

TEST(about, without_anybody_who_knows_there_is_no_status)
{
    start();
    kit.api.about = NULL;
    get("/api/v1/status");
    CHECK_EQ(api_kit_status(), 501);
    CHECK_TEXT(get("/api/v1/agents"), "{\"agents\":[]}\n");
    HAS(get("/api/v1/session"), "\"host_profiler\":\"off\"");
    stop();
}

/* ---- drops ---- */

static void count(const char *name, const char *const *labels, int64_t n)
{
    kiln_metric_add(kiln_metric_get(kit.api.metrics, KILN_COUNTER, name, "", labels), n);
}

TEST(about, what_was_dropped_is_told_with_a_sentence_and_a_remedy)
{
    const char *said;

    start();
    count("kiln_store_rejected_total", KILN_LABELS("reason", "too_old"), 3);
    count("kiln_store_rejected_total", KILN_LABELS("reason", "space"), 0);
    said = get("/api/v1/status");
    HAS(said,
        "\"drops\":[{\"where\":\"store\",\"reason\":\"too_old\",\"count\":3,\"text\":\"Profiles "
        "were older than the store keeps, and not taken\",\"remedy\":\"Look at the clock of "
        "the sender, or raise --retention\"}]");
    stop();
}

TEST(about, a_drop_adds_up_what_its_labels_have_in_common)
{
    const char *said;

    start();
    count("kiln_receiver_requests_total", KILN_LABELS("receiver", "otlp", "outcome", "busy"), 2);
    count("kiln_receiver_requests_total", KILN_LABELS("receiver", "pprof", "outcome", "busy"), 3);
    count("kiln_receiver_requests_total", KILN_LABELS("receiver", "otlp", "outcome", "accepted"),
          9);
    count("kiln_receiver_requests_total", KILN_LABELS("receiver", "otlp", "outcome", "busybee"), 9);
    said = get("/api/v1/status");
    HAS(said, "\"reason\":\"busy\",\"count\":5,");
    HASNT(said, "\"count\":9");
    stop();
}

static void set_host_lost(void *context)
{
    kiln_metric_set(kiln_metric_counter(context, "kiln_host_lost_samples_total", ""), 41);
}

TEST(about, counters_that_are_kept_elsewhere_are_read_before)
{
    start();
    kiln_metrics_on_collect(kit.api.metrics, set_host_lost, kit.api.metrics);
    HAS(get("/api/v1/status"), "{\"where\":\"host\",\"reason\":\"lost\",\"count\":41,");
    stop();
}

/* ---- agents ---- */

static void invent_agent(void)
{
    has_host = true;
    agent = (struct kiln_agent_status){.id = "0123abcd",
                                       .host = "web-1",
                                       .version = "0.1.0",
                                       .kernel = "6.1.0",
                                       .tenant = "anonymous",
                                       .local = true,
                                       .started_ns = API_KIT_NOW - API_KIT_MINUTE,
                                       .last_seen_ns = API_KIT_NOW,
                                       .hz = 19,
                                       .samples = 1000,
                                       .processes = 12,
                                       .samples_per_s = 38.5,
                                       .drops = {{"lost", 5}},
                                       .n_drops = 1,
                                       .ends = {{"complete", 900}, {"jit", 95}},
                                       .n_ends = 2,
                                       .complete = 900,
                                       .all = 1000,
                                       .cpu_cores = 0.0125,
                                       .memory_bytes = 1 << 20};
}

TEST(about, an_agent_says_how_fast_how_complete_and_at_what_cost_it_samples)
{
    start();
    CHECK_TEXT(get("/api/v1/agents"), "{\"agents\":[]}\n");
    invent_agent();
    CHECK_TEXT(
        get("/api/v1/agents"),
        "{\"agents\":[{\"id\":\"0123abcd\",\"host\":\"web-1\",\"version\":\"0.1.0\",\"kernel\":"
        "\"6.1.0\",\"started\":\"2026-03-01T11:59:00Z\",\"last_seen\":\"2026-03-01T12:00:00Z\","
        "\"local\":true,\"state\":\"running\",\"problem\":null,\"hz\":19,\"samples_per_second\":38."
        "5,\"samples\":1000,\"processes\":12,\"drops\":[{\"reason\":\"lost\",\"count\":5}],"
        "\"missed\":[],"
        "\"unwind\":{\"complete\":900,\"all\":1000,\"share\":0.9,\"ends\":[{\"reason\":"
        "\"complete\",\"count\":900},{\"reason\":\"jit\",\"count\":95}]},\"cpu_cores\":0.0125,"
        "\"memory_bytes\":1048576,\"orders\":[]}]}\n");
    HAS(get("/api/v1/session"), "\"host_profiler\":\"on\",\"host_profiler_reason\":null,");
    stop();
}

TEST(about, an_agent_that_could_not_start_says_what_it_needs)
{
    start();
    invent_agent();
    agent = (struct kiln_agent_status){.state = KILN_AGENT_FAILED, .tenant = "anonymous"};
    snprintf(agent.problem, sizeof(agent.problem), "CAP_BPF is missing");
    HAS(get("/api/v1/agents"), "\"state\":\"failed\",\"problem\":\"CAP_BPF is missing\",");
    HAS(get("/api/v1/agents"), "\"unwind\":{\"complete\":0,\"all\":0,\"share\":null,\"ends\":[]}");
    agent.state = KILN_AGENT_PAUSED;
    agent.problem[0] = '\0';
    HAS(get("/api/v1/agents"), "\"state\":\"paused\",\"problem\":null,");
    stop();
}

/* ---- who asks ---- */

/* A gate beside the kit's own guard: who may is tested elsewhere, this is what they are told. */
static void open_gate(void)
{
    static const char tokens[] = "- {token: shop-token, tenant: shop, access: read}\n"
                                 "- {token: any-token, access: [read, write]}\n";
    char path[] = "/tmp/kiln-about-XXXXXX";
    int fd = mkstemp(path);

    CHECK(fd >= 0);
    CHECK_EQ(write(fd, tokens, sizeof(tokens) - 1), (ssize_t)sizeof(tokens) - 1);
    close(fd);
    CHECK_OK(kiln_gate_new(&(struct kiln_gate_opts){.tokens_file = path}, &kit.api.gate, NULL));
    unlink(path);
}

TEST(about, a_token_of_one_tenant_is_told_nothing_of_others)
{
    const char *said;

    start();
    open_gate();
    invent_agent();
    count("kiln_store_rejected_total", KILN_LABELS("reason", "too_old"), 3);
    api_kit_put_cpu(&kit, "main 10000000\n", 2 * API_KIT_MINUTE, "service.name=a", 1);
    kit.headers = "Authorization: Bearer shop-token\r\n";
    said = get("/api/v1/status");
    HAS(said, "{\"scope\":\"tenant\",");
    HAS(said, "\"ingest\":null,\"drops\":[],\"store\":{\"bytes\":0,\"blocks\":0,\"log_bytes\":null,"
              "\"profiles\":0,");
    CHECK_TEXT(get("/api/v1/agents"), "{\"agents\":[]}\n");
    snprintf(agent.tenant, sizeof(agent.tenant), "shop");
    HAS(get("/api/v1/agents"), "\"0123abcd\"");
    kit.headers = "Authorization: Bearer any-token\r\n";
    HAS(get("/api/v1/status"), "{\"scope\":\"server\",");
    HAS(get("/api/v1/status"), "\"count\":3");
    stop();
}

TEST(about, one_signs_in_and_is_told_what_one_may)
{
    char cookie[256];
    const char *said;

    start();
    open_gate();
    has_host = true;
    agent =
        (struct kiln_agent_status){.state = KILN_AGENT_FAILED, .problem = "no CAP_BPF on web-1"};
    said = get("/api/v1/session");
    HAS(said, "\"tokens\":true,\"signed_in\":false,\"access\":[],\"tenant\":null,");
    HAS(said, "\"host_profiler\":\"failed\",\"host_profiler_reason\":null"); /* to a stranger */
    said = api_kit_send(&kit, "POST", "/api/v1/session", "{\"token\":\" any-token\\n\"}");
    CHECK_EQ(api_kit_status(), 200);
    HAS(said, "\"signed_in\":true,\"access\":[\"read\",\"write\"],\"tenant\":null,");
    HAS(said, "\"host_profiler_reason\":\"no CAP_BPF on web-1\"");
    CHECK_TEXT(api_kit_header("cache-control"), "no-store");
    snprintf(cookie, sizeof(cookie), "Cookie: %.77s\r\n", api_kit_header("set-cookie"));
    CHECK_TEXT(api_kit_header("set-cookie") + 77,
               "; HttpOnly; SameSite=Strict; Path=/; Max-Age=43200");
    kit.headers = cookie;
    HAS(get("/api/v1/session"), "\"signed_in\":true,");
    CHECK_TEXT(api_kit_send(&kit, "DELETE", "/api/v1/session", NULL), "");
    CHECK_EQ(api_kit_status(), 204);
    CHECK_TEXT(api_kit_header("set-cookie"),
               "kiln_session=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    HAS(get("/api/v1/session"), "\"signed_in\":false,");
    stop();
}

TEST(about, a_wrong_token_is_refused_and_sets_nothing)
{
    const char *said;

    start();
    said = api_kit_send(&kit, "POST", "/api/v1/session", "{\"token\":\"any-token\"}");
    CHECK_EQ(api_kit_status(), 409);
    HAS(said, "this server has no tokens");
    open_gate();
    said = api_kit_send(&kit, "POST", "/api/v1/session", "{\"token\":\"other-token\"}");
    CHECK_EQ(api_kit_status(), 401);
    HAS(said, "{\"error\":{\"code\":\"unauthenticated\",");
    CHECK_TEXT(api_kit_header("set-cookie"), "");
    CHECK_TEXT(api_kit_header("www-authenticate"), "Bearer realm=\"kiln\"");
    api_kit_send(&kit, "POST", "/api/v1/session", "{\"token\":\"\"}");
    CHECK_EQ(api_kit_status(), 400);
    api_kit_send(&kit, "POST", "/api/v1/session", "{}");
    CHECK_EQ(api_kit_status(), 400);
    api_kit_send(&kit, "POST", "/api/v1/session", "{\"token\":\"x\",\"user\":\"y\"}");
    CHECK_EQ(api_kit_status(), 400);
    stop();
}
