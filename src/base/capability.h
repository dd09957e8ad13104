/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capability - the kernel's capabilities of this thread as a set of bits, 1 << CAP_*, and giving
 * them up.
 *
 * Threads: capabilities are a thread's own, and inherited by those that it starts: who gives up
 * some for a process does so before there is another thread.
 */
#ifndef KILN_BASE_CAPABILITY_H
#define KILN_BASE_CAPABILITY_H

#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

#define KILN_CAP(number) (UINT64_C(1) << (number))

/* Those in effect; all where the kernel does not tell. */
uint64_t kiln_capabilities(void);

/* Makes these of the permitted capabilities effective; the call can be undone.  -EPERM: one is not
 * permitted. */
KILN_CHECK int kiln_capabilities_effect(uint64_t set);

/* No program that is started has others than these, as far as CAP_SETPCAP is there to say so. */
void kiln_capabilities_bound(uint64_t set);
/*
 * Gives up all but these, for good: also a program that is started does not get them back.  What is
 * not there is not kept either.
 */
KILN_CHECK int kiln_capabilities_keep(uint64_t set);

#endif /* KILN_BASE_CAPABILITY_H */
