/* SPDX-License-Identifier: Apache-2.0 */
/* kiln boost, kiln pause, kiln resume: what agents sample for a while, and what they leave alone.
 */
#include "cli/commands.h"
#include "cli/orders.h"
#include "cli/remote.h"
#include "cli/report.h"

static const char *const no_words[] = {NULL}; /* names are the server's to know */

/* The server or agent that gets the order. */
#define WHERE                                                                                      \
    "Where no server was named, that of this host is told: over its Unix socket where you may "    \
    "open it (KILN_SOCKET, /run/kiln/kiln.sock), else over its port; where none listens, the "     \
    "agent of this host, over " KILN_AGENT_SOCKET ". "

#define OPT_DURATION(sentence)                                                                     \
    KILN_OPT("duration", 'd', KILN_OPT_DURATION, order.duration_ns, "TIME", sentence)

/* ---- boost ---- */

static int run_boost(struct kiln_cli *cli)
{
    if (cli->args.order.end)
        return kiln_orders_withdraw(cli, KILN_ORDER_BOOST, "no longer boosted:");
    if (!cli->args.order.hz)
        return kiln_cli_usage(cli->command, "-F 0 is no boost (`kiln pause` samples nothing)");
    return kiln_orders_give(cli, KILN_ORDER_BOOST);
}

static const struct kiln_option boost_options[] = {
    KILN_OPT("frequency", 'F', KILN_OPT_COUNT, order.hz, "HZ",
             "samples a second and processor, up to 1000 (199)"),
    OPT_DURATION("for so long, up to a day (10m)"),
    KILN_OPT("end", 0, KILN_OPT_FLAG, order.end, NULL, "end it now"),
    KILN_OPT_WHY,
    KILN_OPT_JSON,
    KILN_OPT_END,
};
static const struct kiln_option_group boost_group = {"The boost", boost_options};

const struct kiln_command kiln_cmd_boost = {
    .name = "boost",
    .summary = "sample one service more often for a while",
    .operands = "[NAME]",
    .operands_max = 1,
    .words = no_words,
    .about =
        "Tells the agents of a server to sample a service, a container, a process or a host "
        "more often: within ten seconds, and back by itself when the time is over. Values stay "
        "right, since each sample counts for the time between two. Everything else is sampled "
        "as before.\n\n"
        "NAME is a service or a host that the server knows. A later boost of the same takes "
        "the place of the earlier. Orders outlive restarts of the server and of agents. " WHERE
        "Over a port, a server without tokens takes only boosts of up to 199 Hz and 10 "
        "minutes (its setting `server.anonymous_orders`).\n\n"
        "An Alertmanager can do the same: a webhook to /api/v1/orders boosts the service of "
        "each alert that fires. Where the server has tokens, it takes one with `control` "
        "access.",
    .groups = {&boost_group, &kiln_group_target, &kiln_group_remote},
    .examples = {{"kiln boost shop -F 199 -d 10m", "look closer at a service"},
                 {"kiln boost --pid 4711 -d 1m", "at one process of this host"},
                 {"kiln boost shop --host web-1 --why \"slow there\"", "on one host alone"},
                 {"kiln boost shop --end", "that was enough"}},
    .defaults = {.order = {.hz = KILN_BOOST_HZ, .duration_ns = KILN_BOOST_NS}},
    .run = run_boost,
};

/* ---- pause ---- */

static int run_pause(struct kiln_cli *cli)
{
    return kiln_orders_give(cli, KILN_ORDER_PAUSE);
}

static const struct kiln_option pause_options[] = {
    OPT_DURATION("for so long, up to 30 days (1h)"),
    KILN_OPT_WHY,
    KILN_OPT_JSON,
    KILN_OPT_END,
};
static const struct kiln_option_group pause_group = {"The pause", pause_options};

const struct kiln_command kiln_cmd_pause = {
    .name = "pause",
    .summary = "leave a service, a host or everything unsampled for a while",
    .operands = "[NAME]",
    .operands_max = 1,
    .words = no_words,
    .about =
        "Tells the agents of a server to take no samples of a service, a container, a process, a "
        "host, or of anything: within ten seconds, and on again by itself when the time is over, "
        "or "
        "with `kiln resume`. A pause counts more than a boost.\n\n"
        "NAME is a service or a host that the server knows; a word that is both has to be told "
        "apart with --service or --host. Orders outlive restarts of the server and of "
        "agents. " WHERE "Over a port, a server without tokens takes no pauses (its setting "
        "`server.anonymous_orders`): run this as root, or as the user who started the server.",
    .groups = {&pause_group, &kiln_group_target, &kiln_group_remote},
    .examples = {{"kiln pause shop -d 30m", "a service"},
                 {"kiln pause web-1", "a host"},
                 {"kiln pause --all -d 2h --why \"load test\"", "everything"}},
    .defaults = {.order = {.duration_ns = KILN_PAUSE_NS}},
    .run = run_pause,
};

/* ---- resume ---- */

static int run_resume(struct kiln_cli *cli)
{
    return kiln_orders_withdraw(cli, KILN_ORDER_PAUSE, "resumed");
}

static const struct kiln_option resume_options[] = {KILN_OPT_JSON, KILN_OPT_END};
static const struct kiln_option_group resume_group = {"Output", resume_options};

const struct kiln_command kiln_cmd_resume = {
    .name = "resume",
    .summary = "end a pause",
    .operands = "[NAME]",
    .operands_max = 1,
    .words = no_words,
    .about =
        "Withdraws the pauses of a service, a container, a process or a host; with --all every "
        "pause there is. Leaves with 1 where nothing is paused by this name.",
    .groups = {&kiln_group_target, &resume_group, &kiln_group_remote},
    .examples = {{"kiln resume shop", "a service"}, {"kiln resume --all", "everything"}},
    .run = run_resume,
};
