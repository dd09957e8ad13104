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

#endif /* KILN_CORE_FRAME_H */
