/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each pointer leads to a function that looks all of them up and calls on, so that hooks need not
 * ask whether that was done.  Looking up twice at a time finds the same twice.
 */
#include "inproc/hook/next_thread.h"

#include <stdbool.h>
#include <stddef.h>

#include "inproc/hook/next_find.h"

struct name {
    const char *name, *version;
};

static const struct name names[] = {
#define X(member, name, version, parameters, arguments) {#name, version},
    KILN_IN_NEXT_THREAD_MAP(X)
#undef X
};
enum { N_NAMES = sizeof(names) / sizeof(names[0]) };

_Static_assert(sizeof(struct kiln_in_next_thread) == N_NAMES * sizeof(void *),
               "a pointer for each name");

static bool is_known;

static void look_up(void)
{
    void **pointers = (void **)&kiln_in_next_thread;

    for (size_t i = 0; i < N_NAMES; i++) {
        void *found = kiln_in_next_find(names[i].name, names[i].version);

        if (found)
            __atomic_store_n(&pointers[i], found, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&is_known, true, __ATOMIC_RELEASE);
}

#define X(member, name, version, parameters, arguments)                                            \
    static int first_##member parameters                                                           \
    {                                                                                              \
        look_up();                                                                                 \
        return kiln_in_next_thread.member arguments;                                               \
    }
KILN_IN_NEXT_THREAD_MAP(X)
#undef X

/* Before main(), and not from a handler that came first, unless somebody has called one by now. */
static __attribute__((constructor)) void look_up_early(void)
{
    if (!__atomic_load_n(&is_known, __ATOMIC_ACQUIRE))
        look_up();
}

struct kiln_in_next_thread kiln_in_next_thread = {
#define X(member, name, version, parameters, arguments) .member = first_##member,
    KILN_IN_NEXT_THREAD_MAP(X)
#undef X
};
