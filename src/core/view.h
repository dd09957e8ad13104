/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view - one question to a batch: one sample type, as whole stacks of named frames with a value.
 *
 * A view picks the profiles of one sample type out of all resources, turns locations into frames at
 * the wanted granularity (a location with inlined lines gives several frames), applies the frame
 * and label filters, and adds up equal stacks.  Tree, top, sandwich, diff and every drawing start
 * here.
 *
 * Values are added up as they are, also those of levels: averaging over time needs to know what is
 * one process, which is for whoever keeps profiles.  A type that others add up to (core/type.h) is
 * made of these where no profile has it.  A type that some rows have nothing of has no
 * such rows.  Time covered is the union of the profiles' intervals; where they have no times, the
 * longest sum of durations of a resource.
 *
 * Rows are sorted by nothing in particular but always in the same order for the same input.
 * Threads: immutable once made.  It borrows texts from the batch, on which it holds a reference.
 */
#ifndef KILN_CORE_VIEW_H
#define KILN_CORE_VIEW_H

#include "base/err.h"
#include "core/batch.h"
#include "core/type.h"

enum kiln_granularity {
    KILN_BY_FUNCTION, /* name */
    KILN_BY_LINE,     /* name, file and line */
    KILN_BY_FILE,     /* file */
    KILN_BY_ADDRESS,  /* address in its module, with the name */
};

/*
 * Expressions are Perl's (base/regex.h).  focus, ignore, show and hide match any part of a
 * function's name or file, of a frame without function its name or module; a stack of which show or
 * hide leave no frame is dropped.  A label condition is "key=value", "key!=value", "key=~regex" or
 * "key!~regex" (the whole value must match) about the first of sample, profile, scope and resource
 * that has the attribute; one that is absent is empty.
 */
struct kiln_view_opts {
    struct kiln_str sample_type; /* type name, type:unit or type id; empty: the default one */
    enum kiln_granularity granularity;
    struct kiln_str focus;         /* regex: keep stacks with a matching frame */
    struct kiln_str ignore;        /* regex: drop stacks with a matching frame */
    struct kiln_str show;          /* regex: keep only matching frames */
    struct kiln_str hide;          /* regex: remove matching frames */
    const struct kiln_str *labels; /* label conditions, all must hold */
    uint32_t n_labels;
    size_t memory_bytes; /* 0: 1 GiB */
};

struct kiln_frame {
    struct kiln_str name;     /* what a person reads at this granularity; never empty */
    struct kiln_str function; /* the function's name at any granularity; "" if none or several */
    struct kiln_str file;     /* source file, or "" */
    struct kiln_str module;   /* file name of the mapping, or "" */
    struct kiln_str kind;     /* profile.frame.type (native, kernel, jvm, ...), or "" */
    uint64_t address;         /* 0 where frames of several addresses are one */
    int64_t line;             /* 0 where unknown or several */
    bool inlined;
    bool unnamed; /* no symbol: the name is an address or a placeholder */
};

/* One distinct stack: `n` frames of `path` from `first`, root first. */
struct kiln_view_row {
    uint32_t first;
    uint32_t n;
    int64_t value;
    double count; /* observations behind the value, as far as they can be known: for noise */
};

struct kiln_view {
    struct kiln_batch *batch;
    struct kiln_type type;      /* what the values are */
    struct kiln_frame *frames;  /* distinct frames, each in some row */
    uint32_t *path;             /* frame indexes, root first */
    struct kiln_view_row *rows; /* distinct stacks */
    uint32_t n_frames, n_path, n_rows;
    int64_t total;            /* of all rows */
    int64_t total_unfiltered; /* before focus, ignore and labels: for shares of the whole */
    double count;             /* observations of all rows */
    uint64_t time_ns;         /* earliest start, 0 if unknown */
    uint64_t duration_ns;     /* time covered by the profiles (one process or many), 0 if unknown */
    uint32_t n_profiles;
};

/*
 * Returns 0; KILN_E_NOMATCH where no profile has the sample type (the error lists those there are);
 * KILN_E_AMBIGUOUS where the name fits several types (it lists two); KILN_E_PATTERN for a bad
 * expression; -ENODATA where there are no profiles; KILN_E_LIMIT; -ENOMEM.
 */
KILN_CHECK int kiln_view_new(struct kiln_batch *batch, const struct kiln_view_opts *opts,
                             struct kiln_view **ret_view, struct kiln_err *err);
void kiln_view_free(struct kiln_view *view);

#endif /* KILN_CORE_VIEW_H */
