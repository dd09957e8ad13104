/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrape - a receiver that fetches: what programs serve under /debug/pprof, at intervals.
 *
 * The configuration is a list of jobs, in Prometheus' words:
 *
 *   - job_name: shop                     # service.name, unless a label service_name says another
 *     scrape_interval: 15s               # of every profile
 *     tenant: anonymous                  # whose profiles they are
 *     scrape_timeout: 10s                # beside the seconds that a CPU profile takes
 *     scheme: http                       # or https
 *     path_prefix: /internal             # before every path
 *     params: {gc: "1"}                  # added to every address
 *     basic_auth: {username: u, password: p, password_file: FILE}
 *     bearer_token: t                    # or bearer_token_file
 *     tls_config: {ca_file: F, cert_file: F, key_file: F, insecure_skip_verify: false}
 *     static_configs:
 *       - targets: [10.0.0.5:6060, 10.0.0.6:6060]    # each is the service.instance.id;
 *                                                    # unix:/run/shop/pprof.sock is a socket
 *         labels: {service_name: web, team: checkout, instance: web-1}
 *     profiles:                          # which differ from the defaults
 *       mutex: {enabled: false}
 *       profile: {seconds: 10}           # default: one less than the interval
 *       fgprof: {path: /debug/fgprof, seconds: 10}   # one more
 *
 * By default profile, heap, allocs, mutex, block and goroutine are fetched.  heap, allocs, mutex
 * and block count since the start of their program; what is kept are differences (core/delta.h).
 * The last reading of each lies in a file of the state folder, so that a restart loses nothing.
 * heap and allocs say the same: where both are fetched, levels are taken from heap and flows from
 * allocs.
 *
 * Fetches are spread over the interval; one of the same target and profile never overlaps with the
 * next.  At most 64 are under way at once.
 *
 * Threads: new, start, stop and free by one; everything else runs on threads of its own.
 */
#ifndef KILN_PIPELINE_RECEIVERS_SCRAPE_H
#define KILN_PIPELINE_RECEIVERS_SCRAPE_H

#include "base/config.h"
#include "pipeline/receivers.h"

struct kiln_scraper;

struct kiln_scraper_opts {
    const struct kiln_node *jobs;     /* the list; it and its texts outlive the scraper */
    struct kiln_receivers *receivers; /* where profiles go */
    const char *state_dir;            /* made if it is not there; NULL: nothing is remembered */
    struct kiln_metrics *metrics;     /* NULL: not measured */
    struct kiln_log *log;             /* NULL: silent */
};

/* Fails, naming the line, if the configuration is wrong. */
KILN_CHECK int kiln_scraper_new(const struct kiln_scraper_opts *opts,
                                struct kiln_scraper **ret_scraper, struct kiln_err *err);
KILN_CHECK int kiln_scraper_start(struct kiln_scraper *scraper, struct kiln_err *err);
/* Gives up what is being fetched, which takes about a second; before the receivers go. */
void kiln_scraper_stop(struct kiln_scraper *scraper);
void kiln_scraper_free(struct kiln_scraper *scraper);

/* Only looks whether a list of jobs is right. */
KILN_CHECK int kiln_scrape_check(const struct kiln_node *jobs, struct kiln_err *err);

/* Fetches everything once, now, on this thread: for tests. */
void kiln_scraper_once(struct kiln_scraper *scraper);

#endif /* KILN_PIPELINE_RECEIVERS_SCRAPE_H */
