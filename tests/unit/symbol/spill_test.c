/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the test itself moves to a file, and is what it was.
 */
#include "symbol/spill.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/attr.h"
#include "test.h"

enum { BYTES = 1 << 20, ROOM = 256 << 20 };

static struct kiln_spill spill;

/* False: it cannot be tried here. */
static bool begin(void)
{
    spill = (struct kiln_spill){.scratch = memfd_create("scratch", MFD_CLOEXEC),
                                .maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC),
                                .pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC),
                                .end = ROOM,
                                .cut = 2 * (uint64_t)ROOM};
    return kiln_spill_open(&spill) == 0;
}

static void end(unsigned char *memory, size_t n)
{
    munmap(memory, n);
    close(spill.maps);
    close(spill.pagemap);
}

static unsigned char *draw(void)
{
    unsigned char *memory =
        mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(memory != MAP_FAILED);
    for (uint32_t i = 0; i < BYTES; i++)
        memory[i] = (unsigned char)(i * 7 + i / 4096);
    return memory;
}

static bool is_whole(const unsigned char *memory)
{
    for (uint32_t i = 0; i < BYTES; i++)
        if (memory[i] != (unsigned char)(i * 7 + i / 4096))
            return false;
    return true;
}

TEST(spill, memory_that_moved_is_what_it_was_and_can_be_written)
{
    unsigned char *memory = draw();

    if (!begin())
        skip();
    CHECK(kiln_spill(&spill) >= BYTES);
    CHECK(is_whole(memory));
    memory[4096] ^= 1;
    CHECK(!is_whole(memory));
    CHECK(kiln_spill(&spill) >= 4096);
    CHECK(!is_whole(memory));
    memory[4096] ^= 1;
    CHECK(is_whole(memory));
    end(memory, BYTES);
}

TEST(spill, memory_that_moved_can_grow)
{
    unsigned char *memory = draw();

    if (!begin())
        skip();
    CHECK(kiln_spill(&spill) >= BYTES);
    memory = mremap(memory, BYTES, 2 * (size_t)BYTES, MREMAP_MAYMOVE);
    CHECK(memory != MAP_FAILED);
    memset(memory + BYTES, 1, BYTES);
    CHECK(kiln_spill(&spill) >= BYTES);
    CHECK(is_whole(memory));
    CHECK_EQ(memory[2 * BYTES - 1], 1);
    end(memory, 2 * (size_t)BYTES);
}

TEST(spill, what_was_only_read_is_not_written_again)
{
    unsigned char *memory = draw();

    if (!begin())
        skip();
    CHECK(kiln_spill(&spill) >= BYTES);
    CHECK(is_whole(memory));
    CHECK(kiln_spill(&spill) < BYTES);
    CHECK(is_whole(memory));
    end(memory, BYTES);
}

TEST(spill, where_the_file_is_full_memory_stays)
{
    unsigned char *memory = draw();

    if (!begin())
        skip();
    spill.end = KILN_SPILL_LEAST / 2;
    CHECK_EQ(kiln_spill(&spill), 0);
    CHECK(is_whole(memory));
    end(memory, BYTES);
}
