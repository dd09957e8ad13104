/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build_info - the sources that this program was built from.
 *
 * The build writes the definitions (tools/version --source), in a file of their own: a new commit
 * compiles that file alone.
 *
 * Threads: any; constants.
 */
#ifndef KILN_CLI_BUILD_INFO_H
#define KILN_CLI_BUILD_INFO_H

/* The commit, with "-dirty" behind it if tracked files differed from it; "unknown" without git. */
extern const char kiln_build_commit[];

/* SOURCE_DATE_EPOCH or the commit's time, in RFC 3339; "unknown" without either. */
extern const char kiln_build_date[];

#endif /* KILN_CLI_BUILD_INFO_H */
