/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/sample/places.h"

#include <pthread.h>

#include "test.h"

static bool is_place(uint64_t address)
{
    return kiln_in_is_place((const void *)(uintptr_t)address);
}

TEST(places, are_multiples_of_their_step_and_what_begins_behind_a_page)
{
    const uint64_t base = 0x7f0000000000;
    int places = 0;

    for (uint64_t at = 0; at < 1 << 16; at += 16) {
        bool is = at % KILN_IN_PLACE_STEP == 0 || at % KILN_IN_PLACE_STEP == 16;

        CHECK_EQ(is_place(base + at), is);
        places += is;
    }
    CHECK_EQ(places, 2 * (1 << 16) / KILN_IN_PLACE_STEP);
}

TEST(places, are_everywhere_while_there_is_a_block_elsewhere)
{
    kiln_in_places_add(0x7f0000000400); /* at one */
    CHECK(!is_place(0x7f0000000420));
    kiln_in_places_add(0x7f0000000420);
    kiln_in_places_add(0x7f0000000430);
    CHECK(is_place(0x7f0000000550));
    kiln_in_places_remove(0x7f0000000420);
    CHECK(is_place(0x7f0000000550));
    kiln_in_places_remove(0x7f0000000430);
    CHECK(!is_place(0x7f0000000550));
    kiln_in_places_remove(0x7f0000000400);
    CHECK(!is_place(0x7f0000000550));
}

enum { THREADS = 4, TURNS = 100000 };

static void *come_and_go(void *address)
{
    uint64_t own = (uint64_t)(uintptr_t)address;

    for (int i = 0; i < TURNS; i++) {
        kiln_in_places_add(own);
        if (!is_place(own))
            return address;
        kiln_in_places_remove(own);
    }
    return NULL;
}

TEST(places, are_known_to_all_threads_for_as_long_as_one_has_a_block_elsewhere)
{
    pthread_t threads[THREADS];
    void *failed;

    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK_OK(pthread_create(&threads[i], NULL, come_and_go, (void *)(0x1020 + 64 * i)));
    for (int i = 0; i < THREADS; i++) {
        CHECK_OK(pthread_join(threads[i], &failed));
        CHECK(!failed);
    }
    CHECK(!is_place(0x1020));
}
