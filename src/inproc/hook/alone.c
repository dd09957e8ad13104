/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who a process is, and what it may do, is known of each thread by the kernel; the C library has
 * all threads change together, and ends the process where one of them may and another may not.  And
 * only a process of one thread may enter another namespace of users or of mounts.  A program that
 * has one thread counts on that: ours are away while it does such things, and come back as who it
 * is then.
 */
#include <kiln.h>

#include "inproc/hook/next_calls.h"
#include "inproc/start.h"
#include "inproc/thread/visit.h"

#define X(type, name, parameters, arguments)                                                       \
    KILN_API type name parameters;                                                                 \
    type name parameters                                                                           \
    {                                                                                              \
        if (!kiln_in_is_inside())                                                                  \
            kiln_in_start_rest();                                                                  \
        return kiln_in_next_calls.name arguments;                                                  \
    }
KILN_IN_ALONE_MAP(X)
#undef X
