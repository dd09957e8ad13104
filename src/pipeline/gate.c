/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread looks at the file of tokens now and then and reads it again when its time, size or
 * inode changed; the guard only ever waits for one copy of a pointer's worth of list.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/thread.h"
#include "pipeline/gate_int.h"

#define RELOAD_MS_DEFAULT 5000u
#define BURST_SECONDS     5u
#define BODY_MAX_DEFAULT  ((size_t)64 << 20)

/* ---- reloading ---- */

static bool has_changed(struct kiln_gate *gate)
{
    struct stat now;

    if (kiln_file_stat(gate->tokens_file, &now) < 0)
        return false; /* being replaced, or gone: what we have stays */
    if (now.st_mtim.tv_sec == gate->seen.st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == gate->seen.st_mtim.tv_nsec && now.st_size == gate->seen.st_size &&
        now.st_ino == gate->seen.st_ino)
        return false;
    gate->seen = now;
    return true;
}

static void audit_reload(struct kiln_gate *gate, bool well)
{
    kiln_audit_write(gate->opts.audit,
                     &(struct kiln_audit_record){.action = "reload tokens",
                                                 .tenant = "",
                                                 .target = kiln_str_of(gate->tokens_file),
                                                 .who = "",
                                                 .peer = "",
                                                 .result = well ? "ok" : "failed"});
}

static void reload(struct kiln_gate *gate)
{
    struct kiln_tokens fresh, old;
    struct kiln_err err = {0};

    if (kiln_tokens_load(gate->tokens_file, &fresh, &err) < 0) {
        kiln_metric_add(gate->bad_reloads, 1);
        kiln_log(gate->opts.log, KILN_LOG_ERROR, "tokens not read again, the old ones stay",
                 "where", "%s", err.where, "why", "%s", err.text, NULL);
        audit_reload(gate, false);
        return;
    }
    pthread_rwlock_wrlock(&gate->tokens_lock);
    old = gate->tokens;
    gate->tokens = fresh;
    pthread_rwlock_unlock(&gate->tokens_lock);
    kiln_sessions_keep(&gate->sessions, &gate->tokens); /* which nobody but us changes */
    kiln_tokens_done(&old);
    kiln_metric_add(gate->reloads, 1);
    kiln_log(gate->opts.log, KILN_LOG_INFO, "tokens read again", "file", "%s", gate->tokens_file,
             "tokens", "%u", fresh.n, NULL);
    audit_reload(gate, true);
}

static void *watch(void *context)
{
    struct kiln_gate *gate = context;
    uint64_t ms = gate->opts.reload_interval_ms ? gate->opts.reload_interval_ms : RELOAD_MS_DEFAULT;
    struct timespec until;

    pthread_mutex_lock(&gate->stop_lock);
    while (!gate->stop) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += (time_t)(ms / 1000);
        until.tv_nsec += (long)(ms % 1000 * KILN_NS_PER_MS);
        if (until.tv_nsec >= (long)KILN_NS_PER_S) {
            until.tv_nsec -= (long)KILN_NS_PER_S;
            until.tv_sec++;
        }
        pthread_cond_timedwait(&gate->stop_cond, &gate->stop_lock, &until);
        kiln_throttle_flush(gate->throttle, kiln_clock_mono_ns());
        if (!gate->stop && has_changed(gate))
            reload(gate);
    }
    pthread_mutex_unlock(&gate->stop_lock);
    return NULL;
}

void kiln_gate_look_again(struct kiln_gate *gate)
{
    pthread_mutex_lock(&gate->stop_lock);
    pthread_cond_signal(&gate->stop_cond);
    pthread_mutex_unlock(&gate->stop_lock);
}

/* ---- making ---- */

static int open_tokens(struct kiln_gate *gate, struct kiln_err *err)
{
    size_t size = strlen(gate->opts.tokens_file) + 1;
    int r;

    gate->tokens_file = kiln_malloc(size);
    if (!gate->tokens_file)
        return -ENOMEM;
    memcpy(gate->tokens_file, gate->opts.tokens_file, size);
    gate->opts.tokens_file = gate->tokens_file;
    (void)has_changed(gate);
    r = kiln_tokens_load(gate->tokens_file, &gate->tokens, err);
    if (r == 0)
        r = kiln_throttle_new(gate->opts.audit, &gate->throttle);
    if (r < 0)
        return r;
    r = kiln_thread_start("kiln-gate", watch, gate, &gate->reloader);
    gate->reloading = r == 0;
    return r < 0 ? kiln_err_set(err, r, NULL, "no thread for reading tokens: %s", kiln_err_text(r))
                 : 0;
}

static int open_buckets(struct kiln_gate *gate)
{
    const struct kiln_gate_limits *limits = &gate->opts.limits;
    uint64_t body = limits->body_max ? limits->body_max : BODY_MAX_DEFAULT;
    uint64_t burst = limits->burst_bytes;

    if (!limits->bytes_per_s)
        return 0;
    if (!burst) {
        burst = limits->bytes_per_s < UINT64_MAX / BURST_SECONDS
                    ? limits->bytes_per_s * BURST_SECONDS
                    : UINT64_MAX;
        burst = burst < body ? body : burst;
    }
    return kiln_buckets_new(limits->bytes_per_s, burst, &gate->buckets);
}

int kiln_gate_new(const struct kiln_gate_opts *opts, struct kiln_gate **ret_gate,
                  struct kiln_err *err)
{
    struct kiln_gate *gate = kiln_calloc(1, sizeof(*gate));
    int r;

    if (!gate)
        return -ENOMEM;
    gate->opts = *opts;
    gate->origin = (struct kiln_origin_policy){.host_names = opts->host_names,
                                               .n_host_names = opts->n_host_names,
                                               .any_host = opts->tokens_file != NULL,
                                               .programs_write = opts->allow_anonymous};
    pthread_rwlock_init(&gate->tokens_lock, NULL);
    pthread_mutex_init(&gate->stop_lock, NULL);
    kiln_cond_init(&gate->stop_cond);
    kiln_gate_open_metrics(gate);
    kiln_sessions_init(&gate->sessions);
    r = open_buckets(gate);
    if (r == 0 && opts->tokens_file)
        r = open_tokens(gate, err);
    if (r < 0) {
        kiln_gate_free(gate);
        return r;
    }
    *ret_gate = gate;
    return 0;
}

void kiln_gate_free(struct kiln_gate *gate)
{
    if (!gate)
        return;
    pthread_mutex_lock(&gate->stop_lock);
    gate->stop = true;
    pthread_cond_signal(&gate->stop_cond);
    pthread_mutex_unlock(&gate->stop_lock);
    if (gate->reloading)
        pthread_join(gate->reloader, NULL);
    kiln_tokens_done(&gate->tokens);
    kiln_sessions_done(&gate->sessions);
    kiln_buckets_free(gate->buckets);
    kiln_throttle_free(gate->throttle);
    pthread_cond_destroy(&gate->stop_cond);
    pthread_mutex_destroy(&gate->stop_lock);
    pthread_rwlock_destroy(&gate->tokens_lock);
    kiln_free(gate->tokens_file);
    kiln_free(gate);
}

/* ---- listening ---- */

static bool is_loopback(struct kiln_str host)
{
    char text[INET6_ADDRSTRLEN + 1];
    struct in_addr four;
    struct in6_addr six;

    if (host.len >= 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']')
        host = (struct kiln_str){host.ptr + 1, host.len - 2};
    if (kiln_str_eq(host, KILN_STR("localhost")))
        return true;
    if (host.len == 0 || host.len >= sizeof(text))
        return false;
    memcpy(text, host.ptr, host.len);
    text[host.len] = '\0';
    if (inet_pton(AF_INET, text, &four) == 1)
        return ntohl(four.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, text, &six) != 1)
        return false;
    return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
}

int kiln_gate_check_listen(const char *address, bool has_tokens, bool allow_anonymous,
                           struct kiln_err *err)
{
    struct kiln_str s = kiln_str_of(address);
    const char *colon = strrchr(address, ':');

    if (has_tokens || allow_anonymous || kiln_str_starts(s, KILN_STR("unix:")))
        return 0;
    if (colon)
        s.len = (size_t)(colon - address);
    if (is_loopback(s))
        return 0;
    return kiln_err_set(err, -EACCES, address,
                        "everybody who can reach this address could read and write profiles: give "
                        "a file of tokens, or allow anonymous access if that is meant");
}
