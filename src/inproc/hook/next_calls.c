/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each pointer leads to a function that looks all of them up and calls on, so that hooks need not
 * ask whether that was done.  Looking up twice at a time finds the same twice.
 */
#include "inproc/hook/next_calls.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "inproc/hook/next_find.h"

static const char *const names[] = {
#define X(type, name, parameters, arguments) #name,
    KILN_IN_CALL_MAP(X)
#undef X
};
enum { N_NAMES = sizeof(names) / sizeof(names[0]) };

_Static_assert(sizeof(struct kiln_in_next_calls) == N_NAMES * sizeof(void *),
               "a pointer for each name");

/* What an older libc does not have is not called by programs that were made for it. */
static int missing(void)
{
    errno = ENOSYS;
    return -1;
}
static int (*const missing_call)(void) = missing;

static bool is_known;

static void look_up(void)
{
    void **pointers = (void **)&kiln_in_next_calls;
    int kept = errno;

    for (size_t i = 0; i < N_NAMES; i++) {
        void *found = kiln_in_next_find(names[i], NULL);

        if (!found)
            memcpy(&found, &missing_call, sizeof(found));
        __atomic_store_n(&pointers[i], found, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&is_known, true, __ATOMIC_RELEASE);
    errno = kept;
}

#define X(type, name, parameters, arguments)                                                       \
    static type first_##name parameters                                                            \
    {                                                                                              \
        look_up();                                                                                 \
        return kiln_in_next_calls.name arguments;                                                  \
    }
KILN_IN_CALL_MAP(X)
#undef X

struct kiln_in_next_calls kiln_in_next_calls = {
#define X(type, name, parameters, arguments) .name = first_##name,
    KILN_IN_CALL_MAP(X)
#undef X
};

/* Before main(), and not from a handler that came first, unless somebody has called one by now. */
static __attribute__((constructor)) void look_up_early(void)
{
    if (!__atomic_load_n(&is_known, __ATOMIC_ACQUIRE))
        look_up();
}
