/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Before each block lies its size, header included.  Small ones come in classes, four to each
 * doubling, cut from pieces that are mapped as they are needed, and go back to a list of their
 * class.  Large ones are mappings of their own, so that what an export takes is gone when it is
 * over, and a table that grows is moved by the kernel.
 *
 * A fork may come in the midst of it: the child forgets the lists and the piece that was being cut,
 * which are all that can be half done.
 */
#include "inproc/thread/heap.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "inproc/thread/map.h"

enum {
    STEP = 16,
    SMALL_MAX = 32 << 10, /* header included */
    PIECE = 128 << 10,
    PAGE = 4096,
    CLASSES = 64
};

struct block {
    size_t size;
    struct block *next; /* in its list; of a block in use, nothing */
};

_Static_assert(sizeof(struct block) == STEP, "what follows is aligned");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *lists[CLASSES];
static char *piece;
static size_t piece_left;

static struct block *block_of(const void *data)
{
    return (struct block *)((uintptr_t)data - sizeof(struct block));
}

/* ---- sizes ---- */

/* Sizes up to 128 are multiples of 16; above them, four to each doubling. */
static unsigned class_of(size_t size, size_t *ret_rounded)
{
    size_t step = STEP;
    unsigned class = 0;

    while (size > 8 * step) {
        step *= 2;
        class += 4;
    }
    *ret_rounded = (size + step - 1) & ~(step - 1);
    return class + (unsigned)(*ret_rounded / step) - 1;
}

static size_t whole_pages(size_t size)
{
    return (size + PAGE - 1) & ~(size_t)(PAGE - 1);
}

/* ---- taking and giving ---- */

/* What is left of a piece that is too short for a block is not used. */
static struct block *cut(size_t size)
{
    struct block *block;

    if (piece_left < size) {
        piece = kiln_in_map(PIECE);
        piece_left = piece ? PIECE : 0;
        if (!piece)
            return NULL;
    }
    block = (struct block *)(void *)piece;
    piece += size;
    piece_left -= size;
    block->size = size;
    return block;
}

static struct block *take_small(size_t size)
{
    unsigned class = class_of(size, &size);
    struct block *block;

    pthread_mutex_lock(&lock);
    block = lists[class];
    if (block)
        lists[class] = block->next;
    else
        block = cut(size);
    pthread_mutex_unlock(&lock);
    return block;
}

static struct block *take_large(size_t size)
{
    struct block *block;

    size = whole_pages(size);
    block = kiln_in_map(size);
    if (block)
        block->size = size;
    return block;
}

void *kiln_in_heap_take(size_t size)
{
    struct block *block = NULL;

    if (size < PTRDIFF_MAX - PAGE) {
        size += sizeof(*block);
        block = size > SMALL_MAX ? take_large(size) : take_small(size);
    }
    if (!block)
        errno = ENOMEM;
    return block ? block + 1 : NULL;
}

/* What is mapped is zero, and not touched before it is used. */
void *kiln_in_heap_take_zeroed(size_t size)
{
    void *data = kiln_in_heap_take(size);

    if (data && block_of(data)->size <= SMALL_MAX)
        memset(data, 0, size);
    return data;
}

void kiln_in_heap_give(void *data)
{
    struct block *block = block_of(data);
    size_t rounded;
    unsigned class;

    if (!data)
        return;
    if (block->size > SMALL_MAX) {
        kiln_in_unmap(block, block->size);
        return;
    }
    class = class_of(block->size, &rounded);
    pthread_mutex_lock(&lock);
    block->next = lists[class];
    lists[class] = block;
    pthread_mutex_unlock(&lock);
}

size_t kiln_in_heap_size(const void *data)
{
    return data ? block_of(data)->size - sizeof(struct block) : 0;
}

/* ---- resizing ---- */

static void *resize_large(struct block *block, size_t size)
{
    size = whole_pages(size);
    if (size != block->size) {
        block = mremap(block, block->size, size, MREMAP_MAYMOVE);
        if (block == MAP_FAILED)
            return NULL; /* and errno says why */
        block->size = size;
    }
    return block + 1;
}

void *kiln_in_heap_resize(void *data, size_t size)
{
    size_t before = kiln_in_heap_size(data);
    void *moved;

    if (data && before >= SMALL_MAX && size >= SMALL_MAX && size < PTRDIFF_MAX - PAGE)
        return resize_large(block_of(data), size + sizeof(struct block));
    if (data && before >= size && before / 2 <= size)
        return data;
    moved = kiln_in_heap_take(size);
    if (moved && data) {
        memcpy(moved, data, before < size ? before : size);
        kiln_in_heap_give(data);
    }
    return moved;
}

void kiln_in_heap_forked(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    lock = fresh;
    memset(lists, 0, sizeof(lists));
    piece_left = 0;
}
