/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files are ours is told by their names, and how old they are by when they were written; the
 * JSON goes with its profile.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "inproc/out/files_int.h"

enum { SCAN_MAX = 100000, REMOVED_AT_ONCE = 64 };

static const char prefix[] = KILN_SIDECAR_PREFIX, ending[] = ".pb.gz";

struct census {
    uint32_t n;
    uint64_t bytes;
    struct timespec oldest_at;
    char oldest[256]; /* its name; "": none */
};

static bool is_ours(const char *name)
{
    size_t n = strlen(name);

    return n < 256 && n > sizeof(prefix) + sizeof(ending) &&
           strncmp(name, prefix, sizeof(prefix) - 1) == 0 &&
           strcmp(name + n - (sizeof(ending) - 1), ending) == 0;
}

static bool is_older(const struct timespec *a, const char *a_name, const struct census *than)
{
    if (!than->oldest[0] || a->tv_sec != than->oldest_at.tv_sec)
        return !than->oldest[0] || a->tv_sec < than->oldest_at.tv_sec;
    if (a->tv_nsec != than->oldest_at.tv_nsec)
        return a->tv_nsec < than->oldest_at.tv_nsec;
    return strcmp(a_name, than->oldest) < 0;
}

static int take_census(const char *folder, struct census *ret)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    uint32_t seen = 0;

    *ret = (struct census){0};
    if (!dir)
        return -errno;
    while (seen++ < SCAN_MAX && (entry = readdir(dir))) {
        struct stat st;

        if (!is_ours(entry->d_name) ||
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(st.st_mode))
            continue;
        ret->n++;
        ret->bytes += (uint64_t)st.st_size;
        if (is_older(&st.st_mtim, entry->d_name, ret)) {
            ret->oldest_at = st.st_mtim;
            snprintf(ret->oldest, sizeof(ret->oldest), "%s", entry->d_name);
        }
    }
    closedir(dir);
    return 0;
}

static bool remove_both(struct kiln_in_files *files, const char *name)
{
    char path[KILN_IN_FILES_PATH + 300];
    int n = snprintf(path, sizeof(path), "%s/%s", files->folder, name);

    if (n < 0 || (size_t)n >= sizeof(path) || unlink(path) < 0)
        return false;
    snprintf(path + n - (sizeof(ending) - 1), sizeof(ending), ".json");
    (void)unlink(path);
    files->removed++;
    return true;
}

bool kiln_in_files_remove_oldest(struct kiln_in_files *files)
{
    struct census census;

    return take_census(files->folder, &census) == 0 && census.oldest[0] &&
           remove_both(files, census.oldest);
}

void kiln_in_files_rotate(struct kiln_in_files *files)
{
    uint32_t most = files->files_max ? files->files_max : KILN_IN_FILES_MAX;
    uint64_t bytes = files->bytes_max ? files->bytes_max : KILN_IN_FILES_BYTES;
    struct census census;

    for (int i = 0; i < REMOVED_AT_ONCE; i++) {
        if (take_census(files->folder, &census) < 0 ||
            (census.n <= most && census.bytes <= bytes) || !census.oldest[0] ||
            !remove_both(files, census.oldest))
            return;
    }
}
