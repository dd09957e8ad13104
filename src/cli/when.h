/* SPDX-License-Identifier: Apache-2.0 */
/*
 * when - points in time as file names and metadata write them; base/when.h reads all others.
 *
 * Threads: no state.
 */
#ifndef KILN_CLI_WHEN_H
#define KILN_CLI_WHEN_H

#include "base/str.h"
#include "base/when.h"

/*
 * The time in a file name: "cpu-20260301T120000Z.pb.gz", "heap_2026-03-01_12-00-00.pb",
 * "cpu-1772366400123.pb.gz".  Returns 0 or KILN_E_NOMATCH.
 */
KILN_CHECK int kiln_when_in_name(struct kiln_str name, uint64_t *ret_ns);

/* A number as Unix time, in whatever unit lies in this century; 0 where none does. */
uint64_t kiln_when_of_number(uint64_t number);

#endif /* KILN_CLI_WHEN_H */
