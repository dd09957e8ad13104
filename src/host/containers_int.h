/* SPDX-License-Identifier: Apache-2.0 */
/*
 * containers_int - what the files of containers share.
 *
 *   containers.c        what is remembered, and which files are read
 *   containers_read.c   what those files say
 *
 * Threads: as in containers.h.
 */
#ifndef KILN_HOST_CONTAINERS_INT_H
#define KILN_HOST_CONTAINERS_INT_H

#include "host/containers.h"

enum { KILN_CONTAINER_TEXT_MAX = 256 };

/* What is being read; of two labels for a fact the one that is first in the table counts. */
struct kiln_container_draft {
    char texts[KILN_CONTAINER_FACTS][KILN_CONTAINER_TEXT_MAX];
    unsigned rank[KILN_CONTAINER_FACTS]; /* of what was taken; 0: nothing yet */
};

/* What files say, added to a draft. */
void kiln_container_read_docker(struct kiln_container_draft *draft, struct kiln_str json);
void kiln_container_read_oci(struct kiln_container_draft *draft, struct kiln_str json);
void kiln_container_read_storage(struct kiln_container_draft *draft, struct kiln_str json,
                                 struct kiln_str id);
void kiln_container_read_downward(struct kiln_container_draft *draft, struct kiln_str lines);

/* Sets a fact that comes first, whatever labels say; empty texts and those too long do nothing. */
void kiln_container_say(struct kiln_container_draft *draft, enum kiln_container_fact fact,
                        struct kiln_str text);
/* The value of a member of the one object that a file is, if it is a text; "" else. */
void kiln_container_member(struct kiln_str json, const char *name, char *to, size_t size);

#endif /* KILN_HOST_CONTAINERS_INT_H */
