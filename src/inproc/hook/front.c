/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the program calls our hooks at all: the linker gives everybody the first function of a
 * name, and where that is the C library's we have come too late.  Others may stand before us: they
 * pass calls on.
 */
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <stdint.h>

#include "inproc/hook/next_find.h"
#include "inproc/start.h"

bool kiln_in_is_in_front(void)
{
    const void *first = dlsym(RTLD_DEFAULT, "prctl");
    const void *libc = (const void *)(uintptr_t)gnu_get_libc_version;

    return !first || !kiln_in_are_of_one_file(first, libc);
}
