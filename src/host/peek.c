/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc/PID/pagemap has 64 bits a page: bit 63 says that it is in memory, bit 62 that it is in the
 * swap.
 */
#include "host/peek.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

#define PAGE_THERE (UINT64_C(3) << 62)

void kiln_peek_close(struct kiln_peek *peek)
{
    if (peek->mem >= 0)
        close(peek->mem);
    if (peek->pagemap >= 0)
        close(peek->pagemap);
}

int kiln_peek_open(int dir, struct kiln_peek *ret_peek)
{
    struct kiln_peek peek = {openat(dir, "mem", O_RDONLY | O_CLOEXEC | O_NOFOLLOW), -1};
    int r = peek.mem < 0 ? -errno : 0;

    if (r == 0) {
        peek.pagemap = openat(dir, "pagemap", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        r = peek.pagemap < 0 ? -errno : 0;
    }
    if (r < 0) {
        kiln_peek_close(&peek);
        return r;
    }
    *ret_peek = peek;
    return 0;
}

static bool is_there(const struct kiln_peek *peek, uint64_t address, uint64_t size)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), entry;

    if (address + size < address || address + size > INT64_MAX)
        return false;
    for (uint64_t at = address / page; at <= (address + size - 1) / page; at++) {
        if (pread(peek->pagemap, &entry, sizeof(entry), (off_t)(at * sizeof(entry))) !=
                sizeof(entry) ||
            !(entry & PAGE_THERE))
            return false;
    }
    return true;
}

int kiln_peek(const struct kiln_peek *peek, uint64_t address, void *to, size_t size)
{
    if (!is_there(peek, address, size))
        return -EFAULT;
    return pread(peek->mem, to, size, (off_t)address) == (ssize_t)size ? 0 : -EFAULT;
}
