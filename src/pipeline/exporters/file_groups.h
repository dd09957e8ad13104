/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_groups - a file for each value of an attribute of resources: `path` has one "*", and the
 * value stands for it.
 *
 * A "/" in a value makes folders; a value that would lead elsewhere, or is no name, has no file,
 * and neither has a resource without the attribute: its profiles are not taken.  So many files are
 * open at a time; one that is opened again goes on where it ended.
 *
 * Threads: write() from anywhere, one at a time.
 */
#ifndef KILN_PIPELINE_EXPORTERS_FILE_GROUPS_H
#define KILN_PIPELINE_EXPORTERS_FILE_GROUPS_H

#include "pipeline/exporters/file.h"

struct kiln_file_groups;

/* Profiles that were not taken. */
struct kiln_file_rejects {
    uint32_t profiles, samples;
};

/* Returns 0 or -ENOMEM. */
KILN_CHECK int kiln_file_groups_new(const struct kiln_file_export_opts *opts,
                                    struct kiln_file_groups **ret_groups);
void kiln_file_groups_free(struct kiln_file_groups *groups);

/* A record for each scope. */
KILN_CHECK int kiln_file_groups_write(struct kiln_file_groups *groups,
                                      const struct kiln_batch *batch,
                                      struct kiln_file_rejects *rejects, struct kiln_err *err);

#endif /* KILN_PIPELINE_EXPORTERS_FILE_GROUPS_H */
