/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/collector.h"
#include "collector/registry.h"

/* ---- validate, print-config ---- */

/* Makes all that the configuration names, and starts nothing. */
static int check(struct kiln_cli *cli, struct kiln_stage **ret_stage)
{
    struct kiln_faults faults = {.n = 0};
    const struct kiln_stage_opts opts = {.args = &cli->args, .faults = &faults};
    struct kiln_err err = {0};

    return kiln_stage_new(&opts, ret_stage, &err) < 0 ? kiln_collector_blame(&faults, &err)
                                                      : KILN_EXIT_WELL;
}

int kiln_collector_validate(struct kiln_cli *cli)
{
    struct kiln_stage *stage = NULL;
    int code = check(cli, &stage);

    kiln_stage_free(stage);
    return code;
}

int kiln_collector_print_config(struct kiln_cli *cli)
{
    bool redacted = cli->args.collector.mode == KILN_COLLECTOR_REDACTED;
    struct kiln_stage *stage = NULL;
    int code = check(cli, &stage);

    if (code != KILN_EXIT_WELL)
        return code;
    if (cli->args.collector.format == KILN_COLLECTOR_JSON)
        kiln_collector_config_format_json(stage->config, redacted, &cli->out);
    else
        kiln_collector_config_format(stage->config, redacted, &cli->out);
    kiln_stage_free(stage);
    return code;
}

/* ---- components ---- */

static void put_signals(struct kiln_buf *out, const struct kiln_component_type *type)
{
    if (type->kind == KILN_EXTENSION) {
        kiln_buf_printf(out, "      extension: %s\n", type->stability);
        return;
    }
    for (int signal = 0; signal < KILN_SIGNALS; signal++) {
        const char *name = kiln_signal_names[signal];

        if (!(type->signals & KILN_TAKES(signal)))
            continue;
        if (type->kind == KILN_CONNECTOR)
            kiln_buf_printf(out, "      %s-to-%s: %s\n", name, name, type->stability);
        else
            kiln_buf_printf(out, "      %s: %s\n", name, type->stability);
    }
}

static void put_type(struct kiln_buf *out, const struct kiln_component_type *type)
{
    struct kiln_str rest = kiln_str_of(type->aliases), alias;

    kiln_buf_printf(out, "  - name: %s\n", type->name);
    if (rest.len) {
        kiln_buf_puts(out, "    aliases:\n");
        while (rest.ptr) {
            alias = kiln_str_cut(&rest, ' ');
            kiln_buf_printf(out, "      - %.*s\n", KILN_STR_ARG(alias));
        }
    }
    kiln_buf_puts(out, "    stability:\n");
    put_signals(out, type);
}

int kiln_collector_components(struct kiln_cli *cli)
{
    static const enum kiln_component_kind kinds[] = {KILN_RECEIVER, KILN_PROCESSOR, KILN_EXPORTER,
                                                     KILN_CONNECTOR, KILN_EXTENSION};
    struct kiln_buf *out = &cli->out;

    kiln_buf_puts(out, "buildinfo:\n  command: kiln collector\n  description: Kiln\n");
    kiln_buf_printf(out, "  version: %s\n", KILN_VERSION);
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(kinds); i++) {
        kiln_buf_printf(out, "%s:\n", kiln_component_section_names[kinds[i]]);
        for (const struct kiln_component_type *const *t = kiln_component_types; *t; t++)
            if ((*t)->kind == kinds[i])
                put_type(out, *t);
    }
    kiln_buf_puts(out, "providers:\n  - scheme: env\n  - scheme: file\n  - scheme: yaml\n");
    return KILN_EXIT_WELL;
}
