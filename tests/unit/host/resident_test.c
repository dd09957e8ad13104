/* SPDX-License-Identifier: Apache-2.0 */
#include "host/resident.h"

#include <sys/mman.h>
#include <unistd.h>

#include "test.h"

TEST(resident, memory_that_was_written_is_there_and_what_nobody_touched_is_not)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint32_t own = (uint32_t)getpid();
    uint8_t *at = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t address = (uint64_t)(uintptr_t)at;

    CHECK(at != MAP_FAILED);
    CHECK_OK(madvise(at, 3 * page, MADV_NOHUGEPAGE));
    at[0] = 1;
    CHECK(kiln_is_resident(own, address, page));
    CHECK(!kiln_is_resident(own, address + page, 1));
    CHECK(!kiln_is_resident(own, address + page - 8, 16));
    at[page] = 1;
    CHECK(kiln_is_resident(own, address + page - 8, 16));
    CHECK_OK(munmap(at, 3 * page));
    CHECK(!kiln_is_resident(own, address, 1));
}

TEST(resident, nothing_is_there_of_nobody_or_at_impossible_addresses)
{
    CHECK(!kiln_is_resident(UINT32_MAX, 0x1000, 8));
    CHECK(!kiln_is_resident((uint32_t)getpid(), UINT64_MAX - 4, 8));
    CHECK(!kiln_is_resident((uint32_t)getpid(), UINT64_C(1) << 63, 8));
    CHECK(!kiln_is_resident((uint32_t)getpid(), 0x1000, 0));
}
