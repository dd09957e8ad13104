/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/exporters/journal_int.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/thread.h"

#define FILE_BYTES       ((uint64_t)8 << 20)
#define FILE_BYTES_LEAST ((uint64_t)64 << 10)
#define FILES_OF_ROOM    8u
#define WRITE_MAX        ((size_t)64 << 20)  /* of one write, beyond its first put */
#define DONES_WAIT_NS    (KILN_NS_PER_S / 5) /* what is done with is noted by then */

/* ---- records ---- */

static void put_number(struct kiln_buf *out, uint64_t value, size_t bytes)
{
    uint64_t little = htole64(value);

    kiln_buf_add(out, &little, bytes);
}

uint32_t kiln_journal_head_crc(const char *record)
{
    return kiln_crc32c(kiln_crc32c(0, record, 4), record + 8, 8);
}

/* Fills in what can be told of a record when all of it is there. */
static void seal(struct kiln_buf *out, size_t start)
{
    uint32_t bytes, crc;

    if (out->error)
        return;
    bytes = htole32((uint32_t)(out->len - start));
    memcpy(out->ptr + start, &bytes, sizeof(bytes));
    crc = htole32(kiln_journal_head_crc(out->ptr + start));
    memcpy(out->ptr + start + 4, &crc, sizeof(crc));
}

void kiln_journal_add_done(struct kiln_buf *out, uint64_t id)
{
    size_t start = out->len;

    put_number(out, 0, 8);
    put_number(out, id, 8);
    kiln_buf_puts(out, KILN_JOURNAL_IS_DONE);
    seal(out, start);
}

void kiln_journal_add_request(struct kiln_buf *out, uint64_t id, const struct kiln_spooled *head,
                              struct kiln_str body)
{
    size_t start = out->len;

    put_number(out, 0, 8);
    put_number(out, id, 8);
    kiln_spooled_encode(head, body, out);
    seal(out, start);
}

void kiln_journal_name(uint64_t number, const char *ending, char name[KILN_JOURNAL_NAME])
{
    snprintf(name, KILN_JOURNAL_NAME, "%016llx.%s", (unsigned long long)number, ending);
}

/* ---- files ---- */

static bool take_room(struct kiln_journal *j, uint64_t bytes)
{
    struct kiln_journal_room *room = j->opts.room;

    if (!room)
        return true;
    if (atomic_fetch_add(&room->used, bytes) + bytes <= room->max || !room->max)
        return true;
    atomic_fetch_sub(&room->used, bytes);
    return false;
}

void kiln_journal_use(struct kiln_journal *j, uint64_t bytes)
{
    if (j->opts.room)
        atomic_fetch_add(&j->opts.room->used, bytes);
}

static void give_room(struct kiln_journal *j, uint64_t bytes)
{
    if (j->opts.room)
        atomic_fetch_sub(&j->opts.room->used, bytes);
}

int kiln_journal_roll(struct kiln_journal *j)
{
    struct kiln_journal_file *file = kiln_calloc(1, sizeof(*file)), **last = &j->files;
    char name[KILN_JOURNAL_NAME];
    int r = 0;

    if (!file)
        return -ENOMEM;
    file->number = j->next_file;
    kiln_journal_name(file->number, "log", name);
    file->fd = openat(j->dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file->fd < 0)
        r = -errno;
    if (r == 0)
        r = kiln_fd_write(file->fd, KILN_STR(KILN_JOURNAL_MAGIC));
    if (r == 0 && !j->opts.no_sync && fsync(j->dir) < 0)
        r = -errno;
    if (r < 0) {
        if (file->fd >= 0) {
            close(file->fd);
            (void)!unlinkat(j->dir, name, 0);
        }
        kiln_free(file);
        return r;
    }
    file->bytes = strlen(KILN_JOURNAL_MAGIC);
    kiln_journal_use(j, file->bytes);
    j->next_file++;
    while (*last)
        last = &(*last)->next;
    *last = file;
    j->current = file;
    return 0;
}

void kiln_journal_sweep(struct kiln_journal *j)
{
    struct kiln_journal_file **at = &j->files;

    while (*at) {
        struct kiln_journal_file *file = *at;
        char name[KILN_JOURNAL_NAME];

        if (file->live || file == j->current) {
            at = &file->next;
            continue;
        }
        *at = file->next;
        kiln_journal_name(file->number, "log", name);
        (void)!unlinkat(j->dir, name, 0);
        close(file->fd);
        give_room(j, file->bytes);
        kiln_free(file);
    }
}

static int write_at(int fd, struct kiln_str bytes, uint64_t offset)
{
    while (bytes.len) {
        ssize_t n = pwrite(fd, bytes.ptr, bytes.len, (off_t)offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        bytes.ptr += n;
        bytes.len -= (size_t)n;
        offset += (uint64_t)n;
    }
    return 0;
}

int kiln_journal_append(struct kiln_journal *j, struct kiln_str bytes, bool sync)
{
    struct kiln_journal_file *file = j->current;
    int r;

    if (!take_room(j, bytes.len))
        return -ENOSPC;
    r = write_at(file->fd, bytes, file->bytes);
    if (r == 0 && sync && !j->opts.no_sync && fdatasync(file->fd) < 0)
        r = -errno;
    if (r < 0) {
        (void)!ftruncate(file->fd, (off_t)file->bytes);
        give_room(j, bytes.len);
        return r;
    }
    file->bytes += bytes.len;
    return 0;
}

/* ---- the thread ---- */

static void lay_out(struct kiln_journal *j, struct kiln_journal_put *put, struct kiln_buf *out)
{
    for (uint32_t i = 0; i < put->n; i++) {
        const struct kiln_export_item *item = put->items[i];
        size_t start = out->len;

        put->places[i].id = j->next_id++;
        put->places[i].offset = start;
        kiln_journal_add_request(out, put->places[i].id, &item->head, kiln_export_item_body(item));
        put->places[i].bytes = (uint32_t)(out->len - start);
    }
}

/* Under the lock: what goes with the next write. */
static struct kiln_journal_put *take_puts(struct kiln_journal *j, struct kiln_buf *out)
{
    struct kiln_journal_put *first = j->first, *put = first;

    kiln_buf_clear(out);
    kiln_buf_add_str(out, kiln_buf_str(&j->dones));
    kiln_buf_clear(&j->dones);
    while (put) {
        lay_out(j, put, out);
        if (out->len > WRITE_MAX || !put->next)
            break;
        put = put->next;
    }
    if (put) {
        j->first = put->next;
        put->next = NULL;
    }
    if (!j->first)
        j->last = &j->first;
    return first;
}

/* A file goes when all in it is done with: where there is little room there are many small ones. */
static uint64_t file_bytes(const struct kiln_journal *j)
{
    uint64_t most = j->opts.file_bytes ? j->opts.file_bytes : FILE_BYTES;
    uint64_t part = j->opts.room && j->opts.room->max ? j->opts.room->max / FILES_OF_ROOM : most;

    part = part < FILE_BYTES_LEAST ? FILE_BYTES_LEAST : part;
    return part < most ? part : most;
}

/* Under the lock, which it lets go of while it writes: nobody else changes the current file. */
static int append(struct kiln_journal *j, struct kiln_str bytes, bool sync)
{
    int r = 0;

    if (!j->current || j->current->bytes > file_bytes(j))
        r = kiln_journal_roll(j);
    pthread_mutex_unlock(&j->lock);
    if (r == 0)
        r = kiln_journal_append(j, bytes, sync);
    pthread_mutex_lock(&j->lock);
    return r;
}

/* Under the lock.  Where there is no room, the file that grows goes if all in it is done with. */
static int write_out(struct kiln_journal *j, struct kiln_str bytes, bool sync)
{
    int r = append(j, bytes, sync);

    if (!kiln_journal_is_full(r) || !j->current || j->current->live || j->files != j->current)
        return r;
    j->current = NULL;
    kiln_journal_sweep(j);
    return append(j, bytes, sync);
}

static void place(struct kiln_journal *j, struct kiln_journal_put *puts, size_t written, int code)
{
    uint64_t base = code == 0 ? j->current->bytes - written : 0;

    for (struct kiln_journal_put *put = puts; put; put = put->next) {
        put->code = code;
        for (uint32_t i = 0; i < put->n && code == 0; i++) {
            put->places[i].file = j->current;
            put->places[i].offset += base;
            j->current->live++;
        }
    }
}

/* Under the lock: until there is something to write.  False: that is the end. */
static bool wait_for_work(struct kiln_journal *j)
{
    while (!j->first && !j->end) {
        struct timespec until = kiln_timespec_of(j->dones_ns);

        if (!j->dones.len)
            pthread_cond_wait(&j->wake, &j->lock);
        else if (pthread_cond_timedwait(&j->wake, &j->lock, &until) == ETIMEDOUT)
            return true;
    }
    return j->first || j->dones.len;
}

/* Under the lock: what could not be written is noted behind others, or a little later. */
static void keep_dones(struct kiln_journal *j, struct kiln_str dones)
{
    kiln_buf_add_str(&j->dones, dones);
    j->dones_ns = kiln_clock_mono_ns() + DONES_WAIT_NS;
}

static void *run(void *journal)
{
    struct kiln_journal *j = journal;
    struct kiln_buf out;

    kiln_buf_init(&out, SIZE_MAX / 2);
    pthread_mutex_lock(&j->lock);
    for (;;) {
        struct kiln_journal_put *puts;
        size_t n_dones;
        int r;

        if (!wait_for_work(j))
            break;
        n_dones = j->dones.len;
        puts = take_puts(j, &out);
        r = out.error ? out.error : write_out(j, kiln_buf_str(&out), puts != NULL);
        if (r < 0 && !out.error && !(j->end && !puts))
            keep_dones(j, (struct kiln_str){out.ptr, n_dones});
        place(j, puts, out.len, r);
        kiln_journal_sweep(j);
        pthread_mutex_unlock(&j->lock);
        while (puts) {
            struct kiln_journal_put *put = puts;

            puts = put->next;
            put->stored(put, put->code);
        }
        pthread_mutex_lock(&j->lock);
    }
    pthread_mutex_unlock(&j->lock);
    kiln_buf_done(&out);
    return NULL;
}

bool kiln_journal_takes(const struct kiln_export_item *item)
{
    return item->len <= KILN_JOURNAL_RECORD_MAX - KILN_JOURNAL_AROUND;
}

void kiln_journal_put(struct kiln_journal *j, struct kiln_journal_put *put)
{
    put->next = NULL;
    pthread_mutex_lock(&j->lock);
    *j->last = put;
    j->last = &put->next;
    pthread_cond_signal(&j->wake);
    pthread_mutex_unlock(&j->lock);
}

void kiln_journal_done(struct kiln_journal *j, const struct kiln_journal_place *at)
{
    pthread_mutex_lock(&j->lock);
    if (!j->dones.len) {
        j->dones_ns = kiln_clock_mono_ns() + DONES_WAIT_NS;
        pthread_cond_signal(&j->wake);
    }
    kiln_journal_add_done(&j->dones, at->id);
    if (j->dones.error) /* it is sent once more after a crash: no harm */
        kiln_buf_clear(&j->dones);
    at->file->live--;
    kiln_journal_sweep(j);
    pthread_mutex_unlock(&j->lock);
}

int kiln_journal_read(struct kiln_journal *j, const struct kiln_journal_place *at,
                      struct kiln_buf *out)
{
    struct kiln_spooled head;
    struct kiln_str body;
    char *bytes = kiln_malloc(at->bytes);
    ssize_t n;
    int r = 0;

    (void)j;
    if (!bytes)
        return -ENOMEM;
    n = pread(at->file->fd, bytes, at->bytes, (off_t)at->offset);
    if (n != (ssize_t)at->bytes)
        r = n < 0 ? -errno : KILN_E_TRUNCATED;
    if (r == 0)
        r = kiln_spooled_decode(
            (struct kiln_str){bytes + KILN_JOURNAL_HEAD, at->bytes - KILN_JOURNAL_HEAD}, &head,
            &body);
    if (r == 0)
        kiln_buf_add_str(out, body);
    kiln_free(bytes);
    return r < 0 ? r : out->error;
}

/* ---- opened and closed ---- */

/* A new folder is lost with the power, and all that is in it, unless the one above it is synced. */
static int sync_above(int dir)
{
    int above = openat(dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = above < 0 || fsync(above) < 0 ? -errno : 0;

    if (above >= 0)
        close(above);
    return r;
}

static int open_folder(struct kiln_journal *j, struct kiln_err *err)
{
    const char *dir = j->opts.dir;
    bool is_new = mkdir(dir, 0700) == 0;

    if (!is_new && errno != EEXIST)
        return kiln_err_set(err, -errno, dir, "cannot be made: %s", kiln_err_text(-errno));
    j->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (j->dir < 0)
        return kiln_err_set(err, -errno, dir, "cannot be opened: %s", kiln_err_text(-errno));
    if (is_new && !j->opts.no_sync && sync_above(j->dir) < 0)
        return kiln_err_set(err, -EIO, dir, "the folder above cannot be synced");
    j->lock_fd = openat(j->dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (j->lock_fd < 0)
        return kiln_err_set(err, -errno, dir, "cannot be written: %s", kiln_err_text(-errno));
    if (flock(j->lock_fd, LOCK_EX | LOCK_NB) < 0)
        return kiln_err_set(err, -EBUSY, dir, "another process has this queue");
    return 0;
}

int kiln_journal_open(const struct kiln_journal_opts *opts, struct kiln_journal **ret_journal,
                      struct kiln_err *err)
{
    struct kiln_journal *j = kiln_calloc(1, sizeof(*j));
    int r;

    if (!j)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    j->opts = *opts;
    j->dir = j->lock_fd = -1;
    j->next_id = j->next_file = 1;
    j->last = &j->first;
    kiln_buf_init(&j->dones, SIZE_MAX / 2);
    pthread_mutex_init(&j->lock, NULL);
    kiln_cond_init(&j->wake);
    r = open_folder(j, err);
    if (r == 0)
        r = kiln_journal_load(j, err);
    if (r == 0)
        r = kiln_thread_start("kiln-journal", run, j, &j->thread);
    j->has_thread = r == 0;
    if (r < 0) {
        kiln_journal_close(j);
        return kiln_err_set(err, r, opts->dir, "%s", kiln_err_text(r));
    }
    *ret_journal = j;
    return 0;
}

void kiln_journal_close(struct kiln_journal *j)
{
    if (!j)
        return;
    if (j->has_thread) {
        pthread_mutex_lock(&j->lock);
        j->end = true;
        pthread_cond_signal(&j->wake);
        pthread_mutex_unlock(&j->lock);
        pthread_join(j->thread, NULL);
    }
    while (j->files) {
        struct kiln_journal_file *file = j->files;

        j->files = file->next;
        give_room(j, file->bytes);
        close(file->fd);
        kiln_free(file);
    }
    if (j->lock_fd >= 0)
        close(j->lock_fd);
    if (j->dir >= 0)
        close(j->dir);
    kiln_buf_done(&j->dones);
    pthread_cond_destroy(&j->wake);
    pthread_mutex_destroy(&j->lock);
    kiln_free(j);
}

uint32_t kiln_journal_damaged(const struct kiln_journal *j)
{
    return j->damaged;
}
