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

/* Where a location is in its file, if its mapping is known, so that it means the same on every
 * start; else its address. */
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

#endif /* KILN_CORE_FRAME_H */
