/* SPDX-License-Identifier: Apache-2.0 */
/* kiln annotate: tells a server of a deployment, or of anything else that happened. */
#include "base/json.h"
#include "base/when.h"
#include "cli/commands.h"
#include "cli/query.h"
#include "cli/remote.h"
#include "cli/report.h"

#define BODY_MAX ((size_t)1 << 20)

static void put_text(struct kiln_json_out *w, const char *name, const char *text)
{
    if (!text)
        return;
    kiln_json_put_name(w, name);
    kiln_json_put_str(w, kiln_str_of(text));
}

static void put_body(const struct kiln_cli *cli, struct kiln_buf *body)
{
    const struct kiln_args *args = &cli->args;
    const struct kiln_list *tags = &args->annotate.tags;
    struct kiln_json_out w;

    kiln_json_out_init(&w, body, 0);
    kiln_json_put_object(&w);
    put_text(&w, "text", args->operands.n ? args->operands.items[0] : NULL);
    put_text(&w, "service", args->annotate.service);
    put_text(&w, "version", args->annotate.version);
    put_text(&w, "name", args->annotate.name);
    put_text(&w, "at", args->annotate.time);
    put_text(&w, "until", args->annotate.until);
    if (tags->n) {
        kiln_json_put_name(&w, "tags");
        kiln_json_put_array(&w);
        for (uint32_t i = 0; i < tags->n; i++)
            kiln_json_put_str(&w, kiln_str_of(tags->items[i]));
        kiln_json_end_array(&w);
    }
    kiln_json_end_object(&w);
}

/* A deployment is of a service and has a version; what has none is a note. */
static int check(const struct kiln_cli *cli)
{
    const struct kiln_args *args = &cli->args;

    if (args->annotate.version && !args->annotate.service)
        return kiln_cli_usage(cli->command, "--version needs --service: whose version is it?");
    if (args->annotate.name && !args->annotate.version)
        return kiln_cli_usage(cli->command, "--name is another name of a --version");
    if (!args->annotate.version && !args->operands.n)
        return kiln_cli_usage(cli->command, "what happened? Give a TEXT, or --version");
    if (args->annotate.version && (args->annotate.until || args->annotate.tags.n))
        return kiln_cli_usage(cli->command, "a --version has neither --until nor --tag");
    return KILN_EXIT_WELL;
}

/* {"id": ..., "at": ...} */
static int print(struct kiln_cli *cli, struct kiln_str json)
{
    struct kiln_buf id, at;
    struct kiln_str name, text;
    struct kiln_json r;
    struct kiln_err err = {0};
    int n;

    kiln_buf_init(&id, BODY_MAX);
    kiln_buf_init(&at, BODY_MAX);
    kiln_json_init(&r, json, &err);
    n = kiln_json_object(&r);
    while (n == 0 && (n = kiln_json_member(&r, &name)) > 0) {
        struct kiln_buf *to = kiln_str_eq(name, KILN_STR("id"))   ? &id
                              : kiln_str_eq(name, KILN_STR("at")) ? &at
                                                                  : NULL;

        n = to ? kiln_json_string(&r, &text) : kiln_json_skip(&r);
        if (n == 0 && to)
            kiln_buf_add_str(to, text);
    }
    kiln_json_done(&r);
    if (n == 0) {
        kiln_buf_puts(&cli->out, cli->args.annotate.version ? "deployment " : "annotation ");
        kiln_cli_put_safe(&cli->out, kiln_buf_str(&id));
        kiln_buf_puts(&cli->out, " at ");
        kiln_cli_put_safe(&cli->out, kiln_buf_str(&at));
        kiln_buf_putc(&cli->out, '\n');
    }
    kiln_buf_done(&id);
    kiln_buf_done(&at);
    return n == 0 ? KILN_EXIT_WELL : kiln_cli_fail("the server's answer", &err);
}

static int run(struct kiln_cli *cli)
{
    struct kiln_buf target, body, answer;
    int code = check(cli);

    if (code)
        return code;
    kiln_buf_init(&target, BODY_MAX);
    kiln_buf_init(&body, BODY_MAX);
    kiln_buf_init(&answer, BODY_MAX);
    kiln_buf_puts(&target,
                  cli->args.annotate.version ? "/api/v1/deployments" : "/api/v1/annotations");
    put_body(cli, &body);
    code = body.error ? kiln_cli_usage(cli->command, "that is too much text")
                      : kiln_query_ask(cli, &target, kiln_buf_str(&body), &answer);
    if (code == 0 && cli->args.json)
        kiln_buf_add_str(&cli->out, kiln_buf_str(&answer));
    else if (code == 0)
        code = print(cli, kiln_buf_str(&answer));
    kiln_buf_done(&answer);
    kiln_buf_done(&body);
    kiln_buf_done(&target);
    return code;
}

static const struct kiln_option options[] = {
    KILN_OPT("service", 0, KILN_OPT_TEXT, annotate.service, "NAME", "what it happened to (all)"),
    KILN_OPT("version", 0, KILN_OPT_TEXT, annotate.version, "VERSION",
             "this version was deployed: kiln query compares by it"),
    KILN_OPT("name", 0, KILN_OPT_TEXT, annotate.name, "NAME", "another name of the deployment"),
    KILN_OPT("time", 0, KILN_OPT_TEXT, annotate.time, "TIME",
             "when: now-5m, 2026-03-01T12:00, Unix time (now)"),
    KILN_OPT("until", 0, KILN_OPT_TEXT, annotate.until, "TIME", "when it ended, if it lasted"),
    KILN_OPT("tag", 0, KILN_OPT_LIST, annotate.tags, "WORD",
             "a tag of it; may be given several times"),
    KILN_OPT_JSON,
    KILN_OPT_END,
};
static const struct kiln_option_group group = {"What happened", options};

const struct kiln_command kiln_cmd_annotate = {
    .name = "annotate",
    .summary = "tell a server of a deployment, or of anything that happened",
    .operands = "[TEXT]",
    .operands_max = 1,
    .about =
        "Keeps a note on the time line of a server. With `--version` it is a deployment, which "
        "comparisons can name (`kiln query --against-deployment`); a deployment is also found "
        "by itself where profiles have service.version, git.commit or deployment_id.",
    .groups = {&group, &kiln_group_remote},
    .examples = {{"kiln annotate --service shop --version 1.2 \"cache prices\"",
                  "from a deployment script"},
                 {"kiln annotate \"load test\" --time now-10m --until now --tag load",
                  "something that lasted"}},
    .run = run,
};
