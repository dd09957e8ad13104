/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder:
 *
 *   lock                    held (flock) while the spool is open
 *   0018a3f2c91b7e40.otlp   a request; the name is its place in the order: the time it was put, in
 *                           nanoseconds, or one more than that of the one before
 *   0018a3f2c91b7e40.part   one that is being written; removed at the next start
 *
 * A file, numbers little-endian:
 *
 *    0  8  "KILNSPL1"
 *    8  4  CRC-32C of all behind it
 *   12  1  compression: 0 none, 1 gzip, 2 zstd
 *   13  1  format: 0 protobuf, 1 JSON
 *   14  2  0
 *   16  4  profiles
 *   20  4  0
 *   24  8  samples
 *   32  8  Unix time of its making, in nanoseconds
 *   40  8  bytes of the body
 *   48     the body: an ExportProfilesServiceRequest
 */
#include "pipeline/exporters/spool.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/mem.h"

#define HEAD_BYTES 48u
#define CRC_FROM   12u
#define FILES_MAX  (1u << 20)
#define INDEX_MAX  ((size_t)64 << 20)
#define FILE_MAX   ((size_t)256 << 20)

enum { NAME_BYTES = 24, DIGITS = 16 };

struct entry {
    uint64_t order;
    uint64_t bytes;
};

struct kiln_spool {
    int dir, lock;
    bool shared; /* the folder has files that are not ours */
    uint64_t bytes_max, bytes;
    struct kiln_budget budget;
    struct entry *entries; /* by order; those before `first` are gone */
    uint32_t first, n, cap;
    struct kiln_buf scratch;
};

/* ---- one file ---- */

static void put_number(struct kiln_buf *out, uint64_t value, size_t bytes)
{
    uint64_t little = htole64(value);

    kiln_buf_add(out, &little, bytes);
}

static uint64_t get_number(const char *at, size_t bytes)
{
    uint64_t little = 0;

    memcpy(&little, at, bytes);
    return le64toh(little);
}

void kiln_spooled_encode(const struct kiln_spooled *head, struct kiln_str body,
                         struct kiln_buf *out)
{
    size_t start = out->len;
    uint32_t crc;

    kiln_buf_add_str(out, KILN_STR(KILN_SPOOLED_MAGIC));
    put_number(out, 0, 4);
    put_number(out, head->compression, 1);
    put_number(out, head->json, 1);
    put_number(out, 0, 2);
    put_number(out, head->profiles, 4);
    put_number(out, 0, 4);
    put_number(out, head->samples, 8);
    put_number(out, head->made_ns, 8);
    put_number(out, body.len, 8);
    kiln_buf_add_str(out, body);
    if (out->error)
        return;
    crc = htole32(kiln_crc32c(0, out->ptr + start + CRC_FROM, out->len - start - CRC_FROM));
    memcpy(out->ptr + start + 8, &crc, sizeof(crc));
}

int kiln_spooled_decode(struct kiln_str file, struct kiln_spooled *ret_head,
                        struct kiln_str *ret_body)
{
    const char *p = file.ptr;

    if (file.len < HEAD_BYTES)
        return KILN_E_TRUNCATED;
    if (memcmp(p, KILN_SPOOLED_MAGIC, 8) != 0)
        return KILN_E_UNKNOWN;
    if (get_number(p + 40, 8) != file.len - HEAD_BYTES)
        return KILN_E_TRUNCATED;
    if (get_number(p + 8, 4) != kiln_crc32c(0, p + CRC_FROM, file.len - CRC_FROM) ||
        get_number(p + 12, 1) > KILN_ZSTD || get_number(p + 13, 1) > 1)
        return KILN_E_CORRUPT;
    *ret_head = (struct kiln_spooled){
        .compression = (enum kiln_compression)get_number(p + 12, 1),
        .json = get_number(p + 13, 1),
        .profiles = (uint32_t)get_number(p + 16, 4),
        .samples = get_number(p + 24, 8),
        .made_ns = get_number(p + 32, 8),
    };
    *ret_body = (struct kiln_str){p + HEAD_BYTES, file.len - HEAD_BYTES};
    return 0;
}

static void name_of(uint64_t order, const char *ending, char out[NAME_BYTES])
{
    snprintf(out, NAME_BYTES, "%016llx.%s", (unsigned long long)order, ending);
}

/* ---- the folder ---- */

/* The folders above it as usual, itself for the owner alone. */
static int make_folder(const char *dir, struct kiln_err *err)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s", dir);

    if (n <= 0 || n >= (int)sizeof(path))
        return kiln_err_set(err, -ENAMETOOLONG, dir, "%s", kiln_err_text(-ENAMETOOLONG));
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
            return kiln_err_set(err, -errno, path, "cannot be made: %s", kiln_err_text(-errno));
        *slash = '/';
    }
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return kiln_err_set(err, -errno, path, "cannot be made: %s", kiln_err_text(-errno));
    return 0;
}

static int open_folder(struct kiln_spool *spool, const char *dir, struct kiln_err *err)
{
    struct stat about;

    spool->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (spool->dir < 0 || fstat(spool->dir, &about) < 0)
        return kiln_err_set(err, -errno, dir, "%s", kiln_err_text(-errno));
    if (about.st_uid != geteuid())
        return kiln_err_set(err, -EPERM, dir,
                            "belongs to user %u, not to the one who runs this (say --spool DIR "
                            "for another folder)",
                            about.st_uid);
    spool->lock = openat(spool->dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (spool->lock < 0)
        return kiln_err_set(err, -errno, dir, "cannot be locked: %s", kiln_err_text(-errno));
    if (flock(spool->lock, LOCK_EX | LOCK_NB) < 0)
        return kiln_err_set(err, errno == EWOULDBLOCK ? -EBUSY : -errno, dir,
                            "another process spools here (say --spool DIR for one of them)");
    return 0;
}

static int add_entry(struct kiln_spool *spool, uint64_t order, uint64_t bytes)
{
    int r;

    if (spool->first && spool->n == spool->cap) {
        memmove(spool->entries, spool->entries + spool->first,
                (spool->n - spool->first) * sizeof(*spool->entries));
        spool->n -= spool->first;
        spool->first = 0;
    }
    r = kiln_grow(&spool->budget, (void **)&spool->entries, &spool->cap, (uint64_t)spool->n + 1,
                  sizeof(*spool->entries), FILES_MAX);
    if (r < 0)
        return r;
    spool->entries[spool->n++] = (struct entry){order, bytes};
    spool->bytes += bytes;
    return 0;
}

/* Whether a name is one of those that name_of() gives. */
static bool parse_name(const char *name, uint64_t *ret_order, struct kiln_str *ret_ending)
{
    struct kiln_str digits = kiln_str_of(name);

    if (digits.len < DIGITS + 1 || name[DIGITS] != '.')
        return false;
    digits.len = DIGITS;
    *ret_ending = kiln_str_of(name + DIGITS + 1);
    return kiln_str_parse_hex(digits, ret_order) == 0;
}

/* One name of the folder: a request is noted, what was not finished goes, the rest is not ours. */
static int see(struct kiln_spool *spool, const char *name)
{
    struct kiln_str ending = KILN_STR_NONE;
    struct stat about;
    uint64_t order;

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, "lock") == 0)
        return 0;
    if (!parse_name(name, &order, &ending) ||
        fstatat(spool->dir, name, &about, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(about.st_mode) ||
        about.st_uid != geteuid()) {
        spool->shared = true;
        return 0;
    }
    if (kiln_str_eq(ending, KILN_STR("part"))) {
        unlinkat(spool->dir, name, 0);
        return 0;
    }
    if (kiln_str_eq(ending, KILN_STR("otlp")))
        return add_entry(spool, order, (uint64_t)about.st_size);
    spool->shared = true;
    return 0;
}

static int by_order(const void *a, const void *b)
{
    uint64_t x = ((const struct entry *)a)->order, y = ((const struct entry *)b)->order;

    return x < y ? -1 : x > y;
}

static int list_folder(struct kiln_spool *spool, struct kiln_err *err)
{
    int fd = openat(spool->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *one;

    if (!list) {
        r = -errno;
        if (fd >= 0)
            close(fd);
        return kiln_err_set(err, r, NULL, "the spool cannot be listed: %s", kiln_err_text(r));
    }
    while (r == 0 && (one = readdir(list)))
        r = see(spool, one->d_name);
    closedir(list);
    if (spool->n)
        qsort(spool->entries, spool->n, sizeof(*spool->entries), by_order);
    return r < 0 ? kiln_err_set(err, r, NULL, "the spool has too many files") : 0;
}

/* Files are for their owner alone; the folder too, unless it is one that others use as well. */
static int close_to_others(struct kiln_spool *spool, const char *dir, struct kiln_err *err)
{
    struct stat about;

    if (fstat(spool->dir, &about) < 0)
        return kiln_err_set(err, -errno, dir, "%s", kiln_err_text(-errno));
    if (spool->shared && (about.st_mode & 022))
        return kiln_err_set(err, -EPERM, dir,
                            "others may write to this folder, which holds more than a spool (say "
                            "--spool DIR for another)");
    if (!spool->shared && (about.st_mode & 077) && fchmod(spool->dir, 0700) < 0)
        return kiln_err_set(err, -errno, dir, "others may read this folder: %s",
                            kiln_err_text(-errno));
    return 0;
}

int kiln_spool_open(const char *dir, uint64_t bytes_max, struct kiln_spool **ret_spool,
                    struct kiln_err *err)
{
    struct kiln_spool *spool = kiln_calloc(1, sizeof(*spool));
    int r;

    if (!spool)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    spool->dir = spool->lock = -1;
    spool->bytes_max = bytes_max;
    spool->budget.limit = INDEX_MAX;
    kiln_buf_init(&spool->scratch, FILE_MAX);
    r = make_folder(dir, err);
    if (r == 0)
        r = open_folder(spool, dir, err);
    if (r == 0)
        r = list_folder(spool, err);
    if (r == 0)
        r = close_to_others(spool, dir, err);
    if (r < 0) {
        kiln_spool_close(spool);
        return r;
    }
    *ret_spool = spool;
    return 0;
}

void kiln_spool_close(struct kiln_spool *spool)
{
    if (!spool)
        return;
    if (spool->lock >= 0)
        close(spool->lock);
    if (spool->dir >= 0)
        close(spool->dir);
    kiln_array_free(&spool->budget, (void **)&spool->entries, &spool->cap, sizeof(*spool->entries));
    kiln_buf_done(&spool->scratch);
    kiln_free(spool);
}

uint64_t kiln_spool_bytes(const struct kiln_spool *spool)
{
    return spool->bytes;
}

uint32_t kiln_spool_files(const struct kiln_spool *spool)
{
    return spool->n - spool->first;
}

/* ---- in and out ---- */

static int write_file(struct kiln_spool *spool, uint64_t order, struct kiln_str content)
{
    char part[NAME_BYTES], name[NAME_BYTES];
    int fd, r;

    name_of(order, "part", part);
    name_of(order, "otlp", name);
    fd = openat(spool->dir, part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    r = kiln_fd_write(fd, content);
    if (close(fd) < 0 && r == 0)
        r = -errno;
    if (r == 0 && renameat(spool->dir, part, spool->dir, name) < 0)
        r = -errno;
    if (r < 0)
        unlinkat(spool->dir, part, 0);
    return r;
}

static void drop_oldest(struct kiln_spool *spool, const struct kiln_spool_drops *dropped)
{
    struct kiln_spooled head = {0};
    struct kiln_str body;

    if (dropped) {
        if (kiln_spool_get(spool, 0, &spool->scratch, &head, &body) < 0)
            head = (struct kiln_spooled){0};
        dropped->visit(dropped->context, &head);
    }
    kiln_spool_remove(spool, 0);
}

int kiln_spool_put(struct kiln_spool *spool, const struct kiln_spooled *head, struct kiln_str body,
                   const struct kiln_spool_drops *dropped)
{
    uint64_t size = HEAD_BYTES + body.len, order = kiln_clock_unix_ns();
    uint64_t newest = spool->n > spool->first ? spool->entries[spool->n - 1].order : 0;
    int r;

    if (size > spool->bytes_max || size > FILE_MAX)
        return KILN_E_LIMIT;
    while (kiln_spool_files(spool) &&
           (spool->bytes + size > spool->bytes_max || kiln_spool_files(spool) >= FILES_MAX - 1))
        drop_oldest(spool, dropped);
    order = order > newest ? order : newest + 1;
    r = add_entry(spool, order, size);
    if (r < 0)
        return r;
    kiln_buf_clear(&spool->scratch);
    kiln_spooled_encode(head, body, &spool->scratch);
    r = spool->scratch.error ? spool->scratch.error
                             : write_file(spool, order, kiln_buf_str(&spool->scratch));
    if (r < 0) {
        spool->n--;
        spool->bytes -= size;
    }
    return r;
}

int kiln_spool_get(struct kiln_spool *spool, uint32_t at, struct kiln_buf *file,
                   struct kiln_spooled *ret_head, struct kiln_str *ret_body)
{
    char name[NAME_BYTES];
    struct stat about;
    ssize_t n = 0;
    char *room;
    int fd, r = 0;

    name_of(spool->entries[spool->first + at].order, "otlp", name);
    fd = openat(spool->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    kiln_buf_clear(file);
    if (fstat(fd, &about) < 0)
        r = -errno;
    else if ((uint64_t)about.st_size > FILE_MAX)
        r = KILN_E_CORRUPT;
    room = r == 0 ? kiln_buf_reserve(file, (size_t)about.st_size + 1) : NULL;
    while (room && (n = read(fd, room + file->len, (size_t)about.st_size + 1 - file->len)) > 0)
        file->len += (size_t)n;
    if (r == 0)
        r = !room ? file->error : n < 0 ? -errno : 0;
    close(fd);
    return r < 0 ? r : kiln_spooled_decode(kiln_buf_str(file), ret_head, ret_body);
}

void kiln_spool_remove(struct kiln_spool *spool, uint32_t at)
{
    struct entry *entry = &spool->entries[spool->first + at];
    char name[NAME_BYTES];

    name_of(entry->order, "otlp", name);
    unlinkat(spool->dir, name, 0);
    spool->bytes -= entry->bytes;
    memmove(spool->entries + spool->first + 1, spool->entries + spool->first,
            at * sizeof(*spool->entries));
    spool->first++;
    if (spool->first == spool->n)
        spool->first = spool->n = 0;
}
