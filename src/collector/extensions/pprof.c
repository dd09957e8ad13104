/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles of the collector itself (collector/own.h), at the address and with the paths that Go's
 * net/http/pprof has in an OpenTelemetry Collector.  Whatever is asked is asked of libkiln.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "collector/door.h"
#include "collector/graph.h"
#include "collector/own.h"
#include "collector/registry.h"
#include "net/client.h"

enum { SERVER_MAX = 256, PATH_BYTES = 4096, SECONDS_MAX = 3600, SPARE_MS = 30000 };
enum { WINDOWS = 8 }; /* at once */
#define ANSWER_MAX ((size_t)64 << 20)

struct pprof_settings {
    struct kiln_listen_settings listen;
    const struct kiln_node *unused;
};

struct pprof {
    struct kiln_component component; /* first */
    struct kiln_log *log;
    struct kiln_door door;
    char server[SERVER_MAX]; /* libkiln's; "": it is not there */
    struct kiln_err missing; /* then: why */
    _Atomic bool stopping;   /* windows end */
};

/* ---- asking ---- */

/* A window takes as long as it says, and its client may go meanwhile. */
static uint32_t timeout_of(const struct kiln_request *request)
{
    struct kiln_buf seconds;
    unsigned long n = 0;

    kiln_buf_init(&seconds, 64);
    if (kiln_request_param(request, "seconds", &seconds) > 0) {
        kiln_buf_putc(&seconds, '\0');
        n = seconds.error ? 0 : strtoul(seconds.ptr, NULL, 10);
    }
    kiln_buf_done(&seconds);
    return (uint32_t)(n < SECONDS_MAX ? n : SECONDS_MAX) * 1000 + SPARE_MS;
}

static int ask(const struct pprof *pprof, const struct kiln_request *request,
               struct kiln_answer *answer, struct kiln_err *err)
{
    const struct kiln_client_opts opts = {.server = pprof->server,
                                          .token = getenv("KILN_PPROF_TOKEN"),
                                          .timeout_ms = timeout_of(request),
                                          .answer_max = ANSWER_MAX,
                                          .cancel = kiln_request_gone(request),
                                          .stop = &pprof->stopping};
    struct kiln_client *client;
    char path[PATH_BYTES];
    int n = snprintf(path, sizeof(path), "%.*s%s%.*s", KILN_STR_ARG(request->path),
                     request->query.len ? "?" : "", KILN_STR_ARG(request->query));
    int r;

    if (!pprof->server[0]) {
        *err = pprof->missing;
        return pprof->missing.code;
    }
    if (n < 0 || (size_t)n >= sizeof(path))
        return kiln_err_set(err, -ENAMETOOLONG, NULL, "this address is too long");
    r = kiln_client_new(&opts, &client, err);
    if (r < 0)
        return r;
    r = kiln_client_call(client,
                         &(struct kiln_call){.method = request->body.len ? "POST" : "GET",
                                             .path = path,
                                             .content_type = "text/plain",
                                             .body = request->body},
                         answer, err);
    kiln_client_free(client);
    return r;
}

/* What begins as gzip does is a profile; all else is for people to read. */
static const char *type_of(struct kiln_str body)
{
    if (body.len > 2 && (uint8_t)body.ptr[0] == 0x1f && (uint8_t)body.ptr[1] == 0x8b)
        return "application/octet-stream";
    return kiln_str_starts(body, KILN_STR("<")) ? "text/html; charset=utf-8"
                                                : "text/plain; charset=utf-8";
}

static void serve(struct kiln_request *request)
{
    struct kiln_answer answer;
    struct kiln_err err = {0};
    int r;

    kiln_answer_init(&answer);
    r = ask(request->context, request, &answer, &err);
    if (r == -ECANCELED)
        kiln_request_reply_text(request, 503, "the collector is stopping\n");
    else if (r < 0)
        kiln_request_reply_text(request, 503, "there are no profiles: %s\n",
                                err.text[0] ? err.text : kiln_err_text(r));
    else
        kiln_request_reply(request,
                           &(struct kiln_reply){.status = answer.status,
                                                .content_type = type_of(kiln_buf_str(&answer.body)),
                                                .body = kiln_buf_str(&answer.body),
                                                .as_is = true});
    kiln_answer_done(&answer);
}

/* ---- the extension ---- */

/* Files that name it, as many do, run also where there are no profiles; who asks is told why. */
static int start(struct kiln_component *component, struct kiln_err *err)
{
    struct pprof *pprof = (struct pprof *)component;

    pprof->missing = (struct kiln_err){0};
    atomic_store(&pprof->stopping, false);
    if (kiln_own_server(pprof->server, sizeof(pprof->server), &pprof->missing) < 0)
        kiln_log(pprof->log, KILN_LOG_WARN, "there are no profiles of the collector", "reason",
                 "%s", pprof->missing.text, NULL);
    return kiln_door_start(&pprof->door, err);
}

static void stop(struct kiln_component *component, uint64_t deadline_ns)
{
    struct pprof *pprof = (struct pprof *)component;

    atomic_store(&pprof->stopping, true);
    kiln_door_stop(&pprof->door, deadline_ns);
}

static void destroy(struct kiln_component *component)
{
    kiln_door_done(&((struct pprof *)component)->door);
    kiln_free(component);
}

static int open_door(struct pprof *pprof, const struct kiln_component_env *env,
                     const struct pprof_settings *s, struct kiln_err *err)
{
    static const char *const paths[] = {"/debug/pprof", "/debug/pprof/*", "/debug/fgprof"};
    int r;

    pprof->door.long_workers = WINDOWS;
    r = kiln_door_make(&pprof->door, env, KILN_EXTENSION, &s->listen, err);
    for (size_t i = 0; r == 0 && i < KILN_ARRAY_LEN(paths); i++) {
        r = kiln_router_add(kiln_listen_router(pprof->door.listen),
                            &(struct kiln_route){.path = paths[i],
                                                 .access = KILN_ACCESS_READ,
                                                 .handler = serve,
                                                 .context = pprof,
                                                 .lane = KILN_LANE_LONG});
        if (r < 0)
            kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    return r;
}

static int make(const struct kiln_component_env *env, const void *settings,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {.start = start, .stop = stop, .free = destroy};
    struct pprof *pprof = kiln_calloc(1, sizeof(*pprof));
    int r;

    if (!pprof)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    pprof->component.ops = &ops;
    pprof->log = env->log;
    r = open_door(pprof, env, settings, err);
    if (r < 0) {
        destroy(&pprof->component);
        return r;
    }
    kiln_graph_want_own(env->graph);
    *ret_component = &pprof->component;
    return 0;
}

static int read(const struct kiln_node *node, void *settings, struct kiln_err *err)
{
    /* Waits are sampled in proportion to their length. */
    static const struct kiln_field own[] = {
        {"block_profile_fraction", KILN_FIELD_NODE, offsetof(struct pprof_settings, unused)},
        {"mutex_profile_fraction", KILN_FIELD_NODE, offsetof(struct pprof_settings, unused)},
    };
    static const struct kiln_refused_key refused[] = {
        {"save_to_file", "fetch it: curl -o FILE "
                         "'http://localhost:1777/debug/pprof/profile?seconds=30'"},
    };
    struct pprof_settings *s = settings;
    int r = kiln_settings_refuse(node, refused, KILN_ARRAY_LEN(refused), err);

    s->listen.endpoint = "localhost:1777";
    return r < 0 ? r : kiln_listen_read_http(node, own, KILN_ARRAY_LEN(own), s, &s->listen, err);
}

const struct kiln_component_type kiln_pprof_extension_type = {
    .name = "pprof",
    .kind = KILN_EXTENSION,
    .signals = KILN_TAKES_ALL,
    .stability = "beta",
    .settings_size = sizeof(struct pprof_settings),
    .read = read,
    .make = make,
};
