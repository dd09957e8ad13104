/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report - the numbers, names and sentences that the reports share.
 *
 * Threads: only the main thread.
 */
#ifndef KILN_CLI_REPORT_H
#define KILN_CLI_REPORT_H

#include "base/json.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "core/view.h"

/* Options of tables: -n, --sort, --json, --wide. */
#define KILN_OPT_LIMIT(sentence) KILN_OPT("limit", 'n', KILN_OPT_COUNT, limit, "N", sentence)
#define KILN_OPT_JSON                                                                              \
    KILN_OPT("json", 0, KILN_OPT_FLAG, json, NULL,                                                 \
             "print JSON for programs; its shape is stable and documented")
#define KILN_OPT_WIDE                                                                              \
    KILN_OPT("wide", 'w', KILN_OPT_FLAG, wide, NULL,                                               \
             "do not cut long names to the width of the terminal")

/* part / whole, 0 where the whole is 0. */
double kiln_share(double part, double whole);

/* A value in a unit; what a file calls its unit is made safe for a terminal, and cut. */
void kiln_report_number(struct kiln_buf *out, double value, struct kiln_str unit);

/* "12.3%" with one decimal; "." for nothing at all. */
void kiln_report_share(struct kiln_buf *out, double share);

/* A value in its unit; "." for 0. */
void kiln_report_value(struct kiln_buf *out, double value, const struct kiln_type *type);

/* "1 sample", "3,340 samples". */
void kiln_report_count(struct kiln_buf *out, double count, const char *noun);

/* A duration; nothing for 0, which is none. */
void kiln_report_duration(struct kiln_buf *out, uint64_t duration_ns);

/* "12.4s in 30s (0.41 cores)": a value, and where the duration is known, the rate. */
void kiln_report_amount(struct kiln_buf *out, double value, const struct kiln_type *type,
                        uint64_t duration_ns);

/* The first line of a report: what is shown, how much of it, over how long, of how many samples. */
void kiln_report_head(const struct kiln_cli *cli, const struct kiln_view *view,
                      struct kiln_buf *out);

/* The error that no function has a name like this; returns its code. */
int kiln_report_no_function(const char *pattern, struct kiln_err *err);

/* Name and place of a frame as the last two cells of a row. */
void kiln_report_frame(struct kiln_table *table, const struct kiln_frame *frame);

/* The members that describe a view, and those that describe a frame, into an open object. */
void kiln_json_put_view(struct kiln_json_out *w, const struct kiln_view *view);
void kiln_json_put_frame(struct kiln_json_out *w, const struct kiln_frame *frame);

/* A line of source in a cell: its tabs, of no width that a table could know, are spaces. */
void kiln_report_source_line(struct kiln_buf *out, struct kiln_str text);

#endif /* KILN_CLI_REPORT_H */
