/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/thread/numbers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BUFFER = 4096 };

/* As getdents64() writes it. */
struct entry {
    uint64_t inode;
    int64_t next;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

static bool each_in(int folder, const char *buffer, long n, kiln_in_entry_fn *look, void *arg)
{
    for (long at = 0; at < n;) {
        const struct entry *entry = (const struct entry *)(buffer + at);

        at += entry->bytes;
        if (entry->name[0] != '.' && !look(folder, entry->name, arg))
            return false;
    }
    return true;
}

int kiln_in_entries_each(const char *path, kiln_in_entry_fn *look, void *arg)
{
    char buffer[BUFFER] __attribute__((aligned(8)));
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long n;

    if (folder < 0)
        return -errno;
    do
        n = syscall(SYS_getdents64, folder, buffer, sizeof(buffer));
    while (n > 0 && each_in(folder, buffer, n, look, arg));
    n = n < 0 ? -errno : 0;
    close(folder);
    return (int)n;
}

struct numbers {
    kiln_in_number_fn *look;
    void *arg;
};

static bool look_at_number(int folder, const char *name, void *arg)
{
    const struct numbers *numbers = arg;

    return numbers->look(folder, (int32_t)strtol(name, NULL, 10), numbers->arg);
}

int kiln_in_numbers_each(const char *path, kiln_in_number_fn *look, void *arg)
{
    return kiln_in_entries_each(path, look_at_number, &(struct numbers){look, arg});
}
