/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A name is asked for that must be there: of getpid(), in the C library that we run with.  Folders
 * are tried by writing a file into them that never has a name (O_TMPFILE); one that is not there
 * yet is judged by the nearest folder above it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/doctor.h"
#include "core/type.h"
#include "host/host.h"
#include "net/client.h"
#include "pipeline/exporters/otlp_target.h"
#include "symbol/resolver.h"

enum { ANSWER_TIMEOUT_MS = 5000 };

/* ---- names ---- */

static int ask_name(struct kiln_resolver *resolver, const char *path, uint64_t address, char *to,
                    size_t size)
{
    struct kiln_source source = {.kind = KILN_SOURCE_ELF, .id = 1, .key = kiln_str_of(path)};
    struct kiln_name name = {0};
    int r;

    source.fd = open(path, O_RDONLY | O_CLOEXEC);
    if (source.fd < 0)
        return -errno;
    r = kiln_resolver_ask(resolver, &source, &address, 1, &name);
    if (r == 0 && name.n == 0)
        r = -ENOENT;
    if (r == 0)
        snprintf(to, size, "%.*s", KILN_STR_ARG(kiln_name_function(&name)));
    close(source.fd);
    return r;
}

static void look_at_names(struct kiln_survey *survey)
{
    struct kiln_finding *f = kiln_survey_add(survey, "names", "symbol child", KILN_FINDING_OK);
    struct kiln_resolver_opts opts = {.patient = true};
    struct kiln_resolver *resolver = NULL;
    struct kiln_err err = {0};
    char name[64];
    Dl_info info;
    int r;

    if (!dladdr((void *)(uintptr_t)getpid, &info) || !info.dli_fname) {
        f->state = KILN_FINDING_UNKNOWN;
        kiln_finding_say(f, "no file is at hand that a name could be asked of");
        return;
    }
    r = kiln_resolver_new(&opts, &resolver, &err);
    if (r == 0)
        r = ask_name(resolver, info.dli_fname, (uintptr_t)getpid - (uintptr_t)info.dli_fbase, name,
                     sizeof(name));
    kiln_resolver_free(resolver);
    if (r == 0) {
        kiln_finding_say(f, "a confined child found %s() in %.160s", name, info.dli_fname);
        return;
    }
    kiln_finding_say(f, "%s", err.text[0] ? err.text : kiln_err_text(r));
    kiln_finding_lacks(f, KILN_FINDING_LESS, "profiles have addresses in place of names",
                       "let it start processes and filter their system calls (seccomp)");
}

/* ---- folders ---- */

/* The nearest folder that exists; `path` is cut to it. */
static void cut_to_folder(char *path)
{
    while (access(path, F_OK) != 0) {
        char *slash = strrchr(path, '/');

        if (!slash || slash == path) {
            snprintf(path, 2, slash ? "/" : ".");
            return;
        }
        *slash = '\0';
    }
}

static int try_folder(const char *path, uint64_t *ret_free)
{
    char folder[PATH_MAX];
    struct statvfs fs;
    int fd;

    snprintf(folder, sizeof(folder), "%s", path);
    cut_to_folder(folder);
    fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 && errno != EOPNOTSUPP && errno != EISDIR)
        return -errno;
    if (fd < 0 && access(folder, W_OK | X_OK) != 0)
        return -errno;
    if (fd >= 0)
        close(fd);
    *ret_free = statvfs(folder, &fs) == 0 ? (uint64_t)fs.f_bavail * fs.f_frsize : UINT64_MAX;
    return 0;
}

static void put_size(char *to, size_t size, uint64_t bytes)
{
    struct kiln_buf text;

    kiln_buf_init(&text, 64);
    kiln_format_value(&text, (double)bytes, KILN_STR("bytes"));
    snprintf(to, size, "%.*s", KILN_STR_ARG(kiln_buf_str(&text)));
    kiln_buf_done(&text);
}

static void look_at_folder(struct kiln_finding *f, const char *path, uint64_t wanted,
                           const char *without)
{
    uint64_t left = 0;
    char free_text[32], wanted_text[32];
    int r = try_folder(path, &left);

    put_size(free_text, sizeof(free_text), left);
    put_size(wanted_text, sizeof(wanted_text), wanted);
    if (r < 0) {
        kiln_finding_say(f, "%.150s cannot be written: %s", path, kiln_err_text(r));
        kiln_finding_lacks(f, KILN_FINDING_LESS, without, "");
        snprintf(f->grant, sizeof(f->grant), "sudo install -d -m 700 -o %u %.200s", geteuid(),
                 path);
    } else if (left < wanted) {
        kiln_finding_say(f, "%.150s has %s left, of %s that it may take", path, free_text,
                         wanted_text);
        kiln_finding_lacks(f, KILN_FINDING_LESS, without, "make room, or say another folder");
    } else {
        kiln_finding_say(f, "%.150s, with %s left", path, free_text);
    }
}

static void look_at_cache(struct kiln_survey *survey, const struct kiln_server_config *config)
{
    struct kiln_finding *f = kiln_survey_add(survey, "names", "symbol cache", KILN_FINDING_OK);
    struct kiln_host_plan plan;
    struct kiln_err err = {0};
    int r = kiln_host_plan_make(&config->set.host, &plan, &err);

    if (r == 0 && plan.opts.symbol_cache)
        look_at_folder(f, plan.opts.symbol_cache,
                       plan.opts.symbol_cache_bytes ? plan.opts.symbol_cache_bytes
                                                    : KILN_HOST_SYMBOL_CACHE_BYTES,
                       "names are looked for again with each start");
    else
        kiln_finding_say(f, "%s", r < 0 ? err.text : "off, as it was asked for");
    kiln_host_plan_done(&plan);
}

static void look_at_spool(struct kiln_survey *survey, const struct kiln_server_config *config)
{
    struct kiln_finding *f = kiln_survey_add(survey, "sending", "spool", KILN_FINDING_OK);
    const char *dir = config->set.agent.spool_dir;

    if (dir && kiln_settings_on(dir))
        look_at_folder(f, dir, config->set.agent.spool_size,
                       "what cannot be sent yet waits in memory alone, and is lost with the agent");
    else
        kiln_finding_say(f, "off, as it was asked for");
}

void kiln_doctor_places(struct kiln_survey *survey, const struct kiln_server_config *config)
{
    look_at_names(survey);
    look_at_cache(survey, config);
    look_at_spool(survey, config);
}

/* ---- the receiver ---- */

static int call(const struct kiln_otlp_target *target, struct kiln_answer *answer,
                struct kiln_err *err)
{
    const struct kiln_client_opts opts = {
        .server = target->server,
        .ca_file = target->ca_file,
        .cert_file = target->cert_file,
        .key_file = target->key_file,
        .insecure = target->insecure,
        .checks_peer = target->checks_peer,
        .timeout_ms = ANSWER_TIMEOUT_MS,
    };
    const struct kiln_call request = {
        .method = "POST",
        .path = target->path,
        .content_type = target->protocol == KILN_OTLP_GRPC        ? "application/grpc"
                        : target->protocol == KILN_OTLP_HTTP_JSON ? "application/json"
                                                                  : "application/x-protobuf",
        .body = target->protocol == KILN_OTLP_HTTP_JSON ? KILN_STR("{}") : KILN_STR(""),
        .headers = target->headers,
        .n_headers = target->n_headers,
    };
    struct kiln_client *client = NULL;
    int r = kiln_client_new(&opts, &client, err);

    if (r == 0)
        r = target->protocol == KILN_OTLP_GRPC ? kiln_client_grpc(client, &request, answer, err)
                                               : kiln_client_call(client, &request, answer, err);
    kiln_client_free(client);
    return r;
}

static void judge(struct kiln_finding *f, const struct kiln_otlp_target *target,
                  const struct kiln_answer *answer)
{
    bool forbidden = answer->status == 401 || answer->status == 403 || answer->rpc_code == 7 ||
                     answer->rpc_code == 16;
    int code = answer->rpc_code ? answer->rpc_code : answer->status;

    if (answer->status >= 200 && answer->status < 300 && answer->rpc_code == 0) {
        kiln_finding_say(f, "%.150s takes profiles", target->server);
        return;
    }
    kiln_finding_say(f, "%.120s answers %s %d: %.80s", target->server,
                     answer->rpc_code ? "with gRPC status" : "with", code, answer->message);
    kiln_finding_lacks(f, KILN_FINDING_LESS, "what is sent there is refused",
                       forbidden ? "a token it knows: OTEL_EXPORTER_OTLP_HEADERS="
                                   "'Authorization=Bearer%20...'"
                                 : "an address that takes OTLP profiles (--endpoint); a Collector "
                                   "needs --feature-gates=service.profilesSupport");
}

static void ask_receiver(struct kiln_finding *f, const struct kiln_otlp_target *target)
{
    struct kiln_answer answer;
    struct kiln_err err = {0};
    int r;

    kiln_answer_init(&answer);
    r = call(target, &answer, &err);
    if (r < 0) {
        kiln_finding_say(f, "%.100s: %.120s", target->server,
                         err.text[0] ? err.text : kiln_err_text(r));
        kiln_finding_lacks(f, KILN_FINDING_LESS, "profiles wait in the spool until it is there",
                           "start `kiln server` there, or say another address: --endpoint, "
                           "OTEL_EXPORTER_OTLP_ENDPOINT");
    } else {
        judge(f, target, &answer);
    }
    kiln_answer_done(&answer);
}

void kiln_doctor_receiver(struct kiln_survey *survey, const struct kiln_server_config *config)
{
    struct kiln_finding *f = kiln_survey_add(survey, "sending", "receiver", KILN_FINDING_OK);
    struct kiln_otlp_export_opts opts = {0};
    struct kiln_otlp_target target = {0};
    struct kiln_err err = {0};
    struct kiln_buf headers;
    int r;

    kiln_buf_init(&headers, 1 << 16);
    r = kiln_agent_export_opts(config, &headers, &opts, &err);
    if (r == 0) {
        r = kiln_otlp_target_read(&opts, getenv, &target, &err);
        if (r == 0)
            ask_receiver(f, &target);
        kiln_otlp_target_done(&target);
    }
    if (r < 0) {
        kiln_finding_say(f, "%s", err.text);
        kiln_finding_lacks(f, KILN_FINDING_MISSING, "kiln agent does not start",
                           "see `kiln help agent`, --endpoint");
    }
    kiln_buf_done(&headers);
}
