/* SPDX-License-Identifier: Apache-2.0 */
/*
 * textframe - frames as text formats have them (a name, perhaps a file and a line) into a builder.
 *
 * A text decoder collects the frames of one stack here, from the leaf or from the root, and gets
 * the stack's index.  Frames that the format marks as inlined share a location with the frame they
 * were inlined into.  Texts that are not UTF-8 are repaired, so that every output format can hold
 * them.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_CODEC_TEXTFRAME_H
#define KILN_CODEC_TEXTFRAME_H

#include "base/buf.h"
#include "base/mem.h"
#include "core/builder.h"
#include "core/intern.h"

struct kiln_textframe {
    struct kiln_str name; /* empty: no symbol, the address stands for it */
    struct kiln_str file;
    struct kiln_str module; /* file name of the mapping */
    struct kiln_str kind;   /* profile.frame.type */
    uint64_t address;
    int64_t line;
    int64_t column;
    bool inlined; /* into the next frame towards the root */
};

/* A frame as it stands in the text, and its location. */
struct kiln_textknown {
    struct kiln_str text;
    uint32_t location;
};

struct kiln_textstack {
    struct kiln_builder *b; /* borrowed */
    struct kiln_budget budget;
    struct kiln_buf repaired; /* a text being made UTF-8 */
    struct kiln_line *lines;  /* of the location being made, innermost first */
    uint32_t *locations;      /* in the order they came */
    uint32_t n_lines, cap_lines, n_locations, cap_locations;
    struct kiln_intern index; /* of `known` */
    struct kiln_textknown *known;
    uint32_t n_known, cap_known;
};

void kiln_textstack_init(struct kiln_textstack *s, struct kiln_builder *b);
void kiln_textstack_done(struct kiln_textstack *s);

/* The string, repaired if need be. */
uint32_t kiln_textstack_string(struct kiln_textstack *s, struct kiln_str text);

/* Adds frames leaf first: inlined ones before the frame they were inlined into. */
KILN_CHECK int kiln_textstack_add(struct kiln_textstack *s, const struct kiln_textframe *frame);

/* Adds a location made before. */
KILN_CHECK int kiln_textstack_add_location(struct kiln_textstack *s, uint32_t location);

/*
 * Adds the frame that stands in the text as `text`, if it was remembered; false if not.  Most
 * frames of a file come again and again, and then need not be taken apart and looked up in four
 * tables.
 */
bool kiln_textstack_add_known(struct kiln_textstack *s, struct kiln_str text);

/* Remembers that `text`, which must stay where it is, is the frame added last. */
KILN_CHECK int kiln_textstack_remember(struct kiln_textstack *s, struct kiln_str text);

/* The location of a single frame, without adding it to the stack. */
uint32_t kiln_textstack_location(struct kiln_textstack *s, const struct kiln_textframe *frame);

/* The index of the stack that was added, leaf first or root first; then starts a new one. */
uint32_t kiln_textstack_take(struct kiln_textstack *s, bool root_first);

#endif /* KILN_CODEC_TEXTFRAME_H */
