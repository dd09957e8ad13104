/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/report.h"
#include "codec/otlp_check.h"

static const char *const levels[] = {
    [KILN_FINDING_ERROR] = "error",
    [KILN_FINDING_WARNING] = "warning",
};

/* ---- text ---- */

/* As compilers do: FILE: error: PLACE: WHAT [RULE] */
static void put_finding(struct kiln_cli *cli, const char *path, const struct kiln_finding *finding)
{
    struct kiln_buf *out = &cli->out;
    bool bad = finding->level == KILN_FINDING_ERROR;

    kiln_cli_put_safe(out, kiln_str_of(kiln_cli_file_name(path)));
    kiln_buf_puts(out, ": ");
    kiln_term_put(&cli->term, out, bad ? KILN_STYLE_WORSE : KILN_STYLE_WARM,
                  kiln_str_of(levels[finding->level]));
    kiln_buf_puts(out, ": ");
    kiln_cli_put_safe(out, kiln_str_of(finding->where));
    kiln_buf_puts(out, ": ");
    kiln_cli_put_safe(out, kiln_str_of(finding->text));
    kiln_buf_printf(out, " [%s]\n", finding->rule);
}

static void put_summary(struct kiln_buf *out, const char *path, const struct kiln_check *check)
{
    kiln_cli_put_safe(out, kiln_str_of(kiln_cli_file_name(path)));
    kiln_buf_printf(out, ": OTLP %s, ", kiln_otlp_revision_name(check->revision));
    kiln_report_count(out, check->n_profiles, "profile");
    kiln_buf_puts(out, ", ");
    kiln_report_count(out, (double)check->n_samples, "sample");
    kiln_buf_puts(out, ": ");
    kiln_report_count(out, (double)check->n_errors, "error");
    kiln_buf_puts(out, ", ");
    kiln_report_count(out, (double)check->n_warnings, "warning");
    kiln_buf_putc(out, '\n');
}

static void print_text(struct kiln_cli *cli, const char *path, const struct kiln_check *check)
{
    uint64_t all = check->n_errors + check->n_warnings;
    uint32_t shown = check->n_findings;

    if (cli->args.limit && cli->args.limit < shown)
        shown = cli->args.limit;
    for (uint32_t i = 0; i < shown; i++)
        put_finding(cli, path, &check->findings[i]);
    if (shown < all)
        kiln_buf_printf(&cli->out, "... %llu more (-n 0 shows up to %u)\n",
                        (unsigned long long)(all - shown), KILN_FINDINGS_MAX);
    put_summary(&cli->out, path, check);
}

/* ---- JSON ---- */

static void put_text(struct kiln_json_out *w, const char *name, const char *text)
{
    kiln_json_put_name(w, name);
    kiln_json_put_str(w, kiln_str_of(text));
}

static void put_number(struct kiln_json_out *w, const char *name, uint64_t number)
{
    kiln_json_put_name(w, name);
    kiln_json_put_u64(w, number);
}

static void print_json(struct kiln_cli *cli, const char *path, const struct kiln_check *check)
{
    struct kiln_json_out w;

    kiln_json_out_init(&w, &cli->out, 2);
    kiln_json_put_object(&w);
    put_text(&w, "file", path);
    put_text(&w, "revision", kiln_otlp_revision_name(check->revision));
    put_number(&w, "profiles", check->n_profiles);
    put_number(&w, "samples", check->n_samples);
    put_number(&w, "errors", check->n_errors);
    put_number(&w, "warnings", check->n_warnings);
    kiln_json_put_name(&w, "findings");
    kiln_json_put_array(&w);
    for (uint32_t i = 0; i < check->n_findings; i++) {
        kiln_json_put_object(&w);
        put_text(&w, "level", levels[check->findings[i].level]);
        put_text(&w, "rule", check->findings[i].rule);
        put_text(&w, "where", check->findings[i].where);
        put_text(&w, "text", check->findings[i].text);
        kiln_json_end_object(&w);
    }
    kiln_json_end_array(&w);
    kiln_json_end_object(&w);
    kiln_buf_putc(&cli->out, '\n');
}

/* ---- the command ---- */

static int check_message(struct kiln_cli *cli, const char *path, struct kiln_str message)
{
    struct kiln_check_opts opts = {
        .dupes = cli->args.check_dupes,
        .orphans = cli->args.check_orphans,
        .sample_shapes = cli->args.check_sample_shapes,
        .strict = cli->args.strict,
    };
    struct kiln_check *check;
    struct kiln_err err = {0};
    int code;

    if (kiln_otlp_check(message, &opts, &check, &err) < 0)
        return kiln_cli_fail(path, &err);
    if (cli->args.json)
        print_json(cli, path, check);
    else
        print_text(cli, path, check);
    code = check->n_errors ? KILN_EXIT_FAILED : KILN_EXIT_WELL;
    kiln_check_free(check);
    return code;
}

static int check_file(struct kiln_cli *cli, const char *path)
{
    struct kiln_err err = {0};
    struct kiln_buf content;
    enum kiln_format format;
    int code;

    kiln_buf_init(&content, 0);
    code = kiln_input_read(cli, path, &content);
    format = code ? KILN_FORMAT_UNKNOWN : kiln_format_detect(kiln_buf_str(&content));
    if (code == 0 && format != KILN_FORMAT_OTLP && format != KILN_FORMAT_UNKNOWN) {
        kiln_err_set(&err, KILN_E_UNSUPPORTED, NULL,
                     "this is %s, and only otlp has rules to check (`kiln convert` makes it)",
                     kiln_format_info(format)->name);
        code = kiln_cli_fail(path, &err);
    } else if (code == 0) {
        code = check_message(cli, path, kiln_buf_str(&content));
    }
    kiln_buf_done(&content);
    return code;
}

/* All files are looked at; a file that cannot be read is worse than one that breaks rules. */
static int run(struct kiln_cli *cli)
{
    int worst = KILN_EXIT_WELL;

    for (uint32_t i = 0; i < cli->args.operands.n; i++) {
        int code = check_file(cli, cli->args.operands.items[i]);

        worst = code > worst ? code : worst;
    }
    return worst;
}

static const char *const booleans[] = {"false", "true", NULL};

static const struct kiln_option options[] = {
    KILN_OPT("strict", 0, KILN_OPT_FLAG, strict, NULL, "warnings are errors"),
    KILN_OPT("check-dupes", 0, KILN_OPT_FLAG, check_dupes, NULL,
             "look for equal entries in a dictionary table"),
    KILN_OPT("check-orphans", 0, KILN_OPT_FLAG, check_orphans, NULL,
             "look for dictionary entries that nothing refers to"),
    KILN_OPT_OF("check-sample-shapes", check_sample_shapes, booleans, "BOOL",
                "samples of one profile must have one shape: true or false (true)"),
    KILN_OPT_LIMIT("show at most N findings, 0 for all (20)"),
    KILN_OPT_JSON,
    KILN_OPT("max-size", 0, KILN_OPT_SIZE, max_size, "SIZE",
             "refuse an input larger than SIZE once uncompressed (256M)"),
    KILN_OPT_END,
};
static const struct kiln_option_group group = {"Check", options};

const struct kiln_command kiln_cmd_check = {
    .name = "check",
    .summary = "check a file against the rules of OpenTelemetry profiles",
    .operands = "FILE...",
    .operands_min = 1,
    .operands_max = KILN_OPERANDS_ANY,
    .about =
        "Checks OTLP profiles (protobuf) against the rules of the protocol. What must hold is an "
        "error, what should hold is a warning; each finding names its place. The rules and the "
        "names of the options are those of the OpenTelemetry project's profcheck, with a few "
        "rules more. Exits with 1 if there is an error.",
    .groups = {&group},
    .examples = {{"kiln convert examples/checkout.pb.gz -o /tmp/c.otlp && kiln check /tmp/c.otlp",
                  "what Kiln writes keeps the rules"},
                 {"kiln convert examples/checkout.pb.gz --to otlp | kiln check --strict "
                  "--check-dupes --check-orphans -",
                  "all the rules there are"}},
    .defaults = {.limit = 20, .check_sample_shapes = 1},
    .run = run,
};
