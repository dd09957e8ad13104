/* SPDX-License-Identifier: Apache-2.0 */
/* Asking a server, or the agent of this host, and reading what they say. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/orders.h"
#include "cli/remote.h"
#include "fleet/roster.h"

#define ANSWER_MAX ((size_t)64 << 20)
#define SILENT_NS  (60 * KILN_NS_PER_S)

/* ---- where ---- */

static bool is_said(const struct kiln_cli *cli)
{
    const char *variable = getenv("KILN_SERVER");

    return cli->args.remote.server || (variable && *variable);
}

/* How a server that is there says that it is. */
static int greet(struct kiln_client *client)
{
    struct kiln_answer answer;
    int r;

    kiln_answer_init(&answer);
    r = kiln_client_call(client, &(struct kiln_call){.path = "/healthz"}, &answer, NULL);
    kiln_answer_done(&answer);
    return r;
}

/* No server listens, and an agent does. */
static bool is_alone(struct kiln_client *client)
{
    return access(KILN_AGENT_SOCKET, F_OK) == 0 && greet(client) == -ECONNREFUSED;
}

static int open_at(const struct kiln_cli *cli, const char *address, struct kiln_orders_place *place,
                   struct kiln_err *err)
{
    struct kiln_cli local = *cli;

    kiln_client_free(place->client);
    place->client = NULL;
    local.args.remote.server = place->address = address;
    return kiln_remote_open(&local, ANSWER_MAX, &place->client, err);
}

/* The server's socket, if a server answers there. */
static bool open_socket(const struct kiln_cli *cli, struct kiln_orders_place *place)
{
    return kiln_remote_socket(place->socket) && open_at(cli, place->socket, place, NULL) == 0 &&
           greet(place->client) == 0;
}

static bool has_agent(struct kiln_str answer)
{
    static const char member[] = "\"agent\":";

    return memmem(answer.ptr, answer.len, member, sizeof(member) - 1) != NULL;
}

/* A socket may be either's: a server tells there only what it samples of who asks. */
static bool is_agent(const struct kiln_orders_place *place)
{
    struct kiln_answer answer;
    bool agent;

    if (strncmp(place->address, "unix:", 5) != 0)
        return false;
    kiln_answer_init(&answer);
    agent = kiln_client_call(place->client, &(struct kiln_call){.path = "/v1/self"}, &answer,
                             NULL) == 0 &&
            answer.status == 200 && has_agent(kiln_buf_str(&answer.body));
    kiln_answer_done(&answer);
    return agent;
}

int kiln_orders_open(const struct kiln_cli *cli, struct kiln_orders_place *place)
{
    struct kiln_err err = {0};
    int r = 0;

    *place = (struct kiln_orders_place){.cli = cli};
    if (is_said(cli) || !open_socket(cli, place))
        r = open_at(cli, kiln_remote_address(cli), place, &err);
    if (r == 0 && !is_said(cli) && place->address != place->socket && is_alone(place->client))
        r = open_at(cli, "unix:" KILN_AGENT_SOCKET, place, &err);
    if (r < 0)
        return kiln_cli_fail(place->address, &err);
    place->agent = is_agent(place);
    return KILN_EXIT_WELL;
}

void kiln_orders_close(struct kiln_orders_place *place)
{
    kiln_client_free(place->client);
}

/* ---- asking ---- */

static int refused(const struct kiln_orders_place *place, const struct kiln_answer *answer)
{
    bool ours = answer->word[0] && answer->status < 500;
    struct kiln_err err = {0};

    kiln_err_set(&err, ours ? -EINVAL : -EIO, NULL, "%s%s", answer->message,
                 answer->status == 404 && !ours ? " (is this the address of a Kiln server?)" : "");
    return kiln_cli_fail(ours ? NULL : place->address, &err);
}

int kiln_orders_ask(struct kiln_orders_place *place, const char *method, const char *path,
                    struct kiln_str body, struct kiln_buf *out)
{
    struct kiln_call call = {.method = method,
                             .path = path,
                             .body = body,
                             .content_type = body.ptr ? "application/json" : NULL};
    struct kiln_answer answer;
    struct kiln_err err = {0};
    int code = KILN_EXIT_WELL;
    int r;

    kiln_answer_init(&answer);
    r = kiln_client_call(place->client, &call, &answer, &err);
    if (r < 0) {
        kiln_err_set(&err, r, NULL, "%s", kiln_err_text(r));
        code = kiln_cli_fail(place->address, &err);
    } else if (!kiln_remote_accepted(&answer)) {
        code = refused(place, &answer);
    } else {
        kiln_buf_add_str(out, kiln_buf_str(&answer.body));
    }
    kiln_answer_done(&answer);
    return code;
}

/* ---- reading ---- */

/* {"NAME":[...]}: `element` reads each. */
static int read_list(struct kiln_str text, const char *list,
                     int (*element)(struct kiln_json *r, void *context), void *context)
{
    struct kiln_err err = {0};
    struct kiln_str name;
    struct kiln_json r;
    int code;

    kiln_json_init(&r, text, &err);
    code = kiln_json_object(&r);
    while (code == 0 && (code = kiln_json_member(&r, &name)) > 0) {
        if (!kiln_str_eq(name, kiln_str_of(list))) {
            code = kiln_json_skip(&r);
            continue;
        }
        code = kiln_json_array(&r);
        while (code == 0 && (code = kiln_json_element(&r)) > 0)
            code = element(&r, context);
    }
    kiln_json_done(&r);
    if (code == 0)
        return KILN_EXIT_WELL;
    kiln_err_set(&err, code, NULL, "%s", kiln_err_text(code));
    return kiln_cli_fail("the answer", &err);
}

int kiln_orders_list(struct kiln_orders_place *place, const char *path, const char *list,
                     int (*element)(struct kiln_json *r, void *context), void *context)
{
    struct kiln_buf text;
    int code;

    kiln_buf_init(&text, ANSWER_MAX);
    code = kiln_orders_ask(place, "GET", path, KILN_STR_NONE, &text);
    if (code == 0)
        code = read_list(kiln_buf_str(&text), list, element, context);
    kiln_buf_done(&text);
    return code;
}

static int read_agent(struct kiln_json *r, void *context)
{
    struct kiln_agents *agents = context;
    int code = kiln_grow(&agents->budget, (void **)&agents->items, &agents->cap,
                         agents->n + UINT64_C(1), sizeof(*agents->items), KILN_ROSTER_MAX + 1);

    if (code == 0)
        code = kiln_agent_status_read(r, &agents->items[agents->n]);
    agents->n += code == 0;
    return code;
}

int kiln_agents_get(struct kiln_orders_place *place, struct kiln_agents *agents)
{
    *agents = (struct kiln_agents){.budget = {.limit = SIZE_MAX}};
    return kiln_orders_list(place, "/api/v1/agents", "agents", read_agent, agents);
}

void kiln_agents_done(struct kiln_agents *agents)
{
    kiln_array_free(&agents->budget, (void **)&agents->items, &agents->cap, sizeof(*agents->items));
}

bool kiln_agent_is_there(const struct kiln_agent_status *agent)
{
    return agent->last_seen_ns + SILENT_NS > kiln_clock_unix_ns();
}

static int read_order(struct kiln_json *r, void *context)
{
    return kiln_order_read(r, context);
}

int kiln_orders_parse(struct kiln_str text, struct kiln_orders *orders)
{
    return read_list(text, "orders", read_order, orders);
}

int kiln_orders_get(struct kiln_orders_place *place, struct kiln_orders *orders)
{
    return kiln_orders_list(place, "/api/v1/orders", "orders", read_order, orders);
}
