/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `kiln record` says: while it runs, and at the end.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/record.h"
#include "cli/report.h"

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* A process that ran two programs is two resources. */
int kiln_record_processes(const struct kiln_batch *batch, uint32_t *ret_n)
{
    int64_t *pids = kiln_calloc((size_t)batch->n_resources + 1, sizeof(*pids));
    uint32_t n = 0, distinct = 0;

    if (!pids)
        return -ENOMEM;
    for (uint32_t i = 0; i < batch->n_resources; i++) {
        const struct kiln_attr *pid =
            kiln_set_find(batch, batch->resources[i].attrs, KILN_STR("process.pid"));

        if (pid && pid->value.kind == KILN_VALUE_INT)
            pids[n++] = pid->value.i;
    }
    qsort(pids, n, sizeof(*pids), compare);
    for (uint32_t i = 0; i < n; i++)
        distinct += i == 0 || pids[i] != pids[i - 1];
    kiln_free(pids);
    *ret_n = distinct;
    return 0;
}

static double seconds(const struct kiln_recording *rec, uint64_t until_ns)
{
    return (double)(until_ns - rec->began_ns) / (double)KILN_NS_PER_S;
}

/* Rounded down: what is not complete must not look as if it were. */
static double percent_complete(const struct kiln_host_status *status)
{
    return (double)(uint64_t)(kiln_end_success(&status->ends) * 1000) / 10;
}

/* No longer than the terminal is wide: what wraps cannot be written over. */
void kiln_record_progress(const struct kiln_recording *rec, uint64_t now_ns)
{
    const struct kiln_host_status *status = &rec->status;
    uint32_t width = kiln_term_of(STDERR_FILENO, KILN_COLOR_NEVER).width;
    char line[256];
    int n;

    if (now_ns == 0) {
        fputs("\r\033[K", stderr);
        return;
    }
    n = snprintf(line, sizeof(line), "recording %s (Ctrl-C ends it): %.1f s, %" PRIu64 " samples",
                 rec->name, seconds(rec, now_ns), status->samples);
    if (status->samples)
        n += snprintf(line + n, sizeof(line) - (size_t)n, ", stacks %.1f %% complete",
                      percent_complete(status));
    if (status->ends.lost)
        snprintf(line + n, sizeof(line) - (size_t)n, ", %" PRIu64 " lost", status->ends.lost);
    fprintf(stderr, "\r\033[K%.*s", width ? (int)width - 1 : (int)sizeof(line), line);
}

/* ---- at the end, for people ---- */

/* Those that have no stack to be walked are counted apart: host/reason.h. */
static bool is_apart(int end)
{
    return end == KILN_END_NO_USER || end == KILN_END_COMPAT;
}

static void put_ends_of(const struct kiln_end_tally *ends, bool apart, const char *head,
                        struct kiln_buf *out)
{
    for (int end = 0; end < KILN_ENDS; end++) {
        if (end == KILN_END_COMPLETE || is_apart(end) != apart || ends->by_end[end] == 0)
            continue;
        kiln_buf_printf(out, "%s%10" PRIu64 "  %s\n", head, ends->by_end[end],
                        kiln_end_text((enum kiln_end)end));
        head = "";
    }
}

static void put_stacks(const struct kiln_host_status *status, struct kiln_buf *out)
{
    kiln_buf_printf(out, "  stacks   %.1f %% complete\n", percent_complete(status));
    put_ends_of(&status->ends, false, "  of the others\n", out);
    put_ends_of(&status->ends, true, "  not counted there\n", out);
}

static void put_lost(const struct kiln_recording *rec, struct kiln_buf *out)
{
    if (rec->status.ends.lost == 0 && rec->batches_lost == 0)
        return;
    kiln_buf_puts(out, "  lost     ");
    kiln_report_count(out, (double)rec->status.ends.lost, "sample");
    if (rec->batches_lost)
        kiln_buf_printf(out, ", and what came in %u intervals: there was no memory for it",
                        rec->batches_lost);
    kiln_buf_putc(out, '\n');
}

static void put_written(const struct kiln_recording *rec, struct kiln_buf *out)
{
    struct stat st;

    if (strcmp(rec->path, "-") == 0)
        return;
    kiln_buf_puts(out, "  written  ");
    kiln_cli_put_safe(out, kiln_str_of(rec->path));
    if (stat(rec->path, &st) == 0) {
        kiln_buf_puts(out, " (");
        kiln_report_number(out, (double)st.st_size, KILN_STR("bytes"));
        kiln_buf_putc(out, ')');
    }
    kiln_buf_putc(out, '\n');
}

/* Only for what can be read again. */
static void put_next(const struct kiln_recording *rec, struct kiln_buf *out)
{
    enum kiln_format format = kiln_format_of_path(kiln_str_of(rec->path));

    if (strcmp(rec->path, "-") == 0 || format == KILN_FORMAT_UNKNOWN ||
        !kiln_format_info(format)->reads)
        return;
    kiln_buf_puts(out, "  next     ");
    kiln_cli_put_program(out);
    kiln_buf_printf(out, " top %s%s", rec->select ? rec->select : "", rec->select ? " " : "");
    kiln_cli_put_safe(out, kiln_str_of(rec->path));
    kiln_buf_puts(out, "\n           ");
    kiln_cli_put_program(out);
    kiln_buf_puts(out, " flamegraph ");
    kiln_cli_put_safe(out, kiln_str_of(rec->path));
    kiln_buf_printf(out, " -o %s.svg\n", rec->name);
}

void kiln_record_put_end(const struct kiln_recording *rec, struct kiln_buf *out)
{
    if (rec->launch.pid) {
        kiln_buf_puts(out, "  command  ");
        kiln_cli_put_safe(out, kiln_str_of(rec->launch.name));
        kiln_buf_putc(out, ' ');
        kiln_launch_describe(&rec->launch, out);
        kiln_buf_putc(out, '\n');
    }
    put_written(rec, out);
    put_next(rec, out);
}

void kiln_record_summary(const struct kiln_recording *rec, struct kiln_buf *out)
{
    kiln_buf_printf(out, "recorded %s for %.1f s at %u Hz: ", rec->name,
                    seconds(rec, rec->ended_ns), rec->hz);
    kiln_report_count(out, (double)rec->status.samples, "sample");
    kiln_buf_printf(out, " of %u process%s", rec->processes, rec->processes == 1 ? "" : "es");
    kiln_buf_puts(out, rec->end == KILN_RECORD_GONE ? ", until it was gone\n" : "\n");
    put_stacks(&rec->status, out);
    put_lost(rec, out);
    kiln_record_put_end(rec, out);
}

/* ---- at the end, for programs ---- */

static void put_u64(struct kiln_json_out *w, const char *name, uint64_t value)
{
    kiln_json_put_name(w, name);
    kiln_json_put_u64(w, value);
}

static void put_command(struct kiln_json_out *w, const struct kiln_launch *launch)
{
    kiln_json_put_name(w, "command");
    kiln_json_put_object(w);
    kiln_json_put_name(w, "name");
    kiln_json_put_str(w, kiln_str_of(launch->name));
    put_u64(w, "pid", (uint64_t)launch->pid);
    if (launch->ended && WIFEXITED(launch->status))
        put_u64(w, "status", (uint64_t)WEXITSTATUS(launch->status));
    if (launch->ended && WIFSIGNALED(launch->status))
        put_u64(w, "signal", (uint64_t)WTERMSIG(launch->status));
    kiln_json_end_object(w);
}

static void put_ends_json(struct kiln_json_out *w, const struct kiln_end_tally *ends)
{
    kiln_json_put_name(w, "stacks");
    kiln_json_put_object(w);
    for (int end = 0; end < KILN_ENDS; end++)
        if (ends->by_end[end] || end == KILN_END_COMPLETE)
            put_u64(w, kiln_end_word((enum kiln_end)end), ends->by_end[end]);
    kiln_json_end_object(w);
}

void kiln_record_put_end_json(const struct kiln_recording *rec, struct kiln_json_out *w)
{
    if (rec->launch.pid)
        put_command(w, &rec->launch);
    kiln_json_put_name(w, "file");
    kiln_json_put_str(w, kiln_str_of(rec->path));
}

void kiln_record_summary_json(const struct kiln_recording *rec, struct kiln_buf *out)
{
    static const char *const ends[] = {"time", "command", "gone", "signal"};
    const struct kiln_host_status *status = &rec->status;
    struct kiln_json_out w;

    kiln_json_out_init(&w, out, 0);
    kiln_json_put_object(&w);
    kiln_json_put_name(&w, "recorded");
    kiln_json_put_str(&w, kiln_str_of(rec->name));
    kiln_json_put_name(&w, "seconds");
    kiln_json_put_double(&w, seconds(rec, rec->ended_ns));
    put_u64(&w, "frequency", rec->hz);
    kiln_json_put_name(&w, "ended_by");
    kiln_json_put_str(&w, kiln_str_of(ends[rec->end]));
    put_u64(&w, "samples", status->samples);
    put_u64(&w, "processes", rec->processes);
    put_u64(&w, "lost", status->ends.lost);
    put_u64(&w, "batches_lost", rec->batches_lost);
    kiln_json_put_name(&w, "complete");
    kiln_json_put_double(&w, kiln_end_success(&status->ends));
    put_ends_json(&w, &status->ends);
    put_u64(&w, "names_asked", status->names_asked);
    put_u64(&w, "names_missing", status->names_missing);
    kiln_record_put_end_json(rec, &w);
    kiln_json_end_object(&w);
    kiln_buf_putc(out, '\n');
}
