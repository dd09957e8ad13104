/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remap_int - the inside of a remap, shared by the files remap*.c.
 *
 * Threads: as core/remap.h.
 */
#ifndef KILN_CORE_REMAP_INT_H
#define KILN_CORE_REMAP_INT_H

#include "core/builder_int.h"
#include "core/remap.h"

#define KILN_REMAP_DROPPED UINT32_MAX /* in `attrs`: one that the edit removed */

struct kiln_remap {
    struct kiln_builder *b;
    const struct kiln_batch *from;
    const struct kiln_remap_edit *edit;
    struct kiln_code *code; /* NULL: mappings stay where they are */
    uint32_t *strings, *functions, *mappings, *locations, *stacks, *links, *attrs, *sets;
    uint32_t *texts[KILN_N_TEXT_ROLES]; /* as `strings`, for an edit: by what a text says */
    uint32_t *indexes;                  /* scratch: the members of a set, entity keys */
    uint32_t *frames;                   /* scratch: a stack */
    struct kiln_line *lines;            /* scratch: the lines of a location */
    uint32_t *touched; /* places of `strings` and so on that are set; only if it is to be moved */
    uint32_t n_touched;
    uint32_t cap_indexes, cap_frames, cap_lines, cap_touched;
    bool notes_touched;
    bool sole;
    bool to_file;
    struct {
        uint32_t string, function, location, stack;
    } next;                   /* where the next entry probably is, if the builder knows it */
    uint32_t location_misses; /* how often in a row it was elsewhere */
    uint32_t guessed;         /* entries that were where they were looked for first */
    uint8_t *lost_keys; /* by string: 1 for a key that the edit took from the resource at hand */
    size_t charged;
};

/* Room for `n` of `indexes`; false (and sticky) on failure. */
bool kiln_remap_scratch(struct kiln_remap *remap, uint64_t n);

/* An entry as the builder would have it, with all that it refers to brought over; then its index.
 * A location without its lines. */
struct kiln_function kiln_remap_make_function(struct kiln_remap *remap, uint32_t function);
struct kiln_location kiln_remap_make_location(struct kiln_remap *remap,
                                              const struct kiln_location *from);
uint32_t kiln_remap_find_string(struct kiln_remap *remap, struct kiln_str s);
uint32_t kiln_remap_find_function(struct kiln_remap *remap, const struct kiln_function *function);
uint32_t kiln_remap_find_location(struct kiln_remap *remap, const struct kiln_location *location,
                                  const struct kiln_line *lines, uint32_t n_lines);
uint32_t kiln_remap_find_stack(struct kiln_remap *remap, const uint32_t *frames, uint32_t n);

#endif /* KILN_CORE_REMAP_INT_H */
