/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom a command line means.  A bare word is a service or a host, whichever the server knows by it;
 * a word that is both has to be told apart, and one that is neither is more likely mistyped than
 * ahead of its time.
 */
#include <errno.h>
#include <stdio.h>

#include "cli/orders.h"
#include "cli/remote.h"
#include "host/host.h"

static const struct kiln_option options[] = {
    KILN_OPT("service", 0, KILN_OPT_TEXT, order.service, "NAME",
             "a service, also one that is not known yet"),
    KILN_OPT("container", 0, KILN_OPT_TEXT, order.container, "NAME", "a container, by id or name"),
    KILN_OPT("pid", 'p', KILN_OPT_COUNT, order.pid, "PID",
             "a process of --host (without it: of this host)"),
    KILN_OPT("host", 0, KILN_OPT_TEXT, order.host, "NAME",
             "all of a host, by name or id; with one of the others: only there"),
    KILN_OPT("all", 'a', KILN_OPT_FLAG, order.all, NULL, "everything, on every host"),
    KILN_OPT_END,
};
const struct kiln_option_group kiln_group_target = {"Whom", options};

/* ---- words ---- */

struct search {
    const char *word;
    bool found;
};

static int look(struct kiln_json *r, void *context)
{
    struct search *search = context;
    struct kiln_str name, text;
    int code = kiln_json_object(r);

    while (code == 0 && (code = kiln_json_member(r, &name)) > 0) {
        if (!kiln_str_eq(name, KILN_STR("name"))) {
            code = kiln_json_skip(r);
            continue;
        }
        code = kiln_json_string(r, &text);
        search->found |= code == 0 && kiln_str_eq(text, kiln_str_of(search->word));
    }
    return code;
}

/* An agent does not keep a list of services. */
static int find_service(struct kiln_orders_place *place, const char *word, bool *ret_found)
{
    struct search search = {.word = word, .found = place->agent};
    int code = place->agent
                   ? KILN_EXIT_WELL
                   : kiln_orders_list(place, "/api/v1/services", "services", look, &search);

    *ret_found = search.found;
    return code;
}

static int find_host(struct kiln_orders_place *place, const char *word, bool *ret_found)
{
    struct kiln_agents agents;
    int code = kiln_agents_get(place, &agents);

    *ret_found = false;
    for (uint32_t i = 0; i < agents.n; i++)
        *ret_found |=
            strcmp(agents.items[i].host, word) == 0 || strcmp(agents.items[i].id, word) == 0;
    kiln_agents_done(&agents);
    return code;
}

static int resolve(struct kiln_orders_place *place, const char *word, struct kiln_order *order)
{
    bool service, host;
    int code = find_host(place, word, &host);

    if (code == 0)
        code = find_service(place, word, &service);
    if (code)
        return code;
    if (place->agent && host)
        service = false;
    if (service && host)
        return kiln_cli_usage(place->cli->command,
                              "%.80s is both a service and a host: say --service %.80s, or --host "
                              "%.80s",
                              word, word, word);
    if (!service && !host)
        return kiln_cli_usage(place->cli->command,
                              "%.80s: no service or host of this name is known (say --service "
                              "%.80s if it is still to come)",
                              word, word);
    order->target = host ? KILN_TARGET_HOST : KILN_TARGET_SERVICE;
    return KILN_EXIT_WELL;
}

/* ---- options ---- */

static int put_name(const struct kiln_orders_place *place, const char *name, char *out, size_t size)
{
    if (snprintf(out, size, "%s", name) >= (int)size)
        return kiln_cli_usage(place->cli->command, "%.40s...: too long a name", name);
    return KILN_EXIT_WELL;
}

static int count_said(const struct kiln_args *args)
{
    return !!args->order.service + !!args->order.container + !!args->order.pid + args->order.all +
           (args->operands.n > 0);
}

static enum kiln_order_target target_of(const struct kiln_args *args)
{
    if (args->order.container)
        return KILN_TARGET_CONTAINER;
    if (args->order.pid)
        return KILN_TARGET_PROCESS;
    if (args->order.all)
        return KILN_TARGET_ALL;
    return count_said(args) ? KILN_TARGET_SERVICE : KILN_TARGET_HOST;
}

int kiln_orders_whom(struct kiln_orders_place *place, bool known, struct kiln_order *order)
{
    const struct kiln_args *args = &place->cli->args;
    const char *word = args->operands.n ? args->operands.items[0] : NULL;
    const char *name = word                    ? word
                       : args->order.service   ? args->order.service
                       : args->order.container ? args->order.container
                                               : "";
    const char *host = args->order.host ? args->order.host : "";
    struct kiln_host_facts facts;
    int code = KILN_EXIT_WELL;

    if (count_said(args) + (count_said(args) == 0 && args->order.host) != 1)
        return kiln_cli_usage(
            place->cli->command,
            "whom? Say one of NAME, --service, --container, --pid, --host, --all");
    order->target = target_of(args);
    order->pid = args->order.pid;
    if (order->target == KILN_TARGET_PROCESS && !host[0]) {
        kiln_host_find_facts(&facts);
        host = facts.id;
    }
    if (order->target == KILN_TARGET_HOST) {
        name = host;
        host = "";
    }
    if (word && known && !host[0])
        code = resolve(place, word, order);
    if (code == 0)
        code = put_name(place, name, order->name, sizeof(order->name));
    return code ? code : put_name(place, host, order->host, sizeof(order->host));
}
