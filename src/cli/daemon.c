/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/daemon.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/meminfo.h"
#include "cli/build_info.h"
#include "cli/cli.h"

#define METRICS_MAX_BYTES ((size_t)16 << 20)

int kiln_daemon_log(const struct kiln_settings *set, struct kiln_log **ret_log,
                    struct kiln_err *err)
{
    enum kiln_log_level level = KILN_LOG_INFO;
    enum kiln_log_form form = KILN_LOG_LOGFMT;
    int r = kiln_log_level_parse(set->log_level, &level);

    if (r == 0)
        r = kiln_log_form_parse(set->log_format, &form);
    if (r == 0)
        r = kiln_log_new(STDERR_FILENO, level, form, ret_log);
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

int kiln_daemon_fail(struct kiln_err *err)
{
    if (err->code == KILN_E_LIMIT || err->code == KILN_E_UNKNOWN)
        err->code = KILN_E_MALFORMED; /* what helps with profile files does not help here */
    return kiln_cli_fail(NULL, err);
}

/* ---- signals ---- */

void kiln_daemon_block_signals(sigset_t *ret_set)
{
    sigemptyset(ret_set);
    sigaddset(ret_set, SIGTERM);
    sigaddset(ret_set, SIGINT);
    sigaddset(ret_set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, ret_set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* SIGHUP comes from the kernel when the window of a terminal is closed, and else means "reload". */
static bool terminal_is_gone(void)
{
    return isatty(STDERR_FILENO) == 0 && errno == EIO;
}

static const char *signal_name(int number)
{
    return number == SIGINT ? "SIGINT" : number == SIGHUP ? "SIGHUP" : "SIGTERM";
}

void kiln_daemon_wait(const sigset_t *set, struct kiln_log *log, void (*reload)(void *context),
                      void *context)
{
    int signal_number = 0;

    while (sigwait(set, &signal_number) == 0 && signal_number == SIGHUP && !terminal_is_gone())
        reload(context);
    kiln_log(log, KILN_LOG_INFO, "stopping", "signal", "%s", signal_name(signal_number), NULL);
    kiln_notify("STOPPING=1");
    pthread_sigmask(SIG_UNBLOCK, set, NULL);
}

/* ---- the socket ---- */

static int make_folder(const char *socket_path)
{
    const char *slash = strrchr(socket_path, '/');
    char folder[PATH_MAX];

    if (!slash || slash == socket_path || (size_t)(slash - socket_path) >= sizeof(folder))
        return 0;
    memcpy(folder, socket_path, (size_t)(slash - socket_path));
    folder[slash - socket_path] = '\0';
    return mkdir(folder, 0755) == 0 || errno == EEXIST ? 0 : -errno;
}

int kiln_daemon_listen_socket(struct kiln_server *server, struct kiln_router *router,
                              const char *path, bool for_every_user, struct kiln_err *err)
{
    char address[PATH_MAX + 8];
    struct kiln_listen_opts opts = {
        .address = address, .router = router, .for_every_user = for_every_user};
    int r = make_folder(path);

    if (r < 0)
        return kiln_err_set(err, r, path, "the folder of the socket cannot be made: %s",
                            kiln_err_text(r));
    snprintf(address, sizeof(address), "unix:%s", path);
    return kiln_server_listen(server, &opts, NULL, err);
}

static int supervisor = -1; /* the socket; -1: it is not open */

int kiln_notify_connect(void)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = path ? strlen(path) : 0;
    int fd;

    if (len == 0 || supervisor >= 0)
        return 0;
    if (len >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, len);
    if (path[0] == '@')
        address.sun_path[0] = '\0'; /* a name that is no file */
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (struct sockaddr *)&address,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0) {
        close(fd);
        return -errno;
    }
    supervisor = fd;
    return 0;
}

int kiln_notify(const char *state)
{
    int r = kiln_notify_connect();

    if (r < 0 || supervisor < 0)
        return r;
    return send(supervisor, state, strlen(state), MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* ---- the process ---- */

void kiln_daemon_check_memory(struct kiln_log *log, uint64_t limit)
{
    uint64_t total = kiln_meminfo_total();

    if (limit > total)
        kiln_log(log, KILN_LOG_WARN,
                 "the memory limit is above what this process may use: the kernel may kill it; "
                 "lower --memory-limit or raise the control group's limit",
                 "memory_limit", "%llu", (unsigned long long)limit, "may_use", "%llu",
                 (unsigned long long)total, NULL);
}

/* A connection is a file, and so is a block: as many as the system allows. */
void kiln_daemon_raise_open_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

uint64_t kiln_process_rss(void)
{
    uint64_t pages = 0;
    struct kiln_buf text;
    struct kiln_str rest;

    kiln_buf_init(&text, 256);
    if (kiln_file_read("/proc/self/statm", &text, NULL) == 0) {
        rest = kiln_buf_str(&text);
        kiln_str_cut(&rest, ' ');
        if (kiln_str_parse_u64(kiln_str_cut(&rest, ' '), &pages) < 0)
            pages = 0;
    }
    kiln_buf_done(&text);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

double kiln_process_cpu_seconds(void)
{
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage) < 0)
        return 0;
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double entries(const char *path)
{
    DIR *dir = opendir(path);
    double n = 0;

    if (!dir)
        return 0;
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 2; /* . and .. */
}

static double open_files_max(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (double)limit.rlim_cur : 0;
}

static void set(struct kiln_metrics *metrics, enum kiln_metric_kind kind, const char *name,
                const char *help, double value)
{
    kiln_metric_set(kiln_metric_get(metrics, kind, name, help, NULL), value);
}

static void collect(void *context)
{
    struct kiln_metrics *m = context;

    set(m, KILN_COUNTER, "process_cpu_seconds_total", "Processor time, user and system.",
        kiln_process_cpu_seconds());
    set(m, KILN_GAUGE, "process_resident_memory_bytes", "Memory of the process.",
        (double)kiln_process_rss());
    set(m, KILN_GAUGE, "process_open_fds", "Open files and connections.",
        entries("/proc/self/fd") - 1); /* the folder itself */
    set(m, KILN_GAUGE, "process_max_fds", "How many may be open.", open_files_max());
    set(m, KILN_GAUGE, "process_threads", "Threads.", entries("/proc/self/task"));
}

void kiln_daemon_measure(struct kiln_metrics *metrics, uint64_t started_unix_ns)
{
    kiln_metric_set(
        kiln_metric_get(metrics, KILN_GAUGE, "kiln_build_info", "Which Kiln this is.",
                        KILN_LABELS("version", KILN_VERSION, "revision", kiln_build_commit)),
        1);
    set(metrics, KILN_GAUGE, "process_start_time_seconds", "When it started, as Unix time.",
        (double)started_unix_ns / 1e9);
    kiln_metrics_on_collect(metrics, collect, metrics);
}

void kiln_daemon_reply_metrics(struct kiln_request *request, struct kiln_metrics *metrics,
                               struct kiln_str others)
{
    struct kiln_buf text;

    kiln_buf_init(&text, METRICS_MAX_BYTES);
    kiln_metrics_format(metrics, &text);
    kiln_buf_add_str(&text, others);
    if (text.error)
        kiln_request_reply_text(request, 503, "%s", kiln_err_text(text.error));
    else
        kiln_request_reply(request, &(struct kiln_reply){
                                        .status = 200,
                                        .content_type = "text/plain; version=0.0.4; charset=utf-8",
                                        .body = kiln_buf_str(&text)});
    kiln_buf_done(&text);
}
