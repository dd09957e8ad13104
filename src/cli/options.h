/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options - the words of the command line, declared once.
 *
 * A command (struct kiln_command) is a row of data: its operands, its groups of options, what it
 * says about itself, its examples.  Parsing, --help, the man page and the shell completions all
 * read that row, so that none of them can tell something else than another.
 *
 * Threads: only the main thread.
 */
#ifndef KILN_CLI_OPTIONS_H
#define KILN_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "cli/settings.h"
#include "codec/codec.h"
#include "core/diff.h"
#include "core/top.h"
#include "core/view.h"

struct kiln_cli;

/* ---- what the command line said ---- */

enum kiln_name_form { KILN_NAMES_GIVEN, KILN_NAMES_SHORT, KILN_NAMES_FULL, KILN_NAMES_LINKER };

enum kiln_color_mode { KILN_COLOR_AUTO, KILN_COLOR_ALWAYS, KILN_COLOR_NEVER };

/* Every option of every command; one that a command does not take keeps its default. */
struct kiln_args {
    struct kiln_list operands;
    /* input */
    uint32_t from; /* enum kiln_format */
    const char *otlp_revision;
    bool resolve_here;
    uint32_t names; /* enum kiln_name_form */
    struct kiln_list relabel;
    struct kiln_list trim_path;
    const char *redact;
    uint64_t max_size;
    /* selection */
    const char *sample_type;
    uint32_t granularity; /* enum kiln_granularity */
    const char *focus, *ignore, *show, *hide;
    struct kiln_list labels;
    /* output */
    const char *output;
    uint32_t to; /* enum kiln_format */
    bool no_compression;
    bool silent_losses; /* of the format: nobody had them yet */
    const char *title;
    bool json;
    uint32_t color; /* enum kiln_color_mode */
    bool wide;
    /* tables and trees */
    uint32_t limit;
    uint32_t sort; /* enum kiln_top_order */
    uint32_t depth;
    double min_share; /* percent */
    bool inverted;
    const char *callers, *callees;
    /* list */
    struct kiln_list source_path;
    uint32_t context;
    /* diff */
    uint32_t normalize;    /* enum kiln_normalize */
    double fail_on_growth; /* percent; negative: not asked for */
    /* drawings */
    const char *base; /* of a diff */
    uint32_t width;   /* px */
    uint32_t nodes;
    bool root_below;
    /* merge */
    bool combine_times;
    bool keep_apart;
    /* check */
    bool strict, check_dupes, check_orphans;
    uint32_t check_sample_shapes; /* 0 or 1 */
    /* server */
    struct kiln_settings server;
    /* talking to a server */
    struct {
        const char *server, *token, *tenant, *ca_file;
        uint64_t timeout_ns; /* 0: the default */
    } remote;
    /* store */
    struct {
        const char *data_dir, *service, *type, *from, *to;
        struct kiln_list matches;
        uint64_t memory_bytes;
        bool dry_run, discard;
    } store;
    /* push */
    struct {
        const char *service, *time;
        uint32_t jobs;
        uint64_t retry_ns;
        bool quiet, dry_run;
    } push;
    /* loadgen */
    struct {
        uint32_t shape, churn_by, protocol,
            compression; /* enums of cli/load*.h; churn_by: 1 more */
        struct kiln_list templates;
        uint32_t services, hosts, tenants, processes, samples, seed, profiles, rate, connections;
        const char *types, *from, *to, *out, *journal;
        double churn, spans, host_churn; /* percent */
        uint64_t duration_ns;
        bool prepare;
    } load;
    /* config */
    bool example;
    /* collector */
    struct {
        struct kiln_list config, sets, gates;
        const char *ready_file;
        uint64_t memory_limit; /* 0: the default */
        uint32_t mode, format; /* enums of cli/collector.h */
    } collector;
    /* query */
    struct {
        const char *from, *until, *step, *values, *with, *without, *format;
        const char *against, *against_query, *against_version, *against_deployment;
        const char *version, *deployment;
        struct kiln_list by, functions, trace_ids, span_ids, profile_ids;
        bool tree, series, lines, gap, labels, services, profiles, spans, types, deployments;
        bool diff, self, exact, largest;
        double fail_above; /* percent; negative: not asked for */
    } query;
    /* annotate */
    struct {
        const char *service, *version, *name, *time, *until;
        struct kiln_list tags;
    } annotate;
    /* boost, pause, resume */
    struct {
        const char *service, *container, *host, *why;
        uint32_t pid, hz;
        uint64_t duration_ns;
        bool all, end;
    } order;
    /* record */
    struct {
        const char *user;
        uint64_t duration_ns; /* 0: until something ends it */
        bool all, quiet;
        bool off_cpu, wall;
        bool alloc, heap, lock; /* from inside */
    } record;
    /* run, and record through the library */
    struct {
        const char *library, *profiles, *service;
        const char *endpoint, *protocol, *socket, *out_dir, *pprof;
        struct kiln_list headers, attributes;
        uint32_t cpu_hz, depth;
        uint64_t alloc_bytes, interval_ns, cpu_window_ns, cpu_every_ns, heap_every_ns;
        double backoff; /* percent */
        bool follow, show, quiet;
    } preload;
    /* live */
    struct {
        uint32_t pane, mode; /* enums of cli/live.h */
        uint64_t span_ns, interval_ns;
        bool once;
    } live;
    /* doctor */
    struct {
        bool offline;
    } doctor;
    /* symbols resolve */
    struct {
        const char *debug;
        struct kiln_list debug_dirs;
        bool addr2line;
    } resolve;
    /* symbols */
    struct {
        bool force;
    } symbols;
    /* help */
    bool help, man;
};

/* ---- what a command line may say ---- */

enum kiln_option_kind {
    KILN_OPT_FLAG,    /* bool */
    KILN_OPT_TEXT,    /* const char * */
    KILN_OPT_LIST,    /* struct kiln_list: may be given several times */
    KILN_OPT_COUNT,   /* uint32_t */
    KILN_OPT_PERCENT, /* double, not negative */
    KILN_OPT_SIZE,    /* uint64_t: bytes, with K, M, G */
    KILN_OPT_CHOICE,  /* uint32_t: index in `choices` */
    KILN_OPT_READS,   /* uint32_t: a format Kiln reads */
    KILN_OPT_WRITES,  /* uint32_t: a format Kiln writes */
    KILN_OPT_DURATION /* uint64_t: nanoseconds, from 10s, 1h30m, 14d */
};

struct kiln_option {
    const char *name;  /* without the dashes */
    char letter;       /* 0: none */
    uint8_t kind;      /* enum kiln_option_kind */
    size_t offset;     /* in struct kiln_args */
    const char *value; /* what the value is, in capitals: REGEX; FILE and DIR complete as such */
    const char *const *choices; /* of CHOICE and, as a proposal, of TEXT; ends with NULL */
    const char *text;           /* one sentence fragment */
};

struct kiln_option_group {
    const char *title;
    const struct kiln_option *options; /* ends with a row without a name */
};

struct kiln_example {
    const char *command; /* works as it stands at the top of the repository */
    const char *text;
};

enum { KILN_GROUPS_MAX = 10, KILN_EXAMPLES_MAX = 8, KILN_OPERANDS_ANY = 255 };

struct kiln_command {
    const char *name;
    const char *summary;  /* one line, no full stop */
    const char *operands; /* "FILE...", as the synopsis shows them */
    uint8_t operands_min, operands_max;
    bool operands_last;       /* what follows the first operand is its own, options too */
    const char *const *words; /* completes the first operand; NULL: files */
    const char *about;        /* paragraphs, separated by an empty line; `x` is code */
    const struct kiln_option_group *groups[KILN_GROUPS_MAX];
    struct kiln_example examples[KILN_EXAMPLES_MAX];
    struct kiln_args defaults;
    int (*run)(struct kiln_cli *cli); /* an exit code */
};

/* All commands, in the order people should meet them; ends with NULL. */
extern const struct kiln_command *const kiln_commands[];
const struct kiln_command *kiln_command_named(const char *name);

/* As `words` of a command: the names of all commands, and these. */
extern const char *const kiln_words_topics[];

/* Groups shared by several commands, and the one every command has (--help). */
extern const struct kiln_option_group kiln_group_input, kiln_group_selection, kiln_group_common;

#define KILN_OPT(long_name, short_letter, option_kind, field, value_name, sentence)                \
    {                                                                                              \
        .name = (long_name), .letter = (short_letter), .kind = (option_kind),                      \
        .offset = offsetof(struct kiln_args, field), .value = (value_name), .text = (sentence)     \
    }
#define KILN_OPT_OF(long_name, field, list, value_name, sentence)                                  \
    {                                                                                              \
        .name = (long_name), .kind = KILN_OPT_CHOICE, .offset = offsetof(struct kiln_args, field), \
        .value = (value_name), .choices = (list), .text = (sentence)                               \
    }
#define KILN_OPT_END                                                                               \
    {                                                                                              \
        .name = NULL                                                                               \
    }

/*
 * Reads the words after the command's name.  The lists in `args` are freed by kiln_args_done(),
 * also after a failure.  Returns 0 or -EINVAL with a sentence that says what to do.
 */
KILN_CHECK int kiln_args_parse(const struct kiln_command *command, int argc, char **argv,
                               struct kiln_args *args, struct kiln_err *err);
void kiln_args_done(struct kiln_args *args);

/* Calls `visit` for each word an option's value can be: choices or formats. */
void kiln_option_words(const struct kiln_option *option, void (*visit)(const char *, void *),
                       void *context);

#endif /* KILN_CLI_OPTIONS_H */
