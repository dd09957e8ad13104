/* SPDX-License-Identifier: Apache-2.0 */
/* When samples are taken, and what others say they take. */
#include "inproc/keep/pace.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/host_sampled.h"
#include "inproc/keep/self.h"
#include "inproc/keep/stretch.h"
#include "inproc/start.h"
#include "test.h"

#define MS UINT64_C(1000000)
#define S  (1000 * MS)

TEST(pace, windows_open_at_once_and_again_when_their_time_comes)
{
    CHECK(kiln_in_pace_window_is_open(15000, 300000, 0));
    CHECK(kiln_in_pace_window_is_open(15000, 300000, 14999 * MS));
    CHECK(!kiln_in_pace_window_is_open(15000, 300000, 15 * S));
    CHECK(!kiln_in_pace_window_is_open(15000, 300000, 299 * S));
    CHECK(kiln_in_pace_window_is_open(15000, 300000, 300 * S));
    CHECK(kiln_in_pace_window_is_open(0, 0, 200 * S));
    CHECK(kiln_in_pace_window_is_open(0, 300000, 200 * S));
}

TEST(pace, sampling_rests_above_the_threshold_until_it_is_well_below)
{
    struct kiln_in_backoff backoff = {0};
    uint64_t now = 100 * S, cpu = 3 * S;

    CHECK(!kiln_in_backoff_look(&backoff, 80, 2, now, cpu));
    CHECK(!kiln_in_backoff_look(&backoff, 80, 2, now += 1 * S, cpu += 2 * S));
    CHECK(kiln_in_backoff_look(&backoff, 80, 2, now += 1 * S, cpu += 2 * S)); /* all of both */
    CHECK(kiln_in_backoff_look(&backoff, 80, 2, now += 2 * S, cpu += 3 * S)); /* 75 % */
    CHECK(!kiln_in_backoff_look(&backoff, 80, 2, now += 2 * S, cpu += 1 * S));
    CHECK(!kiln_in_backoff_look(&backoff, 80, 2, now += 2 * S, cpu += 3 * S)); /* 75 % */
    CHECK(!kiln_in_backoff_look(&backoff, 0, 2, now += 2 * S, cpu += 100 * S));
}

TEST(pace, a_stretch_is_as_long_as_it_was_on_since_it_was_asked)
{
    struct kiln_in_stretch stretch = {0};
    uint64_t ago;

    CHECK(kiln_in_stretch_take(&stretch, 100 * S, &ago) == 0 && ago == 0);
    kiln_in_stretch_note(&stretch, false, 101 * S);
    kiln_in_stretch_note(&stretch, true, 102 * S);
    kiln_in_stretch_note(&stretch, true, 103 * S); /* each turn says so */
    kiln_in_stretch_note(&stretch, false, 105 * S);
    kiln_in_stretch_note(&stretch, true, 109 * S);
    CHECK(kiln_in_stretch_take(&stretch, 110 * S, &ago) == 4 * S && ago == 8 * S);
    CHECK(kiln_in_stretch_take(&stretch, 112 * S, &ago) == 2 * S && ago == 2 * S);
    kiln_in_stretch_note(&stretch, false, 113 * S);
    CHECK(kiln_in_stretch_take(&stretch, 115 * S, &ago) == 1 * S && ago == 3 * S);
    CHECK(kiln_in_stretch_take(&stretch, 120 * S, &ago) == 0 && ago == 0);
}

/* ---- what the profiler of the host says ---- */

static int asked(const struct kiln_host_opts *opts, struct kiln_in_self *ret_self)
{
    struct kiln_json_out w;
    struct kiln_buf text;
    int r;

    kiln_buf_init(&text, 4096);
    kiln_buf_puts(&text, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n");
    kiln_json_out_init(&w, &text, 0);
    kiln_json_put_object(&w);
    kiln_host_sampled_put(&w, opts, getpid());
    kiln_json_put_name(&w, "agent");
    kiln_json_put_object(&w);
    kiln_json_end_object(&w);
    kiln_json_end_object(&w);
    r = kiln_in_self_parse(kiln_buf_str(&text), ret_self);
    kiln_buf_done(&text);
    return r;
}

TEST(self, the_profiler_of_the_host_says_what_it_samples)
{
    struct kiln_in_self self = {0};

    CHECK_OK(asked(NULL, &self));
    CHECK(!self.cpu && !self.off_cpu);
    CHECK_OK(asked(&(struct kiln_host_opts){.hz = 19}, &self));
    CHECK(self.cpu && !self.off_cpu);
    CHECK_OK(asked(&(struct kiln_host_opts){.off_cpu = true}, &self));
    CHECK(self.cpu && self.off_cpu);
    CHECK_OK(asked(&(struct kiln_host_opts){.waits_only = true}, &self));
    CHECK(!self.cpu && self.off_cpu);
}

TEST(self, filters_of_the_profiler_decide)
{
    uint32_t parent = (uint32_t)getppid(), nobody = 0x7fffffff;
    struct kiln_host_filter filter = {.pids = &parent, .n_pids = 1};

    CHECK(kiln_host_is_sampled(NULL, getpid()));
    CHECK(!kiln_host_is_sampled(NULL, 0));
    CHECK(kiln_host_is_sampled(&filter, getpid()));
    filter.exclude = true;
    CHECK(!kiln_host_is_sampled(&filter, getpid()));
    filter.pids = &nobody;
    CHECK(kiln_host_is_sampled(&filter, getpid()));
    filter = (struct kiln_host_filter){.comms = (const char *const[]){"inproc_pace"}, .n_comms = 1};
    CHECK(!kiln_host_is_sampled(&filter, getppid()));
    filter = (struct kiln_host_filter){.cgroups = (const char *const[]){"/sys/fs/cgroup/no/such"},
                                       .n_cgroups = 1};
    CHECK(!kiln_host_is_sampled(&filter, getpid()));
}

TEST(self, an_answer_that_is_cut_off_or_strange_says_nothing)
{
    static const char text[] = "HTTP/1.1 200 OK\r\n\r\n{\"sampled\":{\"pid\":4711,\"cpu\":true,"
                               "\"off_cpu\":true},\"agent\":{}}";
    struct kiln_in_self self = {0};

    for (size_t n = 0; n < strlen(text); n++) {
        int r = kiln_in_self_parse((struct kiln_str){text, n}, &self);

        CHECK(r == 0 ? self.cpu && self.off_cpu : !self.cpu);
        self = (struct kiln_in_self){0};
    }
    CHECK_OK(kiln_in_self_parse(KILN_STR(text), &self));
    CHECK(kiln_in_self_parse(KILN_STR("HTTP/1.1 404 Not Found\r\n\r\n{}"), &self) < 0);
    CHECK(kiln_in_self_parse(KILN_STR("HTTP/1.1 200 OK\r\n\r\n{\"agent\":{}}"), &self) < 0);
    CHECK(kiln_in_self_parse(KILN_STR("HTTP/1.1 200 OK\r\n\r\n{\"sampled\":[1]}"), &self) < 0);
}

TEST(self, nobody_there_is_soon_known)
{
    struct kiln_in_self self = {.cpu = true};

    CHECK(kiln_in_self_ask("/nonexistent/kiln.sock", &self) < 0);
    CHECK(!self.cpu);
}
