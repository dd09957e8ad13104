/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent of Kiln 0.1 left in its spool is sent by this one. */
#include <sched.h>

#include "base/clock.h"
#include "base/metric.h"
#include "folder.h"
#include "intake.h"
#include "pipeline/exporters.h"
#include "test.h"

#define DRAIN_NS (60 * KILN_NS_PER_S)

static void wait_until_sent(struct kiln_metrics *metrics, double requests)
{
    const struct kiln_metric *sent =
        kiln_metric_get(metrics, KILN_COUNTER, "kiln_export_sent_requests_total", "", NULL);
    uint64_t patience = kiln_clock_mono_ns() + DRAIN_NS;

    while (kiln_metric_value(sent) < requests && kiln_clock_mono_ns() < patience)
        sched_yield();
    CHECK_EQ(kiln_metric_value(sent), requests);
}

CAPTURE_TEST(older_spool, requests_of_kiln_0_1_are_sent_oldest_first)
{
    static const uint32_t samples[] = {41, 31, 35, 33, 3}; /* as `kiln info` of 0.1 says */
    char folder[FOLDER_NAME], endpoint[64], first[256];
    struct kiln_otlp_export_opts opts = {.endpoint = endpoint, .spool_dir = folder};
    struct kiln_consumer *exporter;
    struct kiln_err err = {0};
    struct intake in;

    if (!folder_unpack(folder, "written-by-0.1/agent-spool"))
        SKIP("no captures here");
    CHECK_EQ(folder_list(folder, ".otlp", first, sizeof(first)), KILN_ARRAY_LEN(samples));
    intake_start(&in, NULL);
    snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%u", in.port);
    CHECK_OK(kiln_metrics_new(&opts.metrics));
    if (kiln_otlp_exporter_new(&opts, &exporter, &err) < 0)
        fail_msg("%s: %s", err.where, err.text);
    wait_until_sent(opts.metrics, KILN_ARRAY_LEN(samples));
    kiln_otlp_exporter_free(exporter, DRAIN_NS);
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(samples); i++) {
        CHECK_EQ(in.got[i].batch->n_samples, samples[i]);
        CHECK(strstr(intake_text(&in, i), "gzip") != NULL);
    }
    CHECK_EQ(folder_list(folder, ".otlp", first, sizeof(first)), 0);
    kiln_metrics_free(opts.metrics);
    intake_stop(&in);
    folder_remove(folder);
}
