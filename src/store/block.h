/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block - profiles at rest: one immutable, checksummed, self-describing file
 * (docs/formats/block.md).
 *
 * A block belongs to one tenant.  It holds a dictionary (strings, functions, mappings, locations,
 * attribute sets, links, and, for each service, stacks in sorted order with shared prefixes), the
 * resources and scopes its profiles come from, its series sorted by key (core/series.h), and
 * profiles in the order of series and time, each with its samples, in columns of 64-KiB
 * compressed pages.  Its footer says what it covers, what it replaces and where everything is.
 *
 * Written in two steps by anything that has a dictionary and profiles in order: the head of the
 * store (store/head.h) and compaction (store/compact.h).
 *
 * Threads: a writer has one owner; an open block may be read from many threads at once.
 */
#ifndef KILN_STORE_BLOCK_H
#define KILN_STORE_BLOCK_H

#include "base/err.h"
#include "base/mem.h"
#include "core/builder.h"
#include "core/profile_time.h"
#include "store/io.h"

enum { KILN_BLOCK_VERSION = 1 };

struct kiln_block_id {
    uint8_t bytes[16]; /* a time and random: sorts by age; 32 hexadecimal digits in file names */
};

/* What a footer says; all counts are of this block. */
struct kiln_block_info {
    struct kiln_block_id id;
    struct kiln_str tenant;
    uint32_t level;            /* 0: cut from the head; one more with every compaction */
    uint64_t log_from, log_to; /* records of the log whose profiles of this tenant are in here */
    uint64_t made_ns;          /* Unix time */
    uint64_t min_ns, max_ns;   /* of all observations and profiles */
    uint64_t n_series, n_profiles;
    uint64_t n_samples; /* as they were written; those of one identity are read as one */
    uint64_t n_observations, n_stacks, n_frames;
    uint64_t bytes;      /* of the file */
    uint64_t dict_bytes; /* about what the dictionary takes in memory */
    const struct kiln_block_id *replaces;
    uint32_t n_replaces;
};

/* A profile on its way in or out.  Indexes are of the batch that holds the dictionary. */
struct kiln_block_profile {
    uint32_t series;   /* index in the order of keys */
    uint32_t resource; /* of the batch: its attributes, schema, entities */
    uint32_t scope;
    uint32_t flags;                    /* enum kiln_profile_flag */
    struct kiln_profile head;          /* first_sample is not used */
    const struct kiln_sample *samples; /* head.n_samples; `first` is into observations below */
    const int64_t *observations;
};
enum kiln_profile_flag {
    KILN_PROFILE_TIME_SET = 1, /* its time was 0 or in the future: it has the time it came */
};

/* ---- writing ---- */

struct kiln_block;
struct kiln_block_writer;

/* Reads all of a new block; see kiln_block_verify_within(). */
typedef int kiln_block_verifier(struct kiln_block *block, size_t memory_bytes,
                                struct kiln_err *err);

struct kiln_block_write_opts {
    struct kiln_str tenant;
    uint32_t level;
    uint64_t log_from, log_to;
    const struct kiln_block_id *replaces;
    uint32_t n_replaces;
    size_t memory_bytes;         /* budget of the writer; KILN_E_LIMIT beyond */
    kiln_block_verifier *verify; /* NULL: kiln_block_verify_within(); tests have others */
};

/*
 * Begins `blocks/<tenant>/<id>.kb` under a temporary name.  `dict` has the dictionary, resources
 * and scopes (its profiles and samples are not looked at); it must live until commit, and may grow
 * between two profiles.  `keys` are the `n_series` series keys in ascending order; a series without
 * a profile is left out.  The tenant must be a safe file name: letters, digits and !_.*'()-.
 *
 * Memory: at most some 60 bytes for each stack and 20 for each other entry that is written, and the
 * columns of a page; never in proportion to the rows.
 */
KILN_CHECK int kiln_block_create(struct kiln_io *io, const struct kiln_block_write_opts *opts,
                                 const struct kiln_batch *dict, const struct kiln_str *keys,
                                 uint32_t n_series, struct kiln_block_writer **ret_writer,
                                 struct kiln_err *err);

/*
 * Adds a profile; they come in the order of series, and within one of (time_ns).  Only dictionary
 * entries that some profile refers to are written.  Failures stick until commit.
 */
void kiln_block_add(struct kiln_block_writer *writer, const struct kiln_block_profile *profile);

/*
 * Writes what is left and syncs it, still under the temporary name.  Most of the writer's memory is
 * free then, and `dict` is not used any more.
 */
KILN_CHECK int kiln_block_finish(struct kiln_block_writer *writer, struct kiln_err *err);
/*
 * Finishes, unless the caller has, and reads the block as kiln_block_verify_within() does.  Damage
 * (kiln_block_is_damage()) means that this content cannot be written as a block.
 */
KILN_CHECK int kiln_block_read_back(struct kiln_block_writer *writer, struct kiln_err *err);
/* Reads the block back, renames it and syncs the folder: after it the block is there for good. */
KILN_CHECK int kiln_block_commit(struct kiln_block_writer *writer, struct kiln_block_id *ret_id,
                                 struct kiln_err *err);
/* Gives up and removes the temporary file; also after a failed finish or commit, which do not free.
 */
void kiln_block_abort(struct kiln_block_writer *writer);

/* ---- reading ---- */

struct kiln_block;

/* Opens `path` and reads its footer; everything that is read is checked against its checksum. */
KILN_CHECK int kiln_block_open(struct kiln_io *io, const char *path, struct kiln_block **ret_block,
                               struct kiln_err *err);
/* The same, also where its first or last bytes are damaged, but the footer is not. */
KILN_CHECK int kiln_block_open_damaged(struct kiln_io *io, const char *path,
                                       struct kiln_block **ret_block, struct kiln_err *err);
struct kiln_block *kiln_block_ref(struct kiln_block *block);
void kiln_block_unref(struct kiln_block *block); /* the last one closes */

const struct kiln_block_info *kiln_block_info(const struct kiln_block *block);

/*
 * The newest time of something in a block, of which `max_ns` is said to be: a time ahead of
 * `now_ns` is no later than the block.  Kiln 0.1 took timestamps of any year.
 */
static inline uint64_t kiln_block_newest(const struct kiln_block_info *info, uint64_t max_ns,
                                         uint64_t now_ns)
{
    uint64_t latest = kiln_latest_time(info->made_ns);

    return max_ns > kiln_latest_time(now_ns) && latest < max_ns ? latest : max_ns;
}

/* Retention rewrites a block at most once in six hours; of the clock that never jumps.  One thread
 * at a time. */
void kiln_block_rest(struct kiln_block *block);
bool kiln_block_rests(const struct kiln_block *block);

/* Whether a code says that the bytes are wrong, and not that the machine had a bad moment. */
bool kiln_block_is_damage(int code);

/* Key, times and sizes of a series; keys ascend with the index. */
struct kiln_block_series {
    struct kiln_str key;
    uint64_t min_ns, max_ns;
    uint64_t n_profiles, n_samples, n_observations;
    uint64_t bytes; /* of its pages */
};
KILN_CHECK int kiln_block_series(const struct kiln_block *block, uint32_t i,
                                 struct kiln_block_series *ret_series);

/* A page that cannot be read, and what that costs. */
struct kiln_block_lost {
    const char *section;
    uint32_t page;                      /* of the section */
    uint64_t n_profiles;                /* that are lost; 0: a page of the dictionary */
    uint32_t first_series, last_series; /* of these */
    uint64_t min_ns, max_ns;
    const struct kiln_err *why;
};

/*
 * Reads profiles one after the other, of the series marked in `series` (a bit each, NULL: all) that
 * touch start_ns <= t < end_ns.  Dictionary entries are brought into `b`, which may hold others'
 * entries already (compaction reads several blocks into one builder); indexes in what is read are
 * those of `b`.  Stacks are brought over for the services of the chosen series only.
 */
struct kiln_block_reader;
struct kiln_remap_edit;
struct kiln_block_read_opts {
    const uint64_t *series;
    uint64_t start_ns, end_ns; /* 0, 0: all times */
    size_t memory_bytes;       /* for pages and scratch; 0: 64 MiB */
    bool dict_only;            /* without a builder: the dictionary as it is, and no profiles, */
    bool no_code;              /* and without mappings, functions and locations */
    const struct kiln_remap_edit *edit; /* of what the builder gets (core/remap.h); borrowed */
    /*
     * Not NULL: damage ends nothing, and is reported here.  A page of rows costs its profiles, a
     * page of the dictionary those that refer to it, directly or not: they are reported one by one.
     * What is read is as it was written.
     */
    void (*lost)(void *context, const struct kiln_block_lost *lost);
    void *lost_context;
};
KILN_CHECK int kiln_block_read(struct kiln_block *block, const struct kiln_block_read_opts *opts,
                               struct kiln_builder *b, struct kiln_block_reader **ret_reader,
                               struct kiln_err *err);
/*
 * The next profile, valid until the next call.  `resource` and `scope` are numbers of this block
 * (ask the two functions below).  Returns 1, 0 at the end, or an error.
 */
KILN_CHECK int kiln_block_next(struct kiln_block_reader *reader,
                               struct kiln_block_profile *ret_profile, struct kiln_err *err);
/* A resource (with its entities) or scope of the block, with indexes of the builder. */
KILN_CHECK int kiln_block_add_resource(struct kiln_block_reader *reader, uint32_t resource,
                                       uint32_t *ret_index);
struct kiln_scope kiln_block_scope(struct kiln_block_reader *reader, uint32_t scope);
void kiln_block_reader_free(struct kiln_block_reader *reader);

/* Reads every byte and checks every sum and index.  `err` names the place of the first damage. */
KILN_CHECK int kiln_block_verify(struct kiln_block *block, struct kiln_err *err);
/* The same; KILN_E_LIMIT if it takes more memory than this. */
KILN_CHECK int kiln_block_verify_within(struct kiln_block *block, size_t memory_bytes,
                                        struct kiln_err *err);

#endif /* KILN_STORE_BLOCK_H */
