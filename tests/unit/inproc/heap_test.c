/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/thread/heap.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "test.h"

enum { BLOCKS = 300, TURNS = 20000, THREADS = 4 };

struct shadow {
    unsigned char *block;
    size_t size;
    unsigned char byte;
};

static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* Up to this many bits; mostly fewer. */
static unsigned bits;

static size_t random_size(uint32_t *state)
{
    return next_random(state) >> (next_random(state) % bits + 32 - bits);
}

static bool is_whole(const struct shadow *shadow, size_t size)
{
    for (size_t i = 0; i < size; i += 61)
        if (shadow->block[i] != shadow->byte)
            return false;
    return true;
}

static void fill(struct shadow *shadow, size_t size, uint32_t *state)
{
    shadow->size = size;
    shadow->byte = (unsigned char)next_random(state);
    memset(shadow->block, shadow->byte, size);
}

static bool take_or_give(struct shadow *shadow, uint32_t *state)
{
    size_t size = random_size(state);
    bool good = !shadow->block || is_whole(shadow, shadow->size);

    if (shadow->block && next_random(state) % 2) {
        kiln_in_heap_give(shadow->block);
        *shadow = (struct shadow){0};
        return good;
    }
    shadow->block = kiln_in_heap_resize(shadow->block, size);
    good = good && shadow->block && (uintptr_t)shadow->block % 16 == 0 &&
           kiln_in_heap_size(shadow->block) >= size &&
           is_whole(shadow, shadow->size < size ? shadow->size : size);
    fill(shadow, size, state);
    return good;
}

static void *churn(void *seed)
{
    struct shadow shadows[BLOCKS] = {0};
    uint32_t state = (uint32_t)(uintptr_t)seed;
    bool good = true;

    for (int i = 0; i < TURNS; i++)
        good = take_or_give(&shadows[next_random(&state) % BLOCKS], &state) && good;
    for (int i = 0; i < BLOCKS; i++)
        kiln_in_heap_give(shadows[i].block);
    return good ? seed : NULL;
}

/* As large as tables are. */
TEST(heap, blocks_are_whole)
{
    bits = 20;
    CHECK(churn((void *)5) != NULL);
}

/* Small ones: ThreadSanitizer does not see that a mapping is gone, and takes the next for the same.
 */
TEST(heap, blocks_are_whole_whoever_else_takes_some)
{
    pthread_t threads[THREADS];

    bits = 14;
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK_OK(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)));
    for (int i = 0; i < THREADS; i++) {
        void *good = NULL;

        CHECK_OK(pthread_join(threads[i], &good));
        CHECK(good != NULL);
    }
}

TEST(heap, what_was_given_back_is_used_again)
{
    for (size_t size = 0; size < 32000; size = size * 5 / 4 + 1) {
        void *first = kiln_in_heap_take(size), *second;

        kiln_in_heap_give(first);
        second = kiln_in_heap_take(size);
        CHECK(first == second);
        kiln_in_heap_give(second);
    }
}

TEST(heap, what_nobody_has_is_refused)
{
    void *block = kiln_in_heap_take(100000);

    errno = 0;
    CHECK(kiln_in_heap_take(SIZE_MAX - 8) == NULL);
    CHECK_EQ(errno, ENOMEM);
    CHECK(kiln_in_heap_resize(block, SIZE_MAX - 8) == NULL);
    CHECK(kiln_in_heap_resize(block, PTRDIFF_MAX / 2) == NULL);
    CHECK(kiln_in_heap_size(block) >= 100000);
    kiln_in_heap_give(block);
    kiln_in_heap_give(NULL);
}

TEST(heap, a_forked_child_keeps_its_blocks_and_begins_anew)
{
    struct shadow before = {.block = kiln_in_heap_take(5000)};
    void *freed = kiln_in_heap_take(5000), *later;
    uint32_t seed = 9;

    fill(&before, 5000, &seed);
    kiln_in_heap_give(freed);
    kiln_in_heap_forked();
    later = kiln_in_heap_take(5000);
    CHECK(later && later != freed && later != before.block);
    CHECK(is_whole(&before, before.size));
    kiln_in_heap_give(before.block);
    CHECK(kiln_in_heap_take(5000) == before.block);
    kiln_in_heap_give(before.block);
    kiln_in_heap_give(later);
}
