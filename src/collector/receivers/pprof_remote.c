/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One profile of another program, from the address that is the endpoint, as it is: say
 * http://host:6060/debug/pprof/profile?seconds=10.  scrape_configs fetch all that a program has,
 * and differences of what counts since its start.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "codec/codec.h"
#include "collector/auth.h"
#include "collector/exporters/address.h"
#include "collector/receivers/pprof_int.h"
#include "net/client.h"

#define ANSWER_MAX ((size_t)64 << 20)

struct remote {
    struct kiln_component component; /* first */
    struct kiln_poller poller;
    const struct kiln_pprof_remote_settings *settings;
    struct kiln_address address;
    struct kiln_credential credential;
    struct kiln_client *client; /* the thread's; NULL: not yet */
};

static int decode(void *context, struct kiln_str content, struct kiln_builder *b,
                  struct kiln_err *err)
{
    struct kiln_decode_info info;

    (void)context;
    return kiln_decode_into(content, &(struct kiln_decode_opts){0}, b, &info, err);
}

/* ---- over the network ---- */

static int open_client(struct remote *remote, struct kiln_err *err)
{
    const struct kiln_pprof_remote_settings *s = remote->settings;
    uint64_t timeout_ms = s->poll.timeout_ns / KILN_NS_PER_MS;
    const struct kiln_client_opts opts = {
        .server = remote->address.server.ptr,
        .ca_file = s->client.tls.ca_file,
        .cert_file = s->client.tls.cert_file,
        .key_file = s->client.tls.key_file,
        .server_name = s->client.tls.server_name_override,
        .min_version = s->client.tls.min_version,
        .max_version = s->client.tls.max_version,
        .system_ca = s->client.tls.include_system_ca_certs_pool,
        .insecure = s->client.tls.insecure_skip_verify,
        .timeout_ms = timeout_ms < UINT32_MAX ? (uint32_t)timeout_ms : UINT32_MAX,
        .answer_max = ANSWER_MAX,
        .cancel = &remote->poller.stopping,
    };

    return remote->client ? 0 : kiln_client_new(&opts, &remote->client, err);
}

static int fetch(struct remote *remote, struct kiln_answer *answer, struct kiln_err *err)
{
    struct kiln_header headers[KILN_SIGNED_MAX];
    const struct kiln_node *node = remote->settings->client.headers, *at = node;
    struct kiln_call call = {.method = "GET", .path = remote->address.path.ptr};
    struct kiln_header_setting header;
    struct kiln_signed with;
    uint32_t n = 0;
    int r = open_client(remote, err);

    while (n < KILN_SIGNED_MAX && kiln_settings_header(node, &at, &header))
        headers[n++] = (struct kiln_header){kiln_str_of(header.name), kiln_str_of(header.value)};
    if (r == 0)
        r = kiln_sign(&remote->credential, headers, n, &with, err);
    if (r < 0)
        return r;
    call.headers = with.headers;
    call.n_headers = with.n;
    r = kiln_client_call(remote->client, &call, answer, err);
    kiln_signed_done(&with);
    if (r == 0 && answer->status != 200)
        r = kiln_err_set(err, -EPROTO, NULL, "HTTP status %d: %s", answer->status, answer->message);
    return r;
}

static void look(void *context)
{
    struct remote *remote = context;
    struct kiln_source source = {.keeps = true, .decode = decode};
    struct kiln_answer answer;
    struct kiln_err err = {0};
    int r;

    kiln_answer_init(&answer);
    r = fetch(remote, &answer, &err);
    source.data = kiln_buf_str(&answer.body);
    source.compression = kiln_compression_of(source.data);
    if (r == 0 && source.data.len)
        (void)!kiln_poller_deliver(&remote->poller, &source, remote->settings->endpoint);
    else if (r < 0 && r != -ECANCELED)
        kiln_log(remote->poller.log, KILN_LOG_WARN, "error requesting profile", "endpoint", "%s",
                 remote->settings->endpoint, "error", "%s", err.text, NULL);
    kiln_answer_done(&answer);
}

/* ---- the component ---- */

static int start(struct kiln_component *component, struct kiln_err *err)
{
    return kiln_poller_start(&((struct remote *)component)->poller, err);
}

static void stop(struct kiln_component *component, uint64_t deadline_ns)
{
    (void)deadline_ns; /* exporters let go of what it waits for */
    kiln_poller_stop(&((struct remote *)component)->poller);
}

static void destroy(struct kiln_component *component)
{
    struct remote *remote = (struct remote *)component;

    kiln_client_free(remote->client);
    kiln_address_done(&remote->address);
    kiln_poller_done(&remote->poller);
    kiln_free(remote);
}

static int set_up(struct remote *remote, const struct kiln_component_env *env, struct kiln_err *err)
{
    const struct kiln_pprof_remote_settings *s = remote->settings;
    struct kiln_auth *auth = NULL;
    int r = kiln_address_split(s->endpoint, false, NULL, &remote->address);

    if (r == 0)
        r = kiln_auth_find(env->graph, s->client.authenticator, KILN_AUTH_CLIENT, &auth, err);
    if (r == 0 && auth)
        remote->credential = kiln_auth_credential(auth);
    if (r == 0)
        r = kiln_poller_init(&remote->poller, env, KILN_RECEIVER_SCRAPE, err);
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

int kiln_pprof_remote_make(const struct kiln_component_env *env,
                           const struct kiln_pprof_remote_settings *settings,
                           struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {.start = start, .stop = stop, .free = destroy};
    struct remote *remote = kiln_calloc(1, sizeof(*remote));
    int r;

    if (!remote)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    remote->component.ops = &ops;
    remote->settings = settings;
    remote->poller = (struct kiln_poller){.delay_ns = settings->poll.delay_ns,
                                          .interval_ns = settings->poll.interval_ns,
                                          .look = look,
                                          .context = remote};
    kiln_address_init(&remote->address);
    r = set_up(remote, env, err);
    if (r < 0) {
        destroy(&remote->component);
        return r;
    }
    *ret_component = &remote->component;
    return 0;
}

/* ---- settings ---- */

static int check(const struct kiln_node *node, struct kiln_pprof_remote_settings *s,
                 struct kiln_err *err)
{
    int r = kiln_poll_check(node, &s->poll, err);

    if (r == 0)
        r = kiln_settings_client(&s->client, err);
    if (r == 0 && (!s->endpoint || !strstr(s->endpoint, "://")))
        r = kiln_node_fail(node, KILN_E_MALFORMED, err,
                           "\"endpoint\" must be the whole address of a profile (say "
                           "http://host:6060/debug/pprof/profile?seconds=10)");
    return r;
}

int kiln_pprof_remote_read(const struct kiln_node *node, struct kiln_pprof_remote_settings *ret,
                           struct kiln_err *err)
{
#define FIELD(key, kind, member)                                                                   \
    {                                                                                              \
        key, KILN_FIELD_##kind, offsetof(struct kiln_pprof_remote_settings, member)                \
    }
    static const struct kiln_field fields[] = {
        KILN_POLL_FIELDS(struct kiln_pprof_remote_settings, poll),
        FIELD("endpoint", TEXT, endpoint),
        KILN_CLIENT_FIELDS(struct kiln_pprof_remote_settings, client),
        FIELD("compression", NODE, unused), /* there is no body */
        FIELD("read_buffer_size", NODE, unused),
        FIELD("write_buffer_size", NODE, unused),
        FIELD("max_idle_conns", NODE, unused),
        FIELD("max_idle_conns_per_host", NODE, unused),
        FIELD("max_conns_per_host", NODE, unused),
        FIELD("idle_conn_timeout", NODE, unused),
        FIELD("disable_keep_alives", NODE, unused),
        FIELD("force_attempt_http2", NODE, unused),
    };
#undef FIELD
    int r;

    ret->poll = kiln_poll_default;
    ret->poll.timeout_ns = 60 * KILN_NS_PER_S; /* a profile takes its time */
    r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), ret, err);
    return r < 0 ? r : check(node, ret, err);
}
