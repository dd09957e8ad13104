/* SPDX-License-Identifier: Apache-2.0 */
/*
 * objects_int - what the files of objects share.
 *
 *   objects.c   what the loader knows
 *   maps.c      what the kernel knows: /proc/thread-self/maps
 *
 * Threads: asking and entering from anywhere, the rest is the keeper's.
 */
#ifndef KILN_INPROC_UNWIND_OBJECTS_INT_H
#define KILN_INPROC_UNWIND_OBJECTS_INT_H

#include <stdatomic.h>

#include "inproc/unwind/objects.h"

enum { KILN_IN_GUESTS_MAX = 256 };

/* An object that may go.  start 0: nobody, 1: somebody fills it in. */
struct kiln_in_guest {
    _Atomic uint64_t start, end, header, identity;
};
extern struct kiln_in_guest kiln_in_guests[KILN_IN_GUESTS_MAX];

/* True: it is in the list.  False: there is no room, and nobody would see it leave. */
bool kiln_in_guest_enter(const struct kiln_in_object *object);
/* Strikes out those that are not here any more; true: there were some. */
bool kiln_in_guests_check(bool (*is_here)(const struct kiln_in_object *guest));

/* What the loader says. */
bool kiln_in_object_ask(uint64_t address, struct kiln_in_object *ret_object);
bool kiln_in_object_is_loaded(const struct kiln_in_object *guest);

#endif /* KILN_INPROC_UNWIND_OBJECTS_INT_H */
