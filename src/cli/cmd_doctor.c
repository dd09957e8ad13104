/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/doctor.h"
#include "cli/report.h"
#include "cli/serve.h"

static void examine(const struct kiln_cli *cli, const struct kiln_server_config *config,
                    struct kiln_survey *survey, struct kiln_doctor_agent *agent)
{
    kiln_survey_privileges(survey);
    kiln_survey_kernel(survey);
    kiln_survey_host(survey);
    kiln_doctor_places(survey, config);
    if (!cli->args.doctor.offline)
        kiln_doctor_receiver(survey, config);
    kiln_doctor_agent(config, agent);
}

static int report(struct kiln_cli *cli, const struct kiln_server_config *config)
{
    struct kiln_survey *survey = kiln_calloc(1, sizeof(*survey));
    struct kiln_doctor_agent *agent = kiln_calloc(1, sizeof(*agent));
    int code = KILN_EXIT_IO;

    if (survey && agent) {
        examine(cli, config, survey, agent);
        if (cli->args.json)
            kiln_doctor_say_json(survey, agent, &cli->out);
        else
            kiln_doctor_say(survey, agent, &cli->term, &cli->out);
        code = kiln_doctor_works(survey) ? KILN_EXIT_WELL : KILN_EXIT_FAILED;
    }
    kiln_free(survey);
    kiln_free(agent);
    return code;
}

static int run(struct kiln_cli *cli)
{
    struct kiln_server_config config;
    struct kiln_err err = {0};
    int code;
    int r = kiln_settings_load_agent(&cli->args.server, &config, &err);

    code = r < 0 ? kiln_serve_blame(cli, &config, r, &err) : report(cli, &config);
    kiln_settings_done(&config);
    return code;
}

static const struct kiln_option options[] = {
    KILN_OPT("offline", 0, KILN_OPT_FLAG, doctor.offline, NULL,
             "do not send anything to the receiver"),
    KILN_OPT("config", 0, KILN_OPT_TEXT, server.config, "FILE",
             "settings of the agent (" KILN_CONFIG_FILE " where it exists)"),
    KILN_OPT("socket", 0, KILN_OPT_TEXT, server.agent.socket, "FILE",
             "where an agent that runs is asked (" KILN_AGENT_SOCKET ")"),
    KILN_OPT_SYMBOL_CACHE,
    KILN_OPT_JSON,
    KILN_OPT_END,
};
static const struct kiln_option_group group = {"Examination", options};

const struct kiln_command kiln_cmd_doctor = {
    .name = "doctor",
    .summary = "what the profiler can do on this host, and what it lacks",
    .operands = "",
    .operands_max = 0,
    .about =
        "Tries out everything that `kiln agent`, `kiln record` and `kiln live` have a use for, as "
        "the user that you are: loads the programs into the kernel, starts clocks, takes a sample "
        "of itself, attaches to the scheduler, has a name found by the confined child, writes to "
        "the folders, sends the receiver a request without profiles. Nothing stays behind.\n\n"
        "Of what is missing it says what is lost without it, and the command that grants it: "
        "`missing` is what the profiler does not run without, `less` what it runs without but "
        "shows less. If an agent runs on this host, it says what that costs now.\n\n"
        "The exit status is 0 if the profiler can run, 1 if not.",
    .groups = {&group, &kiln_group_sending},
    .examples = {{"kiln doctor --offline", "this host"},
                 {"kiln doctor --endpoint http://collector:4317", "and the way to a receiver"},
                 {"kiln doctor --offline --json", "for programs"}},
    .run = run,
};
