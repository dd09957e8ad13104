/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc/PID/pagemap has 64 bits a page: bit 63, it is in memory; bit 62, it is in swap.  Reading it
 * brings no page in.
 */
#include "host/resident.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define THERE (UINT64_C(3) << 62)

bool kiln_is_resident(uint32_t pid, uint64_t address, size_t n)
{
    uint64_t size = (uint64_t)sysconf(_SC_PAGESIZE), entry = 0;
    uint64_t page = address / size, last = (address + n - 1) / size;
    bool there = n > 0 && last >= page;
    char name[32];
    int fd;

    snprintf(name, sizeof(name), "/proc/%u/pagemap", pid);
    fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    for (; there && page <= last; page++)
        there = pread(fd, &entry, sizeof(entry), (off_t)(page * sizeof(entry))) == sizeof(entry) &&
                (entry & THERE);
    close(fd);
    return there;
}
