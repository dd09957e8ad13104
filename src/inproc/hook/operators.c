/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operator new and delete, all forms, for programs whose allocator has its own (jemalloc, tcmalloc,
 * mimalloc): those do not come by malloc() and free().  In a variant of the library that is
 * preloaded for such programs only: everywhere else the operators are libstdc++'s, which call
 * malloc(), and are best left alone.
 *
 * Who is next is looked for at the first call.  Where its operators are not of the same file as its
 * malloc() they are passed on without being counted; where there are none (libstdc++ came with a
 * plug-in, out of our sight) malloc() and free() do their work, and nothing can be thrown.
 *
 * Names are those of the Itanium C++ ABI: `nw` and `na` are new and new[], `dl` and `da` delete and
 * delete[]; `m` is a size, `St11align_val_t` an alignment, `RKSt9nothrow_t` a request not to throw.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "inproc/hook/next.h"
#include "inproc/hook/next_find.h"
#include "inproc/hook/next_pool.h"
#include "inproc/sample/alloc.h"
#include "inproc/sample/filter.h"

/* Each with what serves where there is none. */
#define NEW_MAP(X)                                                                                 \
    X(_Znwm, new_by_malloc)                                                                        \
    X(_Znam, new_by_malloc)                                                                        \
    X(_ZnwmRKSt9nothrow_t, try_by_malloc)                                                          \
    X(_ZnamRKSt9nothrow_t, try_by_malloc)                                                          \
    X(_ZnwmSt11align_val_t, new_by_memalign)                                                       \
    X(_ZnamSt11align_val_t, new_by_memalign)                                                       \
    X(_ZnwmSt11align_val_tRKSt9nothrow_t, try_by_memalign)                                         \
    X(_ZnamSt11align_val_tRKSt9nothrow_t, try_by_memalign)

#define DELETE_MAP(X)                                                                              \
    X(_ZdlPv)                                                                                      \
    X(_ZdaPv)                                                                                      \
    X(_ZdlPvm)                                                                                     \
    X(_ZdaPvm)                                                                                     \
    X(_ZdlPvRKSt9nothrow_t)                                                                        \
    X(_ZdaPvRKSt9nothrow_t)                                                                        \
    X(_ZdlPvSt11align_val_t)                                                                       \
    X(_ZdaPvSt11align_val_t)                                                                       \
    X(_ZdlPvmSt11align_val_t)                                                                      \
    X(_ZdaPvmSt11align_val_t)                                                                      \
    X(_ZdlPvSt11align_val_tRKSt9nothrow_t)                                                         \
    X(_ZdaPvSt11align_val_tRKSt9nothrow_t)

/* Forms with fewer arguments than these do not look at the others, which are passed nevertheless.
 */
struct operators {
#define X(name, otherwise) void *(*name)(size_t size, size_t second, const void *third);
    NEW_MAP(X)
#undef X
#define X(name) void (*name)(void *block, size_t second, size_t third);
    DELETE_MAP(X)
#undef X
};

static struct operators next;
static bool are_counted; /* they are the allocator's own */
static _Atomic bool is_known;

/* ---- where there are none ---- */

static void *try_by_malloc(size_t size, size_t second, const void *third)
{
    (void)second;
    (void)third;
    return kiln_in_next.malloc(size ? size : 1);
}

static void *try_by_memalign(size_t size, size_t alignment, const void *third)
{
    (void)third;
    return kiln_in_next.memalign(alignment, size ? size : 1);
}

static void *or_abort(void *block)
{
    if (!block)
        abort();
    return block;
}

static void *new_by_malloc(size_t size, size_t second, const void *third)
{
    return or_abort(try_by_malloc(size, second, third));
}

static void *new_by_memalign(size_t size, size_t alignment, const void *third)
{
    return or_abort(try_by_memalign(size, alignment, third));
}

static void delete_by_free(void *block, size_t second, size_t third)
{
    (void)second;
    (void)third;
    kiln_in_next.free(block);
}

/* ---- who is next ---- */

#define FIND(name, otherwise)                                                                      \
    do {                                                                                           \
        void *found = kiln_in_next_find(#name, NULL);                                              \
        next.name = (otherwise);                                                                   \
        if (found)                                                                                 \
            memcpy(&next.name, &found, sizeof(found));                                             \
    } while (0);

static void find_all(void)
{
    void *allocator, *operator_new;

    kiln_in_next_init();
#define X(name, otherwise) FIND(name, otherwise)
    NEW_MAP(X)
#undef X
#define X(name) FIND(name, delete_by_free)
    DELETE_MAP(X)
#undef X
    memcpy(&allocator, &kiln_in_next.malloc, sizeof(allocator));
    memcpy(&operator_new, &next._Znwm, sizeof(operator_new));
    are_counted = next._Znwm == new_by_malloc || kiln_in_are_of_one_file(allocator, operator_new);
    atomic_store_explicit(&is_known, true, memory_order_release);
}

static void know(void)
{
    if (!__builtin_expect(atomic_load_explicit(&is_known, memory_order_acquire), 1))
        find_all();
}

/* ---- hooks ---- */

/*
 * The call may throw, over our head: what was counted is taken back before, and counted again after
 * it.
 */
#define X(name, otherwise)                                                                         \
    KILN_IN_HOOK void *name(size_t size, size_t second, const void *third);                        \
    KILN_IN_SLOW static void *name##_slow(size_t size, size_t second, const void *third)           \
    {                                                                                              \
        void *block;                                                                               \
        kiln_in_alloc_begins(size);                                                                \
        block = next.name(size, second, third);                                                    \
        kiln_in_alloc_ends(block, size);                                                           \
        return block;                                                                              \
    }                                                                                              \
    KILN_IN_HOOK void *name(size_t size, size_t second, const void *third)                         \
    {                                                                                              \
        know();                                                                                    \
        if (!are_counted || kiln_in_alloc_passes(size))                                            \
            return next.name(size, second, third);                                                 \
        return name##_slow(size, second, third);                                                   \
    }
NEW_MAP(X)
#undef X

#define X(name)                                                                                    \
    KILN_IN_HOOK void name(void *block, size_t second, size_t third);                              \
    KILN_IN_SLOW static void name##_found(void *block, size_t second, size_t third)                \
    {                                                                                              \
        if (kiln_in_pool_has(block))                                                               \
            return;                                                                                \
        kiln_in_alloc_freed(block);                                                                \
        next.name(block, second, third);                                                           \
    }                                                                                              \
    KILN_IN_HOOK void name(void *block, size_t second, size_t third)                               \
    {                                                                                              \
        know();                                                                                    \
        if (kiln_in_filter_has(block))                                                             \
            name##_found(block, second, third);                                                    \
        else                                                                                       \
            next.name(block, second, third);                                                       \
    }
DELETE_MAP(X)
#undef X
