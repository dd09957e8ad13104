/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clean - text from strangers, made safe to show: names in a drawing, on a terminal, in a graph.
 *
 * A profile may call a function anything: markup, escape sequences, half a character, ten thousand
 * letters, a mark that turns the rest of the line around.  Whatever comes in, what goes out is
 * valid UTF-8 without control characters, quoted for where it is going, and no longer than asked.
 *
 * Threads: no state.
 */
#ifndef KILN_CODEC_CLEAN_H
#define KILN_CODEC_CLEAN_H

#include "base/buf.h"
#include "base/str.h"

enum kiln_quote {
    KILN_QUOTE_NONE, /* for a terminal or a text file */
    KILN_QUOTE_XML,  /* for element content and attribute values */
    KILN_QUOTE_DOT,  /* for a double-quoted string of Graphviz */
};

/*
 * Takes the next character off *rest, which must not be empty.  White space gives ' '; bytes that
 * are no character, and characters that cannot be seen, give U+FFFD.
 */
uint32_t kiln_clean_next(struct kiln_str *rest);

/* Appends at most `chars_max` characters of `s`; where it is longer the last of them is "…". */
void kiln_clean_add(struct kiln_buf *out, struct kiln_str s, size_t chars_max,
                    enum kiln_quote quote);

/*
 * A function's name without the path of its package ("encoding/json.Marshal" is "json.Marshal"):
 * the part that tells frames apart where there is little room.  Points into `name`.
 */
struct kiln_str kiln_clean_short(struct kiln_str name);

/*
 * The characters of `s` that fit in `width_px` in a sans-serif of `size_px`, "…" included, by the
 * usual widths of letters; all of them (SIZE_MAX) where the whole of it fits, 0 where nothing does.
 */
size_t kiln_clean_fit(struct kiln_str s, double size_px, double width_px);

/* The width of `s` in such a font, roughly. */
double kiln_clean_width(struct kiln_str s, double size_px);

#endif /* KILN_CODEC_CLEAN_H */
