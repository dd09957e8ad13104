/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commands - the rows of the table of commands, one cmd_<name>.c each.
 *
 * Threads: constant data.
 */
#ifndef KILN_CLI_COMMANDS_H
#define KILN_CLI_COMMANDS_H

#include "cli/options.h"

extern const struct kiln_command kiln_cmd_agent, kiln_cmd_agents, kiln_cmd_annotate, kiln_cmd_boost,
    kiln_cmd_check, kiln_cmd_collector, kiln_cmd_completion, kiln_cmd_config, kiln_cmd_convert,
    kiln_cmd_diff, kiln_cmd_doctor, kiln_cmd_flamegraph, kiln_cmd_graph, kiln_cmd_help,
    kiln_cmd_info, kiln_cmd_list, kiln_cmd_live, kiln_cmd_loadgen, kiln_cmd_merge, kiln_cmd_pause,
    kiln_cmd_push, kiln_cmd_query, kiln_cmd_ready, kiln_cmd_record, kiln_cmd_resume, kiln_cmd_run,
    kiln_cmd_server, kiln_cmd_store, kiln_cmd_symbols, kiln_cmd_top, kiln_cmd_tree,
    kiln_cmd_version;

/* Groups of options of `kiln server`: server_options.c. */
extern const struct kiln_option_group kiln_group_coming_in, kiln_group_keeping, kiln_group_asking,
    kiln_group_naming, kiln_group_running, kiln_group_this_host;

#endif /* KILN_CLI_COMMANDS_H */
