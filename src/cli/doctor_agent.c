/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent is asked on its socket, where it tells all of itself; else its listener is, whose
 * /metrics are read twice, so that what it costs now can be told from what its start did cost.
 *
 *   # TYPE kiln_host_cpu_seconds_total counter
 *   kiln_host_cpu_seconds_total 1.25
 *   kiln_host_stacks_total{end="complete"} 1893
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/doctor.h"
#include "fleet/status.h"
#include "net/client.h"

#define BETWEEN_NS (2 * KILN_NS_PER_S)

enum { TIMEOUT_MS = 3000, ANSWER_MAX = 8 << 20 };

static int get(const char *server, const char *path, struct kiln_buf *body)
{
    const struct kiln_client_opts opts = {
        .server = server, .timeout_ms = TIMEOUT_MS, .answer_max = ANSWER_MAX};
    const struct kiln_call request = {.method = "GET", .path = path};
    struct kiln_client *client = NULL;
    struct kiln_answer answer;
    struct kiln_err err = {0};
    int r = kiln_client_new(&opts, &client, &err);

    kiln_answer_init(&answer);
    if (r == 0)
        r = kiln_client_call(client, &request, &answer, &err);
    if (r == 0 && answer.status != 200)
        r = -ENOENT;
    if (r == 0)
        kiln_buf_add_str(body, kiln_buf_str(&answer.body));
    kiln_answer_done(&answer);
    kiln_client_free(client);
    return r < 0 ? r : body->error;
}

/* ---- metrics ---- */

static double number_of(struct kiln_str text)
{
    char copy[64];

    snprintf(copy, sizeof(copy), "%.*s", text.len < 60 ? (int)text.len : 60, text.ptr);
    return strtod(copy, NULL);
}

static uint64_t whole(double value)
{
    return value > 0 && value < 1e18 ? (uint64_t)value : 0;
}

static void read_metric(struct kiln_str name, struct kiln_str labels, double value,
                        struct kiln_doctor_agent *agent)
{
    if (kiln_str_eq(name, KILN_STR("kiln_host_cpu_seconds_total")))
        agent->cpu_s = value;
    else if (kiln_str_eq(name, KILN_STR("kiln_host_memory_bytes")))
        agent->memory_bytes = whole(value);
    else if (kiln_str_eq(name, KILN_STR("kiln_host_rate_hertz")))
        agent->hz = (uint32_t)whole(value);
    else if (kiln_str_eq(name, KILN_STR("kiln_host_samples_total")))
        agent->samples = whole(value);
    else if (kiln_str_eq(name, KILN_STR("kiln_export_dropped_samples_total")))
        agent->lost += whole(value);
    else if (kiln_str_eq(name, KILN_STR("kiln_host_lost_samples_total")) ||
             kiln_str_eq(name, KILN_STR("kiln_host_dropped_samples_total"))) {
        agent->lost += whole(value);
        agent->stacks += whole(value); /* as its status counts: they had one */
    } else if (kiln_str_eq(name, KILN_STR("kiln_host_stacks_total")) &&
               !kiln_str_contains(labels, KILN_STR("\"no_user\"")) &&
               !kiln_str_contains(labels, KILN_STR("\"compat\""))) {
        agent->stacks += whole(value);
        if (kiln_str_contains(labels, KILN_STR("\"complete\"")))
            agent->complete += whole(value);
    }
}

void kiln_doctor_read_metrics(struct kiln_str text, struct kiln_doctor_agent *agent)
{
    while (text.ptr) {
        struct kiln_str line = kiln_str_cut(&text, '\n'), name = line, labels = KILN_STR(""), rest;
        size_t n = 0;

        if (!line.len || line.ptr[0] == '#')
            continue;
        while (n < line.len && line.ptr[n] != '{' && line.ptr[n] != ' ')
            n++;
        name.len = n;
        rest = (struct kiln_str){line.ptr + n, line.len - n};
        if (rest.len && rest.ptr[0] == '{') {
            labels = kiln_str_cut(&rest, '}');
            if (!rest.ptr)
                continue;
        }
        read_metric(name, labels, number_of(kiln_str_trim(rest)), agent);
    }
}

static bool read_once(const char *server, struct kiln_doctor_agent *agent)
{
    struct kiln_buf body;
    bool good;

    *agent = (struct kiln_doctor_agent){.cpu_s = -1};
    kiln_buf_init(&body, ANSWER_MAX);
    good = get(server, "/metrics", &body) == 0;
    if (good)
        kiln_doctor_read_metrics(kiln_buf_str(&body), agent);
    kiln_buf_done(&body);
    return good && agent->cpu_s >= 0;
}

static bool ask_metrics(const char *server, struct kiln_doctor_agent *agent)
{
    struct timespec pause = kiln_timespec_of(BETWEEN_NS);
    uint64_t began;
    double before;

    if (!read_once(server, agent))
        return false;
    before = agent->cpu_s;
    began = kiln_clock_mono_ns();
    nanosleep(&pause, NULL);
    if (!read_once(server, agent))
        return false;
    agent->cpu_cores =
        (agent->cpu_s - before) * (double)KILN_NS_PER_S / (double)(kiln_clock_mono_ns() - began);
    snprintf(agent->where, sizeof(agent->where), "%s", server);
    return true;
}

/* ---- its socket ---- */

static void copy(const struct kiln_agent_status *status, struct kiln_doctor_agent *agent)
{
    uint64_t all;

    *agent = (struct kiln_doctor_agent){
        .hz = status->hz,
        .cpu_cores = status->cpu_cores,
        .memory_bytes = status->memory_bytes,
        .samples = status->samples,
        .complete = status->complete,
        .stacks = status->all,
    };
    kiln_agent_loss(status, &agent->lost, &all);
}

/* {"agent":{...},"orders":[...]} */
static int read_self(struct kiln_str text, struct kiln_agent_status *status)
{
    struct kiln_str name;
    struct kiln_json r;
    int n, found = -ENOENT;

    kiln_json_init(&r, text, NULL);
    n = kiln_json_object(&r);
    while (n == 0 && (n = kiln_json_member(&r, &name)) > 0) {
        bool self = kiln_str_eq(name, KILN_STR("agent"));

        n = self ? kiln_agent_status_read(&r, status) : kiln_json_skip(&r);
        found = self && n == 0 ? 0 : found;
    }
    kiln_json_done(&r);
    return n < 0 ? n : found;
}

static bool ask_socket(const char *server, struct kiln_doctor_agent *agent)
{
    struct kiln_agent_status *status = kiln_calloc(1, sizeof(*status));
    struct kiln_buf body;
    bool good;

    kiln_buf_init(&body, ANSWER_MAX);
    good = status && get(server, "/v1/self", &body) == 0 &&
           read_self(kiln_buf_str(&body), status) == 0;
    if (good)
        copy(status, agent);
    snprintf(agent->where, sizeof(agent->where), "%s", server);
    kiln_buf_done(&body);
    kiln_free(status);
    return good;
}

void kiln_doctor_agent(const struct kiln_server_config *config, struct kiln_doctor_agent *agent)
{
    const char *listen = config->set.agent.listen, *socket = config->set.agent.socket;
    char address[128];
    bool found = false;

    if (socket && kiln_settings_on(socket)) {
        snprintf(address, sizeof(address), "unix:%.120s", socket);
        found = ask_socket(address, agent);
    }
    if (!found && listen && kiln_settings_on(listen)) {
        snprintf(address, sizeof(address), "http://%.100s", listen);
        found = ask_metrics(address, agent);
    }
    if (!found) /* the all-in-one */
        found = ask_metrics("http://127.0.0.1:4040", agent);
    agent->found = found;
}
