/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child for each file: it gets the address, the limits, the descriptor, and of the environment
 * only what says how to reach the network.  We wait for it in slices, and end it when its time is
 * over or we shall stop.
 */
#include "naming/fetch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/spawn.h"
#include "naming/fetch_int.h"

#define FILE_BYTES (UINT64_C(2) << 30)
#define DAY_NS     (UINT64_C(86400) * KILN_NS_PER_S)
#define SOON_NS    (UINT64_C(600) * KILN_NS_PER_S)

enum { TIMEOUT_S = 300, GRACE_S = 5, SLICE_MS = 100, MISSES = 8192, URL_MAX = 1024 };

/* What was asked for in vain. */
struct miss {
    uint64_t key, until_ns;
    bool failed; /* a server did not answer; else none has it */
};

struct kiln_fetch {
    struct kiln_fetch_opts opts;
    struct miss misses[MISSES];
    struct kiln_metric *fetched, *absent, *failed, *bytes;
};

/* ---- making ---- */

static bool is_address(const char *url)
{
    struct kiln_str text = kiln_str_of(url);

    return (kiln_str_starts(text, KILN_STR("http://")) ||
            kiln_str_starts(text, KILN_STR("https://"))) &&
           text.len < URL_MAX / 2;
}

static void measure(struct kiln_fetch *fetch)
{
    struct kiln_metrics *m = fetch->opts.metrics;
    const char *name = "kiln_debuginfod_requests_total",
               *help = "Debug files that debuginfod servers were asked for.";

    fetch->fetched =
        kiln_metric_get(m, KILN_COUNTER, name, help, KILN_LABELS("outcome", "fetched"));
    fetch->absent = kiln_metric_get(m, KILN_COUNTER, name, help, KILN_LABELS("outcome", "absent"));
    fetch->failed = kiln_metric_get(m, KILN_COUNTER, name, help, KILN_LABELS("outcome", "failed"));
}

int kiln_fetch_new(const struct kiln_fetch_opts *opts, struct kiln_fetch **ret_fetch,
                   struct kiln_err *err)
{
    struct kiln_fetch *fetch;

    for (uint32_t i = 0; i < opts->n_urls; i++)
        if (!is_address(opts->urls[i]))
            return kiln_err_set(err, -EINVAL, NULL,
                                "--debuginfod: \"%.80s\" is no address (say https://...)",
                                opts->urls[i]);
    fetch = kiln_calloc(1, sizeof(*fetch));
    if (!fetch)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    fetch->opts = *opts;
    fetch->opts.program = opts->program ? opts->program : "/proc/self/exe";
    fetch->opts.file_bytes = opts->file_bytes ? opts->file_bytes : FILE_BYTES;
    fetch->opts.timeout_s = opts->timeout_s ? opts->timeout_s : TIMEOUT_S;
    measure(fetch);
    *ret_fetch = fetch;
    return 0;
}

void kiln_fetch_free(struct kiln_fetch *fetch)
{
    kiln_free(fetch);
}

/* ---- what was asked for in vain ---- */

static struct miss *miss_of(struct kiln_fetch *fetch, struct kiln_str build_id,
                            enum kiln_debug_kind kind)
{
    uint64_t key = kiln_hash_mix(kiln_hash(build_id.ptr, build_id.len), (uint64_t)kind + 1);
    struct miss *miss = &fetch->misses[key % MISSES];

    if (miss->key != key)
        *miss = (struct miss){.key = key};
    return miss;
}

/* ---- the child ---- */

/* Of our environment, what says how to reach the network. */
static uint32_t choose_environment(char *out[], uint32_t n_max)
{
    static const char *const names[] = {
        "http_proxy=", "https_proxy=", "no_proxy=",  "HTTP_PROXY=",    "HTTPS_PROXY=",
        "NO_PROXY=",   "all_proxy=",   "ALL_PROXY=", "SSL_CERT_FILE=", "SSL_CERT_DIR="};
    uint32_t n = 0;

    for (char **at = environ; *at && n + 1 < n_max; at++)
        for (size_t i = 0; i < KILN_ARRAY_LEN(names); i++)
            if (strncmp(*at, names[i], strlen(names[i])) == 0) {
                out[n++] = *at;
                break;
            }
    out[n] = NULL;
    return n;
}

static int add_actions(posix_spawn_file_actions_t *actions, int fd)
{
    int r = posix_spawn_file_actions_adddup2(actions, fd, KILN_FETCH_FILE);

    for (int i = 0; r == 0 && i < 3; i++)
        r = posix_spawn_file_actions_addopen(actions, i, "/dev/null", i ? 1 : 0, 0);
    return r;
}

static int spawn(const char *program, char *const arguments[], int fd, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    char *environment[16];
    int r;

    if (posix_spawn_file_actions_init(&actions) != 0)
        return -ENOMEM;
    choose_environment(environment, KILN_ARRAY_LEN(environment));
    r = -add_actions(&actions, fd);
    if (r == 0)
        r = kiln_spawn(program, &actions, arguments, environment, ret_pid);
    posix_spawn_file_actions_destroy(&actions);
    return r;
}

/* Its exit code; it has none where we ended it. */
static int wait_for(const struct kiln_fetch *fetch, pid_t pid)
{
    uint64_t end_ns =
        kiln_clock_mono_ns() + (fetch->opts.timeout_s + (uint64_t)GRACE_S) * KILN_NS_PER_S;
    int fd = (int)syscall(SYS_pidfd_open, pid, 0), status = 0, r;
    bool ended = false;

    while (!ended && kiln_clock_mono_ns() < end_ns &&
           !(fetch->opts.stop && atomic_load(fetch->opts.stop))) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

        (void)poll(&poll_fd, 1, SLICE_MS);
        ended = waitpid(pid, &status, WNOHANG) == pid;
    }
    if (fd >= 0)
        close(fd);
    if (!ended) {
        kill(pid, SIGKILL);
        do
            r = waitpid(pid, &status, 0);
        while (r < 0 && errno == EINTR);
        return KILN_FETCH_TIMEOUT;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : KILN_FETCH_UNSAFE;
}

static const char *text_of(int code)
{
    switch (code) {
#define X(number, name, text)                                                                      \
    case number:                                                                                   \
        return text;
        KILN_FETCH_ENDS(X)
#undef X
    default:
        return "the process that fetches ended in disorder";
    }
}

/* ---- a file ---- */

static int fetch_url(struct kiln_fetch *fetch, char *url, struct kiln_str build_id,
                     struct kiln_err *err)
{
    char most[24], seconds[16], program[] = "kiln-debuginfod", word[] = "--debuginfod-child";
    char *const arguments[] = {program, word, url, most, seconds, NULL};
    struct kiln_depot_fetch file;
    pid_t pid;
    int code, r = kiln_depot_fetch_begin(fetch->opts.depot, KILN_DEPOT_SHARED,
                                         fetch->opts.file_bytes, &file, err);

    if (r < 0)
        return r;
    snprintf(most, sizeof(most), "%llu", (unsigned long long)file.max);
    snprintf(seconds, sizeof(seconds), "%u", fetch->opts.timeout_s);
    r = spawn(fetch->opts.program, arguments, file.fd, &pid);
    code = r < 0 ? KILN_FETCH_UNSAFE : wait_for(fetch, pid);
    r = kiln_depot_fetch_end(fetch->opts.depot, &file, KILN_DEPOT_SHARED, build_id,
                             code == KILN_FETCH_WELL, err);
    if (code == KILN_FETCH_ABSENT)
        return -ENOENT;
    if (code != KILN_FETCH_WELL)
        return kiln_err_set(err, -EIO, NULL, "%.120s: %s", url, text_of(code));
    return r;
}

static int ask_servers(struct kiln_fetch *fetch, struct kiln_str build_id,
                       enum kiln_debug_kind kind, struct kiln_err *err)
{
    int result = -ENOENT;

    for (uint32_t i = 0; i < fetch->opts.n_urls; i++) {
        const char *base = fetch->opts.urls[i];
        size_t len = strlen(base);
        struct kiln_err why = {0};
        char url[URL_MAX];
        int r;

        while (len > 0 && base[len - 1] == '/')
            len--;
        snprintf(url, sizeof(url), "%.*s/buildid/%.*s/%s", (int)len, base, KILN_STR_ARG(build_id),
                 kiln_debug_kind_name(kind));
        r = fetch_url(fetch, url, build_id, &why);
        if (r == 0)
            return 0;
        if (r != -ENOENT)
            result = kiln_err_set(err, r, NULL, "%s", why.text);
    }
    return result;
}

int kiln_fetch_get(struct kiln_fetch *fetch, struct kiln_str build_id, enum kiln_debug_kind kind,
                   struct kiln_err *err)
{
    struct miss *miss = miss_of(fetch, build_id, kind);
    uint64_t now = kiln_clock_mono_ns();
    int r;

    if (miss->until_ns > now)
        return miss->failed ? kiln_err_set(err, -EIO, NULL,
                                           "a server failed not long ago: it is asked again later")
                            : -ENOENT;
    r = ask_servers(fetch, build_id, kind, err);
    if (r == 0)
        kiln_metric_add(fetch->fetched, 1);
    else
        kiln_metric_add(r == -ENOENT ? fetch->absent : fetch->failed, 1);
    if (r < 0) {
        miss->failed = r != -ENOENT;
        miss->until_ns = now + (miss->failed ? SOON_NS : DAY_NS);
    }
    if (r < 0 && r != -ENOENT)
        kiln_log(fetch->opts.log, KILN_LOG_WARN, "debuginfod failed", "reason", "%s", err->text,
                 NULL);
    return r;
}
