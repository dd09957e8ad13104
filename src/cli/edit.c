/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/edit.h"
#include "core/redact.h"
#include "core/relabel.h"
#include "core/remap.h"
#include "naming/here.h"
#include "symbol/demangle.h"

#define RULES_BYTES_MAX  ((size_t)1 << 20)
#define LINES_TIMEOUT_NS (60 * KILN_NS_PER_S)

static void swap(struct kiln_batch **batch, struct kiln_batch *edited)
{
    kiln_batch_unref(*batch);
    *batch = edited;
}

/* ---- names ---- */

struct naming {
    enum kiln_name_form form;
    struct kiln_demangler *demangler;
};

/* A name is not always there twice: what the linker says may stand for it. */
static uint32_t rename_function(void *context, struct kiln_builder *b, struct kiln_str name,
                                struct kiln_str system_name)
{
    const struct naming *naming = context;
    struct kiln_str linker = system_name.len ? system_name : name;

    if (naming->form == KILN_NAMES_LINKER)
        return kiln_builder_string(b, linker);
    if (naming->form == KILN_NAMES_FULL)
        return kiln_builder_string(b, kiln_demangle_full(naming->demangler, linker));
    return kiln_builder_string(b, kiln_demangle(naming->demangler, linker));
}

static int rename_all(const struct kiln_cli *cli, const char *path, struct kiln_batch **batch)
{
    struct naming naming = {.form = (enum kiln_name_form)cli->args.names};
    const struct kiln_remap_edit how = {.context = &naming, .name = rename_function};
    struct kiln_batch *edited = NULL;
    struct kiln_err err = {0};
    int r = kiln_demangler_new(&naming.demangler);

    if (r == 0)
        r = kiln_remap_batch(*batch, &how, NULL, &edited, &err);
    kiln_demangler_free(naming.demangler);
    if (r < 0) {
        kiln_err_set(&err, r, NULL, "%s", kiln_err_text(r));
        return kiln_cli_fail(path, &err);
    }
    swap(batch, edited);
    return KILN_EXIT_WELL;
}

/* ---- lines ---- */

static int name_here(const char *path, struct kiln_batch **batch)
{
    struct kiln_err err = {0};

    if (kiln_name_here(batch, LINES_TIMEOUT_NS, &err) < 0)
        return kiln_cli_fail(path, &err);
    return KILN_EXIT_WELL;
}

/* ---- paths ---- */

/* Reads FROM=TO from --relabel, and PREFIX from --trim-path, which is FROM without a TO. */
static int read_rules(const struct kiln_args *args, struct kiln_relabel_rule *rules,
                      struct kiln_err *err)
{
    int r = 0;

    for (uint32_t i = 0; i < args->relabel.n && r == 0; i++) {
        r = kiln_relabel_parse(kiln_str_of(args->relabel.items[i]), &rules[i], err);
        kiln_err_within(err, "--relabel");
    }
    for (uint32_t i = 0; i < args->trim_path.n; i++)
        rules[args->relabel.n + i].from = kiln_str_of(args->trim_path.items[i]);
    return r;
}

static int relabel(const struct kiln_cli *cli, const char *path, struct kiln_batch **batch)
{
    const struct kiln_args *args = &cli->args;
    uint32_t n = args->relabel.n + args->trim_path.n;
    struct kiln_relabel_rule *rules = kiln_calloc(n, sizeof(*rules));
    struct kiln_batch *edited;
    struct kiln_err err = {0};
    int r = rules ? read_rules(args, rules, &err) : -ENOMEM;

    if (r < 0) {
        kiln_free(rules);
        return kiln_cli_usage(cli->command, "%s: %s", err.where, err.text);
    }
    r = kiln_relabel(*batch, rules, n, &edited, &err);
    kiln_free(rules);
    if (r < 0)
        return kiln_cli_fail(path, &err);
    swap(batch, edited);
    return KILN_EXIT_WELL;
}

/* ---- redaction ---- */

static int open_rules(const char *file, struct kiln_redact **ret_rules)
{
    struct kiln_err err = {0};
    struct kiln_buf text;
    int r;

    kiln_buf_init(&text, RULES_BYTES_MAX);
    r = kiln_file_read(file, &text, &err);
    if (r == 0)
        r = kiln_redact_parse(kiln_buf_str(&text), ret_rules, &err);
    kiln_buf_done(&text);
    return r < 0 ? kiln_cli_fail(file, &err) : KILN_EXIT_WELL;
}

static int redact(const struct kiln_cli *cli, const char *path, struct kiln_batch **batch)
{
    struct kiln_redact *rules;
    struct kiln_batch *edited;
    struct kiln_err err = {0};
    int code = open_rules(cli->args.redact, &rules);
    int r;

    if (code)
        return code;
    r = kiln_redact(rules, *batch, &edited, NULL, &err);
    kiln_redact_free(rules);
    if (r < 0)
        return kiln_cli_fail(path, &err);
    swap(batch, edited);
    return KILN_EXIT_WELL;
}

int kiln_edit(const struct kiln_cli *cli, const char *path, struct kiln_batch **batch)
{
    int code = cli->args.resolve_here ? name_here(path, batch) : KILN_EXIT_WELL;

    if (code == 0 && cli->args.names != KILN_NAMES_GIVEN)
        code = rename_all(cli, path, batch);
    if (code == 0 && (cli->args.relabel.n || cli->args.trim_path.n))
        code = relabel(cli, path, batch);
    if (code == 0 && cli->args.redact)
        code = redact(cli, path, batch);
    return code;
}
