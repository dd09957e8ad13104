/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof_int - what the pprof decoder and encoder share: field numbers, attribute names, the
 * decoder's state and its look-up of ids.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_CODEC_PPROF_INT_H
#define KILN_CODEC_PPROF_INT_H

#include "codec/pb.h"
#include "codec/pprof.h"

/* profile.proto, message by message. */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE,
    PROFILE_MAPPING,
    PROFILE_LOCATION,
    PROFILE_FUNCTION,
    PROFILE_STRING_TABLE,
    PROFILE_DROP_FRAMES,
    PROFILE_KEEP_FRAMES,
    PROFILE_TIME_NANOS,
    PROFILE_DURATION_NANOS,
    PROFILE_PERIOD_TYPE,
    PROFILE_PERIOD,
    PROFILE_COMMENT,
    PROFILE_DEFAULT_SAMPLE_TYPE,
    PROFILE_DOC_URL,
    PROFILE_LAST = PROFILE_DOC_URL
};
enum { TYPE_TYPE = 1, TYPE_UNIT };
enum { SAMPLE_LOCATION_ID = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_STR, LABEL_NUM, LABEL_NUM_UNIT };
enum {
    MAPPING_ID = 1,
    MAPPING_START,
    MAPPING_LIMIT,
    MAPPING_OFFSET,
    MAPPING_FILENAME,
    MAPPING_BUILD_ID,
    MAPPING_HAS_FUNCTIONS,
    MAPPING_HAS_FILENAMES,
    MAPPING_HAS_LINE_NUMBERS,
    MAPPING_HAS_INLINE_FRAMES
};
enum { LOCATION_ID = 1, LOCATION_MAPPING_ID, LOCATION_ADDRESS, LOCATION_LINE, LOCATION_IS_FOLDED };
enum { LINE_FUNCTION_ID = 1, LINE_LINE, LINE_COLUMN };
enum {
    FUNCTION_ID = 1,
    FUNCTION_NAME,
    FUNCTION_SYSTEM_NAME,
    FUNCTION_FILENAME,
    FUNCTION_START_LINE
};

#define ATTR_DEFAULT_TYPE KILN_STR("pprof.scope.default_sample_type")
#define ATTR_TYPE_ORDER   KILN_STR("pprof.scope.sample_type_order")
#define ATTR_COMMENT      KILN_STR("pprof.profile.comment")
#define ATTR_DOC_URL      KILN_STR("pprof.profile.doc_url")
#define ATTR_DROP_FRAMES  KILN_STR("pprof.profile.drop_frames")
#define ATTR_KEEP_FRAMES  KILN_STR("pprof.profile.keep_frames")
#define ATTR_IS_FOLDED    KILN_STR("pprof.location.is_folded")
#define ATTR_BUILD_ID_GNU KILN_STR("process.executable.build_id.gnu")
#define ATTR_BUILD_ID_GO  KILN_STR("process.executable.build_id.go")
#define ATTR_FRAME_TYPE   KILN_STR("profile.frame.type")

/* The has_* flags of a mapping: field number and attribute. */
#define MAPPING_FLAGS(X)                                                                           \
    X(MAPPING_HAS_FUNCTIONS, "pprof.mapping.has_functions")                                        \
    X(MAPPING_HAS_FILENAMES, "pprof.mapping.has_filenames")                                        \
    X(MAPPING_HAS_LINE_NUMBERS, "pprof.mapping.has_line_numbers")                                  \
    X(MAPPING_HAS_INLINE_FRAMES, "pprof.mapping.has_inline_frames")

/* Keys of an element of an array of numbers with different units. */
#define KEY_VALUE KILN_STR("value")
#define KEY_UNIT  KILN_STR("unit")

#define NO_INDEX  UINT32_MAX

/* ---- decoder ---- */

/*
 * Ids are any 64-bit numbers, nearly always 1, 2, 3 ...: those up to the number of entries are
 * looked up in an array, the others in a hash table that is made when the first of them comes.
 */
struct id_slot {
    uint64_t id; /* 0: free */
    uint32_t index;
};

struct id_map {
    uint32_t *dense; /* n + 1 indexes, NO_INDEX where there is none */
    uint32_t n;
    uint32_t n_slots; /* 0 or a power of two */
    struct id_slot *slots;
    uint32_t n_same; /* ids that equal their index; all of them: no look-up is needed */
};

/* Where the messages of one kind start: offsets in the input, in chunks. */
struct offset_chunk {
    struct offset_chunk *next;
    uint32_t n;
    uint32_t cap;
    uint32_t offsets[];
};

struct offset_list {
    struct offset_chunk *first, *last;
    uint32_t n;
};

struct label_cache;
struct label;

struct kiln_pprof_in {
    struct kiln_str raw;
    struct kiln_builder *b;
    struct kiln_err *err;

    /* What the first walk over the input found. */
    struct offset_list lists[PROFILE_STRING_TABLE + 1];       /* by field number */
    struct offset_list comments;                              /* string indexes, not offsets */
    uint64_t drop_frames, keep_frames, default_type, doc_url; /* string indexes */
    int64_t time_ns, duration_ns, period;
    struct kiln_str period_type;
    size_t sample_bytes_max; /* of the longest sample message */
    uint64_t sample_bytes;   /* of all of them */
    bool has_time;

    /* The tables, by their place or id in the input. */
    uint32_t *strings;
    struct id_map mappings, functions, locations;

    /* Of the location, then of the sample being read. */
    struct kiln_line *lines;
    uint32_t line_cap;
    uint32_t folded_set; /* the attribute set {is_folded}, 0 until it is needed */
    uint32_t *stack;
    uint32_t stack_cap;
    struct kiln_value_type *types; /* in the order of the input */
    uint32_t *order;               /* profile -> sample type */
    int64_t *values;               /* in the order of the input, then of the profiles */
    int64_t *row;
    struct label_cache *labels; /* made with the first label */
    struct label *label_list;
    uint32_t label_cap;
    struct kiln_grid grid;
};

/* Sets `err` and returns `code`. */
int kiln_pprof_fail(struct kiln_pprof_in *in, int code, const char *where, const char *fmt, ...)
    KILN_PRINTF(4, 5);
/* The same for bytes that are no protobuf, and for what sticks in the builder (0 if nothing does).
 */
int kiln_pprof_bad_wire(struct kiln_pprof_in *in, int code);
int kiln_pprof_builder_failure(struct kiln_pprof_in *in);

/* The batch's string for a string index of the input.  Returns 0 or KILN_E_RANGE. */
KILN_CHECK int kiln_pprof_string(struct kiln_pprof_in *in, uint64_t index, const char *field,
                                 uint32_t *ret);

/* Calls `read` with every message of one kind; errors get the place "name[i]". */
KILN_CHECK int kiln_pprof_each(struct kiln_pprof_in *in, unsigned field, const char *name,
                               int (*read)(struct kiln_pprof_in *in, struct kiln_str message,
                                           uint32_t i));

/* The index of an id past the dense ones, or NO_INDEX. */
uint32_t kiln_pprof_sparse_id(const struct id_map *map, uint64_t id);

/* The index of an id, or NO_INDEX. */
static inline uint32_t kiln_pprof_id(const struct id_map *map, uint64_t id)
{
    return KILN_LIKELY(id <= map->n) ? map->dense[id] : kiln_pprof_sparse_id(map, id);
}

/* Adds the resource, the scope and the profiles, then fills them with samples. */
KILN_CHECK int kiln_pprof_read_profiles(struct kiln_pprof_in *in);

/*
 * The attribute set for the labels of a sample: `region` starts at the tag of the first label and
 * ends behind the last one.
 */
KILN_CHECK int kiln_pprof_labels(struct kiln_pprof_in *in, struct kiln_str region,
                                 uint32_t *ret_set);

/* The name of the old text format that the input is in, or NULL. */
const char *kiln_pprof_old_text(struct kiln_str raw);

#endif /* KILN_CODEC_PPROF_INT_H */
