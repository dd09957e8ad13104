/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /api/v1/agents: host profilers, and how they are.  The first is the one in this very process,
 * where it has one.  POST /api/v1/agents/{host.id}: one of them reports, and is told its orders
 * (fleet/link.h).
 */
#include <errno.h>

#include "api/native_body.h"
#include "fleet/fleet.h"
#include "fleet/link.h"
#include "pipeline/gate.h"

/* ---- listing ---- */

struct listing {
    struct kiln_native_call *call;
    struct kiln_caller caller;
};

/* Whose token is for one tenant sees what is that tenant's. */
static void put_agent(void *context, const struct kiln_agent_status *agent)
{
    struct listing *listing = context;
    const char *tenant = listing->caller.tenant;

    if (kiln_caller_is_global(&listing->caller) || strcmp(tenant, agent->tenant) == 0)
        kiln_agent_status_put(&listing->call->w, agent);
}

int kiln_native_run_agents(struct kiln_native_call *call)
{
    const struct kiln_about *about = call->api->about;
    struct listing listing = {.call = call};
    struct kiln_agent_status agent;

    kiln_native_caller(call, &listing.caller);
    kiln_json_put_object(&call->w);
    kiln_json_put_name(&call->w, "agents");
    kiln_json_put_array(&call->w);
    if (about && about->host(about->context, &agent))
        put_agent(&listing, &agent);
    if (call->api->fleet)
        kiln_roster_each(call->api->fleet->roster, put_agent, &listing);
    kiln_json_end_array(&call->w);
    kiln_json_end_object(&call->w);
    kiln_buf_putc(&call->body, '\n');
    return 0;
}

/* ---- reporting ---- */

/* What it is called by in addresses and logs: no more than letters, digits and a few signs. */
static int read_id(struct kiln_native_call *call, char ret_id[64])
{
    struct kiln_str id = call->request->rest;
    bool plain = id.len > 0 && id.len < 64;

    for (size_t i = 0; plain && i < id.len; i++)
        plain = id.ptr[i] > ' ' && id.ptr[i] < 0x7f && id.ptr[i] != '/';
    if (!plain)
        return kiln_err_set(&call->err, -EINVAL, "id", "an agent has an id of 1 to 63 characters");
    memcpy(ret_id, id.ptr, id.len);
    ret_id[id.len] = '\0';
    return 0;
}

static int read_status(struct kiln_native_call *call, struct kiln_agent_status *status)
{
    struct kiln_str text;
    struct kiln_buf plain;
    struct kiln_json json;
    int r;

    kiln_buf_init(&plain, KILN_LINK_BYTES_MAX);
    r = kiln_native_body_plain(call, &plain, &text);
    if (r == 0) {
        kiln_json_init(&json, text, &call->err);
        r = kiln_agent_status_read(&json, status);
        kiln_json_done(&json);
    }
    kiln_buf_done(&plain);
    return r < 0 && r != -ENOMEM ? -EBADMSG : r;
}

/* Notes that it is there.  1: there is something of it to show; 0: it has to say more. */
static int note(struct kiln_native_call *call, const char *id, struct kiln_agent_status *status)
{
    struct kiln_roster *roster = call->api->fleet->roster;
    const char *tenant = call->request->tenant;
    int r;

    if (!status->id[0])
        return kiln_roster_touch(roster, tenant, id, call->now_ns, status->host) == 0;
    if (strcmp(status->id, id) != 0)
        return kiln_err_set(&call->err, -EBADMSG, "id", "this is the status of another agent");
    r = kiln_roster_report(roster, tenant, status, call->now_ns);
    if (r == KILN_E_LIMIT)
        return kiln_err_set(&call->err, -EDQUOT, NULL, "there are %d agents already",
                            KILN_ROSTER_MAX);
    return r < 0 ? kiln_err_set(&call->err, r, NULL, "%s", kiln_err_text(r)) : 1;
}

static bool is_watched(const struct kiln_native_call *call)
{
    uint64_t asked_ns = kiln_querier_asked_ns(call->api->querier);

    return asked_ns && kiln_clock_mono_ns() - asked_ns < KILN_LINK_WATCHED_S * KILN_NS_PER_S;
}

int kiln_native_run_report(struct kiln_native_call *call)
{
    struct kiln_agent_status status;
    struct kiln_link_answer answer = {.now_ns = call->now_ns, .watched = is_watched(call)};
    char id[64];
    int r = kiln_native_need_fleet(call);

    if (r == 0)
        r = read_id(call, id);
    if (r == 0)
        r = read_status(call, &status);
    if (r == 0)
        r = note(call, id, &status);
    if (r < 0)
        return r;
    answer.known = r;
    kiln_orders_init(&answer.orders, KILN_LINK_ORDERS_MAX);
    r = kiln_fleet_orders_for(call->api->fleet, call->request->tenant, id, status.host,
                              &answer.orders);
    kiln_link_answer_put(&call->w, &answer);
    kiln_buf_putc(&call->body, '\n');
    kiln_link_answer_done(&answer);
    return r;
}
