/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame - what a frame is called: the one place that says it, for views of a batch and for stores.
 *
 * Threads: no state.
 */
#ifndef KILN_CORE_FRAME_H
#define KILN_CORE_FRAME_H

#include "base/buf.h"
#include "core/batch.h"

extern const struct kiln_str kiln_frame_unknown; /* "(unknown)" */

/* The part of a path behind its last slash. */
struct kiln_str kiln_frame_base(struct kiln_str path);

/* Where an address of a mapping is in its file, so that it means the same on every start; one
 * outside stays as it is. */
uint64_t kiln_frame_offset(const struct kiln_mapping *mapping, uint64_t address);
/* That of a location, if its mapping is known; else its address. */
uint64_t kiln_frame_address(const struct kiln_batch *batch, const struct kiln_location *location);

/* The name of a frame without function: "libc.so.6+0x1234", "0x1234", "[libc.so.6]" or "(unknown)".
 * It lives in `text`, which is cleared, or is constant. */
struct kiln_str kiln_frame_unnamed(struct kiln_str module, uint64_t address, struct kiln_buf *text);

/* The name of a function for people, else for the linker; may be empty. */
static inline struct kiln_str kiln_frame_function(const struct kiln_dict *dict,
                                                  const struct kiln_function *function)
{
    return dict->strings[function->name ? function->name : function->system_name];
}

/*
 * Whether the function of a frame is made up.  Where a file has no symbol for an address, but tells
 * where the function begins, all addresses of the function share one whose name is what
 * kiln_frame_unnamed() makes of that beginning, "libc.so.6+0x1230": without the linker's name and
 * without a source file.  It groups, and is no name: whoever knows a better one replaces it.
 */
bool kiln_frame_is_made_up(const struct kiln_dict *dict, const struct kiln_function *function);

/* Whether nobody has named a location yet: it has no line, or one whose function is made up. */
bool kiln_frame_lacks_name(const struct kiln_dict *dict, const struct kiln_location *location);

/*
 * What debug information that comes later may add to a location.  One that a table of symbols named
 * has a function but neither file nor line: the line, and what was inlined there, may yet be found.
 * Only machine code of a file has these: never frames of the kernel, of interpreters, of JITs.
 */
enum kiln_frame_lack { KILN_LACKS_NOTHING, KILN_LACKS_LINES, KILN_LACKS_NAME };
enum kiln_frame_lack kiln_frame_lack(const struct kiln_batch *batch,
                                     const struct kiln_location *location);

/* Attributes of a mapping that say which file it is of, the surest first. */
enum { KILN_BUILD_ID_KEYS = 3 };
extern const struct kiln_str kiln_build_id_keys[KILN_BUILD_ID_KEYS];
/* The first of them that a set has, or an empty one. */
struct kiln_str kiln_frame_build_id(const struct kiln_batch *batch, uint32_t set);

#endif /* KILN_CORE_FRAME_H */
