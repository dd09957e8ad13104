/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTEL_EXPORTER_OTLP_* variables, a line each without that prefix: what is read out of them, and
 * what an answer to an export says.  Whatever is accepted can be sent: no header has a line end in
 * it, the address has a scheme, the path begins with a slash.
 */
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "codec/otlp_answer.h"
#include "fuzz.h"
#include "pipeline/exporters/otlp_target.h"

static char *lines; /* "NAME=VALUE\0NAME=VALUE\0\0" */

static char *variable(const char *name)
{
    size_t n;

    name += strlen("OTEL_EXPORTER_OTLP_");
    n = strlen(name);
    for (char *line = lines; *line; line += strlen(line) + 1)
        if (strncmp(line, name, n) == 0 && line[n] == '=')
            return line + n + 1;
    return NULL;
}

static void check_target(const struct kiln_otlp_target *target)
{
    FUZZ_CHECK(target->path[0] == '/');
    FUZZ_CHECK(strncmp(target->server, "http://", 7) == 0 ||
               strncmp(target->server, "https://", 8) == 0 ||
               strncmp(target->server, "unix:", 5) == 0);
    FUZZ_CHECK(target->timeout_ms > 0);
    FUZZ_CHECK(target->n_headers <= KILN_OTLP_HEADERS_MAX);
    for (uint32_t i = 0; i < target->n_headers; i++) {
        FUZZ_CHECK(target->headers[i].name.len > 0);
        for (size_t k = 0; k < target->headers[i].value.len; k++)
            FUZZ_CHECK((unsigned char)target->headers[i].value.ptr[k] >= ' ');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct kiln_otlp_export_opts opts = {0};
    struct kiln_export_result result;
    struct kiln_otlp_target target;
    struct kiln_err err = {0};

    kiln_otlp_answer_decode((struct kiln_str){(const char *)data, size}, &result);
    kiln_otlp_answer_decode_json((struct kiln_str){(const char *)data, size}, &result);
    lines = kiln_malloc(size + 2);
    if (!lines)
        return 0;
    if (size)
        memcpy(lines, data, size);
    lines[size] = lines[size + 1] = '\0';
    for (size_t i = 0; i < size; i++)
        if (lines[i] == '\n')
            lines[i] = '\0';
    if (kiln_otlp_target_read(&opts, variable, &target, &err) == 0)
        check_target(&target);
    else
        FUZZ_CHECK(err.code && err.text[0]);
    kiln_otlp_target_done(&target);
    kiln_free(lines);
    return 0;
}
