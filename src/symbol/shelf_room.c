/* SPDX-License-Identifier: Apache-2.0 */
/*
 *   DIRECTORY/lock             held (flock) by the one process that writes
 *   DIRECTORY/BUILD_ID.shelf   names of one build id
 *   DIRECTORY/new.tmp          what is being written, renamed when it is complete
 *
 * A file is never written to or cut once it has its name, so what is mapped cannot change or go
 * away under its reader, and nothing has to be made durable: after a crash of the machine a file's
 * sum tells whether it is whole.  When a file was last used is in its time of access, which is set
 * explicitly.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "symbol/shelf_int.h"

enum { FILES_MAX = 65536, FOLDER_MODE = 0700, FILE_MODE = 0600, BLOCK = 4096 };

#define LISTING_MAX ((size_t)32 << 20)

static const char temporary[] = "new.tmp";

/* ---- the directory ---- */

/* With those above it. */
static int make_folders(const char *directory)
{
    char path[4096];
    int n = snprintf(path, sizeof(path), "%s", directory);

    if (n <= 0 || (size_t)n >= sizeof(path))
        return -ENAMETOOLONG;
    for (char *at = path + 1;; at++) {
        char c = *at;

        if (c && c != '/')
            continue;
        *at = '\0';
        if (mkdir(path, FOLDER_MODE) < 0 && errno != EEXIST && (c == '\0' || errno != EROFS))
            return -errno;
        if (c == '\0')
            return 0;
        *at = c;
    }
}

/* Names that somebody else could write there would be believed. */
static int check_folder(int fd, const char *directory, struct kiln_err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return kiln_err_set(err, -errno, directory, "%s", kiln_err_text(-errno));
    if (st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
        return kiln_err_set(err, -EPERM, directory,
                            "this must belong to the user that runs it, and only they may write");
    return 0;
}

static int trim(struct kiln_shelf_room *room);

int kiln_shelf_room_open(const char *directory, uint64_t max_bytes,
                         struct kiln_shelf_room *ret_room, struct kiln_err *err)
{
    struct kiln_shelf_room room = {.lock = -1, .max_bytes = max_bytes};
    int made = make_folders(directory);
    int r;

    room.fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (room.fd < 0) {
        r = made < 0 ? made : -errno;
        return kiln_err_set(err, r, directory, "%s", kiln_err_text(r));
    }
    r = check_folder(room.fd, directory, err);
    if (r < 0) {
        close(room.fd);
        return r;
    }
    room.lock = openat(room.fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
    if (kiln_shelf_room_lock(&room)) {
        (void)trim(&room);
        kiln_shelf_room_unlock(&room);
    }
    *ret_room = room;
    return 0;
}

void kiln_shelf_room_close(struct kiln_shelf_room *room)
{
    close(room->fd);
    if (room->lock >= 0)
        close(room->lock);
}

bool kiln_shelf_room_lock(const struct kiln_shelf_room *room)
{
    return room->lock >= 0 && flock(room->lock, LOCK_EX | LOCK_NB) == 0;
}

void kiln_shelf_room_unlock(const struct kiln_shelf_room *room)
{
    (void)flock(room->lock, LOCK_UN);
}

/* ---- one file ---- */

void kiln_shelf_room_unmap(struct kiln_shelf_mapped *mapped)
{
    if (mapped->data)
        (void)munmap((void *)(uintptr_t)mapped->data, mapped->size);
    *mapped = (struct kiln_shelf_mapped){0};
}

static int map(int fd, struct kiln_shelf_mapped *mapped)
{
    struct stat st;
    void *data;

    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_size <= 0 ||
        (uint64_t)st.st_size > KILN_SHELF_FILE_MAX)
        return -ENOENT;
    if (mapped->data && mapped->inode == st.st_ino && mapped->size == (size_t)st.st_size &&
        mapped->changed_ns == kiln_timespec_ns(st.st_mtim))
        return 0;
    data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED)
        return -ENOMEM;
    kiln_shelf_room_unmap(mapped);
    *mapped = (struct kiln_shelf_mapped){.data = data,
                                         .size = (size_t)st.st_size,
                                         .inode = st.st_ino,
                                         .changed_ns = kiln_timespec_ns(st.st_mtim)};
    return 1;
}

int kiln_shelf_room_map(const struct kiln_shelf_room *room, const char *name,
                        struct kiln_shelf_mapped *mapped)
{
    int fd = openat(room->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int r;

    if (fd < 0)
        return -ENOENT;
    r = map(fd, mapped);
    close(fd);
    return r;
}

void kiln_shelf_room_touch(const struct kiln_shelf_room *room, const char *name)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};

    (void)utimensat(room->fd, name, times, AT_SYMLINK_NOFOLLOW);
}

void kiln_shelf_room_remove(const struct kiln_shelf_room *room, const char *name)
{
    (void)unlinkat(room->fd, name, 0);
}

int kiln_shelf_room_write(struct kiln_shelf_room *room, const char *name, struct kiln_str data)
{
    int fd = openat(room->fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                    FILE_MODE);
    int r;

    if (fd < 0)
        return -errno;
    r = kiln_fd_write(fd, data);
    if (close(fd) < 0 && r == 0)
        r = -errno;
    if (r == 0 && renameat(room->fd, temporary, room->fd, name) < 0)
        r = -errno;
    if (r < 0) {
        kiln_shelf_room_remove(room, temporary);
        return r;
    }
    room->since += data.len;
    return room->bytes + room->since > room->max_bytes || room->since > room->max_bytes / 16
               ? trim(room)
               : 0;
}

/* ---- all files ---- */

struct listed {
    char name[KILN_SHELF_ID_MAX + 8];
    uint64_t bytes, used_ns;
};

struct listing {
    struct kiln_budget budget;
    struct listed *items;
    uint32_t n, cap;
};

static int add_listed(const struct kiln_shelf_room *room, const char *name, struct listing *list)
{
    struct listed item;
    struct stat st;
    int n = snprintf(item.name, sizeof(item.name), "%s", name);
    int r;

    if (n <= 6 || (size_t)n >= sizeof(item.name) || strcmp(item.name + n - 6, ".shelf") != 0 ||
        fstatat(room->fd, item.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    item.bytes = ((uint64_t)st.st_size + BLOCK - 1) / BLOCK * BLOCK;
    item.used_ns = kiln_timespec_ns(st.st_atim);
    if (item.used_ns < kiln_timespec_ns(st.st_mtim))
        item.used_ns = kiln_timespec_ns(st.st_mtim);
    r = kiln_grow(&list->budget, (void **)&list->items, &list->cap, (uint64_t)list->n + 1,
                  sizeof(item), FILES_MAX);
    if (r == 0)
        list->items[list->n++] = item;
    else if (r == KILN_E_LIMIT)
        kiln_shelf_room_remove(room, item.name);
    return r == -ENOMEM ? r : 0;
}

static int by_use(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;

    return x->used_ns < y->used_ns ? -1 : x->used_ns > y->used_ns;
}

static int list_files(const struct kiln_shelf_room *room, struct listing *list)
{
    int fd = openat(room->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    int r = 0;

    if (!dir) {
        r = -errno;
        if (fd >= 0)
            close(fd);
        return r;
    }
    while (r == 0 && (entry = readdir(dir)))
        r = add_listed(room, entry->d_name, list);
    closedir(dir);
    return r;
}

/* With the lock: counts what there is; where that is too much, the least used go, and some more. */
static int trim(struct kiln_shelf_room *room)
{
    struct listing list = {.budget = {.limit = LISTING_MAX}};
    uint64_t bytes = 0;
    uint32_t i = 0;
    int r = list_files(room, &list);

    if (list.n > 0)
        qsort(list.items, list.n, sizeof(*list.items), by_use);
    for (uint32_t k = 0; k < list.n; k++)
        bytes += list.items[k].bytes;
    if (bytes > room->max_bytes) {
        for (; i < list.n && bytes > room->max_bytes - room->max_bytes / 8; i++) {
            kiln_shelf_room_remove(room, list.items[i].name);
            bytes -= list.items[i].bytes;
        }
    }
    room->files = list.n - i;
    room->bytes = bytes;
    room->since = 0;
    kiln_array_free(&list.budget, (void **)&list.items, &list.cap, sizeof(*list.items));
    return r;
}
