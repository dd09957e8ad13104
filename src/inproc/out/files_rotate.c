/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files are ours is told by their names, and how old they are by when they were written; the
 * JSON goes with its profile.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "inproc/out/files_int.h"
#include "inproc/thread/numbers.h"

enum { SCAN_MAX = 100000, REMOVED_AT_ONCE = 64 };

static const char prefix[] = KILN_SIDECAR_PREFIX, ending[] = ".pb.gz";

struct census {
    uint32_t seen, n;
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

static bool count_one(int folder, const char *name, void *arg)
{
    struct census *census = arg;
    struct stat st;

    if (is_ours(name) && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(st.st_mode)) {
        census->n++;
        census->bytes += (uint64_t)st.st_size;
        if (is_older(&st.st_mtim, name, census)) {
            census->oldest_at = st.st_mtim;
            snprintf(census->oldest, sizeof(census->oldest), "%s", name);
        }
    }
    return ++census->seen < SCAN_MAX;
}

static int take_census(const char *folder, struct census *ret)
{
    *ret = (struct census){0};
    return kiln_in_entries_each(folder, count_one, ret);
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
