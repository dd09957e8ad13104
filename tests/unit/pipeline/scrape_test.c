/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/receivers/scrape.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "codec/codec.h"
#include "drawn.h"
#include "net.h"
#include "pipeline/receivers/scrape_int.h"
#include "test.h"

/* ---- a program that serves its profiles ---- */

/* What each path shows now, as drawn stacks of alloc_space and inuse_space; NULL: 404. */
static const char *allocated, *in_use;
static char asked[1024];        /* paths and parameters, a line each */
static char authorization[256]; /* of the last request */

/* A request that is not answered until the test does. */
static struct kiln_request *_Atomic silent;

static void serve_profile(struct kiln_request *request)
{
    static uint64_t time_ns = UINT64_C(1772366400000000000);
    struct kiln_drawn profiles[] = {
        {.stacks = allocated,
         .type = "alloc_space",
         .unit = "bytes",
         .resource = "",
         .period_type = "space",
         .period_unit = "bytes",
         .period = 524288},
        {.stacks = in_use,
         .type = "inuse_space",
         .unit = "bytes",
         .period_type = "space",
         .period_unit = "bytes",
         .period = 524288},
    };
    struct kiln_encode_opts opts = {.format = KILN_FORMAT_PPROF};
    struct kiln_str auth = kiln_request_header(request, "authorization");
    struct kiln_batch *batch;
    struct kiln_buf out;
    size_t at = strlen(asked);

    snprintf(asked + at, sizeof(asked) - at, "%.*s?%.*s\n", KILN_STR_ARG(request->path),
             KILN_STR_ARG(request->query));
    snprintf(authorization, sizeof(authorization), "%.*s", KILN_STR_ARG(auth));
    if (kiln_str_eq(request->path, KILN_STR("/silent"))) {
        atomic_store(&silent, request);
        return;
    }
    if (!allocated) {
        kiln_request_reply_text(request, 404, "no such page");
        return;
    }
    profiles[0].time_ns = profiles[1].time_ns = time_ns += UINT64_C(15000000000);
    batch = kiln_test_batch(profiles, 2);
    kiln_buf_init(&out, 1 << 20);
    CHECK_OK(kiln_encode(batch, &opts, &out, NULL));
    kiln_batch_unref(batch);
    kiln_request_reply(request, &(struct kiln_reply){.status = 200,
                                                     .content_type = "application/octet-stream",
                                                     .body = kiln_buf_str(&out)});
    kiln_buf_done(&out);
}

/* ---- where profiles go ---- */

struct sink {
    struct kiln_consumer consumer;
    struct kiln_batch *batches[16];
    uint32_t n;
    int code; /* of the outcome */
};

static void consume(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct sink *sink = (struct sink *)consumer;
    struct kiln_outcome outcome = {.code = sink->code};

    CHECK_TEXT(delivery->tenant, "anonymous");
    if (sink->code == 0 && sink->n < 16)
        sink->batches[sink->n++] = kiln_batch_ref(delivery->batch);
    kiln_delivery_end(delivery, &outcome);
}

/* What arrived, as "type stack value" lines in the order of arrival; and forgets it. */
static const char *arrived(struct sink *sink)
{
    static char text[4096];
    size_t at = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < sink->n; i++) {
        const struct kiln_batch *batch = sink->batches[i];

        for (uint32_t p = 0; p < batch->n_profiles; p++) {
            const struct kiln_profile *profile = &batch->profiles[p];

            for (uint32_t s = 0; s < profile->n_samples; s++) {
                const struct kiln_sample *sample = &batch->samples[profile->first_sample + s];
                struct kiln_range stack = batch->dict.stacks[sample->stack];
                uint32_t leaf = batch->dict.frames[stack.first];
                uint32_t line = batch->dict.locations[leaf].first;
                uint32_t name = batch->dict.functions[batch->dict.lines[line].function].name;

                at +=
                    (size_t)snprintf(text + at, sizeof(text) - at, "%.*s %.*s %lld\n",
                                     KILN_STR_ARG(kiln_batch_str(batch, profile->sample_type.type)),
                                     KILN_STR_ARG(kiln_batch_str(batch, name)),
                                     (long long)kiln_sample_total(batch, sample));
            }
        }
        kiln_batch_unref(sink->batches[i]);
    }
    sink->n = 0;
    return text;
}

/* ---- a scraper of that program ---- */

struct fixture {
    struct net_fixture program;
    struct sink sink;
    struct kiln_receivers *receivers;
    struct kiln_metrics *metrics;
    struct kiln_config *config;
    struct kiln_scraper *scraper;
    char folder[64], state[80];
};

static void begin(struct fixture *f)
{
    *f = (struct fixture){.sink.consumer.consume = consume};
    asked[0] = authorization[0] = '\0';
    net_start(&f->program, NULL);
    kiln_router_fallback(f->program.router, serve_profile, NULL);
    CHECK_OK(kiln_metrics_new(&f->metrics));
    CHECK_OK(kiln_receivers_new(
        &(struct kiln_receivers_opts){.next = &f->sink.consumer, .metrics = f->metrics},
        &f->receivers));
    snprintf(f->folder, sizeof(f->folder), "/tmp/kiln-scrape-XXXXXX");
    CHECK(mkdtemp(f->folder) != NULL);
    snprintf(f->state, sizeof(f->state), "%s/scrape", f->folder);
}

/* `more` are further lines of the job, with their indent. */
static void start(struct fixture *f, const char *more)
{
    struct kiln_err err = {0};
    struct kiln_buf text;

    kiln_buf_init(&text, 4096);
    kiln_buf_printf(&text,
                    "- job_name: shop\n  static_configs:\n    - targets: ['127.0.0.1:%u']\n"
                    "      labels: {team: blue, instance: web-1}\n%s",
                    f->program.port, more);
    CHECK_OK(kiln_config_parse(kiln_buf_str(&text), &f->config, NULL));
    kiln_buf_done(&text);
    if (kiln_scraper_new(&(struct kiln_scraper_opts){.jobs = kiln_config_root(f->config),
                                                     .receivers = f->receivers,
                                                     .state_dir = f->state,
                                                     .metrics = f->metrics},
                         &f->scraper, &err) < 0)
        fail_msg("%s: %s", err.where, err.text);
}

static void end_scraper(struct fixture *f)
{
    kiln_scraper_stop(f->scraper);
    kiln_scraper_free(f->scraper);
    kiln_config_free(f->config);
}

static uint32_t remove_files(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    uint32_t n = 0;

    while (dir && (entry = readdir(dir))) {
        if (entry->d_name[0] != '.')
            n += unlinkat(dirfd(dir), entry->d_name, 0) == 0;
    }
    if (dir)
        closedir(dir);
    return n;
}

static void end(struct fixture *f)
{
    end_scraper(f);
    net_stop(&f->program);
    kiln_receivers_free(f->receivers);
    kiln_metrics_free(f->metrics);
    arrived(&f->sink);
    remove_files(f->state);
    rmdir(f->state);
    CHECK_OK(rmdir(f->folder));
}

static const char only_allocs[] =
    "  profiles: {profile: {enabled: false}, heap: {enabled: false},\n"
    "    mutex: {enabled: false}, block: {enabled: false},\n"
    "    goroutine: {enabled: false}}\n";

static void begin_allocs(struct fixture *f)
{
    begin(f);
    start(f, only_allocs);
    in_use = "";
}

/* Once, while the program shows this. */
static void scrape(struct fixture *f, const char *shown)
{
    allocated = shown;
    kiln_scraper_once(f->scraper);
}

TEST(scrape, counters_become_differences_and_the_first_is_a_baseline)
{
    struct fixture f;

    begin_allocs(&f);
    allocated = "main;a 10\nmain;b 4\n";
    in_use = "main;a 3\n";
    kiln_scraper_once(f.scraper);
    CHECK_TEXT(arrived(&f.sink), "inuse_space a 3\n");
    scrape(&f, "main;a 12\nmain;b 4\nmain;c 1\n");
    CHECK_TEXT(arrived(&f.sink), "alloc_space a 2\nalloc_space c 1\ninuse_space a 3\n");
    end(&f);
}

TEST(scrape, a_restart_remembers_the_last_reading)
{
    struct fixture f;

    begin_allocs(&f);
    scrape(&f, "main;a 10\n");
    end_scraper(&f);
    start(&f, only_allocs);
    scrape(&f, "main;a 17\n");
    CHECK_TEXT(arrived(&f.sink), "alloc_space a 7\n");
    end(&f);
}

TEST(scrape, a_program_that_began_anew_counts_from_zero)
{
    struct fixture f;

    begin_allocs(&f);
    scrape(&f, "main;a 10\n");
    scrape(&f, "main;a 4\n");
    CHECK_TEXT(arrived(&f.sink), "alloc_space a 4\n");
    CHECK_EQ(kiln_metric_value(f.scraper->tasks[0].resets), 1);
    end(&f);
}

TEST(scrape, what_was_refused_is_in_the_next_difference)
{
    struct fixture f;

    begin_allocs(&f);
    scrape(&f, "main;a 10\n");
    f.sink.code = -EAGAIN;
    scrape(&f, "main;a 12\n");
    CHECK_EQ(kiln_metric_value(f.scraper->tasks[0].failed), 1);
    f.sink.code = 0;
    scrape(&f, "main;a 15\n");
    CHECK_TEXT(arrived(&f.sink), "alloc_space a 5\n");
    end(&f);
}

TEST(scrape, heap_gives_levels_and_allocs_gives_flows_where_both_are_fetched)
{
    struct fixture f;

    begin(&f);
    start(&f, "  profiles: {profile: {enabled: false}, mutex: {enabled: false},\n"
              "    block: {enabled: false}, goroutine: {enabled: false}}\n");
    allocated = "main;a 10\n";
    in_use = "main;a 3\n";
    kiln_scraper_once(f.scraper);
    scrape(&f, "main;a 12\n");
    CHECK_TEXT(arrived(&f.sink), "inuse_space a 3\ninuse_space a 3\nalloc_space a 2\n");
    end(&f);
}

TEST(scrape, targets_are_asked_with_prefix_parameters_and_seconds)
{
    struct fixture f;

    begin(&f);
    start(&f, "  scrape_interval: 3s\n  path_prefix: /x\n  params: {gc: 1}\n"
              "  basic_auth: {username: ann, password: secret}\n"
              "  profiles: {mutex: {enabled: false}, block: {enabled: false},\n"
              "    heap: {enabled: false}, fgprof: {path: /fgprof, seconds: 7}}\n");
    allocated = NULL;
    kiln_scraper_once(f.scraper);
    CHECK_TEXT(asked, "/x/debug/pprof/profile?gc=1&seconds=2\n/x/debug/pprof/allocs?gc=1\n"
                      "/x/debug/pprof/goroutine?gc=1\n/x/fgprof?gc=1&seconds=7\n");
    CHECK_TEXT(authorization, "Basic YW5uOnNlY3JldA==");
    CHECK_EQ(kiln_metric_value(f.scraper->tasks[0].failed), 1);
    CHECK_EQ(kiln_metric_value(f.scraper->tasks[0].up), 0);
    CHECK_TEXT(f.scraper->tasks[0].last_failure, "HTTP status 404: no such page");
    end(&f);
}

TEST(scrape, profiles_carry_service_instance_and_labels)
{
    struct fixture f;
    const struct kiln_batch *batch;
    uint32_t attrs;

    begin_allocs(&f);
    allocated = "";
    in_use = "main 1\n";
    kiln_scraper_once(f.scraper);
    CHECK_EQ(f.sink.n, 1);
    batch = f.sink.batches[0];
    attrs = batch->resources[0].attrs;
    CHECK_STR(kiln_set_text(batch, attrs, KILN_STR("service.name")), "shop");
    CHECK_STR(kiln_set_text(batch, attrs, KILN_STR("service.instance.id")), "web-1");
    CHECK_STR(kiln_set_text(batch, attrs, KILN_STR("team")), "blue");
    end(&f);
}

TEST(scrape, readings_of_targets_that_are_gone_are_removed)
{
    char path[160];
    struct fixture f;

    begin_allocs(&f);
    allocated = "main 1\n";
    in_use = "";
    kiln_scraper_once(f.scraper);
    end_scraper(&f);
    snprintf(path, sizeof(path), "%s/0123456789abcdef0123456789abcdef", f.state);
    CHECK_OK(kiln_file_write(path, KILN_STR("x"), NULL));
    start(&f, only_allocs);
    CHECK(access(path, F_OK) < 0);
    CHECK_EQ(remove_files(f.state), 1);
    end(&f);
}

TEST(scrape, a_damaged_reading_is_no_reading)
{
    char path[160];
    struct fixture f;

    begin_allocs(&f);
    allocated = "main;a 1\n";
    in_use = "";
    kiln_scraper_once(f.scraper);
    snprintf(path, sizeof(path), "%s/%s", f.state, f.scraper->tasks[0].state_name);
    CHECK_OK(kiln_file_write(path, KILN_STR("kiln-scrape 1 another-boot 5\nxyz"), NULL));
    scrape(&f, "main;a 5\n");
    CHECK_TEXT(arrived(&f.sink), "");
    scrape(&f, "main;a 6\n");
    CHECK_TEXT(arrived(&f.sink), "alloc_space a 1\n");
    end(&f);
}

TEST(scrape, runs_by_itself_until_it_is_stopped)
{
    struct fixture f;
    struct kiln_err err = {0};

    begin(&f);
    allocated = "main;a 1\n";
    in_use = "main;a 1\n";
    start(&f, "  profiles: {profile: {enabled: false}}\n");
    CHECK_OK(kiln_scraper_start(f.scraper, &err));
    while (kiln_metric_value(f.scraper->tasks[0].fetched) < 1)
        usleep(1000);
    end(&f);
}

TEST(scrape, stopping_does_not_wait_for_a_program_that_is_silent)
{
    struct fixture f;

    begin(&f);
    allocated = in_use = "";
    start(&f,
          "  scrape_timeout: 10m\n  profiles: {profile: {enabled: false}, heap: {enabled: false},\n"
          "    mutex: {enabled: false}, block: {enabled: false}, goroutine: {enabled: false},\n"
          "    allocs: {path: /silent}}\n");
    CHECK_OK(kiln_scraper_start(f.scraper, NULL));
    while (atomic_load(&silent) == NULL)
        usleep(1000);
    kiln_scraper_stop(f.scraper);
    CHECK_EQ(kiln_metric_value(f.scraper->tasks[0].failed), 0);
    kiln_request_reply_text(atomic_load(&silent), 200, "at last");
    end(&f);
}

/* ---- configuration ---- */

static void check_refused(const char *jobs, const char *expected)
{
    struct kiln_config *config;
    struct kiln_err err = {0};
    char said[512];

    CHECK_OK(kiln_config_parse(kiln_str_of(jobs), &config, NULL));
    CHECK(kiln_scrape_check(kiln_config_root(config), &err) < 0);
    snprintf(said, sizeof(said), "%s: %s", err.where, err.text);
    CHECK_TEXT(said, expected);
    kiln_config_free(config);
}

TEST(scrape, a_wrong_configuration_is_refused_with_its_place)
{
    check_refused("a: 1", "line 1, column 1: scrape is a list of jobs");
    check_refused("- job_nam: x", "line 1, column 3: unknown key job_nam (did you mean job_name?)");
    check_refused("- static_configs: []", "line 1, column 3: this job has no job_name");
    check_refused("- job_name: x", "line 1, column 3: job x has no static_configs");
    check_refused("- {job_name: x, static_configs: [{labels: {}}]}",
                  "line 1, column 34: this has no targets");
    check_refused("- {job_name: x, static_configs: [{targets: ['http://a/']}]}",
                  "line 1, column 45: a target is HOST:PORT or unix:/PATH");
    check_refused("- {job_name: x, scheme: ftp, static_configs: []}",
                  "line 1, column 3: job x: scheme is http or https");
    check_refused("- {job_name: x, scrape_interval: 10ms, static_configs: []}",
                  "line 1, column 3: job x: scrape_interval is below a second");
    check_refused("- {job_name: x, static_configs: [], profiles: {mine: {delta: true}}}",
                  "line 1, column 54: the profile mine needs a path");
    check_refused("- {job_name: x, static_configs: [{targets: [], labels: {a: [1]}}]}",
                  "line 1, column 60: a is a list, not a text");
}
