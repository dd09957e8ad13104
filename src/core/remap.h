/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remap - entries of one batch, as entries of a builder: under merge, split, compact and every
 * edit.
 *
 * An entry is brought over when it is first asked for, with what it refers to; after that its new
 * index is a look-up in an array.  What nobody asks for stays behind, and the cost is linear.
 *
 * An edit (kiln_remap_edit) changes texts and attribute values on the way.  It is asked once for
 * each entry, not for each sample.
 *
 * Failures stick in the builder, as with everything a builder does.
 * Threads: one owner at a time; the source batch is only read.
 */
#ifndef KILN_CORE_REMAP_H
#define KILN_CORE_REMAP_H

#include "core/builder.h"

struct kiln_code;
struct kiln_remap;

/* What a text of the dictionary says. */
enum kiln_text_role {
    KILN_TEXT_NAME,    /* name or system name of a function */
    KILN_TEXT_SOURCE,  /* file name of a function */
    KILN_TEXT_MAPPING, /* file name of a mapping */
    KILN_N_TEXT_ROLES,
};

/* Where an attribute value stands: its key, and the keys of the values around it. */
struct kiln_attr_place {
    struct kiln_str key; /* empty for an item of an array */
    const struct kiln_attr_place *outer;
};

enum kiln_attr_edit {
    KILN_ATTR_KEEP, /* as it is; the children of an array or map are asked about one by one */
    KILN_ATTR_SET,  /* *value was replaced, by one that belongs to the builder */
    KILN_ATTR_DROP, /* the key goes with its value */
};

enum { KILN_REMAP_LINES = 64 }; /* that an edit gives to a location at most */

struct kiln_remap_edit {
    void *context;
    /* The string that stands for `text` from now on.  NULL: nothing changes. */
    uint32_t (*text)(void *context, struct kiln_builder *b, enum kiln_text_role role,
                     struct kiln_str text);
    /* The name of a function from now on, instead of what `text` makes of it.  NULL: that. */
    uint32_t (*name)(void *context, struct kiln_builder *b, struct kiln_str name,
                     struct kiln_str system_name);
    /* What becomes of a value; *value belongs to `from`.  NULL: nothing changes. */
    enum kiln_attr_edit (*attr)(void *context, struct kiln_builder *b,
                                const struct kiln_batch *from, const struct kiln_attr_place *place,
                                struct kiln_value *value);
    /*
     * Better names for a location that has none or lacks something (kiln_frame_lack()): fills at
     * most KILN_REMAP_LINES lines, the innermost first, with functions of `b`, and returns how
     * many; 0: it stays as it is.  NULL: all do.
     */
    uint32_t (*lines)(void *context, struct kiln_builder *b, const struct kiln_batch *from,
                      const struct kiln_location *location, struct kiln_line *lines);
    bool drop_payloads;
    /* kiln_remap_batch() only: added to the times of profiles and samples; none falls below 0. */
    int64_t shift_ns;
    /* kiln_remap_batch() only: the last to change heads and their attributes.  NULL: nobody. */
    void (*finish)(void *context, struct kiln_builder *b);
};

/* `edit` may be NULL; it and the batch are borrowed.  Returns 0, -ENOMEM or KILN_E_LIMIT. */
KILN_CHECK int kiln_remap_new(struct kiln_builder *b, const struct kiln_batch *from,
                              const struct kiln_remap_edit *edit, struct kiln_remap **ret_remap);
/*
 * Promises that the builder is empty and that, while this remap is in use, nothing else adds to its
 * dictionary.  Entries are then known to be new, which saves looking for them.  Not with an edit,
 * which may make equal what was not.
 */
void kiln_remap_sole(struct kiln_remap *remap);
void kiln_remap_free(struct kiln_remap *remap);

/*
 * Lets mappings of the same code (core/code.h) become one, and moves addresses with them.  `code`
 * belongs to the builder at hand and outlives the remap.
 */
void kiln_remap_relocate(struct kiln_remap *remap, struct kiln_code *code);

/*
 * Moves mappings of code, and the addresses in them, to where their files have them (core/code.h):
 * what is remapped at one time agrees with what is remapped at any other.
 */
void kiln_remap_to_file(struct kiln_remap *remap);

/*
 * Goes on with another builder, for which nothing is brought over yet; costs as much as was brought
 * over since the last move.  Only after kiln_remap_movable(), called before anything is asked for.
 * Returns 0 or KILN_E_LIMIT.
 */
void kiln_remap_movable(struct kiln_remap *remap);
KILN_CHECK int kiln_remap_move(struct kiln_remap *remap, struct kiln_builder *b);

/* Index in the source -> index in the builder. */
uint32_t kiln_remap_string(struct kiln_remap *remap, uint32_t string);
uint32_t kiln_remap_function(struct kiln_remap *remap, uint32_t function);
uint32_t kiln_remap_mapping(struct kiln_remap *remap, uint32_t mapping);
uint32_t kiln_remap_location(struct kiln_remap *remap, uint32_t location);
void kiln_remap_locations(struct kiln_remap *remap, const uint64_t *locations, uint32_t n,
                          uint32_t *ret);
uint32_t kiln_remap_stack(struct kiln_remap *remap, uint32_t stack);
uint32_t kiln_remap_link(struct kiln_remap *remap, uint32_t link);
uint32_t kiln_remap_set(struct kiln_remap *remap, uint32_t set);

/*
 * Brings over the stacks of all samples with their locations, functions and texts, a few at a time,
 * so that the processor waits for the memory of several at once: for builders that are much larger
 * than its caches.  Changes nothing but the time it takes, and the order in which entries are new.
 * Not with an edit, kiln_remap_sole() or kiln_remap_movable().
 */
void kiln_remap_ahead(struct kiln_remap *remap);

/* The head of a resource, scope or profile, without its children; a profile without its payload. */
struct kiln_resource kiln_remap_resource(struct kiln_remap *remap, uint32_t resource);
struct kiln_scope kiln_remap_scope(struct kiln_remap *remap, uint32_t scope);
struct kiln_profile kiln_remap_profile(struct kiln_remap *remap, uint32_t profile);
/* Adds the payload, if there is one, to such a head. */
void kiln_remap_payload(struct kiln_remap *remap, uint32_t profile, struct kiln_profile *head);

/* Adds a resource with its entity references; returns its index. */
uint32_t kiln_remap_add_resource(struct kiln_remap *remap, uint32_t resource);

/* Adds a profile with its samples to the last scope, sample by sample. */
void kiln_remap_add_profile(struct kiln_remap *remap, uint32_t profile);

/* How many entries a batch has, for kiln_builder_expect(). */
struct kiln_counts kiln_batch_counts(const struct kiln_batch *batch);

/*
 * A whole batch, sample by sample, through an edit (NULL: none): the same without dictionary
 * entries that nothing refers to.  `limits` may be NULL.
 */
KILN_CHECK int kiln_remap_batch(const struct kiln_batch *batch, const struct kiln_remap_edit *edit,
                                const struct kiln_limits *limits, struct kiln_batch **ret_batch,
                                struct kiln_err *err);

#endif /* KILN_CORE_REMAP_H */
