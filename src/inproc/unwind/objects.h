/* SPDX-License-Identifier: Apache-2.0 */
/*
 * objects - which code is where: objects of the loader and their tables, and code that was made at
 * run time.
 *
 * Objects that were there when the program began stay for ever: their tables are read where they
 * lie.  Others may be gone at any moment: the loader is asked at each miss, without its lock
 * (_dl_find_object), and their tables are copied by the kernel.  Where the loader cannot be asked,
 * and for code that belongs to no object, the keeper reads /proc/thread-self/maps when somebody
 * missed something.
 *
 * Threads: find and is_made from anywhere, handlers of signals included; work is the keeper's.
 */
#ifndef KILN_INPROC_UNWIND_OBJECTS_H
#define KILN_INPROC_UNWIND_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

enum { KILN_IN_STAYING_MAX = 512 }; /* objects that stay */

struct kiln_in_object {
    uint64_t start, end;
    uint64_t header;              /* address of .eh_frame_hdr; 0: it has none */
    uint64_t low, high;           /* of the segment that has it, where `stays` */
    uint64_t code_low, code_high; /* where `stays` */
    uint64_t identity;            /* another object at the same place has another one */
    uint32_t number;              /* among those that stay */
    bool stays;                   /* it cannot be unloaded */
    bool constant;                /* nor is that segment one to be written to */
    bool listed;                  /* or the keeper sees when it is: rules may be kept so long */
};

/* The object that has code at an address.  False: none, as far as it is known. */
bool kiln_in_object_find(uint64_t address, struct kiln_in_object *ret_object);
/* Whether the loader can be asked: then what belongs to no object is known at once. */
bool kiln_in_object_can_ask(void);
/* Whether an address is in code that belongs to no object.  If not, the keeper has a look. */
bool kiln_in_object_is_made(uint64_t address);

/* Code of this library, whose frames are nobody's business. */
extern uint64_t kiln_in_object_own_low __attribute__((visibility("hidden")));
extern uint64_t kiln_in_object_own_size __attribute__((visibility("hidden")));
/* Where the program begins, and where the stack of its first thread ends. */
extern uint64_t kiln_in_object_entry, kiln_in_object_stack_end;
/* Where the storage of that thread is, down to a multiple of eight; 0: it is not known. */
extern uint64_t kiln_in_object_main_pointer;

/* Whether those that can go are still there, and what is new.  True: rules are no longer true. */
bool kiln_in_object_work(void);

#endif /* KILN_INPROC_UNWIND_OBJECTS_H */
