/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared_keys - series keys that open blocks have in common, each kept once in the process: with
 * 200,000 series, keys of their own would take 15 MB in each block.
 *
 * Threads: safe from anywhere; a short lock.
 */
#ifndef KILN_STORE_SHARED_KEYS_H
#define KILN_STORE_SHARED_KEYS_H

#include "base/attr.h"
#include "base/str.h"

/* A reference to the kept copy; .ptr is NULL where there is no memory. */
struct kiln_str kiln_shared_key_get(struct kiln_str key);
/* Gives such a reference back. */
void kiln_shared_key_put(struct kiln_str key);

#endif /* KILN_STORE_SHARED_KEYS_H */
