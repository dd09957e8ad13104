/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine - what a store must be able to do; the embedded one (store/store.h) is the first, one on
 * ClickHouse may be the second.
 *
 * An engine takes batches and answers questions.  It is asked questions, not for cursors: one whose
 * data is elsewhere must be able to answer where the data is.
 *
 * Threads: everything may be called from anywhere at once.
 */
#ifndef KILN_STORE_ENGINE_H
#define KILN_STORE_ENGINE_H

#include "base/compress.h"
#include "base/err.h"
#include "base/leash.h"
#include "core/batch.h"
#include "core/flame.h"
#include "core/series.h"

struct kiln_engine;

/* ---- in ---- */

/* One append under way; the caller keeps it, and what it points to, until done. */
struct kiln_append {
    struct kiln_batch *batch; /* borrowed; the engine takes its own reference, and keeps it longer
                                 than `body` lives: its texts must not point there */
    const char *tenant;
    uint64_t received_ns;
    /* What becomes the batch again: OTLP protobuf, or what the recipe is for; empty: the engine
     * encodes it. */
    struct kiln_str body;
    struct kiln_str recipe;
    enum kiln_compression body_compression;
    /* filled before done */
    uint32_t rejected;   /* profiles that were not taken (too old) though the code is 0 */
    struct kiln_err err; /* why: of the first rejected one, or of the failure */
    /* Called once, from any thread: 0 when what was taken survives a power cut; else -EAGAIN (too
     * much under way), -ENOSPC, -EIO, -ESHUTDOWN, KILN_E_LIMIT. */
    void (*done)(struct kiln_append *append, int code);
    void *context;
};

/* ---- out ---- */

struct kiln_selection {
    struct kiln_str tenant;
    uint64_t start_ns, end_ns;           /* start <= t < end; 0, 0: all times */
    const struct kiln_matcher *matchers; /* of series labels */
    uint32_t n_matchers;
    uint32_t *n_damaged; /* as that of a question */
    /* How long to wait for what was acknowledged and is not searchable yet; NULL: a minute. */
    const struct kiln_leash *leash;
};

/* One series that has profiles in the selection.  Times and counts are of the blocks and heads that
 * touch it, as a whole. */
struct kiln_series_found {
    struct kiln_str key; /* core/series.h */
    uint64_t min_ns, max_ns;
    uint64_t n_profiles, n_observations;
};

/* ---- questions about samples ---- */

struct kiln_window {
    uint64_t start_ns, end_ns; /* start <= t < end */
};

/* Which stacks count; all that is said must hold.  Names are those of functions, as flames have
 * them; expressions match any part of a name. */
struct kiln_stack_choice {
    const struct kiln_str *call_site; /* the stack begins with these functions, from the root */
    uint32_t n_call_site;
    const struct kiln_str *with, *without; /* has one of these functions; has none of these */
    uint32_t n_with, n_without;
    struct kiln_regex *with_regex, *without_regex; /* NULL: not said */
};

/*
 * What all questions about samples have in common; what is not said does not matter.
 *
 * A label is looked for in this order: `__profile_type__`, its parts (`__name__`, `__type__`,
 * `__unit__`, `__period_type__`, `__period_unit__`) and `service_name` (`service.name`,
 * `__service_name__`); the labels of the series; the attributes of the sample, the profile, the
 * scope and the resource.  Numbers and booleans are compared as text; an absent label is empty.
 *
 * A sample with a timestamp counts at its timestamp, any other at the start of its profile.  Values
 * are in the unit of the type (core/type.h's scale is applied).
 */
struct kiln_question {
    const struct kiln_str *tenants;
    uint32_t n_tenants;
    const struct kiln_window *windows; /* ascending, apart; none: all times */
    uint32_t n_windows;
    struct kiln_str type; /* five-part id; empty: of any */
    /* Types (core/type.h: kiln_type_id_is()) that add up to `type`, of services that did not send
     * it themselves; none: it stands for itself.  Services that did are in `whole`, ascending, and
     * of these it alone counts. */
    const struct kiln_str *parts, *whole;
    uint32_t n_parts, n_whole;
    const struct kiln_matcher *matchers;
    uint32_t n_matchers;
    const uint8_t (*trace_ids)[16];
    const uint8_t (*span_ids)[8];
    const uint8_t (*profile_ids)[16];
    uint32_t n_trace_ids, n_span_ids, n_profile_ids;
    struct kiln_stack_choice stacks;
    /* Levels: the mean over the profiles of each process (host, pid, start), summed over processes;
     * false: everything is summed, as for flows. */
    bool average;
    struct kiln_leash *leash; /* never NULL */
    /* NULL, or raised to the damaged files that an answer lacks (see kiln_basis). */
    uint32_t *n_damaged;
};

/* Whether the type of a series is what the question is about. */
bool kiln_question_has(const struct kiln_question *question, const struct kiln_series *series);

/* For answers whose format has no place for notes. */
#define KILN_DAMAGED_NOTE                                                                          \
    "damaged files may lack here: this is not everything (kiln store salvage recovers what can "   \
    "be "                                                                                          \
    "read)"

/* What stands behind an answer. */
struct kiln_basis {
    uint64_t n_profiles;     /* that have something in it */
    uint64_t n_unsure;       /* n_profiles may be off by so many: roll-ups do not say which profiles
                                have samples on both sides of the edge of a window */
    double count;            /* observations, as far as they can be known: for noise */
    uint64_t min_ns, max_ns; /* of what was found, or a little around it; 0, 0: nothing */
    uint64_t covered_ns;     /* time that the profiles cover, of one process or many; those too that
                                have no such sample, for that is a process at rest */
    uint32_t n_blocks;       /* read */
    uint32_t n_rolled;       /* of these: by their roll-ups */
    uint32_t n_damaged;      /* blocks left out now, and files in aside/ of this tenant and time */
    uint64_t n_time_set;     /* profiles that have the time they came, for want of their own */
};

/* merge: everything of the question added up. */
struct kiln_merge_wants {
    /* Of the tree, the root and "other" not counted; 0: no tree.  Those with the largest totals
     * stay, of equals the less deep, and of these the ones whose kiln_node_path() is smaller. */
    uint32_t nodes_max;
    bool functions;
    bool profile; /* as a batch of one profile: one sample for each stack, whole locations */
    bool exact;   /* never from pruned roll-ups */
};
/* A hash of the path to a node, from that of its parent (the root's is 0) and that of its name; the
 * same for ever. */
static inline uint64_t kiln_node_path(uint64_t parent, uint64_t name)
{
    uint64_t h = (parent ^ name) * 0x9e3779b97f4a7c15u;

    return h ^ h >> 32;
}
static inline uint64_t kiln_node_name(struct kiln_str name)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (size_t i = 0; i < name.len; i++)
        h = (h ^ (uint8_t)name.ptr[i]) * 0x100000001b3u;
    return h;
}
struct kiln_merged {
    struct kiln_flame *flame;   /* NULL: neither tree nor functions were wanted */
    struct kiln_batch *profile; /* or NULL */
    int64_t total;
    struct kiln_basis basis;
};

/* timeline: buckets [start + i * step, start + (i + 1) * step) of the first window, by labels. */
struct kiln_timeline_opts {
    uint64_t step_ns;
    const struct kiln_str *by; /* labels */
    uint32_t n_by;
    bool mean;      /* of the totals of profiles in a bucket, instead of their sum */
    bool exemplars; /* the largest profile, or span, of each bucket */
    bool span_exemplars;
    uint32_t limit;       /* series with the largest sums; 0: all */
    uint32_t buckets_max; /* of all series together; 0: 1,000,000.  KILN_E_LIMIT beyond */
};
struct kiln_exemplar {
    uint64_t time_ns;
    int64_t value;
    uint8_t profile_id[16], trace_id[16], span_id[8]; /* zero: none */
    struct kiln_str series;                           /* key; core/series.h */
};
struct kiln_timeline_point {
    uint64_t bucket; /* its number; empty ones are absent */
    double value;
    double count; /* observations */
    uint64_t n_profiles;
    uint32_t exemplar; /* into exemplars and one; 0: none */
};
struct kiln_timeline_series {
    const struct kiln_str *labels; /* values, parallel to `by`; an absent one is empty */
    uint32_t first, n;             /* points, ascending */
    double sum;
};
struct kiln_timeline {
    struct kiln_timeline_series *series; /* by the values of labels, ascending */
    struct kiln_timeline_point *points;
    struct kiln_exemplar *exemplars;
    uint32_t n_series, n_points, n_exemplars;
    uint32_t n_dropped; /* series beyond the limit */
    struct kiln_basis basis;
    struct kiln_budget budget;
    struct kiln_arena arena;
};

/* labels: the distinct combinations of values; with times and sizes, as kiln_series_found. */
struct kiln_label_row {
    const struct kiln_str *values; /* parallel to the names asked for; an absent one is empty */
    uint64_t min_ns, max_ns;       /* of blocks and heads that touch the question, as a whole */
    uint64_t n_profiles;
};
struct kiln_labels {
    struct kiln_label_row *rows; /* ascending by values */
    uint32_t n_rows;
    bool truncated;     /* there are more than the most that is told */
    uint32_t n_damaged; /* as that of struct kiln_basis */
    struct kiln_budget budget;
    struct kiln_arena arena;
};

/* profiles: each on its own; spans: each trace and span that samples are linked to. */
struct kiln_found_row {
    uint64_t time_ns, duration_ns; /* of a span: its first and last observation's distance */
    int64_t value;
    double count;
    uint64_t n_samples;     /* values or timestamps */
    uint8_t profile_id[16]; /* of spans: zero */
    uint8_t trace_id[16], span_id[8];
    struct kiln_str series; /* key */
};
enum kiln_found_order { KILN_FOUND_NEWEST, KILN_FOUND_LARGEST };
struct kiln_found_opts {
    bool spans;
    enum kiln_found_order order;
    uint32_t limit; /* 0: 1,000 */
};
struct kiln_found {
    struct kiln_found_row *rows;
    uint32_t n_rows;
    uint64_t n_all;
    struct kiln_basis basis;
    struct kiln_budget budget;
    struct kiln_arena arena;
};

/*
 * moments: samples with a timestamp, one by one.  Of more than `limit`, each is as likely to be
 * among those that stay.
 */
struct kiln_moments_opts {
    uint32_t limit; /* 0: 20,000 */
};
struct kiln_moments {
    /* A resource for each process, with one profile; samples of one observation, in the unit of the
     * type, with thread.id and thread.name (core/timed.h) where these are known, and no other
     * attributes. */
    struct kiln_batch *batch;
    uint64_t n_all, n_timed; /* observations of the question; of these, with a timestamp */
    struct kiln_basis basis;
};

/* ---- names that come later ---- */

enum {
    KILN_SYMBOL_FRAMES_MAX = 64
}; /* of one address; of more the innermost and the outermost
      stay */

struct kiln_symbol_frame {
    struct kiln_str name;        /* for people */
    struct kiln_str system_name; /* for the linker; empty: the same */
    struct kiln_str file;
    int64_t line, start_line; /* nothing without a file */
};

/* What is at an address of a file; what that is core/frame.h says: kiln_frame_address(). */
struct kiln_symbol {
    uint64_t address;
    uint64_t size; /* 1: this address alone, before any range it lies in; 0: up to the next range */
    const struct kiln_symbol_frame *frames; /* innermost first: all but the last were inlined */
    uint32_t n;                             /* 0: it was looked for, and there is nothing */
};

/* Addresses of one file that could be named better (core/frame.h: kiln_frame_lack()) and that no
 * symbol was put for, not even one without frames. */
struct kiln_unnamed {
    struct kiln_str build_id;  /* the first of core/frame.h's kiln_build_id_keys that is there */
    struct kiln_str file;      /* of a mapping that has it */
    const uint64_t *addresses; /* ascending */
    uint32_t n;
    bool more;          /* than these: ask again when they have symbols */
    uint64_t samples;   /* of blocks and heads that have such addresses: a measure of weight */
    uint64_t newest_ns; /* of their data */
};

struct kiln_engine_stats {
    uint64_t blocks, block_bytes, log_bytes, head_bytes; /* head: memory */
    uint64_t series, profiles, samples, observations;    /* blocks and head */
    uint64_t oldest_ns, newest_ns;
    uint64_t set_aside; /* damaged files */
    uint32_t n_damaged; /* files in aside/ that answers may lack */
    /* Not 0: nothing is removed by age, for the clock is so far ahead of where it was expected. */
    uint64_t clock_ahead_ns;
};

struct kiln_engine_ops {
    void (*append)(struct kiln_engine *engine, struct kiln_append *append);
    /* Whether an append that takes so much memory would hardly fail with -EAGAIN now. */
    bool (*has_room)(struct kiln_engine *engine, size_t bytes);

    /* Calls `each` for every series with something in the selection, in the order of keys. */
    int (*series)(struct kiln_engine *engine, const struct kiln_selection *selection,
                  int (*each)(void *context, const struct kiln_series_found *series), void *context,
                  struct kiln_err *err);

    /*
     * The profiles of the selection as one batch: those whose own time, or any of whose
     * observations, lie in it; observations outside are left out.  `memory_bytes` bounds the batch.
     * Everything acknowledged before the call is seen.
     */
    int (*select)(struct kiln_engine *engine, const struct kiln_selection *selection,
                  size_t memory_bytes, struct kiln_batch **ret_batch, struct kiln_err *err);

    /*
     * Questions about samples; everything acknowledged before the call is seen.  All return 0,
     * KILN_E_LIMIT (the question's memory or bytes: `err` says what to do), -ECANCELED, -ETIMEDOUT,
     * -ENOMEM or an error of I/O; a damaged block is left out, and counted in the answer.
     */
    int (*merge)(struct kiln_engine *engine, const struct kiln_question *question,
                 const struct kiln_merge_wants *wants, struct kiln_merged **ret_merged,
                 struct kiln_err *err);
    int (*timeline)(struct kiln_engine *engine, const struct kiln_question *question,
                    const struct kiln_timeline_opts *opts, struct kiln_timeline **ret_timeline,
                    struct kiln_err *err);
    int (*found)(struct kiln_engine *engine, const struct kiln_question *question,
                 const struct kiln_found_opts *opts, struct kiln_found **ret_found,
                 struct kiln_err *err);
    int (*moments)(struct kiln_engine *engine, const struct kiln_question *question,
                   const struct kiln_moments_opts *opts, struct kiln_moments **ret_moments,
                   struct kiln_err *err);
    /* Combinations of these labels; `n` 0: the names of all labels there are, as rows of one. */
    int (*labels)(struct kiln_engine *engine, const struct kiln_question *question,
                  const struct kiln_str *names, uint32_t n, struct kiln_labels **ret_labels,
                  struct kiln_err *err);

    /*
     * Names for addresses of a build id, which may come later than the samples: added to those that
     * are there; of the same address the new one counts.  They name what has no name, or only a
     * symbol table's: questions see them at once.  KILN_E_LIMIT: the names of this build id take
     * more than is kept.
     */
    int (*put_symbols)(struct kiln_engine *engine, struct kiln_str tenant, struct kiln_str build_id,
                       const struct kiln_symbol *symbols, uint32_t n, struct kiln_err *err);
    /* Forgets all that was put for a build id; 0 also where there was nothing.  Profiles that were
     * rewritten with such names meanwhile keep them. */
    int (*drop_symbols)(struct kiln_engine *engine, struct kiln_str tenant,
                        struct kiln_str build_id, struct kiln_err *err);
    /* Calls `each` for every build id of a tenant with addresses that want a name; what it is given
     * lives until it returns, and a negative answer ends it and is returned.  Symbols may be put
     * from inside it. */
    int (*unnamed)(struct kiln_engine *engine, struct kiln_str tenant,
                   int (*each)(void *context, const struct kiln_unnamed *unnamed), void *context,
                   struct kiln_err *err);

    /* Calls `each` for every build id that profiles of a tenant have code of, the first of
     * core/frame.h's kiln_build_id_keys; a negative answer ends it and is returned. */
    int (*build_ids)(struct kiln_engine *engine, struct kiln_str tenant,
                     int (*each)(void *context, struct kiln_str build_id), void *context,
                     struct kiln_err *err);
    /* Calls `each` for every tenant; a negative answer ends it and is returned. */
    int (*tenants)(struct kiln_engine *engine, int (*each)(void *context, struct kiln_str tenant),
                   void *context);

    /* Removes every profile of a service, also from the log; back when nothing of it is left. */
    int (*delete_service)(struct kiln_engine *engine, struct kiln_str tenant,
                          struct kiln_str service, uint64_t *ret_profiles, struct kiln_err *err);

    void (*stats)(struct kiln_engine *engine, struct kiln_str tenant, /* empty: all */
                  struct kiln_engine_stats *ret_stats);

    /* Stops taking, finishes what is under way, closes.  Frees the engine. */
    void (*close)(struct kiln_engine *engine);
};

struct kiln_engine {
    const struct kiln_engine_ops *ops;
};

void kiln_merged_free(struct kiln_merged *merged);
void kiln_timeline_free(struct kiln_timeline *timeline);
void kiln_labels_free(struct kiln_labels *labels);
void kiln_found_free(struct kiln_found *found);
void kiln_moments_free(struct kiln_moments *moments);

#endif /* KILN_STORE_ENGINE_H */
