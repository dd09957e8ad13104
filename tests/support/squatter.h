/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process of another user that listens on a Unix socket, and counts the bytes it gets.
 *
 * Threads: one.
 */
#ifndef KILN_TESTS_SQUATTER_H
#define KILN_TESTS_SQUATTER_H

#include <stddef.h>
#include <sys/types.h>

struct squatter {
    pid_t pid;
    int control, report;
};

enum { SQUATTER_UID = 65534 };

/* Listens when it returns. Only root can do this. */
void squatter_start(struct squatter *s, const char *path);

/* Ends it; returns how many bytes came, of all connections. */
size_t squatter_stop(struct squatter *s);

#endif /* KILN_TESTS_SQUATTER_H */
