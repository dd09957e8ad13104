/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wal_int - what the files of the log share: its bytes, its list of segments, its replay.
 *
 * Threads: as noted at each; the format has no state.
 */
#ifndef KILN_STORE_WAL_INT_H
#define KILN_STORE_WAL_INT_H

#include "base/mem.h"
#include "store/wal.h"

enum {
    WAL_SEGMENT_HEAD = 32,
    WAL_RECORD_HEAD = 56,
    WAL_RECIPE_HEAD = 4, /* its length */
    WAL_ALIGN = 8,
    WAL_PATH_MAX = 32,
    WAL_SEGMENTS_MAX = 1 << 20,
};
#define WAL_NUMBER_MAX (UINT64_C(1) << 62)

struct wal_segment {
    uint64_t first; /* its name */
    uint64_t last;  /* nothing in it has a higher number */
    uint64_t bytes;
    bool damaged;
};

struct wal_segments {
    struct wal_segment *all; /* ascending */
    uint32_t n, cap;
    struct kiln_budget budget;
};
KILN_CHECK int wal_segments_reserve(struct wal_segments *segments);
void wal_segment_path(uint64_t first, char ret_path[WAL_PATH_MAX]);

/* ---- bytes: wal_format.c ---- */

struct wal_segment_head {
    uint32_t version;
    uint64_t first;
    uint64_t seal; /* random; every record of the segment repeats it */
};

struct wal_record_head {
    uint64_t seal;
    uint64_t number;
    uint64_t durable; /* the last number that was durable when this was written */
    uint64_t received_ns, oldest_ns;
    uint32_t body_crc, body_bytes;
    uint16_t tenant_bytes;
    uint8_t compression;
    bool has_recipe; /* the body begins with one */
};

void wal_segment_encode(const struct wal_segment_head *head, uint8_t ret_bytes[WAL_SEGMENT_HEAD]);
/* Returns 0, KILN_E_MALFORMED, or KILN_E_UNSUPPORTED: of a newer version, which `ret` says. */
KILN_CHECK int wal_segment_decode(const uint8_t bytes[WAL_SEGMENT_HEAD],
                                  struct wal_segment_head *ret);

/* The head and the tenant behind it: up to WAL_RECORD_HEAD + KILN_WAL_TENANT_MAX bytes. */
void wal_record_encode(const struct wal_record_head *head, const char *tenant, uint8_t *ret_bytes);
/* Whether these bytes, `n` of them at hand, are a head whose sum holds.  The body is not looked
 * at. */
bool wal_record_decode(const uint8_t *bytes, size_t n, struct wal_record_head *ret);
/* Takes a record's recipe off its body.  False: the body is shorter than that. */
bool wal_recipe_cut(const struct wal_record_head *head, struct kiln_str *body,
                    struct kiln_str *ret_recipe);
/* WAL_RECIPE_HEAD bytes. */
void wal_recipe_encode(struct kiln_str recipe, uint8_t *ret_bytes);
/* Bytes of the whole record, with its padding. */
uint64_t wal_record_bytes(const struct wal_record_head *head);

/* ---- replay: wal_replay.c ---- */

struct wal_replay {
    struct kiln_io *io;
    const struct kiln_wal_opts *opts;
    uint64_t floor;
    int (*each)(void *context, const struct kiln_wal_record *record);
    void *context;
    struct wal_segments *segments;
    uint64_t last;    /* the highest number given so far */
    uint64_t vouched; /* at the end: up to here, no hole is left that a power cut explains */
};

/* Lists the segments, syncs and replays them in order, and fills in what it learns of each. */
KILN_CHECK int wal_replay(struct wal_replay *replay, struct kiln_err *err);

#endif /* KILN_STORE_WAL_INT_H */
