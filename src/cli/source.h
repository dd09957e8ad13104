/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source - source files by the names that profiles give them.
 *
 * Threads: only the main thread.
 */
#ifndef KILN_CLI_SOURCE_H
#define KILN_CLI_SOURCE_H

#include "base/buf.h"
#include "cli/embedded.h"
#include "cli/options.h"

struct kiln_source_text {
    struct kiln_buf text;
    struct kiln_str *lines; /* line 1 is lines[0] */
    uint32_t n_lines;       /* 0: not found */
    bool is_embedded;
};

/*
 * Looks for the file where a place "PREFIX=DIR" says, then under its own name, then in what the
 * compiler embedded (NULL: nowhere), and then, in each place "DIR" (without any: in "."), under its
 * whole name and under what is left of it as leading directories are taken away.  Only regular
 * files below 16 MiB are opened.  Returns 0, also where nothing is found, or -ENOMEM.
 */
KILN_CHECK int kiln_source_text_open(struct kiln_str file, const struct kiln_list *places,
                                     struct kiln_embedded *embedded,
                                     struct kiln_source_text *ret_source);
void kiln_source_text_close(struct kiln_source_text *source);

#endif /* KILN_CLI_SOURCE_H */
