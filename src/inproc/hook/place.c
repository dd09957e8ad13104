/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/hook/place.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "inproc/hook/next.h"
#include "inproc/hook/next_find.h"
#include "inproc/sample/places.h"
#include "inproc/start.h"
#include "inproc/thread/sandbox.h"
#include "inproc/thread/thread.h"

/*
 * Most small blocks have to be cleared anyway.  Memory that is fresh from the kernel is clear, and
 * not there before somebody writes to it: large blocks are not written to for our sake.
 */
enum { SMALL = 128 << 10, LARGE = 1 << 20 };

extern void *__libc_malloc(size_t size) __attribute__((weak));

static bool is_able; /* who is next is known not to mind */

/* ---- who is next ---- */

static bool is_jemalloc(void)
{
    const void *control = kiln_in_next_find("mallctl", NULL);
    void *allocator;

    memcpy(&allocator, &kiln_in_next.malloc, sizeof(allocator));
    return control && kiln_in_are_of_one_file(control, allocator);
}

void kiln_in_place_init(void)
{
    is_able = kiln_in_next.malloc == __libc_malloc || is_jemalloc();
}

/*
 * In a sandbox what is allocated may be there already, to the byte, because no more is to be had:
 * a place may need more, and the call for it the end of the process.
 */
static bool is_wanted(void)
{
    return is_able && kiln_in_is_running() && kiln_in_wants(KILN_PROFILE_HEAP) &&
           !kiln_in_line.hushed && !kiln_in_is_sandboxed();
}

/* ---- blocks ---- */

/* NULL: there is none to be had, and errno is as it was. */
static void *take(size_t size)
{
    int kept_errno = errno;
    void *block = kiln_in_next.memalign(KILN_IN_PLACE_STEP, size);

    if (!block)
        errno = kept_errno;
    return block;
}

/* Whether the block is a reason to take another one. */
static bool is_elsewhere(const void *block)
{
    return block && !kiln_in_is_placed(block) && is_wanted();
}

void *kiln_in_place_malloc(size_t size)
{
    void *block = is_wanted() ? take(size) : NULL;

    return block ? block : kiln_in_next.malloc(size);
}

static void *calloc_small(size_t bytes)
{
    void *placed = is_wanted() ? take(bytes) : NULL;

    return placed ? memset(placed, 0, bytes) : kiln_in_next.calloc(1, bytes);
}

void *kiln_in_place_calloc(size_t n, size_t size)
{
    void *block, *placed;

    if (n * size <= SMALL)
        return calloc_small(n * size);
    block = kiln_in_next.calloc(n, size);
    placed = n * size <= LARGE && is_elsewhere(block) ? take(n * size) : NULL;
    if (!placed)
        return block;
    kiln_in_next.free(block);
    return memset(placed, 0, n * size);
}

/*
 * A block that grows where it is stays at its place: it is copied once more only where the
 * allocator has just done so, or for the first time.
 */
void *kiln_in_place_realloc(void *block, size_t size)
{
    void *moved = kiln_in_next.realloc(block, size);
    void *placed = is_elsewhere(moved) ? take(size) : NULL;

    if (!placed)
        return moved;
    memcpy(placed, moved, size);
    kiln_in_next.free(moved);
    return placed;
}

/* What no allocator takes is left for it to refuse. */
size_t kiln_in_place_alignment(size_t alignment)
{
    bool valid = alignment >= sizeof(void *) && !(alignment & (alignment - 1));

    return valid && alignment < KILN_IN_PLACE_STEP && is_wanted() ? KILN_IN_PLACE_STEP : alignment;
}
