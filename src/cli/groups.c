/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options that several commands share.
 */
#include "cli/options.h"

static const char *const granularities[] = {"function", "line", "file", "address", NULL};
static const char *const name_forms[] = {"given", "short", "full", "linker", NULL};
static const char *const color_modes[] = {"auto", "always", "never", NULL};
static const char *const revisions[] = {"1.4", "1.5", "1.7", "1.8", "1.9", "1.10", "1.11", NULL};
static const char *const types[] = {"cpu",         "samples",     "wall",
                                    "alloc_space", "inuse_space", "alloc_objects",
                                    "contentions", "delay",       NULL};

static const struct kiln_option input_options[] = {
    KILN_OPT("from", 0, KILN_OPT_READS, from, "FORMAT",
             "read the input as FORMAT instead of looking at its content"),
    {.name = "otlp-revision",
     .kind = KILN_OPT_TEXT,
     .offset = offsetof(struct kiln_args, otlp_revision),
     .value = "REVISION",
     .choices = revisions,
     .text = "read OTLP as this revision instead of finding it out"},
    KILN_OPT("resolve", 0, KILN_OPT_FLAG, resolve_here, NULL,
             "lines, inlined functions and names that the input lacks, from the programs on this "
             "host as far as they are the same"),
    KILN_OPT_OF("names", names, name_forms, "FORM",
                "what functions are called: given (as the input says), or by what the linker calls "
                "them: short, full (with parameters and all template arguments) or linker"),
    KILN_OPT("relabel", 0, KILN_OPT_LIST, relabel, "FROM=TO",
             "file names that begin with FROM begin with TO instead"),
    KILN_OPT("trim-path", 0, KILN_OPT_LIST, trim_path, "DIR",
             "file names lose DIR where they begin with it"),
    KILN_OPT("redact", 0, KILN_OPT_TEXT, redact, "FILE",
             "take out of the input what the rules in FILE say; they are YAML or JSON"),
    KILN_OPT(
        "max-size", 0, KILN_OPT_SIZE, max_size, "SIZE",
        "refuse an input larger than SIZE once uncompressed (256M), and an output of four times "
        "that"),
    KILN_OPT_END,
};

const struct kiln_option_group kiln_group_input = {"Input", input_options};

static const struct kiln_option selection_options[] = {
    {.name = "sample-type",
     .letter = 't',
     .kind = KILN_OPT_TEXT,
     .offset = offsetof(struct kiln_args, sample_type),
     .value = "TYPE",
     .choices = types,
     .text = "which values to look at: cpu, alloc_space, ... (the file's default)"},
    KILN_OPT_OF("granularity", granularity, granularities, "UNIT",
                "what a frame is: function, line, file or address (function)"),
    KILN_OPT("focus", 0, KILN_OPT_TEXT, focus, "REGEX", "keep stacks with a frame that matches"),
    KILN_OPT("ignore", 0, KILN_OPT_TEXT, ignore, "REGEX", "drop stacks with a frame that matches"),
    KILN_OPT("show", 0, KILN_OPT_TEXT, show, "REGEX", "keep only the frames that match"),
    KILN_OPT("hide", 0, KILN_OPT_TEXT, hide, "REGEX", "take out the frames that match"),
    KILN_OPT("label", 'l', KILN_OPT_LIST, labels, "CONDITION",
             "keep samples with this label: key=value, key!=value, key=~REGEX, key!~REGEX"),
    KILN_OPT_END,
};

const struct kiln_option_group kiln_group_selection = {"Selection", selection_options};

static const struct kiln_option common_options[] = {
    KILN_OPT_OF("color", color, color_modes, "WHEN",
                "colours: auto (on a terminal), always or never"),
    KILN_OPT("help", 'h', KILN_OPT_FLAG, help, NULL, "show this help and leave"),
    KILN_OPT_END,
};

const struct kiln_option_group kiln_group_common = {"Always", common_options};
