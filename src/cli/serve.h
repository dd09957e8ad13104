/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve - the parts of `kiln server`, put together and taken apart again.
 *
 *   listeners ─▶ gate ┬▶ receivers ─┐
 *                     │   scraper ──┴─▶ redaction ─▶ store
 *                     │   host ─────┘               │
 *                     └▶ APIs ─▶ querier ───────────┘
 *
 * One root pool holds the memory limit; ingest, store and questions have their shares of it, and a
 * last part holds what the process uses beside them (server_memory.c).
 *
 * Threads: the main thread makes and ends it; pages are served by the server's workers.
 */
#ifndef KILN_CLI_SERVE_H
#define KILN_CLI_SERVE_H

#include <pthread.h>
#include <stdatomic.h>

#include "api/api.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/pool.h"
#include "base/pulse.h"
#include "cli/host_settings.h"
#include "cli/profiler.h"
#include "cli/server_user.h"
#include "cli/settings.h"
#include "fleet/duty.h"
#include "fleet/fleet.h"
#include "net/server.h"
#include "pipeline/gate.h"
#include "pipeline/pipeline.h"
#include "pipeline/receivers.h"
#include "store/store.h"

struct kiln_cli;
struct kiln_term;
struct kiln_scraper;

/* What /ready says, and why. */
enum kiln_serve_state { KILN_SERVE_STARTING, KILN_SERVE_READY, KILN_SERVE_STOPPING };

/* Keeps the process below its limit; see server_memory.c. */
struct kiln_memory {
    uint64_t limit;
    struct kiln_pool all, ingest, bodies, store, query, beside;
    struct kiln_pool_meter meter;
    size_t ballast;         /* taken from `beside` */
    uint64_t stays;         /* the least that was lost since free memory went back to the kernel, */
    uint64_t trimmed_ns;    /* which was then */
    _Atomic uint64_t aside; /* of the process, and not of the limit */
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop;
    void (*beat)(void *context); /* called at every look; NULL: nobody */
    void *beat_context;
};

struct kiln_ports {
    uint16_t http, otlp_grpc, otlp_http; /* 0: off */
};

struct kiln_serve {
    const struct kiln_server_config *config;
    const struct kiln_term *term; /* standard output */
    struct kiln_log *log;
    struct kiln_metrics *metrics;
    struct kiln_memory memory;
    struct kiln_server_user user; /* that it runs as */
    char data_dir[PATH_MAX];      /* the data directory, as this user reaches it */
    int data_fd;                  /* that path is /proc/self/fd/N; -1: it is a plain path */
    struct kiln_io *io;
    struct kiln_store_opening opening; /* of the engine */
    struct kiln_engine *engine;
    struct kiln_series_rule *series_rule;
    struct kiln_consumer *exporter, *redaction; /* `redaction` may be NULL: no rules */
    struct kiln_consumer *entry;                /* the first of them */
    struct kiln_redact *rules;
    struct kiln_audit *audit;
    struct kiln_gate *gate;
    struct kiln_receivers *receivers;
    struct kiln_scraper *scraper; /* NULL: nothing to scrape */
    struct kiln_host_plan plan;
    struct kiln_profiler *profiler; /* NULL: not wanted */
    pthread_mutex_t host_lock;      /* of the next five */
    bool host_runs;
    struct kiln_host_facts host_facts;
    uint64_t host_started_ns;
    bool host_failed;
    char no_host[256]; /* why it is not, though it should be; else empty */
    struct kiln_fleet fleet;
    _Atomic bool fleet_open;
    struct kiln_duty *_Atomic duty; /* what this host follows; NULL: it is not profiled */
    _Atomic uint64_t fleet_due_ns;  /* monotonic: when it is looked at next */
    struct kiln_querier *querier;
    struct kiln_kept *kept;
    struct kiln_sources *sources;   /* NULL: none are configured */
    struct kiln_depot *depot;       /* debug files */
    struct kiln_local_files *local; /* of processes on this host */
    struct kiln_naming *naming;
    struct kiln_texts *texts; /* sources embedded in them */
    struct kiln_api api;
    struct kiln_about about;
    struct kiln_pulse pulse;
    char scrape_dir[PATH_MAX];
    struct kiln_router *full, *otlp, *starting;
    struct kiln_server *server;
    struct kiln_ports ports;
    bool socket_on;
    _Atomic bool store_open;
    _Atomic int state; /* enum kiln_serve_state */
    uint64_t started_unix_ns, started_mono_ns;
};

/* Runs until a signal says stop.  `term` is standard output.  Returns an exit code. */
int kiln_serve(const struct kiln_server_config *config, const struct kiln_term *term);
/* Reads the files that the settings name, tokens and rules of redaction.  Returns an exit code. */
int kiln_serve_check(const struct kiln_server_config *config);
/* Says what is wrong with settings that could not be loaded.  Returns an exit code. */
int kiln_serve_blame(struct kiln_cli *cli, const struct kiln_server_config *config, int code,
                     struct kiln_err *err);

/* ---- server_pages.c ---- */

/* GET /metrics, /healthz, /ready. */
KILN_CHECK int kiln_serve_pages(struct kiln_serve *serve, struct kiln_router *router);
/* What is answered while the log is replayed: /healthz, /ready, and 503 to all else. */
KILN_CHECK int kiln_serve_pages_starting(struct kiln_serve *serve, struct kiln_router **ret_router);

/* ---- server_privileges.c ---- */

/* Chooses the user that a server of root becomes, and starts the child that keeps root's access to
 * files of the settings; needs the data directory, and no other thread. */
KILN_CHECK int kiln_serve_choose_user(struct kiln_serve *serve, struct kiln_err *err);
/* Becomes that user, for good: the store and the socket are its own, all else of root's is gone. */
KILN_CHECK int kiln_serve_give_up(struct kiln_serve *serve, struct kiln_err *err);
void kiln_serve_privileges_done(struct kiln_serve *serve);

/* ---- server_store.c ---- */

/* Makes and locks the data folder; opens the store in it, which replays its log. */
KILN_CHECK int kiln_serve_open_folder(struct kiln_serve *serve, struct kiln_err *err);
KILN_CHECK int kiln_serve_open_store(struct kiln_serve *serve, struct kiln_err *err);

/* ---- server_listen.c ---- */

/* Makes the routers and binds every address that is on; adds the routes, when there are parts
 * behind them. */
KILN_CHECK int kiln_serve_listen(struct kiln_serve *serve, struct kiln_err *err);
KILN_CHECK int kiln_serve_routes(struct kiln_serve *serve, struct kiln_err *err);

/* ---- server_pipeline.c ---- */

/* Makes all between the routes and the store; `reload` reads the rules of redaction again. */
KILN_CHECK int kiln_serve_pipeline(struct kiln_serve *serve, struct kiln_err *err);
void kiln_serve_reload(struct kiln_serve *serve);
KILN_CHECK int kiln_serve_check_rules(const struct kiln_server_config *config,
                                      struct kiln_err *err);
void kiln_serve_pipeline_done(struct kiln_serve *serve);

/* ---- server_host.c ---- */

/* Reads what the host profiler was told. */
KILN_CHECK int kiln_serve_plan_host(struct kiln_serve *serve, struct kiln_err *err);
/* Makes the host profiler, where it is wanted: in a process of its own where this one gives its
 * privileges up. */
KILN_CHECK int kiln_serve_make_host(struct kiln_serve *serve, struct kiln_err *err);
/* Profiles this host, where that is wanted and possible; `done` hands on what was gathered. */
KILN_CHECK int kiln_serve_host(struct kiln_serve *serve, struct kiln_err *err);
void kiln_serve_host_done(struct kiln_serve *serve);
/* How it is, and its processor time; false: it is off.  From any thread. */
bool kiln_serve_host_tell(struct kiln_serve *serve, struct kiln_agent_status *ret_agent,
                          uint64_t *ret_cpu_ns);

/* ---- server_fleet.c ---- */

/* Opens the book of orders; `follow` lets the host profiler, which runs, follow it. */
KILN_CHECK int kiln_serve_fleet(struct kiln_serve *serve, struct kiln_err *err);
void kiln_serve_fleet_follow(struct kiln_serve *serve);
/* Ends what is over, and tells this host; about once a second. */
void kiln_serve_fleet_beat(struct kiln_serve *serve);
/* What this host follows. */
void kiln_serve_fleet_tell(struct kiln_serve *serve, struct kiln_agent_status *status);
void kiln_serve_fleet_done(struct kiln_serve *serve);

/* ---- server_about.c ---- */

/* Makes what the API tells of this process. */
void kiln_serve_about(struct kiln_serve *serve);
/* Notes where the counters stand, every few seconds. */
void kiln_serve_beat(void *serve);
/* Bytes that are free where the data is; whether that is too little to take more. */
uint64_t kiln_serve_disk_free(const struct kiln_serve *serve, bool *ret_full);

/* ---- server_query.c ---- */

/* Makes what answers questions; puts it on the router. */
KILN_CHECK int kiln_serve_query(struct kiln_serve *serve, struct kiln_err *err);
KILN_CHECK int kiln_serve_query_routes(struct kiln_serve *serve);
void kiln_serve_query_done(struct kiln_serve *serve);

/* ---- server_naming.c ---- */

/* Opens the debug files, and starts the thread that names from them; `done` ends it. */
KILN_CHECK int kiln_serve_naming(struct kiln_serve *serve, struct kiln_err *err);
void kiln_serve_naming_done(struct kiln_serve *serve);

/* ---- server_process.c ---- */

/* Registers the metrics of the process and of the pools; they are read when asked for. */
void kiln_serve_measure(struct kiln_serve *serve);

/* ---- server_memory.c ---- */

/* Divides the limit; `start` runs the thread that watches. */
void kiln_memory_init(struct kiln_memory *memory, uint64_t limit);
KILN_CHECK int kiln_memory_start(struct kiln_memory *memory);
/* So many bytes of the process are somebody else's, who has a limit of his own. */
void kiln_memory_set_aside(struct kiln_memory *memory, uint64_t bytes);
void kiln_memory_done(struct kiln_memory *memory);

/* ---- server_notify.c ---- */

/* Writes the file of --ready-file: JSON with ports and pid. */
KILN_CHECK int kiln_serve_say_ready(const struct kiln_serve *serve, struct kiln_err *err);

/* ---- server_greet.c ---- */

/* On a terminal only: prints what runs, the address to open, what is missing, what to type next. */
void kiln_serve_greet(const struct kiln_serve *serve);
/* The same at the end: prints what the server still does. */
void kiln_serve_part(const struct kiln_serve *serve);

#endif /* KILN_CLI_SERVE_H */
