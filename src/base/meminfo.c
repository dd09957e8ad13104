/* SPDX-License-Identifier: Apache-2.0 */
#include "base/meminfo.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = 4096 };

/* The beginning of a file as a text; false where it cannot be read. */
static bool read_text(const char *path, char text[TEXT_MAX])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, TEXT_MAX - 1);

    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

uint64_t kiln_meminfo_used(void)
{
    unsigned long long size, resident, shared;
    char text[TEXT_MAX];

    if (!read_text("/proc/self/statm", text) ||
        sscanf(text, "%llu %llu %llu", &size, &resident, &shared) != 3 || resident < shared)
        return 0;
    return (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The number in DIRECTORY/NAME; UINT64_MAX where there is none ("max"). */
static uint64_t limit_in(const char *directory, const char *name)
{
    char path[TEXT_MAX + 64], text[TEXT_MAX];
    unsigned long long limit;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    if (!read_text(path, text) || sscanf(text, "%llu", &limit) != 1)
        return UINT64_MAX;
    return limit;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The least that a group of v2 or one above it allows. */
static uint64_t group_limit(const char *group)
{
    uint64_t least = UINT64_MAX;
    char path[TEXT_MAX];

    snprintf(path, sizeof(path), "/sys/fs/cgroup%s", group);
    while (strlen(path) >= strlen("/sys/fs/cgroup")) {
        least = smaller(least, limit_in(path, "memory.max"));
        *strrchr(path, '/') = '\0';
    }
    return least;
}

uint64_t kiln_meminfo_total(void)
{
    uint64_t total = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    char text[TEXT_MAX];
    char *group, *end;

    if (read_text("/proc/self/cgroup", text) && (group = strstr(text, "0::"))) {
        group += strlen("0::");
        end = strchr(group, '\n');
        if (end)
            *end = '\0';
        total = smaller(total, group_limit(group));
    }
    /* Of v1, and of v2 where the group is the root of what this process sees. */
    total = smaller(total, limit_in("/sys/fs/cgroup/memory", "memory.limit_in_bytes"));
    return smaller(total, limit_in("/sys/fs/cgroup", "memory.max"));
}
