/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files_int - names of files, and which of them go (files_rotate.c).
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_INPROC_OUT_FILES_INT_H
#define KILN_INPROC_OUT_FILES_INT_H

#include "inproc/out/files.h"

enum { KILN_IN_FILES_PATH = 1024 };

/* False: there is none. */
bool kiln_in_files_remove_oldest(struct kiln_in_files *files);
/* Removes the oldest until no more are there than may be. */
void kiln_in_files_rotate(struct kiln_in_files *files);

#endif /* KILN_INPROC_OUT_FILES_INT_H */
