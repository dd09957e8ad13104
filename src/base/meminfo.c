/* SPDX-License-Identifier: Apache-2.0 */
#include "base/meminfo.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_SIZE = 8192, PATH_SIZE = 4096 };

/* The beginning of a file; false if it cannot be read or is empty. */
static bool read_text(const char *path, char text[TEXT_SIZE])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, TEXT_SIZE - 1);

    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

uint64_t kiln_meminfo_used(void)
{
    unsigned long long size, resident, shared;
    char text[TEXT_SIZE];

    if (!read_text("/proc/self/statm", text) ||
        sscanf(text, "%llu %llu %llu", &size, &resident, &shared) != 3 || resident < shared)
        return 0;
    return (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The number in DIRECTORY/NAME; UINT64_MAX if the file is missing or says "max". */
static uint64_t limit_in(const char *directory, const char *name)
{
    char path[PATH_SIZE + 64], text[TEXT_SIZE];
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

/* Every file that limits a group: v2 throttles above memory.high and kills above memory.max. */
static uint64_t limit_of(const char *directory)
{
    uint64_t limit = limit_in(directory, "memory.limit_in_bytes");

    limit = smaller(limit, limit_in(directory, "memory.high"));
    return smaller(limit, limit_in(directory, "memory.max"));
}

/*
 * The lowest limit of GROUP and its ancestors below MOUNT. In a container, the mount often shows
 * the container's own group while /proc still has the path on the host: the folders that do not
 * exist have no limit, and the last step reads the mount itself.
 */
static uint64_t limit_below(const char *mount, const char *group)
{
    uint64_t least = UINT64_MAX;
    char path[PATH_SIZE];

    snprintf(path, sizeof(path), "%s%s", mount, group);
    while (strlen(path) >= strlen(mount)) {
        least = smaller(least, limit_of(path));
        *strrchr(path, '/') = '\0';
    }
    return least;
}

/* A line of /proc/self/cgroup: "0::/GROUP" (v2) or "NUMBER:CONTROLLERS:/GROUP" (v1). */
static uint64_t limit_of_line(const char *sys, char *line)
{
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    char mount[PATH_SIZE / 2];
    uint64_t limit;

    if (!group || group[1] != '/' || strlen(group + 1) >= PATH_SIZE / 2)
        return UINT64_MAX;
    controllers++;
    *group++ = '\0';
    if (!*controllers) {
        snprintf(mount, sizeof(mount), "%s/unified", sys); /* the hybrid layout */
        limit = limit_below(mount, group);
        return smaller(limit, limit_below(sys, group));
    }
    for (char *save, *name = strtok_r(controllers, ",", &save); name;
         name = strtok_r(NULL, ",", &save))
        if (!strcmp(name, "memory")) {
            snprintf(mount, sizeof(mount), "%s/memory", sys);
            return limit_below(mount, group);
        }
    return UINT64_MAX;
}

uint64_t kiln_meminfo_group_limit(const char *proc, const char *sys)
{
    char path[PATH_SIZE], mount[PATH_SIZE], text[TEXT_SIZE];
    uint64_t least = limit_of(sys); /* correct in a container whose /proc is hidden */

    snprintf(mount, sizeof(mount), "%s/memory", sys);
    least = smaller(least, limit_of(mount));
    snprintf(path, sizeof(path), "%s/self/cgroup", proc);
    if (!read_text(path, text))
        return least;
    for (char *save, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        least = smaller(least, limit_of_line(sys, line));
    return least;
}

uint64_t kiln_meminfo_total(void)
{
    uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

    return smaller(machine, kiln_meminfo_group_limit("/proc", "/sys/fs/cgroup"));
}
