/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of /proc/PID/maps that are code of a file:
 *
 *   7f0000001000-7f0000002000 r-xp 00001000 08:01 1234     /usr/lib/libc.so.6
 */
#include "naming/local.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/mem.h"
#include "core/frame.h"
#include "naming/debug_file.h"

enum { LINES_MAX = 65536, WANTED_MAX = 512 };

struct local_file {
    char build_id[KILN_DEBUG_ID_MAX + 1]; /* "": nobody */
    int fd;
};

struct kiln_local_files {
    pthread_mutex_t lock;
    struct local_file items[KILN_LOCAL_FILES_MAX];
    uint32_t next; /* whose place is taken next */
    uint64_t kept; /* so far */
};

int kiln_local_files_new(struct kiln_local_files **ret_files)
{
    struct kiln_local_files *files = kiln_calloc(1, sizeof(*files));

    if (!files)
        return -ENOMEM;
    pthread_mutex_init(&files->lock, NULL);
    *ret_files = files;
    return 0;
}

void kiln_local_files_free(struct kiln_local_files *files)
{
    if (!files)
        return;
    for (uint32_t i = 0; i < KILN_LOCAL_FILES_MAX; i++)
        if (files->items[i].build_id[0])
            close(files->items[i].fd);
    pthread_mutex_destroy(&files->lock);
    kiln_free(files);
}

/* ---- what is kept; with the lock ---- */

static struct local_file *find(struct kiln_local_files *files, struct kiln_str build_id)
{
    for (uint32_t i = 0; build_id.len && i < KILN_LOCAL_FILES_MAX; i++)
        if (kiln_str_eq(kiln_str_of(files->items[i].build_id), build_id))
            return &files->items[i];
    return NULL;
}

static void keep(struct kiln_local_files *files, struct kiln_str build_id, int fd)
{
    struct local_file *place = &files->items[files->next];

    files->next = (files->next + 1) % KILN_LOCAL_FILES_MAX;
    if (place->build_id[0])
        close(place->fd);
    snprintf(place->build_id, sizeof(place->build_id), "%.*s", KILN_STR_ARG(build_id));
    place->fd = fd;
    files->kept++;
}

uint64_t kiln_local_files_kept(struct kiln_local_files *files)
{
    uint64_t n;

    pthread_mutex_lock(&files->lock);
    n = files->kept;
    pthread_mutex_unlock(&files->lock);
    return n;
}

int kiln_local_files_get(struct kiln_local_files *files, struct kiln_str build_id, int *ret_fd)
{
    const struct local_file *found;
    int fd = -ENOENT;

    pthread_mutex_lock(&files->lock);
    found = find(files, build_id);
    if (found)
        fd = fcntl(found->fd, F_DUPFD_CLOEXEC, 0);
    pthread_mutex_unlock(&files->lock);
    if (fd < 0)
        return fd == -ENOENT ? fd : -errno;
    *ret_fd = fd;
    return 0;
}

/* ---- a process ---- */

static FILE *open_maps(pid_t pid)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    return pid > 0 ? fopen(path, "re") : NULL;
}

bool kiln_local_files_can(pid_t pid)
{
    char path[64];
    FILE *maps = open_maps(pid);
    bool can = maps && fgetc(maps) != EOF;

    if (maps)
        fclose(maps);
    snprintf(path, sizeof(path), "/proc/%d/root/", (int)pid);
    return can && access(path, X_OK) == 0;
}

/* What is mapped there: as the kernel has it, else by its path in the process' own root. */
static int open_mapped(pid_t pid, unsigned long start, unsigned long end, const char *path)
{
    char text[96];
    struct stat st;
    int fd, root;

    snprintf(text, sizeof(text), "/proc/%d/map_files/%lx-%lx", (int)pid, start, end);
    fd = open(text, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0)
        return fd;
    snprintf(text, sizeof(text), "/proc/%d/root", (int)pid);
    root = open(text, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return -errno;
    fd = kiln_open_beneath(root, path, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS, &st);
    close(root);
    return fd;
}

/* ---- what a batch lacks ---- */

struct wanted {
    struct kiln_str ids[WANTED_MAX];
    uint32_t n;
};

static void want(struct wanted *wanted, struct kiln_str build_id)
{
    if (!build_id.len || build_id.len > KILN_DEBUG_ID_MAX || wanted->n == WANTED_MAX)
        return;
    for (uint32_t i = 0; i < wanted->n; i++)
        if (kiln_str_eq(wanted->ids[i], build_id))
            return;
    wanted->ids[wanted->n++] = build_id;
}

/* Build ids of mappings that have a location without a name, and that nobody has given yet. */
static int collect(struct kiln_local_files *files, const struct kiln_batch *batch,
                   struct wanted *wanted)
{
    const struct kiln_dict *d = &batch->dict;
    uint8_t *lacks = kiln_calloc(d->n_mappings + 1, 1);

    if (!lacks)
        return -ENOMEM;
    for (uint32_t i = 1; i < d->n_locations; i++)
        if (kiln_frame_lacks_name(d, &d->locations[i]))
            lacks[d->locations[i].mapping] = 1;
    pthread_mutex_lock(&files->lock);
    for (uint32_t i = 1; i < d->n_mappings; i++) {
        struct kiln_str id = kiln_frame_build_id(batch, d->mappings[i].attrs);

        if (lacks[i] && !find(files, id))
            want(wanted, id);
    }
    pthread_mutex_unlock(&files->lock);
    kiln_free(lacks);
    return 0;
}

/* Keeps the file if it is a wanted one, which is wanted no longer then; else it is closed. */
static void take(struct kiln_local_files *files, int fd, struct wanted *wanted)
{
    struct kiln_debug_facts facts;
    struct kiln_bytes bytes;

    if (kiln_bytes_file(fd, &bytes) < 0 || kiln_debug_inspect(&bytes, &facts, NULL) < 0) {
        close(fd);
        return;
    }
    for (uint32_t i = 0; i < wanted->n; i++) {
        if (!kiln_debug_facts_match(&facts, wanted->ids[i]))
            continue;
        pthread_mutex_lock(&files->lock);
        if (find(files, wanted->ids[i]))
            close(fd);
        else
            keep(files, wanted->ids[i], fd);
        pthread_mutex_unlock(&files->lock);
        wanted->ids[i] = wanted->ids[--wanted->n];
        return;
    }
    close(fd);
}

void kiln_local_files_note(struct kiln_local_files *files, pid_t pid,
                           const struct kiln_batch *batch)
{
    struct wanted wanted = {.n = 0};
    char line[4352];
    FILE *maps;

    if (collect(files, batch, &wanted) < 0 || !wanted.n)
        return;
    maps = open_maps(pid);
    for (uint32_t n = 0; maps && wanted.n && n < LINES_MAX && fgets(line, sizeof(line), maps);
         n++) {
        unsigned long start, end;
        char flags[5];
        int at = 0, fd;

        if (sscanf(line, "%lx-%lx %4s %*x %*x:%*x %*u %n", &start, &end, flags, &at) < 3 || !at ||
            flags[2] != 'x' || line[at] != '/')
            continue;
        line[strcspn(line, "\n")] = '\0';
        fd = open_mapped(pid, start, end, line + at);
        if (fd >= 0)
            take(files, fd, &wanted);
    }
    if (maps)
        fclose(maps);
}
