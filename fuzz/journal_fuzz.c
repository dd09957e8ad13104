/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a queue on disk: two of them, cut at the first line "=====".  What is found can be read,
 * and whoever opens the folder next finds the same and no more damage.
 *
 * Checksums are hard to guess: where the first byte is 'f', they are put right as long as one
 * record follows the other.
 */
#include <dirent.h>
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "fuzz.h"
#include "pipeline/exporters/journal_int.h"

enum { CONTENT_MAX = 1 << 16, FOUND_MAX = 1 << 12, SPOOLED_HEAD = 48, SPOOLED_CRC_FROM = 12 };

static char folder[64];

static void clear_folder(void)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        (void)!unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
}

static void at_exit(void)
{
    clear_folder();
    (void)!rmdir(folder);
}

static void make_folder(void)
{
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

    if (folder[0])
        return;
    snprintf(folder, sizeof(folder), "%s/kiln-fuzz-XXXXXX", base);
    if (!mkdtemp(folder))
        abort();
    atexit(at_exit);
}

/* ---- the files ---- */

static uint32_t get_u32(const char *at)
{
    uint32_t little;

    memcpy(&little, at, sizeof(little));
    return le32toh(little);
}

static void put_u32(char *at, uint32_t value)
{
    uint32_t little = htole32(value);

    memcpy(at, &little, sizeof(little));
}

static void fix_request(char *request, uint32_t n)
{
    uint64_t body = htole64(n - SPOOLED_HEAD);

    memcpy(request, KILN_SPOOLED_MAGIC, 8);
    memcpy(request + 40, &body, sizeof(body));
    put_u32(request + 8, kiln_crc32c(0, request + SPOOLED_CRC_FROM, n - SPOOLED_CRC_FROM));
}

static void fix(char *bytes, size_t n)
{
    size_t at = 8;

    if (n < at)
        return;
    memcpy(bytes, KILN_JOURNAL_MAGIC, at);
    while (n - at >= KILN_JOURNAL_DONE) {
        uint32_t length = KILN_JOURNAL_DONE + get_u32(bytes + at) % 256;

        if (length > n - at)
            return;
        put_u32(bytes + at, length);
        put_u32(bytes + at + 4, kiln_journal_head_crc(bytes + at));
        if (length >= KILN_JOURNAL_HEAD + SPOOLED_HEAD)
            fix_request(bytes + at + KILN_JOURNAL_HEAD, length - KILN_JOURNAL_HEAD);
        at += length;
    }
}

static void write_file(const char *name, char *bytes, size_t n, bool fixed)
{
    char path[96];
    int fd;

    if (fixed)
        fix(bytes, n);
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || kiln_fd_write(fd, (struct kiln_str){bytes, n}) < 0)
        abort();
    close(fd);
}

static void write_files(char *bytes, size_t n, bool fixed)
{
    static const char line[] = "=====\n";
    char *cut = n ? memmem(bytes, n, line, strlen(line)) : NULL;
    size_t first = cut ? (size_t)(cut - bytes) : n;

    write_file("0000000000000001.log", bytes, first, fixed);
    if (cut)
        write_file("0000000000000002.log", cut + strlen(line), n - first - strlen(line), fixed);
}

/* ---- opening ---- */

struct found {
    uint32_t n;
    uint64_t bytes;
    struct kiln_journal_place places[FOUND_MAX];
};

static int find(void *context, const struct kiln_spooled *head, size_t body_bytes,
                const struct kiln_journal_place *place)
{
    struct found *found = context;

    FUZZ_CHECK(place->id && place->bytes >= KILN_JOURNAL_HEAD + SPOOLED_HEAD + body_bytes);
    FUZZ_CHECK((unsigned)head->compression <= KILN_ZSTD);
    FUZZ_CHECK(found->n < FOUND_MAX);
    found->places[found->n++] = *place;
    found->bytes += body_bytes;
    return 0;
}

/* One without a thread, which takes longer to start than all of the rest. */
static struct kiln_journal *new_journal(struct found *found)
{
    struct kiln_journal *j = kiln_calloc(1, sizeof(*j));

    if (!j)
        return NULL;
    j->opts =
        (struct kiln_journal_opts){.dir = folder, .no_sync = true, .found = find, .context = found};
    j->dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    j->lock_fd = -1;
    j->next_id = j->next_file = 1;
    j->last = &j->first;
    kiln_buf_init(&j->dones, SIZE_MAX / 2);
    pthread_mutex_init(&j->lock, NULL);
    pthread_cond_init(&j->wake, NULL);
    return j;
}

static uint32_t damaged(struct found *found)
{
    struct kiln_journal *journal = new_journal(found);
    struct kiln_buf body;
    uint32_t n;

    found->n = 0;
    found->bytes = 0;
    if (!journal)
        return 0;
    FUZZ_CHECK(kiln_journal_load(journal, NULL) == 0);
    kiln_buf_init(&body, SIZE_MAX / 2);
    for (uint32_t i = 0; i < found->n && !kiln_mem_failed(); i++)
        FUZZ_CHECK(kiln_journal_read(journal, &found->places[i], &body) == 0);
    FUZZ_CHECK(body.len == found->bytes);
    kiln_buf_done(&body);
    n = kiln_journal_damaged(journal);
    kiln_journal_close(journal);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct found first, second;
    char *copy;

    if (size < 1 || size > CONTENT_MAX)
        return 0;
    copy = malloc(size);
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    make_folder();
    write_files(copy + 1, size - 1, data[0] == 'f');
    (void)damaged(&first);
    FUZZ_CHECK(damaged(&second) == 0);
    FUZZ_CHECK(first.n == second.n && first.bytes == second.bytes);
    clear_folder();
    free(copy);
    return 0;
}
