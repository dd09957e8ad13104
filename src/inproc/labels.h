/* SPDX-License-Identifier: Apache-2.0 */
/*
 * labels - sets of labels that threads have: each different set once, known by a number.
 *
 * Sets are never forgotten, and limited in number and bytes.
 *
 * Threads: from anywhere but handlers of signals.
 */
#ifndef KILN_INPROC_LABELS_H
#define KILN_INPROC_LABELS_H

#include <stdint.h>

enum {
    KILN_IN_LABELS_MAX = 16,       /* of a set */
    KILN_IN_LABEL_BYTES = 255,     /* of a text */
    KILN_IN_LABEL_SETS = 4096,     /* different ones */
    KILN_IN_LABEL_MEMORY = 1 << 20 /* of all texts */
};

struct kiln_in_label {
    const char *key, *value;
};

/* The labels of a set, sorted by key; they stay where they are.  Returns their number. */
unsigned kiln_in_labels_get(uint16_t set, struct kiln_in_label ret_labels[KILN_IN_LABELS_MAX]);

/* The set that has all of `set` and this one.  A negative errno: there is no such. */
int kiln_in_labels_with(uint16_t set, const char *key, const char *value);
/* `key` NULL: all are gone. */
int kiln_in_labels_without(uint16_t set, const char *key);

/* In a forked child: nobody holds the lock. */
void kiln_in_labels_forked(void);

#endif /* KILN_INPROC_LABELS_H */
