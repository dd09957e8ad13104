/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group commit: appends wait in a queue; the committer takes all of it, writes up to GROUP_MAX
 * records with one pwritev (heads from its own memory, bodies from where they are), syncs once and
 * tells everybody.  While it writes the next ones gather.  It allocates nothing on this path.
 *
 * A segment is made when the first record for it comes: its head is written, the records follow,
 * then file and folder are synced, then the first of them is acknowledged.
 *
 * The lock covers the queue and the list of segments.  It is never held while writing.  The segment
 * that is being written is the committer's while `writing` is set and belongs to whoever has the
 * lock while it is not: so trim can take it away when there is nothing under way.
 */
#include "store/wal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/thread.h"
#include "store/wal_int.h"

#define SEGMENT_BYTES ((uint64_t)64 << 20)
#define SEGMENT_MIN   ((uint64_t)4 << 10)
#define GROUP_BYTES   ((uint64_t)8 << 20) /* a group is closed when it has as many */
#define BUDGET_BYTES  ((size_t)WAL_SEGMENTS_MAX * sizeof(struct wal_segment))
enum {
    GROUP_MAX = 256, /* records */
    PIECES = 4,      /* of a record: head and tenant, recipe, body, padding */
    REASONS = 4,
};

static const char *const reasons[REASONS] = {"no_space", "sync", "limit", "io"};
enum reason { NO_SPACE, SYNC, LIMIT, IO };

/* Records on their way to the disk. */
struct group {
    struct kiln_wal_append *appends; /* in order, ended by NULL */
    uint32_t n;
    uint64_t bytes;
    struct iovec pieces[GROUP_MAX * PIECES];
    uint8_t heads[GROUP_MAX][WAL_RECORD_HEAD + KILN_WAL_TENANT_MAX + WAL_RECIPE_HEAD];
};

/* The segment that is being written: the last of the list. */
struct active {
    int fd;     /* -1: there is none */
    bool named; /* its name is durable */
    char path[WAL_PATH_MAX];
    uint64_t seal;
    uint64_t end; /* where the next record goes; all before is durable, but for the head */
};

struct metrics {
    struct kiln_metric *appends, *bytes, *sync_seconds, *failures[REASONS];
};

struct kiln_wal {
    struct kiln_io *io;
    uint64_t segment_bytes;
    struct metrics metrics;

    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct kiln_wal_append *queue, **queue_end;
    bool closing;
    bool writing;
    struct wal_segments segments;

    pthread_t thread;
    bool threaded;
    struct active active;
    bool folder_lost; /* wal/ was not there, or may not have been */
    uint64_t next_number;
    uint64_t vouched; /* what a record says was durable before it */
    struct group group;
    _Atomic uint64_t durable;
    _Atomic uint64_t bytes; /* of all segments */
    bool turn;              /* the next group goes to a new segment */
    pthread_cond_t quiet;   /* nothing is being written, or the turn was made */
};

static const uint8_t zeros[WAL_ALIGN];

/* ---- the active segment ---- */

static void sub_bytes(struct kiln_wal *wal, uint64_t bytes)
{
    atomic_fetch_sub(&wal->bytes, bytes);
}

/* Numbers given so far may stand in the last segment, and so many bytes do. */
static void note_active(struct kiln_wal *wal)
{
    struct wal_segment *segment;

    pthread_mutex_lock(&wal->lock);
    segment = &wal->segments.all[wal->segments.n - 1];
    atomic_fetch_add(&wal->bytes, wal->active.end - segment->bytes);
    segment->bytes = wal->active.end;
    segment->last = wal->next_number - 1;
    pthread_mutex_unlock(&wal->lock);
}

/* The segment gets no more records. */
static void retire(struct kiln_wal *wal)
{
    wal->io->close(wal->io, wal->active.fd);
    wal->active.fd = -1;
}

/* Removes the active segment, in which nothing is acknowledged. */
static void discard(struct kiln_wal *wal)
{
    char path[WAL_PATH_MAX];
    uint64_t bytes;

    pthread_mutex_lock(&wal->lock);
    wal_segment_path(wal->segments.all[wal->segments.n - 1].first, path);
    pthread_mutex_unlock(&wal->lock);
    retire(wal);
    if (wal->io->unlink(wal->io, path) < 0)
        return; /* it stays in the list, and trim tries again */
    pthread_mutex_lock(&wal->lock);
    bytes = wal->segments.all[--wal->segments.n].bytes;
    pthread_mutex_unlock(&wal->lock);
    sub_bytes(wal, bytes);
}

static int write_head(struct kiln_wal *wal, uint64_t first)
{
    struct wal_segment_head head = {.version = KILN_WAL_VERSION, .first = first};
    uint8_t bytes[WAL_SEGMENT_HEAD];

    if (getrandom(&head.seal, sizeof(head.seal), 0) != (ssize_t)sizeof(head.seal))
        return -EIO;
    wal_segment_encode(&head, bytes);
    wal->active.seal = head.seal;
    wal->active.end = WAL_SEGMENT_HEAD;
    return wal->io->pwrite(wal->io, wal->active.fd, bytes, sizeof(bytes), 0);
}

/* A name is never used twice: whatever comes of it, the next segment begins with a later number. */
static int create(struct kiln_wal *wal)
{
    uint64_t first = wal->next_number;
    char path[WAL_PATH_MAX];
    int r;

    pthread_mutex_lock(&wal->lock);
    r = wal_segments_reserve(&wal->segments);
    pthread_mutex_unlock(&wal->lock);
    if (r < 0)
        return r;
    wal_segment_path(first, path);
    wal->next_number++;
    r = wal->io->open(wal->io, path, O_RDWR | O_CREAT | O_EXCL);
    wal->folder_lost = wal->folder_lost || r == -ENOENT;
    if (r < 0)
        return r;
    wal->active = (struct active){.fd = r};
    memcpy(wal->active.path, path, sizeof(path));
    pthread_mutex_lock(&wal->lock);
    wal->segments.all[wal->segments.n++] = (struct wal_segment){.first = first, .last = first};
    pthread_mutex_unlock(&wal->lock);
    r = write_head(wal, first);
    if (r < 0) {
        discard(wal);
        return r;
    }
    wal->next_number = first;
    return 0;
}

static int ready_segment(struct kiln_wal *wal)
{
    bool turn;

    pthread_mutex_lock(&wal->lock);
    turn = wal->turn;
    wal->turn = false;
    pthread_mutex_unlock(&wal->lock);
    if (wal->active.fd >= 0 && (turn || wal->active.end >= wal->segment_bytes))
        retire(wal);
    return wal->active.fd >= 0 ? 0 : create(wal);
}

/* ---- a group ---- */

/* Bytes of the body in the log. */
static uint64_t body_bytes(const struct kiln_wal_record *record)
{
    uint64_t recipe = record->recipe.len ? (uint64_t)WAL_RECIPE_HEAD + record->recipe.len : 0;

    return recipe + record->body.len;
}

static bool is_too_large(const struct kiln_wal_record *record)
{
    return record->tenant.len > KILN_WAL_TENANT_MAX || body_bytes(record) > KILN_WAL_BODY_MAX;
}

static struct iovec piece(struct kiln_str bytes)
{
    return (struct iovec){(void *)(uintptr_t)bytes.ptr, bytes.len};
}

static void put_record(struct kiln_wal *wal, struct kiln_wal_append *append)
{
    struct group *group = &wal->group;
    struct kiln_wal_record *record = &append->record;
    struct iovec *pieces = &group->pieces[(size_t)group->n * PIECES];
    uint8_t *head_bytes = group->heads[group->n];
    struct wal_record_head head = {
        .seal = wal->active.seal,
        .number = wal->next_number++,
        .durable = wal->vouched,
        .received_ns = record->received_ns,
        .oldest_ns = record->oldest_ns,
        .body_bytes = (uint32_t)body_bytes(record),
        .tenant_bytes = (uint16_t)record->tenant.len,
        .compression = (uint8_t)record->compression,
        .has_recipe = record->recipe.len > 0,
    };
    size_t head_n = (size_t)WAL_RECORD_HEAD + head.tenant_bytes;
    size_t recipe_n = head.has_recipe ? WAL_RECIPE_HEAD : 0;
    uint64_t n = wal_record_bytes(&head);

    record->number = head.number;
    wal_recipe_encode(record->recipe, head_bytes + head_n);
    head.body_crc = kiln_crc32c(0, head_bytes + head_n, recipe_n);
    head.body_crc = kiln_crc32c(head.body_crc, record->recipe.ptr, record->recipe.len);
    head.body_crc = kiln_crc32c(head.body_crc, record->body.ptr, record->body.len);
    wal_record_encode(&head, record->tenant.ptr, head_bytes);
    pieces[0] = (struct iovec){head_bytes, head_n + recipe_n};
    pieces[1] = piece(record->recipe);
    pieces[2] = piece(record->body);
    pieces[3] = (struct iovec){(void *)(uintptr_t)zeros, (size_t)n - head_n - head.body_bytes};
    group->n++;
    group->bytes += n;
}

/* Moves appends from the list into the group, as many as shall be written at once. */
static void fill_group(struct kiln_wal *wal, struct kiln_wal_append **list)
{
    struct group *group = &wal->group;
    struct kiln_wal_append **end = &group->appends;

    group->n = 0;
    group->bytes = 0;
    while (*list && group->n < GROUP_MAX && group->bytes < GROUP_BYTES &&
           wal->active.end + group->bytes < wal->segment_bytes && !is_too_large(&(*list)->record)) {
        put_record(wal, *list);
        *end = *list;
        end = &(*list)->next;
        *list = *end;
    }
    *end = NULL;
}

/* Cuts off what a failed write left; if even that fails, the segment ends here. */
static void repair(struct kiln_wal *wal)
{
    if (wal->io->truncate(wal->io, wal->active.fd, wal->active.end) < 0)
        retire(wal);
}

/* A record in a segment that was removed, alone or with wal/, is as good as not written. */
static int sync_active(struct kiln_wal *wal)
{
    uint64_t start = kiln_clock_mono_ns();
    int r = wal->io->sync(wal->io, wal->active.fd);

    kiln_metric_observe(wal->metrics.sync_seconds,
                        (double)(kiln_clock_mono_ns() - start) / (double)KILN_NS_PER_S);
    if (r == 0 && !wal->active.named)
        r = wal->io->sync_dir(wal->io, "wal");
    if (r == 0 && wal->folder_lost) /* the user made it again */
        r = wal->io->sync_dir(wal->io, ".");
    if (r < 0)
        return r;
    wal->active.named = true;
    r = wal->io->has_name(wal->io, wal->active.fd, wal->active.path);
    wal->folder_lost = r < 0;
    return r;
}

/* After a failed sync nobody knows what is on the disk: the segment is left as it is. */
static void poison(struct kiln_wal *wal)
{
    bool empty = wal->active.end == WAL_SEGMENT_HEAD;

    if (empty)
        discard(wal);
    else
        retire(wal);
}

static enum reason reason_of(int code)
{
    if (code == -ENOSPC || code == -EDQUOT)
        return NO_SPACE;
    return code == KILN_E_LIMIT ? LIMIT : IO;
}

static int write_group(struct kiln_wal *wal, enum reason *ret_reason)
{
    struct group *group = &wal->group;
    int r = wal->io->pwritev(wal->io, wal->active.fd, group->pieces, (int)(group->n * PIECES),
                             wal->active.end);

    if (r < 0) {
        *ret_reason = reason_of(r);
        note_active(wal);
        repair(wal);
        return r;
    }
    r = sync_active(wal);
    if (r < 0) {
        *ret_reason = SYNC;
        note_active(wal);
        poison(wal);
        return r;
    }
    wal->active.end += group->bytes;
    note_active(wal);
    wal->vouched = wal->next_number - 1;
    atomic_store(&wal->durable, wal->vouched);
    return 0;
}

static void tell(struct kiln_wal *wal, struct kiln_wal_append *appends, int code,
                 enum reason reason)
{
    while (appends) {
        struct kiln_wal_append *append = appends;

        appends = append->next;
        append->next = NULL;
        kiln_metric_add(code < 0 ? wal->metrics.failures[reason] : wal->metrics.appends, 1);
        append->done(append, code);
    }
}

static void refuse_first(struct kiln_wal *wal, struct kiln_wal_append **list)
{
    struct kiln_wal_append *append = *list;

    *list = append->next;
    append->next = NULL;
    tell(wal, append, KILN_E_LIMIT, LIMIT);
}

static void commit_group(struct kiln_wal *wal, struct kiln_wal_append **list)
{
    enum reason reason = IO;
    int r;

    if (is_too_large(&(*list)->record)) {
        refuse_first(wal, list);
        return;
    }
    r = ready_segment(wal);
    if (r < 0) {
        tell(wal, *list, r, reason_of(r));
        *list = NULL;
        return;
    }
    fill_group(wal, list);
    r = write_group(wal, &reason);
    if (r == 0)
        kiln_metric_add(wal->metrics.bytes, (int64_t)wal->group.bytes);
    tell(wal, wal->group.appends, r, reason);
}

static struct kiln_wal_append *take_queue(struct kiln_wal *wal)
{
    struct kiln_wal_append *list = wal->queue;

    wal->queue = NULL;
    wal->queue_end = &wal->queue;
    return list;
}

static void *commit(void *argument)
{
    struct kiln_wal *wal = argument;

    pthread_mutex_lock(&wal->lock);
    for (;;) {
        struct kiln_wal_append *list;

        while (!wal->queue && !wal->closing)
            pthread_cond_wait(&wal->wake, &wal->lock);
        list = take_queue(wal);
        if (!list)
            break;
        wal->writing = true;
        pthread_mutex_unlock(&wal->lock);
        while (list)
            commit_group(wal, &list);
        pthread_mutex_lock(&wal->lock);
        wal->writing = false;
        pthread_cond_broadcast(&wal->quiet);
    }
    pthread_mutex_unlock(&wal->lock);
    return NULL;
}

void kiln_wal_submit(struct kiln_wal *wal, struct kiln_wal_append *append)
{
    bool refused;

    append->next = NULL;
    pthread_mutex_lock(&wal->lock);
    refused = wal->closing || !wal->threaded;
    if (!refused) {
        *wal->queue_end = append;
        wal->queue_end = &append->next;
        pthread_cond_signal(&wal->wake);
    }
    pthread_mutex_unlock(&wal->lock);
    if (refused)
        append->done(append, wal->threaded ? -ESHUTDOWN : -EROFS);
}

/* ---- trim ---- */

/*
 * Who trims may do so from the very acknowledgement of the last record, while the committer is
 * still telling others: it is waited for, unless newer records keep the segment anyway.
 */
static void wait_for_covered(struct kiln_wal *wal, uint64_t number)
{
    const struct wal_segments *segments = &wal->segments;

    while (wal->writing && segments->n && segments->all[segments->n - 1].last <= number)
        pthread_cond_wait(&wal->quiet, &wal->lock);
}

/* The oldest segment that has nothing above `number`; false: none. */
static bool find_covered(struct kiln_wal *wal, uint64_t number, struct wal_segment *ret_segment)
{
    uint32_t n;
    bool found = false;

    pthread_mutex_lock(&wal->lock);
    wait_for_covered(wal, number);
    n = wal->segments.n;
    if (!wal->writing && wal->active.fd >= 0 && wal->segments.all[n - 1].last <= number)
        retire(wal);
    if (n && (wal->writing || wal->active.fd >= 0))
        n--;
    for (uint32_t i = 0; i < n && !found; i++) {
        found = wal->segments.all[i].last <= number;
        *ret_segment = wal->segments.all[i];
    }
    pthread_mutex_unlock(&wal->lock);
    return found;
}

static void forget(struct kiln_wal *wal, uint64_t first)
{
    struct wal_segments *segments = &wal->segments;
    uint32_t i = 0;

    pthread_mutex_lock(&wal->lock);
    while (segments->all[i].first != first)
        i++;
    sub_bytes(wal, segments->all[i].bytes);
    segments->n--;
    memmove(&segments->all[i], &segments->all[i + 1], (segments->n - i) * sizeof(*segments->all));
    pthread_mutex_unlock(&wal->lock);
}

static int set_aside(struct kiln_io *io, const char *path)
{
    char target[WAL_PATH_MAX + 8];
    int r = io->mkdir(io, "aside");

    snprintf(target, sizeof(target), "aside/%s", strrchr(path, '/') + 1);
    if (r == 0)
        r = io->rename(io, path, target);
    if (r == 0)
        r = io->sync_dir(io, "aside");
    return r < 0 ? r : io->sync_dir(io, ".");
}

/* The committer's segment is taken away between two groups, by whoever comes first. */
void kiln_wal_turn(struct kiln_wal *wal)
{
    pthread_mutex_lock(&wal->lock);
    wal->turn = true;
    while (wal->writing && wal->turn)
        pthread_cond_wait(&wal->quiet, &wal->lock);
    if (wal->turn && wal->active.fd >= 0)
        retire(wal);
    wal->turn = false;
    pthread_mutex_unlock(&wal->lock);
}

int kiln_wal_trim(struct kiln_wal *wal, uint64_t number)
{
    struct wal_segment segment;
    char path[WAL_PATH_MAX];
    bool removed = false;

    while (find_covered(wal, number, &segment)) {
        int r;

        wal_segment_path(segment.first, path);
        r = segment.damaged ? set_aside(wal->io, path) : wal->io->unlink(wal->io, path);
        if (r < 0 && r != -ENOENT)
            return r;
        forget(wal, segment.first);
        removed = true;
    }
    return removed ? wal->io->sync_dir(wal->io, "wal") : 0;
}

/* ---- open, close ---- */

uint64_t kiln_wal_durable(const struct kiln_wal *wal)
{
    return atomic_load(&wal->durable);
}

uint64_t kiln_wal_bytes(const struct kiln_wal *wal)
{
    return atomic_load(&wal->bytes);
}

static void get_metrics(struct metrics *m, struct kiln_metrics *metrics)
{
    m->appends = kiln_metric_get(metrics, KILN_COUNTER, "kiln_wal_appends_total",
                                 "Records that became durable in the log.", NULL);
    m->bytes = kiln_metric_get(metrics, KILN_COUNTER, "kiln_wal_append_bytes_total",
                               "Bytes of records that became durable in the log.", NULL);
    m->sync_seconds = kiln_metric_get(metrics, KILN_HISTOGRAM, "kiln_wal_sync_seconds",
                                      "What a sync of the log takes.", NULL);
    for (int i = 0; i < REASONS; i++)
        m->failures[i] = kiln_metric_get(metrics, KILN_COUNTER, "kiln_wal_failures_total",
                                         "Records that did not become durable, by reason.",
                                         KILN_LABELS("reason", reasons[i]));
}

static struct kiln_wal *make(struct kiln_io *io, const struct kiln_wal_opts *opts)
{
    struct kiln_wal *wal = kiln_calloc(1, sizeof(*wal));

    if (!wal)
        return NULL;
    wal->io = io;
    wal->segment_bytes = opts->segment_bytes ? opts->segment_bytes : SEGMENT_BYTES;
    if (wal->segment_bytes < SEGMENT_MIN)
        wal->segment_bytes = SEGMENT_MIN;
    wal->segments.budget.limit = BUDGET_BYTES;
    wal->active.fd = -1;
    wal->queue_end = &wal->queue;
    pthread_mutex_init(&wal->lock, NULL);
    pthread_cond_init(&wal->wake, NULL);
    pthread_cond_init(&wal->quiet, NULL);
    get_metrics(&wal->metrics, opts->metrics);
    return wal;
}

/* The folder, and its name, are there for good. */
static int make_folder(struct kiln_io *io, struct kiln_err *err)
{
    int r = io->mkdir(io, "wal");

    if (r == 0)
        r = io->sync_dir(io, ".");
    if (r == 0)
        r = io->sync_dir(io, "wal");
    return r < 0 ? kiln_err_set(err, r, "wal", "cannot be made: %s", kiln_err_text(r)) : 0;
}

static int start_thread(struct kiln_wal *wal)
{
    int r = kiln_thread_start("kiln-wal", commit, wal, &wal->thread);

    wal->threaded = r == 0;
    return r;
}

/* Where the numbers go on: above all that was ever seen, and above the names of segments. */
static void set_numbers(struct kiln_wal *wal, uint64_t last, uint64_t floor)
{
    uint64_t bytes = 0;

    atomic_store(&wal->durable, last > floor ? last : floor);
    wal->next_number = atomic_load(&wal->durable) + 1;
    for (uint32_t i = 0; i < wal->segments.n; i++) {
        const struct wal_segment *segment = &wal->segments.all[i];

        bytes += segment->bytes;
        if (segment->first >= wal->next_number)
            wal->next_number = segment->first + 1;
    }
    atomic_store(&wal->bytes, bytes);
}

int kiln_wal_open(struct kiln_io *io, const struct kiln_wal_opts *opts, uint64_t floor,
                  int (*replay)(void *context, const struct kiln_wal_record *record), void *context,
                  struct kiln_wal **ret_wal, struct kiln_err *err)
{
    struct kiln_wal *wal = make(io, opts);
    struct wal_replay p = {
        .io = io, .opts = opts, .floor = floor, .each = replay, .context = context};
    int r;

    if (!wal)
        return kiln_err_set(err, -ENOMEM, "wal", "%s", kiln_err_text(-ENOMEM));
    p.segments = &wal->segments;
    r = opts->read_only ? 0 : make_folder(io, err);
    if (r == 0)
        r = wal_replay(&p, err);
    if (r == 0) {
        wal->vouched = p.vouched;
        set_numbers(wal, p.last, floor);
        r = opts->read_only ? 0 : start_thread(wal);
    }
    if (r < 0) {
        kiln_wal_close(wal);
        return kiln_err_set(err, r, "wal", "%s", kiln_err_text(r));
    }
    *ret_wal = wal;
    return 0;
}

void kiln_wal_close(struct kiln_wal *wal)
{
    if (!wal)
        return;
    pthread_mutex_lock(&wal->lock);
    wal->closing = true;
    pthread_cond_signal(&wal->wake);
    pthread_mutex_unlock(&wal->lock);
    if (wal->threaded)
        pthread_join(wal->thread, NULL);
    if (wal->active.fd >= 0)
        retire(wal);
    kiln_array_free(&wal->segments.budget, (void **)&wal->segments.all, &wal->segments.cap,
                    sizeof(*wal->segments.all));
    pthread_cond_destroy(&wal->wake);
    pthread_cond_destroy(&wal->quiet);
    pthread_mutex_destroy(&wal->lock);
    kiln_free(wal);
}
