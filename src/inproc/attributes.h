/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attributes - what is stated of the resource: by variables, and where they do not say it, by the
 * program.
 *
 * Threads: at the start.
 */
#ifndef KILN_INPROC_ATTRIBUTES_H
#define KILN_INPROC_ATTRIBUTES_H

#include "inproc/start.h"

/* Of two for one key the first that is put counts; service.name is put first, whoever says it. */
void kiln_in_attributes_fill(const struct kiln_options *options, struct kiln_in_settings *settings);

#endif /* KILN_INPROC_ATTRIBUTES_H */
