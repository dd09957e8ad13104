/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources - source text by the names that profiles give to files, from configured directories only.
 *
 * A name in a profile is a stranger's text.  It never leads out of a directory that somebody
 * configured, nor through a link, nor to a hidden file (".git/config", ".env"), nor to anything but
 * a regular file of text below 4 MiB.
 *
 * A place is "PREFIX=DIR" (what begins with PREFIX is looked for in DIR, without it) or "DIR" (the
 * name, and what is left of it as leading directories are taken away, is looked for in DIR: the
 * longest that is there counts).
 *
 * Threads: immutable once made.
 */
#ifndef KILN_API_SOURCES_H
#define KILN_API_SOURCES_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

struct kiln_sources;

enum { KILN_SOURCES_MAX = 64, KILN_SOURCE_BYTES_MAX = 4 << 20, KILN_SOURCE_PATH_MAX = 4096 };

/* -EINVAL, or the errno of a directory that is not there; `err` names it. */
KILN_CHECK int kiln_sources_new(const char *const *places, uint32_t n,
                                struct kiln_sources **ret_sources, struct kiln_err *err);
void kiln_sources_free(struct kiln_sources *sources);

/*
 * Appends the text of a file to `out` (whose max should be above KILN_SOURCE_BYTES_MAX), and fills
 * where it was found, in its directory.  Else a negative code, and `err` says why in words for
 * people, without the name.
 */
KILN_CHECK int kiln_sources_read(const struct kiln_sources *sources, struct kiln_str file,
                                 struct kiln_buf *out, char ret_path[KILN_SOURCE_PATH_MAX],
                                 struct kiln_err *err);

/* ---- names ---- */

enum { KILN_SOURCE_PARTS_MAX = 256 };

/* A name of a profile: parts with a slash between them, none of which is empty, "." or "..". */
struct kiln_source_name {
    char text[KILN_SOURCE_PATH_MAX];
    uint16_t starts[KILN_SOURCE_PARTS_MAX]; /* of parts */
    uint32_t n;                             /* 1 at least */
    uint32_t first_open; /* parts from here on are not hidden: what may be looked for */
};

/* KILN_E_MALFORMED where there is nothing of it that could be a file. */
KILN_CHECK int kiln_source_name_parse(struct kiln_str file, struct kiln_source_name *ret_name);
/* What is left of `name` behind the parts of `prefix`; NULL: it does not begin so, nothing is left,
 * or that is hidden. */
const char *kiln_source_name_behind(const struct kiln_source_name *name,
                                    const struct kiln_source_name *prefix);

#endif /* KILN_API_SOURCES_H */
