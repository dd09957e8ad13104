/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer to an export:
 *
 *   ExportProfilesServiceResponse   1 partial_success { 1 rejected_profiles, 2 error_message }
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/remote.h"
#include "cli/settings.h"

#define SERVER_DEFAULT "http://127.0.0.1:4040"
#define SOCKET_DEFAULT "/run/kiln/kiln.sock"
#define WAIT_FIRST_MS  100u
#define WAIT_MOST_MS   5000u

static const struct kiln_option options[] = {
    KILN_OPT("server", 's', KILN_OPT_TEXT, remote.server, "URL",
             "the server: http://..., https://..., unix:/path (KILN_SERVER, " SERVER_DEFAULT ")"),
    KILN_OPT("token", 0, KILN_OPT_TEXT, remote.token, "TOKEN",
             "show this token (KILN_TOKEN, which does not show in the list of processes)"),
    KILN_OPT("tenant", 0, KILN_OPT_TEXT, remote.tenant, "NAME", "act for this tenant"),
    KILN_OPT("ca-file", 0, KILN_OPT_TEXT, remote.ca_file, "FILE",
             "trust certificates signed by those in FILE (PEM) instead of the system's"),
    KILN_OPT("timeout", 0, KILN_OPT_DURATION, remote.timeout_ns, "TIME",
             "wait no longer for an answer (10s; of kiln query: 60s)"),
    KILN_OPT_END,
};

const struct kiln_option_group kiln_group_remote = {"Server", options};

/* The option, else the variable unless it is empty, else `fallback`. */
static const char *setting(const char *option, const char *variable, const char *fallback)
{
    const char *value = option ? option : getenv(variable);

    return value && (option || *value) ? value : fallback;
}

const char *kiln_remote_address(const struct kiln_cli *cli)
{
    return setting(cli->args.remote.server, "KILN_SERVER", SERVER_DEFAULT);
}

bool kiln_remote_socket(char ret_address[PATH_MAX + 8])
{
    const char *said = setting(NULL, "KILN_SOCKET", NULL);
    char own[PATH_MAX];
    const char *const paths[] = {said ? said : SOCKET_DEFAULT, own};

    kiln_settings_socket(own);
    for (size_t i = 0; i < (said ? 1 : KILN_ARRAY_LEN(paths)); i++) {
        if (access(paths[i], W_OK) == 0 &&
            snprintf(ret_address, PATH_MAX + 8, "unix:%s", paths[i]) < PATH_MAX + 8)
            return true;
    }
    return false;
}

int kiln_remote_open(const struct kiln_cli *cli, size_t answer_max, struct kiln_client **ret_client,
                     struct kiln_err *err)
{
    return kiln_remote_open_until(cli, answer_max, NULL, ret_client, err);
}

int kiln_remote_open_until(const struct kiln_cli *cli, size_t answer_max,
                           const _Atomic bool *cancel, struct kiln_client **ret_client,
                           struct kiln_err *err)
{
    uint64_t timeout_ms = cli->args.remote.timeout_ns / KILN_NS_PER_MS;

    return kiln_client_new(
        &(struct kiln_client_opts){
            .server = kiln_remote_address(cli),
            .token = setting(cli->args.remote.token, "KILN_TOKEN", NULL),
            .tenant = cli->args.remote.tenant,
            .ca_file = cli->args.remote.ca_file,
            .timeout_ms = timeout_ms > INT32_MAX ? INT32_MAX : (uint32_t)timeout_ms,
            .answer_max = answer_max,
            .cancel = cancel,
        },
        ret_client, err);
}

/* ---- addresses ---- */

static bool is_plain(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c && strchr("-._~", c));
}

void kiln_remote_put_text(struct kiln_buf *out, struct kiln_str text, bool slashes)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (is_plain(c) || (c == '/' && slashes))
            kiln_buf_putc(out, c);
        else
            kiln_buf_printf(out, "%%%02X", (unsigned char)c);
    }
}

void kiln_remote_put_param(struct kiln_buf *out, const char *name, const char *value)
{
    bool first = !out->len || !memchr(out->ptr, '?', out->len);

    if (!value)
        return;
    kiln_buf_putc(out, first ? '?' : '&');
    kiln_remote_put_text(out, kiln_str_of(name), true);
    kiln_buf_putc(out, '=');
    kiln_remote_put_text(out, kiln_str_of(value), true);
}

void kiln_remote_put_number(struct kiln_buf *out, const char *name, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    kiln_remote_put_param(out, name, text);
}

/* ---- tries ---- */

bool kiln_remote_accepted(const struct kiln_answer *answer)
{
    return answer->status >= 200 && answer->status < 300 && answer->rpc_code == 0;
}

static bool may_try_again(const struct kiln_tries *tries, int r, const struct kiln_answer *answer,
                          bool first)
{
    if (r == -ECONNREFUSED && first && !tries->insist)
        return false;
    return r < 0 ? kiln_client_retryable(r) : answer->retryable;
}

/* At least `ms`, and up to `more_ms` longer, so that many clients do not come back together. */
static void wait_about(uint64_t ms, uint64_t more_ms)
{
    uint64_t noise = kiln_clock_mono_ns() * UINT64_C(0x9e3779b97f4a7c15) >> 40;
    uint64_t ns = ms * KILN_NS_PER_MS + more_ms * KILN_NS_PER_MS * noise / (1u << 24);
    struct timespec span = {(time_t)(ns / KILN_NS_PER_S), (long)(ns % KILN_NS_PER_S)};

    while (nanosleep(&span, &span) < 0 && errno == EINTR)
        ;
}

int kiln_remote_call(struct kiln_client *client, const struct kiln_call *call,
                     struct kiln_tries *tries, struct kiln_answer *answer, struct kiln_err *err)
{
    uint64_t start = kiln_clock_mono_ns();
    uint64_t wait_ms = WAIT_FIRST_MS;

    for (bool first = true;; first = false) {
        struct kiln_err failed = {0};
        uint64_t least_ms, spent_ms;
        int r;

        tries->last_start_ns = kiln_clock_mono_ns();
        r = tries->grpc ? kiln_client_grpc(client, call, answer, &failed)
                        : kiln_client_call(client, call, answer, &failed);
        least_ms = r == 0 && answer->retry_after_ms ? answer->retry_after_ms : wait_ms / 2;
        spent_ms = (kiln_clock_mono_ns() - start) / KILN_NS_PER_MS;
        if (!may_try_again(tries, r, answer, first) ||
            (spent_ms + least_ms) * KILN_NS_PER_MS >= tries->give_up_ns) {
            if (r < 0)
                kiln_err_set(err, failed.code, failed.where, "%s", failed.text);
            return r;
        }
        wait_about(least_ms, wait_ms / 2);
        wait_ms = wait_ms * 2 < WAIT_MOST_MS ? wait_ms * 2 : WAIT_MOST_MS;
        tries->again++;
    }
}
