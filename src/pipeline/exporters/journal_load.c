/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an earlier process left.  The end of the last file may be torn, which is how a loss of power
 * looks, and is cut off: nobody was told of what stood there.  Anything else that is not whole is
 * damage: reading goes on at the next request that is whole, which is copied to a new file, and the
 * old one is set aside.
 */
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "pipeline/exporters/journal_int.h"

#define FILES_MAX   (1u << 20)
#define RECORDS_MAX (1u << 26)

struct record {
    struct kiln_journal_place place;
    struct kiln_spooled head;
    size_t body_bytes;
};

struct loading {
    struct kiln_journal *j;
    struct kiln_budget budget;
    uint64_t *numbers; /* of files */
    struct record *records;
    uint64_t *dones; /* ids */
    uint32_t n_numbers, n_numbers_cap, n_records, records_cap, n_dones, dones_cap;
    struct kiln_buf content;
    struct kiln_journal_file **damaged;
    uint32_t n_damaged, damaged_cap;
};

static uint64_t get_number(const char *at, size_t bytes)
{
    uint64_t little = 0;

    memcpy(&little, at, bytes);
    return le64toh(little);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* ---- files ---- */

static int list_files(struct loading *l)
{
    int fd = dup(l->j->dir), r = 0;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!dir) {
        r = -errno;
        if (fd >= 0)
            close(fd);
        return r;
    }
    rewinddir(dir);
    while (r == 0 && (entry = readdir(dir))) {
        struct kiln_str name = kiln_str_of(entry->d_name);
        uint64_t number;

        if (!kiln_str_ends(name, KILN_STR(".log")) ||
            kiln_str_parse_hex((struct kiln_str){name.ptr, name.len - 4}, &number) < 0)
            continue;
        r = kiln_grow(&l->budget, (void **)&l->numbers, &l->n_numbers_cap,
                      (uint64_t)l->n_numbers + 1, sizeof(l->numbers[0]), FILES_MAX);
        if (r == 0)
            l->numbers[l->n_numbers++] = number;
    }
    closedir(dir);
    if (l->n_numbers)
        qsort(l->numbers, l->n_numbers, sizeof(l->numbers[0]), compare);
    return r;
}

static int read_content(int fd, struct kiln_buf *out)
{
    struct stat info;
    ssize_t n;
    char *to;

    kiln_buf_clear(out);
    if (fstat(fd, &info) < 0)
        return -errno;
    to = kiln_buf_reserve(out, (size_t)info.st_size + 1);
    if (!to)
        return out->error;
    while ((n = pread(fd, to + out->len, (size_t)info.st_size - out->len, (off_t)out->len)) > 0)
        out->len += (size_t)n;
    return n < 0 ? -errno : 0;
}

/* ---- records ---- */

static int note_done(struct loading *l, uint64_t id)
{
    int r = kiln_grow(&l->budget, (void **)&l->dones, &l->dones_cap, (uint64_t)l->n_dones + 1,
                      sizeof(l->dones[0]), RECORDS_MAX);

    if (r == 0)
        l->dones[l->n_dones++] = id;
    return r;
}

static int note_request(struct loading *l, const struct record *record)
{
    int r = kiln_grow(&l->budget, (void **)&l->records, &l->records_cap, (uint64_t)l->n_records + 1,
                      sizeof(l->records[0]), RECORDS_MAX);

    if (r == 0)
        l->records[l->n_records++] = *record;
    return r;
}

static bool is_done(struct kiln_str record)
{
    return record.len == KILN_JOURNAL_DONE &&
           memcmp(record.ptr + KILN_JOURNAL_HEAD, KILN_JOURNAL_IS_DONE, 8) == 0;
}

/* The length that the head of a record says, whether or not so much is there; 0: no head. */
static uint64_t head_bytes(struct kiln_str content, uint64_t at)
{
    const char *head = content.ptr + at;
    uint64_t bytes, id;

    if (content.len - at < KILN_JOURNAL_HEAD)
        return 0;
    bytes = get_number(head, 4);
    id = get_number(head + 8, 8);
    if (get_number(head + 4, 4) != kiln_journal_head_crc(head) || bytes < KILN_JOURNAL_DONE ||
        bytes > KILN_JOURNAL_RECORD_MAX || id == 0 || id == UINT64_MAX)
        return 0;
    return bytes;
}

/* The length of the record at `at`; 0 where there is none. */
static uint64_t record_bytes(struct kiln_str content, uint64_t at)
{
    uint64_t bytes = head_bytes(content, at);

    return bytes <= content.len - at ? bytes : 0;
}

/* What a write leaves that was cut short: the beginning of a record. */
static bool is_torn(struct kiln_str content, uint64_t at)
{
    uint64_t left = content.len - at;

    return left < KILN_JOURNAL_HEAD || head_bytes(content, at) > left;
}

/* Where the next request from `at` on is that is whole; the end of the file where there is none. */
static uint64_t find_request(struct kiln_str content, uint64_t at)
{
    struct kiln_str magic = KILN_STR(KILN_SPOOLED_MAGIC), body;
    struct kiln_spooled head;
    const char *found;

    for (; content.len - at > KILN_JOURNAL_HEAD; at++) {
        uint64_t from = at + KILN_JOURNAL_HEAD, bytes;

        found = memmem(content.ptr + from, content.len - from, magic.ptr, magic.len);
        if (!found)
            break;
        at = (uint64_t)(found - content.ptr) - KILN_JOURNAL_HEAD;
        bytes = record_bytes(content, at);
        if (bytes && kiln_spooled_decode((struct kiln_str){found, bytes - KILN_JOURNAL_HEAD}, &head,
                                         &body) == 0)
            return at;
    }
    return content.len;
}

/* KILN_E_CORRUPT where it is no record. */
static int take_record(struct loading *l, struct kiln_journal_file *file, uint64_t offset,
                       struct kiln_str bytes)
{
    struct record record = {.place = {.id = get_number(bytes.ptr + 8, 8),
                                      .file = file,
                                      .offset = offset,
                                      .bytes = (uint32_t)bytes.len}};
    struct kiln_str body;

    if (record.place.id >= l->j->next_id)
        l->j->next_id = record.place.id + 1;
    if (is_done(bytes))
        return note_done(l, record.place.id);
    if (kiln_spooled_decode(
            (struct kiln_str){bytes.ptr + KILN_JOURNAL_HEAD, bytes.len - KILN_JOURNAL_HEAD},
            &record.head, &body) < 0)
        return KILN_E_CORRUPT;
    record.body_bytes = body.len;
    return note_request(l, &record);
}

/*
 * Goes through a file.  *ret_good: where what is whole ends.  *ret_damaged: something before that
 * is not, or what is behind it is no torn end.
 */
static int scan(struct loading *l, struct kiln_journal_file *file, uint64_t *ret_good,
                bool *ret_damaged)
{
    struct kiln_str rest = kiln_buf_str(&l->content);
    uint64_t at = strlen(KILN_JOURNAL_MAGIC);

    *ret_good = 0;
    if (rest.len < at)
        return 0;
    if (memcmp(rest.ptr, KILN_JOURNAL_MAGIC, at) != 0) {
        *ret_damaged = true;
        at = find_request(rest, at);
    }
    while (at < rest.len) {
        uint64_t bytes = record_bytes(rest, at), next;
        int r = bytes ? take_record(l, file, at, (struct kiln_str){rest.ptr + at, bytes})
                      : KILN_E_CORRUPT;

        if (r < 0 && r != KILN_E_CORRUPT)
            return r;
        next = r == 0 ? at + bytes : find_request(rest, at + 1);
        if (r < 0 && (next < rest.len || !is_torn(rest, at)))
            *ret_damaged = true;
        else if (r < 0)
            break;
        at = next;
    }
    *ret_good = at;
    return 0;
}

static int note_damaged(struct loading *l, struct kiln_journal_file *file)
{
    int r = kiln_grow(&l->budget, (void **)&l->damaged, &l->damaged_cap, (uint64_t)l->n_damaged + 1,
                      sizeof(l->damaged[0]), FILES_MAX);

    if (r == 0)
        l->damaged[l->n_damaged++] = file;
    return r;
}

static int load_file(struct loading *l, uint64_t number, bool last, struct kiln_journal_file ***end)
{
    struct kiln_journal_file *file = kiln_calloc(1, sizeof(*file));
    char name[KILN_JOURNAL_NAME];
    bool damaged = false;
    uint64_t good = 0;
    int r;

    if (!file)
        return -ENOMEM;
    kiln_journal_name(number, "log", name);
    file->number = number;
    file->fd = openat(l->j->dir, name, O_RDWR | O_CLOEXEC);
    if (file->fd < 0) {
        r = -errno;
        kiln_free(file);
        return r;
    }
    **end = file;
    *end = &file->next;
    l->j->next_file = number + 1;
    r = read_content(file->fd, &l->content);
    if (r == 0)
        r = scan(l, file, &good, &damaged);
    if (r < 0)
        return r;
    if (!damaged && good < l->content.len && last)
        r = ftruncate(file->fd, (off_t)good) < 0 ? -errno : 0;
    else
        damaged = damaged || good < l->content.len; /* torn, and yet there is one behind it */
    file->bytes = damaged ? 0 : good;               /* what is set aside does not count */
    kiln_journal_use(l->j, file->bytes);
    return r == 0 && damaged ? note_damaged(l, file) : r;
}

/* ---- what is left ---- */

static bool is_done_with(const struct loading *l, const struct record *record)
{
    return l->n_dones &&
           bsearch(&record->place.id, l->dones, l->n_dones, sizeof(l->dones[0]), compare);
}

/* Those that are not done with, in order.  Of those that are, and whose file has to stay, it is
 * noted anew in `content`: the file in which it stands may go. */
static void leave_live(struct loading *l)
{
    uint32_t n = 0;

    kiln_buf_clear(&l->content);
    if (l->n_dones)
        qsort(l->dones, l->n_dones, sizeof(l->dones[0]), compare);
    for (uint32_t i = 0; i < l->n_records; i++)
        l->records[i].place.file->live += !is_done_with(l, &l->records[i]);
    for (uint32_t i = 0; i < l->n_records; i++) {
        const struct record *record = &l->records[i];

        if (!is_done_with(l, record))
            l->records[n++] = *record;
        else if (record->place.file->live)
            kiln_journal_add_done(&l->content, record->place.id);
    }
    l->n_records = n;
}

static int copy_record(struct loading *l, struct record *record)
{
    struct kiln_journal *j = l->j;
    char *to;
    int r;

    kiln_buf_clear(&l->content);
    to = kiln_buf_reserve(&l->content, record->place.bytes);
    if (!to)
        return l->content.error;
    if (pread(record->place.file->fd, to, record->place.bytes, (off_t)record->place.offset) !=
        (ssize_t)record->place.bytes)
        return -EIO;
    l->content.len += record->place.bytes;
    record->place.offset = j->current->bytes;
    r = kiln_journal_append(j, kiln_buf_str(&l->content), true);
    if (r < 0)
        return r;
    record->place.file->live--;
    record->place.file = j->current;
    j->current->live++;
    return 0;
}

static int set_aside(struct loading *l, struct kiln_journal_file *file)
{
    struct kiln_journal_file **at = &l->j->files;
    char from[KILN_JOURNAL_NAME], to[KILN_JOURNAL_NAME];
    int r = 0;

    for (uint32_t i = 0; i < l->n_records && r == 0; i++)
        if (l->records[i].place.file == file)
            r = copy_record(l, &l->records[i]);
    if (r < 0)
        return r;
    kiln_journal_name(file->number, "log", from);
    kiln_journal_name(file->number, "damaged", to);
    if (renameat(l->j->dir, from, l->j->dir, to) < 0)
        return -errno;
    l->j->damaged++;
    while (*at != file)
        at = &(*at)->next;
    *at = file->next;
    close(file->fd);
    kiln_free(file);
    return 0;
}

static int load(struct loading *l)
{
    struct kiln_journal_file **end = &l->j->files;
    int r = list_files(l);

    for (uint32_t i = 0; i < l->n_numbers && r == 0; i++)
        r = load_file(l, l->numbers[i], i + 1 == l->n_numbers, &end);
    if (r == 0)
        r = kiln_journal_roll(l->j);
    if (kiln_journal_is_full(r) && !l->n_damaged)
        r = 0; /* there will be room when some of it was sent */
    if (r < 0)
        return r;
    leave_live(l);
    if (l->j->current && l->content.len && !l->content.error)
        r = kiln_journal_append(l->j, kiln_buf_str(&l->content), true);
    if (kiln_journal_is_full(r))
        r = 0; /* some are sent once more */
    for (uint32_t i = 0; i < l->n_damaged && r == 0; i++)
        r = set_aside(l, l->damaged[i]);
    for (uint32_t i = 0; i < l->n_records && r == 0; i++)
        r = l->j->opts.found(l->j->opts.context, &l->records[i].head, l->records[i].body_bytes,
                             &l->records[i].place);
    kiln_journal_sweep(l->j);
    return r;
}

int kiln_journal_load(struct kiln_journal *j, struct kiln_err *err)
{
    struct loading l = {.j = j, .budget = {.limit = SIZE_MAX / 2}};
    int r;

    kiln_buf_init(&l.content, SIZE_MAX / 2);
    r = load(&l);
    kiln_buf_done(&l.content);
    kiln_free(l.numbers);
    kiln_free(l.records);
    kiln_free(l.dones);
    kiln_free(l.damaged);
    return r < 0 ? kiln_err_set(err, r, j->opts.dir, "cannot be read: %s", kiln_err_text(r)) : 0;
}
