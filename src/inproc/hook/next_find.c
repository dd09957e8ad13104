/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlsym() looks at where it was called from to know what "next" means: it must be a call, never the
 * jump that compilers make of one at the end of a function.
 */
#include "inproc/hook/next_find.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#include "inproc/unwind/objects_int.h"

static void *find(void *where, const char *name, const char *version)
{
    void *found = version ? dlvsym(where, name, version) : NULL;

    if (!found)
        found = dlsym(where, name);
    __asm__ volatile("" : "+r"(found));
    return found;
}

/* dladdr() also looks for the nearest of all the file's symbols. */
bool kiln_in_are_of_one_file(const void *a, const void *b)
{
    struct kiln_in_object object_a, object_b;
    Dl_info file_a, file_b;

    if (kiln_in_object_ask((uintptr_t)a, &object_a) && kiln_in_object_ask((uintptr_t)b, &object_b))
        return object_a.identity == object_b.identity;
    return dladdr(a, &file_a) && dladdr(b, &file_b) && file_a.dli_fbase == file_b.dli_fbase;
}

/* It has this one in any case. */
static bool is_libc_first(void)
{
    return !find(RTLD_NEXT, "prctl", NULL);
}

void *kiln_in_next_find(const char *name, const char *version)
{
    static const char own;
    void *found = find(RTLD_NEXT, name, version);

    if (found || !is_libc_first())
        return found;
    found = find(RTLD_DEFAULT, name, version);
    return found && !kiln_in_are_of_one_file(found, &own) ? found : NULL;
}
