/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OTLP exporter with a hand on it, for export_test.py; the environment says where to send.
 *
 *   export_sender [SPOOL_DIR [SPOOL_MAX [REQUEST_MAX]]]
 *
 * Does what each line of standard input says, and answers with a line:
 *
 *   send FILE      hands over the profiles of a file    "sent CODE"
 *   count NAME     the value of a counter               "NAME VALUE"
 *   end MS         ends it with so much time            "ended"
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "codec/codec.h"
#include "pipeline/exporters.h"

#define FILE_MAX ((size_t)256 << 20)

struct sender {
    struct kiln_consumer *exporter;
    struct kiln_metrics *metrics;
};

static void done(struct kiln_delivery *delivery, const struct kiln_outcome *outcome)
{
    *(int *)delivery->context = outcome->code;
}

static int send_file(struct sender *s, const char *path)
{
    struct kiln_decode_opts opts = {.limits = kiln_limits_default};
    struct kiln_batch *batch;
    struct kiln_buf file;
    int code, r;

    kiln_buf_init(&file, FILE_MAX);
    r = kiln_file_read(path, &file, NULL);
    if (r == 0)
        r = kiln_decode(kiln_buf_str(&file), &opts, &batch, NULL, NULL);
    if (r == 0) {
        struct kiln_delivery delivery = {
            .batch = batch, .tenant = "anonymous", .done = done, .context = &code};

        s->exporter->consume(s->exporter, &delivery);
        r = code;
    }
    kiln_buf_done(&file);
    return r;
}

/* The value behind the name in the text of all metrics. */
static void print_count(struct sender *s, const char *name)
{
    struct kiln_buf text;
    const char *found;
    char line[4200];

    kiln_buf_init(&text, 1 << 20);
    kiln_buf_putc(&text, '\n');
    kiln_metrics_format(s->metrics, &text);
    kiln_buf_putc(&text, '\0');
    snprintf(line, sizeof(line), "\n%s ", name);
    found = text.ptr ? strstr(text.ptr, line) : NULL;
    printf("%s %g\n", name, found ? strtod(found + strlen(line), NULL) : 0);
    kiln_buf_done(&text);
}

static void work(struct sender *s)
{
    char line[4096];

    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "send ", 5) == 0 && s->exporter) {
            printf("sent %d\n", send_file(s, line + 5));
        } else if (strncmp(line, "count ", 6) == 0) {
            print_count(s, line + 6);
        } else if (strncmp(line, "end ", 4) == 0) {
            kiln_otlp_exporter_free(s->exporter, strtoull(line + 4, NULL, 10) * KILN_NS_PER_MS);
            s->exporter = NULL;
            printf("ended\n");
        }
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    struct kiln_otlp_export_opts opts = {
        .spool_dir = argc > 1 && argv[1][0] ? argv[1] : NULL,
        .spool_max = argc > 2 ? strtoull(argv[2], NULL, 10) : 0,
        .request_max = argc > 3 ? strtoull(argv[3], NULL, 10) : 0,
        .retry_ns = 20 * KILN_NS_PER_MS,
        .retry_max_ns = 200 * KILN_NS_PER_MS,
    };
    struct sender s = {0};
    struct kiln_err err = {0};

    if (kiln_metrics_new(&s.metrics) < 0)
        return 1;
    opts.metrics = s.metrics;
    if (kiln_otlp_exporter_new(&opts, &s.exporter, &err) < 0) {
        fprintf(stderr, "%s: %s\n", err.where, err.text);
        return 1;
    }
    work(&s);
    if (s.exporter)
        kiln_otlp_exporter_free(s.exporter, 0);
    kiln_metrics_free(s.metrics);
    return 0;
}
