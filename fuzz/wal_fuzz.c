/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replay of the log over any bytes: they are two segments, cut at the first line "=====".  Records
 * must come in ascending order and lie within limits; reading them twice must give the same.
 *
 * Sums are hard to guess, so that a few bytes before the content say how many records are given
 * the right ones: "fix N\n".
 */
#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "fuzz.h"
#include "store/wal_int.h"

enum { FILES = 2, CONTENT_MAX = 1 << 20 };

struct file_io {
    struct kiln_io table;
    const uint8_t *bytes[FILES];
    size_t n[FILES];
};

static const char *const names[FILES] = {"00000000000000000001.log", "00000000000000000005.log"};

static int fuzz_open(struct kiln_io *io, const char *path, int flags)
{
    (void)io;
    (void)flags;
    for (int i = 0; i < FILES; i++)
        if (strcmp(path + strlen("wal/"), names[i]) == 0)
            return i;
    return -ENOENT;
}

static int fuzz_close(struct kiln_io *io, int fd)
{
    (void)io;
    (void)fd;
    return 0;
}

static int fuzz_size(struct kiln_io *io, int fd, uint64_t *ret_size)
{
    *ret_size = ((struct file_io *)(void *)io)->n[fd];
    return 0;
}

static ssize_t fuzz_pread(struct kiln_io *io, int fd, void *buf, size_t n, uint64_t offset)
{
    struct file_io *files = (struct file_io *)(void *)io;

    FUZZ_CHECK(offset <= files->n[fd] && n <= files->n[fd] - offset);
    if (n)
        memcpy(buf, files->bytes[fd] + offset, n);
    return (ssize_t)n;
}

static int fuzz_list(struct kiln_io *io, const char *path,
                     int (*each)(void *context, const char *name), void *context)
{
    int r = 0;

    (void)io;
    (void)path;
    for (int i = FILES - 1; r >= 0 && i >= 0; i--)
        r = each(context, names[i]);
    return r;
}

struct seen {
    uint64_t last, n, bytes;
    uint32_t sum, damage;
};

static int see(void *context, const struct kiln_wal_record *record)
{
    struct seen *seen = context;

    FUZZ_CHECK(record->number > seen->last && record->tenant.len <= KILN_WAL_TENANT_MAX);
    FUZZ_CHECK((unsigned)record->compression <= KILN_ZSTD);
    seen->last = record->number;
    seen->n++;
    seen->bytes += record->tenant.len + record->recipe.len + record->body.len;
    seen->sum = kiln_crc32c(seen->sum, record->tenant.ptr, record->tenant.len);
    seen->sum = kiln_crc32c(seen->sum, record->recipe.ptr, record->recipe.len);
    seen->sum = kiln_crc32c(seen->sum, record->body.ptr, record->body.len);
    return 0;
}

static void see_damage(void *context, const struct kiln_wal_damage *damage)
{
    struct seen *seen = context;

    FUZZ_CHECK(damage->after <= damage->up_to && strncmp(damage->path, "wal/", 4) == 0);
    seen->damage++;
}

static struct seen replay(struct file_io *files)
{
    struct kiln_wal_opts opts = {.read_only = true, .damaged = see_damage};
    struct seen seen = {0};
    struct kiln_wal *wal = NULL;

    if (kiln_wal_open(&files->table, &opts, 0, see, &seen, &wal, NULL) == 0)
        FUZZ_CHECK(kiln_wal_durable(wal) == seen.last);
    kiln_wal_close(wal);
    return seen;
}

/* Puts right sums where heads of records would stand, as long as one follows the other. */
static void fix(uint8_t *bytes, size_t n, unsigned count)
{
    struct wal_segment_head head = {.version = KILN_WAL_VERSION, .first = 1};
    size_t at = WAL_SEGMENT_HEAD;

    if (count == 0 || n < WAL_SEGMENT_HEAD)
        return;
    memcpy(&head.seal, bytes + 24, sizeof(head.seal));
    wal_segment_encode(&head, bytes);
    while (--count && at + WAL_RECORD_HEAD <= n) {
        struct wal_record_head record = {
            .seal = head.seal,
            .number = 1 + bytes[at + 16],
            .durable = bytes[at + 24] % (1 + bytes[at + 16]),
            .body_bytes = bytes[at + 48],
            .tenant_bytes = bytes[at + 52],
            .compression = bytes[at + 54] % 3,
            .has_recipe = bytes[at + 55] % 2,
        };
        uint8_t out[WAL_RECORD_HEAD + KILN_WAL_TENANT_MAX];
        size_t tenant_at = at + WAL_RECORD_HEAD;
        size_t body_at = tenant_at + record.tenant_bytes;

        if (body_at + record.body_bytes > n)
            return;
        record.body_crc = kiln_crc32c(0, bytes + body_at, record.body_bytes);
        wal_record_encode(&record, (const char *)bytes + tenant_at, out);
        memcpy(bytes + at, out, WAL_RECORD_HEAD + (size_t)record.tenant_bytes);
        at += wal_record_bytes(&record);
    }
}

/* "fix N\n" before the content: N, and the content. */
static unsigned take_fix(uint8_t **content, size_t *n)
{
    unsigned count = 0;

    if (*n < 6 || memcmp(*content, "fix ", 4) != 0 || (*content)[5] != '\n')
        return 0;
    count = (unsigned)(*content)[4] - '0';
    *content += 6;
    *n -= 6;
    return count < 10 ? count : 0;
}

static void split(struct file_io *files, uint8_t *content, size_t n)
{
    static const char line[] = "=====\n";
    uint8_t *cut = n ? memmem(content, n, line, strlen(line)) : NULL;

    files->bytes[0] = content;
    files->n[0] = cut ? (size_t)(cut - content) : n;
    if (cut) {
        files->bytes[1] = cut + strlen(line);
        files->n[1] = n - files->n[0] - strlen(line);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct file_io files = {.table = {.open = fuzz_open,
                                      .close = fuzz_close,
                                      .pread = fuzz_pread,
                                      .size = fuzz_size,
                                      .list = fuzz_list}};
    uint8_t *copy = malloc(size ? size : 1);
    uint8_t *content = copy;
    struct seen first;
    struct seen second;
    unsigned count;

    if (!copy || size > CONTENT_MAX) {
        free(copy);
        return 0;
    }
    memcpy(copy, data, size);
    count = take_fix(&content, &size);
    fix(content, size, count);
    split(&files, content, size);
    first = replay(&files);
    second = replay(&files);
    FUZZ_CHECK(memcmp(&first, &second, sizeof(first)) == 0);
    free(copy);
    return 0;
}
