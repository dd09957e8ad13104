/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrape_int - the inside of the scraper: tasks, and where their last readings are.
 */
#ifndef KILN_PIPELINE_RECEIVERS_SCRAPE_INT_H
#define KILN_PIPELINE_RECEIVERS_SCRAPE_INT_H

#include <limits.h>
#include <pthread.h>

#include "base/arena.h"
#include "pipeline/receivers/arrival.h"
#include "pipeline/receivers/scrape.h"

enum { KILN_SCRAPES_MAX = 10000, KILN_SCRAPE_KINDS_MAX = 32 };

/* What becomes of a reading. */
enum kiln_scrape_part {
    KILN_SCRAPE_ALL,   /* as it is */
    KILN_SCRAPE_DELTA, /* flows as differences, levels as they are */
    KILN_SCRAPE_LEVELS,
    KILN_SCRAPE_FLOWS, /* as differences */
};

/* One profile of a job. */
struct kiln_scrape_kind {
    const char *name, *path;
    const char *family; /* core/type.h; NULL: the usual one */
    bool enabled, delta;
    bool timed; /* takes `seconds` */
    uint32_t seconds;
    enum kiln_scrape_part part;
};

struct kiln_scrape_job {
    const char *name, *tenant, *scheme, *path_prefix;
    uint64_t interval_ns, timeout_ns;
    const char *bearer_token, *bearer_token_file;
    const struct kiln_node *basic_auth, *tls_config, *params, *static_configs, *profiles;
    const char *username, *password, *password_file;
    const char *ca_file, *cert_file, *key_file;
    bool insecure;
    struct kiln_scrape_kind kinds[KILN_SCRAPE_KINDS_MAX];
    uint32_t n_kinds;
};

/* One profile of one target: what is fetched again and again. */
struct kiln_scrape_task {
    const struct kiln_scrape_job *job;
    const struct kiln_scrape_kind *kind;
    const char *target;             /* as written: the instance */
    const char *server;             /* "http://10.0.0.5:6060" */
    const char *path;               /* with its parameters */
    const struct kiln_node *labels; /* NULL: none */
    char state_name[33];            /* of the file of the last reading */
    uint64_t next_ns;               /* when it is due, on the clock that never jumps */
    bool busy;
    char last_failure[160]; /* what was logged; "" while all is well */
    struct kiln_metric *fetched, *failed, *resets, *late, *seconds, *up;
};

struct kiln_scraper {
    struct kiln_scraper_opts opts;
    struct kiln_budget budget;
    struct kiln_arena arena; /* jobs, tasks and their texts */
    struct kiln_scrape_task *tasks;
    uint32_t n_tasks, cap_tasks;
    pthread_mutex_t lock; /* of next_ns and busy */
    pthread_cond_t wake;
    pthread_t *threads;
    uint32_t n_threads;
    _Atomic bool stop;
};

/* ---- scrape_config.c ---- */

KILN_CHECK int kiln_scrape_read(struct kiln_scraper *scraper, struct kiln_err *err);

/* ---- scrape_fetch.c ---- */

/* Fetches, decodes, delivers and remembers; logs and counts how it went. */
void kiln_scrape_run(struct kiln_scraper *scraper, struct kiln_scrape_task *task);

/* ---- scrape_state.c ---- */

KILN_CHECK int kiln_scrape_state_open(struct kiln_scraper *scraper, struct kiln_err *err);
/* The last reading and when it was; 0, or -ENOENT and the like. */
KILN_CHECK int kiln_scrape_state_get(struct kiln_scraper *scraper,
                                     const struct kiln_scrape_task *task, struct kiln_buf *out,
                                     uint64_t *ret_time_ns);
KILN_CHECK int kiln_scrape_state_put(struct kiln_scraper *scraper,
                                     const struct kiln_scrape_task *task, struct kiln_str reading,
                                     uint64_t time_ns);

#endif /* KILN_PIPELINE_RECEIVERS_SCRAPE_INT_H */
