/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query - what `kiln query` asks a server (docs/openapi.yaml), and its answers as tables.
 *
 *   query_ask.c    options ─▶ address ─▶ the bytes of an answer
 *   query_read.c   JSON ─▶ struct kiln_said
 *   query_top.c, query_gap.c, query_tree.c, query_series.c, query_lines.c, query_diff.c,
 *   query_list.c, query_file.c   ─▶ people
 *
 * The functions that return an exit code have printed what went wrong.
 * Threads: only the main thread.
 */
#ifndef KILN_CLI_QUERY_H
#define KILN_CLI_QUERY_H

#include "base/arena.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "core/type.h"

struct kiln_said;

/* --sort: what is said, or what is usual for what is shown. */
enum { KILN_QUERY_BY_SELF, KILN_QUERY_BY_TOTAL, KILN_QUERY_BY_USUAL };

/* ---- asking ---- */

/* Appends the parameters that choose samples: query, from, until, function, ... */
void kiln_query_put_choice(const struct kiln_cli *cli, struct kiln_buf *target);

/* Asks for `target`, which ends in NUL here; `body` is appended to.  A body of ours is posted. */
KILN_CHECK int kiln_query_ask(const struct kiln_cli *cli, struct kiln_buf *target,
                              struct kiln_str post, struct kiln_buf *body);

/* The same for a file, whose bytes cannot say that nothing was found: an exit code does. */
KILN_CHECK int kiln_query_ask_file(const struct kiln_cli *cli, struct kiln_buf *target,
                                   struct kiln_buf *body);

/* Asks and reads, an exit code; with --json the answer goes to cli->out too, as it came. */
KILN_CHECK int kiln_query_get(struct kiln_cli *cli, struct kiln_buf *target, bool diff,
                              struct kiln_said *said);

/* ---- answers ---- */

struct kiln_said_array {
    void *items;
    uint32_t n, cap;
};

struct kiln_said_basis {
    double profiles, count, rate_seconds, damaged;
    uint64_t first_ns, last_ns;
};

struct kiln_said_note {
    struct kiln_str code, text;
};

struct kiln_said_function {
    struct kiln_str name, file, module, kind;
    double self, total, self_share, self_error, total_share, total_error;
};

struct kiln_said_change {
    struct kiln_str name, file, module, kind;
    double left_self, right_self, left_total, right_total;
    double self_change, self_noise, total_change, total_noise;
    bool self_is_noise, total_is_noise;
};

struct kiln_said_series {
    struct kiln_str labels; /* a="b", c="d" */
    double sum;
    struct kiln_said_array bucket, value; /* of double */
};

struct kiln_said_side {
    struct kiln_str query, deployment;
    uint64_t from_ns, until_ns;
    double total;
    struct kiln_said_basis basis;
};

/* What a function spends, and off processors on what. */
struct kiln_said_amounts {
    double wall, cpu, blocked, runnable, gap;
};
struct kiln_said_gap {
    struct kiln_str name, file, module, kind;
    struct kiln_said_amounts self, total;
    struct kiln_said_array reasons; /* of double, parallel to the answer's */
};
struct kiln_said_reason {
    struct kiln_str reason;
    double value;
};

/* A row of any list: what it has not is empty. */
struct kiln_said_row {
    struct kiln_str id, name, value, service, type, labels, version, label, source, text;
    struct kiln_str trace_id, span_id, build_id, kind, has;
    uint64_t time_ns, first_ns, last_ns, oldest_ns, newest_ns, at_ns, until_ns;
    double amount; /* a `value` that is a number */
    double duration_seconds, count, samples, profiles, bytes, addresses;
    double profiles_per_second, bytes_per_second;
    uint32_t n_types;
};

struct kiln_said_line {
    double line, self, total;
};

/* Everything an answer can have. */
struct kiln_said {
    struct kiln_type type;
    uint64_t from_ns, until_ns, start_ns;
    double total, step_seconds, buckets, all, functions, scale, change, noise;
    struct kiln_str normalized;
    bool is_noise, truncated;
    struct kiln_said_basis basis;
    struct kiln_said_side left, right;
    struct kiln_said_array notes, top, changes, series, rows, strings;
    /* time off processors */
    struct kiln_said_amounts overall;
    struct kiln_said_array gaps, reasons;
    /* a flame graph, by its arrays: names are struct kiln_str, numbers double */
    struct kiln_said_array names, files, modules, kinds, name, depth, self, node_total;
    double other; /* -1: nothing was folded */
    /* lines of a function */
    struct kiln_str file, text_problem;
    struct kiln_said_array lines, text_lines, other_files; /* the latter two of struct kiln_str */
    double text_first;
    struct kiln_budget budget;
    struct kiln_arena arena;
};

/* KILN_EXIT_INPUT where the answer makes no sense.  To be freed in any case. */
KILN_CHECK int kiln_said_read(struct kiln_said *said, struct kiln_str json, bool diff);
void kiln_said_done(struct kiln_said *said);

/* ---- showing ---- */

/* Says on standard error what the server thinks one should know. */
void kiln_query_say_notes(const struct kiln_said *said);
/* "cpu: 12.4s in 30s (0.41 cores), 3,340 samples of 12 profiles" */
void kiln_query_head(struct kiln_cli *cli, const struct kiln_said *said);
/* A point in time for a cell; "." for 0. */
void kiln_query_put_time(struct kiln_buf *out, uint64_t ns);
/* The exit code of an answer without any profile, which it says: a script must not take it for one
 * that is well, nor for one that is above its threshold. */
int kiln_query_nothing(const struct kiln_cli *cli, const struct kiln_said *said);
/* Name and place of a function as the last two cells of a row. */
void kiln_query_put_function(struct kiln_table *table, struct kiln_str name, struct kiln_str file,
                             struct kiln_str module);

/* Each asks, and prints into cli->out. */
KILN_CHECK int kiln_query_top(struct kiln_cli *cli);
KILN_CHECK int kiln_query_function(struct kiln_cli *cli); /* --function with --fail-above */
KILN_CHECK int kiln_query_gap(struct kiln_cli *cli);
KILN_CHECK int kiln_query_tree(struct kiln_cli *cli);
KILN_CHECK int kiln_query_series(struct kiln_cli *cli);
KILN_CHECK int kiln_query_lines(struct kiln_cli *cli);
KILN_CHECK int kiln_query_diff(struct kiln_cli *cli);
KILN_CHECK int kiln_query_file(struct kiln_cli *cli);
extern const char *const kiln_query_formats[]; /* that answers have; ends with NULL */

/* Appends path and parameters of a comparison. */
KILN_CHECK int kiln_query_put_diff(const struct kiln_cli *cli, const char *format,
                                   struct kiln_buf *target);

/* A list: what is asked for, and how its rows are shown. */
enum kiln_query_list {
    KILN_LIST_LABELS,
    KILN_LIST_VALUES,
    KILN_LIST_TYPES,
    KILN_LIST_SERVICES,
    KILN_LIST_PROFILES,
    KILN_LIST_SPANS,
    KILN_LIST_DEPLOYMENTS,
};
KILN_CHECK int kiln_query_list(struct kiln_cli *cli, enum kiln_query_list list);

#endif /* KILN_CLI_QUERY_H */
