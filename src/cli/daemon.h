/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon - what the commands that stay have in common: log, signals, open files, metrics.
 *
 * Threads: the main thread, before there are others.
 */
#ifndef KILN_CLI_DAEMON_H
#define KILN_CLI_DAEMON_H

#include <signal.h>

#include "base/log.h"
#include "base/metric.h"
#include "cli/settings.h"
#include "net/server.h"

/* On standard error, as the settings say. */
KILN_CHECK int kiln_daemon_log(const struct kiln_settings *set, struct kiln_log **ret_log,
                               struct kiln_err *err);

/* SIGTERM, SIGINT and SIGHUP, blocked in every thread for the main one to wait for; no SIGPIPE. */
void kiln_daemon_block_signals(sigset_t *ret_set);

/*
 * Waits for SIGTERM, SIGINT or the end of the terminal that standard error is, calls `reload` for
 * each other SIGHUP, and reports the end to the log and to a supervisor.  From then on a second
 * signal ends the process at once.
 */
void kiln_daemon_wait(const sigset_t *set, struct kiln_log *log, void (*reload)(void *context),
                      void *context);

/* As many as the system allows. */
void kiln_daemon_raise_open_files(void);

/* Warns if "limit" is more memory than the machine or a control group lets this process use. */
void kiln_daemon_check_memory(struct kiln_log *log, uint64_t limit);

/* Metrics of the process, under the names every Prometheus client uses. */
void kiln_daemon_measure(struct kiln_metrics *metrics, uint64_t started_unix_ns);
/* Bytes that this process has in memory; 0 if it cannot be told. */
uint64_t kiln_process_rss(void);
/* Processor time of it, user and system. */
double kiln_process_cpu_seconds(void);

/* Answers with all metrics; `others` are those of another process, as text. */
void kiln_daemon_reply_metrics(struct kiln_request *request, struct kiln_metrics *metrics,
                               struct kiln_str others);

/* Listens on a Unix socket; its folder is made, if it is not there. */
KILN_CHECK int kiln_daemon_listen_socket(struct kiln_server *server, struct kiln_router *router,
                                         const char *path, bool for_every_user,
                                         struct kiln_err *err);

/* Opens the way to a supervisor (NOTIFY_SOCKET, as systemd gives it): for who becomes a user that
 * may not open it any more.  Nobody there: 0. */
int kiln_notify_connect(void);
/* Tells the supervisor a state: "READY=1". */
int kiln_notify(const char *state);

/* Prints why it does not run.  Returns an exit code. */
int kiln_daemon_fail(struct kiln_err *err);

#endif /* KILN_CLI_DAEMON_H */
