/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/err.h"
#include "cli/commands.h"
#include "cli/remote.h"

static int report(struct kiln_cli *cli, const struct kiln_answer *answer)
{
    struct kiln_err err = {0};

    if (kiln_remote_accepted(answer)) {
        kiln_buf_puts(&cli->out, "ready\n");
        return KILN_EXIT_WELL;
    }
    kiln_err_set(&err, -EAGAIN, NULL, "%d: %s", answer->status, answer->message);
    (void)kiln_cli_fail(kiln_remote_address(cli), &err);
    return KILN_EXIT_FAILED;
}

static int run(struct kiln_cli *cli)
{
    struct kiln_client *client = NULL;
    struct kiln_answer answer;
    struct kiln_err err = {0};
    int code;
    int r = kiln_remote_open(cli, 0, &client, &err);

    kiln_answer_init(&answer);
    if (r == 0)
        r = kiln_client_call(client, &(struct kiln_call){.path = "/ready"}, &answer, &err);
    code = r < 0 ? kiln_cli_fail(NULL, &err) : report(cli, &answer);
    kiln_answer_done(&answer);
    kiln_client_free(client);
    return code;
}

const struct kiln_command kiln_cmd_ready = {
    .name = "ready",
    .summary = "check whether a server, an agent or a collector is ready",
    .operands = "",
    .about =
        "Requests /ready. The exit status is 0 where the answer is 200; it is 1 where the program "
        "answers that it is not ready, and prints its reason; it is 4 where there is no answer. "
        "This is the health check of the container images, which have no shell and no curl.\n\n"
        "A server answers on port 4040 and on its Unix socket, an agent on port 4041, a collector "
        "where its extension health_check listens, if that has `path: /ready`. No token is needed.",
    .groups = {&kiln_group_remote},
    .examples = {{"kiln ready", "the server of this machine"},
                 {"kiln ready -s http://127.0.0.1:4041", "the agent"},
                 {"kiln ready -s unix:/run/kiln/kiln.sock", "a server that speaks TLS, locally"}},
    .run = run,
};
