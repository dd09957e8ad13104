/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feature gates of an OpenTelemetry Collector are taken, so that command lines that people have
 * work; there is nothing behind them.
 */
#include <stdio.h>

#include "cli/collector.h"

static const struct {
    const char *id;
    bool enabled; /* what Kiln does */
    const char *text;
} gates[] = {
    {"confmap.enableMergeAppendOption", false, "lists of several sources are joined"},
    {"exporter.file.nativeCompression", false, "the file exporter compresses whole files"},
    {"otelcol.printInitialConfig", true, "print-config prints the configuration"},
    {"pkg.exporterhelper.queueBatchEnabled", true, "queues of exporters make batches"},
    {"receiverhelper.newReceiverMetrics", true, "receivers count requests by their outcome"},
    {"service.AllowNoPipelines", false, "a service may have no pipeline"},
    {"service.partialReload", false, "a reload restarts what changed alone"},
    {"service.partialReloadReceivers", false, "the same of receivers"},
    {"service.profilesSupport", true, "pipelines of profiles"},
    {"telemetry.newPipelineTelemetry", false, "metrics by component, in other names"},
};

static const char *find(struct kiln_str id)
{
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(gates); i++)
        if (kiln_str_eq(id, kiln_str_of(gates[i].id)))
            return gates[i].id;
    return NULL;
}

static void remark(struct kiln_str word, struct kiln_log *log)
{
    struct kiln_str id = word;
    const char *known;
    char text[80];

    if (id.len && (id.ptr[0] == '+' || id.ptr[0] == '-'))
        id = (struct kiln_str){id.ptr + 1, id.len - 1};
    known = find(id);
    if (known) {
        kiln_log(log, KILN_LOG_DEBUG, "feature gates change nothing here", "gate", "%s", known,
                 NULL);
        return;
    }
    snprintf(text, sizeof(text), "%.*s", (int)(id.len < 79 ? id.len : 79), id.ptr);
    kiln_log(log, KILN_LOG_WARN, "no such feature gate", "gate", "%s", text, NULL);
}

void kiln_collector_remark_gates(const struct kiln_args *args, struct kiln_log *log)
{
    for (uint32_t i = 0; i < args->collector.gates.n; i++) {
        struct kiln_str rest = kiln_str_of(args->collector.gates.items[i]);

        while (rest.ptr && rest.len)
            remark(kiln_str_trim(kiln_str_cut(&rest, ',')), log);
    }
}

int kiln_collector_featuregate(struct kiln_cli *cli)
{
    const char *wanted = cli->args.operands.n > 1 ? cli->args.operands.items[1] : NULL;

    if (wanted && !find(kiln_str_of(wanted)))
        return kiln_cli_usage(cli->command, "%.60s: no such feature gate", wanted);
    kiln_buf_printf(&cli->out, "%-38s %-8s %s\n", "ID", "Enabled", "Description");
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(gates); i++)
        if (!wanted || strcmp(wanted, gates[i].id) == 0)
            kiln_buf_printf(&cli->out, "%-38s %-8s %s\n", gates[i].id,
                            gates[i].enabled ? "true" : "false", gates[i].text);
    return KILN_EXIT_WELL;
}
