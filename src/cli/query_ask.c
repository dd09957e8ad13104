/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "cli/query.h"
#include "cli/remote.h"

#define ANSWER_MAX ((size_t)1 << 30)

static void put_list(struct kiln_buf *target, const char *name, const struct kiln_list *list)
{
    for (uint32_t i = 0; i < list->n; i++)
        kiln_remote_put_param(target, name, list->items[i]);
}

void kiln_query_put_choice(const struct kiln_cli *cli, struct kiln_buf *target)
{
    const struct kiln_args *args = &cli->args;

    if (args->operands.n)
        kiln_remote_put_param(target, "query", args->operands.items[0]);
    kiln_remote_put_param(target, "from", args->query.from);
    kiln_remote_put_param(target, "until", args->query.until);
    put_list(target, "trace_id", &args->query.trace_ids);
    put_list(target, "span_id", &args->query.span_ids);
    put_list(target, "profile_id", &args->query.profile_ids);
    kiln_remote_put_param(target, "with", args->query.with);
    kiln_remote_put_param(target, "without", args->query.without);
    if (args->query.fail_above < 0)
        put_list(target, "function", &args->query.functions);
    if (args->query.exact)
        kiln_remote_put_param(target, "exact", "1");
}

/* What a refusal means for the exit code: the question was wrong, there is nothing to answer it
 * from, or the server does not answer such questions, or not now, or not to us. */
static int refused(const struct kiln_cli *cli, const struct kiln_answer *answer)
{
    bool ours = answer->status < 500 && (answer->status == 400 || answer->word[0]);
    bool nothing = strcmp(answer->word, "not_found") == 0;
    bool elsewhere = answer->status == 404 && !ours;
    struct kiln_err err = {0};

    kiln_err_set(&err, ours ? -EINVAL : -EIO, NULL, "%s%s", answer->message,
                 elsewhere ? " (is this the address of a Kiln server?)" : "");
    kiln_cli_fail(ours ? NULL : kiln_remote_address(cli), &err);
    return nothing ? KILN_EXIT_INPUT : kiln_cli_exit_code(err.code);
}

static int call_server(const struct kiln_cli *cli, const struct kiln_call *call,
                       struct kiln_buf *body, bool *ret_nothing)
{
    struct kiln_client *client = NULL;
    struct kiln_answer answer;
    struct kiln_err err = {0};
    int code = KILN_EXIT_WELL;
    int r = kiln_remote_open(cli, ANSWER_MAX, &client, &err);

    kiln_answer_init(&answer);
    if (r == 0)
        r = kiln_client_call(client, call, &answer, &err);
    if (r < 0) {
        kiln_err_set(&err, r, NULL, "%s", kiln_err_text(r));
        code = kiln_cli_fail(NULL, &err);
    } else if (!kiln_remote_accepted(&answer)) {
        code = refused(cli, &answer);
    } else {
        kiln_buf_add_str(body, kiln_buf_str(&answer.body));
        *ret_nothing = kiln_str_contains(kiln_str_of(answer.notes), KILN_STR("nothing_found"));
    }
    kiln_answer_done(&answer);
    kiln_client_free(client);
    return code;
}

static int ask(const struct kiln_cli *cli, struct kiln_buf *target, struct kiln_str post,
               struct kiln_buf *body, bool *ret_nothing)
{
    struct kiln_call call = {.method = post.ptr ? "POST" : "GET", .body = post};
    struct kiln_err err = {0};
    int code;

    if (post.ptr)
        call.content_type = "application/json";
    kiln_buf_putc(target, '\0');
    if (target->error) {
        kiln_err_set(&err, target->error, NULL, "the question is too long");
        return kiln_cli_fail(NULL, &err);
    }
    call.path = target->ptr;
    code = call_server(cli, &call, body, ret_nothing);
    if (code == 0 && body->error) {
        kiln_err_set(&err, body->error, NULL, "%s", kiln_err_text(body->error));
        code = kiln_cli_fail(NULL, &err);
    }
    return code;
}

int kiln_query_ask(const struct kiln_cli *cli, struct kiln_buf *target, struct kiln_str post,
                   struct kiln_buf *body)
{
    bool nothing;

    return ask(cli, target, post, body, &nothing);
}

int kiln_query_ask_file(const struct kiln_cli *cli, struct kiln_buf *target, struct kiln_buf *body)
{
    bool nothing = false;
    int code = ask(cli, target, KILN_STR_NONE, body, &nothing);

    if (code || !nothing)
        return code;
    kiln_cli_note(NULL, "no profiles are chosen (`kiln query --services` shows what there is)");
    return KILN_EXIT_INPUT;
}

int kiln_query_get(struct kiln_cli *cli, struct kiln_buf *target, bool diff, struct kiln_said *said)
{
    struct kiln_buf body;
    int code;

    *said = (struct kiln_said){0};
    kiln_buf_init(&body, ANSWER_MAX);
    code = kiln_query_ask(cli, target, KILN_STR_NONE, &body);
    if (code == 0)
        code = kiln_said_read(said, kiln_buf_str(&body), diff);
    if (code == 0 && cli->args.json)
        kiln_buf_add_str(&cli->out, kiln_buf_str(&body));
    kiln_buf_done(&body);
    return code;
}
