/* SPDX-License-Identifier: Apache-2.0 */
/*
 * descriptor - passes an open descriptor, or the error why there is none, over a Unix socket
 * (SCM_RIGHTS), and closes many at once.
 *
 * Threads: no state.
 */
#ifndef KILN_BASE_DESCRIPTOR_H
#define KILN_BASE_DESCRIPTOR_H

#include "base/attr.h"

/* Sends `fd`, which stays open, or a negative errno in its place. */
KILN_CHECK int kiln_descriptor_send(int to, int fd);
/* The descriptor, with close-on-exec set, or the negative errno that was sent; -EPIPE: the other
 * end is gone, or sent something else. */
KILN_CHECK int kiln_descriptor_receive(int from);

/* Closes the open descriptors from `first` to `last`. */
KILN_CHECK int kiln_descriptors_close(unsigned first, unsigned last);

#endif /* KILN_BASE_DESCRIPTOR_H */
